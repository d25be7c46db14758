//! Files of lines, read in pieces, in any encoding and with any line ends.

use crate::program::Ended;
use crate::text::TextReader;
use anyhow::{Context, Error, Result, ensure};
use std::io::Read;

/// Bytes of the longest line.
pub const MOST_BYTES: usize = 16 << 20;

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// The lines of a text.
pub struct Lines<R> {
    name: String,
    reader: TextReader<R>,
    buffer: Vec<u8>,
    /// Place in `buffer` where the next line begins.
    begin: usize,
    /// Place in `buffer` before which the next line does not end.
    searched: usize,
    filled: usize,
    has_ended: bool,
    /// Number of lines so far.
    count: u64,
}

impl<R: Read> Lines<R> {
    /// `name` is the file's name, for messages.
    pub fn new(name: &str, reader: R) -> Self {
        let (name, reader, buffer) = (name.into(), TextReader::new(reader), vec![0; PIECE]);
        Self { name, reader, buffer, begin: 0, searched: 0, filled: 0, has_ended: false, count: 0 }
    }

    /// Returns the next line without its end, and its number (from 1 on); `None` at the end of the text.
    ///
    /// # Errors
    ///
    /// The line is too long, or the file cannot be read.
    pub fn next_line(&mut self) -> Result<Option<(u64, &[u8])>> {
        let end = loop {
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[self.searched..self.filled]) {
                break self.searched + length;
            }
            self.searched = self.filled;
            if self.has_ended {
                if self.begin == self.filled {
                    return Ok(None);
                }
                break self.filled;
            }
            self.read_more()?;
        };
        let line = self.begin..end;
        self.begin = self.filled.min(end + 1);
        self.searched = self.begin;
        self.count += 1;
        Ok(Some((self.count, &self.buffer[line])))
    }

    fn read_more(&mut self) -> Result<()> {
        let Self { name, reader, buffer, begin, searched, filled, has_ended, count } = self;
        buffer.copy_within(*begin..*filled, 0);
        (*searched, *filled, *begin) = (*searched - *begin, *filled - *begin, 0);
        if *filled == buffer.len() {
            ensure!(*filled < MOST_BYTES, "{name}:{}: the line has more than {MOST_BYTES} bytes", *count + 1);
            buffer.resize(2 * *filled, 0);
        }
        let more = reader.read(&mut buffer[*filled..]).with_context(|| format!("{name} cannot be read"))?;
        *filled += more;
        *has_ended = more == 0;
        Ok(())
    }

    /// Returns the text behind the line that was read last.
    pub fn rest(self) -> impl Read {
        let Self { reader, mut buffer, begin, filled, .. } = self;
        buffer.truncate(filled);
        let mut buffered = std::io::Cursor::new(buffer);
        buffered.set_position(begin as u64);
        buffered.chain(reader)
    }
}

/// Passes each nonempty line, without surrounding blanks, and its number (from 1 on) to `take`. Returns the number of lines.
///
/// # Errors
///
/// An error of `take`, with the file's name and the line; a line that is too long; a file that cannot be read.
pub fn for_each(name: &str, reader: impl Read, mut take: impl FnMut(&[u8], u64) -> Result<()>) -> Result<u64> {
    let mut lines = Lines::new(name, reader);
    while let Some((number, line)) = lines.next_line()? {
        let line = line.trim_ascii();
        if !line.is_empty() {
            take(line, number).map_err(|error| placed(name, number, error))?;
        }
    }
    Ok(lines.count)
}

/// Adds the file's name and the line to an error.
pub fn placed(name: &str, line: u64, error: Error) -> Error {
    let why = format!("{name}:{line}: {error:#}");
    // An `Ended` keeps its exit code.
    match error.downcast_ref() {
        Some(&Ended { code, .. }) => Ended { code, why }.into(),
        None => Error::msg(why),
    }
}

/// Parses a whole number of decimal digits, less than 10^19.
pub fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let digit = |value: u64, digit: &u8| digit.is_ascii_digit().then(|| 10 * value + u64::from(digit - b'0'));
    digits.iter().try_fold(0, digit)
}

/// Beginning of a text, short enough for a message.
pub fn excerpt(bytes: &[u8]) -> String {
    const MOST: usize = 80;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST)]).escape_debug().to_string();
    if bytes.len() > MOST { format!("{text}...") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_any_length_are_read_and_what_follows_them() {
        let long = "x".repeat(3 * PIECE);
        let text = format!("\u{feff}a\r\r\n{long}\r\nb\nc\rd");
        let mut lines = Lines::new("file", text.as_bytes());
        for (number, expected) in [(1, "a"), (2, ""), (3, &*long), (4, "b")] {
            assert!(lines.next_line().unwrap() == Some((number, expected.as_bytes())), "{number}");
        }
        let mut rest = String::new();
        lines.rest().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "c\nd");
        let mut numbers = Vec::new();
        let error = for_each("file", text.as_bytes(), |line, number| {
            numbers.push((number, line.len()));
            ensure!(line != b"c", "wrong");
            Ok(())
        });
        assert_eq!(error.unwrap_err().to_string(), "file:5: wrong");
        assert_eq!(numbers, [(1, 1), (3, long.len()), (4, 1), (5, 1)]);
        assert_eq!(for_each("file", "a\r\rb".as_bytes(), |_, _| Ok(())).unwrap(), 3);
        let too_long = "x".repeat(MOST_BYTES + 1);
        let error = for_each("file", too_long.as_bytes(), |_, _| Ok(())).unwrap_err().to_string();
        assert_eq!(error, "file:1: the line has more than 16777216 bytes");
    }
}
