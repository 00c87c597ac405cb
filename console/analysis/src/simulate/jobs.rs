//! Which jobs ask for nodes? Those of a trace, or of a generator with a given load.

use serde::{Deserialize, Serialize};

use crate::Chance;
use crate::risk::import::{Limits, LineError};

/// A request for nodes. Times in hours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// When it arrives, from the start of the trace.
    pub arrives_h: f64,
    /// Nodes it needs at once.
    pub nodes: usize,
    /// Work left.
    pub hours: f64,
}

/// Law of generated jobs: Poisson arrivals, sizes from a table, log-normal lengths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobLaw {
    /// Node-hours asked per node-hour there is.
    pub load: f64,
    /// Mean length before the cap, in hours.
    pub mean_h: f64,
    /// Standard deviation of the length's logarithm.
    pub sigma: f64,
    /// Longest length, in hours.
    pub cap_h: f64,
    /// Weight of 1, 2, 4, .. nodes.
    pub sizes: Vec<f64>,
}

impl Default for JobLaw {
    /// Large jobs as fitted to SuperBench's Table 4; a fit, not evidence.
    fn default() -> Self {
        let sizes = vec![0.09, 0.10, 0.12, 0.14, 0.16, 0.18, 0.21];
        Self { load: 0.97, mean_h: 24.5, sigma: 1.37, cap_h: 120.0, sizes }
    }
}

/// Where jobs come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jobs {
    /// A trace, by arrival; it begins at a random hour and goes round.
    Trace(Vec<Job>),
    /// A law.
    Law(JobLaw),
}

/// A job that needs more nodes than the cluster has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a job needs {job} nodes and the cluster has {cluster}: simulate at least {job} nodes or leave the job out")]
pub struct TooLarge {
    /// Nodes of the largest job.
    pub job: usize,
    /// Nodes of the cluster.
    pub cluster: usize,
}

impl Jobs {
    /// Whether every job fits a cluster of `nodes`. Of a law only the sizes that fit are drawn, so that its smallest job
    /// has to.
    ///
    /// # Errors
    /// With the size of the largest job of a trace.
    pub fn fit(&self, nodes: usize) -> Result<(), TooLarge> {
        let job = match self {
            Self::Trace(all) => all.iter().map(|job| job.nodes).max().unwrap_or(0),
            Self::Law(_) => 1,
        };
        if job > nodes { Err(TooLarge { job, cluster: nodes }) } else { Ok(()) }
    }
}

/// The stream of jobs of one run.
pub(super) struct Arrivals<'a> {
    jobs: &'a Jobs,
    rate: f64,
    /// Nodes of the cluster.
    nodes: usize,
    next: usize,
    /// What to add to a trace's times.
    shift: f64,
    now: f64,
}

impl<'a> Arrivals<'a> {
    pub(super) fn new(jobs: &'a Jobs, nodes: usize, chance: &mut Chance) -> Self {
        let mut arrivals = Self { jobs, rate: 0.0, nodes, next: 0, shift: 0.0, now: 0.0 };
        match jobs {
            Jobs::Law(law) => {
                let fitting = law.fitting(nodes);
                let weight: f64 = fitting.iter().sum();
                let sizes = fitting.iter().enumerate().map(|(k, w)| w * size(k) as f64);
                let work = sizes.sum::<f64>() / weight * law.capped_mean();
                arrivals.rate = law.load * nodes as f64 / work;
            }
            Jobs::Trace(all) if !all.is_empty() => {
                arrivals.next = chance.below(all.len());
                arrivals.shift = -all[arrivals.next].arrives_h;
            }
            Jobs::Trace(_) => {}
        }
        arrivals
    }

    /// The next job; none when there are no jobs.
    pub(super) fn next(&mut self, chance: &mut Chance) -> Option<Job> {
        match self.jobs {
            Jobs::Law(law) => {
                self.now += chance.exponential() / self.rate;
                Some(Job {
                    arrives_h: self.now,
                    nodes: law.draw_size(self.nodes, chance),
                    hours: law.draw_hours(chance),
                })
            }
            Jobs::Trace(all) => {
                let job = *all.get(self.next)?;
                let arrives_h = (job.arrives_h + self.shift).max(self.now);
                self.now = arrives_h;
                self.next += 1;
                if self.next == all.len() {
                    self.next = 0;
                    self.shift = arrives_h - all[0].arrives_h;
                    // A trace of one instant must not stop the clock.
                    self.now += 1e-3;
                }
                Some(Job { arrives_h, ..job })
            }
        }
    }
}

fn size(k: usize) -> usize {
    1_usize << k.min(20)
}

impl JobLaw {
    /// Largest job, in nodes.
    #[must_use]
    pub fn largest(&self) -> usize {
        size(self.sizes.len().max(1) - 1)
    }

    /// Weights of the sizes that fit a cluster of `nodes`; the smallest always does.
    fn fitting(&self, nodes: usize) -> &[f64] {
        let fit = (0..self.sizes.len()).take_while(|&k| size(k) <= nodes.max(1)).count();
        &self.sizes[..fit]
    }

    fn draw_size(&self, nodes: usize, chance: &mut Chance) -> usize {
        let sizes = self.fitting(nodes);
        let mut at = chance.unit() * sizes.iter().sum::<f64>();
        let found = sizes.iter().position(|w| {
            at -= w;
            at < 0.0
        });
        size(found.unwrap_or(sizes.len().max(1) - 1))
    }

    fn draw_hours(&self, chance: &mut Chance) -> f64 {
        let centre = self.mean_h.ln() - 0.5 * self.sigma * self.sigma;
        (centre + self.sigma * chance.normal()).exp().min(self.cap_h)
    }

    /// Mean length after the cap, by 4,096 equally likely lengths.
    fn capped_mean(&self) -> f64 {
        use statrs::distribution::{ContinuousCDF, Normal};
        let normal = Normal::standard();
        let centre = self.mean_h.ln() - 0.5 * self.sigma * self.sigma;
        let n = 4096;
        let length = |k: i32| (centre + self.sigma * normal.inverse_cdf((f64::from(k) + 0.5) / f64::from(n))).exp();
        (0..n).map(|k| length(k).min(self.cap_h)).sum::<f64>() / f64::from(n)
    }
}

/// Jobs of a CSV with a header in the format of the Philly trace: `submit_s`, `duration_s` in seconds, and
/// `nodes8` (nodes of 8 GPUs), or `num_gpus` from which it follows. Jobs without length or nodes are left out.
///
/// # Errors
/// The first line that cannot be read, a missing column, or a text beyond `limits`.
pub fn philly_jobs(text: &str, limits: Limits) -> Result<Vec<Job>, LineError> {
    let fail = |line: usize, why: String| LineError { line, why };
    if text.len() > limits.bytes {
        return Err(fail(0, format!("{} bytes are too much", text.len())));
    }
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| fail(1, e.to_string()))?.clone();
    let at = |name: &str| header.iter().position(|h| h == name).ok_or_else(|| fail(1, format!("no column {name}")));
    let (submit, duration) = (at("submit_s")?, at("duration_s")?);
    let (nodes, per_node) = at("nodes8").map_or_else(|_| at("num_gpus").map(|k| (k, 8.0)), |k| Ok((k, 1.0)))?;
    let mut jobs = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| fail(e.position().map_or(0, |p| p.line() as usize), e.to_string()))?;
        let line = record.position().map_or(0, |p| p.line() as usize);
        let number = |k: usize| {
            let text = record.get(k).unwrap_or_default();
            let value = text.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
            value.ok_or_else(|| fail(line, format!("{text:?} is not a number")))
        };
        let nodes = (number(nodes)? / per_node).ceil() as usize;
        let hours = number(duration)? / 3600.0;
        if nodes > 0 && hours > 0.0 {
            jobs.push(Job { arrives_h: number(submit)? / 3600.0, nodes, hours });
        }
        if jobs.len() > limits.rows {
            return Err(fail(line, format!("more than {} jobs", limits.rows)));
        }
    }
    jobs.sort_by(|a, b| a.arrives_h.total_cmp(&b.arrives_h));
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_jobs_ask_for_the_load() {
        let jobs = Jobs::Law(JobLaw::default());
        let mut chance = Chance::new(1);
        let mut arrivals = Arrivals::new(&jobs, 1000, &mut chance);
        let (mut work, mut last) = (0.0, 0.0);
        for _ in 0..100_000 {
            let job = arrivals.next(&mut chance).unwrap();
            assert!(job.arrives_h >= last && job.hours <= 120.0 && job.nodes <= 64);
            work += job.hours * job.nodes as f64;
            last = job.arrives_h;
        }
        assert!((work / last / 1000.0 - 0.97).abs() < 0.02, "{}", work / last / 1000.0);
    }

    #[test]
    fn sizes_that_do_not_fit_are_not_drawn_and_the_load_stays() {
        let law = JobLaw::default();
        assert_eq!(law.largest(), 64);
        let jobs = Jobs::Law(law);
        assert_eq!(jobs.fit(50), Ok(()));
        let mut chance = Chance::new(2);
        let mut arrivals = Arrivals::new(&jobs, 50, &mut chance);
        let drawn: Vec<Job> = (0..50_000).filter_map(|_| arrivals.next(&mut chance)).collect();
        assert_eq!(drawn.iter().map(|j| j.nodes).max(), Some(32));
        let asked: f64 = drawn.iter().map(|j| j.hours * j.nodes as f64).sum();
        let load = asked / drawn.last().unwrap().arrives_h / 50.0;
        assert!((load - 0.97).abs() < 0.03, "{load}");
    }

    #[test]
    fn a_trace_goes_round_in_order() {
        let text = "submit_s,duration_s,num_gpus,nodes8\n3600,7200,16,2\n0,3600,1,1\n7200,0,8,1\n";
        let all = philly_jobs(text, Limits::default()).unwrap();
        assert_eq!(all.iter().map(|j| j.nodes).collect::<Vec<_>>(), [1, 2]);
        let jobs = Jobs::Trace(all);
        let mut chance = Chance::new(1);
        assert_eq!(jobs.fit(1), Err(TooLarge { job: 2, cluster: 1 }));
        assert_eq!(
            TooLarge { job: 64, cluster: 40 }.to_string(),
            "a job needs 64 nodes and the cluster has 40: simulate at least 64 nodes or leave the job out"
        );
        assert_eq!(jobs.fit(2), Ok(()));
        let mut arrivals = Arrivals::new(&jobs, 2, &mut chance);
        let drawn: Vec<Job> = (0..5).filter_map(|_| arrivals.next(&mut chance)).collect();
        assert_eq!(drawn[0].arrives_h, 0.0);
        assert!(drawn.windows(2).all(|w| w[1].arrives_h >= w[0].arrives_h));
        assert!(drawn.iter().any(|j| j.nodes == 2) && drawn.iter().any(|j| j.nodes == 1), "as the trace has them");
        assert_eq!(philly_jobs("submit_s,duration_s,num_gpus\n0,3600,9\n", Limits::default()).unwrap()[0].nodes, 2);
        assert_eq!(philly_jobs("submit_s,duration_s,nodes8\n0,x,9\n", Limits::default()).unwrap_err().line, 2);
    }
}
