//! Files of lines, read in pieces.

use crate::program::Ended;
use anyhow::{Context, Error, Result, ensure};
use std::io::Read;

/// Bytes of the longest line.
pub const MOST_BYTES: usize = 16 << 20;

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// Passes each nonempty line, without surrounding blanks, and its number (from 1 on) to `take`. Returns the number of lines.
///
/// # Errors
///
/// An error of `take`, with the file's name and the line; a line that is too long; a file that cannot be read.
pub fn for_each(name: &str, mut reader: impl Read, mut take: impl FnMut(&[u8], u64) -> Result<()>) -> Result<u64> {
    let mut line = 0;
    let mut next = |bytes: &[u8]| {
        line += 1;
        let bytes = bytes.trim_ascii();
        if bytes.is_empty() {
            return Ok(line);
        }
        take(bytes, line).map(|()| line).map_err(|error| {
            let why = format!("{name}:{line}: {error:#}");
            // An exit code is kept when the line is added to the error.
            match error.downcast_ref() {
                Some(&Ended { code, .. }) => Ended { code, why }.into(),
                None => Error::msg(why),
            }
        })
    };
    let (mut buffer, mut filled, mut lines) = (vec![0; PIECE], 0, 0);
    loop {
        if filled == buffer.len() {
            ensure!(filled < MOST_BYTES, "{name}:{}: the line has more than {MOST_BYTES} bytes", lines + 1);
            buffer.resize(2 * filled, 0);
        }
        let count = reader.read(&mut buffer[filled..]).with_context(|| format!("{name} cannot be read"))?;
        filled += count;
        let mut begin = 0;
        while let Some(length) = memchr::memchr(b'\n', &buffer[begin..filled]) {
            lines = next(&buffer[begin..begin + length])?;
            begin += length + 1;
        }
        if count == 0 {
            return if begin < filled { next(&buffer[begin..filled]) } else { Ok(lines) };
        }
        buffer.copy_within(begin..filled, 0);
        filled -= begin;
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
