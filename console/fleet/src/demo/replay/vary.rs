//! How do the virtual nodes differ? Each from the recording by a little of its own, seeded; the slowed ones by a factor as well.

use std::hash::{DefaultHasher, Hash, Hasher};

use muster_wire::{Datum, Direction, FOREIGN_CPU, Fact, Frame, Hello, Reading, Series, Unit};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Standard deviation of a node's level of one metric, as a share: what equal machines differ by.
const LEVEL: f64 = 0.01;
/// Standard deviation of one value about its node's level.
const VALUE: f64 = 0.01;

/// Facts that tell machines apart.
const OWN: [&str; 8] = [
    "hostname",
    "boot_id",
    "machine_id",
    "dmi.serial",
    "dmi.uuid",
    "dmi.board_serial",
    "dmi.chassis_serial",
    "systemd.machine_id",
];

/// One virtual node's own way.
#[derive(Clone, Debug)]
pub(super) struct Variation {
    pub(super) name: String,
    pub(super) seed: u64,
    /// How many times as long everything takes.
    pub(super) severity: f64,
}

impl Variation {
    /// What this node greets with.
    pub(super) fn hello(&self, recorded: &Hello, (wall_ns, monotonic_ns): (u64, u64), pid: u32) -> Hello {
        let own = Reading::Value(self.name.clone());
        Hello { hostname: own.clone(), boot_id: own, wall_ns, monotonic_ns, pid, ..recorded.clone() }
    }

    /// What this node says at its `visit` where `frame` was recorded.
    pub(super) fn of(&self, frame: &Frame, visit: u64) -> Frame {
        match frame {
            Frame::Series(series) => Frame::Series(self.series(series, visit)),
            Frame::Facts(facts) => {
                let kept =
                    facts.facts.iter().filter(|fact| fact.key == FOREIGN_CPU || !fact.key.starts_with("foreign."));
                let facts = muster_wire::Facts { facts: kept.map(|fact| self.fact(fact)).collect(), ..facts.clone() };
                Frame::Facts(facts)
            }
            other => other.clone(),
        }
    }

    fn series(&self, series: &Series, visit: u64) -> Series {
        if !is_timed(series.unit) {
            return series.clone();
        }
        let name = series.metric.path();
        let slower = match series.direction {
            Direction::HigherIsBetter => self.severity.recip(),
            Direction::LowerIsBetter => self.severity,
        };
        let level = slower * normal(&mut self.chance((&name, 0)), LEVEL);
        let mut chance = self.chance((&name, visit));
        // What else this machine did while it was recorded is not done by every node: of the values their median is taken.
        let middle = level * median(&series.values);
        let values = series.values.iter().map(|_| middle * normal(&mut chance, VALUE)).collect();
        Series { values, ..series.clone() }
    }

    fn fact(&self, fact: &Fact) -> Fact {
        let reading = match (&fact.reading, fact.key.as_str()) {
            // Whoever else used this machine while it was recorded uses no virtual one.
            (Reading::Value(Datum::Number(_)), FOREIGN_CPU) => Reading::Value(Datum::Number(0.0)),
            (Reading::Value(Datum::Text(_)), key) if OWN.contains(&key) => {
                Reading::Value(Datum::Text(self.name.clone()))
            }
            (other, _) => other.clone(),
        };
        Fact { reading, ..fact.clone() }
    }

    /// Chance of one thing of this node, the same for every run with this seed.
    fn chance(&self, of: impl Hash) -> SmallRng {
        let mut hasher = DefaultHasher::new();
        (self.seed, &self.name, of).hash(&mut hasher);
        SmallRng::seed_from_u64(hasher.finish())
    }
}

/// Whether a slower machine shows in numbers of this unit.
const fn is_timed(unit: Unit) -> bool {
    matches!(unit, Unit::BytesPerSec | Unit::FlopPerSec | Unit::OpsPerSec | Unit::Nanos | Unit::Seconds)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// A factor about 1, normally distributed with this deviation (Box and Muller 1958), at most 6 of them away.
fn normal(chance: &mut SmallRng, deviation: f64) -> f64 {
    let (radius, angle): (f64, f64) = (chance.random_range(1e-8..1.0), chance.random_range(0.0..std::f64::consts::TAU));
    let drawn = (-2.0 * radius.ln()).sqrt() * angle.cos();
    1.0 + deviation * drawn.clamp(-6.0, 6.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::{Facts, MetricId};

    fn node(name: &str, severity: f64) -> Variation {
        Variation { name: name.to_owned(), seed: 5, severity }
    }

    fn series(unit: Unit, direction: Direction) -> Series {
        let (metric, values) = (MetricId::new("b", "x", "own"), vec![100.0; 64]);
        Series { metric, unit, direction, values, warmup: 0, started_ns: 0 }
    }

    fn mean(node: &Variation, unit: Unit, direction: Direction, visit: u64) -> f64 {
        node.series(&series(unit, direction), visit).values.iter().sum::<f64>() / 64.0
    }

    #[test]
    fn a_slowed_node_is_slower_in_rates_and_times_and_equal_in_counts() {
        let slow = node("v1", 2.0);
        assert!((mean(&slow, Unit::BytesPerSec, Direction::HigherIsBetter, 1) / 50.0 - 1.0).abs() < 0.07);
        assert!((mean(&slow, Unit::Nanos, Direction::LowerIsBetter, 1) / 200.0 - 1.0).abs() < 0.07);
        assert!((mean(&slow, Unit::Count, Direction::LowerIsBetter, 1) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn a_node_keeps_its_level_between_visits_and_repeats_a_visit_exactly() {
        let one = node("v1", 1.0);
        let at = |node: &Variation, visit| mean(node, Unit::Nanos, Direction::LowerIsBetter, visit);
        assert!((at(&one, 1) - at(&one, 1)).abs() < f64::EPSILON);
        assert!((at(&one, 1) / at(&one, 2) - 1.0).abs() < 0.005);
        assert!((at(&one, 1) - at(&one, 2)).abs() > f64::EPSILON);
        assert!((at(&one, 1) / at(&node("v2", 1.0), 1) - 1.0).abs() > 1e-6);
    }

    #[test]
    fn nodes_have_names_of_their_own_and_no_foreign_load() {
        let fact = |key: &str, reading| Fact { key: key.to_owned(), reading: Reading::Value(reading), unit: None };
        let text = |text: &str| Datum::Text(text.to_owned());
        let recorded = vec![
            fact("hostname", text("here")),
            fact("kernel.release", text("6.1")),
            fact(FOREIGN_CPU, Datum::Number(0.9)),
            fact("foreign.0.comm", text("cargo")),
        ];
        let frame = Frame::Facts(Facts { collector: "identity".to_owned(), facts: recorded });
        let Frame::Facts(said) = node("v7", 1.0).of(&frame, 1) else { panic!() };
        let values: Vec<_> = said.facts.iter().map(|fact| fact.reading.value().unwrap().clone()).collect();
        assert_eq!(values, [text("v7"), text("6.1"), Datum::Number(0.0)]);
    }
}
