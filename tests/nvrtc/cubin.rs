//! Reads a CUBIN of compute capability 9.0: the compiler's output for a kernel.
//!
//! A CUBIN is an ELF file. The code of a kernel is the section `.text.NAME`, 16 bytes an instruction. Registers and stack are in
//! `.nv.info`, as attributes of the kernel's symbol. Fields of instructions are as `cuobjdump -sass` shows them; for search
//! kernels the sums are those that `ptxas --verbose` prints.

use object::{Object, ObjectSection, ObjectSymbol, SymbolIndex};

/// Resources of a kernel, and how it reads the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of a thread's stack.
    pub stack: u32,
    /// Bytes that the code writes to the stack, each instruction counted once.
    pub spill_stores: u32,
    /// Bytes that the code reads from the stack, each instruction counted once.
    pub spill_loads: u32,
    /// Instructions, without the padding at the end.
    pub instructions: usize,
    /// Maximum number of device-scope loads that are issued before the code waits for one of them, in the order of the code. Such
    /// loads read buckets, nodes and rows.
    pub loads: usize,
}

/// A CUBIN.
pub struct Cubin<'a>(object::File<'a>);

impl<'a> Cubin<'a> {
    pub fn of(image: &'a [u8]) -> Self {
        Self(object::File::parse(image).expect("a CUBIN is an ELF file"))
    }

    fn section(&self, name: &str) -> Option<&'a [u8]> {
        self.0.section_by_name(name).map(|section| section.data().expect("a section is within its file"))
    }

    /// Version of the compiler, which it writes into the CUBIN.
    pub fn compiler(&self) -> String {
        let note = self.section(".note.nv.tkinfo").expect("a CUBIN says by what it was made");
        let mut texts = note.split(|byte| !byte.is_ascii_graphic() && *byte != b' ').map(String::from_utf8_lossy);
        texts.rfind(|text| text.starts_with("Cuda compilation tools")).expect("a version").into_owned()
    }

    /// Resources of a kernel; `None` if the CUBIN does not have it.
    pub fn resources(&self, kernel: &str) -> Option<Resources> {
        let code = self.section(&format!(".text.{kernel}"))?;
        let mut code: Vec<Instruction> = code.chunks_exact(16).map(Instruction::of).collect();
        while code.last().is_some_and(|last| last.opcode() == NOP) {
            code.pop();
        }
        let bytes = |opcode| code.iter().filter(|one| one.opcode() == opcode).map(Instruction::bytes).sum();
        Some(Resources {
            registers: self.attribute(kernel, REGISTERS),
            stack: self.attribute(kernel, FRAME_BYTES),
            spill_stores: bytes(STORE_LOCAL),
            spill_loads: bytes(LOAD_LOCAL),
            instructions: code.len(),
            loads: most_loads(&code),
        })
    }

    /// Value of the 4-byte attribute `wanted` of a kernel's symbol.
    fn attribute(&self, kernel: &str, wanted: u8) -> u32 {
        let mut left = self.section(".nv.info").expect("a CUBIN says what its kernels need");
        // Format, attribute, and two bytes: the length of the value that follows, or in other formats the value itself.
        while let [format, attribute, low, high, rest @ ..] = left {
            left = rest;
            if *format != FOLLOWED_BY_VALUE {
                continue;
            }
            let (value, rest) = rest.split_at(u16::from_le_bytes([*low, *high]).into());
            left = rest;
            if *attribute != wanted {
                continue;
            }
            let [symbol, value] = [0, 4].map(|at| u32::from_le_bytes(value[at..at + 4].try_into().expect("4 bytes")));
            let symbol = self.0.symbol_by_index(SymbolIndex(symbol as usize)).expect("a symbol of the CUBIN");
            if symbol.name() == Ok(kernel) {
                return value;
            }
        }
        panic!("attribute {wanted:#x} of {kernel} is not in .nv.info");
    }
}

// A format of attributes in `.nv.info`.
const FOLLOWED_BY_VALUE: u8 = 4;
const REGISTERS: u8 = 0x2f;
const FRAME_BYTES: u8 = 0x11;

// Opcodes.
const NOP: u128 = 0x918;
const LOAD_GLOBAL: u128 = 0x981;
const LOAD_LOCAL: u128 = 0x983;
const STORE_LOCAL: u128 = 0x387;

/// Scope of loads that `cuobjdump` shows as `.STRONG.GPU`.
const DEVICE_SCOPE: u128 = 7;

/// Number of barriers of a warp. An instruction sets a barrier when its result is available, and other instructions wait for it.
const BARRIERS: usize = 6;

struct Instruction(u128);

impl Instruction {
    fn of(bytes: &[u8]) -> Self {
        Self(u128::from_le_bytes(bytes.try_into().expect("16 bytes")))
    }

    fn field(&self, first: u32, bits: u32) -> u128 {
        self.0 >> first & ((1 << bits) - 1)
    }

    fn opcode(&self) -> u128 {
        self.field(0, 12)
    }

    /// Bytes that a load or store moves.
    fn bytes(&self) -> u32 {
        [1, 1, 2, 2, 4, 8, 16, 0][self.field(73, 3) as usize]
    }

    fn is_load_of_device_scope(&self) -> bool {
        self.opcode() == LOAD_GLOBAL && self.field(77, 4) == DEVICE_SCOPE
    }

    /// Barrier that the instruction sets, if any.
    fn sets(&self) -> Option<usize> {
        let barrier = self.field(110, 3) as usize;
        (barrier < BARRIERS).then_some(barrier)
    }

    fn waits_for(&self, barrier: usize) -> bool {
        self.field(116, BARRIERS as u32) >> barrier & 1 == 1
    }
}

fn most_loads(code: &[Instruction]) -> usize {
    let mut under_way = [0; BARRIERS];
    let mut most = 0;
    for one in code {
        for (barrier, loads) in under_way.iter_mut().enumerate() {
            if one.waits_for(barrier) {
                *loads = 0;
            }
        }
        if let Some(barrier) = one.sets().filter(|_| one.is_load_of_device_scope()) {
            under_way[barrier] += 1;
        }
        most = most.max(under_way.iter().sum());
    }
    most
}
