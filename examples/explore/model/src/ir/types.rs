//! Types of variables.

/// The values that a variable can hold: `bits` wide, 1 to 32, two's complement if signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    pub bits: u8,
    pub signed: bool,
}

impl Type {
    /// 0 to 255.
    pub const BYTE: Self = Self { bits: 8, signed: false };
    /// -32768 to 32767.
    pub const INT: Self = Self { bits: 16, signed: true };
    /// All 32 bits.
    pub const WORD: Self = Self { bits: 32, signed: true };
    /// 0 and 1. Front ends convert a value to 0 or 1 before it is stored, because wrapping keeps only its lowest bit.
    pub const BOOLEAN: Self = Self { bits: 1, signed: false };

    /// The value that a variable of this type has after a store of `value`.
    pub fn wrap(self, value: i32) -> i32 {
        let unused = 32 - u32::from(self.bits);
        if self.signed { value << unused >> unused } else { ((value as u32) << unused >> unused) as i32 }
    }
}
