//! What every model must do: learn, by right gradients, with the same bits everywhere.

use super::{Model, Size};
use crate::Tape;
use crate::build::Rule;
use crate::cpu::isa::Isa;
use crate::cpu::machine::Machine;
use crate::number::Number;
use crate::random::{Fill, mixed};

fn nanos() -> impl Iterator<Item = Model> {
    Model::ALL.into_iter().filter(|model| model.name().ends_with("-nano"))
}

/// Each of them with windows in memory, and without.
fn tapes() -> impl Iterator<Item = (Model, Tape)> {
    nanos().flat_map(|model| [(model, model.tape()), (model, model.implicit(model.size()))])
}

fn losses<T: Number>(tape: &Tape, (isa, threads): (Isa, usize), steps: usize) -> Vec<f32> {
    let mut machine = Machine::<T>::new(tape, 42, isa).unwrap();
    machine.train(threads, &|_| {}, |train| (0..steps).map(|_| train.step().unwrap()).collect()).unwrap()
}

fn bits(losses: &[f32]) -> Vec<u32> {
    losses.iter().map(|loss| loss.to_bits()).collect()
}

#[test]
fn the_loss_falls_in_fifty_steps() {
    for (model, tape) in tapes() {
        let seen = losses::<f32>(&tape, (Isa::best(), 1), 50);
        let (first, last) = (seen[0], seen[49]);
        assert!(last < 0.5 * first, "{}: {first} to {last}", model.name());
        assert!(seen.windows(11).all(|w| w[10] < w[0] * 1.02), "{}: {seen:?}", model.name());
    }
}

#[test]
fn losses_are_the_same_bits_for_every_number_of_threads_and_instruction_set_and_run() {
    for (model, tape) in tapes() {
        let right = bits(&losses::<f32>(&tape, (Isa::Portable, 1), 4));
        let sets = Isa::usable().into_iter().map(|isa| (isa, 1));
        for how in sets.chain([(Isa::best(), 2), (Isa::best(), 4)]) {
            assert_eq!(bits(&losses::<f32>(&tape, how, 4)), right, "{} {how:?}", model.name());
        }
    }
}

#[test]
fn a_restart_gives_the_same_losses_again_and_a_flipped_bit_others() {
    for model in nanos() {
        let tape = model.tape();
        let mut machine = Machine::<f32>::new(&tape, 42, Isa::best()).unwrap();
        let run = |machine: &mut Machine<'_, f32>, restart: bool| -> Vec<u32> {
            let steps = |train: &mut dyn crate::Steps| {
                if restart {
                    train.restart();
                }
                (0..4).map(|_| train.step().unwrap().to_bits()).collect()
            };
            machine.train(2, &|_| {}, steps).unwrap()
        };
        let first = run(&mut machine, false);
        assert_eq!(run(&mut machine, true), first, "{}", model.name());
        let mut machine = Machine::<f32>::new(&tape, 42, Isa::best()).unwrap();
        let weight = tape.state.iter().find(|s| s.name.ends_with("weights")).unwrap().span;
        let flipped = &mut machine.elements()[weight.offset + weight.len / 2];
        *flipped = f32::from_bits(flipped.to_bits() ^ (1 << 22));
        assert_ne!(run(&mut machine, false), first, "{}", model.name());
    }
}

#[test]
fn f32_and_f64_tell_the_same_story() {
    for (model, tape) in tapes() {
        let (single, double) = (losses::<f32>(&tape, (Isa::best(), 1), 5), losses::<f64>(&tape, (Isa::best(), 1), 5));
        for (a, b) in single.iter().zip(&double) {
            assert!((a - b).abs() < 1e-3 * b.abs(), "{}: {single:?} {double:?}", model.name());
        }
    }
}

/// Central differences along a random direction in each weight buffer, and of single elements, in f64.
#[test]
fn gradients_are_the_slopes_of_the_loss() {
    for (model, implicit) in nanos().flat_map(|model| [(model, false), (model, true)]) {
        let tape = model.resized(None, Rule::Keep.at_once(), implicit);
        let mut machine = Machine::<f64>::new(&tape, 42, Isa::best()).unwrap();
        // Off the symmetric start: zero biases hide errors.
        for (number, state) in tape.state.iter().enumerate().filter(|(_, s)| s.gradient.is_some()) {
            for at in 0..state.span.len {
                let moved = Fill::Uniform { bound: 0.05 }.element(9, number, at);
                machine.elements()[state.span.offset + at] += moved;
            }
        }
        let loss = |machine: &mut Machine<'_, f64>| {
            machine.train(1, &|_| {}, |train| train.step().unwrap()).unwrap();
            machine.elements()[tape.loss.offset]
        };
        loss(&mut machine);
        let after = machine.elements().to_vec();
        for (number, state) in tape.state.iter().enumerate() {
            let Some(gradient) = state.gradient else { continue };
            for direction in 0..3 {
                let only = mixed(number as u64) as usize % state.span.len;
                let step = |at: usize| match direction {
                    0 => f64::from(at == only),
                    _ => Fill::Uniform { bound: 1.0 }.element(direction, number, at),
                };
                let expected: f64 = (0..state.span.len).map(|at| step(at) * after[gradient.offset + at]).sum();
                let mut at_distance = |h: f64| {
                    let weights = state.span.offset..state.span.end();
                    machine.elements()[weights.clone()].iter_mut().enumerate().for_each(|(at, w)| *w += h * step(at));
                    let value = loss(&mut machine);
                    machine.elements()[weights.clone()].copy_from_slice(&after[weights]);
                    value
                };
                // Small, so that few of the rectifiers change sides.
                let h = 3e-7;
                let slope = (at_distance(h) - at_distance(-h)) / (2.0 * h);
                let error = (slope - expected).abs();
                assert!(error < 1e-6 + 1e-5 * expected.abs(), "{} {}: {slope} {expected}", model.name(), state.name);
            }
        }
    }
}

#[test]
fn every_weight_has_a_gradient_and_every_read_was_written_before() {
    for (model, implicit) in nanos().flat_map(|model| [(model, false), (model, true)]) {
        let tape = model.resized(None, Rule::Keep.at_once(), implicit);
        let trained: usize = tape.state.iter().filter(|s| s.gradient.is_some()).map(|s| s.span.len).sum();
        assert_eq!(trained, tape.parameters, "{}", model.name());
        let mut written = vec![false; tape.memory];
        tape.state.iter().for_each(|s| written[s.span.offset..s.span.end()].fill(true));
        for (at, op) in tape.ops.iter().enumerate() {
            for read in &op.reads {
                assert!(written[read.offset..read.end()].iter().all(|w| *w), "{} op {at} {:?}", model.name(), op.kind);
            }
            op.writes.iter().for_each(|w| written[w.offset..w.end()].fill(true));
        }
    }
}

#[test]
fn no_operation_writes_what_it_reads_or_one_place_twice() {
    for (model, tape) in Model::ALL.into_iter().flat_map(|m| [(m, m.tape()), (m, m.implicit(m.size()))]) {
        for (at, op) in tape.ops.iter().enumerate() {
            for (i, write) in op.writes.iter().enumerate() {
                let others = op.reads.iter().chain(&op.writes[i + 1..]);
                for other in others {
                    let apart = write.end() <= other.offset || other.end() <= write.offset;
                    assert!(apart, "{} op {at} {:?}: {write:?} {other:?}", model.name(), op.kind);
                }
            }
        }
    }
}

#[test]
fn sizes_are_the_published_ones() {
    let parameters = |model: Model| model.tape().parameters;
    // openai-community/gpt2 counts the tied table once.
    assert_eq!(parameters(Model::Gpt2Small), 124_439_808);
    // transformers' BertForMaskedLM, bert-base-uncased.
    assert_eq!(parameters(Model::BertBase), 109_514_298);
    // torchvision's resnet50.
    assert_eq!(parameters(Model::Resnet50), 25_557_032);
    // torchvision's, and openai-community/gpt2-large, which counts the tied table once.
    let others = [
        (Model::Resnet101, 44_549_160),
        (Model::Resnet152, 60_192_808),
        (Model::Densenet169, 14_149_480),
        (Model::Densenet201, 20_013_928),
        (Model::Vgg11, 132_863_336),
        (Model::Vgg13, 133_047_848),
        (Model::Vgg16, 138_357_544),
        (Model::Vgg19, 143_667_240),
        (Model::Gpt2Large, 774_030_080),
        // transformers' BertForMaskedLM, bert-large-uncased.
        (Model::BertLarge, 335_174_458),
    ];
    others.into_iter().for_each(|(model, count)| assert_eq!(parameters(model), count, "{}", model.name()));
    // torch.nn.LSTM(224, 1000, 8) and Linear(1000, 100) have 61 060 100, 8 x 4000 of them second biases.
    assert_eq!(parameters(Model::Lstm), 61_060_100 - 32_000);
}

#[test]
fn another_batch_has_the_same_weights_and_more_to_learn_from() {
    for model in nanos() {
        let (own, double) = (model.tape(), model.sized(Size { batch: 16, seq: 16 }));
        assert_eq!(own.parameters, double.parameters, "{}", model.name());
        assert!(double.items == 16 || double.items == 16 * 16, "{}: {}", model.name(), double.items);
    }
    let long = Model::Gpt2Nano.sized(Size { batch: 1, seq: 1000 });
    assert_eq!(long.items, 64, "no longer than its table of positions");
}

#[test]
fn one_memory_is_far_smaller_than_all_buffers_side_by_side() {
    for model in Model::ALL {
        let tape = model.tape();
        let side_by_side: usize = tape.ops.iter().flat_map(|op| &op.writes).map(|w| w.len).sum();
        assert!(tape.memory < side_by_side, "{}: {} of {side_by_side}", model.name(), tape.memory);
    }
    // Nobody keeps windows for the way back.
    for model in [Model::Resnet50, Model::Vgg11, Model::Densenet169] {
        let (with, without) = (model.tape().memory, model.implicit(model.size()).memory);
        assert!(without < with, "{}: {without} of {with}", model.name());
    }
    // Weights, two moments each, and little beside them.
    let tape = Model::Gpt2Small.tape();
    assert!(tape.memory < 4 * tape.parameters, "{} elements", tape.memory);
}
