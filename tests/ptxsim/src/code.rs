//! What a parsed kernel is made of: registers as numbers, operands without names, instructions decoded once.

/// Type of an operand, as far as it changes what an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    Pred,
    U(u8),
    S(u8),
    F32,
    F64,
}

impl Ty {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        let bytes = |bits: &str| Some(bits.parse::<u8>().ok().filter(|b| [8, 16, 32, 64].contains(b))? / 8);
        Some(match word {
            "pred" => Self::Pred,
            "f32" => Self::F32,
            "f64" => Self::F64,
            _ => match word.split_at_checked(1)? {
                ("b" | "u", bits) => Self::U(bytes(bits)?),
                ("s", bits) => Self::S(bytes(bits)?),
                _ => return None,
            },
        })
    }

    /// Bytes in memory.
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::Pred => 1,
            Self::U(bytes) | Self::S(bytes) => bytes as usize,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// `bits` cut to the width of the type.
    pub(crate) const fn cut(self, bits: u64) -> u64 {
        match self.size() {
            8 => bits,
            size => bits & ((1 << (8 * size)) - 1),
        }
    }

    /// `bits` as a number, with its sign.
    pub(crate) const fn signed(self, bits: u64) -> i64 {
        let unused = 64 - 8 * self.size() as u32;
        ((bits << unused) as i64) >> unused
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Tid(usize),
    Ntid(usize),
    Ctaid(usize),
    Nctaid(usize),
    Lane,
    Warp,
    Sm,
    Sms,
    Clock,
}

pub(crate) type Reg = usize;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arg {
    Reg(Reg),
    /// Not written, or a predicate that nobody asked for.
    Sink,
    Imm(u64),
    Special(Special),
    /// A register or nothing, and an offset.
    Mem(Option<Reg>, i64),
    Many(Vec<Arg>),
    /// `%r1|%p1`: a value and a predicate.
    Pair(Reg, Reg),
    Label(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    Shared,
    Param,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Two {
    Add,
    Sub,
    Mul,
    MulWide,
    MulHi,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Min,
    Max,
    /// Two f32 rounded to bf16, the first one high.
    Bf16Pair,
}

/// What is made of one float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum One {
    Reciprocal,
    Root,
    /// Rounded to bf16.
    Bf16,
    /// Rounded to IEEE 754 binary16.
    Fp16,
    /// The f32 that a binary16 is.
    Widened,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Xor,
    Down,
    Up,
    Index,
}

/// Type of a tensor core's operands; sums are i32 for bytes, else f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Bf16,
    F16,
    Tf32,
    S8,
    E4m3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Mov,
    /// Vector to scalar or back, low part first.
    Pack,
    Unpack,
    /// `past_l1`: this load is a trip to memory, whatever was read before.
    Load {
        space: Space,
        past_l1: bool,
    },
    Store(Space),
    One(One),
    Two(Two),
    Not,
    Neg,
    Mad {
        wide: bool,
    },
    Fma,
    Convert {
        from: Ty,
    },
    /// `unordered`: holds for what is not a number, too.
    Set {
        how: Compare,
        unordered: bool,
    },
    Select,
    /// Insert a bit field.
    Bfi,
    Branch,
    Leave,
    Barrier,
    WarpBarrier,
    Shuffle(Shuffle),
    /// Read, change, write; the old value goes to the destination if there is one.
    Atomic(Space, Two),
    /// 16x8 and 32 bytes along k.
    Mma(Number),
    LdMatrix {
        transposed: bool,
    },
    CopyAsync,
    Commit,
    Wait,
    Async(Async),
}

/// What sm_90 does on its own while threads go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Async {
    /// 64 rows of a warpgroup, operands in shared memory, 32 bytes along k.
    Product(Number),
    /// Orders accesses to registers before products.
    ProductFence,
    ProductCommit,
    ProductWait,
    /// Orders what threads wrote before what asynchronous units read.
    ProxyFence,
    /// Global to shared memory; its bytes count at a barrier.
    Bulk,
    BarrierInit,
    BarrierArrive,
    /// Arrives and announces bytes.
    BarrierExpect,
    /// Whether the phase of a parity is over.
    BarrierTry,
}

#[derive(Clone, Debug)]
pub(crate) struct Instr {
    /// Lanes take part where this register is not zero, or zero.
    pub(crate) guard: Option<(Reg, bool)>,
    pub(crate) op: Op,
    pub(crate) ty: Ty,
    pub(crate) args: Vec<Arg>,
    /// In the PTX text.
    pub(crate) line: usize,
}

/// One kernel, ready to run.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub(crate) name: String,
    pub(crate) code: Vec<Instr>,
    /// Offset and size of each parameter in the parameter block.
    pub(crate) params: Vec<(usize, usize)>,
    pub(crate) registers: usize,
    /// Bytes of static shared memory; dynamic memory follows.
    pub(crate) shared: usize,
    /// Whether anything runs beside its threads.
    pub(crate) asynchronous: bool,
}

impl Kernel {
    /// Its name in the module.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sizes of its parameters, bytes.
    pub fn params(&self) -> impl Iterator<Item = usize> + '_ {
        self.params.iter().map(|(_, size)| *size)
    }

    /// Where each parameter begins in the parameter block, and how long it is, bytes.
    #[must_use]
    pub fn param_layout(&self) -> &[(usize, usize)] {
        &self.params
    }
}
