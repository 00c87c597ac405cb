//! A training step as data: which operations, on which parts of one memory, in which order.
//!
//! A model becomes a [`Tape`], a flat list of operations with their shapes and offsets: forward, backward and the
//! optimiser. The CPU back end here and the GPU worker run the same list. Everything is generated from a seed, so the
//! loss of step n is one right number, to the bit: a node that gives another one computes wrongly.
//!
//! Uses nothing of ours and touches no file, socket or clock.
//!
//! ```
//! use muster_tape::{Cpu, Model};
//! let tape = Model::Gpt2Nano.tape();
//! let losses = |threads| {
//!     let mut cpu = Cpu::new(&tape, 1)?;
//!     cpu.train(threads, &|_| {}, |train| (0..3).map(|_| train.step()).collect::<Result<Vec<f32>, _>>())?
//! };
//! assert_eq!(losses(1)?, losses(2)?);
//! # Ok::<(), muster_tape::Error>(())
//! ```

mod build;
mod cpu;
mod cycle;
mod models;
mod number;
mod op;
mod plan;
mod random;
mod tape;

pub use cpu::{Cpu, Error, Replica, Steps};
pub use cycle::Cycle;
pub use models::{Model, Size};
pub use op::{Convolution, Gemm, Heads, Kind, Op, Span, Start, Window};
pub use plan::GAP;
pub use random::{Fill, batch_seed};
pub use tape::{Bucket, State, Tape};
