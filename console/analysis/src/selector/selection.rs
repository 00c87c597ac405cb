//! What should run, in which order, and why? The answer of the Selector.

use serde::{Deserialize, Serialize};

use super::{Effort, Goal, Instance, Mode, Request, Set, algorithm1, best_within, reverse_delete, solve};

/// How a selection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The risk is below the bound already; nothing has to run.
    NotNeeded,
    /// After the picks the risk is below the bound.
    Reached,
    /// No subset brings the risk below the bound: run the full set, or ask a person.
    TargetUnreachable,
    /// Too few defects are known to trust any subset: run the full set.
    LowConfidence,
    /// The budget was the limit; the risk may still be above the bound.
    WithinBudget,
}

/// Why a benchmark was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It finds defects that the picks before it do not.
    Coverage,
    /// It has been idle for too long.
    Exploration,
    /// Everything runs.
    FullSet,
}

/// One picked benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pick {
    /// Name.
    pub benchmark: String,
    /// Minutes.
    pub minutes: f64,
    /// Joint risk once it and all before it have run.
    pub risk_after: f64,
    /// By how much it lowers the risk, per minute; infinite for a benchmark that takes none.
    pub gain_per_minute: f64,
    /// Why it was picked.
    pub why: Why,
    /// The same for a person.
    pub reason: String,
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// How it ended.
    pub outcome: Outcome,
    /// Picks in the order to run them, the most useful per minute first.
    pub picks: Vec<Pick>,
    /// Minutes of all picks.
    pub minutes: f64,
    /// Joint risk before.
    pub risk_before: f64,
    /// Joint risk after all picks pass or their defects are removed.
    pub risk_after: f64,
    /// Trusted coverage of all picks, 0 to 1.
    pub coverage: f64,
    /// How far the picks may be from the best, as a share; none where no exact search was made.
    pub gap: Option<f64>,
    /// One sentence for a person.
    pub reason: String,
}

/// Largest number of benchmarks the exact search takes on.
const EXACT: usize = 30;

/// Answers `request`. The coverage that counts is the trusted one, so `risk (1 - coverage)` is an upper estimate
/// of what remains. Under 10 ms for 30 benchmarks; deterministic.
#[must_use]
pub fn select(request: &Request<'_>) -> Selection {
    let minutes: Vec<f64> = request.benchmarks.iter().map(|b| b.minutes).collect();
    let instance = request.coverage.instance(&minutes);
    let all = Set::first(instance.len());
    let budget = matches!(request.mode, Mode::Budget { .. });
    let answer = Answer { request, instance: &instance };
    if request.risk <= request.p0 {
        return answer.of(Outcome::NotNeeded, Set::default(), Set::default(), None);
    }
    if !request.coverage.is_enough() && !budget {
        return answer.of(Outcome::LowConfidence, all, Set::default(), None);
    }
    let kept = answer.overdue();
    if let Mode::Budget { minutes } = request.mode {
        return answer.within(minutes, kept);
    }
    let need = request.coverage.needed(1.0 - request.p0 / request.risk);
    // A need beyond reach leaves the search to find whatever can be found.
    let need = need.unwrap_or(f64::INFINITY);
    let greedy = algorithm1(&instance, need, kept);
    if !greedy.reached {
        return answer.of(Outcome::TargetUnreachable, greedy.set(), kept, None);
    }
    if request.mode == Mode::Paper {
        return answer.of(Outcome::Reached, greedy.set(), kept, None);
    }
    let pruned = reverse_delete(&instance, &greedy, need, kept);
    if instance.len() > EXACT {
        return answer.of(Outcome::Reached, pruned.set(), kept, None);
    }
    let solved = solve(&instance, Goal::Find(need), pruned.set(), kept, Effort::default());
    answer.of(Outcome::Reached, solved.set, kept, Some(solved.gap))
}

struct Answer<'a> {
    request: &'a Request<'a>,
    instance: &'a Instance,
}

impl Answer<'_> {
    /// Benchmarks that the exploration floor adds.
    fn overdue(&self) -> Set {
        let Some(floor) = self.request.exploration else { return Set::default() };
        let idle = |b: usize| self.request.benchmarks[b].idle_h.unwrap_or(f64::INFINITY);
        let mut late: Vec<usize> = (0..self.instance.len()).filter(|&b| idle(b) > floor.every_h).collect();
        late.sort_by(|&a, &b| idle(b).total_cmp(&idle(a)).then(a.cmp(&b)));
        late.into_iter().take(floor.at_most).collect()
    }

    fn within(&self, minutes: f64, kept: Set) -> Selection {
        // An overdue benchmark that does not fit waits for a larger budget.
        let mut keep = Set::default();
        for b in kept.iter() {
            if self.instance.cost(keep.with(b)) <= minutes {
                keep = keep.with(b);
            }
        }
        let start = best_within(self.instance, minutes, keep);
        if self.instance.len() > EXACT {
            return self.of(Outcome::WithinBudget, start, keep, None);
        }
        let solved = solve(self.instance, Goal::Within(minutes), start, keep, Effort::default());
        self.of(Outcome::WithinBudget, solved.set, keep, Some(solved.gap))
    }

    fn of(&self, outcome: Outcome, set: Set, kept: Set, gap: Option<f64>) -> Selection {
        let request = self.request;
        let picks = self.picks(outcome, set, kept);
        let coverage = request.coverage.trusted(self.instance.found(set));
        let risk_after = request.risk * (1.0 - coverage);
        // Of no pick it is 0; an empty sum is -0.0.
        let minutes = self.instance.cost(set) + 0.0;
        // In budget mode the target may still be met.
        let outcome = match outcome {
            Outcome::WithinBudget if risk_after <= request.p0 => Outcome::Reached,
            other => other,
        };
        let mut selection = Selection {
            outcome,
            picks,
            minutes,
            risk_before: request.risk,
            risk_after,
            coverage,
            gap,
            reason: String::new(),
        };
        selection.reason = selection.sentence(request.benchmarks.len(), request.p0, request.coverage.effective());
        selection
    }

    /// The set in order of gain per minute.
    fn picks(&self, outcome: Outcome, set: Set, kept: Set) -> Vec<Pick> {
        let within = self.instance.restricted(set);
        let mut order = algorithm1(&within, f64::INFINITY, Set::default()).order;
        order.extend(set.iter().filter(|b| !order.contains(b)).collect::<Vec<_>>());
        let mut done = Set::default();
        order.iter().map(|&b| self.pick(b, &mut done, outcome, kept)).collect()
    }

    fn pick(&self, b: usize, done: &mut Set, outcome: Outcome, kept: Set) -> Pick {
        let risk = |set: Set| self.request.risk * (1.0 - self.request.coverage.trusted(self.instance.found(set)));
        let (before, after) = (risk(*done), risk(done.with(b)));
        *done = done.with(b);
        let benchmark = &self.request.benchmarks[b];
        let (why, reason) = if outcome == Outcome::LowConfidence {
            (Why::FullSet, "part of the full set".to_owned())
        } else if kept.has(b) {
            (Why::Exploration, idle(benchmark.idle_h))
        } else {
            (Why::Coverage, format!("lowers the risk from {before:.2} to {after:.2} in {}", lasting(benchmark.minutes)))
        };
        Pick {
            benchmark: benchmark.id.clone(),
            minutes: self.instance.minutes(b),
            risk_after: after,
            gain_per_minute: (before - after) / self.instance.minutes(b),
            why,
            reason,
        }
    }
}

/// Minutes for a person: `3 min`, or `12 s` below one.
#[must_use]
pub fn lasting(minutes: f64) -> String {
    if minutes < 1.0 { format!("{:.0} s", minutes * 60.0) } else { format!("{minutes:.0} min") }
}

/// Two probabilities for a person, with two digits, or with as many as it takes to tell them apart.
#[must_use]
pub fn apart(a: f64, b: f64) -> (String, String) {
    let digits = digits(a, b);
    (format!("{a:.digits$}"), format!("{b:.digits$}"))
}

fn digits(a: f64, b: f64) -> usize {
    (2..17).find(|digits| format!("{a:.digits$}") != format!("{b:.digits$}")).unwrap_or(2)
}

fn idle(hours: Option<f64>) -> String {
    hours.map_or_else(|| "has never run here".to_owned(), |h| format!("has not run for {:.0} days", h / 24.0))
}

impl Selection {
    fn sentence(&self, of: usize, p0: f64, known: f64) -> String {
        let (n, time) = (self.picks.len(), lasting(self.minutes));
        let falls = |digits: usize| {
            format!("the risk falls from {:.digits$} to {:.digits$}", self.risk_before, self.risk_after)
        };
        match self.outcome {
            Outcome::NotNeeded => {
                let (risk, p0) = apart(self.risk_before, p0);
                format!("the risk {risk} is within {p0}; nothing has to run")
            }
            Outcome::LowConfidence => {
                let defects = if known == 1.0 { "defect is" } else { "defects are" };
                format!("low confidence: {known:.0} known {defects} too few; run all {of} benchmarks, {time}")
            }
            Outcome::TargetUnreachable => {
                let (digits, advice) = (digits(self.risk_after, p0), "run the full set or ask a person");
                format!("target unreachable: {} at best, {p0:.digits$} was asked; {advice}", falls(digits))
            }
            Outcome::Reached | Outcome::WithinBudget => {
                format!("run {n} of {of} benchmarks, {time}; {}", falls(2))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::risk::Category;
    use crate::selector::{Benchmark, Coverage, CoverageSettings, Defect, Exploration};

    fn benchmarks() -> Vec<Benchmark> {
        let b = |id: &str, minutes: f64| Benchmark { id: id.into(), minutes, idle_h: Some(1.0) };
        vec![b("ib", 3.0), b("gemm", 8.0), b("disk", 20.0), b("nothing", 5.0)]
    }

    fn coverage(settings: &CoverageSettings) -> Coverage {
        let d = |category, found_by: &[usize]| Defect { category, age_h: 0.0, found_by: found_by.to_vec() };
        let mut all = vec![d(Category::Network, &[0]); 50];
        all.extend(vec![d(Category::Gpu, &[1]); 40]);
        all.extend(vec![d(Category::Disk, &[2]); 9]);
        all.push(d(Category::Unknown, &[]));
        Coverage::new(&all, settings)
    }

    fn ask(risk: f64, p0: f64, mode: Mode, settings: &CoverageSettings) -> Selection {
        let (benchmarks, coverage) = (benchmarks(), coverage(settings));
        select(&Request { benchmarks: &benchmarks, coverage: &coverage, risk, p0, mode, exploration: None })
    }

    fn names(s: &Selection) -> Vec<&str> {
        s.picks.iter().map(|p| p.benchmark.as_str()).collect()
    }

    #[test]
    fn the_lower_the_bound_the_more_runs() {
        let plain = CoverageSettings::plain();
        let at = |p0: f64| ask(0.9, p0, Mode::Cheapest, &plain);
        assert_eq!((names(&at(0.95)).len(), at(0.95).outcome), (0, Outcome::NotNeeded));
        assert_eq!(names(&at(0.5)), ["ib"]);
        assert_eq!(names(&at(0.1)), ["ib", "gemm"]);
        let all = at(0.02);
        assert_eq!((names(&all), all.minutes, all.gap), (vec!["ib", "gemm", "disk"], 31.0, Some(0.0)));
        assert!((all.risk_after - 0.009).abs() < 1e-12);
        assert_eq!(at(0.0).outcome, Outcome::TargetUnreachable);
        assert!(at(0.0).reason.starts_with("target unreachable"), "{}", at(0.0).reason);
        assert!(all.picks.windows(2).all(|w| w[0].risk_after > w[1].risk_after));
    }

    #[test]
    fn numbers_that_differ_are_told_apart_and_no_picks_take_no_minutes() {
        assert_eq!(apart(0.2043, 0.2), ("0.204".to_owned(), "0.200".to_owned()));
        assert_eq!(apart(0.2, 0.2), ("0.20".to_owned(), "0.20".to_owned()));
        assert_eq!(apart(0.91, 0.2).0, "0.91");
        let s = ask(0.1999, 0.2, Mode::Cheapest, &CoverageSettings::plain());
        assert_eq!((s.outcome, s.minutes.to_bits()), (Outcome::NotNeeded, 0));
        assert_eq!(s.reason, "the risk 0.1999 is within 0.2000; nothing has to run");
        let s = ask(0.9, 0.0, Mode::Budget { minutes: 1.0 }, &CoverageSettings::plain());
        assert_eq!((s.picks.len(), s.minutes.to_bits()), (0, 0));
    }

    #[test]
    fn doubt_asks_for_more() {
        let plain = ask(0.9, 0.46, Mode::Cheapest, &CoverageSettings::plain());
        let doubting =
            ask(0.9, 0.46, Mode::Cheapest, &CoverageSettings { shrinkage: 0.0, ..CoverageSettings::default() });
        assert_eq!(names(&plain), ["ib"]);
        assert_eq!(names(&doubting).len(), 2, "{doubting:?}");
    }

    #[test]
    fn a_budget_is_kept_and_used_best() {
        let plain = CoverageSettings::plain();
        for (minutes, expected) in [(2.0, vec![]), (3.0, vec!["ib"]), (8.0, vec!["ib"]), (11.0, vec!["ib", "gemm"])] {
            let s = ask(0.9, 0.0, Mode::Budget { minutes }, &plain);
            assert_eq!(names(&s), expected, "{minutes}");
            assert!(s.minutes <= minutes && s.outcome == Outcome::WithinBudget);
        }
        assert_eq!(ask(0.9, 0.5, Mode::Budget { minutes: 5.0 }, &plain).outcome, Outcome::Reached);
    }

    #[test]
    fn without_a_history_everything_runs() {
        let (benchmarks, empty) = (benchmarks(), Coverage::new(&[], &CoverageSettings::default()));
        let request = Request {
            benchmarks: &benchmarks,
            coverage: &empty,
            risk: 0.5,
            p0: 0.1,
            mode: Mode::Cheapest,
            exploration: None,
        };
        let s = select(&request);
        assert_eq!((s.outcome, s.picks.len(), s.coverage), (Outcome::LowConfidence, 4, 0.0));
    }

    #[test]
    fn an_idle_benchmark_gets_its_turn() {
        let (mut benchmarks, coverage) = (benchmarks(), coverage(&CoverageSettings::plain()));
        benchmarks[3].idle_h = None;
        benchmarks[2].idle_h = Some(1e4);
        let exploration = Some(Exploration { every_h: 100.0, at_most: 1 });
        let request = Request {
            benchmarks: &benchmarks,
            coverage: &coverage,
            risk: 0.9,
            p0: 0.5,
            mode: Mode::Cheapest,
            exploration,
        };
        let s = select(&request);
        assert_eq!(names(&s), ["ib", "nothing"]);
        assert_eq!((s.picks[1].why, s.picks[1].reason.as_str()), (Why::Exploration, "has never run here"));
    }
}
