//! What a step finds: state made from a seed on the GPU itself, the clock, and where the loss goes.

use muster_tape::{Fill, Span, State, Tape, batch_seed};

use super::launch::{Clock, Launch, Word, at};

/// How fast the moments of AdamW fade, as the tape has them.
const FADE: [f64; 2] = [0.9, 0.999];

/// What is there before the first step, made from `seed`.
pub(super) fn launches(tape: &Tape, seed: u64) -> Vec<Launch> {
    tape.state.iter().enumerate().map(|state| fill(state, seed)).collect()
}

/// The data of batch number `batch` alone, as [`muster_tape::Replica`] has it.
pub(super) fn data(tape: &Tape, seed: u64, batch: u64) -> Vec<Launch> {
    let data = tape.state.iter().enumerate().filter(|(_, state)| state.is_data());
    data.map(|state| fill(state, batch_seed(seed, batch))).collect()
}

/// Zeros.
pub(super) fn zeros(span: Span) -> Launch {
    Launch::over("tape_zero", span.len, vec![at(span), Word::U64(span.len as u64)])
}

fn fill((number, state): (usize, &State), seed: u64) -> Launch {
    let (kernel, of, every) = match state.fill {
        Fill::Zero => ("tape_fill_constant", 0.0_f32.to_bits(), 0),
        Fill::One => ("tape_fill_constant", 1.0_f32.to_bits(), 0),
        Fill::Uniform { bound } => ("tape_fill_uniform", (bound as f32).to_bits(), 0),
        Fill::Index { below } => ("tape_fill_index", below, 0),
        Fill::Cycle { period } => ("tape_fill_cycle", period.max(1), 0),
        Fill::Sparse { below, every } => ("tape_fill_sparse", below, every),
    };
    let (n, stream) = (state.span.len, Fill::stream(seed, number));
    let args = vec![at(state.span), Word::U64(n as u64), Word::U64(stream), Word::U32(of), Word::U32(every)];
    Launch::over(kernel, n, args)
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
