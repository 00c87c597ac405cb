//! Why a kernel was stopped, said so that the line can be found.

use std::fmt;

/// What a kernel did that it may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// An access that no allocation holds.
    Outside {
        /// `global`, `shared` or `param`.
        space: &'static str,
        /// Address.
        at: u64,
        /// Bytes.
        size: usize,
    },
    /// Memory of another device that this one did not open.
    Closed {
        /// Address.
        at: u64,
    },
    /// An address that its width does not divide.
    Misaligned {
        /// Address.
        at: u64,
        /// Bytes.
        size: usize,
    },
    /// Threads that wait for threads that will not come.
    Deadlock,
    /// A register, or shared memory at the end, that an asynchronous unit still works on.
    InFlight,
    /// Something that an asynchronous unit would see as it was before the last write.
    Unfenced(&'static str),
    /// More arrivals at a barrier than it has room for.
    Arrivals,
    /// It runs longer than anybody will wait.
    Endless,
    /// Operands that the interpreter does not know for this opcode.
    Operands,
    /// A launch that no device takes.
    Shape(&'static str),
}

/// A kernel was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// Kernel name.
    pub kernel: String,
    /// Line of the PTX text, 0 before the first instruction.
    pub line: usize,
    /// Block.
    pub block: [u32; 3],
    /// First thread of the warp.
    pub thread: u32,
    /// What happened.
    pub why: Why,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside { space, at, size } => {
                write!(f, "{size} bytes of {space} memory at {at:#x} belong to nobody")
            }
            Self::Closed { at } => write!(f, "peer access to the device that has {at:#x} was not enabled"),
            Self::Misaligned { at, size } => write!(f, "{size} bytes at {at:#x} are not aligned"),
            Self::InFlight => write!(f, "an asynchronous unit still works on what is used here"),
            Self::Unfenced(what) => write!(f, "no fence between the last write of {what} and an asynchronous unit"),
            Self::Arrivals => write!(f, "more arrivals at a barrier than it expects"),
            Self::Deadlock => write!(f, "threads wait for others that do not come"),
            Self::Endless => write!(f, "it does not end"),
            Self::Operands => write!(f, "operands that this interpreter does not know"),
            Self::Shape(what) => write!(f, "no device takes this launch: {what}"),
        }
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, line, block, thread, why } = self;
        write!(f, "{kernel} line {line}, block {block:?}, warp of thread {thread}: {why}")
    }
}

impl std::error::Error for Trap {}
