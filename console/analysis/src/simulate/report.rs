//! What did a policy cost and save? Means over nodes and seeds, with intervals.

use serde::Serialize;

use super::cluster::{Cluster, Ledger, Scene};
use super::jobs::{Jobs, TooLarge};
use super::law::Law;
use super::policy::{Policy, ValidationPlan};
use super::settings::Settings;

/// What one run of the simulation gave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Share of all node-hours in which jobs ran, 0 to 1.
    pub utilisation: f64,
    /// Hours of validation per node.
    pub validation_h: f64,
    /// Mean over nodes of hours in use per incident, a node without incident counting one; none when no node had
    /// an incident.
    pub mtbi_h: Option<f64>,
    /// Incidents per node, those that validation caught included.
    pub incidents_per_node: f64,
}

/// Runs one policy once. `progress` hears the share done, 0 to 1.
///
/// # Errors
/// When a job needs more nodes than there are: it would wait for ever, and leave its nodes to others.
pub fn run(
    policy: Policy,
    settings: &Settings,
    world: (&Law, &Jobs, &ValidationPlan),
    progress: &mut dyn FnMut(f64),
) -> Result<Outcome, TooLarge> {
    let (law, jobs, plan) = world;
    jobs.fit(settings.nodes)?;
    let ledgers = Cluster::new(Scene { settings, policy, law, jobs, plan }).run(progress);
    Ok(outcome(&ledgers, settings.hours))
}

fn outcome(ledgers: &[Ledger], hours: f64) -> Outcome {
    let n = ledgers.len().max(1) as f64;
    let sum = |f: &dyn Fn(&Ledger) -> f64| ledgers.iter().map(f).sum::<f64>() / n;
    let incidents = sum(&|l| f64::from(l.incidents));
    Outcome {
        utilisation: sum(&|l| l.up_h) / hours,
        validation_h: sum(&|l| l.validation_h),
        mtbi_h: (incidents > 0.0).then(|| sum(&|l| l.up_h / f64::from(l.incidents.max(1)))),
        incidents_per_node: incidents,
    }
}

/// A mean over seeds and its 95 % interval by Student's t; of one seed the interval is the mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Mean.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Interval of `values`; none when there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        use statrs::distribution::{ContinuousCDF, StudentsT};
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let half = if values.len() > 1 {
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
            StudentsT::new(0.0, 1.0, n - 1.0).map_or(0.0, |t| t.inverse_cdf(0.975) * (variance / n).sqrt())
        } else {
            0.0
        };
        (!values.is_empty()).then_some(Self { mean, low: mean - half, high: mean + half })
    }

    /// The same without what cannot be: Student's t knows nothing of shares and counts. The mean stays as it is.
    fn within(self, least: f64, most: f64) -> Self {
        Self { low: self.low.max(least).min(self.mean), high: self.high.min(most).max(self.mean), ..self }
    }
}

/// A policy over several seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicySummary {
    /// Policy.
    pub policy: Policy,
    /// See [`Outcome::utilisation`].
    pub utilisation: Interval,
    /// See [`Outcome::validation_h`].
    pub validation_h: Interval,
    /// See [`Outcome::mtbi_h`].
    pub mtbi_h: Option<Interval>,
    /// See [`Outcome::incidents_per_node`].
    pub incidents_per_node: Interval,
    /// Number of seeds.
    pub seeds: usize,
    /// Utilisation by seed, so that policies may be compared seed by seed.
    #[serde(skip)]
    pub by_seed: Vec<f64>,
}

/// Where the utilisation that a policy wins over none comes from: shares of all node-hours, differences seed by seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// Policy that validates.
    pub policy: Policy,
    /// Utilisation over that without validation ([`Policy::Absence`]).
    pub total: Interval,
    /// Part that validating brings: over [`Policy::RepairOnly`], which repairs by the same rule.
    pub validation: Interval,
    /// Part that the repair rule brings by itself: one node away instead of all nodes of the job.
    pub repair_rule: Interval,
}

/// Gains of the policies that validate, of what [`compare`] found.
#[must_use]
pub fn gains(found: &[PolicySummary]) -> Vec<Gain> {
    let of = |policy| found.iter().find(|s| s.policy == policy).map(|s| &s.by_seed);
    let over = |a: &[f64], b: &[f64]| Interval::of(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>());
    let gain = |policy| {
        let (absence, repair, own) = (of(Policy::Absence)?, of(Policy::RepairOnly)?, of(policy)?);
        let (total, validation, repair_rule) = (over(own, absence)?, over(own, repair)?, over(repair, absence)?);
        let [total, validation, repair_rule] = [total, validation, repair_rule].map(|part| part.within(-1.0, 1.0));
        Some(Gain { policy, total, validation, repair_rule })
    };
    [Policy::Full, Policy::Selector].into_iter().filter_map(gain).collect()
}

/// Runs every policy with the seeds `settings.seed ..  settings.seed + seeds` (at least one). `progress` hears the
/// share of all runs done.
///
/// # Errors
/// When a job needs more nodes than there are.
pub fn compare(
    settings: &Settings,
    seeds: u64,
    world: (&Law, &Jobs, &ValidationPlan),
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<PolicySummary>, TooLarge> {
    let seeds = seeds.max(1);
    let total = (Policy::ALL.len() as u64 * seeds) as f64;
    let mut done = 0.0;
    let mut summaries = Vec::new();
    for policy in Policy::ALL {
        let mut outcomes = Vec::new();
        for k in 0..seeds {
            let settings = Settings { seed: settings.seed + k, ..settings.clone() };
            outcomes.push(run(policy, &settings, world, &mut |share| progress((done + share) / total))?);
            done += 1.0;
        }
        summaries.extend(summary(policy, &outcomes, settings.hours));
    }
    Ok(summaries)
}

fn summary(policy: Policy, outcomes: &[Outcome], hours: f64) -> Option<PolicySummary> {
    let of = |f: &dyn Fn(&Outcome) -> f64| Interval::of(&outcomes.iter().map(f).collect::<Vec<_>>());
    let known: Vec<f64> = outcomes.iter().filter_map(|o| o.mtbi_h).collect();
    Some(PolicySummary {
        policy,
        utilisation: of(&|o| o.utilisation)?.within(0.0, 1.0),
        validation_h: of(&|o| o.validation_h)?.within(0.0, hours),
        mtbi_h: Interval::of(&known).map(|interval| interval.within(0.0, hours)),
        incidents_per_node: of(&|o| o.incidents_per_node)?.within(0.0, f64::INFINITY),
        seeds: outcomes.len(),
        by_seed: outcomes.iter().map(|o| o.utilisation).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{CountLaw, JobLaw, Repair};

    fn small(policy: Policy, settings: &Settings, jobs: &JobLaw) -> Outcome {
        let law = Law::Count(CountLaw::default());
        let plan = ValidationPlan::like_published(1.34);
        run(policy, settings, (&law, &Jobs::Law(jobs.clone()), &plan), &mut |_| {}).unwrap()
    }

    fn settings(repair: Repair) -> Settings {
        Settings { nodes: 200, repair, seed: 4, ..Settings::default() }
    }

    #[test]
    fn policies_rank_as_published_under_either_repair() {
        for repair in [Repair::Resample, Repair::Same] {
            let [absence, full, selector, ideal, repair_only] =
                Policy::ALL.map(|p| small(p, &settings(repair), &JobLaw { mean_h: 8.0, ..JobLaw::default() }));
            assert!(absence.utilisation < 0.5 * full.utilisation, "{absence:?} {full:?}");
            assert!(full.utilisation < selector.utilisation && selector.utilisation <= ideal.utilisation + 0.01);
            assert!(selector.validation_h < 0.3 * full.validation_h && full.validation_h > 10.0);
            assert!(absence.mtbi_h < full.mtbi_h);
            assert!(repair_only.utilisation > absence.utilisation && repair_only.validation_h == 0.0);
            assert_eq!((ideal.mtbi_h, ideal.incidents_per_node, absence.validation_h), (None, 0.0, 0.0));
        }
    }

    #[test]
    fn long_jobs_do_not_livelock_under_the_full_set() {
        // The first trap: were times to incidents drawn anew at each allocation, validation before jobs of 120
        // hours would find "defects" for ever (100 incidents per node, 30 % utilisation).
        let jobs = JobLaw { mean_h: 120.0, sigma: 0.01, load: 0.9, ..JobLaw::default() };
        let o = small(Policy::Full, &settings(Repair::Resample), &jobs);
        assert!(o.incidents_per_node < 20.0 && o.utilisation > 0.5, "{o:?}");
    }

    #[test]
    fn catching_defects_does_not_wear_nodes_out() {
        // The second trap: were a caught defect counted into the node's hazard, incidents would breed incidents.
        // Under a swap by the same node the rate stays that of the law, month after month.
        let month = small(Policy::Full, &settings(Repair::Same), &JobLaw::default());
        let longer = Settings { hours: 4.0 * 720.0, ..settings(Repair::Same) };
        let months = small(Policy::Full, &longer, &JobLaw::default());
        let per_use = |o: Outcome, hours: f64| o.incidents_per_node / (o.utilisation * hours);
        let ratio = per_use(months, 4.0 * 720.0) / per_use(month, 720.0);
        assert!((0.8..1.2).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_seed_fixes_the_run_and_hours_add_up() {
        let s = settings(Repair::Resample);
        for policy in Policy::ALL {
            let a = small(policy, &s, &JobLaw::default());
            assert_eq!(a, small(policy, &s, &JobLaw::default()));
            assert!(a.utilisation * s.hours + a.validation_h <= s.hours + 1e-6, "{a:?}");
        }
    }

    fn compared(nodes: usize, jobs: &Jobs) -> Result<Vec<PolicySummary>, TooLarge> {
        let law = Law::Count(CountLaw::default());
        let plan = ValidationPlan::like_published(1.34);
        let settings = Settings { nodes, ..settings(Repair::Resample) };
        compare(&settings, 2, (&law, jobs, &plan), &mut |_| {})
    }

    #[test]
    fn a_gain_is_that_of_validating_and_that_of_the_repair_rule() {
        let found = compared(100, &Jobs::Law(JobLaw::default())).unwrap();
        let by = |policy: Policy| found.iter().find(|s| s.policy == policy).unwrap().utilisation.mean;
        let gains = gains(&found);
        assert_eq!(gains.iter().map(|g| g.policy).collect::<Vec<_>>(), [Policy::Full, Policy::Selector]);
        for gain in gains {
            assert!((gain.total.mean - (by(gain.policy) - by(Policy::Absence))).abs() < 1e-12);
            assert!((gain.total.mean - gain.validation.mean - gain.repair_rule.mean).abs() < 1e-12);
            assert!((gain.validation.mean - (by(gain.policy) - by(Policy::RepairOnly))).abs() < 1e-12);
            assert!(gain.repair_rule.mean > 0.0, "{gain:?}");
        }
    }

    #[test]
    fn a_job_larger_than_the_cluster_is_an_error_with_both_sizes() {
        let job = |nodes| crate::simulate::Job { arrives_h: 0.0, nodes, hours: 2.0 };
        let jobs = Jobs::Trace(vec![job(1), job(41), job(2)]);
        assert_eq!(compared(40, &jobs), Err(TooLarge { job: 41, cluster: 40 }));
        assert!(compared(41, &jobs).is_ok());
    }

    #[test]
    fn no_interval_holds_what_cannot_be() {
        let outcome = |utilisation: f64, mtbi_h: f64| Outcome {
            utilisation,
            validation_h: mtbi_h / 10.0,
            mtbi_h: Some(mtbi_h),
            incidents_per_node: 1.0 - utilisation,
        };
        let s = summary(Policy::Full, &[outcome(0.99, 1.0), outcome(0.9, 700.0)], 720.0).unwrap();
        let ends = |i: Interval| (i.low, i.high);
        assert_eq!((s.utilisation.high, s.incidents_per_node.low), (1.0, 0.0));
        assert_eq!((ends(s.mtbi_h.unwrap()), s.validation_h.low), ((0.0, 720.0), 0.0));
        assert!((s.utilisation.mean - 0.945).abs() < 1e-12 && s.utilisation.low >= 0.0);
    }

    #[test]
    fn intervals_are_students() {
        // t(0.975, 2) = 4.303; values 1, 2, 3 have standard error 1 / sqrt 3.
        let i = Interval::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((i.high - 2.0 - 4.3027 / 3.0_f64.sqrt()).abs() < 1e-3);
        assert_eq!(Interval::of(&[5.0]), Some(Interval { mean: 5.0, low: 5.0, high: 5.0 }));
        assert_eq!(Interval::of(&[]), None);
    }
}
