//! What a step finds: state made from a seed on the GPU itself, the clock, and where the loss goes.

use muster_tape::{Fill, Span, Tape};

use super::Unfit;
use super::launch::{Clock, Launch, Word, at};

/// How fast the moments of AdamW fade, as the tape has them.
const FADE: [f64; 2] = [0.9, 0.999];

pub(super) fn launches(tape: &Tape, seed: u64) -> Result<Vec<Launch>, Unfit> {
    let one = |(number, state): (usize, &muster_tape::State)| {
        let (kernel, of, every) = match state.fill {
            Fill::Zero => ("tape_fill_constant", 0.0_f32.to_bits(), 0),
            Fill::One => ("tape_fill_constant", 1.0_f32.to_bits(), 0),
            Fill::Uniform { bound } => ("tape_fill_uniform", (bound as f32).to_bits(), 0),
            Fill::Index { below } => ("tape_fill_index", below, 0),
            Fill::Cycle { period } => ("tape_fill_cycle", period.max(1), 0),
            Fill::Sparse { below, every } => ("tape_fill_sparse", below, every),
        };
        let (n, stream) = (state.span.len, Fill::stream(seed, number));
        Launch::over(
            kernel,
            n,
            vec![at(state.span), Word::U64(n as u64), Word::U64(stream), Word::U32(of), Word::U32(every)],
        )
    };
    Ok(tape.state.iter().enumerate().map(one).collect())
}

/// The beginning of a step.
pub(super) fn advance() -> Launch {
    let args = vec![Word::Clock(0), Word::F64(FADE[0]), Word::F64(FADE[1])];
    Launch { kernel: "tape_advance", grid: (1, 1), threads: 32, shared: 0, args }
}

/// The end of a step.
pub(super) fn keep_loss(loss: Span) -> Launch {
    Launch::over("tape_copy", 1, vec![Word::Clock(Clock::LOSS), at(loss), Word::U64(1)])
}
