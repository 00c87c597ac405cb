//! DenseNet (Huang et al. 2017) of bottleneck layers with compression: every layer sees the results of all before it in its
//! block.

use crate::build::{Builder, Optimiser};
use crate::tape::Tape;

use super::images::Images;

/// The middle of a layer is so many times as wide as its result.
const BOTTLENECK: usize = 4;

/// Sizes of a DenseNet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Densenet {
    /// Layers of each block; between blocks image and channels are halved.
    pub(super) layers: &'static [usize],
    /// Channels that a layer adds.
    pub(super) growth: usize,
    /// Rows and columns of an image.
    pub(super) edge: usize,
    /// Whether the stem is 7x7 with stride 2 and a pool behind it; 3x3 otherwise.
    pub(super) large_stem: bool,
    pub(super) classes: usize,
    pub(super) batch: usize,
    /// Whether nobody writes windows, as for GPUs.
    pub(super) implicit: bool,
}

impl Densenet {
    pub(super) const NANO: Self =
        Self { layers: &[2, 2], growth: 8, edge: 8, large_stem: false, classes: 10, batch: 8, implicit: false };
    pub(super) const HUNDRED_SIXTY_NINE: Self = Self::published(&[6, 12, 32, 32]);
    pub(super) const TWO_HUNDRED_ONE: Self = Self::published(&[6, 12, 48, 32]);

    const fn published(layers: &'static [usize]) -> Self {
        Self { layers, growth: 32, edge: 224, large_stem: true, classes: 1000, batch: 1, implicit: false }
    }

    pub(super) fn tape(&self, optimiser: Optimiser) -> Tape {
        let mut b = Builder::new(self.batch).implicit(self.implicit);
        let (mut images, right) = Images::data(&mut b, self.batch, self.edge, self.classes);
        let stem = if self.large_stem { (7, 2) } else { (3, 1) };
        images = images.conv_norm(&mut b, "stem", stem, 2 * self.growth).relu(&mut b);
        if self.large_stem {
            images = images.stem_pool(&mut b);
        }
        for (block, layers) in self.layers.iter().enumerate() {
            if block > 0 {
                images = halved(images, &mut b, &format!("transition {block}"));
            }
            for layer in 0..*layers {
                let new = self.layer(images, &mut b, &format!("block {block} layer {layer}"));
                images = images.concat(&mut b, new);
            }
        }
        images.norm(&mut b, "last").relu(&mut b).classify(b, (right, self.classes), optimiser)
    }

    fn layer(&self, images: Images, b: &mut Builder, name: &str) -> Images {
        let inner = images.norm(b, &format!("{name} first")).relu(b);
        let inner = inner.conv_norm(b, &format!("{name} middle"), (1, 1), BOTTLENECK * self.growth).relu(b);
        inner.conv(b, &format!("{name} second"), 3, (self.growth, false))
    }
}

/// Half the channels, half the edge.
fn halved(images: Images, b: &mut Builder, name: &str) -> Images {
    let inner = images.norm(b, name).relu(b);
    inner.conv(b, name, 1, (images.channels / 2, false)).halve_by_mean(b)
}
