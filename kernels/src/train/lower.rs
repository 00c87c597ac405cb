//! Which kernels an operation becomes.

use muster_tape::{Kind, Op};

use super::launch::{Launch, Word, at, count};
use super::{How, Unfit, attention, image, product, rows};

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
        Kind::Im2col(_)
        | Kind::Col2im(_)
        | Kind::MaxPool(_)
        | Kind::MaxPoolBackward(_)
        | Kind::MeanPool(_)
        | Kind::MeanPoolBackward(_)
        | Kind::GlobalPool { .. }
        | Kind::GlobalPoolBackward { .. } => image::launches(op).and_then(alone),
        Kind::Add => alone(each("tape_add", op)),
        Kind::Relu => alone(each("tape_relu", op)),
        Kind::ReluBackward => alone(each("tape_relu_backward", op)),
        Kind::GeluBackward => alone(each("tape_gelu_backward", op)),
        Kind::Zero => alone(each("tape_zero", op)),
        Kind::Copy => alone(each("tape_copy", op)),
        Kind::Concat { left, right } => {
            let n = op.writes[0].len;
            let args = ends(op, [count(left)?, count(right)?, Word::U64(n as u64)]);
            alone(Launch::over("tape_concat", n, args))
        }
        Kind::Columns { all, first, count: taken } => {
            let n = op.writes[0].len;
            let args = ends(op, [count(all)?, count(first)?, count(taken)?, Word::U64(n as u64)]);
            alone(Launch::over("tape_columns", n, args))
        }
        Kind::LstmCell { hidden } => lstm("tape_lstm", op, hidden).and_then(alone),
        Kind::LstmCellBackward { hidden } => lstm("tape_lstm_backward", op, hidden).and_then(alone),
        Kind::CrossEntropy { rows, classes, counted } => {
            let args = ends(op, [count(classes)?, Word::F32((1.0 / counted as f64) as f32)]);
            alone(Launch { threads: 512, ..Launch::blocks("tape_cross_entropy", rows, args)? })
        }
        Kind::Mean { counted } => {
            let n = op.reads[0].len as u64;
            alone(Launch::blocks("tape_mean", 1, ends(op, [Word::U64(n), Word::F32(counted as f32)]))?)
        }
        Kind::Embedding { columns } => {
            let n = op.writes[0].len;
            alone(Launch::over("tape_embedding", n, ends(op, [count(columns)?, Word::U64(n as u64)])))
        }
        Kind::EmbeddingBackward { columns } => {
            let rows = op.reads[0].len;
            alone(Launch::blocks("tape_embedding_backward", rows, ends(op, [count(columns)?, count(rows)?]))?)
        }
        Kind::AdamW { rate, decay } => {
            let n = op.writes[0].len;
            let factors = [Word::Clock(0), Word::F32(rate as f32), Word::F32((1.0 - rate * decay) as f32)];
            let args = ends(op, factors.into_iter().chain([Word::U64(n as u64)]));
            alone(Launch::over("tape_adamw", n, args))
        }
        Kind::Nesterov { rate, decay } => {
            let n = op.writes[0].len;
            let args = ends(op, [Word::F32(rate as f32), Word::F32(decay as f32), Word::U64(n as u64)]);
            alone(Launch::over("tape_nesterov", n, args))
        }
    }
}

/// Outputs, inputs, and then the rest.
pub(super) fn ends(op: &Op, rest: impl IntoIterator<Item = Word>) -> Vec<Word> {
    op.writes.iter().chain(&op.reads).map(|span| at(*span)).chain(rest).collect()
}

/// Every element alone.
fn each(kernel: &'static str, op: &Op) -> Launch {
    let n = op.writes[0].len;
    Launch::over(kernel, n, ends(op, [Word::U64(n as u64)]))
}

/// The shortest output has one element a state.
fn lstm(kernel: &'static str, op: &Op, hidden: usize) -> Result<Launch, Unfit> {
    let n = op.writes.iter().map(|span| span.len).min().unwrap_or(0);
    Ok(Launch::over(kernel, n, ends(op, [count(hidden)?, Word::U64(n as u64)])))
}
