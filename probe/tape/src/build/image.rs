//! Layers of convolutional networks. Images lie as N x H x W x C.

use crate::op::{Convolution, Gemm, Kind, Start, Window};
use crate::random::Fill;

use super::builder::{Builder, Tensor};
use super::layers::{product, spread};

impl Builder {
    /// Convolution without a bias, batch norm behind it.
    pub(crate) fn conv_norm(&mut self, name: &str, x: Tensor, window: Window, outputs: usize) -> Tensor {
        let y = self.conv(name, x, window, (outputs, false));
        self.batch_norm(name, y, outputs)
    }

    /// Convolution, with or without a bias.
    pub(crate) fn conv(&mut self, name: &str, x: Tensor, window: Window, (outputs, biased): (usize, bool)) -> Tensor {
        let inputs = window.size * window.size * window.channels;
        let deviation = (2.0 / (window.size * window.size * outputs) as f64).sqrt();
        let weight = self.weight(format!("{name} weights"), inputs * outputs, spread(deviation));
        let bias = biased.then(|| self.weight(format!("{name} bias"), outputs, Fill::Zero));
        if self.implicit && window.is_gathered(outputs) {
            return self.convolve((x, weight, bias), Convolution { window, outputs });
        }
        let columns = if window.size == 1 && window.stride == 1 { x } else { self.windows(x, window) };
        let rows = window.windows();
        let y = self.buffer(rows * outputs);
        let start = if biased { Start::Bias } else { Start::Zero };
        let reads: Vec<Tensor> = [columns, weight].into_iter().chain(bias).collect();
        self.op(Kind::Gemm(Gemm { start, ..product(rows, outputs, inputs) }), &reads, &[y]);
        self.on_the_way_back(move |b| {
            let Some(dy) = b.gradient(y) else { return };
            b.bias_backward(bias, dy, (rows, outputs));
            b.product_backward((columns, weight), dy, (rows, outputs, inputs));
        });
        y
    }

    fn convolve(&mut self, (x, weight, bias): (Tensor, Tensor, Option<Tensor>), of: Convolution) -> Tensor {
        let Gemm { m: rows, n: outputs, k: inputs, .. } = of.product();
        let y = self.buffer(rows * outputs);
        let reads: Vec<Tensor> = [x, weight].into_iter().chain(bias).collect();
        self.op(Kind::Convolve(of), &reads, &[y]);
        self.on_the_way_back(move |b| {
            let Some(dy) = b.gradient(y) else { return };
            b.bias_backward(bias, dy, (rows, outputs));
            let dw = b.buffer(weight.len);
            b.op(Kind::ConvolveFilter(of), &[x, dy], &[dw]);
            b.give(weight, dw);
            if b.is_data(x) {
                return;
            }
            let dx = b.buffer(x.len);
            if of.window.stride == 1 {
                b.op(Kind::ConvolveBack(of), &[dy, weight], &[dx]);
            } else {
                // Most pairs of a pixel and an element of the window meet no window: a product of all would mostly multiply zeros.
                let windows = b.buffer(rows * inputs);
                b.op(
                    Kind::Gemm(Gemm { b_transposed: true, ..product(rows, inputs, outputs) }),
                    &[dy, weight],
                    &[windows],
                );
                b.op(Kind::Col2im(of.window), &[windows], &[dx]);
            }
            b.give(x, dx);
        });
        y
    }

    fn windows(&mut self, x: Tensor, window: Window) -> Tensor {
        let y = self.buffer(window.windows() * window.size * window.size * window.channels);
        self.op(Kind::Im2col(window), &[x], &[y]);
        self.on_the_way_back(move |b| {
            let Some(dy) = b.gradient(y).filter(|_| !b.is_data(x)) else { return };
            let dx = b.buffer(x.len);
            b.op(Kind::Col2im(window), &[dy], &[dx]);
            b.give(x, dx);
        });
        y
    }

    pub(crate) fn batch_norm(&mut self, name: &str, x: Tensor, columns: usize) -> Tensor {
        let rows = x.len / columns;
        let scale = self.weight(format!("{name} norm scale"), columns, Fill::One);
        let shift = self.weight(format!("{name} norm shift"), columns, Fill::Zero);
        let (y, mean, r) = (self.buffer(x.len), self.buffer(columns), self.buffer(columns));
        self.op(Kind::BatchNorm { rows, columns }, &[x, scale, shift], &[y, mean, r]);
        self.on_the_way_back(move |b| {
            let Some(dy) = b.gradient(y) else { return };
            let (dx, ds, dt) = (b.buffer(x.len), b.buffer(columns), b.buffer(columns));
            b.op(Kind::BatchNormBackward { rows, columns }, &[x, scale, mean, r, dy], &[dx, ds, dt]);
            b.give(scale, ds);
            b.give(shift, dt);
            b.give(x, dx);
        });
        y
    }

    pub(crate) fn relu(&mut self, x: Tensor) -> Tensor {
        let y = self.buffer(x.len);
        self.op(Kind::Relu, &[x], &[y]);
        self.on_the_way_back(move |b| {
            let Some(dy) = b.gradient(y) else { return };
            let dx = b.buffer(x.len);
            b.op(Kind::ReluBackward, &[y, dy], &[dx]);
            b.give(x, dx);
        });
        y
    }

    pub(crate) fn max_pool(&mut self, x: Tensor, window: Window) -> Tensor {
        let len = window.windows() * window.channels;
        let (y, which) = (self.buffer(len), self.buffer(len));
        self.op(Kind::MaxPool(window), &[x], &[y, which]);
        self.on_the_way_back(move |b| {
            let Some(dy) = b.gradient(y) else { return };
            let dx = b.buffer(x.len);
            b.op(Kind::MaxPoolBackward(window), &[dy, which], &[dx]);
            b.give(x, dx);
        });
        y
    }

    pub(crate) fn mean_pool(&mut self, x: Tensor, window: Window) -> Tensor {
        let y = self.buffer(window.windows() * window.channels);
        self.op(Kind::MeanPool(window), &[x], &[y]);
        self.on_the_way_back(move |b| {
            let Some(dy) = b.gradient(y) else { return };
            let dx = b.buffer(x.len);
            b.op(Kind::MeanPoolBackward(window), &[dy], &[dx]);
            b.give(x, dx);
        });
        y
    }

    /// Channels of `a`, and those of `b` behind them.
    pub(crate) fn concat(&mut self, (a, left): (Tensor, usize), (b, right): (Tensor, usize)) -> Tensor {
        let y = self.buffer(a.len + b.len);
        self.op(Kind::Concat { left, right }, &[a, b], &[y]);
        self.on_the_way_back(move |builder| {
            let Some(dy) = builder.gradient(y) else { return };
            for (part, first, count) in [(a, 0, left), (b, left, right)] {
                let gradient = builder.buffer(part.len);
                builder.op(Kind::Columns { all: left + right, first, count }, &[dy], &[gradient]);
                builder.give(part, gradient);
            }
        });
        y
    }

    /// Mean of each channel over `area` pixels.
    pub(crate) fn global_pool(&mut self, x: Tensor, area: usize, channels: usize) -> Tensor {
        let y = self.buffer(x.len / area);
        self.op(Kind::GlobalPool { area, channels }, &[x], &[y]);
        self.on_the_way_back(move |b| {
            let Some(dy) = b.gradient(y) else { return };
            let dx = b.buffer(x.len);
            b.op(Kind::GlobalPoolBackward { area, channels }, &[dy], &[dx]);
            b.give(x, dx);
        });
        y
    }
}
