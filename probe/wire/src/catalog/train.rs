//! Benchmarks that train a model.

use super::entry::{Benchmark, Metric, MetricRole, Stage};
use crate::Category;
use crate::ComponentKind::{Application, Gpu, Nic};
use crate::TRAIN_DDP;

const fn training(name: &'static str, about: &'static str, metrics: &'static [Metric]) -> Benchmark {
    Benchmark::host(name, about, metrics).limit_s([30, 60, 240, 700]).stage(Stage::EndToEnd).category(Category::Unknown)
}

const fn step(pattern: &'static str, title: &'static str) -> Metric {
    Metric::time(pattern, Application, title)
}

/// Of all nodes together. In a step everybody waits for the slowest: only the time that a node computes itself is its own.
pub(super) const DDP: Benchmark = training(
    TRAIN_DDP,
    "steps of one training over all nodes; every step must leave all of them with the same weights",
    &[
        step("compute_time", "computing in a step of the training over all nodes"),
        Metric::time("compute_time:{gpu}", Gpu, "computing of one GPU in a step of the training over all nodes"),
        step("step_time", "step of the training over all nodes").role(MetricRole::Informational),
        Metric::time("comm_time", Nic, "communication in a step, waiting for other nodes among it")
            .role(MetricRole::Informational),
    ],
);

pub(super) const ALL: [Benchmark; 4] = [
    training(
        "train-gpt2",
        "training steps of a nano GPT-2, from standard on of GPT-2 small (1.7 GB); every loss has one right value",
        &[
            step("gpt2-nano_fp32_train_step_time", "training step, nano GPT-2"),
            step("gpt2-small_fp32_train_step_time", "training step, GPT-2 small"),
        ],
    ),
    training(
        "train-bert",
        "training steps of a nano BERT, from standard on of BERT base (1.4 GB); every loss has one right value",
        &[
            step("bert-nano_fp32_train_step_time", "training step, nano BERT"),
            step("bert-base_fp32_train_step_time", "training step, BERT base"),
        ],
    ),
    training(
        "train-lstm",
        "training steps of a nano LSTM, from standard on of 8 layers of 1000 (0.8 GB); every loss has one right value",
        &[
            step("lstm-nano_fp32_train_step_time", "training step, nano LSTM"),
            step("lstm_fp32_train_step_time", "training step, 8-layer LSTM"),
        ],
    ),
    training(
        "train-resnet",
        "training steps of a nano ResNet, from standard on of ResNet-50 (0.8 GB); every loss has one right value",
        &[
            step("resnet-nano_fp32_train_step_time", "training step, nano ResNet"),
            step("resnet50_fp32_train_step_time", "training step, ResNet-50"),
        ],
    ),
];
