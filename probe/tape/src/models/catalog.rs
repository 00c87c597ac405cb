//! The models that can be trained, their names and sizes.

use crate::build::{Optimiser, Rule};
use crate::tape::Tape;

use super::bert::Bert;
use super::densenet::Densenet;
use super::gpt2::Gpt2;
use super::lstm::Lstm;
use super::resnet::Resnet;
use super::vgg::Vgg;

/// A model of one published or nano size. Nano models take milliseconds a step on one core; the others have here a batch that
/// one core can do in seconds, and any other by [`Model::sized`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// 2 layers, 64 wide, 2 sequences of 32 tokens.
    Gpt2Nano,
    /// 124 million parameters, 1 sequence of 128 tokens.
    Gpt2Small,
    /// 774 million parameters, 1 sequence of 128 tokens.
    Gpt2Large,
    /// 2 layers, 64 wide, 2 sequences of 32 tokens.
    BertNano,
    /// 110 million parameters, 1 sequence of 128 tokens.
    BertBase,
    /// 335 million parameters, 1 sequence of 128 tokens.
    BertLarge,
    /// 2 layers, 48 wide, 4 sequences of 12 steps.
    LstmNano,
    /// 8 layers, 1000 wide, 8 sequences of 32 steps; 61 million parameters.
    Lstm,
    /// 2 blocks, 8 images of 8 x 8.
    ResnetNano,
    /// 25.6 million parameters, 4 images of 224 x 224.
    Resnet50,
    /// 44.5 million parameters, 4 images of 224 x 224.
    Resnet101,
    /// 60.2 million parameters, 4 images of 224 x 224.
    Resnet152,
    /// 2 blocks of 2 layers, 8 images of 8 x 8.
    DensenetNano,
    /// 14.1 million parameters, 1 image of 224 x 224.
    Densenet169,
    /// 20 million parameters, 1 image of 224 x 224.
    Densenet201,
    /// 3 convolutions, 8 images of 8 x 8.
    VggNano,
    /// 133 million parameters, 1 image of 224 x 224.
    Vgg11,
    /// 133 million parameters, 1 image of 224 x 224.
    Vgg13,
    /// 138 million parameters, 1 image of 224 x 224.
    Vgg16,
    /// 144 million parameters, 1 image of 224 x 224.
    Vgg19,
}

/// How much is trained on in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Sequences, or images.
    pub batch: usize,
    /// Tokens or steps of a sequence; no meaning for images.
    pub seq: usize,
}

/// The family of a model, with its sizes.
enum Net {
    Gpt2(Gpt2),
    Bert(Bert),
    Lstm(Lstm),
    Resnet(Resnet),
    Densenet(Densenet),
    Vgg(Vgg),
}

impl Model {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::Gpt2Nano,
        Self::Gpt2Small,
        Self::Gpt2Large,
        Self::BertNano,
        Self::BertBase,
        Self::BertLarge,
        Self::LstmNano,
        Self::Lstm,
        Self::ResnetNano,
        Self::Resnet50,
        Self::Resnet101,
        Self::Resnet152,
        Self::DensenetNano,
        Self::Densenet169,
        Self::Densenet201,
        Self::VggNano,
        Self::Vgg11,
        Self::Vgg13,
        Self::Vgg16,
        Self::Vgg19,
    ];

    /// The name in metrics, such as `gpt2-small`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpt2Nano => "gpt2-nano",
            Self::Gpt2Small => "gpt2-small",
            Self::Gpt2Large => "gpt2-large",
            Self::BertNano => "bert-nano",
            Self::BertBase => "bert-base",
            Self::BertLarge => "bert-large",
            Self::LstmNano => "lstm-nano",
            Self::Lstm => "lstm",
            Self::ResnetNano => "resnet-nano",
            Self::Resnet50 => "resnet50",
            Self::Resnet101 => "resnet101",
            Self::Resnet152 => "resnet152",
            Self::DensenetNano => "densenet-nano",
            Self::Densenet169 => "densenet169",
            Self::Densenet201 => "densenet201",
            Self::VggNano => "vgg-nano",
            Self::Vgg11 => "vgg11",
            Self::Vgg13 => "vgg13",
            Self::Vgg16 => "vgg16",
            Self::Vgg19 => "vgg19",
        }
    }

    const fn net(self) -> Net {
        match self {
            Self::Gpt2Nano => Net::Gpt2(Gpt2::NANO),
            Self::Gpt2Small => Net::Gpt2(Gpt2::SMALL),
            Self::Gpt2Large => Net::Gpt2(Gpt2::LARGE),
            Self::BertNano => Net::Bert(Bert::NANO),
            Self::BertBase => Net::Bert(Bert::BASE),
            Self::BertLarge => Net::Bert(Bert::LARGE),
            Self::LstmNano => Net::Lstm(Lstm::NANO),
            Self::Lstm => Net::Lstm(Lstm::FULL),
            Self::ResnetNano => Net::Resnet(Resnet::NANO),
            Self::Resnet50 => Net::Resnet(Resnet::FIFTY),
            Self::Resnet101 => Net::Resnet(Resnet::HUNDRED_ONE),
            Self::Resnet152 => Net::Resnet(Resnet::HUNDRED_FIFTY_TWO),
            Self::DensenetNano => Net::Densenet(Densenet::NANO),
            Self::Densenet169 => Net::Densenet(Densenet::HUNDRED_SIXTY_NINE),
            Self::Densenet201 => Net::Densenet(Densenet::TWO_HUNDRED_ONE),
            Self::VggNano => Net::Vgg(Vgg::NANO),
            Self::Vgg11 => Net::Vgg(Vgg::ELEVEN),
            Self::Vgg13 => Net::Vgg(Vgg::THIRTEEN),
            Self::Vgg16 => Net::Vgg(Vgg::SIXTEEN),
            Self::Vgg19 => Net::Vgg(Vgg::NINETEEN),
        }
    }

    /// How much is trained on in a step of [`Model::tape`].
    #[must_use]
    pub const fn size(self) -> Size {
        let (batch, seq) = match self.net() {
            Net::Gpt2(net) => (net.batch, net.seq),
            Net::Bert(net) => (net.batch, net.seq),
            Net::Lstm(net) => (net.batch, net.seq),
            Net::Resnet(net) => (net.batch, 1),
            Net::Densenet(net) => (net.batch, 1),
            Net::Vgg(net) => (net.batch, 1),
        };
        Size { batch, seq }
    }

    /// Forward, backward and update.
    #[must_use]
    pub fn tape(self) -> Tape {
        self.with(self.rule().at_once())
    }

    /// The same for another batch, and for sequences of another length, which a table of positions may limit.
    #[must_use]
    pub fn sized(self, size: Size) -> Tape {
        self.resized(Some(size), self.rule().at_once(), false)
    }

    /// The same as GPUs do it: convolutions gather the windows of images where they can, and nobody writes these.
    #[must_use]
    pub fn implicit(self, size: Size) -> Tape {
        self.resized(Some(size), self.rule().at_once(), true)
    }

    /// The same with all updates after all gradients, for [`crate::Replica`]. The steps of a model alone give the same losses.
    #[must_use]
    pub fn parallel_tape(self) -> Tape {
        self.with(self.rule().apart())
    }

    /// The same for another batch, as [`Model::sized`].
    #[must_use]
    pub fn parallel_sized(self, size: Size) -> Tape {
        self.resized(Some(size), self.rule().apart(), false)
    }

    /// The same as GPUs do it, as [`Model::implicit`].
    #[must_use]
    pub fn parallel_implicit(self, size: Size) -> Tape {
        self.resized(Some(size), self.rule().apart(), true)
    }

    const fn rule(self) -> Rule {
        match self {
            Self::Gpt2Nano | Self::BertNano => Rule::AdamW { rate: 3e-3, decay: 0.01 },
            Self::LstmNano => Rule::AdamW { rate: 1e-2, decay: 0.01 },
            Self::Gpt2Small | Self::Gpt2Large | Self::BertBase | Self::BertLarge | Self::Lstm => {
                Rule::AdamW { rate: 3e-4, decay: 0.01 }
            }
            Self::ResnetNano | Self::DensenetNano => Rule::Nesterov { rate: 0.05, decay: 1e-4 },
            Self::VggNano => Rule::Nesterov { rate: 0.01, decay: 1e-4 },
            _ => Rule::Nesterov { rate: 1e-3, decay: 1e-4 },
        }
    }

    fn with(self, optimiser: Optimiser) -> Tape {
        self.resized(None, optimiser, false)
    }

    pub(super) fn resized(self, size: Option<Size>, optimiser: Optimiser, implicit: bool) -> Tape {
        let batch = |own: usize| size.map_or(own, |size| size.batch);
        let seq = |own: usize| size.map_or(own, |size| size.seq);
        match self.net() {
            Net::Gpt2(net) => {
                let seq = seq(net.seq).min(net.positions);
                Gpt2 { batch: batch(net.batch), seq, ..net }.tape(optimiser)
            }
            Net::Bert(net) => {
                let seq = seq(net.seq).min(net.positions);
                Bert { batch: batch(net.batch), seq, ..net }.tape(optimiser)
            }
            Net::Lstm(net) => Lstm { batch: batch(net.batch), seq: seq(net.seq), ..net }.tape(optimiser),
            Net::Resnet(net) => Resnet { batch: batch(net.batch), implicit, ..net }.tape(optimiser),
            Net::Densenet(net) => Densenet { batch: batch(net.batch), implicit, ..net }.tape(optimiser),
            Net::Vgg(net) => Vgg { batch: batch(net.batch), implicit, ..net }.tape(optimiser),
        }
    }
}
