//! Headers of NumPy files.

/// Returns the header of a `.npy` file of version 1.0, padded so that the array begins at a multiple of 64 bytes. `shape` is a
/// Python tuple.
pub fn npy_header(of: &str, shape: &str) -> Vec<u8> {
    const FIXED: usize = 10; // the magic, the version, the length of the text
    let text = format!("{{'descr': '{of}', 'fortran_order': False, 'shape': {shape}, }}");
    let padded = (FIXED + text.len() + 1).next_multiple_of(64) - FIXED;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((padded as u16).to_le_bytes());
    header.extend(format!("{text:<width$}\n", width = padded - 1).bytes());
    header
}
