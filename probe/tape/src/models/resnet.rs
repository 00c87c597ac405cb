//! ResNet (He et al. 2016) of bottleneck blocks, the stride in the 3x3 convolution (v1.5).

use crate::build::{Builder, Optimiser, Tensor};
use crate::op::Window;
use crate::random::Fill;
use crate::tape::Tape;

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
}

/// Images on their way.
#[derive(Clone, Copy)]
struct Images {
    x: Tensor,
    batch: usize,
    edge: usize,
    channels: usize,
}

impl Images {
    const fn window(&self, size: usize, stride: usize) -> Window {
        Window { batch: self.batch, edge: self.edge, channels: self.channels, size, stride, pad: size / 2 }
    }

    fn conv_norm(self, b: &mut Builder, name: &str, (size, stride): (usize, usize), channels: usize) -> Self {
        let window = self.window(size, stride);
        Self { x: b.conv_norm(name, self.x, window, channels), edge: window.out_edge(), channels, ..self }
    }

    fn relu(self, b: &mut Builder) -> Self {
        Self { x: b.relu(self.x), ..self }
    }

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
    pub(super) const NANO: Self = Self { blocks: &[1, 1], width: 8, edge: 8, large_stem: false, classes: 10, batch: 8 };
    pub(super) const FIFTY: Self =
        Self { blocks: &[3, 4, 6, 3], width: 64, edge: 224, large_stem: true, classes: 1000, batch: 4 };

    pub(super) fn tape(&self, optimiser: Optimiser) -> Tape {
        let mut b = Builder::new(self.batch);
        let pixels = self.batch * self.edge * self.edge * 3;
        let x = b.data("images", pixels, Fill::Uniform { bound: 1.7 });
        let classes = b.data("classes", self.batch, Fill::Index { below: self.classes as u32 });
        let mut images = Images { x, batch: self.batch, edge: self.edge, channels: 3 };
        let stem = if self.large_stem { (7, 2) } else { (3, 1) };
        images = images.conv_norm(&mut b, "stem", stem, self.width).relu(&mut b);
        if self.large_stem {
            let window = images.window(3, 2);
            images = Images { x: b.max_pool(images.x, window), edge: window.out_edge(), ..images };
        }
        for (stage, blocks) in self.blocks.iter().enumerate() {
            for block in 0..*blocks {
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                let name = format!("stage {stage} block {block}");
                images = images.bottleneck(&mut b, &name, self.width << stage, stride);
            }
        }
        let pooled = b.global_pool(images.x, images.edge * images.edge, images.channels);
        let logits = b.linear("classifier", pooled, (images.channels, self.classes), false);
        let loss = b.cross_entropy(logits, classes, self.batch);
        b.finish(loss, optimiser)
    }
}
