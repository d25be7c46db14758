//! Reads text in any encoding and with any line ends as UTF-8 with `\n`.
//!
//! A byte-order mark selects UTF-8 or UTF-16; text without one is UTF-8. XML without a mark may declare its encoding, and UTF-16
//! is recognised by the zeros in its first characters. A line ends with LF, CR or CRLF.
//!
//! Bytes that are invalid in the encoding are passed on as invalid UTF-8: invalid bytes of UTF-8 unchanged, each invalid piece of
//! another encoding as the byte 0xFF. So `std::str::from_utf8` finds them, whatever the encoding is.

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use std::io::{Error, ErrorKind, Read, Result};
use std::ops::Range;

/// Bytes that are decoded at once.
const PIECE: usize = 1 << 16;

/// Longest XML declaration that is looked for, in bytes.
const MOST_DECLARATION: usize = 1 << 12;

/// Byte-order marks. The marks of UTF-32, which is not read, come first, because one of them begins with a mark of UTF-16.
const MARKS: [(&[u8], Option<&Encoding>); 5] = [
    (b"\xef\xbb\xbf", Some(UTF_8)),
    (b"\xff\xfe\0\0", None),
    (b"\0\0\xfe\xff", None),
    (b"\xff\xfe", Some(UTF_16LE)),
    (b"\xfe\xff", Some(UTF_16BE)),
];

/// Reads a text as UTF-8 with `\n`. Buffers nothing unless it must decode.
pub struct TextReader<R> {
    reader: R,
    is_xml: bool,
    has_begun: bool,
    /// Bytes of the text's beginning that were read to find the encoding, in reverse order.
    begin: Vec<u8>,
    /// Decodes an encoding other than UTF-8.
    decoding: Option<Box<Decoding>>,
    /// Whether the last byte was a CR, which was passed on as `\n`.
    is_after_cr: bool,
}

impl<R: Read> TextReader<R> {
    /// Reads UTF-8, or the encoding of the text's byte-order mark.
    pub fn new(reader: R) -> Self {
        Self { reader, is_xml: false, has_begun: false, begin: Vec::new(), decoding: None, is_after_cr: false }
    }

    /// Reads XML: as [`new`](Self::new), or in the encoding that the text declares.
    pub fn of_xml(reader: R) -> Self {
        Self { is_xml: true, ..Self::new(reader) }
    }

    /// Name of the encoding, known after the first read.
    pub fn encoding(&self) -> &'static str {
        self.decoding.as_ref().map_or(UTF_8, |decoding| decoding.decoder.encoding()).name()
    }

    /// Finds the encoding. Reads no more than that takes, because the text may come from a terminal.
    fn begin(&mut self) -> Result<()> {
        let mut begin = Vec::new();
        let may_go_on = |begin: &[u8]| MARKS.iter().any(|(mark, _)| mark.len() > begin.len() && mark.starts_with(begin));
        while may_go_on(&begin) || self.is_xml && begin.len() < 4 {
            if !self.read_more(&mut begin, 4)? {
                break;
            }
        }
        let encoding = match MARKS.iter().find(|(mark, _)| begin.starts_with(mark)) {
            Some((mark, encoding)) => {
                begin.drain(..mark.len());
                encoding.ok_or_else(utf32)?
            }
            None if self.is_xml => self.of_declaration(&mut begin)?,
            None => UTF_8,
        };
        begin.reverse();
        self.begin = begin;
        self.decoding = (encoding != UTF_8).then(|| Box::new(Decoding::new(encoding)));
        Ok(())
    }

    /// The encoding of XML that has no byte-order mark.
    fn of_declaration(&mut self, begin: &mut Vec<u8>) -> Result<&'static Encoding> {
        match begin[..] {
            [b'<', 0, 0, 0] | [0, 0, 0, b'<'] => return Err(utf32()),
            [b'<', 0, ..] => return Ok(UTF_16LE),
            [0, b'<', ..] => return Ok(UTF_16BE),
            _ => {}
        }
        let declaration = loop {
            // Other instructions begin with these letters, too: `<?xml-stylesheet`.
            let length = begin.len().min(5);
            let is_longer_name = begin.get(5).is_some_and(|byte| !byte.is_ascii_whitespace());
            if begin[..length] != b"<?xml"[..length] || is_longer_name {
                return Ok(UTF_8);
            }
            match memchr::memmem::find(begin, b"?>") {
                Some(end) => break String::from_utf8_lossy(&begin[..end]),
                None if begin.len() > MOST_DECLARATION || !self.read_more(begin, 64)? => return Ok(UTF_8),
                None => {}
            }
        };
        let Some(name) = declared(&declaration) else { return Ok(UTF_8) };
        let encoding = Encoding::for_label_no_replacement(name.as_bytes()).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidData,
                format!("the XML declares the encoding `{}`, which is not known", name.escape_debug()),
            )
        })?;
        // A declaration that can be read as ASCII is not in UTF-16. Programs on .NET write such texts in UTF-8.
        Ok(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
    }

    /// Appends at most `most` bytes of the text. Returns false at its end.
    fn read_more(&mut self, to: &mut Vec<u8>, most: usize) -> Result<bool> {
        let length = to.len();
        to.resize(length + most, 0);
        let count = retried(|| self.reader.read(&mut to[length..]))?;
        to.truncate(length + count);
        Ok(count > 0)
    }

    /// Reads bytes of the text, without decoding them.
    fn read_bytes(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.begin.is_empty() {
            return self.reader.read(buffer);
        }
        let count = buffer.len().min(self.begin.len());
        buffer[..count].fill_with(|| self.begin.pop().expect("bytes are left"));
        Ok(count)
    }
}

impl<R: Read> Read for TextReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if !self.has_begun {
            self.begin()?;
            self.has_begun = true;
        }
        loop {
            let count = match self.decoding.take() {
                None => self.read_bytes(buffer)?,
                Some(mut decoding) => {
                    let count = decoding.read(buffer, |input| self.read_bytes(input));
                    self.decoding = Some(decoding);
                    count?
                }
            };
            // An LF behind a CR leaves no byte. Then read on, because 0 would mean the end.
            match unify_line_ends(&mut buffer[..count], &mut self.is_after_cr) {
                0 if count > 0 => {}
                left => return Ok(left),
            }
        }
    }
}

/// The decoder of an encoding other than UTF-8.
struct Decoding {
    decoder: Decoder,
    input: Box<[u8]>,
    /// Bytes of `input` that are not decoded yet.
    undecoded: Range<usize>,
    output: Box<[u8]>,
    /// Bytes of `output` that are not passed on yet.
    decoded: Range<usize>,
    /// Whether `input` has the last bytes of the text.
    is_last: bool,
    has_ended: bool,
}

impl Decoding {
    fn new(encoding: &'static Encoding) -> Self {
        let decoder = encoding.new_decoder_without_bom_handling();
        let [input, output] = [PIECE, 2 * PIECE].map(|bytes| vec![0; bytes].into());
        Self { decoder, input, undecoded: 0..0, output, decoded: 0..0, is_last: false, has_ended: false }
    }

    fn read(&mut self, buffer: &mut [u8], mut read: impl FnMut(&mut [u8]) -> Result<usize>) -> Result<usize> {
        while self.decoded.is_empty() && !self.has_ended {
            if self.undecoded.is_empty() && !self.is_last {
                self.undecoded = 0..retried(|| read(&mut self.input))?;
                self.is_last = self.undecoded.is_empty();
            }
            // The last byte is for the 0xFF of an invalid piece.
            let (output, last) = self.output.split_at_mut(2 * PIECE - 1);
            let input = &self.input[self.undecoded.clone()];
            let (result, taken, mut count) = self.decoder.decode_to_utf8_without_replacement(input, output, self.is_last);
            self.undecoded.start += taken;
            match result {
                DecoderResult::InputEmpty => self.has_ended = self.is_last,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => {
                    *output.get_mut(count).unwrap_or(&mut last[0]) = 0xff;
                    count += 1;
                }
            }
            self.decoded = 0..count;
        }
        let count = buffer.len().min(self.decoded.len());
        buffer[..count].copy_from_slice(&self.output[self.decoded.start..][..count]);
        self.decoded.start += count;
        Ok(count)
    }
}

fn utf32() -> Error {
    Error::new(ErrorKind::InvalidData, "the text is in UTF-32, which is not supported: convert it to UTF-8")
}

/// Repeats a read until no signal interrupts it. Returns its result.
fn retried(mut read: impl FnMut() -> Result<usize>) -> Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// The encoding that an XML declaration names.
fn declared(declaration: &str) -> Option<&str> {
    let (_, behind) = declaration.split_once("encoding")?;
    let quoted = behind.trim_start().strip_prefix('=')?.trim_start();
    let quote = quoted.chars().next().filter(|quote| "\"'".contains(*quote))?;
    quoted[1..].split_once(quote).map(|(name, _)| name)
}

/// Replaces each CR and CRLF by `\n`, in place. Returns the length that is left.
fn unify_line_ends(bytes: &mut [u8], is_after_cr: &mut bool) -> usize {
    let mut from = usize::from(std::mem::take(is_after_cr) && bytes.first() == Some(&b'\n'));
    let mut to = 0;
    loop {
        let length = memchr::memchr(b'\r', &bytes[from..]);
        let end = length.map_or(bytes.len(), |length| from + length);
        if from != to {
            bytes.copy_within(from..end, to);
        }
        to += end - from;
        if length.is_none() {
            return to;
        }
        bytes[to] = b'\n';
        (from, to) = (end + 1, to + 1);
        match bytes.get(from) {
            Some(b'\n') => from += 1,
            Some(_) => {}
            None => *is_after_cr = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads at most `piece` bytes at a time.
    struct Pieces<'t>(&'t [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            let most = buffer.len().min(self.1);
            self.0.read(&mut buffer[..most])
        }
    }

    fn decoded(bytes: &[u8], is_xml: bool, piece: usize) -> Result<(Vec<u8>, &'static str)> {
        let mut reader = TextReader { is_xml, ..TextReader::new(Pieces(bytes, piece)) };
        let mut text = Vec::new();
        let mut buffer = vec![0; piece];
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok((text, reader.encoding())),
                count => text.extend_from_slice(&buffer[..count]),
            }
        }
    }

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    proptest! {
        #[test]
        fn pieces_of_any_length_make_the_same_text(text in "[a\\r\\n\u{e4}\u{20ac}\u{1f600}<?]{0,30}", piece in 1usize..9) {
            let expected = text.replace("\r\n", "\n").replace('\r', "\n");
            let marked = format!("\u{feff}{text}");
            for (bytes, encoding) in [
                (text.clone().into_bytes(), "UTF-8"),
                (marked.clone().into_bytes(), "UTF-8"),
                (utf16(&marked, u16::to_le_bytes), "UTF-16LE"),
                (utf16(&marked, u16::to_be_bytes), "UTF-16BE"),
            ] {
                for is_xml in [false, true] {
                    let (found, name) = decoded(&bytes, is_xml, piece).unwrap();
                    prop_assert_eq!((String::from_utf8(found).unwrap(), name), (expected.clone(), encoding));
                }
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40), is_xml: bool, piece in 1usize..9) {
            for mark in [&b""[..], b"\xff\xfe", b"\xfe\xff", b"<\0?\0", b"<?xml encoding='", b"<?xml encoding='shift_jis'?>"] {
                let marked = [mark, &bytes].concat();
                prop_assert_eq!(decoded(&marked, is_xml, piece).ok(), decoded(&marked, is_xml, 1000).ok());
            }
        }
    }

    #[test]
    fn xml_is_read_as_it_declares() {
        let xml = |encoding: &str| format!("<?xml version=\"1.0\" encoding={encoding}?>\r\u{e4}");
        let latin = |text: &str| text.chars().map(|c| c as u8).collect::<Vec<u8>>();
        for (bytes, encoding) in [
            (xml("'utf-8'").into_bytes(), "UTF-8"),
            (xml("\"UTF-16\"").into_bytes(), "UTF-8"),
            (format!("\u{feff}{}", xml("'ISO-8859-1'")).into_bytes(), "UTF-8"),
            (latin(&xml("\"ISO-8859-1\" standalone='yes'")), "windows-1252"),
            (latin(&xml("'latin1'")), "windows-1252"),
            (latin(&xml("'iso-8859-15'")), "ISO-8859-15"),
            (utf16(&xml("'UTF-16LE'"), u16::to_le_bytes), "UTF-16LE"),
            (utf16(&xml("'UTF-16'"), u16::to_be_bytes), "UTF-16BE"),
            (utf16("<a>\u{e4}", u16::to_le_bytes), "UTF-16LE"),
        ] {
            for piece in [1, 3, 1000] {
                let (text, name) = decoded(&bytes, true, piece).unwrap();
                let text = String::from_utf8(text).unwrap();
                assert!(name == encoding && text.ends_with('\u{e4}') && !text.contains('\r'), "{name}: {text}");
            }
        }
        let error = decoded(xml("'EBCDIC-CP-US'").as_bytes(), true, 9).unwrap_err().to_string();
        assert_eq!(error, "the XML declares the encoding `EBCDIC-CP-US`, which is not known");
        // No other instruction declares the encoding.
        let styled = "<?xml-stylesheet href='a.xsl' encoding='latin1'?>\u{e4}";
        assert_eq!(decoded(styled.as_bytes(), true, 9).unwrap(), (styled.into(), "UTF-8"));
        // Only XML declares its encoding.
        assert_eq!(decoded(&latin(&xml("'latin1'")), false, 9).unwrap().0.last(), Some(&0xe4));
    }

    #[test]
    fn what_is_invalid_stays_invalid() {
        for (bytes, expected) in [
            (&b"a\xe4\r\nb"[..], &b"a\xe4\nb"[..]),
            (b"\xff\xfea\0\0\xd8b\0", b"a\xffb"),
            (b"\xff\xfea\0b", b"a\xff"),
            (b"\xef\xbb\xbf\xef\xbb\xbf", b"\xef\xbb\xbf"),
            (b"\xef\xbb", b"\xef\xbb"),
            (b"\xff", b"\xff"),
        ] {
            assert_eq!(decoded(bytes, false, 1).unwrap().0, expected, "{bytes:?}");
        }
        for bytes in [b"\xff\xfe\0\0a\0\0\0", b"\0\0\xfe\xff\0\0\0a"] {
            assert!(decoded(bytes, false, 9).unwrap_err().to_string().contains("UTF-32"));
        }
        assert!(decoded(b"<\0\0\0a\0\0\0", true, 9).unwrap_err().to_string().contains("UTF-32"));
    }
}
