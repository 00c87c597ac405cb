//! ResNet (He et al. 2016) of bottleneck blocks, the stride in the 3x3 convolution (v1.5).

use crate::build::{Builder, Optimiser};
use crate::tape::Tape;

use super::images::Images;

/// A block's result is so many times as wide as its middle.
const EXPANSION: usize = 4;

/// Sizes of a ResNet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resnet {
    /// Blocks of each stage; each stage but the first halves the image and doubles the width.
    pub(super) blocks: &'static [usize],
    /// Middle width of the first stage, and width of the stem.
    pub(super) width: usize,
    /// Rows and columns of an image.
    pub(super) edge: usize,
    /// Whether the stem is 7x7 with stride 2 and a pool behind it; 3x3 otherwise.
    pub(super) large_stem: bool,
    pub(super) classes: usize,
    pub(super) batch: usize,
    /// Whether nobody writes windows, as for GPUs.
    pub(super) implicit: bool,
}

impl Images {
    fn bottleneck(self, b: &mut Builder, name: &str, width: usize, stride: usize) -> Self {
        let inner = self.conv_norm(b, &format!("{name} first"), (1, 1), width).relu(b);
        let inner = inner.conv_norm(b, &format!("{name} second"), (3, stride), width).relu(b);
        let inner = inner.conv_norm(b, &format!("{name} third"), (1, 1), EXPANSION * width);
        let same = stride == 1 && self.channels == inner.channels;
        let short =
            if same { self } else { self.conv_norm(b, &format!("{name} short cut"), (1, stride), inner.channels) };
        Self { x: b.add(inner.x, short.x), ..inner }.relu(b)
    }
}

impl Resnet {
    pub(super) const NANO: Self =
        Self { blocks: &[1, 1], width: 8, edge: 8, large_stem: false, classes: 10, batch: 8, implicit: false };
    pub(super) const FIFTY: Self = Self::published(&[3, 4, 6, 3]);
    pub(super) const HUNDRED_ONE: Self = Self::published(&[3, 4, 23, 3]);
    pub(super) const HUNDRED_FIFTY_TWO: Self = Self::published(&[3, 8, 36, 3]);

    const fn published(blocks: &'static [usize]) -> Self {
        Self { blocks, width: 64, edge: 224, large_stem: true, classes: 1000, batch: 4, implicit: false }
    }

    pub(super) fn tape(&self, optimiser: Optimiser) -> Tape {
        let mut b = Builder::new(self.batch).implicit(self.implicit);
        let (mut images, right) = Images::data(&mut b, self.batch, self.edge, self.classes);
        let stem = if self.large_stem { (7, 2) } else { (3, 1) };
        images = images.conv_norm(&mut b, "stem", stem, self.width).relu(&mut b);
        if self.large_stem {
            images = images.stem_pool(&mut b);
        }
        for (stage, blocks) in self.blocks.iter().enumerate() {
            for block in 0..*blocks {
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                let name = format!("stage {stage} block {block}");
                images = images.bottleneck(&mut b, &name, self.width << stage, stride);
            }
        }
        images.classify(b, (right, self.classes), optimiser)
    }
}
