//! The header of a `.npy` file (NumPy's `numpy.lib.format`): a magic, a version, the length of the dictionary, and a Python
//! dictionary that describes the data.
//!
//! This module parses the header step by step, because files may be of unknown origin: no number in the header may overflow, or
//! determine an allocation before it was compared with the size of the file. (npyz 0.9 multiplies the shape unchecked.)

use anyhow::{Context, Result, bail, ensure};
use std::io::{ErrorKind, Read};

pub const MAGIC: &[u8] = b"\x93NUMPY";

/// Bytes of the longest accepted header. NumPy refuses headers of more than 10,000 bytes; real ones have 118.
const MAX_HEADER_BYTES: usize = 1 << 16;

/// Contents of the header.
pub struct Header {
    /// The dtype, as NumPy writes it: `'<u4'`, or a list of fields.
    pub descr: String,
    pub fortran_order: bool,
    pub shape: Vec<u64>,
    /// Bytes from the start of the file to its data.
    pub bytes: u64,
}

impl Header {
    /// Reads the header, and nothing after it.
    pub fn read(reader: &mut impl Read) -> Result<Self> {
        let [.., major, minor] = read_bytes::<8>(reader)?;
        let (length_bytes, length) = match major {
            1 => (2, u16::from_le_bytes(read_bytes(reader)?).into()),
            2 | 3 => (4, u32::from_le_bytes(read_bytes(reader)?) as usize),
            _ => bail!("format version {major}.{minor} is not supported; 1.0 to 3.0 are"),
        };
        ensure!(length <= MAX_HEADER_BYTES, "the header claims {length} bytes, but at most {MAX_HEADER_BYTES} are read");
        let mut text = vec![0; length];
        read_exact(reader, &mut text)?;
        let bytes = (MAGIC.len() + 2 + length_bytes + length) as u64;
        Self::parse(&String::from_utf8_lossy(&text), bytes).context("the header is not a NumPy header")
    }

    fn parse(text: &str, bytes: u64) -> Option<Self> {
        let entries = items(text.trim().strip_prefix('{')?.strip_suffix('}')?)?;
        let value = |name: &str| {
            entries.iter().find_map(|entry| {
                let (key, value) = entry.split_once(':')?;
                (string(key)? == name).then(|| value.trim())
            })
        };
        let shape = items(value("shape")?.strip_prefix('(')?.strip_suffix(')')?)?;
        Some(Self {
            descr: value("descr").filter(|descr| !descr.is_empty())?.into(),
            fortran_order: match value("fortran_order")? {
                "True" => true,
                "False" => false,
                _ => return None,
            },
            shape: shape.into_iter().map(|size| size.parse().ok()).collect::<Option<_>>()?,
            bytes,
        })
    }

    /// Shape as Python writes it.
    pub fn shape_text(&self) -> String {
        let sizes: Vec<_> = self.shape.iter().map(u64::to_string).collect();
        format!("({}{})", sizes.join(", "), if sizes.len() == 1 { "," } else { "" })
    }
}

/// Splits the contents of a Python list, tuple or dictionary, without its brackets, at its commas; strings and nested brackets
/// stay whole. `None` if a string or a bracket does not end.
fn items(text: &str) -> Option<Vec<&str>> {
    let (mut items, mut start, mut depth, mut quote) = (Vec::new(), 0, 0_usize, None);
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match (quote, character) {
            (_, character) if character.is_control() => return None,
            (Some(_), '\\') => _ = characters.next()?,
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.checked_sub(1)?,
            (None, ',') if depth == 0 => {
                items.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    // The list may end in a comma.
    let last = text[start..].trim();
    items.extend(Some(last).filter(|last| !last.is_empty()));
    (depth == 0 && quote.is_none()).then_some(items)
}

/// Contents of a Python string between its quotes.
pub fn string(text: &str) -> Option<&str> {
    let text = text.trim();
    ['\'', '"'].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote))
}

fn read_bytes<const N: usize>(reader: &mut impl Read) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    read_exact(reader, &mut bytes)?;
    Ok(bytes)
}

fn read_exact(reader: &mut impl Read, bytes: &mut [u8]) -> Result<()> {
    match reader.read_exact(bytes) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => bail!("the file ends within its header"),
        result => Ok(result.context("the header cannot be read")?),
    }
}

#[cfg(test)]
mod tests {
    use super::Header;

    #[test]
    fn headers() {
        let parse = |text: &str| Header::parse(text, 0).map(|header| (header.descr, header.fortran_order, header.shape));
        let good = |descr: &str, shape: &[u64]| Some((descr.to_string(), false, shape.to_vec()));
        assert_eq!(parse("{'descr': '<u4', 'fortran_order': False, 'shape': (3, 2), }   \n"), good("'<u4'", &[3, 2]));
        assert_eq!(parse("{\"shape\":(3,),\"fortran_order\":False,\"descr\":\"<u4\"}"), good("\"<u4\"", &[3]));
        let fields = "[('a:b, \\'(', '<u4'), ('c', '<u4', (2, 3))]";
        assert_eq!(parse(&format!("{{'descr': {fields}, 'fortran_order': False, 'shape': ()}}")), good(fields, &[]));
        for wrong in [
            "",
            "{}",
            "[1, 2, 3]",
            "{'descr': '<u4', 'fortran_order': False, 'shape': (3, 2",
            "{'descr': '<u4', 'fortran_order': False, 'shape': (3, 2}",
            "{'descr': '<u4', 'fortran_order': False, 'shape': (3, 2)",
            "{'descr': '<u4', 'fortran_order': False, 'shape': (3, two)}",
            "{'descr': '<u4', 'fortran_order': False, 'shape': (3,, 2)}",
            "{'descr': '<u4', 'fortran_order': False, 'shape': [3, 2]}",
            "{'descr': '<u4', 'fortran_order': 0, 'shape': (3, 2)}",
            "{'descr': '<u4, 'fortran_order': False, 'shape': (3, 2)}",
            "{'descr': , 'fortran_order': False, 'shape': (3, 2)}",
            "{'descr': '<\nu4', 'fortran_order': False, 'shape': (3, 2)}",
            "{descr: '<u4', 'fortran_order': False, 'shape': (3, 2)}",
            "{'descr': '<u4', 'shape': (3, 2)}",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
