//! How do jobs, nodes and incidents meet, hour by hour, under one policy?

use std::collections::VecDeque;

use super::events::{Agenda, Event};
use super::jobs::{Arrivals, Job, Jobs};
use super::law::{Fate, Law};
use super::policy::{Policy, ValidationPlan};
use super::settings::{Repair, Settings};
use crate::Chance;
use crate::selector::joint_risk;

/// What one node did, in hours.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Ledger {
    pub(super) up_h: f64,
    pub(super) validation_h: f64,
    pub(super) incidents: u32,
}

struct Node {
    fate: Fate,
    ledger: Ledger,
}

/// A job on its nodes.
struct Run {
    job: Job,
    nodes: Vec<usize>,
    started: f64,
    coverage: f64,
    /// Whether its nodes are in use, not under validation.
    running: bool,
    /// Node whose incident ends the run.
    culprit: Option<usize>,
}

/// What a run of the simulation is made of.
pub(super) struct Scene<'a> {
    pub(super) settings: &'a Settings,
    pub(super) policy: Policy,
    pub(super) law: &'a Law,
    pub(super) jobs: &'a Jobs,
    pub(super) plan: &'a ValidationPlan,
}

pub(super) struct Cluster<'a> {
    scene: Scene<'a>,
    /// Chance of nodes and validations; jobs have their own, so that all policies meet the same jobs.
    chance: Chance,
    job_chance: Chance,
    arrivals: Arrivals<'a>,
    coming: Option<Job>,
    nodes: Vec<Node>,
    free: VecDeque<usize>,
    queue: VecDeque<Job>,
    runs: Vec<Option<Run>>,
    idle_runs: Vec<usize>,
    agenda: Agenda,
    now: f64,
}

impl<'a> Cluster<'a> {
    pub(super) fn new(scene: Scene<'a>) -> Self {
        let settings = scene.settings;
        let mut chance = Chance::branch(settings.seed, 1);
        let mut job_chance = Chance::branch(settings.seed, 2);
        let nodes = (0..settings.nodes).map(|_| Node { fate: scene.law.fresh(&mut chance), ledger: Ledger::default() });
        let nodes = nodes.collect();
        let arrivals = Arrivals::new(scene.jobs, settings.nodes, &mut job_chance);
        Self {
            chance,
            job_chance,
            arrivals,
            coming: None,
            nodes,
            free: (0..settings.nodes).collect(),
            queue: VecDeque::new(),
            runs: Vec::new(),
            idle_runs: Vec::new(),
            agenda: Agenda::default(),
            now: 0.0,
            scene,
        }
    }

    /// Runs to the end; `progress` hears the share done, 0 to 1, now and then.
    pub(super) fn run(mut self, progress: &mut dyn FnMut(f64)) -> Vec<Ledger> {
        let end = self.scene.settings.hours;
        self.await_job();
        let mut told = 0.0;
        while let Some((at, event)) = self.agenda.next(end) {
            self.now = at;
            self.handle(event);
            self.dispatch();
            if at >= told + end / 50.0 {
                told = at;
                progress(at / end);
            }
        }
        self.close(end);
        progress(1.0);
        self.nodes.into_iter().map(|n| n.ledger).collect()
    }

    fn await_job(&mut self) {
        self.coming = self.arrivals.next(&mut self.job_chance);
        if let Some(job) = self.coming {
            self.agenda.plan(job.arrives_h, Event::Arrival);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrival => {
                self.queue.extend(self.coming.take());
                self.await_job();
            }
            Event::Validated(run) => self.validated(run),
            Event::Ended(run) => self.ended(run),
            Event::Rechecked(run) => self.rechecked(run),
            Event::Repaired(node) => self.repaired(node),
        }
    }

    /// Starts every queued job that fits, in order; one that does not is passed over.
    fn dispatch(&mut self) {
        let mut k = 0;
        while k < self.queue.len() && !self.free.is_empty() {
            if self.queue[k].nodes <= self.free.len()
                && let Some(job) = self.queue.remove(k)
            {
                self.allocate(job);
            } else {
                k += 1;
            }
        }
    }

    fn allocate(&mut self, job: Job) {
        let nodes: Vec<usize> = self.free.drain(..job.nodes).collect();
        let (coverage, hours) = self.validate(&nodes, job.hours);
        let run = Run { job, nodes, started: self.now, coverage, running: false, culprit: None };
        let id = self.idle_runs.pop().unwrap_or(self.runs.len());
        if id == self.runs.len() {
            self.runs.push(None);
        }
        self.runs[id] = Some(run);
        if hours > 0.0 {
            self.agenda.plan(self.now + hours, Event::Validated(id));
        } else {
            self.start(id);
        }
    }

    /// Books a validation of `nodes` before `work` hours; its coverage and length.
    fn validate(&mut self, nodes: &[usize], work: f64) -> (f64, f64) {
        let (settings, law) = (self.scene.settings, self.scene.law);
        let risk = match self.scene.policy {
            Policy::Selector => joint_risk(nodes.iter().map(|&n| law.risk(&self.nodes[n].fate, work))),
            _ => 0.0,
        };
        let (coverage, hours) = self.scene.plan.validation(self.scene.policy, risk, settings.p0);
        let booked = hours.min(settings.hours - self.now).max(0.0);
        for &n in nodes {
            self.nodes[n].ledger.validation_h += booked;
        }
        (coverage, hours)
    }

    fn take(&mut self, id: usize) -> Option<Run> {
        self.idle_runs.push(id);
        self.runs[id].take()
    }

    /// A defect that would show within the job is found with the validation's coverage; then the job waits again.
    fn validated(&mut self, id: usize) {
        let Some(run) = &self.runs[id] else { return };
        let (work, coverage) = (run.job.hours, run.coverage);
        let due: Vec<usize> = run.nodes.iter().copied().filter(|&n| self.nodes[n].fate.left < work).collect();
        let found: Vec<usize> = due.into_iter().filter(|_| self.chance.unit() < coverage).collect();
        if found.is_empty() {
            self.start(id);
        } else if let Some(run) = self.take(id) {
            self.free.extend(run.nodes.iter().filter(|n| !found.contains(n)));
            for n in found {
                self.incident(n, self.scene.settings.swap_h);
            }
            self.queue.push_back(run.job);
        }
    }

    fn start(&mut self, id: usize) {
        let Some(run) = &mut self.runs[id] else { return };
        let left = |n: usize| self.nodes[n].fate.left;
        let first = run.nodes.iter().copied().min_by(|&a, &b| left(a).total_cmp(&left(b)));
        let hit = first.filter(|&n| self.scene.policy != Policy::Ideal && left(n) < run.job.hours);
        let span = hit.map_or(run.job.hours, left);
        run.started = self.now;
        run.running = true;
        run.culprit = hit;
        self.agenda.plan(self.now + span, Event::Ended(id));
    }

    /// Books the hours a run has used its nodes.
    fn book(&mut self, id: usize) {
        let Some(run) = &mut self.runs[id] else { return };
        let used = self.now - run.started;
        run.running = false;
        run.job.hours -= used;
        for &n in &run.nodes {
            self.nodes[n].ledger.up_h += used;
            self.nodes[n].fate.left -= used;
        }
    }

    fn ended(&mut self, id: usize) {
        self.book(id);
        let Some(run) = &self.runs[id] else { return };
        let (work, failed) = (run.job.hours, run.culprit.is_some());
        if !failed {
            let nodes = self.take(id).map(|run| run.nodes).unwrap_or_default();
            self.free.extend(nodes);
            return;
        }
        if self.scene.policy == Policy::Absence {
            if let Some(run) = self.take(id) {
                for n in run.nodes {
                    self.incident(n, self.scene.settings.outage_h);
                }
                self.queue.push_back(run.job);
            }
            return;
        }
        let nodes = run.nodes.clone();
        let (_, hours) = self.validate(&nodes, work);
        self.agenda.plan(self.now + hours, Event::Rechecked(id));
    }

    /// After an incident and its validation the culprit is swapped; the job and the other nodes wait again.
    fn rechecked(&mut self, id: usize) {
        let Some(run) = self.take(id) else { return };
        self.free.extend(run.nodes.iter().filter(|n| Some(**n) != run.culprit));
        if let Some(n) = run.culprit {
            self.incident(n, self.scene.settings.swap_h);
        }
        self.queue.push_back(run.job);
    }

    fn incident(&mut self, node: usize, away: f64) {
        self.nodes[node].ledger.incidents += 1;
        self.agenda.plan(self.now + away, Event::Repaired(node));
    }

    fn repaired(&mut self, node: usize) {
        let fate = self.nodes[node].fate;
        let law = self.scene.law;
        let chance = &mut self.chance;
        self.nodes[node].fate = match (self.scene.policy, self.scene.settings.repair) {
            (Policy::Absence, _) => law.after_incident(fate, chance),
            (_, Repair::Resample) => law.fresh(chance),
            (_, Repair::Same) => law.again(fate, chance),
        };
        self.free.push_back(node);
    }

    /// Books what runs when the simulation ends; a run under validation uses nothing.
    fn close(&mut self, end: f64) {
        self.now = end;
        for id in 0..self.runs.len() {
            if self.runs[id].as_ref().is_some_and(|run| run.running) {
                self.book(id);
            }
        }
    }
}
