//! What a tape is made of: operations, their shapes, and where in memory they read and write.

/// A range of elements in the one memory of a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// First element.
    pub offset: usize,
    /// Elements.
    pub len: usize,
}

impl Span {
    /// One past the last element.
    #[must_use]
    pub const fn end(self) -> usize {
        self.offset + self.len
    }
}

/// One operation of a step. A back end runs them in order; none starts before the one before it has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// What is done, and the shapes.
    pub kind: Kind,
    /// Inputs, in the order that the kind names.
    pub reads: Vec<Span>,
    /// Outputs, in the order that the kind names. Never overlap the inputs.
    pub writes: Vec<Span>,
}

/// A matrix product `C = A B`, row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Inner dimension.
    pub k: usize,
    /// A is stored as k x m.
    pub a_transposed: bool,
    /// B is stored as n x k.
    pub b_transposed: bool,
    /// What the sums start from.
    pub start: Start,
    /// Whether GELU of C is written too.
    pub gelu: bool,
}

/// What the sums of a product start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Zero.
    Zero,
    /// The element of the bias for its column.
    Bias,
    /// What C holds: the product is added to it.
    Add,
}

/// A convolution's geometry, images as N x H x W x C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Images.
    pub batch: usize,
    /// Rows and columns of an image; they are square.
    pub edge: usize,
    /// Channels.
    pub channels: usize,
    /// Rows and columns of the window.
    pub size: usize,
    /// Distance of two windows.
    pub stride: usize,
    /// Zeros around the image.
    pub pad: usize,
}

impl Window {
    /// Rows and columns of the result.
    #[must_use]
    pub const fn out_edge(&self) -> usize {
        (self.edge + 2 * self.pad - self.size) / self.stride + 1
    }

    /// Whether a convolution to so many channels may gather its windows: eight channels go together, and windows of one pixel that
    /// leave none out are the images as they lie.
    pub(crate) const fn is_gathered(&self, outputs: usize) -> bool {
        let whole = self.channels.is_multiple_of(8) && outputs.is_multiple_of(8);
        whole && (self.size > 1 || self.stride > 1)
    }

    /// Windows in all.
    #[must_use]
    pub const fn windows(&self) -> usize {
        self.batch * self.out_edge() * self.out_edge()
    }

    /// Elements of the images.
    #[must_use]
    pub const fn pixels(&self) -> usize {
        self.batch * self.edge * self.edge * self.channels
    }
}

/// A convolution: images as N x H x W x C, filters as size x size x channels x outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Its windows over the images that go in.
    pub window: Window,
    /// Channels that come out.
    pub outputs: usize,
}

impl Convolution {
    /// The product of windows, written out as rows, and the filter.
    #[must_use]
    pub const fn product(&self) -> Gemm {
        let Window { size, channels, .. } = self.window;
        Gemm {
            m: self.window.windows(),
            n: self.outputs,
            k: size * size * channels,
            a_transposed: false,
            b_transposed: false,
            start: Start::Zero,
            gelu: false,
        }
    }
}

/// Self-attention's geometry. Queries, keys and values lie side by side: rows of `3 * heads * width`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// Sequences.
    pub batch: usize,
    /// Tokens of a sequence.
    pub seq: usize,
    /// Heads.
    pub heads: usize,
    /// Elements of one head.
    pub width: usize,
    /// Whether a token sees only itself and earlier ones.
    pub causal: bool,
}

/// What an operation does. After the arrow, what it writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A, B, (bias) → C, (GELU of C).
    Gemm(Gemm),
    /// Matrix → sum of each column, for the gradient of a bias.
    ColumnSum {
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
    },
    /// a, b → a + b.
    Add,
    /// x → max(x, 0).
    Relu,
    /// y = max(x, 0), dy → dx.
    ReluBackward,
    /// x, dy → dx, for the tanh form of GELU (Hendrycks and Gimpel 2016).
    GeluBackward,
    /// → zeros.
    Zero,
    /// x → x.
    Copy,
    /// gates (rows of input, forget, candidate, output), cell before → hidden state, cell, activated gates.
    LstmCell {
        /// Elements of a hidden state.
        hidden: usize,
    },
    /// activated gates, cell before, cell, gradients of the hidden state and of the cell from the step after →
    /// gradients of the gates and of the cell before.
    LstmCellBackward {
        /// Elements of a hidden state.
        hidden: usize,
    },
    /// images, filter, (bias) → images.
    Convolve(Convolution),
    /// gradient of what came out, filter → gradient of what went in.
    ConvolveBack(Convolution),
    /// images, gradient of what came out → gradient of the filter.
    ConvolveFilter(Convolution),
    /// images → windows, one a row, zeros where a window reaches over the edge.
    Im2col(Window),
    /// gradients of windows → gradients of images.
    Col2im(Window),
    /// x, scale, shift → y, mean and reciprocal deviation of each column over all rows of this step.
    BatchNorm {
        /// Rows: images times pixels.
        rows: usize,
        /// Columns: channels.
        columns: usize,
    },
    /// x, scale, mean, reciprocal deviation, dy → dx, gradients of scale and shift.
    BatchNormBackward {
        /// Rows: images times pixels.
        rows: usize,
        /// Columns: channels.
        columns: usize,
    },
    /// images → largest of each window, and which of the window it was.
    MaxPool(Window),
    /// gradients of the largest, which of the window it was → gradients of images.
    MaxPoolBackward(Window),
    /// images → mean of each window.
    MeanPool(Window),
    /// gradients of the means → gradients of images.
    MeanPoolBackward(Window),
    /// a, b → rows of a with those of b behind.
    Concat {
        /// Columns of a.
        left: usize,
        /// Columns of b.
        right: usize,
    },
    /// matrix → some of its columns.
    Columns {
        /// Columns of the matrix.
        all: usize,
        /// First column that is taken.
        first: usize,
        /// How many are.
        count: usize,
    },
    /// images → mean of each channel.
    GlobalPool {
        /// Pixels of an image.
        area: usize,
        /// Channels.
        channels: usize,
    },
    /// gradients of the means → gradients of images.
    GlobalPoolBackward {
        /// Pixels of an image.
        area: usize,
        /// Channels.
        channels: usize,
    },
    /// queries-keys-values → result, log of each row's softmax denominator (batch x heads x seq).
    Attention(Heads),
    /// queries-keys-values, result, log denominators, gradient of the result → gradient of queries-keys-values.
    AttentionBackward(Heads),
    /// x, scale, shift → y, mean and reciprocal deviation of each row.
    LayerNorm {
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
    },
    /// x, scale, mean, reciprocal deviation, dy → dx.
    LayerNormBackward {
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
    },
    /// x, mean, reciprocal deviation, dy → gradients of scale and shift.
    LayerNormParameters {
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
    },
    /// logits, classes → loss of each row, gradient of the logits. A class below zero is a row that does not count.
    CrossEntropy {
        /// Rows.
        rows: usize,
        /// Columns of the logits.
        classes: usize,
        /// Rows that count.
        counted: usize,
    },
    /// losses → their sum over `counted`.
    Mean {
        /// Rows that count.
        counted: usize,
    },
    /// row numbers, table → rows.
    Embedding {
        /// Elements of a row.
        columns: usize,
    },
    /// row numbers, gradients of the rows → table of gradients, added to.
    EmbeddingBackward {
        /// Elements of a row.
        columns: usize,
    },
    /// gradient → weights, first and second moment, all updated (Loshchilov and Hutter 2019).
    AdamW {
        /// Learning rate.
        rate: f64,
        /// Decoupled weight decay.
        decay: f64,
    },
    /// gradient → weights, velocity, both updated.
    Nesterov {
        /// Learning rate.
        rate: f64,
        /// Weight decay, as a part of the gradient.
        decay: f64,
    },
}
