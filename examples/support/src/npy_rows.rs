//! The rows of a `.npy` file as bytes: a row is the part that a value of the first index selects.

use crate::npy_header::{Header, MAGIC, string};
use anyhow::{Context, Result, bail, ensure};

/// Removes the header from the data. Returns the header and the number of bytes of a row.
pub fn split_header(data: &mut Vec<u8>) -> Result<(Header, usize)> {
    ensure!(data.starts_with(MAGIC), "not a .npy file");
    let header = Header::read(&mut &data[..])?;
    let element = string(&header.descr).and_then(element_bytes);
    let element =
        element.with_context(|| format!("the elements have dtype {}; only numbers and bytes are supported", header.descr))?;
    ensure!(
        !header.fortran_order || header.shape.len() < 2,
        "the array is in Fortran order; C order is needed (numpy.ascontiguousarray)"
    );
    let Some((rows, inner)) = header.shape.split_first() else { bail!("the shape () has no rows") };
    let row = inner.iter().try_fold(element, |bytes, size| bytes.checked_mul(*size));
    let found = data.len() as u64 - header.bytes;
    let shape = header.shape_text();
    match row {
        Some(0) => bail!("the shape {shape} has rows of 0 bytes"),
        Some(row) if row.checked_mul(*rows) == Some(found) => {
            data.drain(..header.bytes as usize);
            Ok((header, row as usize))
        }
        _ => bail!("the shape {shape} of {} does not fit the {found} bytes that follow the header", header.descr),
    }
}

/// Bytes of an element of a dtype such as `<u4`.
fn element_bytes(dtype: &str) -> Option<u64> {
    let (kind, size) = dtype.strip_prefix(['<', '>', '|', '='])?.split_at_checked(1)?;
    size.parse().ok().filter(|_| "biufcSV".contains(kind))
}
