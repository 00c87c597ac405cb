//! Whether all cores compute the same bits at full load, and what heat costs them.
//!
//! Every core computes one and the same matrix product over and over and reduces each result to a digest. A core whose
//! digest differs from the others' has corrupted data silently (Hochschild et al., "Cores that don't count", HotOS
//! 2021): no counter tells, only comparison does. A core that finished no product gives no evidence, for it or against it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use muster_wire::{Datum, Fact, Facts, Level, Reading, Unit};

use super::context::{Context, Metric};
use super::kernel::{Isa, N, Number, Product};
use crate::pin::{Place, Team, Worker, with_team};
use crate::steps::{Halt, Taken, monotonic_ns};
use crate::topology;

pub(crate) const NAME: &str = "cpu-burn";
const SMOKE: Duration = Duration::from_millis(600);
/// Different digests kept of one step of one core; past that a core is broken beyond doubt.
const MOST_DIGESTS: usize = 8;
/// Products of each core that a burn waits for when its steps are over.
const LEAST_PRODUCTS: u64 = 4;
/// How long it waits for them: a core that others hold for so long gives no evidence.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often which digest came out.
type Digests = BTreeMap<u64, u64>;
/// What is done to the elements of product number `u64` on core `usize` before they are looked at: nothing, outside tests.
type Tamper = fn(usize, u64, &mut [f64]);

struct Burner<'a> {
    core: usize,
    product: Product<f64>,
    done: u64,
    tamper: Tamper,
    step: Digests,
    steps: &'a Mutex<Vec<Digests>>,
}

impl Worker for Burner<'_> {
    fn chunk(&mut self, _job: usize) -> Result<f64, Halt> {
        let work = self.product.advance();
        if self.product.is_whole() {
            (self.tamper)(self.core, self.done, self.product.elements());
            self.done += 1;
            let digest = digest(self.product.elements());
            if self.step.len() < MOST_DIGESTS || self.step.contains_key(&digest) {
                *self.step.entry(digest).or_default() += 1;
            }
        }
        Ok(work)
    }

    fn end(&mut self, _job: usize) -> Result<(), Halt> {
        let mut steps =
            self.steps.lock().map_err(|_| Halt::Failed("a burning thread came to an internal error".into()))?;
        steps.push(std::mem::take(&mut self.step));
        Ok(())
    }

    fn verify(&mut self, _job: usize) -> Result<(), Halt> {
        let error = self.product.finish_and_check();
        if error <= f64::UNIT_ERROR * N as f64 {
            return Ok(());
        }
        Err(Halt::Failed(format!("core {} computes a wrong matrix product: relative error {error:.1e}", self.core)))
    }
}

/// 64 bits of all elements. Eight independent chains, so that it costs a hundredth of the product.
fn digest(elements: &[f64]) -> u64 {
    let mut lanes = [0xcbf2_9ce4_8422_2325_u64; 8];
    for group in elements.as_chunks::<8>().0 {
        for (lane, element) in lanes.iter_mut().zip(group) {
            *lane = (*lane ^ element.to_bits()).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        }
    }
    lanes.into_iter().fold(0, |sum, lane| (sum ^ lane).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

pub(super) fn run(context: &mut Context<'_>) -> Result<(), Halt> {
    let places: Vec<(usize, Place)> = Place::every_core().into_iter().map(|place| (place.cpu(), place)).collect();
    burn(context, &places, |_, _, _| {}, PATIENCE)
}

fn burn(context: &mut Context<'_>, cores: &[(usize, Place)], tamper: Tamper, patience: Duration) -> Result<(), Halt> {
    let isa = Isa::best();
    let seen: Vec<Mutex<Vec<Digests>>> = cores.iter().map(|_| Mutex::default()).collect();
    let plan = context.plan(SMOKE, 1);
    let started_ns = monotonic_ns();
    let begun = Instant::now();
    let before: Vec<_> = cores.iter().map(|(core, _)| topology::throttled(*core)).collect();
    let rate = |name: String| Metric::of(NAME, name);
    let metrics: Vec<Metric> = std::iter::once(rate("flops".into()))
        .chain(cores.iter().map(|(core, _)| rate(format!("core_{core}_flops"))))
        .collect();
    let places: Vec<Place> = cores.iter().map(|(_, place)| place.clone()).collect();
    let make = |place: &Place| {
        let at = places.iter().position(|one| std::ptr::eq(one, place)).unwrap_or(0);
        let (core, steps) = (cores[at].0, &seen[at]);
        Ok(Burner { core, product: Product::new(isa)?, done: 0, tamper, step: Digests::new(), steps })
    };
    let checked = with_team(&places, &make, |team| {
        let mut step = || {
            let rates = team.rates(0..cores.len(), 0, plan.step)?;
            Ok(std::iter::once(rates.iter().sum()).chain(rates).collect())
        };
        context.measure_all(metrics, &plan, (0.0, 1.0), &mut step)?;
        wait_for_products(context, (team, plan.step), &seen, patience)?;
        Ok(team.verify(0))
    })?;
    let numbers: Vec<usize> = cores.iter().map(|(core, _)| *core).collect();
    throttling(context, &numbers, &before);
    let steps: Vec<Vec<Digests>> = seen.into_iter().map(|s| s.into_inner().unwrap_or_default()).collect();
    let agreement = Agreement::of(&steps);
    for (core, steps) in numbers.iter().zip(&steps) {
        let values = agreement.shares(steps);
        if values.is_empty() {
            continue;
        }
        context.series(Metric::of(NAME, format!("core_{core}_pass")), Taken { values, warmup: 0, started_ns })?;
    }
    agreement.contradiction(&numbers, &steps)?;
    checked?;
    unseen(&numbers, &steps, begun.elapsed())
}

/// Goes on until every core has finished [`LEAST_PRODUCTS`], however few its steps gave, or `patience` ends.
fn wait_for_products(
    context: &Context<'_>,
    (team, step): (&Team, Duration),
    seen: &[Mutex<Vec<Digests>>],
    patience: Duration,
) -> Result<(), Halt> {
    let products = |steps: &Mutex<Vec<Digests>>| steps.lock().map_or(0, |steps| products(&steps));
    let begun = Instant::now();
    while seen.iter().any(|steps| products(steps) < LEAST_PRODUCTS) && begun.elapsed() < patience {
        if context.stop.load(Ordering::Relaxed) {
            return Err(Halt::Stopped);
        }
        team.rates(0..seen.len(), 0, step)?;
    }
    Ok(())
}

/// Of a core that finished no product nothing is known, so the benchmark was not run on it.
fn unseen(cores: &[usize], steps: &[Vec<Digests>], waited: Duration) -> Result<(), Halt> {
    let unseen = cores.iter().zip(steps).filter(|(_, steps)| products(steps) == 0);
    let unseen: Vec<String> = unseen.map(|(core, _)| core.to_string()).collect();
    if unseen.is_empty() {
        return Ok(());
    }
    let (on, seconds) = (unseen.join(", "), waited.as_secs());
    let (core, are) = if unseen.len() == 1 { ("core", "the core is") } else { ("cores", "the cores are") };
    Err(Halt::NotRun(format!("no product finished in {seconds} s on {core} {on}: {are} busy")))
}

/// The digest that is right, and how many different ones cores vote for.
struct Agreement {
    right: Option<u64>,
    different: usize,
}

impl Agreement {
    /// What most cores find most often; nothing where no digest has more than half of them. Cores without a product have
    /// no vote.
    fn of(cores: &[Vec<Digests>]) -> Self {
        let usual = |steps: &Vec<Digests>| {
            let (digest, _) = total(steps).into_iter().max_by_key(|(_, times)| *times)?;
            Some(digest)
        };
        let mut votes = Digests::new();
        for digest in cores.iter().filter_map(usual) {
            *votes.entry(digest).or_default() += 1;
        }
        let (all, different) = (votes.values().sum::<u64>(), votes.len());
        Self { right: votes.into_iter().find(|(_, votes)| 2 * votes > all).map(|(digest, _)| digest), different }
    }

    /// Share of right products in every step that ended one; nothing where nobody knows which are right.
    fn shares(&self, steps: &[Digests]) -> Vec<f64> {
        let Some(right) = self.right else { return Vec::new() };
        let share = |step: &Digests| step.get(&right).copied().unwrap_or(0) as f64 / step.values().sum::<u64>() as f64;
        steps.iter().filter(|step| !step.is_empty()).map(share).collect()
    }

    /// Fails where finished products differ. Products that were not finished contradict nothing.
    fn contradiction(&self, cores: &[usize], steps: &[Vec<Digests>]) -> Result<(), Halt> {
        let of = steps.iter().filter(|steps| products(steps) > 0).count();
        let Some(right) = self.right else {
            if self.different < 2 {
                return Ok(());
            }
            let why = format!("{of} cores compute different bits, and no majority says which are right");
            return Err(Halt::Failed(why));
        };
        let wrong: Vec<String> = cores
            .iter()
            .zip(steps)
            .filter_map(|(core, steps)| {
                let total = total(steps);
                let (all, right) = (total.values().sum::<u64>(), total.get(&right).copied().unwrap_or(0));
                let wrong = all - right;
                let than = if of > 1 { format!("the rest of {of}") } else { "before".to_owned() };
                (wrong > 0).then(|| format!("core {core} computed other bits than {than} in {wrong} of {all} products"))
            })
            .collect();
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(Halt::Failed(format!("silent data corruption: {}", wrong.join("; "))))
        }
    }
}

/// How many products these steps finished.
fn products(steps: &[Digests]) -> u64 {
    steps.iter().flat_map(Digests::values).sum()
}

fn total(steps: &[Digests]) -> Digests {
    let mut total = Digests::new();
    for (digest, times) in steps.iter().flatten() {
        *total.entry(*digest).or_default() += times;
    }
    total
}

/// Says which cores were slowed down by heat meanwhile, and how often.
fn throttling(context: &mut Context<'_>, cores: &[usize], before: &[Option<[u64; 2]>]) {
    let mut facts = Vec::new();
    for (core, before) in cores.iter().zip(before) {
        let (Some(before), Some(after)) = (before, topology::throttled(*core)) else { continue };
        for (what, times) in ["core", "package"].into_iter().zip([0, 1].map(|i| after[i].saturating_sub(before[i]))) {
            if times > 0 {
                let reading = Reading::Value(Datum::Number(times as f64));
                facts.push(Fact { key: format!("throttled.{what}.{core}"), reading, unit: Some(Unit::Count) });
            }
        }
    }
    if !facts.is_empty() {
        context.log(Level::Warn, format!("{NAME}: {} of {} cores were slowed down by heat", facts.len(), cores.len()));
        context.facts(Facts { collector: NAME.into(), facts });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use muster_wire::{Frame, Profile, Series};

    use super::*;

    fn burnt(tamper: Tamper) -> (Result<(), Halt>, Vec<Series>) {
        let mut series = Vec::new();
        let cores = [4, 5, 6].map(|core| (core, Place::this_node()));
        let mut emit = |frame| {
            if let Frame::Series(one) = frame {
                series.push(one);
            }
        };
        let stop = AtomicBool::new(false);
        let mut context = Context { profile: Profile::Smoke, scratch: None, stop: &stop, steps: None, emit: &mut emit };
        let ended = burn(&mut context, &cores, tamper, Duration::from_secs(600));
        (ended, series)
    }

    fn passes(series: &[Series], core: usize) -> Vec<f64> {
        let name = format!("core_{core}_pass");
        series.iter().find(|s| s.metric.name == name).map(|s| s.values.clone()).unwrap()
    }

    #[test]
    fn one_flipped_bit_in_one_product_names_its_core() {
        let (ended, series) = burnt(|core, product, elements| {
            // The first, as a core that others keep busy may come to no more.
            if core == 5 && product == 0 {
                elements[1234] = f64::from_bits(elements[1234].to_bits() ^ 1);
            }
        });
        let Err(Halt::Failed(why)) = ended else { panic!("{ended:?}") };
        assert!(why.starts_with("silent data corruption: core 5 computed other bits"), "{why}");
        assert!(why.contains("in 1 of ") && !why.contains("core 4") && !why.contains("core 6"), "{why}");
        assert!(passes(&series, 5).iter().any(|share| *share < 1.0));
        assert!(passes(&series, 4).iter().chain(&passes(&series, 6)).all(|share| *share == 1.0));
    }

    #[test]
    fn a_core_that_is_always_wrong_is_outvoted_and_healthy_cores_agree() {
        let (ended, series) = burnt(|core, _, elements| {
            if core == 6 {
                elements[0] += 1.0;
            }
        });
        assert!(
            matches!(&ended, Err(Halt::Failed(why)) if why.contains("core 6") && !why.contains("core 4")),
            "{ended:?}"
        );
        assert!(passes(&series, 6).iter().all(|share| *share == 0.0));
        assert_eq!(burnt(|_, _, _| {}).0, Ok(()));
    }

    fn verdict(steps: &[Vec<Digests>]) -> Result<(), Halt> {
        let cores: Vec<usize> = (0..steps.len()).collect();
        Agreement::of(steps).contradiction(&cores, steps)?;
        unseen(&cores, steps, Duration::from_secs(11))
    }

    #[test]
    fn without_a_majority_nobody_is_named() {
        let step = |digest| vec![Digests::from([(digest, 3)])];
        let steps = [step(1), step(2)];
        assert!(matches!(verdict(&steps), Err(Halt::Failed(why)) if why.contains("no majority")));
        assert!(Agreement::of(&steps).shares(&steps[0]).is_empty(), "nobody knows what share was right");
    }

    #[test]
    fn a_core_that_finished_no_product_is_no_evidence_of_other_bits() {
        let (done, nothing) = (|digest| vec![Digests::from([(digest, 3)])], || vec![Digests::new(); 16]);
        let not_run = |why: &str| Err(Halt::NotRun(why.to_owned()));
        let none = not_run("no product finished in 11 s on cores 0, 1: the cores are busy");
        assert_eq!(verdict(&[nothing(), nothing()]), none);
        assert_eq!(verdict(&[Vec::new(), Vec::new()]), none);
        let one = not_run("no product finished in 11 s on core 1: the core is busy");
        assert_eq!(verdict(&[done(1), nothing()]), one);
        assert_eq!(verdict(&[done(1), nothing(), done(1)]), one);
        assert_eq!(verdict(&[done(1), done(1)]), Ok(()));
        // What contradicts does so whoever else is missing.
        let Err(Halt::Failed(why)) = verdict(&[done(1), nothing(), done(1), done(2)]) else { panic!() };
        assert_eq!(why, "silent data corruption: core 3 computed other bits than the rest of 3 in 3 of 3 products");
        assert!(
            matches!(verdict(&[done(1), nothing(), done(2)]), Err(Halt::Failed(why)) if why.starts_with("2 cores"))
        );
    }

    #[test]
    fn a_burn_waits_for_products_and_not_for_its_time() {
        let (ended, series) = burnt(|_, _, _| std::thread::sleep(Duration::from_millis(120)));
        assert_eq!(ended, Ok(()));
        for core in [4, 5, 6] {
            // A product takes longer than a step, so no step has two.
            assert!(passes(&series, core).len() as u64 >= LEAST_PRODUCTS);
        }
    }

    #[test]
    fn one_core_alone_is_held_to_its_own_bits() {
        let torn = vec![Digests::from([(1, 7), (2, 1)])];
        let Err(Halt::Failed(why)) = verdict(&[torn]) else { panic!() };
        assert_eq!(why, "silent data corruption: core 0 computed other bits than before in 1 of 8 products");
    }

    #[test]
    fn every_bit_of_every_element_counts() {
        let elements: Vec<f64> = (0..64).map(f64::from).collect();
        let whole = digest(&elements);
        for at in 0..64 {
            for bit in 0..64 {
                let mut other = elements.clone();
                other[at] = f64::from_bits(other[at].to_bits() ^ 1 << bit);
                assert_ne!(digest(&other), whole, "element {at}, bit {bit}");
            }
        }
    }
}
