//! Which kernels an operation becomes.

use muster_tape::{Kind, Op};

use super::launch::{Launch, Word, at, count};
use super::{How, Unfit, attention, convolve, image, product, rows};

/// The kernels, and bytes of memory that they need beside the tape's.
pub(super) type Lowered = Result<(Vec<Launch>, usize), Unfit>;

/// What one kernel does.
fn alone(launch: Launch) -> Lowered {
    Ok((vec![launch], 0))
}

pub(super) fn launches(op: &Op, how: How) -> Lowered {
    match op.kind {
        Kind::Gemm(gemm) => product::launches(op, gemm, how),
        Kind::Attention(heads) => attention::forward(op, heads, how),
        Kind::AttentionBackward(heads) => attention::backward(op, heads, how),
        Kind::ColumnSum { .. }
        | Kind::LayerNorm { .. }
        | Kind::LayerNormBackward { .. }
        | Kind::LayerNormParameters { .. }
        | Kind::BatchNorm { .. }
        | Kind::BatchNormBackward { .. } => rows::launches(op),
        Kind::Convolve(of) => convolve::forward(op, of, how),
        Kind::ConvolveBack(of) => convolve::back(op, of, how),
        Kind::ConvolveFilter(of) => convolve::filter(op, of, how),
        Kind::Im2col(_)
        | Kind::Col2im(_)
        | Kind::MaxPool(_)
        | Kind::MaxPoolBackward(_)
        | Kind::MeanPool(_)
        | Kind::MeanPoolBackward(_)
        | Kind::GlobalPool { .. }
        | Kind::GlobalPoolBackward { .. } => image::launches(op).and_then(alone),
        Kind::Add => each("tape_add", op),
        Kind::Relu => each("tape_relu", op),
        Kind::ReluBackward => each("tape_relu_backward", op),
        Kind::GeluBackward => each("tape_gelu_backward", op),
        Kind::Zero => each("tape_zero", op),
        Kind::Copy => each("tape_copy", op),
        Kind::LstmCell { hidden } => lstm("tape_lstm", op, hidden),
        Kind::LstmCellBackward { hidden } => lstm("tape_lstm_backward", op, hidden),
        Kind::Concat { left, right } => over("tape_concat", op, &[count(left)?, count(right)?]),
        Kind::Columns { all, first, count: taken } => {
            over("tape_columns", op, &[count(all)?, count(first)?, count(taken)?])
        }
        Kind::CrossEntropy { rows, classes, counted } => {
            let args = ends(op, [count(classes)?, Word::F32((1.0 / counted as f64) as f32)]);
            alone(Launch { threads: 512, ..Launch::blocks("tape_cross_entropy", rows, args)? })
        }
        Kind::Mean { counted } => {
            let n = op.reads[0].len as u64;
            alone(Launch::blocks("tape_mean", 1, ends(op, [Word::U64(n), Word::F32(counted as f32)]))?)
        }
        Kind::Embedding { columns } => over("tape_embedding", op, &[count(columns)?]),
        Kind::EmbeddingBackward { columns } => {
            let rows = op.reads[0].len;
            alone(Launch::blocks("tape_embedding_backward", rows, ends(op, [count(columns)?, count(rows)?]))?)
        }
        Kind::AdamW { rate, decay } => {
            let factors = [Word::Clock(0), Word::F32(rate as f32), Word::F32((1.0 - rate * decay) as f32)];
            over("tape_adamw", op, &factors)
        }
        Kind::Nesterov { rate, decay } => over("tape_nesterov", op, &[Word::F32(rate as f32), Word::F32(decay as f32)]),
    }
}

/// Outputs, inputs, and then the rest.
pub(super) fn ends(op: &Op, rest: impl IntoIterator<Item = Word>) -> Vec<Word> {
    op.writes.iter().chain(&op.reads).map(|span| at(*span)).chain(rest).collect()
}

/// A kernel whose threads take an element of the shortest output in turn.
fn over(kernel: &'static str, op: &Op, rest: &[Word]) -> Lowered {
    let n = op.writes.iter().map(|span| span.len).min().unwrap_or(0);
    let all = rest.iter().copied().chain([Word::U64(n as u64)]);
    alone(Launch::over(kernel, n, ends(op, all)))
}

/// Every element alone.
fn each(kernel: &'static str, op: &Op) -> Lowered {
    over(kernel, op, &[])
}

/// The shortest output has one element a state.
fn lstm(kernel: &'static str, op: &Op, hidden: usize) -> Lowered {
    over(kernel, op, &[count(hidden)?])
}
