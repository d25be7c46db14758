//! Escapes texts of files for outputs: one function for each kind of output. JSON has its own escapes.
//!
//! A name in a file may hold any character. Control characters would change the colours or the title of a terminal, a line end
//! would forge a line of a report, and overrides of the writing direction would show letters in another order. Each of these
//! characters is shown as `\u{1b}`.

use std::borrow::Cow;

/// Whether a character must not reach an output: a control character, a line end, a mark that changes the writing direction, or
/// a character that XML does not permit.
pub fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(character, '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || u32::from(character) & 0xfffe == 0xfffe
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_escaped(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown.into()
}

/// Escapes a text as a part of a line: for terminals, reports and text files. Escaping twice is the same as escaping once.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_unprintable)
}

/// Escapes a text of several lines, for messages that have line ends and tabs of their own.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| is_unprintable(character) && !matches!(character, '\n' | '\t'))
}

/// Escapes a text as one word of a line, without blanks.
pub fn word(text: &str) -> Cow<'_, str> {
    escaped(text, |character| is_unprintable(character) || character.is_whitespace())
}

/// Escapes a text between the tags of XML, or between the quotes of an attribute.
pub fn xml(text: &str) -> String {
    line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Quotes a text for a format in which a backslash begins an escape, as HOA.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", line(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// Quotes lines of text for Graphviz, which breaks the string where the lines end.
pub fn dot(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|part| line(part).replace('\\', "\\\\").replace('"', "\\\"")).collect();
    format!("\"{}\"", lines.join("\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Characters of each kind that must not reach an output.
    const UNPRINTABLE: &str = "\u{1b}\n\r\t\u{7}\u{0}\u{7f}\u{9b}\u{85}\u{202e}\u{2066}\u{200f}\u{2028}\u{feff}\u{ffff}";

    #[test]
    fn each_kind_of_output_has_its_escapes() {
        let name = "a \u{1b}[31m\"<&>\\\n\u{9b}\u{202e}\u{fc}";
        assert_eq!(line(name), "a \\u{1b}[31m\"<&>\\\\u{a}\\u{9b}\\u{202e}\u{fc}");
        assert_eq!(word("a b\n"), "a\\u{20}b\\u{a}");
        assert_eq!(lines("a\n\tb\r\u{7}"), "a\n\tb\\u{d}\\u{7}");
        assert_eq!(xml(name), "a \\u{1b}[31m&quot;&lt;&amp;&gt;\\\\u{a}\\u{9b}\\u{202e}\u{fc}");
        assert_eq!(quoted("\"\\\u{1b}"), "\"\\\"\\\\\\\\u{1b}\"");
        assert_eq!(dot("a\n\"\u{1b}\""), "\"a\\n\\\"\\\\u{1b}\\\"\"");
        assert!(matches!(line("gr\u{fc}n !1"), Cow::Borrowed("gr\u{fc}n !1")));
        for character in UNPRINTABLE.chars() {
            let text = format!("x{character}y");
            let all = [line(&text).into_owned(), word(&text).into_owned(), xml(&text), quoted(&text), dot(&line(&text))];
            assert!(all.iter().all(|shown| !shown.contains(character)), "{all:?}");
        }
    }

    proptest! {
        #[test]
        fn escaping_twice_is_escaping_once(text in "\\PC*[\u{0}-\u{a0}]{0,8}\\PC*") {
            let once = line(&text).into_owned();
            prop_assert!(!once.contains(is_unprintable));
            prop_assert_eq!(line(&once), once.as_str());
        }
    }
}
