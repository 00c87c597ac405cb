//! When does each node have its next incident? After a time of use that is drawn once and then kept: drawn anew at
//! each allocation, validation with foresight would find defects for ever and never let a long job start.

use serde::{Deserialize, Serialize};

use crate::Chance;
use crate::risk::History;

/// Mean times between incidents that shrink with each incident, as SuperBench's figure 3 shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountLaw {
    /// Mean hours before the first incident.
    pub first_h: f64,
    /// Mean hours before the twentieth.
    pub twentieth_h: f64,
    /// Mean below which it never falls, in hours.
    pub floor_h: f64,
    /// Mean number of incidents a node has had when the simulation starts (negative binomial).
    pub past: f64,
    /// Shape of that law: the variance is `past + past^2 / shape`, so a small shape gives most incidents to few
    /// nodes.
    pub shape: f64,
    /// Variance of each node's own factor on its hazard, of mean 1 (gamma); 0: all alike.
    pub frailty: f64,
}

impl Default for CountLaw {
    /// The means of SuperBench's figure; the rest fitted to its Table 4, not evidence.
    fn default() -> Self {
        Self { first_h: 719.4, twentieth_h: 151.7, floor_h: 48.0, past: 43.0, shape: 0.35, frailty: 0.11 }
    }
}

impl CountLaw {
    fn mean(&self, count: u64, frailty: f64) -> f64 {
        let part = count as f64 / 19.0;
        (self.first_h * (self.twentieth_h / self.first_h).powf(part)).max(self.floor_h) / frailty.max(1e-3)
    }
}

/// Times between incidents as recorded, node by node.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Hours of use before each incident of a node; the last number is how long it was watched after its last.
    gaps: Vec<Vec<f64>>,
    /// Incidents per hour of use by number of past incidents; later ones as the last.
    rates: Vec<f64>,
}

impl Replay {
    /// What `history` recorded; none without an incident. Rates are drawn towards the mean rate by one incident.
    #[must_use]
    pub fn new(history: &History) -> Option<Self> {
        let window = history.window();
        let mut gaps = Vec::new();
        for (_, past) in history.nodes() {
            let (mut own, mut from) = (Vec::new(), window.start_h);
            for outage in past.outages() {
                own.push((outage.start_h - from).max(0.0));
                from = from.max(outage.end_h.min(window.end_h));
            }
            own.push(window.end_h - from);
            gaps.push(own);
        }
        let events: f64 = gaps.iter().map(|g| (g.len() - 1) as f64).sum();
        let watched: f64 = gaps.iter().flatten().sum();
        if events == 0.0 || watched <= 0.0 {
            return None;
        }
        let rate = events / watched;
        let longest = gaps.iter().map(Vec::len).max().unwrap_or(1);
        let rates = (0..longest).map(|k| {
            let at = gaps.iter().filter_map(|g| g.get(k).map(|gap| (*gap, k + 1 < g.len())));
            let (time, ended) = at.fold((0.0, 0.0), |(t, n), (gap, e)| (t + gap, n + f64::from(u8::from(e))));
            (ended + 1.0) / (time + 1.0 / rate)
        });
        let rates = rates.collect();
        Some(Self { gaps, rates })
    }

    fn rate(&self, count: u64) -> f64 {
        let last = self.rates.len() - 1;
        self.rates[(count as usize).min(last)]
    }
}

/// Where incidents come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// A law of counts.
    Count(CountLaw),
    /// A record.
    Replay(Replay),
}

/// What lies ahead of one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fate {
    /// Incidents so far.
    count: u64,
    frailty: f64,
    /// Recorded node that is followed.
    source: usize,
    /// Hours of use left until the next incident. Persistent: nothing but use and repair changes it.
    pub(super) left: f64,
}

impl Law {
    /// A node as one meets it in the fleet.
    pub(super) fn fresh(&self, chance: &mut Chance) -> Fate {
        match self {
            Self::Count(law) => {
                let shape = law.shape.max(1e-3);
                let expected = chance.gamma(shape) / shape * law.past;
                let count = chance.poisson(expected);
                let frailty = if law.frailty > 0.0 { chance.gamma(1.0 / law.frailty) * law.frailty } else { 1.0 };
                let mut fate = Fate { count, frailty, source: 0, left: 0.0 };
                fate.left = law.mean(count, frailty) * chance.exponential();
                fate
            }
            Self::Replay(record) => {
                let source = chance.below(record.gaps.len());
                let gaps = &record.gaps[source];
                let mut at = chance.unit() * gaps.iter().sum::<f64>();
                let mut count = 0;
                while count + 1 < gaps.len() && at >= gaps[count] {
                    at -= gaps[count];
                    count += 1;
                }
                let mut fate = Fate { count: count as u64, frailty: 1.0, source, left: 0.0 };
                fate.left = record.left(&fate, at, chance);
                fate
            }
        }
    }

    /// The same node after an incident that made it worse by one.
    pub(super) fn after_incident(&self, fate: Fate, chance: &mut Chance) -> Fate {
        self.again(Fate { count: fate.count + 1, ..fate }, chance)
    }

    /// The same node, no worse, with a new time to its next incident.
    pub(super) fn again(&self, mut fate: Fate, chance: &mut Chance) -> Fate {
        fate.left = match self {
            Self::Count(law) => law.mean(fate.count, fate.frailty) * chance.exponential(),
            Self::Replay(record) => record.left(&fate, 0.0, chance),
        };
        fate
    }

    /// Probability of an incident within `hours` of use, as one who does not see `left` knows it.
    pub(super) fn risk(&self, fate: &Fate, hours: f64) -> f64 {
        let rate = match self {
            Self::Count(law) => 1.0 / law.mean(fate.count, fate.frailty),
            Self::Replay(record) => record.rate(fate.count),
        };
        -(-rate * hours).exp_m1()
    }
}

impl Replay {
    /// Hours left of the gap the node is in, `used` of it gone; past the record's end at the rate of its count.
    fn left(&self, fate: &Fate, used: f64, chance: &mut Chance) -> f64 {
        let gaps = &self.gaps[fate.source];
        let count = fate.count as usize;
        let recorded = gaps.get(count).copied();
        match recorded {
            Some(gap) if count + 1 < gaps.len() => (gap - used).max(0.0),
            known => (known.unwrap_or(0.0) - used).max(0.0) + chance.exponential() / self.rate(fate.count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::risk::{Category, Incident, Window};

    #[test]
    fn counts_shrink_the_time_between_incidents_as_published() {
        let law = CountLaw::default();
        assert!((law.mean(0, 1.0) - 719.4).abs() < 1e-9);
        assert!((law.mean(19, 1.0) - 151.7).abs() < 1e-9);
        assert_eq!(law.mean(500, 1.0), 48.0);
        let (mut chance, fleet) = (Chance::new(1), Law::Count(law));
        let n = 20_000;
        let fates: Vec<Fate> = (0..n).map(|_| fleet.fresh(&mut chance)).collect();
        let mean = fates.iter().map(|f| f.count as f64).sum::<f64>() / f64::from(n);
        let var = fates.iter().map(|f| (f.count as f64 - mean).powi(2)).sum::<f64>() / f64::from(n);
        assert!((mean - 43.0).abs() < 2.0, "{mean}");
        assert!((var / (43.0 + 43.0 * 43.0 / 0.35) - 1.0).abs() < 0.1, "{var}");
    }

    #[test]
    fn a_record_is_followed_and_its_rates_counted() {
        let incident = |node: &str, start_h, end_h| Incident::new(node, start_h, Some(end_h), Category::Gpu);
        let log = [incident("a", 100.0, 120.0), incident("a", 150.0, 160.0)];
        let h = History::new(&log, &["b".into()], Window { start_h: 0.0, end_h: 400.0 });
        let r = Replay::new(&h).unwrap();
        assert_eq!(r.gaps, [vec![100.0, 30.0, 240.0], vec![400.0]]);
        let prior = 770.0 / 2.0;
        assert!((r.rate(0) - 2.0 / (500.0 + prior)).abs() < 1e-12);
        assert!((r.rate(1) - 2.0 / (30.0 + prior)).abs() < 1e-12);
        assert!((r.rate(9) - 1.0 / (240.0 + prior)).abs() < 1e-12);
        let mut chance = Chance::new(1);
        let fate = Fate { count: 0, frailty: 1.0, source: 0, left: 0.0 };
        let next = Law::Replay(r).after_incident(fate, &mut chance);
        assert_eq!((next.count, next.left), (1, 30.0));
        let silent = History::new(&[], &["b".into()], Window { start_h: 0.0, end_h: 400.0 });
        assert_eq!(Replay::new(&silent), None);
    }
}
