//! Training steps by kernels are the CPU's: every operation, forward and backward, on simulated hardware.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

mod library;
mod sim;

use muster_gpu::train::{How, Part, Pieces, Precision, Program};
use muster_ptxsim::{Faults, Unit};
use muster_tape::{Bucket, Cpu, Fill, Kind, Model, Op, Replica, Size, Span, Start, State, Tape};
use sim::Sim;

const SEED: u64 = 7;
/// As little text as shows what whole steps do.
const SHORT: Size = Size { batch: 1, seq: 16 };

fn simulated(tape: &Tape, how: How, faults: Faults) -> Sim {
    Sim::new(tape, Program::new(tape, SEED, how).unwrap(), faults)
}

fn how(precision: Precision, wgmma: bool) -> How {
    How { precision, wgmma, sms: 4, library: false }
}

/// With products by cuBLASLt, on a GPU that could do them by warpgroups.
fn by_library(precision: Precision) -> How {
    How { library: true, ..how(precision, true) }
}

/// Norm of the difference over the norm.
fn error(got: &[f32], right: &[f32]) -> f64 {
    let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
    let apart = norm(&mut got.iter().zip(right).map(|(a, b)| f64::from(*a) - f64::from(*b)));
    let size = norm(&mut right.iter().map(|x| f64::from(*x)));
    if size == 0.0 { apart } else { apart / size }
}

fn nano() -> impl Iterator<Item = Model> {
    Model::ALL.into_iter().filter(|model| model.name().ends_with("-nano"))
}

/// The step of `tape` by kernels and by the CPU: losses, and the elements of `spans` with the largest error among them.
fn both(tape: &Tape, how: How, spans: &[Span]) -> ([f32; 2], f64) {
    let mut cpu = Cpu::new(tape, SEED).unwrap();
    let mut sim = simulated(tape, how, Faults::default());
    for state in &tape.state {
        assert_eq!(sim.elements(state.span), cpu.elements(state.span), "{} at first", state.name);
    }
    let right = cpu.train(1, &|_| {}, |train| train.step()).unwrap().unwrap();
    let got = sim.step();
    let errors = spans.iter().map(|span| error(&sim.elements(*span), cpu.elements(*span)));
    // What is no number is the worst.
    let worst = errors.fold(0.0, |worst, error| if error <= worst { worst } else { error });
    ([got, right], worst)
}

/// A tape of one operation of `tape`, with inputs that it could have.
fn single(tape: &Tape, op: &Op) -> Tape {
    let read = |(number, span): (usize, &Span)| {
        let known = tape.state.iter().find(|state| state.span == *span).map(|state| state.fill);
        let fill = match op.kind {
            Kind::MaxPoolBackward(window) if number == 1 => Fill::Index { below: (window.size * window.size) as u32 },
            _ => known.filter(|fill| !matches!(fill, Fill::Zero)).unwrap_or(Fill::Uniform { bound: 1.0 }),
        };
        (*span, fill)
    };
    let added_to = match op.kind {
        Kind::Gemm(gemm) => gemm.start == Start::Add,
        Kind::EmbeddingBackward { .. } => true,
        _ => false,
    };
    let added_to = op.writes.iter().filter(|_| added_to).map(|span| (*span, Fill::Uniform { bound: 1.0 }));
    let state = |(span, fill)| State { name: "input".to_owned(), span, fill, gradient: None };
    let inputs = op.reads.iter().enumerate().map(read).chain(added_to).map(state);
    let loss = Span { len: 1, ..op.writes[0] };
    Tape { ops: vec![op.clone()], state: inputs.collect(), loss, updates: None, ..tape.clone() }
}

/// The steps of the small models with windows in memory, and without.
fn tapes() -> impl Iterator<Item = Tape> {
    nano().flat_map(|model| [model.tape(), model.implicit(model.size())])
}

/// Operations of the small models, each shape once, without those that only a whole step can show.
fn operations() -> Vec<(Tape, Op)> {
    let mut seen: Vec<Kind> = Vec::new();
    let mut found = Vec::new();
    for tape in tapes() {
        for op in &tape.ops {
            let alone = !matches!(op.kind, Kind::AdamW { .. } | Kind::Nesterov { .. });
            if alone && !seen.contains(&op.kind) {
                seen.push(op.kind);
                found.push((single(&tape, op), op.clone()));
            }
        }
    }
    found
}

#[test]
fn every_operation_in_f32_is_the_cpus() {
    for (tape, op) in operations() {
        let (_, error) = both(&tape, how(Precision::Fp32, false), &op.writes);
        assert!(error < 2e-6, "{:?} is off by {error:.1e}", op.kind);
    }
}

#[test]
fn every_product_in_bf16_is_the_cpus_as_far_as_bf16_goes() {
    let products = |op: &Op| {
        let gathered = matches!(op.kind, Kind::Convolve(_) | Kind::ConvolveBack(_) | Kind::ConvolveFilter(_));
        gathered || matches!(op.kind, Kind::Gemm(_) | Kind::Attention(_) | Kind::AttentionBackward(_))
    };
    for (tape, op) in operations().into_iter().filter(|(_, op)| products(op)) {
        for wgmma in [false, true] {
            let (_, error) = both(&tape, how(Precision::Bf16, wgmma), &op.writes);
            // Below would be f32, and something else than what is measured.
            assert!(error > 1e-5 && error < 6e-3, "{:?} is off by {error:.1e}", op.kind);
        }
    }
}

#[test]
fn every_product_that_the_library_is_asked_for_is_the_cpus() {
    let mut seen = [0; 4];
    for (tape, op) in operations() {
        let Kind::Gemm(gemm) = op.kind else { continue };
        seen[0] += usize::from(gemm.start == Start::Add);
        seen[1] += usize::from(gemm.start == Start::Bias && gemm.gelu);
        seen[2] += usize::from(gemm.a_transposed);
        seen[3] += usize::from(gemm.b_transposed);
        for (precision, most) in [(Precision::Fp32, 2e-6), (Precision::Bf16, 6e-3)] {
            let (_, error) = both(&tape, by_library(precision), &op.writes);
            assert!(error < most, "{:?} in {precision:?} is off by {error:.1e}", op.kind);
            assert!(precision == Precision::Fp32 || error > 1e-5, "{:?} is off by {error:.1e}", op.kind);
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn no_product_is_left_to_our_own_kernels_where_the_library_does_them() {
    for model in nano() {
        let program = |how| Program::new(&model.tape(), SEED, how).unwrap();
        let (own, with) = (program(how(Precision::Bf16, true)), program(by_library(Precision::Bf16)));
        let own_products = |part: &&Part| matches!(part, Part::Kernel(launch) if launch.kernel == "product_wgmma");
        let of_library = |part: &&Part| matches!(part, Part::Library(_));
        assert_eq!(with.step.iter().filter(own_products).count(), 0);
        assert_eq!(own.step.iter().filter(own_products).count(), with.step.iter().filter(of_library).count());
        assert_eq!(own.step.iter().filter(of_library).count(), 0);
    }
}

#[test]
fn a_step_in_f32_is_the_cpus_in_every_weight_and_gradient() {
    for (model, tape) in nano().zip(nano().map(|model| model.implicit(model.size()))) {
        // After one step the moments are the gradients.
        let moments = |state: &&State| state.name.ends_with("moment") || state.name.ends_with("velocity");
        let spans: Vec<Span> = tape.state.iter().filter(moments).map(|state| state.span).collect();
        assert!(!spans.is_empty());
        let ([got, right], error) = both(&tape, how(Precision::Fp32, false), &spans);
        assert!((got / right - 1.0).abs() < 1e-5, "{}: loss {got}, not {right}", model.name());
        assert!(error < 3e-4, "{}: a gradient is off by {error:.1e}", model.name());
    }
}

#[test]
fn ten_steps_in_bf16_have_the_cpus_losses_and_come_again_to_the_bit() {
    // The others differ from these in operations, which are tested one by one.
    let own = [true, false].map(|wgmma| how(Precision::Bf16, wgmma));
    let library = by_library(Precision::Bf16);
    let steps =
        [(own[0], Model::Gpt2Nano), (own[1], Model::ResnetNano), (library, Model::Gpt2Nano), (library, Model::VggNano)];
    for (how, model) in steps {
        let tape = if how.library { model.tape() } else { model.implicit(model.size()) };
        let mut sim = simulated(&tape, how, Faults::default());
        let losses: Vec<f32> = (0..10).map(|_| sim.step()).collect();
        let mut cpu = Cpu::new(&tape, SEED).unwrap();
        let right: Vec<f32> = cpu.train(1, &|_| {}, |train| (0..10).map(|_| train.step().unwrap()).collect()).unwrap();
        for (got, right) in losses.iter().zip(&right) {
            assert!((got / right - 1.0).abs() < 2e-2, "{}: {losses:?}, not {right:?}", model.name());
        }
        assert!(losses[9] < 0.9 * losses[0], "{}: {losses:?}", model.name());
        sim.restart();
        let again: Vec<f32> = (0..2).map(|_| sim.step()).collect();
        assert_eq!(again, losses[..2], "{}", model.name());
    }
}

#[test]
fn a_flipped_bit_of_one_product_changes_the_loss() {
    let tape = Model::Gpt2Nano.sized(SHORT);
    let losses = |faults| {
        let mut sim = simulated(&tape, how(Precision::Bf16, false), faults);
        [sim.step(), sim.step()]
    };
    let flip = muster_ptxsim::Flip { sm: Some(2), unit: Unit::Mma, bit: 20, every: 20 };
    assert_ne!(losses(Faults::default()), losses(Faults { flips: vec![flip], ..Faults::default() }));
}

/// Replicas by kernels, gradients added up in between as GPUs do it; the mean gradients of the first step, and all losses.
fn replicas(tape: &Tape, buckets: &[Bucket], (count, steps): (usize, usize)) -> (Vec<f32>, Vec<f32>) {
    let pieces = Pieces::new(tape, (SEED, how(Precision::Fp32, false)), (buckets, count)).unwrap();
    let start = |rank: usize| {
        let setup = [pieces.setup.clone(), Pieces::data(tape, SEED, rank as u64)].concat();
        Sim::new(tape, Program { setup, step: Vec::new(), space: pieces.space }, Faults::default())
    };
    let mut sims: Vec<Sim> = (0..count).map(start).collect();
    let (mut first, mut losses) = (Vec::new(), Vec::new());
    for _ in 0..steps {
        let mut sums = vec![0.0; pieces.gradients.len];
        for sim in &mut sims {
            let mut done = 0;
            for (piece, bucket) in pieces.backward.iter().zip(buckets) {
                piece.iter().for_each(|launch| sim.run(launch));
                // A bucket is ready when its piece is done: whatever comes later leaves it as it is.
                let at = bucket.span.offset - pieces.gradients.offset;
                assert!(at >= done);
                done = at + bucket.span.len;
                let part = sums[at..done].iter_mut();
                part.zip(sim.elements(bucket.span)).for_each(|(sum, gradient)| *sum += gradient);
            }
            losses.push(sim.loss());
        }
        for sim in &mut sims {
            sim.put(pieces.gradients, &sums);
            pieces.update.iter().for_each(|launch| sim.run(launch));
        }
        first = if first.is_empty() { sums } else { first };
    }
    (first, losses)
}

#[test]
fn replicas_in_f32_have_the_gradients_and_losses_of_replicas_on_cpus() {
    for (model, batch, seq) in [(Model::Gpt2Nano, 1, 8), (Model::LstmNano, 1, 2), (Model::ResnetNano, 2, 1)] {
        let (tape, name) = (model.parallel_sized(Size { batch, seq }), model.name());
        let buckets = tape.buckets(tape.parameters / 4);
        let (gradients, losses) = replicas(&tape, &buckets, (2, 2));
        let mut team = [0, 1].map(|_| Replica::new(&tape, SEED).unwrap());
        team.iter_mut().enumerate().for_each(|(rank, replica)| replica.load(rank as u64));
        let mut right = Vec::new();
        for step in 0..2 {
            right.extend(team.iter_mut().map(Replica::backward));
            let mut sums = vec![0.0; team[0].parameters()];
            team.iter_mut().for_each(|replica| replica.gradients(&mut sums));
            sums.iter_mut().for_each(|sum| *sum *= 0.5);
            team.iter_mut().for_each(|replica| replica.update(&sums));
            let mut rest = &sums[..];
            for state in tape.state.iter().filter(|_| step == 0) {
                let Some(span) = state.gradient else { continue };
                let at = span.offset - buckets[0].span.offset;
                let (mine, later) = rest.split_at(span.len);
                rest = later;
                let error = error(&gradients[at..at + span.len], mine);
                assert!(error < 3e-4, "{name}: the gradient of {} is off by {error:.1e}", state.name);
            }
        }
        for (at, (got, right)) in losses.iter().zip(&right).enumerate() {
            // Later steps have weights that differ, where a gradient near zero had another sign.
            let bound = if at < 2 { 1e-5 } else { 1e-3 };
            assert!((got / right - 1.0).abs() < bound, "{name}: {losses:?}, not {right:?}");
        }
        assert_ne!(right[0], right[1], "{name}: each has data of its own");
    }
}
