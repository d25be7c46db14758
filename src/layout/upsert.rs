//! Changes that a batch makes to values of an indexed table's rows while it puts its vectors.

use super::view::UpsertView;
use bytemuck::Pod;

/// How [`upsert_many`](crate::Values::upsert_many) combines an operand with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum Combine {
    /// Their sum. Integers wrap around.
    Add,
    /// The smaller one. A floating-point operand that is not a number changes nothing.
    Min,
    /// The larger one. A floating-point operand that is not a number changes nothing.
    Max,
    /// The operand. If several equal keys are offered at once, the operand of one of them.
    Set,
}

/// Type of values that can be combined: `u32`, `i32`, `f32`, `u64`, `i64` or `f64`.
pub trait Number: Pod + sealed::Sealed {
    #[doc(hidden)]
    const KIND: Kind;
}

/// `warpset::NumberKind` of indexed/upsert.cuh.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

impl Kind {
    /// Bytes of a value.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}

macro_rules! numbers {
    ($($number:ty: $kind:ident),*) => {
        $(impl Number for $number {
            const KIND: Kind = Kind::$kind;
        })*

        mod sealed {
            pub trait Sealed {}
            $(impl Sealed for $number {})*
        }
    };
}
numbers!(u32: U32, i32: I32, f32: F32, u64: U64, i64: I64, f64: F64);

/// Operands that a batch combines with the values of its vectors.
#[derive(Clone, Copy)]
pub(crate) struct Upsert<'a> {
    /// Bytes of the operands: one for each vector, by position, or a single one.
    pub operands: &'a [u8],
    /// Whether a single operand is used for all vectors.
    pub is_one: bool,
    pub kind: Kind,
    pub combine: Combine,
    /// Address of the values on the table's machine.
    pub values: u64,
}

impl<'a> Upsert<'a> {
    pub(crate) fn new<V: Number>(operands: &'a [V], is_one: bool, combine: Combine, values: u64) -> Self {
        Self { operands: bytemuck::cast_slice(operands), is_one, kind: V::KIND, combine, values }
    }

    /// Operands of the vectors in a range of positions.
    pub(crate) fn part(&self, range: &std::ops::Range<usize>) -> Self {
        let bytes = self.kind.bytes();
        let operands = if self.is_one { self.operands } else { &self.operands[range.start * bytes..range.end * bytes] };
        Self { operands, ..*self }
    }

    /// Bytes of the operands of the vectors at these positions, one after another; if there is a single operand, its bytes.
    pub(crate) fn at(&self, positions: &[u64]) -> Vec<u8> {
        let bytes = self.kind.bytes();
        match self.is_one {
            true => self.operands.to_vec(),
            false => positions.iter().flat_map(|at| &self.operands[*at as usize * bytes..][..bytes]).copied().collect(),
        }
    }

    /// Returns the view for kernels. `operands`: address of the operands.
    pub(crate) fn view(&self, operands: u64) -> UpsertView {
        let (kind, combine) = (self.kind as u32, self.combine as u32);
        UpsertView { values: self.values, operands, is_one: self.is_one.into(), kind, combine, unused: 0 }
    }
}
