//! Benchmarks that train models on GPUs.

use super::entry::{Benchmark, Metric, RunsOn, Stage};
use super::gpu::SENSORS;
use crate::ComponentKind::{Gpu, Gpus};
use crate::{Category, Unit};

const fn training(name: &'static str, about: &'static str, metrics: &'static [Metric]) -> Benchmark {
    Benchmark::gpu(name, about, metrics, SENSORS).limit_s([60, 180, 900, 3600]).stage(Stage::EndToEnd)
}

const fn step(pattern: &'static str, title: &'static str) -> Metric {
    Metric::time(pattern, Gpu, title)
}

/// What a training of one model by all GPUs gives.
macro_rules! together {
    ($($name:literal: $title:literal,)*) => {
        &[$(
            Metric::time(concat!($name, "_step_time"), Gpus, concat!("training step over all GPUs, ", $title)),
            step(concat!($name, "_compute_time:{gpu}"), concat!("training step without all-reduce, ", $title)),
            Metric::time(concat!($name, "_reduce_time"), Gpus, concat!("gradient all-reduce alone, ", $title))
                .category(Category::NvLink),
            Metric::rate(
                concat!($name, "_overlap"), Gpus, Unit::Ratio,
                concat!("overlap of training and all-reduce, ", $title)
            ),
        )*]
    };
}

pub(super) const ALL: [Benchmark; 8] = [
    training(
        "gpu-train-gpt2",
        "GPU: training steps of GPT-2, in bf16 and fp32; every loss has one right value",
        &[
            step("gpt2-nano_bf16_train_step_time:{gpu}", "training step, nano GPT-2 (bf16)"),
            step("gpt2-nano_fp32_train_step_time:{gpu}", "training step, nano GPT-2 (fp32)"),
            step("gpt2-small_bf16_train_step_time:{gpu}", "training step, GPT-2 small (bf16)"),
            step("gpt2-small_fp32_train_step_time:{gpu}", "training step, GPT-2 small (fp32)"),
            step("gpt2-large_bf16_train_step_time:{gpu}", "training step, GPT-2 large (bf16)"),
            step("gpt2-large_fp32_train_step_time:{gpu}", "training step, GPT-2 large (fp32)"),
        ],
    ),
    training(
        "gpu-train-bert",
        "GPU: training steps of BERT, in bf16 and fp32; every loss has one right value",
        &[
            step("bert-nano_bf16_train_step_time:{gpu}", "training step, nano BERT (bf16)"),
            step("bert-nano_fp32_train_step_time:{gpu}", "training step, nano BERT (fp32)"),
            step("bert-base_bf16_train_step_time:{gpu}", "training step, BERT base (bf16)"),
            step("bert-base_fp32_train_step_time:{gpu}", "training step, BERT base (fp32)"),
            step("bert-large_bf16_train_step_time:{gpu}", "training step, BERT large (bf16)"),
            step("bert-large_fp32_train_step_time:{gpu}", "training step, BERT large (fp32)"),
        ],
    ),
    training(
        "gpu-train-lstm",
        "GPU: training steps of an LSTM, in bf16 and fp32; every loss has one right value",
        &[
            step("lstm-nano_bf16_train_step_time:{gpu}", "training step, nano LSTM (bf16)"),
            step("lstm-nano_fp32_train_step_time:{gpu}", "training step, nano LSTM (fp32)"),
            step("lstm_bf16_train_step_time:{gpu}", "training step, LSTM of 8 layers (bf16)"),
            step("lstm_fp32_train_step_time:{gpu}", "training step, LSTM of 8 layers (fp32)"),
        ],
    ),
    training(
        "gpu-train-resnet",
        "GPU: training steps of ResNet, in bf16 and fp32; every loss has one right value",
        &[
            step("resnet-nano_bf16_train_step_time:{gpu}", "training step, nano ResNet (bf16)"),
            step("resnet-nano_fp32_train_step_time:{gpu}", "training step, nano ResNet (fp32)"),
            step("resnet50_bf16_train_step_time:{gpu}", "training step, ResNet-50 (bf16)"),
            step("resnet50_fp32_train_step_time:{gpu}", "training step, ResNet-50 (fp32)"),
            step("resnet101_bf16_train_step_time:{gpu}", "training step, ResNet-101 (bf16)"),
            step("resnet101_fp32_train_step_time:{gpu}", "training step, ResNet-101 (fp32)"),
            step("resnet152_bf16_train_step_time:{gpu}", "training step, ResNet-152 (bf16)"),
            step("resnet152_fp32_train_step_time:{gpu}", "training step, ResNet-152 (fp32)"),
        ],
    ),
    training(
        "gpu-train-densenet",
        "GPU: training steps of DenseNet, in bf16 and fp32; every loss has one right value",
        &[
            step("densenet-nano_bf16_train_step_time:{gpu}", "training step, nano DenseNet (bf16)"),
            step("densenet-nano_fp32_train_step_time:{gpu}", "training step, nano DenseNet (fp32)"),
            step("densenet169_bf16_train_step_time:{gpu}", "training step, DenseNet-169 (bf16)"),
            step("densenet169_fp32_train_step_time:{gpu}", "training step, DenseNet-169 (fp32)"),
            step("densenet201_bf16_train_step_time:{gpu}", "training step, DenseNet-201 (bf16)"),
            step("densenet201_fp32_train_step_time:{gpu}", "training step, DenseNet-201 (fp32)"),
        ],
    ),
    training(
        "gpu-train-vgg",
        "GPU: training steps of VGG, in bf16 and fp32; every loss has one right value",
        &[
            step("vgg-nano_bf16_train_step_time:{gpu}", "training step, nano VGG (bf16)"),
            step("vgg-nano_fp32_train_step_time:{gpu}", "training step, nano VGG (fp32)"),
            step("vgg11_bf16_train_step_time:{gpu}", "training step, VGG-11 (bf16)"),
            step("vgg11_fp32_train_step_time:{gpu}", "training step, VGG-11 (fp32)"),
            step("vgg13_bf16_train_step_time:{gpu}", "training step, VGG-13 (bf16)"),
            step("vgg13_fp32_train_step_time:{gpu}", "training step, VGG-13 (fp32)"),
            step("vgg16_bf16_train_step_time:{gpu}", "training step, VGG-16 (bf16)"),
            step("vgg16_fp32_train_step_time:{gpu}", "training step, VGG-16 (fp32)"),
            step("vgg19_bf16_train_step_time:{gpu}", "training step, VGG-19 (bf16)"),
            step("vgg19_fp32_train_step_time:{gpu}", "training step, VGG-19 (fp32)"),
        ],
    ),
    training(
        "gpu-train-stress",
        "GPU: training steps of GPT-2 large for a minute, ten minutes (standard) or an hour (full), one value a minute",
        &[
            step("gpt2-nano_bf16_window_step_time:{gpu}", "training step over a window, nano GPT-2 (bf16)"),
            step("gpt2-small_bf16_window_step_time:{gpu}", "training step over a minute, GPT-2 small (bf16)"),
            step("gpt2-large_bf16_window_step_time:{gpu}", "training step over a minute, GPT-2 large (bf16)"),
        ],
    )
    .limit_s([60, 180, 900, 4200]),
    training(
        "gpu-train-ddp",
        "GPUs: training steps of one model by all GPUs of a node, gradients all-reduced meanwhile; every loss comes again",
        together!(
            "vgg-nano_bf16": "nano VGG (bf16)",
            "lstm-nano_bf16": "nano LSTM (bf16)",
            "gpt2-small_bf16": "GPT-2 small (bf16)",
            "gpt2-large_bf16": "GPT-2 large (bf16)",
            "bert-base_bf16": "BERT base (bf16)",
            "bert-large_bf16": "BERT large (bf16)",
            "lstm_bf16": "LSTM of 8 layers (bf16)",
            "resnet50_bf16": "ResNet-50 (bf16)",
            "resnet101_bf16": "ResNet-101 (bf16)",
            "resnet152_bf16": "ResNet-152 (bf16)",
            "densenet169_bf16": "DenseNet-169 (bf16)",
            "densenet201_bf16": "DenseNet-201 (bf16)",
            "vgg11_bf16": "VGG-11 (bf16)",
            "vgg13_bf16": "VGG-13 (bf16)",
            "vgg16_bf16": "VGG-16 (bf16)",
            "vgg19_bf16": "VGG-19 (bf16)",
        ),
    )
    .limit_s([120, 240, 900, 3600])
    .runs_on(RunsOn::AllGpus),
];
