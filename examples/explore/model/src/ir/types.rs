//! Types of variables.

/// The values that a variable can hold: numbers of `bits` bits (1 to 32), in two's complement if `signed`.
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
    /// 0 and 1. Front ends convert a value to 0 or 1 before a store, because wrapping keeps only the lowest bit.
    pub const BOOLEAN: Self = Self { bits: 1, signed: false };

    /// Returns the value of a variable of this type after `value` was stored in it.
    pub fn wrap(self, value: i32) -> i32 {
        let unused = 32 - u32::from(self.bits);
        if self.signed { value << unused >> unused } else { ((value as u32) << unused >> unused) as i32 }
    }
}
