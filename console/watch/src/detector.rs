//! The detector: takes ticks, closes blocks, says who is odd.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use muster_wire::{Telemetry, telemetry};

use super::alert::{Alert, Log};
use super::column::{Column, Work};
use super::end::{Ending, most_unlike, unlike};
use super::excursions::{Calibration, Excursions, Going};
use super::intake::{Dropped, Intake, MetricIndex, NodeIndex, Place};
use super::job::{Job, Phase};
use super::lack::{self, Lack};
use super::name::{Case, share_across};
use super::node::{Named, Node};
use super::report;
use super::settings::{BLOCK, CELLS, METRICS, NODES, Settings};
use super::stop::Writer;
use super::view::History;
use super::{alike, first, group, start, stop};

/// Share of the evidence that names a machine below which it is calm.
const CALM_BELOW: f64 = 1.0 / 3.0;
/// Blocks before a standstill in which an alert is taken for its cause.
const CAUSE: i64 = 120 / BLOCK as i64;
/// Notes kept.
const NOTES: usize = 256;

/// Watches the nodes of one job.
#[derive(Debug, Default)]
pub struct Watch {
    pub(super) settings: Settings,
    node_names: HashMap<String, usize>,
    metric_names: HashMap<String, usize>,
    intake: Intake,
    pub(super) job: Job,
    work: Work,
    log: Log,
    pub(super) nodes: Vec<Node>,
    pub(super) columns: Vec<Column>,
    notes: Vec<String>,
    /// Blocks in which the job ran, and those of them in which enough nodes reported a metric.
    ran: u32,
    overlapped: u32,
    start_noted: bool,
    /// Gaps of more than an hour.
    gaps: u64,
    last_alert: Option<i64>,
    groups: Vec<OpenGroup>,
    excursions: Excursions,
    /// Seconds of evidence that name a machine now.
    pub(super) evidence_s: f64,
    /// Who moved first before the job slowed, while the job is slow.
    first: Option<Slowed>,
    /// Metrics whose group was noted and still stands.
    noted: Vec<bool>,
    pub(super) history: History,
}

/// A group with an open alert.
#[derive(Debug)]
struct OpenGroup {
    label: String,
    alert: usize,
    nodes: Vec<usize>,
    ending: Ending,
}

/// The job slowed after one machine did: the machine, the metric of the job, and the level from which it is itself again.
#[derive(Clone, Copy, Debug)]
struct Slowed {
    node: usize,
    job: usize,
    again: f64,
}

impl Watch {
    /// Watches a job of which nothing is known yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, evidence_s: settings.evidence_s, ..Self::default() }
    }

    /// The node of that name; `None`, and counted, past the limits.
    pub fn node(&mut self, name: &str) -> Option<NodeIndex> {
        if let Some(&at) = self.node_names.get(name) {
            return Some(NodeIndex(at));
        }
        let at = self.nodes.len();
        if at >= NODES || (at + 1) * self.columns.len() > CELLS {
            self.intake.dropped.names += 1;
            return None;
        }
        let block = self.intake.open.unwrap_or_default();
        self.columns.iter_mut().for_each(|column| column.cells.push(super::cell::Cell::new(block)));
        self.nodes.push(Node { name: name.to_owned(), ..Node::default() });
        self.node_names.insert(name.to_owned(), at);
        Some(NodeIndex(at))
    }

    /// The metric of that name; `None`, and counted, past the limits.
    pub fn metric(&mut self, name: &str) -> Option<MetricIndex> {
        let at = self.columns.len();
        let room = at < METRICS && (at + 1) * self.nodes.len() <= CELLS;
        match self.metric_names.entry(name.to_owned()) {
            Entry::Occupied(known) => Some(MetricIndex(*known.get())),
            Entry::Vacant(_) if !room => {
                self.intake.dropped.names += 1;
                None
            }
            Entry::Vacant(free) => {
                free.insert(at);
                let about = telemetry(name).copied().unwrap_or(Telemetry::unknown());
                let block = self.intake.open.unwrap_or_default();
                self.columns.push(Column::new(name.to_owned(), about, self.nodes.len(), block));
                self.noted.push(false);
                Some(MetricIndex(at))
            }
        }
    }

    /// Says what `node` belongs to, such as `leaf` and `leaf3`: a group that leaves its peers together is called by it.
    pub fn label(&mut self, node: NodeIndex, key: &str, value: &str) {
        self.nodes[node.0].labels.push((key.to_owned(), value.to_owned()));
    }

    /// Says by how many seconds the clock of `node` may be off against the times that are pushed. Where nothing is said, 15 s are
    /// assumed before a machine is said to have moved first.
    pub fn clock(&mut self, node: NodeIndex, error_s: f64) {
        self.nodes[node.0].clock_s = Some(error_s.abs()).filter(|error| error.is_finite());
    }

    /// How much evidence names a machine, how many healthy ones it would name, and how late alerts are for it.
    #[must_use]
    pub fn calibration(&self) -> Calibration {
        self.excursions.calibration(self.evidence_s, self.settings.false_alarms)
    }

    /// Takes one tick. Within a block the order does not matter; of two ticks in the same second the later call holds.
    pub fn push(&mut self, time_s: f64, node: NodeIndex, metric: MetricIndex, value: f64) {
        let (block, second) = match self.intake.place(time_s, value) {
            Place::Dropped => return,
            Place::At(block, second) => (block, second),
            Place::Afresh(block, second) => {
                self.begin_afresh();
                (block, second)
            }
        };
        while let Some(block) = self.intake.complete() {
            self.close(block);
        }
        self.columns[metric.0].cells[node.0].seconds.put(block, second, value);
    }

    /// Closes what is complete at the end of a recording.
    pub fn finish(&mut self) {
        while let Some(block) = self.intake.last() {
            self.close(block);
        }
    }

    /// Everything said so far, in the order it was told.
    #[must_use]
    pub fn alerts(&self) -> &[Alert] {
        &self.log.alerts
    }

    /// Since when the machine of an open alert, by its place among all, has been like its peers again, epoch seconds: not for long
    /// enough to end it. Nothing while it is unlike them.
    #[must_use]
    pub fn like_peers_since(&self, alert: usize) -> Option<f64> {
        let node = self.nodes.iter().find(|node| node.open == Some(alert)).map(|node| &node.ending);
        let group = || self.groups.iter().find(|group| group.alert == alert).map(|group| &group.ending);
        node.or_else(group)?.like().map(starts)
    }

    /// What is worth knowing and accuses nobody: machines unlike the others from the start, gaps, what was left out.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let unknown = self.columns.iter().filter(|column| telemetry(&column.name).is_none());
        let unknown: Vec<&str> = unknown.map(|column| column.name.as_str()).collect();
        let mut notes = self.notes.clone();
        notes.extend(self.settings.false_alarms.map(|budget| report::budget(budget, &self.calibration())));
        notes.extend(report::gaps(self.gaps));
        notes.extend(report::left_out(&self.intake.dropped, self.log.not_kept));
        notes.extend(report::unknown(&unknown));
        notes
    }

    /// Ticks that were not taken.
    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.intake.dropped
    }

    /// Time of the first and the last tick taken.
    #[must_use]
    pub fn span(&self) -> Option<(f64, f64)> {
        self.intake.span
    }

    /// What is missing where nobody could be compared so far.
    #[must_use]
    pub fn lack(&self) -> Option<Lack> {
        match () {
            () if self.nodes.len() < lack::NODES => Some(Lack::Nodes(self.nodes.len())),
            () if self.columns.len() < lack::METRICS => Some(Lack::Metrics(self.columns.len())),
            () if self.ran > 0 && self.overlapped == 0 => Some(Lack::Overlap),
            () if !self.columns.iter().any(|column| column.judged) => Some(Lack::Short(self.overlapped)),
            () => None,
        }
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < NOTES {
            self.notes.push(note);
        }
    }

    /// Nothing that was learned holds after so long a gap.
    fn begin_afresh(&mut self) {
        self.gaps += 1;
        self.job = Job::default();
        self.first = None;
        self.columns.iter_mut().for_each(Column::forget);
        self.columns.iter_mut().flat_map(|column| &mut column.cells).for_each(|cell| cell.seconds.clear());
        self.nodes.iter_mut().for_each(|node| (node.quiet, node.odd, node.going) = (0, 0, Going::default()));
    }

    fn close(&mut self, block: i64) {
        self.work.alive.clear();
        self.work.alive.resize(self.nodes.len(), false);
        self.columns.iter_mut().for_each(|column| column.close(block, &mut self.work));
        for (node, alive) in self.nodes.iter_mut().zip(&self.work.alive) {
            node.quiet = if *alive { 0 } else { node.quiet.saturating_add(1) };
        }
        let phase = self.job.phase(&self.columns);
        match phase {
            Phase::Began => {
                self.columns.iter_mut().for_each(Column::forget);
                (self.start_noted, self.first) = (false, None);
                self.nodes.iter_mut().for_each(|node| (node.odd, node.going) = (0, Going::default()));
            }
            Phase::Skipped => {}
            Phase::Resumed => self.nodes.iter_mut().for_each(|node| node.odd = 0),
            Phase::Still => self.stand_still(block),
            Phase::Runs => self.judge(block),
        }
        self.look(block, phase);
    }

    fn stand_still(&mut self, block: i64) {
        let said = stop::said(&mut self.nodes, &self.columns, &mut self.job, block, &mut self.work);
        said.writers.iter().for_each(|writer| self.note_writer(*writer));
        let begun = block - i64::from(self.job.still) - CAUSE;
        let has_culprit = self.any_open() && self.last_alert.is_some_and(|last| last >= begun);
        if !has_culprit {
            said.named.iter().for_each(|named| self.tell(named, block));
        }
    }

    /// Notes once of a node that it writes while the others wait.
    fn note_writer(&mut self, writer: Writer) {
        if !std::mem::replace(&mut self.nodes[writer.node].is_noted_writer, true) {
            let at_s = self.after_start(writer.since);
            self.note(report::writes(&writer, &self.nodes, &self.columns, at_s));
        }
    }

    /// Seconds from the first tick to the begin of `block`.
    fn after_start(&self, block: i64) -> f64 {
        starts(block) - self.intake.span.map_or(0.0, |span| span.0)
    }

    pub(super) fn any_open(&self) -> bool {
        self.nodes.iter().any(|node| node.open.is_some())
    }

    fn judge(&mut self, block: i64) {
        self.evidence_s = self.excursions.evidence(self.settings.false_alarms, self.settings.evidence_s);
        let evidence_s = self.evidence_s;
        self.excursions.begin();
        for column in &mut self.columns {
            column.keep_level(&mut self.work);
            column.keep_pace(&mut self.work.values);
            column.judge(block, evidence_s, &mut self.work);
            column.find_group(evidence_s);
        }
        share_across(&mut self.columns, evidence_s);
        self.ran = self.ran.saturating_add(1);
        let enough = |column: &Column| column.cells.iter().filter(|c| c.now.value.is_finite()).count() >= lack::NODES;
        self.overlapped = self.overlapped.saturating_add(u32::from(self.columns.iter().any(enough)));
        if !self.start_noted && start::is_time(&self.columns) {
            self.start_noted = true;
            start::notes(&self.nodes, &self.columns).into_iter().for_each(|note| self.note(note));
        }
        let at_s = self.after_start(block + 1);
        alike::notes(&self.nodes, &mut self.columns, at_s).into_iter().for_each(|note| self.note(note));
        let disturbed = self.any_open();
        for node in 0..self.nodes.len() {
            let case = Case::of(node, &self.columns, block, disturbed, evidence_s);
            if self.nodes[node].open.is_none()
                && let Some(named) = case.named(node, &self.columns)
            {
                self.tell(&named, block);
            }
            if self.columns.iter().any(|column| column.cells[node].is_shared()) {
                self.nodes[node].going.excuse();
            }
            self.excursions.add(&mut self.nodes[node].going, case.together, case.largest);
            let drags = self.first.is_some_and(|first| first.node == node);
            self.calm(node, case.evidence < CALM_BELOW * evidence_s, drags, block);
        }
        self.who_was_first(block);
        self.groups(block);
    }

    /// Asks who moved first once the job has slowed, and notices when it is itself again.
    fn who_was_first(&mut self, block: i64) {
        let again = |first: &Slowed| self.columns[first.job].level >= first.again;
        if self.first.as_ref().is_some_and(again) {
            self.first = None;
        }
        if self.first.is_some() || !first::is_time(&self.columns) {
            return;
        }
        let Some(found) = first::mover(&self.nodes, &self.columns, block, &self.excursions) else { return };
        let again = self.columns[found.job].level * (1.0 + 1.0 / found.job_ratio.max(0.01)) / 2.0;
        self.first = Some(Slowed { node: found.node, job: found.job, again });
        let alert = report::first(&found, &self.nodes, &self.columns, self.told_at(block));
        match self.nodes[found.node].open {
            // It is one fault: what is known of it now is more than when it was told.
            Some(open) => self.log.learn_order(open, alert),
            None => {
                let open = self.log.add(alert);
                self.open(found.node, open, block);
            }
        }
    }

    /// When the alerts of `block` are told.
    fn told_at(&self, block: i64) -> f64 {
        starts(block + 1) + self.intake.grace()
    }

    /// Ends the alert of a node that has been like its peers for two minutes, and does not drag the job.
    fn calm(&mut self, node: usize, calm: bool, drags: bool, block: i64) {
        let Some(open) = self.nodes[node].open else { return };
        let unlike = if drags { Some(true) } else { unlike(node, &self.columns) };
        let node = &mut self.nodes[node];
        if let Some(like) = node.ending.add(calm && !drags, unlike, block) {
            node.open = None;
            self.log.end(open, starts(like));
        }
    }

    fn tell(&mut self, named: &Named, block: i64) {
        let alert = report::alert(named, &self.nodes, &self.columns, self.told_at(block));
        let open = self.log.add(alert);
        self.open(named.node, open, block);
    }

    fn open(&mut self, node: usize, alert: usize, block: i64) {
        let node = &mut self.nodes[node];
        (node.open, node.ending) = (Some(alert), Ending::default());
        node.going.name();
        self.last_alert = Some(block);
    }

    /// Tells of groups that left their peers together, and ends what is over.
    fn groups(&mut self, block: i64) {
        let found: Vec<_> = (0..self.columns.len())
            .filter_map(|metric| Some((metric, group::find(&self.columns[metric], &self.nodes, self.evidence_s)?)))
            .collect();
        for (metric, noted) in self.noted.iter_mut().enumerate() {
            *noted &= self.columns[metric].together.fast;
        }
        let mut seen: Vec<String> = Vec::new();
        for (metric, group) in found {
            match &group.label {
                Some((label, _)) => {
                    if !self.groups.iter().any(|open| open.label == *label) {
                        let alert = report::group(&group, metric, &self.nodes, &self.columns, self.told_at(block));
                        let alert = self.log.add(alert);
                        let (label, nodes) = (label.clone(), group.nodes.clone());
                        self.groups.push(OpenGroup { label, alert, nodes, ending: Ending::default() });
                    }
                    seen.push(label.clone());
                }
                None if !self.noted[metric] => {
                    self.noted[metric] = true;
                    let at_s = self.after_start(group.since);
                    self.note(report::together(&group, metric, &self.nodes, &self.columns, at_s));
                }
                None => {}
            }
        }
        let (columns, log) = (&self.columns, &mut self.log);
        self.groups.retain_mut(|open| {
            let unlike = Some(most_unlike(&open.nodes, columns));
            let end = open.ending.add(!seen.contains(&open.label), unlike, block);
            if let Some(like) = end {
                log.end(open.alert, starts(like));
            }
            end.is_none()
        });
    }
}

/// When `block` begins, epoch seconds.
pub(super) fn starts(block: i64) -> f64 {
    (block * BLOCK as i64) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_off_by_as_much_either_way_and_by_nobody_knows_what_where_that_is_no_number() {
        let mut watch = Watch::new(Settings::default());
        for (said, kept) in
            [(3.0, Some(3.0)), (-4.0, Some(4.0)), (f64::INFINITY, None), (5.0, Some(5.0)), (f64::NAN, None)]
        {
            let node = watch.node("n0").unwrap();
            watch.clock(node, said);
            assert_eq!(watch.nodes[0].clock_s, kept, "{said}");
        }
    }

    #[test]
    fn an_alert_within_two_minutes_before_a_standstill_is_taken_for_its_cause() {
        assert_eq!(CAUSE as usize * BLOCK, 120);
    }

    #[test]
    fn so_many_notes_are_kept_and_no_more() {
        let mut watch = Watch::new(Settings::default());
        (0..300).for_each(|nr| watch.note(format!("note {nr}")));
        let notes = watch.notes();
        assert_eq!((notes.len(), notes[255].as_str()), (256, "note 255"));
    }

    #[test]
    fn what_is_lacking_is_said_in_the_order_in_which_it_can_be_mended() {
        let mut watch = Watch::new(Settings::default());
        let mut nodes = Vec::new();
        for nr in 0..4 {
            assert_eq!(watch.lack(), Some(Lack::Nodes(nr)));
            nodes.push(watch.node(&format!("n{nr}")).unwrap());
        }
        assert_eq!(watch.lack(), Some(Lack::Metrics(0)));
        let metrics = ["gpu_power_w", "cpu_util_pct"].map(|name| watch.metric(name).unwrap());
        assert_eq!(watch.lack(), Some(Lack::Short(0)));
        let mut told = Vec::new();
        for second in 0..200_u32 {
            for (at, node) in nodes.iter().enumerate() {
                watch.push(f64::from(second), *node, metrics[0], 500.0 + f64::from((second + at as u32) % 7));
            }
            told.push(watch.lack());
        }
        assert_eq!((told[14], told[15]), (Some(Lack::Short(0)), Some(Lack::Short(1))), "five seconds after the block");
        let judged = told.iter().position(Option::is_none).unwrap();
        assert_eq!(judged, 165, "the block after fifteen is the first that is compared");
    }

    #[test]
    fn metrics_and_nodes_that_come_later_are_taken_from_the_open_block_on() {
        let mut watch = Watch::new(Settings::default());
        let (node, metric) = (watch.node("n0").unwrap(), watch.metric("a").unwrap());
        watch.push(1_005.0, node, metric, 1.0);
        watch.push(1_025.0, node, metric, 1.0);
        watch.node("n1").unwrap();
        watch.metric("b").unwrap();
        let zeros: Vec<i64> =
            watch.columns.iter().flat_map(|column| column.cells.iter().map(|cell| cell.fast[0].zero)).collect();
        assert_eq!(zeros, [101, 102, 102, 102], "the first has closed its blocks");
    }

    #[test]
    fn cells_are_bounded_whichever_comes_last_nodes_or_metrics() {
        let bare = |nodes: usize, metrics: usize| {
            let mut watch = Watch::new(Settings::default());
            watch.nodes = vec![Node::default(); nodes];
            watch.columns = (0..metrics).map(|_| Column::new("m".to_owned(), Telemetry::unknown(), 0, 0)).collect();
            watch
        };
        // 512 nodes with 512 metrics are all the cells there may be.
        let mut watch = bare(510, 512);
        let taken = ["a", "b", "c", "a"].map(|name| watch.node(name).is_some());
        assert_eq!((taken, watch.dropped().names), ([true, true, false, true], 1));
        let mut watch = bare(512, 510);
        let taken = ["a", "b", "c", "a"].map(|name| watch.metric(name).is_some());
        assert_eq!((taken, watch.dropped().names), ([true, true, false, true], 1));
        assert_eq!(CELLS, 512 * 512);
    }

    #[test]
    fn an_alert_stays_open_above_a_third_of_the_evidence_that_names() {
        assert!((130.0 * CALM_BELOW - 43.333).abs() < 1e-3);
    }
}
