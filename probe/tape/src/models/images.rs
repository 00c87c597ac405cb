//! Images on their way through a convolutional network.

use crate::build::{Builder, Optimiser, Tensor};
use crate::op::Window;
use crate::random::Fill;
use crate::tape::Tape;

/// Images on their way.
#[derive(Clone, Copy)]
pub(super) struct Images {
    pub(super) x: Tensor,
    pub(super) batch: usize,
    pub(super) edge: usize,
    pub(super) channels: usize,
}

impl Images {
    /// `batch` images of three colours, and which of `classes` each of them is.
    pub(super) fn data(b: &mut Builder, batch: usize, edge: usize, classes: usize) -> (Self, Tensor) {
        let x = b.data("images", batch * edge * edge * 3, Fill::Uniform { bound: 1.7 });
        let right = b.data("classes", batch, Fill::Index { below: classes as u32 });
        (Self { x, batch, edge, channels: 3 }, right)
    }

    /// Windows that leave the image as large as it is, or smaller by the stride.
    pub(super) const fn window(&self, size: usize, stride: usize) -> Window {
        Window { batch: self.batch, edge: self.edge, channels: self.channels, size, stride, pad: size / 2 }
    }

    /// Windows of two pixels that do not overlap.
    const fn halves(&self) -> Window {
        Window { batch: self.batch, edge: self.edge, channels: self.channels, size: 2, stride: 2, pad: 0 }
    }

    pub(super) fn conv_norm(
        self,
        b: &mut Builder,
        name: &str,
        (size, stride): (usize, usize),
        channels: usize,
    ) -> Self {
        let window = self.window(size, stride);
        Self { x: b.conv_norm(name, self.x, window, channels), edge: window.out_edge(), channels, ..self }
    }

    pub(super) fn conv(self, b: &mut Builder, name: &str, size: usize, (channels, biased): (usize, bool)) -> Self {
        Self { x: b.conv(name, self.x, self.window(size, 1), (channels, biased)), channels, ..self }
    }

    pub(super) fn norm(self, b: &mut Builder, name: &str) -> Self {
        Self { x: b.batch_norm(name, self.x, self.channels), ..self }
    }

    pub(super) fn relu(self, b: &mut Builder) -> Self {
        Self { x: b.relu(self.x), ..self }
    }

    /// The largest of each window of 3 with stride 2, as behind a large stem.
    pub(super) fn stem_pool(self, b: &mut Builder) -> Self {
        let window = self.window(3, 2);
        Self { x: b.max_pool(self.x, window), edge: window.out_edge(), ..self }
    }

    pub(super) fn halve_by_most(self, b: &mut Builder) -> Self {
        Self { x: b.max_pool(self.x, self.halves()), edge: self.edge / 2, ..self }
    }

    pub(super) fn halve_by_mean(self, b: &mut Builder) -> Self {
        Self { x: b.mean_pool(self.x, self.halves()), edge: self.edge / 2, ..self }
    }

    pub(super) fn concat(self, b: &mut Builder, other: Self) -> Self {
        let x = b.concat((self.x, self.channels), (other.x, other.channels));
        Self { x, channels: self.channels + other.channels, ..self }
    }

    /// The mean of each channel decides the class.
    pub(super) fn classify(self, mut b: Builder, (right, classes): (Tensor, usize), optimiser: Optimiser) -> Tape {
        let pooled = b.global_pool(self.x, self.edge * self.edge, self.channels);
        let logits = b.linear("classifier", pooled, (self.channels, classes), false);
        let loss = b.cross_entropy(logits, right, self.batch);
        b.finish(loss, optimiser)
    }
}
