//! Which function does an operation, and into how many parts it falls.

use crate::number::Number;
use crate::op::Kind;

use super::gemm::Scratch;
use super::memory::Io;
use super::{attention, conv, convolve, element, gemm, lstm, norm, pool, table, update};

/// Parts of an operation whose first output has `len` elements. Threads take them in any order.
pub(super) fn parts(kind: &Kind, len: usize, threads: usize) -> usize {
    match kind {
        Kind::Gemm(gemm) => gemm.parts(threads),
        Kind::ColumnSum { columns, .. }
        | Kind::LayerNormParameters { columns, .. }
        | Kind::EmbeddingBackward { columns } => element::column_parts(*columns),
        Kind::Attention(heads) => heads.parts(),
        Kind::AttentionBackward(heads) => heads.batch * heads.heads,
        Kind::LayerNorm { rows, .. } | Kind::LayerNormBackward { rows, .. } => norm::parts(*rows),
        Kind::CrossEntropy { rows, .. } => *rows,
        Kind::Mean { .. } => 1,
        Kind::LstmCell { hidden } => lstm::parts(len / hidden, *hidden),
        Kind::LstmCellBackward { hidden } => lstm::parts(len / hidden / 4, *hidden),
        Kind::Convolve(of) => of.window.batch * of.window.out_edge(),
        Kind::ConvolveBack(of) => of.window.batch * of.window.edge,
        Kind::ConvolveFilter(of) => len / of.outputs,
        Kind::Im2col(window) | Kind::MaxPool(window) | Kind::MeanPool(window) => window.batch * window.out_edge(),
        Kind::Col2im(window) | Kind::MaxPoolBackward(window) | Kind::MeanPoolBackward(window) => {
            window.batch * window.edge
        }
        Kind::BatchNorm { columns, .. } | Kind::BatchNormBackward { columns, .. } => conv::channel_parts(*columns),
        Kind::Concat { left, right } => table::parts(len / (left + right)),
        Kind::Columns { count, .. } => table::parts(len / count),
        Kind::GlobalPool { channels, .. } => len / channels,
        Kind::GlobalPoolBackward { area, channels } => len / area / channels,
        Kind::Embedding { columns } => table::parts(len / columns),
        Kind::Add
        | Kind::Relu
        | Kind::ReluBackward
        | Kind::GeluBackward
        | Kind::Zero
        | Kind::Copy
        | Kind::AdamW { .. }
        | Kind::Nesterov { .. } => element::parts(len),
    }
}

/// Does one part.
pub(super) fn part<T: Number>(io: &Io<'_, T>, part: usize, scratch: &mut Scratch<T>) {
    match io.op.kind {
        Kind::Gemm(gemm) => gemm::part(io, &gemm, part, scratch),
        Kind::ColumnSum { columns, .. } => element::column_sum(io, columns, part),
        Kind::Add => element::zip(io, part, |a, b| a + b),
        Kind::Relu => element::map(io, part, element::relu),
        Kind::ReluBackward => element::zip(io, part, element::relu_backward),
        Kind::GeluBackward => element::zip(io, part, element::gelu_backward),
        Kind::Zero => io.write(0, element::chunk(io.op.writes[0].len, part)).fill(T::ZERO),
        Kind::Copy => element::map(io, part, |x| x),
        Kind::LstmCell { hidden } => lstm::forward(io, hidden, part),
        Kind::LstmCellBackward { hidden } => lstm::backward(io, hidden, part),
        Kind::Convolve(of) => convolve::forward(io, &of, part),
        Kind::ConvolveBack(of) => convolve::back(io, &of, part),
        Kind::ConvolveFilter(of) => convolve::filter(io, &of, part),
        Kind::Im2col(window) => conv::im2col(io, &window, part),
        Kind::Col2im(window) => conv::col2im(io, &window, part),
        Kind::BatchNorm { rows, columns } => conv::batch_norm(io, (rows, columns), part),
        Kind::BatchNormBackward { rows, columns } => conv::batch_norm_backward(io, (rows, columns), part),
        Kind::MaxPool(window) => pool::max(io, &window, part),
        Kind::MaxPoolBackward(window) => pool::max_backward(io, &window, part),
        Kind::MeanPool(window) => pool::mean(io, &window, part),
        Kind::MeanPoolBackward(window) => pool::mean_backward(io, &window, part),
        Kind::Concat { left, right } => table::concat(io, (left, right), part),
        Kind::Columns { all, first, count } => table::columns_of(io, (all, first, count), part),
        Kind::GlobalPool { area, channels } => pool::global(io, (area, channels), part),
        Kind::GlobalPoolBackward { area, channels } => pool::global_backward(io, (area, channels), part),
        Kind::Attention(heads) => attention::forward(io, &heads, part, scratch),
        Kind::AttentionBackward(heads) => attention::backward(io, &heads, part, scratch),
        Kind::LayerNorm { rows, columns } => norm::forward(io, (rows, columns), part),
        Kind::LayerNormBackward { rows, columns } => norm::backward(io, (rows, columns), part),
        Kind::LayerNormParameters { columns, .. } => norm::parameters(io, columns, part),
        Kind::CrossEntropy { classes, counted, .. } => table::cross_entropy(io, (classes, counted), part),
        Kind::Mean { counted } => table::mean(io, counted),
        Kind::Embedding { columns } => table::embedding(io, columns, part),
        Kind::EmbeddingBackward { columns } => table::embedding_backward(io, columns, part),
        Kind::AdamW { rate, decay } => update::adamw(io, (rate, decay), part),
        Kind::Nesterov { rate, decay } => update::nesterov(io, (rate, decay), part),
    }
}
