//! Whether all cores compute the same bits at full load, and what heat costs them.
//!
//! Every core computes one and the same matrix product over and over and reduces each result to a digest. A core whose
//! digest differs from the others' has corrupted data silently (Hochschild et al., "Cores that don't count", HotOS
//! 2021): no counter tells, only comparison does.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use muster_wire::{Datum, Direction, Fact, Facts, Level, Reading, Unit};

use super::context::{Context, Metric};
use super::kernel::{Isa, N, Number, Product};
use crate::pin::{Place, Worker, with_team};
use crate::steps::{Halt, Taken, monotonic_ns};
use crate::topology;

pub(crate) const NAME: &str = "cpu-burn";
const SMOKE: Duration = Duration::from_millis(600);
/// Different digests kept of one step of one core; past that a core is broken beyond doubt.
const MOST_DIGESTS: usize = 8;

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
    burn(context, &places, |_, _, _| {})
}

fn burn(context: &mut Context<'_>, cores: &[(usize, Place)], tamper: Tamper) -> Result<(), Halt> {
    let isa = Isa::best();
    let seen: Vec<Mutex<Vec<Digests>>> = cores.iter().map(|_| Mutex::default()).collect();
    let plan = context.plan(SMOKE, 1);
    let started_ns = monotonic_ns();
    let before: Vec<_> = cores.iter().map(|(core, _)| topology::throttled(*core)).collect();
    let rate = |name: String| Metric::rate(NAME, name, Unit::FlopPerSec);
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
        Ok(team.verify(0))
    })?;
    let numbers: Vec<usize> = cores.iter().map(|(core, _)| *core).collect();
    throttling(context, &numbers, &before);
    let steps: Vec<Vec<Digests>> = seen.into_iter().map(|s| s.into_inner().unwrap_or_default()).collect();
    let agreement = Agreement::of(&steps);
    for (core, steps) in numbers.iter().zip(&steps) {
        let values = agreement.shares(steps);
        let metric = Metric {
            direction: Direction::HigherIsBetter,
            ..Metric::rate(NAME, format!("core_{core}_pass"), Unit::Ratio)
        };
        context.series(metric, Taken { values, warmup: 0, started_ns });
    }
    agreement.verdict(&numbers, &steps)?;
    checked
}

/// The digest that is right.
struct Agreement(Option<u64>);

impl Agreement {
    /// What most cores find most often; nothing where no digest has more than half of them.
    fn of(cores: &[Vec<Digests>]) -> Self {
        let usual = |steps: &Vec<Digests>| {
            let (digest, _) = total(steps).into_iter().max_by_key(|(_, times)| *times)?;
            Some(digest)
        };
        let mut votes = Digests::new();
        for digest in cores.iter().filter_map(usual) {
            *votes.entry(digest).or_default() += 1;
        }
        let all: u64 = votes.values().sum();
        Self(votes.into_iter().find(|(_, votes)| 2 * votes > all).map(|(digest, _)| digest))
    }

    /// Share of right products in every step that ended one.
    fn shares(&self, steps: &[Digests]) -> Vec<f64> {
        let right = |step: &Digests| self.0.and_then(|digest| step.get(&digest)).copied().unwrap_or(0);
        let share = |step: &Digests| right(step) as f64 / step.values().sum::<u64>() as f64;
        steps.iter().filter(|step| !step.is_empty()).map(share).collect()
    }

    fn verdict(&self, cores: &[usize], steps: &[Vec<Digests>]) -> Result<(), Halt> {
        let Some(right) = self.0 else {
            let why = format!("the {} cores compute different bits, and no majority says which are right", cores.len());
            return Err(Halt::Failed(why));
        };
        let wrong: Vec<String> = cores
            .iter()
            .zip(steps)
            .filter_map(|(core, steps)| {
                let total = total(steps);
                let (all, right) = (total.values().sum::<u64>(), total.get(&right).copied().unwrap_or(0));
                (right < all).then(|| {
                    format!(
                        "core {core} computed other bits than the rest of {} in {} of {all} products",
                        cores.len(),
                        all - right
                    )
                })
            })
            .collect();
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(Halt::Failed(format!("silent data corruption: {}", wrong.join("; "))))
        }
    }
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
        let ended = burn(&mut context, &cores, tamper);
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

    #[test]
    fn without_a_majority_nobody_is_named() {
        let step = |digest| vec![Digests::from([(digest, 3)])];
        let steps = [step(1), step(2)];
        let agreement = Agreement::of(&steps);
        assert!(agreement.0.is_none());
        assert!(matches!(agreement.verdict(&[0, 1], &steps), Err(Halt::Failed(why)) if why.contains("no majority")));
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
