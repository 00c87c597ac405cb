//! VGG (Simonyan and Zisserman 2015) without batch norm. Nothing is dropped out in training: a step from one start must give
//! one loss.

use crate::build::{Builder, Optimiser};
use crate::tape::Tape;

use super::images::Images;

/// Sizes of a VGG.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vgg {
    /// Convolutions of each stage, and their channels; behind each stage the image is halved.
    pub(super) stages: &'static [(usize, usize)],
    /// Rows and columns of an image.
    pub(super) edge: usize,
    /// Width of the two layers before the last.
    pub(super) wide: usize,
    pub(super) classes: usize,
    pub(super) batch: usize,
    /// Whether nobody writes windows, as for GPUs.
    pub(super) implicit: bool,
}

impl Vgg {
    pub(super) const NANO: Self =
        Self { stages: &[(1, 8), (2, 16)], edge: 8, wide: 24, classes: 10, batch: 8, implicit: false };
    pub(super) const ELEVEN: Self = Self::published(&[(1, 64), (1, 128), (2, 256), (2, 512), (2, 512)]);
    pub(super) const THIRTEEN: Self = Self::published(&[(2, 64), (2, 128), (2, 256), (2, 512), (2, 512)]);
    pub(super) const SIXTEEN: Self = Self::published(&[(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)]);
    pub(super) const NINETEEN: Self = Self::published(&[(2, 64), (2, 128), (4, 256), (4, 512), (4, 512)]);

    const fn published(stages: &'static [(usize, usize)]) -> Self {
        Self { stages, edge: 224, wide: 4096, classes: 1000, batch: 1, implicit: false }
    }

    pub(super) fn tape(&self, optimiser: Optimiser) -> Tape {
        let mut b = Builder::new(self.batch).implicit(self.implicit);
        let (mut images, right) = Images::data(&mut b, self.batch, self.edge, self.classes);
        for (stage, (count, channels)) in self.stages.iter().enumerate() {
            for conv in 0..*count {
                let name = format!("stage {stage} convolution {conv}");
                images = images.conv(&mut b, &name, 3, (*channels, true)).relu(&mut b);
            }
            images = images.halve_by_most(&mut b);
        }
        let flat = images.edge * images.edge * images.channels;
        let first = b.linear("first layer", images.x, (flat, self.wide), false);
        let first = b.relu(first);
        let second = b.linear("second layer", first, (self.wide, self.wide), false);
        let second = b.relu(second);
        let logits = b.linear("classifier", second, (self.wide, self.classes), false);
        let loss = b.cross_entropy(logits, right, self.batch);
        b.finish(loss, optimiser)
    }
}
