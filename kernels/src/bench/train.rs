//! How fast a GPU trains models as SuperBench does, and whether every step gives the one right loss.

use std::time::{Duration, Instant};

use muster_tape::{Cycle, Model, Size, Tape};
use muster_wire::Profile;

use super::run::Run;
use crate::cublaslt::CublasLt;
use crate::driver::{Gpu, Trouble};
use crate::train::{Precision, SEED, Trainer, With, lacking};

/// Models of one family, the smallest first, each with what is trained on in one step.
pub(super) struct Family {
    pub(super) nano: Model,
    pub(super) published: &'static [(Model, Size)],
}

const fn size(batch: usize, seq: usize) -> Size {
    Size { batch, seq }
}

/// Images have no sequence.
const fn images(batch: usize) -> Size {
    size(batch, 1)
}

pub(super) const GPT2: Family = Family {
    nano: Model::Gpt2Nano,
    published: &[(Model::Gpt2Small, size(8, 1024)), (Model::Gpt2Large, size(8, 1024))],
};
pub(super) const BERT: Family =
    Family { nano: Model::BertNano, published: &[(Model::BertBase, size(32, 128)), (Model::BertLarge, size(32, 128))] };
pub(super) const LSTM: Family = Family { nano: Model::LstmNano, published: &[(Model::Lstm, size(256, 32))] };
pub(super) const RESNET: Family = Family {
    nano: Model::ResnetNano,
    published: &[(Model::Resnet50, images(128)), (Model::Resnet101, images(64)), (Model::Resnet152, images(64))],
};
pub(super) const DENSENET: Family = Family {
    nano: Model::DensenetNano,
    published: &[(Model::Densenet169, images(64)), (Model::Densenet201, images(64))],
};
pub(super) const VGG: Family = Family {
    nano: Model::VggNano,
    published: &[
        (Model::Vgg11, images(64)),
        (Model::Vgg13, images(32)),
        (Model::Vgg16, images(32)),
        (Model::Vgg19, images(32)),
    ],
};

/// Steps from one start, and in the smoke profile.
pub(super) const STEPS: usize = 16;
pub(super) const FEW: usize = 4;
/// Time for the steps of one model in the smoke profile.
const SMOKE: Duration = Duration::from_millis(500);

/// How much a GPU trains on in a step of `model`: for a nano one, which loads no GPU anyway, as little as it takes.
pub(crate) fn usual(model: Model) -> Size {
    let families = [&GPT2, &BERT, &LSTM, &RESNET, &DENSENET, &VGG];
    let found = families.iter().flat_map(|family| family.published).find(|(known, _)| *known == model);
    found.map_or_else(|| size(2, model.size().seq.min(4)), |(_, size)| *size)
}

/// A model to be trained.
struct Work<'a> {
    model: Model,
    tape: Tape,
    with: With<'a>,
}

impl Work<'_> {
    fn new(model: Model, size: Option<Size>, with: With<'_>) -> Work<'_> {
        let size = size.unwrap_or_else(|| model.size());
        // To the library a convolution is a product of matrices, so windows are written for it.
        let tape = if with.library.is_some() { model.sized(size) } else { model.implicit(size) };
        Work { model, tape, with }
    }

    fn name(&self) -> String {
        format!("{}_{}", self.model.name(), self.with.precision.name())
    }

    /// The same for a person, who is to know what computes.
    fn title(&self) -> String {
        let by = self.with.library.map(|library| format!(" by {}", library.engine())).unwrap_or_default();
        self.name() + &by
    }

    /// `what` as the name of a fact, which there is one of for each engine.
    fn fact(&self, what: &str, parted: char) -> String {
        if self.with.library.is_some() { format!("{what}{parted}cublaslt") } else { what.to_owned() }
    }
}

impl Family {
    /// Trains what the profile asks for, by muster's own kernels, and again with cuBLASLt's products where it is on the node.
    pub(super) fn run(&self, run: &mut Run<'_>) -> Result<(), Trouble> {
        let (own, again) = (self.works(run.profile), self.works_of_library(run.profile));
        let (first, parts) = (own.len(), own.len() + again.len());
        let (mut measured, mut missing) = (0, Vec::new());
        for (part, (model, size, precision)) in own.into_iter().enumerate() {
            match measure(run, &Work::new(model, size, precision.into()), (part, parts))? {
                None => measured += 1,
                Some(why) => missing.push(why),
            }
        }
        if measured == 0 {
            return Err(Trouble::Absent(missing.join("; ")));
        }
        let library = match CublasLt::load() {
            Ok(library) => library,
            Err(Trouble::Absent(why)) => {
                run.fact("train.cublaslt", format!("not measured: {why}"));
                return Ok(());
            }
            Err(other) => return Err(other.about("training with cuBLASLt")),
        };
        run.fact("train.cublaslt", format!("version={} path={}", library.version, library.path()));
        again.into_iter().enumerate().try_for_each(|(part, (model, size, precision))| {
            let work = Work::new(model, size, With { precision, library: Some(&library) });
            measure(run, &work, (first + part, parts)).map(drop)
        })
    }

    fn works(&self, profile: Profile) -> Vec<(Model, Option<Size>, Precision)> {
        let in_both = |model, size| [(model, size, Precision::Bf16), (model, size, Precision::Fp32)];
        let published = self.published.iter().map(|(model, size)| (*model, Some(*size)));
        match profile {
            Profile::Smoke => in_both(self.nano, None).to_vec(),
            Profile::Quick => published.take(1).map(|(model, size)| (model, size, Precision::Bf16)).collect(),
            Profile::Standard => {
                let bf16 = published.clone().map(|(model, size)| (model, size, Precision::Bf16));
                bf16.chain(published.take(1).map(|(model, size)| (model, size, Precision::Fp32))).collect()
            }
            Profile::Full => published.flat_map(|(model, size)| in_both(model, size)).collect(),
        }
    }

    /// In fp32 the smallest model alone: steps of the others take seconds.
    fn works_of_library(&self, profile: Profile) -> Vec<(Model, Option<Size>, Precision)> {
        self.works(if profile == Profile::Full { Profile::Standard } else { profile })
    }
}

/// Measures one model, and tells as a fact why not; also to the caller.
fn measure(run: &mut Run<'_>, work: &Work<'_>, part: (usize, usize)) -> Result<Option<String>, Trouble> {
    let missing = match train(run, work, part) {
        Err(Trouble::NotRun(why)) if work.with.library.is_some() => Some(why),
        other => other?,
    };
    if let Some(why) = &missing {
        run.fact(&work.fact(&format!("{}_train", work.name()), '.'), format!("not measured: {why}"));
    }
    Ok(missing.map(|why| format!("{} {why}", work.title())))
}

/// Measures one model; or why there is no room for it.
fn train(run: &mut Run<'_>, work: &Work<'_>, (part, parts): (usize, usize)) -> Result<Option<String>, Trouble> {
    let (gpu, title) = (run.gpu, work.title());
    let at = |done: f64| (part as f64 + done) / parts as f64;
    run.progress(at(0.0), &title);
    if let Some(why) = lacks(gpu, work)? {
        return Ok(Some(why));
    }
    let mut rounds = Rounds::begin(gpu, work, if run.profile == Profile::Smoke { FEW } else { STEPS })?;
    // The first steps also wake the GPU.
    let warmup = run.pick([1, FEW, FEW, STEPS]);
    for _ in 0..warmup {
        run.progress(at(0.0), &title);
        rounds.step()?;
    }
    let (wanted, least) = (run.pick([16, 32, 32, 128]), run.pick([FEW, 32, 32, 128]));
    let begin = Instant::now();
    let mut values = Vec::with_capacity(wanted);
    while values.len() < least || (values.len() < wanted && begin.elapsed() < SMOKE) {
        run.progress(at(values.len() as f64 / wanted as f64), &title);
        values.push(rounds.step()? * 1e6);
    }
    rounds.end()?;
    tell(run, work, &rounds, &values)?;
    let engine = work.with.library.map_or_else(|| gpu.engine.to_owned(), CublasLt::engine);
    run.tell((format!("{}_train_step_time:{}", work.name(), gpu.index), engine), values, warmup)?;
    Ok(None)
}

/// What the losses were, for the console to compare, and the best rate, for a person to read.
fn tell(run: &mut Run<'_>, work: &Work<'_>, rounds: &Rounds<'_>, nanos: &[f64]) -> Result<(), Trouble> {
    let Work { model, tape, with } = work;
    let losses = rounds.cycle.losses();
    // FNV-1a over the bits of all losses.
    let fold = |hash: u32, loss: &f32| (hash ^ loss.to_bits()).wrapping_mul(0x0100_0193);
    let digest = losses.iter().fold(0x811c_9dc5_u32, fold);
    let mut code = run.gpu.identity("tape", &["tape", "norm", "image", "product", "convolve", "attention", "wgmma"])?;
    if let Some(library) = with.library {
        // Its algorithms may share work out by how many multiprocessors there are.
        let (version, sms, chosen) = (library.version, run.gpu.sms, rounds.trainer.algorithms());
        code += &format!(", cublaslt {version} algorithms {chosen:016x} for {sms} SMs");
    }
    let (items, steps) = (tape.items, losses.len());
    let what = format!("{} {} of {items}, {steps} steps", model.name(), with.precision.name());
    let golden = work.fact(&format!("golden.{}-{}", model.name(), with.precision.name()), '-');
    run.fact(&golden, format!("{code}, {what}: {digest:08x}*1"));
    let fastest = nanos.iter().copied().fold(f64::INFINITY, f64::min);
    let (rate, loss) = (items as f64 / fastest * 1e9, losses.last().copied().unwrap_or(f32::NAN));
    let fact = work.fact(&format!("{}_train", work.name()), '.');
    run.fact(&fact, format!("items={items} throughput={rate:.0} loss={loss:.4}"));
    Ok(())
}

/// Why a model cannot be trained on this GPU: there is no room for it.
fn lacks(gpu: &Gpu, work: &Work<'_>) -> Result<Option<String>, Trouble> {
    lacking(Trainer::needs(gpu, &work.tape, work.with)?.0, gpu)
}

/// A training that starts again and again.
struct Rounds<'a> {
    trainer: Trainer<'a>,
    cycle: Cycle,
    whom: String,
}

impl<'a> Rounds<'a> {
    fn begin(gpu: &'a Gpu, work: &Work<'a>, steps: usize) -> Result<Self, Trouble> {
        let mut trainer = Trainer::new(gpu, &work.tape, SEED, work.with)?;
        trainer.restart()?;
        let whom = format!("GPU {}: {}", gpu.index, work.title());
        Ok(Self { trainer, cycle: Cycle::new(steps), whom })
    }

    /// Milliseconds of the next step.
    fn step(&mut self) -> Result<f64, Trouble> {
        if self.cycle.is_over() {
            self.trainer.restart()?;
            self.cycle.begin();
        }
        let (ms, loss) = self.trainer.step()?;
        let wrong = |why| Trouble::Failed(format!("{}: {why}: this GPU computes wrongly", self.whom));
        self.cycle.take(loss).map_err(wrong)?;
        Ok(ms)
    }

    /// Goes on until every step was done, and at least one of them twice.
    fn end(&mut self) -> Result<(), Trouble> {
        while !self.cycle.is_whole() {
            self.step()?;
        }
        self.step().map(drop)
    }
}

/// Trains GPT-2 for minutes to an hour, a value for each minute of it.
pub(super) fn stress(run: &mut Run<'_>) -> Result<(), Trouble> {
    let windows = run.pick([4, 1, 10, 60]);
    let window = Duration::from_millis(run.pick([200, 60_000, 60_000, 60_000]));
    let nano = run.profile == Profile::Smoke;
    let candidates: &[(Model, Option<Size>)] = if nano {
        &[(Model::Gpt2Nano, None)]
    } else {
        &[(Model::Gpt2Large, Some(size(8, 1024))), (Model::Gpt2Small, Some(size(8, 1024)))]
    };
    let mut missing = Vec::new();
    for (model, size) in candidates {
        let work = Work::new(*model, *size, Precision::Bf16.into());
        if let Some(why) = lacks(run.gpu, &work)? {
            missing.push(format!("{} {why}", work.name()));
            continue;
        }
        let mut rounds = Rounds::begin(run.gpu, &work, if nano { FEW } else { STEPS })?;
        rounds.step()?;
        let mut values = Vec::with_capacity(windows);
        for number in 0..windows {
            let begin = Instant::now();
            let (mut spent, mut steps) = (0.0, 0);
            while steps == 0 || begin.elapsed() < window {
                let part = begin.elapsed().as_secs_f64() / window.as_secs_f64();
                run.progress((number as f64 + part.min(1.0)) / windows as f64, &work.name());
                spent += rounds.step()?;
                steps += 1;
            }
            values.push(spent / f64::from(steps) * 1e6);
        }
        rounds.end()?;
        tell(run, &work, &rounds, &values)?;
        return run.series(&format!("{}_window_step_time", work.name()), values, 1);
    }
    Err(Trouble::Absent(missing.join("; ")))
}
