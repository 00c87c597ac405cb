//! What does the Selector say of these nodes, whatever the job? History and model are asked once; then each question
//! about a job's length, its bound and the minutes there are is answered from the curves.

use super::{
    Benchmark, Coverage, EXPECTATION_P0, Exploration, Mode, Request, Selection, joint_risk, nodes_to_validate, select,
};
use crate::risk::{Curves, History, Sampling, Survival, reasons, status, usual};

/// Nodes that are explained, the riskiest first.
const EXPLAINED: usize = 50;
/// Horizon of the explanations, in hours.
const EXPLAINED_H: f64 = 168.0;

/// What is known of one node now.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeOutlook {
    /// Name.
    pub node: String,
    /// Whether an incident lasts.
    pub down: bool,
    /// Incidents in the log.
    pub incidents: usize,
    /// Hours since the last one ended; none without one, or while it lasts.
    pub quiet_h: Option<f64>,
    /// Features that set it apart, by their place in the model's rows, with the change of risk over a week; only of the
    /// riskiest nodes.
    pub reasons: Vec<(usize, f64)>,
}

/// Nodes, their curves, and the benchmarks there are to choose from.
#[derive(Clone, Debug)]
pub struct Outlook {
    nodes: Vec<NodeOutlook>,
    curves: Option<Curves>,
    benchmarks: Vec<Benchmark>,
    coverage: Coverage,
}

/// A question about one job.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Length of the job.
    pub job_h: f64,
    /// Joint risk that may remain, 0 to 1; none: the rule of expectations, [`EXPECTATION_P0`].
    pub p0: Option<f64>,
    /// Minutes there are; none: as few as reach `p0`.
    pub budget_minutes: Option<f64>,
    /// Floor under the use of each benchmark.
    pub exploration: Option<Exploration>,
}

/// The answer. Nodes are named by their place in [`Outlook::nodes`].
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Probability of an incident during the job, per node, 0 to 1; 1 where an incident lasts.
    pub risks: Vec<f64>,
    /// Probability that any node that is up has an incident during the job.
    pub joint: f64,
    /// Bound in force.
    pub p0: f64,
    /// What to run.
    pub selection: Selection,
    /// On which nodes, the riskiest first; none that are down.
    pub validate: Vec<usize>,
}

impl Outlook {
    /// Outlook of `nodes` at the end of `history`'s window. `times` (rising, hours) are those at which curves are kept;
    /// between them a constant hazard is taken. Without a model every node that is up has risk 1: nothing is known.
    /// `sampling` is that of the model's rows.
    #[must_use]
    pub fn new(
        history: &History,
        nodes: &[String],
        (model, sampling): (Option<&dyn Survival>, &Sampling),
        times: Vec<f64>,
    ) -> Self {
        let window = history.window();
        let now = window.end_h;
        let fresh = crate::risk::Past::default();
        let width = crate::risk::feature_names(sampling.checks).len();
        let (mut known, mut rows) = (Vec::with_capacity(nodes.len()), Vec::with_capacity(nodes.len() * width));
        for node in nodes {
            let past = history.past(node).unwrap_or(&fresh);
            let row = status(past, window, now, sampling);
            let last_end = past.outages().iter().map(|o| o.end_h).fold(f64::NEG_INFINITY, f64::max);
            known.push(NodeOutlook {
                node: node.clone(),
                down: row.is_none(),
                incidents: past.outages().len(),
                quiet_h: (last_end.is_finite() && last_end <= now).then_some(now - last_end),
                reasons: Vec::new(),
            });
            rows.extend(row.unwrap_or_else(|| vec![0.0; width]));
        }
        let curves = model.map(|model| model.survive(&rows, &times));
        let mut outlook =
            Self { nodes: known, curves, benchmarks: Vec::new(), coverage: Coverage::new(&[], &Default::default()) };
        if let Some(model) = model {
            outlook.explain(model, &rows, width);
        }
        outlook
    }

    /// With what may be run.
    #[must_use]
    pub fn with_benchmarks(mut self, benchmarks: Vec<Benchmark>, coverage: Coverage) -> Self {
        (self.benchmarks, self.coverage) = (benchmarks, coverage);
        self
    }

    fn explain(&mut self, model: &dyn Survival, rows: &[f64], width: usize) {
        let usual = usual(rows, width);
        let risks = self.risks(EXPLAINED_H);
        let mut order: Vec<usize> = (0..self.nodes.len()).filter(|&i| !self.nodes[i].down).collect();
        order.sort_by(|&a, &b| risks[b].total_cmp(&risks[a]));
        for &i in order.iter().take(EXPLAINED) {
            self.nodes[i].reasons = reasons(model, &rows[i * width..(i + 1) * width], &usual, EXPLAINED_H);
        }
    }

    /// The nodes, in the order given.
    #[must_use]
    pub fn nodes(&self) -> &[NodeOutlook] {
        &self.nodes
    }

    /// Survival of each node from now on; none without a model.
    #[must_use]
    pub fn curves(&self) -> Option<&Curves> {
        self.curves.as_ref()
    }

    /// What may be run.
    #[must_use]
    pub fn benchmarks(&self) -> &[Benchmark] {
        &self.benchmarks
    }

    /// What it finds.
    #[must_use]
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    fn risks(&self, hours: f64) -> Vec<f64> {
        let survives = |i: usize| match &self.curves {
            Some(curves) if !self.nodes[i].down => curves.at(i, hours),
            _ => 0.0,
        };
        let risk = |i: usize| 1.0 - survives(i);
        (0..self.nodes.len()).map(risk).collect()
    }

    /// Answers one question: microseconds per node, and the search of [`select`]. Where a validation cannot be relied
    /// on to find what matters, or too little is known, it is asked of all nodes that are up.
    #[must_use]
    pub fn answer(&self, question: &Question) -> Answer {
        let risks = self.risks(question.job_h);
        let up: Vec<usize> = (0..risks.len()).filter(|&i| !self.nodes[i].down).collect();
        let of_up: Vec<f64> = up.iter().map(|&i| risks[i]).collect();
        let joint = joint_risk(of_up.iter().copied());
        let p0 = question.p0.unwrap_or(EXPECTATION_P0);
        let mode = question.budget_minutes.map_or(Mode::Cheapest, |minutes| Mode::Budget { minutes });
        let selection = select(&Request {
            benchmarks: &self.benchmarks,
            coverage: &self.coverage,
            risk: joint,
            p0,
            mode,
            exploration: question.exploration,
        });
        let chosen =
            if selection.picks.is_empty() { Vec::new() } else { nodes_to_validate(&of_up, selection.coverage, p0) };
        Answer { risks, joint, p0, validate: chosen.into_iter().map(|k| up[k]).collect(), selection }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::risk::{Category, Cox, Incident, Ties, Window, samples};
    use crate::selector::{CoverageSettings, Defect, Outcome};

    /// Nodes 0 to 9 fail every 100 hours, 10 to 39 never; node 5 is down at the end.
    fn fleet() -> (History, Vec<String>) {
        let names: Vec<String> = (0..40).map(|n| format!("n{n:02}")).collect();
        let mut log = Vec::new();
        for (n, name) in names.iter().take(10).enumerate() {
            for k in 0..20 {
                let start = 100.0 * f64::from(k) + 3.0 * n as f64 + 20.0;
                log.push(Incident::new(name, start, Some(start + 5.0), Category::Network));
            }
        }
        log.push(Incident::new("n05", 1995.0, None, Category::Gpu));
        (History::new(&log, &names, Window { start_h: 0.0, end_h: 2000.0 }), names)
    }

    fn outlook() -> Outlook {
        let (history, names) = fleet();
        let rows = samples(&history, &Sampling::default()).unwrap();
        let model = Cox::fit(&rows.table, 1e-3, Ties::Efron).unwrap();
        let defects: Vec<Defect> = (0..60)
            .map(|k| Defect { category: Category::Network, age_h: 1.0, found_by: vec![usize::from(k % 10 == 0)] })
            .collect();
        let benchmark = |id: &str, minutes| Benchmark { id: id.into(), minutes, idle_h: Some(1.0) };
        let coverage = Coverage::new(&defects, &CoverageSettings::default());
        let times = (1..=48).map(|k| 24.0 * f64::from(k)).collect();
        Outlook::new(&history, &names, (Some(&model), &Sampling::default()), times)
            .with_benchmarks(vec![benchmark("net", 3.0), benchmark("gemm", 9.0)], coverage)
    }

    fn ask(outlook: &Outlook, job_h: f64, p0: f64, budget_minutes: Option<f64>) -> Answer {
        outlook.answer(&Question { job_h, p0: Some(p0), budget_minutes, exploration: None })
    }

    #[test]
    fn the_nodes_that_failed_are_the_ones_to_validate_and_the_one_that_is_down_is_not() {
        let o = outlook();
        assert!(o.nodes()[5].down && o.nodes()[5].quiet_h.is_none() && !o.nodes()[4].down);
        assert_eq!((o.nodes()[3].incidents, o.nodes()[30].incidents), (20, 0));
        assert!(!o.nodes()[3].reasons.is_empty());
        let a = ask(&o, 48.0, 0.6, None);
        assert!(a.joint > 0.6 && a.selection.outcome == Outcome::Reached, "{:?}", a.selection);
        assert_eq!(a.selection.picks.len(), 1);
        assert!(a.validate.len() >= 9 && a.validate[..9].iter().all(|&i| i < 10), "{:?}", a.validate);
        assert!(!a.validate.contains(&5));
        assert!(a.validate.windows(2).all(|w| a.risks[w[0]] >= a.risks[w[1]]));
        assert_eq!(a.risks[5], 1.0);
    }

    #[test]
    fn what_the_last_validation_found_counts_where_enough_of_them_were_followed_by_incidents() {
        use crate::risk::Check;
        // Every node breaks every 200 hours; one that will break within 100 shows it in a validation every 50.
        let names: Vec<String> = (0..20).map(|n| format!("n{n:02}")).collect();
        let start = |n: usize, k: usize| 200.0 * (k as f64 + 1.0) + 10.0 * n as f64;
        let broken = |(n, k): (usize, usize)| Incident::new(&names[n], start(n, k), Some(start(n, k)), Category::Disk);
        let log: Vec<Incident> = (0..20).flat_map(|n| (0..8).map(move |k| (n, k))).map(broken).collect();
        let mut history = History::new(&log, &names, Window { start_h: 0.0, end_h: 1800.0 });
        assert!(!history.validated());
        for (n, name) in names.iter().enumerate() {
            for at_h in (0..36).map(|k| 50.0 * f64::from(k)) {
                let next = (0..9).map(|k| start(n, k) - at_h).find(|left| *left > 0.0).unwrap();
                let margin = if next < 100.0 { 0.2 } else { -0.02 };
                history.check(name, Check { at_h, full: true, margin, failed: u32::from(next < 100.0) });
            }
        }
        assert!(history.validated());
        let sampling = Sampling { checks: true, ..Sampling::default() };
        let model = Cox::fit(&samples(&history, &sampling).unwrap().table, 1e-3, Ties::Efron).unwrap();
        let o = Outlook::new(&history, &names, (Some(&model), &sampling), vec![50.0, 100.0]);
        let bad = |n: usize| start(n, 8) - 1750.0 < 100.0;
        let risks = ask(&o, 50.0, 0.3, None).risks;
        let of = |which: bool| (0..20).filter(|&n| bad(n) == which).map(|n| risks[n]).collect::<Vec<f64>>();
        let (bad, good) = (of(true), of(false));
        assert!(!bad.is_empty() && !good.is_empty());
        let (least, most) = (bad.iter().copied().fold(1.0, f64::min), good.iter().copied().fold(0.0, f64::max));
        assert!(least > 2.0 * most, "{bad:?} {good:?}");
    }

    #[test]
    fn longer_jobs_are_riskier_and_a_budget_is_kept() {
        let o = outlook();
        let joints: Vec<f64> = [6.0, 24.0, 168.0].map(|h| ask(&o, h, 0.3, None).joint).to_vec();
        assert!(joints.is_sorted() && joints[0] < joints[2], "{joints:?}");
        assert!(ask(&o, 168.0, 0.0, Some(5.0)).selection.minutes <= 5.0);
        let idle = ask(&o, 0.0, 0.3, None);
        assert_eq!((idle.selection.outcome, idle.validate), (Outcome::NotNeeded, vec![]));
    }

    #[test]
    fn without_a_model_all_nodes_are_asked_for_everything() {
        let (history, names) = fleet();
        let benchmark = Benchmark { id: "net".into(), minutes: 3.0, idle_h: None };
        let empty = Coverage::new(&[], &CoverageSettings::default());
        let o = Outlook::new(&history, &names, (None, &Sampling::default()), vec![24.0])
            .with_benchmarks(vec![benchmark], empty);
        let a = ask(&o, 24.0, 0.3, None);
        assert_eq!((a.joint, a.selection.outcome, a.validate.len()), (1.0, Outcome::LowConfidence, 39));
    }
}
