//! What a playbook comes to on given nodes: phases in order, how long each should and may take.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use muster_analysis::checks::{self, Policy};
use muster_wire::{BENCHMARKS, Collective, Profile, TRAIN_DDP, benchmark};

use crate::{PAIRS, Pairs, Playbook, Step, Train, order};

/// Longest one collector may take on a node; it only reads a few files.
const COLLECTOR_LIMIT: Duration = Duration::from_secs(10);
/// What a round of pairs takes at most in each profile, and what it is expected to take.
const PAIR_LIMIT: [Duration; 4] =
    [Duration::from_secs(15), Duration::from_secs(20), Duration::from_secs(25), Duration::from_secs(45)];
const PAIR_BUDGET: [Duration; 4] =
    [Duration::from_millis(700), Duration::from_millis(1_500), Duration::from_secs(6), Duration::from_secs(24)];
/// The same for a collective over all its sizes.
const COLLECTIVE_LIMIT: [Duration; 4] =
    [Duration::from_secs(180), Duration::from_secs(300), Duration::from_secs(600), Duration::from_secs(1_200)];
const COLLECTIVE_BUDGET: [Duration; 4] =
    [Duration::from_secs(3), Duration::from_secs(10), Duration::from_secs(30), Duration::from_secs(90)];
/// What one collector is expected to take.
const COLLECTOR_BUDGET: Duration = Duration::from_millis(100);

/// A playbook spread over nodes. Nodes work independently; the phases of one node run one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Name of the playbook.
    pub playbook: String,
    /// Title of the playbook.
    pub title: String,
    /// The playbook's own profile; phases may differ.
    pub profile: Profile,
    /// What the checks of all phases hold nodes to.
    pub policy: Policy,
    /// In the order they run.
    pub phases: Vec<Phase>,
}

/// One step on its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Id of the step.
    pub step: String,
    /// What the step is for. May be empty.
    pub about: String,
    /// Collector names, in order, before the benchmarks.
    pub collectors: Vec<String>,
    /// Benchmark names, in order.
    pub benchmarks: Vec<String>,
    /// Which pairs of nodes are measured.
    pub pairs: Option<Pairs>,
    /// What all nodes compute together.
    pub collectives: Vec<Collective>,
    /// What all nodes train together.
    pub train: Option<Train>,
    /// Ids of the checks that this phase's look is for.
    pub checks: Vec<String>,
    /// How much work each benchmark does.
    pub profile: Profile,
    /// Longest wait before the benchmarks until others leave the CPUs alone.
    pub idle: Option<Duration>,
    /// Longest the phase may take on one node.
    pub limit: Duration,
    /// Nodes that have failed by the end of this phase leave the later ones.
    pub drop_failed: bool,
    /// Node names, in the order given.
    pub nodes: Vec<String>,
}

/// Name under which the store keeps a collector's result. Benchmarks keep their own name; the prefix keeps the
/// `disk` collector and the `disk` benchmark apart.
#[must_use]
pub fn collector_work(name: &str) -> String {
    format!("collect/{name}")
}

/// Spreads `playbook` over `nodes` (order kept, repeats dropped).
#[must_use]
pub fn plan(playbook: &Playbook, nodes: &[String]) -> Plan {
    let mut seen = BTreeSet::new();
    let nodes: Vec<String> = nodes.iter().filter(|node| seen.insert(*node)).cloned().collect();
    let mut looked = BTreeSet::new();
    Plan {
        policy: policy(playbook),
        playbook: playbook.name.clone(),
        title: playbook.title.clone(),
        profile: playbook.profile,
        phases: playbook.steps.iter().map(|step| phase(playbook, step, &nodes, &mut looked)).collect(),
    }
}

fn policy(playbook: &Playbook) -> Policy {
    let mut policy = Policy::default();
    for step in &playbook.steps {
        step.limits.iter().for_each(|(name, value)| policy.set_limit(name, *value));
        step.expect.iter().for_each(|(name, value)| policy.expect(name, *value));
        step.demand.iter().for_each(|id| policy.demand(id));
    }
    policy
}

/// `looked`: collectors of the phases before, which checks need not run again.
fn phase(playbook: &Playbook, step: &Step, nodes: &[String], looked: &mut BTreeSet<String>) -> Phase {
    let profile = step.profile.unwrap_or(playbook.profile);
    let mut collectors = step.collect.clone();
    looked.extend(collectors.iter().cloned());
    for need in step.check.iter().filter_map(|id| checks::check(id)).flat_map(|check| check.needs) {
        // What the console measures itself is no collector of the probe.
        if muster_wire::collector(need).is_some() && looked.insert((*need).to_owned()) {
            collectors.push((*need).to_owned());
        }
    }
    Phase {
        step: step.id.clone(),
        about: step.about.clone(),
        limit: step.limit.unwrap_or_else(|| match (step.pairs, &step.train) {
            (Some(pairs), _) => times(PAIR_LIMIT[profile as usize], pairs.rounds(nodes.len())),
            (None, Some(train)) => train.limit(profile),
            _ if !step.collective.is_empty() => times(COLLECTIVE_LIMIT[profile as usize], step.collective.len()),
            _ => limit(&collectors, &step.run, profile) + step.idle.unwrap_or_default(),
        }),
        pairs: step.pairs,
        collectives: step.collective.clone(),
        train: step.train.clone(),
        idle: step.idle,
        collectors,
        benchmarks: step.run.clone(),
        checks: step.check.clone(),
        profile,
        drop_failed: step.drop_failed,
        nodes: nodes.to_vec(),
    }
}

/// Longest these may take on one node: the sum of what each may take.
fn limit(collectors: &[String], benchmarks: &[String], profile: Profile) -> Duration {
    let measured: u64 = benchmarks.iter().filter_map(|name| benchmark(name)).map(|b| limit_s(b, profile)).sum();
    times(COLLECTOR_LIMIT, collectors.len()) + Duration::from_secs(measured)
}

fn limit_s(benchmark: &muster_wire::Benchmark, profile: Profile) -> u64 {
    u64::from(benchmark.limit_s[profile as usize])
}

fn times(each: Duration, count: usize) -> Duration {
    each.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
}

impl Phase {
    /// Whether every node does it by itself, whatever the others do meanwhile.
    #[must_use]
    pub const fn is_alone(&self) -> bool {
        self.pairs.is_none() && self.collectives.is_empty() && self.train.is_none()
    }

    /// What the phase is expected to take on one node: each benchmark its even share of what the profile
    /// promises for all of them (5 s, 1 min, 10 min); `full` promises nothing, so there the limits count.
    #[must_use]
    pub fn budget(&self) -> Duration {
        if let Some(pairs) = self.pairs {
            return times(PAIR_BUDGET[self.profile as usize], pairs.rounds(self.nodes.len())).min(self.limit);
        }
        if !self.collectives.is_empty() {
            return times(COLLECTIVE_BUDGET[self.profile as usize], self.collectives.len()).min(self.limit);
        }
        if let Some(train) = &self.train {
            return train.budget(self.profile).min(self.limit);
        }
        let promise = match self.profile {
            Profile::Smoke => Duration::from_secs(5),
            Profile::Quick => Duration::from_secs(60),
            Profile::Standard => Duration::from_secs(600),
            Profile::Full => {
                return (times(COLLECTOR_BUDGET, self.collectors.len()) + limit(&[], &self.benchmarks, self.profile))
                    .min(self.limit);
            }
        };
        let share = promise / u32::try_from(BENCHMARKS.len()).unwrap_or(u32::MAX);
        let expected = times(COLLECTOR_BUDGET, self.collectors.len()) + times(share, self.benchmarks.len());
        expected.min(self.limit)
    }

    /// Names under which the store keeps this phase's results, in the order of the work.
    #[must_use]
    pub fn work_names(&self) -> Vec<String> {
        let own = self.collectors.iter().map(|name| collector_work(name)).chain(self.benchmarks.iter().cloned());
        let together = self.collectives.iter().map(|collective| collective.benchmark().to_owned());
        let train = self.train.iter().map(|_| TRAIN_DDP.to_owned());
        own.chain(self.pairs.map(|_| PAIRS.to_owned())).chain(together).chain(train).collect()
    }
}

impl Plan {
    /// Names under which the store keeps the results, in the order of the work, each once.
    #[must_use]
    pub fn work_names(&self) -> Vec<String> {
        self.phases.iter().flat_map(Phase::work_names).collect()
    }

    /// Ids of the checks of all phases, each once.
    #[must_use]
    pub fn checks(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let all = self.phases.iter().flat_map(|phase| &phase.checks).map(String::as_str);
        all.filter(|id| seen.insert(*id)).collect()
    }

    /// What the whole plan is expected to take on one node.
    #[must_use]
    pub fn budget(&self) -> Duration {
        self.phases.iter().map(Phase::budget).sum()
    }

    /// Longest the whole plan may take on one node.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.phases.iter().map(|phase| phase.limit).sum()
    }

    /// Every node of the plan once, in the order given.
    #[must_use]
    pub fn nodes(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let all = self.phases.iter().flat_map(|phase| &phase.nodes).map(String::as_str);
        all.filter(|node| seen.insert(*node)).collect()
    }

    /// Phases from `index` on that each node goes through at its own pace: up to the first that is measured between nodes, or
    /// that takes out those that failed, which is known when all of them can be compared.
    #[must_use]
    pub fn stretch(&self, index: usize) -> Range<usize> {
        let mut end = index + 1;
        let goes_on = |last: &Phase, next: &Phase| last.is_alone() && !last.drop_failed && next.is_alone();
        while let [last, next] = self.phases.get(end - 1..=end).unwrap_or_default()
            && goes_on(last, next)
        {
            end += 1;
        }
        index..end
    }

    /// The stretch that phase `index` belongs to; a phase after the last is one by itself.
    #[must_use]
    pub fn stretch_of(&self, index: usize) -> Range<usize> {
        let mut stretch = self.stretch(0);
        while stretch.end <= index {
            stretch = self.stretch(stretch.end);
        }
        stretch
    }

    /// To be called when phase `index` has ended: where it says so, takes `failed` out of the later phases.
    /// Returns the nodes that left, in order.
    pub fn drop_failed(&mut self, index: usize, failed: &BTreeSet<String>) -> Vec<String> {
        if !self.phases.get(index).is_some_and(|phase| phase.drop_failed) {
            return Vec::new();
        }
        let later = &mut self.phases[index + 1..];
        let mut left = BTreeSet::new();
        for phase in later {
            let (gone, stay) = std::mem::take(&mut phase.nodes).into_iter().partition(|node| failed.contains(node));
            phase.nodes = stay;
            left.extend::<Vec<String>>(gone);
        }
        left.into_iter().collect()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (phases, nodes) = (self.phases.len(), self.nodes().len());
        writeln!(f, "{}: {}", self.playbook, self.title)?;
        writeln!(
            f,
            "{}, {}, profile {}; about {} on each node, at most {}",
            counted(nodes, "node"),
            counted(phases, "step"),
            self.profile,
            span(self.budget()),
            span(self.limit())
        )?;
        for (index, phase) in self.phases.iter().enumerate() {
            writeln!(f)?;
            write!(f, "{}. {}", index + 1, phase.step)?;
            if !phase.about.is_empty() {
                write!(f, ": {}", phase.about)?;
            }
            writeln!(f)?;
            if !phase.collectors.is_empty() {
                writeln!(f, "   collect  {}", phase.collectors.join(", "))?;
            }
            if let Some(idle) = phase.idle {
                writeln!(f, "   wait     until others use less than a fifth of the CPUs, at most {}", span(idle))?;
            }
            if !phase.benchmarks.is_empty() {
                writeln!(f, "   run      {}", phase.benchmarks.join(", "))?;
            }
            if let Some(pairs) = phase.pairs {
                let rounds = pairs.rounds(phase.nodes.len());
                writeln!(f, "   pairs    {}, at most {}", pairs.name(), counted(rounds, "round"))?;
            }
            if !phase.collectives.is_empty() {
                let names: Vec<&str> = phase.collectives.iter().map(|collective| collective.name()).collect();
                writeln!(f, "   together {}", names.join(", "))?;
            }
            if let Some(train) = &phase.train {
                writeln!(f, "   train    {TRAIN_DDP}: {}", train.words(phase.profile))?;
            }
            if !phase.checks.is_empty() {
                writeln!(f, "   check    {}", phase.checks.join(", "))?;
            }
            let demanded: Vec<&str> =
                phase.checks.iter().map(String::as_str).filter(|id| self.policy.demands(id)).collect();
            if !demanded.is_empty() {
                writeln!(f, "   demand   {}", demanded.join(", "))?;
            }
            write!(f, "   time     about {}, at most {}", span(phase.budget()), span(phase.limit))?;
            writeln!(f, " ({}, profile {})", counted(phase.nodes.len(), "node"), phase.profile)?;
            if phase.drop_failed {
                writeln!(f, "   then     nodes that have failed leave the later steps")?;
            }
        }
        for remark in order::remarks(self) {
            writeln!(f, "\nnote: {remark}")?;
        }
        Ok(())
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A duration in at most two units, rounded up to whole seconds: `9 s`, `1 min 30 s`, `2 h 5 min`.
fn span(duration: Duration) -> String {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes, rest) {
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
name = \"mine\"
title = \"Mine alone\"
profile = \"quick\"
[[steps]]
id = \"look\"
about = \"What it is made of.\"
collect = [\"cpu\", \"disk\"]
drop_failed = true
[[steps]]
id = \"work\"
run = [\"disk\", \"cpu-gemm\"]
[[steps]]
id = \"burn\"
run = [\"cpu-stream\"]
profile = \"full\"
limit_s = 5400
";

    fn sample() -> Plan {
        let nodes = ["n1", "n2", "n1", "n3"].map(str::to_owned);
        plan(&Playbook::parse(TEXT, "p.toml").unwrap(), &nodes)
    }

    #[test]
    fn the_text_form_tells_work_times_and_nodes() {
        // `full` promises no time, so its budget is the benchmark's own limit; the step may take longer.
        // How long the benchmarks take depends on how many there are.
        let (all, work) = (span(sample().budget()), span(sample().phases[1].budget()));
        let golden = format!(
            "\
mine: Mine alone
3 nodes, 3 steps, profile quick; about {all} on each node, at most 1 h 32 min

1. look: What it is made of.
   collect  cpu, disk
   time     about 1 s, at most 20 s (3 nodes, profile quick)
   then     nodes that have failed leave the later steps

2. work
   run      disk, cpu-gemm
   time     about {work}, at most 2 min 30 s (3 nodes, profile quick)

3. burn
   run      cpu-stream
   time     about 10 min, at most 1 h 30 min (3 nodes, profile full)
"
        );
        assert_eq!(sample().to_string(), golden);
    }

    #[test]
    fn the_disk_collector_and_the_disk_benchmark_have_different_work_names() {
        assert_eq!(sample().work_names(), ["collect/cpu", "collect/disk", "disk", "cpu-gemm", "cpu-stream"]);
    }

    #[test]
    fn a_check_brings_the_collectors_it_reads_unless_they_ran_before() {
        let text = TEXT.replace("drop_failed = true", "check = [\"swap\", \"time-offset\", \"cpu-governor\"]");
        let text = text.replace(
            "limit_s = 5400",
            "check = [\"memory-size\"]\ndemand = [\"memory-size\"]\nlimits = { memory_tolerance = 0.5 }",
        );
        let plan = plan(&Playbook::parse(&text, "p.toml").unwrap(), &["n1".to_owned()]);
        assert_eq!(plan.phases[0].collectors, ["cpu", "disk", "memory"]);
        assert!(plan.phases[2].collectors.is_empty());
        assert_eq!(plan.checks(), ["swap", "time-offset", "cpu-governor", "memory-size"]);
        assert_eq!(plan.policy.limit("memory_tolerance"), 0.5);
        assert!(plan.to_string().contains("   check    swap, time-offset, cpu-governor\n   time"), "{plan}");
        assert!(plan.to_string().contains("   check    memory-size\n   demand   memory-size\n"), "{plan}");
    }

    #[test]
    fn a_node_named_twice_is_planned_once() {
        assert_eq!(sample().nodes(), ["n1", "n2", "n3"]);
    }

    #[test]
    fn failed_nodes_leave_only_after_a_phase_that_says_so() {
        let mut plan = sample();
        let failed = BTreeSet::from(["n2".to_owned()]);
        assert!(plan.drop_failed(1, &failed).is_empty());
        assert_eq!(plan, sample());
        assert_eq!(plan.drop_failed(0, &failed), ["n2"]);
        let sizes: Vec<usize> = plan.phases.iter().map(|phase| phase.nodes.len()).collect();
        assert_eq!(sizes, [3, 2, 2]);
        assert!(plan.drop_failed(9, &failed).is_empty());
    }

    #[test]
    fn steps_are_one_stretch_where_nobody_has_to_be_compared_nor_met() {
        let plan = sample();
        assert_eq!((plan.stretch(0), plan.stretch(1), plan.stretch(2)), (0..1, 1..3, 2..3));
        assert_eq!((0..5).map(|index| plan.stretch_of(index)).collect::<Vec<_>>(), [0..1, 1..3, 1..3, 3..4, 4..5]);
        let mut all = plan.clone();
        all.phases[0].drop_failed = false;
        assert_eq!(all.stretch(0), 0..3);
        all.phases[1].pairs = Some(Pairs::Full);
        assert_eq!((all.stretch(0), all.stretch(1), all.stretch(2)), (0..1, 1..2, 2..3));
    }

    #[test]
    fn a_budget_never_exceeds_its_limit() {
        let text = TEXT.replace("5400", "3");
        let plan = plan(&Playbook::parse(&text, "p.toml").unwrap(), &[]);
        assert_eq!(plan.phases[2].budget(), Duration::from_secs(3));
    }
}
