//! Layers that models are made of: what goes forward, and what comes back.

use crate::op::{Gemm, Heads, Kind, Start};
use crate::random::Fill;

use super::builder::{Builder, Tensor};

/// Bound of evenly distributed weights with standard deviation `deviation`.
pub(crate) fn spread(deviation: f64) -> Fill {
    Fill::Uniform { bound: deviation * 3f64.sqrt() }
}

/// A product without a bias, A and B as they lie.
pub(crate) const fn product(m: usize, n: usize, k: usize) -> Gemm {
    Gemm { m, n, k, a_transposed: false, b_transposed: false, start: Start::Zero, gelu: false }
}

impl Builder {
    /// `x W + b` for rows of `inputs` elements; with `gelu`, its GELU.
    pub(crate) fn linear(&mut self, name: &str, x: Tensor, (inputs, outputs): (usize, usize), gelu: bool) -> Tensor {
        let deviation = if inputs < 256 { (1.0 / inputs as f64).sqrt() } else { 0.02 };
        let weight = self.weight(format!("{name} weights"), inputs * outputs, spread(deviation));
        let bias = self.weight(format!("{name} bias"), outputs, Fill::Zero);
        let rows = x.len / inputs;
        let y = self.buffer(rows * outputs);
        let act = if gelu { self.buffer(rows * outputs) } else { y };
        let kind = Kind::Gemm(Gemm { start: Start::Bias, gelu, ..product(rows, outputs, inputs) });
        let results = [y, act];
        self.op(kind, &[x, weight, bias], &results[..if gelu { 2 } else { 1 }]);
        self.on_the_way_back(move |b| {
            let Some(mut dy) = b.gradient(act) else { return };
            if gelu {
                let before = b.buffer(y.len);
                b.op(Kind::GeluBackward, &[y, dy], &[before]);
                dy = before;
            }
            b.bias_backward(Some(bias), dy, (rows, outputs));
            b.product_backward((x, weight), dy, (rows, outputs, inputs));
        });
        act
    }

    /// Gradient of what was added to each of `rows` rows, if anything was.
    pub(crate) fn bias_backward(&mut self, bias: Option<Tensor>, dy: Tensor, (rows, columns): (usize, usize)) {
        let Some(bias) = bias else { return };
        let db = self.buffer(columns);
        self.op(Kind::ColumnSum { rows, columns }, &[dy], &[db]);
        self.give(bias, db);
    }

    /// Gradients of `x (rows x inputs) * weight (inputs x outputs)`.
    pub(crate) fn product_backward(
        &mut self,
        (x, weight): (Tensor, Tensor),
        dy: Tensor,
        (rows, outputs, inputs): (usize, usize, usize),
    ) {
        let dw = self.buffer(weight.len);
        let kind = Kind::Gemm(Gemm { a_transposed: true, ..product(inputs, outputs, rows) });
        self.op(kind, &[x, dy], &[dw]);
        self.give(weight, dw);
        if self.is_data(x) {
            return;
        }
        let dx = self.buffer(x.len);
        let kind = Kind::Gemm(Gemm { b_transposed: true, ..product(rows, inputs, outputs) });
        self.op(kind, &[dy, weight], &[dx]);
        self.give(x, dx);
    }

    pub(crate) fn add(&mut self, a: Tensor, b: Tensor) -> Tensor {
        let y = self.buffer(a.len);
        self.op(Kind::Add, &[a, b], &[y]);
        self.on_the_way_back(move |builder| {
            let Some(dy) = builder.gradient(y) else { return };
            builder.give(a, dy);
            builder.give(b, dy);
        });
        y
    }

    /// Rows of `table` by number.
    pub(crate) fn embedding(&mut self, numbers: Tensor, table: Tensor, columns: usize) -> Tensor {
        let y = self.buffer(numbers.len * columns);
        self.op(Kind::Embedding { columns }, &[numbers, table], &[y]);
        self.on_the_way_back(move |b| {
            let Some(dy) = b.gradient(y) else { return };
            let dt = b.gathered(table);
            b.op(Kind::EmbeddingBackward { columns }, &[numbers, dy], &[dt]);
        });
        y
    }

    pub(crate) fn layer_norm(&mut self, name: &str, x: Tensor, columns: usize) -> Tensor {
        let rows = x.len / columns;
        let scale = self.weight(format!("{name} scale"), columns, Fill::One);
        let shift = self.weight(format!("{name} shift"), columns, Fill::Zero);
        let (y, mean, r) = (self.buffer(x.len), self.buffer(rows), self.buffer(rows));
        self.op(Kind::LayerNorm { rows, columns }, &[x, scale, shift], &[y, mean, r]);
        self.on_the_way_back(move |b| {
            let Some(dy) = b.gradient(y) else { return };
            let (ds, dt, dx) = (b.buffer(columns), b.buffer(columns), b.buffer(x.len));
            b.op(Kind::LayerNormParameters { rows, columns }, &[x, mean, r, dy], &[ds, dt]);
            b.give(scale, ds);
            b.give(shift, dt);
            b.op(Kind::LayerNormBackward { rows, columns }, &[x, scale, mean, r, dy], &[dx]);
            b.give(x, dx);
        });
        y
    }

    /// Self-attention between its two linear layers.
    pub(crate) fn attention(&mut self, name: &str, x: Tensor, heads: Heads) -> Tensor {
        let width = heads.heads * heads.width;
        let qkv = self.linear(&format!("{name} query, key, value"), x, (width, 3 * width), false);
        let (y, log) = (self.buffer(x.len), self.buffer(heads.batch * heads.heads * heads.seq));
        self.op(Kind::Attention(heads), &[qkv], &[y, log]);
        self.on_the_way_back(move |b| {
            let Some(dy) = b.gradient(y) else { return };
            let d = b.buffer(qkv.len);
            b.op(Kind::AttentionBackward(heads), &[qkv, y, log, dy], &[d]);
            b.give(qkv, d);
        });
        self.linear(&format!("{name} projection"), y, (width, width), false)
    }

    /// `x tableT (+ b)`, with the weights of an embedding.
    pub(crate) fn tied(&mut self, x: Tensor, (table, bias): (Tensor, Option<Tensor>), columns: usize) -> Tensor {
        let (rows, outputs) = (x.len / columns, table.len / columns);
        let y = self.buffer(rows * outputs);
        let start = if bias.is_some() { Start::Bias } else { Start::Zero };
        let reads: Vec<Tensor> = [x, table].into_iter().chain(bias).collect();
        self.op(Kind::Gemm(Gemm { b_transposed: true, start, ..product(rows, outputs, columns) }), &reads, &[y]);
        self.on_the_way_back(move |b| {
            let Some(dy) = b.gradient(y) else { return };
            b.bias_backward(bias, dy, (rows, outputs));
            let (dt, dx) = (b.buffer(table.len), b.buffer(x.len));
            let kind = Kind::Gemm(Gemm { a_transposed: true, ..product(outputs, columns, rows) });
            b.op(kind, &[dy, x], &[dt]);
            b.give(table, dt);
            b.op(Kind::Gemm(product(rows, columns, outputs)), &[dy, table], &[dx]);
            b.give(x, dx);
        });
        y
    }

    /// Mean cross entropy of `counted` rows of logits.
    pub(crate) fn cross_entropy(&mut self, logits: Tensor, classes: Tensor, counted: usize) -> Tensor {
        let rows = classes.len;
        let (losses, gradient, loss) = (self.buffer(rows), self.buffer(logits.len), self.buffer(1));
        let kind = Kind::CrossEntropy { rows, classes: logits.len / rows, counted };
        self.op(kind, &[logits, classes], &[losses, gradient]);
        self.op(Kind::Mean { counted }, &[losses], &[loss]);
        self.on_the_way_back(move |b| b.give(logits, gradient));
        loss
    }
}
