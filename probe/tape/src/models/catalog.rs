//! The models that can be trained, their names and sizes.

use crate::build::{Optimiser, Rule};
use crate::tape::Tape;

use super::bert::Bert;
use super::gpt2::Gpt2;
use super::lstm::Lstm;
use super::resnet::Resnet;

/// A model in one size. Nano models take milliseconds a step on one core; the others are the published sizes with a
/// batch that one core can do in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// 2 layers, 64 wide, 2 sequences of 32 tokens.
    Gpt2Nano,
    /// 124 million parameters, 1 sequence of 128 tokens.
    Gpt2Small,
    /// 2 layers, 64 wide, 2 sequences of 32 tokens.
    BertNano,
    /// 110 million parameters, 1 sequence of 128 tokens.
    BertBase,
    /// 2 layers, 48 wide, 4 sequences of 12 steps.
    LstmNano,
    /// 8 layers, 1000 wide, 8 sequences of 32 steps; 61 million parameters.
    Lstm,
    /// 2 blocks, 8 images of 8 x 8.
    ResnetNano,
    /// 25.6 million parameters, 4 images of 224 x 224.
    Resnet50,
}

impl Model {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Gpt2Nano,
        Self::Gpt2Small,
        Self::BertNano,
        Self::BertBase,
        Self::LstmNano,
        Self::Lstm,
        Self::ResnetNano,
        Self::Resnet50,
    ];

    /// The name in metrics, such as `gpt2-small`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpt2Nano => "gpt2-nano",
            Self::Gpt2Small => "gpt2-small",
            Self::BertNano => "bert-nano",
            Self::BertBase => "bert-base",
            Self::LstmNano => "lstm-nano",
            Self::Lstm => "lstm",
            Self::ResnetNano => "resnet-nano",
            Self::Resnet50 => "resnet50",
        }
    }

    /// Forward, backward and update.
    #[must_use]
    pub fn tape(self) -> Tape {
        self.with(self.rule().at_once())
    }

    /// The same with all updates after all gradients, for [`crate::Replica`]. The steps of a model alone give the same losses.
    #[must_use]
    pub fn parallel_tape(self) -> Tape {
        self.with(self.rule().apart())
    }

    const fn rule(self) -> Rule {
        match self {
            Self::Gpt2Nano | Self::BertNano => Rule::AdamW { rate: 3e-3, decay: 0.01 },
            Self::LstmNano => Rule::AdamW { rate: 1e-2, decay: 0.01 },
            Self::Gpt2Small | Self::BertBase | Self::Lstm => Rule::AdamW { rate: 3e-4, decay: 0.01 },
            Self::ResnetNano => Rule::Nesterov { rate: 0.05, decay: 1e-4 },
            Self::Resnet50 => Rule::Nesterov { rate: 1e-3, decay: 1e-4 },
        }
    }

    pub(super) fn with(self, optimiser: Optimiser) -> Tape {
        match self {
            Self::Gpt2Nano => Gpt2::NANO.tape(optimiser),
            Self::Gpt2Small => Gpt2::SMALL.tape(optimiser),
            Self::BertNano => Bert::NANO.tape(optimiser),
            Self::BertBase => Bert::BASE.tape(optimiser),
            Self::LstmNano => Lstm::NANO.tape(optimiser),
            Self::Lstm => Lstm::FULL.tape(optimiser),
            Self::ResnetNano => Resnet::NANO.tape(optimiser),
            Self::Resnet50 => Resnet::FIFTY.tape(optimiser),
        }
    }
}
