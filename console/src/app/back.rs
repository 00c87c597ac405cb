//! What runs said before those that are shown: read once these are on the screen, so that nobody waits for it.
//!
//! A run whose results newer ones have all measured again is not shown, and is what they are compared with. It is judged as it
//! would be alone; then its samples and sentences go, and of each verdict the state and the median stay.

use std::collections::{BTreeSet, HashMap, HashSet};

use anyhow::Result;
use muster_run::{is_work, visit_of};
use muster_store::{Db, Store};
use muster_wire::{Level, Outcome};

use super::fleet::{Base, Fleet, RUNS};
use crate::config::Config;
use crate::judge::{Asked, Judging, stored};
use crate::session;
use crate::views::Earlier;

/// Reads it beside whatever goes on, and shows it.
pub(super) fn look_back(fleet: &Fleet, config: &Config) {
    let Some(base) = fleet.to_look_back() else { return };
    let (fleet, config) = (fleet.clone(), config.clone());
    std::thread::spawn(move || {
        let store = Db::open_read_only(&config.db.value);
        let earlier = store.map_err(Into::into).and_then(|store| {
            let earlier = before(&store, &base, &config);
            fleet.tell_damage(&store);
            earlier
        });
        tell(&fleet, &base, earlier);
    });
}

/// Reads it from `store`, unless it is known or being read, and shows it.
pub(super) fn read(fleet: &Fleet, store: &dyn Store, config: &Config) {
    if let Some(base) = fleet.to_look_back() {
        tell(fleet, &base, before(store, &base, config));
    }
}

fn tell(fleet: &Fleet, base: &Base, earlier: Result<Earlier>) {
    if let Err(why) = &earlier {
        fleet.say(Level::Warn, format!("earlier runs cannot be read: {why:#}"));
    }
    fleet.looked_back(base, earlier.ok());
}

/// Of everything that the runs of `base` measured the answer before the newest one, as far as none of them has it.
fn before(store: &dyn Store, base: &Base, config: &Config) -> Result<Earlier> {
    let names: HashSet<&String> = base.names.iter().collect();
    let shown: HashSet<&str> = base.runs.iter().map(|told| told.run.id.as_str()).collect();
    let mut earlier = Earlier::default();
    // How many of the runs so far, from the newest on, have an answer.
    let mut answers: HashMap<Asked, u8> = HashMap::new();
    let runs = store.runs()?.into_iter().skip_while(|run| !shown.contains(run.id.as_str()));
    for run in runs.take(RUNS) {
        let summaries = store.summaries(&run.id)?;
        let newest = summaries.iter().map(|one| one.at_ms).max();
        let answered: HashSet<Asked> = summaries
            .into_iter()
            .filter(|one| names.contains(&one.node) && is_work(&one.work) && !matches!(one.outcome, Outcome::NotRun(_)))
            .map(|one| (one.node, visit_of(&one.work).0.to_owned()))
            .collect();
        if shown.contains(run.id.as_str()) {
            answered.into_iter().for_each(|asked| *answers.entry(asked).or_default() += 1);
            continue;
        }
        let mut wanted: HashMap<&str, BTreeSet<&str>> = HashMap::new();
        for (node, work) in answered.iter().filter(|asked| answers.get(asked) == Some(&1)) {
            wanted.entry(work).or_default().insert(node);
        }
        if wanted.is_empty() {
            continue;
        }
        let judging = Judging::of(store, &run, session::params(config))?;
        let at_ms = run.ended_ms.or(newest).unwrap_or(run.started_ms);
        let said = stored(store, &run, &judging)?;
        earlier.add((&run, at_ms), &said, &wanted);
        // What none of the shown runs has is nobody's past.
        for asked in &answered {
            if let Some(count) = answers.get_mut(asked) {
                *count += 1;
            }
        }
    }
    Ok(earlier)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::app::fleet::judged;
    use crate::config::{Raw, resolve};
    use crate::views::Board;
    use muster_run::{Record, Run, RunState};
    use muster_store::Options;
    use muster_tui::snapshot::VerdictRow;
    use muster_wire::{Direction, MetricId, Profile, Series, Unit};

    const NODES: usize = 6;

    /// Stores a run in which every node gives `level` in each of `works`, and n3 a share of it.
    pub(in crate::app) fn measured(store: &mut Db, id: &str, started_ms: u64, works: &[&str], n3: f64) {
        let run = Run {
            id: id.to_owned(),
            playbook: "cbd-light".to_owned(),
            profile: Profile::Smoke,
            started_ms,
            ended_ms: None,
            nodes: (1..=NODES).map(|n| format!("n{n}")).collect(),
            plan: works.iter().map(|work| (*work).to_owned()).collect(),
            state: RunState::Running,
        };
        store.begin(&run).unwrap();
        let record = |(node, work): (&String, &&str)| Record {
            run: id.to_owned(),
            node: node.clone(),
            work: (*work).to_owned(),
            outcome: Outcome::Done,
            at_ms: started_ms,
            elapsed_ns: 1,
            series: vec![Series {
                metric: MetricId::new(*work, "a", "own"),
                unit: Unit::BytesPerSec,
                direction: Direction::HigherIsBetter,
                values: (0..32)
                    .map(|i| 1e9 * (if node == "n3" { n3 } else { 1.0 }) * (1.0 + 1e-3 * f64::from(i % 7)))
                    .collect(),
                warmup: 0,
                started_ns: 0,
            }],
            facts: Vec::new(),
        };
        let records: Vec<Record> =
            run.nodes.iter().flat_map(|node| works.iter().map(move |work| (node, work))).map(record).collect();
        store.append_many(&records).unwrap();
        store.end(id, RunState::Finished, started_ms + 9).unwrap();
    }

    fn rows(board: &Board, node: usize) -> Vec<VerdictRow> {
        board.focus(&format!("n{}", node + 1));
        board.publish();
        let mut rows = board.snapshot().nodes[node].verdicts.to_vec();
        rows.sort_by(|a, b| a.metric.cmp(&b.metric));
        rows
    }

    /// One line a row: benchmark, its run, and the run before with what changed since.
    fn told(rows: &[VerdictRow]) -> Vec<String> {
        let before = |row: &VerdictRow| {
            row.before
                .as_ref()
                .map_or_else(String::new, |before| format!(", {:?} since {}", before.shift, before.from.id))
        };
        rows.iter().map(|row| format!("{} {}{}", row.metric.benchmark, row.run, before(row))).collect()
    }

    #[test]
    fn what_was_before_is_found_in_the_picture_and_behind_it_and_of_a_run_alone_too() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        measured(&mut store, "r1", 1_000, &["cpu-gemm", "disk"], 1.0);
        measured(&mut store, "r2", 2_000, &["cpu-gemm", "disk"], 1.0);
        measured(&mut store, "r3", 3_000, &["cpu-gemm"], 0.5);
        let names: Vec<String> = (1..=NODES).map(|n| format!("n{n}")).collect();
        let config = resolve(Raw::default(), Raw::default(), std::path::Path::new("none.toml")).unwrap();
        let board = Board::new("six", &names, &[]);
        let fleet = Fleet::new(board.clone());
        fleet.read(&store, (&names, &config), |_| ()).unwrap();
        assert_eq!(told(&rows(&board, 2)), ["cpu-gemm r3, Worse since r2", "disk r2"]);
        let base = fleet.to_look_back().unwrap();
        board.publish();
        assert!(board.snapshot().looking_back);
        fleet.looked_back(&base, before(&store, &base, &config).ok());
        let all = ["cpu-gemm r3, Worse since r2", "disk r2, Same since r1"];
        assert_eq!(told(&rows(&board, 2)), all);
        assert!(fleet.to_look_back().is_none() && !board.snapshot().looking_back, "it is read once");
        let alone = judged(&store, store.run("r2").unwrap().unwrap(), &config, None).unwrap();
        fleet.alone(Some(alone));
        assert!(rows(&board, 2).iter().all(|row| row.before.is_none()));
        read(&fleet, &store, &config);
        assert_eq!(told(&rows(&board, 2)), ["cpu-gemm r2, Same since r1", "disk r2, Same since r1"]);
        fleet.alone(None);
        assert_eq!(told(&rows(&board, 2)), all);
    }
}
