//! Many short texts in one string.

use std::ops::Range;

/// Texts by number. Each text takes its length in bytes, plus 8 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// All texts, one after another.
    all: String,
    /// End of each text in `all`; the next text begins there.
    ends: Vec<u64>,
}

impl Texts {
    /// Adds a text. Its number is the number of texts before it. If memory runs out, changes nothing and returns false.
    pub fn push(&mut self, text: &str) -> bool {
        if self.all.try_reserve(text.len()).is_err() || self.ends.try_reserve(1).is_err() {
            return false;
        }
        self.all.push_str(text);
        self.ends.push(self.all.len() as u64);
        true
    }

    pub fn get(&self, number: usize) -> &str {
        self.piece(self.bytes_of(number))
    }

    /// Length of all texts together, in bytes.
    pub fn bytes(&self) -> usize {
        self.all.len()
    }

    /// The byte range of a text in the concatenation of all texts.
    pub fn bytes_of(&self, number: usize) -> Range<usize> {
        let begin = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        begin as usize..self.ends[number] as usize
    }

    /// The piece of the concatenation in this byte range.
    pub fn piece(&self, bytes: Range<usize>) -> &str {
        &self.all[bytes]
    }

    pub fn last(&self) -> Option<&str> {
        self.len().checked_sub(1).map(|last| self.get(last))
    }

    pub fn clear(&mut self) {
        self.all.clear();
        self.ends.clear();
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All texts, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|number| self.get(number))
    }
}

impl<'t> FromIterator<&'t str> for Texts {
    fn from_iter<I: IntoIterator<Item = &'t str>>(texts: I) -> Self {
        let mut all = Self::default();
        texts.into_iter().for_each(|text| assert!(all.push(text), "no memory for a text of {} bytes", text.len()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_what_was_put_in() {
        let all = ["", "a", "", "ab !1", "\u{e9}"];
        let mut texts: Texts = all.into_iter().collect();
        assert_eq!(texts.iter().collect::<Vec<_>>(), all);
        assert_eq!((texts.len(), texts.get(3), texts.last()), (5, "ab !1", Some("\u{e9}")));
        texts.clear();
        assert_eq!((texts.len(), texts.last()), (0, None));
    }
}
