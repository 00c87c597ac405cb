//! A made-up run that is played: alone, and through the whole application with a made-up user.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use muster_analysis::State;
use muster_playbook::find_builtin;
use muster_run::{PAIRS, Record, Run, RunState, noted};
use muster_store::{Db, Options, Store};
use muster_tui::snapshot::{Progress, RunPhase};
use muster_tui::{Play, Screen, Snapshot};
use muster_wire::{Direction, MetricId, Outcome, Profile, Series, Unit};
use tempfile::TempDir;

use super::Played;
use super::fleet::{Fleet, judged};
use super::rehearsed::{Paper, Wanted, rehearsed};
use super::replay::{Deck, judge};
use crate::config::{Config, Raw, resolve};
use crate::judge::pairs::kept as pairs;
use crate::portable::{Recorded, Unpacked, write_run};
use crate::views::Board;
use crate::work::tape::Tape;
use crate::{database, judge, session};

const NODES: usize = 12;
/// When the made-up run began.
const BEGAN_MS: u64 = 1_760_000_000_000;

fn good<T>(result: Result<T, crate::exit::Problem>) -> T {
    result.unwrap_or_else(|problem| panic!("{:#}", problem.error))
}

fn config(db: &Path) -> Config {
    let raw = Raw { db: Some(db.to_owned()), ..Raw::default() };
    resolve(raw, Raw::default(), Path::new("none.toml")).unwrap()
}

/// What `work` gives on node `nr`, of which number 3 is slow.
fn record(run: &Run, nr: usize, work: &str, at_ms: u64) -> Record {
    let benchmark = work.split('#').next().unwrap();
    let level = if nr == 3 && benchmark == "cpu-stream" { 0.6 } else { 1.0 };
    let usual = 1e9 * level * (1.0 + 0.0004 * (nr * 7 % 11) as f64);
    let series = Series {
        metric: MetricId::new(benchmark, "rate", "own"),
        unit: Unit::BytesPerSec,
        direction: Direction::HigherIsBetter,
        values: (0..32).map(|i| usual * (1.0 + 0.001 * f64::from(i * 5 % 7))).collect(),
        warmup: 0,
        started_ns: 0,
    };
    Record {
        run: run.id.clone(),
        node: run.nodes[nr].clone(),
        work: work.to_owned(),
        outcome: Outcome::Done,
        at_ms,
        elapsed_ns: 1,
        series: vec![series],
        facts: Vec::new(),
    }
}

/// A database with a run of twelve nodes in two steps, and what it measured again.
fn made() -> (TempDir, Config, Run) {
    let nodes = (0..NODES).map(|nr| format!("n{nr:02}")).collect();
    let run = Run {
        id: "20251009T085320Z-made-0001".to_owned(),
        playbook: "made".to_owned(),
        profile: Profile::Smoke,
        started_ms: BEGAN_MS,
        ended_ms: None,
        nodes,
        plan: vec!["cpu-stream".to_owned(), "disk".to_owned()],
        state: RunState::Running,
    };
    stored(run)
}

/// The same by a playbook that comes with muster, whose phases are known.
fn planned() -> (TempDir, Config, Run) {
    let (_, _, made) = made();
    let plan = muster_playbook::plan(&find_builtin("cbd-light").unwrap(), &made.nodes);
    stored(Run {
        playbook: plan.playbook.clone(),
        profile: plan.profile,
        plan: plan.work_names(),
        ended_ms: None,
        state: RunState::Running,
        ..made
    })
}

/// Every work of `run` takes twenty seconds on all of its nodes, one after another; then the first is measured again.
fn stored(run: Run) -> (TempDir, Config, Run) {
    let mut records = Vec::new();
    for (step, work) in (0..).zip(&run.plan) {
        records.extend((0..NODES).map(|nr| record(&run, nr, work, BEGAN_MS + 20_000 * step + 1_000 * nr as u64 + 500)));
    }
    let over_ms = BEGAN_MS + 20_000 * run.plan.len() as u64;
    records.extend((0..NODES).map(|nr| record(&run, nr, "cpu-stream#2", over_ms + 5_000 + 1_000 * nr as u64)));
    kept(&run, &records, over_ms + 20_000)
}

/// A database with `run` and its `records`.
fn kept(run: &Run, records: &[Record], ended_ms: u64) -> (TempDir, Config, Run) {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Db::open(dir.path(), &Options::default()).unwrap();
    store.begin(run).unwrap();
    store.append_many(records).unwrap();
    store.end(&run.id, RunState::Finished, ended_ms).unwrap();
    let run = store.run(&run.id).unwrap().unwrap();
    drop(store);
    let config = config(dir.path());
    (dir, config, run)
}

/// A database with a scan of all pairs of four nodes: a round every twenty seconds, of which its pairs take ten.
fn scanned() -> (TempDir, Config, Run) {
    let nodes: Vec<String> = (0..4).map(|nr| format!("n{nr:02}")).collect();
    let plan = muster_playbook::plan(&find_builtin("network-full").unwrap(), &nodes);
    let run = Run {
        id: "20251009T085320Z-pairs-0001".to_owned(),
        playbook: plan.playbook.clone(),
        profile: plan.profile,
        started_ms: BEGAN_MS,
        ended_ms: None,
        nodes,
        plan: plan.work_names(),
        state: RunState::Running,
    };
    let rounds = [[[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 3], [1, 2]]];
    let all = (0..).zip(rounds).flat_map(|(round, pairs)| pairs.map(|pair| (round, pair)));
    let both = all.flat_map(|(round, [a, b])| [(round, a, b), (round, b, a)]);
    let mut records: Vec<Record> = both.map(|(round, src, dst)| visit(&run, round, (src, dst))).collect();
    records.extend(run.nodes.iter().map(|node| noted(&run.id, node, PAIRS, Vec::new(), BEGAN_MS + 65_000)));
    kept(&run, &records, BEGAN_MS + 70_000)
}

/// What node `src` sent to node `dst` in a round, counted from zero.
fn visit(run: &Run, round: u64, (src, dst): (usize, usize)) -> Record {
    let series = |name: &str, unit: Unit, direction: Direction| Series {
        metric: MetricId::new(PAIRS, name, "own"),
        unit,
        direction,
        values: (0..8).map(|i| 1e9 + f64::from(i) * 1e6 + (src * 3 + dst) as f64 * 1e5).collect(),
        warmup: 0,
        started_ns: 0,
    };
    Record {
        elapsed_ns: 10_000_000_000,
        series: vec![
            series("throughput", Unit::BytesPerSec, Direction::HigherIsBetter),
            series("round_trip", Unit::Nanos, Direction::LowerIsBetter),
        ],
        ..noted(
            &run.id,
            &run.nodes[src],
            &pairs::work(&run.nodes[dst], 1),
            vec![pairs::number(pairs::ROUND, round as f64 + 1.0)],
            BEGAN_MS + 20_000 * (round + 1),
        )
    }
}

/// The run of `config`'s database as a replay file brings it to a machine that has none.
fn elsewhere(config: &Config, run: &Run) -> (TempDir, Recorded) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.replay");
    let store = good(database::read(config));
    write_run((&*store, run), config, &mut File::create(&file).unwrap()).unwrap();
    let nowhere = self::config(&dir.path().join("db"));
    let recorded = Unpacked::of(&file).and_then(|file| Recorded::of(file, &nowhere));
    (dir, good(recorded))
}

fn played(recorded: &Recorded, speed: f64) -> Played {
    let tape = Tape::new(recorded.run.clone(), good(recorded.records()));
    Played { tape, judging: good(recorded.judging()), speed }
}

/// A deck that stands at the beginning, and what it is shown on.
fn deck(recorded: &Recorded) -> (Deck, Board, Fleet) {
    let board = Board::new("made", &recorded.run.nodes, &[]);
    let fleet = Fleet::new(board.clone());
    let mut deck = Deck::new(played(recorded, 1.0), (board.clone(), fleet.clone()), Vec::new());
    deck.obey(Play::Pause, Instant::now());
    deck.obey(Play::Start, Instant::now());
    (deck, board, fleet)
}

/// What is said of every node, how far it is, whether that may change, and how far the run is.
fn picture(deck: &Deck, board: &Board, fleet: &Fleet) -> Vec<String> {
    judge((board, fleet, deck.epoch()), deck.going(), deck.judging());
    board.publish();
    let shown = board.snapshot();
    let mut said: Vec<String> = shown
        .nodes
        .iter()
        .map(|row| format!("{} {:?} {:.3} {:?} {}", row.name, row.state, row.done, row.result_ms, row.provisional))
        .collect();
    let steps: Vec<(&str, usize, usize)> =
        shown.progress.steps.iter().map(|step| (step.id.as_str(), step.done, step.total)).collect();
    said.push(format!("{} of {} {steps:?}", shown.progress.done, shown.progress.total));
    said
}

fn moment(deck: &mut Deck, second: u64) {
    deck.go_to((BEGAN_MS + 1_000 * second) as f64 / 1e3, Instant::now());
}

#[test]
fn a_replayed_run_ends_with_the_verdicts_that_are_stored_bit_for_bit() {
    let (_dir, config, run) = made();
    let store = good(database::read(&config));
    let told = judged(&*store, run.clone(), &config, None).unwrap();
    let stored = serde_json::to_string(&judge::report(&run, &told.assessment)).unwrap();
    let (_elsewhere, recorded) = elsewhere(&config, &run);
    let (mut deck, board, fleet) = deck(&recorded);
    deck.obey(Play::End, Instant::now());
    let shown = fleet.shown();
    let replayed = serde_json::to_string(&judge::report(&shown[0].run, &shown[0].assessment)).unwrap();
    assert!(stored.contains("\"fail\""), "the run has something to show");
    assert_eq!(replayed, stored);
    board.publish();
    let snapshot = board.snapshot();
    let info = snapshot.run.as_deref().unwrap();
    assert_eq!((info.phase, info.ended_ms), (RunPhase::Finished, Some(BEGAN_MS + 60_000)));
    assert_eq!(snapshot.nodes[3].state, State::Fail);
    assert_eq!(snapshot.replay().and_then(|replay| replay.word()), Some("over"));
}

#[test]
fn a_file_read_on_a_machine_that_knows_nothing_says_the_same_as_the_database_it_came_from() {
    let (_dir, config, run) = made();
    let store = good(database::read(&config));
    let here = good(session::report_of(&*store, Some(&run.id), &config));
    let (_elsewhere, recorded) = elsewhere(&config, &run);
    let there = good(recorded.report());
    assert_eq!(serde_json::to_string(&there).unwrap(), serde_json::to_string(&here).unwrap());
}

#[test]
fn what_a_replay_shows_at_a_moment_does_not_depend_on_how_it_got_there() {
    for (dir, config, run) in [made(), planned()] {
        sought(&config, &run);
        drop(dir);
    }
}

/// Plays `run` through, then back and on from place to place.
fn sought(config: &Config, run: &Run) {
    let (_elsewhere, recorded) = elsewhere(config, run);
    let (mut deck, board, fleet) = deck(&recorded);
    let over = 20 * run.plan.len() as u64;
    let mut seconds = [0, 3, 12, 19, 23, 32, over - 15, over - 2, over + 4, over + 6, over + 18];
    seconds.sort_unstable();
    let mut straight = Vec::new();
    for second in 0..=over + 18 {
        moment(&mut deck, second);
        let seen = picture(&deck, &board, &fleet);
        straight.extend(seconds.contains(&second).then_some(seen));
    }
    assert_ne!(straight[1], straight[2]);
    for (second, seen) in seconds.iter().zip(&straight).rev() {
        moment(&mut deck, *second);
        assert_eq!(&picture(&deck, &board, &fleet), seen, "back to {second} s");
    }
    for (second, seen) in seconds.iter().zip(&straight).step_by(3) {
        moment(&mut deck, *second);
        assert_eq!(&picture(&deck, &board, &fleet), seen, "on to {second} s");
    }
    deck.obey(Play::End, Instant::now());
    moment(&mut deck, 12);
    assert_eq!(picture(&deck, &board, &fleet), straight[2], "from the end");
    assert!(board.snapshot().run.as_deref().is_some_and(|run| run.ended_ms.is_none()));
}

/// Visits that the judge knows, the metric and the pair that are shown, and how far the scan is.
fn scan_of(deck: &Deck, board: &Board, fleet: &Fleet) -> (usize, String, bool, Option<Progress>) {
    judge((board, fleet, deck.epoch()), deck.going(), deck.judging());
    board.publish();
    let known = fleet.shown().first().and_then(|told| told.pairs.clone());
    let visits = known.map_or(0, |pairs| pairs.matrices["throughput"].len());
    let shown = board.snapshot().network.data.clone();
    let metric = shown.as_ref().map_or_else(String::new, |network| network.metrics[network.metric].clone());
    let pair = shown.as_ref().is_some_and(|network| network.pair.is_some());
    (visits, metric, pair, shown.and_then(|network| network.progress.clone()))
}

#[test]
fn a_replayed_scan_fills_the_network_round_by_round_as_it_did() {
    let (_dir, config, run) = scanned();
    let (_elsewhere, recorded) = elsewhere(&config, &run);
    let (mut deck, board, fleet) = deck(&recorded);
    let dropped: Arc<[String]> = Arc::from([]);
    let progress = |round, done, eta_ms, going| {
        Some(Progress { round, rounds: 3, done, total: 6, eta_ms, going, dropped: dropped.clone() })
    };
    let mut at = |second: u64| {
        moment(&mut deck, second);
        scan_of(&deck, &board, &fleet)
    };
    assert_eq!(at(15), (0, String::new(), false, None), "the first round is still measured");
    let first = (4, "throughput".to_owned(), false, progress(1, 0, None, true));
    assert_eq!(at(25), first);
    // The first round took twenty seconds with what lay before the second.
    assert_eq!(at(35), (4, first.1.clone(), false, progress(2, 2, Some(40_000), true)));
    assert_eq!(at(45).0, 8);
    board.pair("n00", "n01");
    board.pair_metric("round_trip");
    assert_eq!(at(69), (12, "round_trip".to_owned(), true, progress(3, 4, Some(20_000), true)));
    assert_eq!(at(25), (4, "round_trip".to_owned(), true, progress(1, 0, None, true)), "back");
    assert_eq!(at(70), (12, "round_trip".to_owned(), true, progress(3, 4, None, false)), "the end");
}

fn word(shown: &Snapshot) -> Option<&'static str> {
    shown.replay().and_then(|replay| replay.word())
}

#[test]
fn keys_stop_move_and_speed_up_a_replay_in_which_nothing_is_run_or_written() {
    let (_dir, config, run) = made();
    let (_elsewhere, recorded) = elsewhere(&config, &run);
    let empty = tempfile::tempdir().unwrap();
    let begun: Wanted = |shown| shown.replay().is_some() && word(shown).is_none();
    let paused: Wanted = |shown| word(shown) == Some("paused");
    let on: Wanted = |shown| shown.replay().is_some_and(|replay| replay.at_ms > BEGAN_MS + 10_000);
    let fast: Wanted = |shown| shown.replay().is_some_and(|replay| replay.speed > 7.0);
    let over: Wanted = |shown| word(shown) == Some("over") && shown.nodes[3].state == State::Fail;
    let back: Wanted =
        |shown| shown.replay().is_some_and(|replay| replay.at_ms == BEGAN_MS) && shown.progress.done == 0;
    let keys = vec![
        ('P', begun),
        ('.', paused),
        (')', on),
        ('R', fast),
        ('}', fast),
        ('r', over),
        ('?', over),
        ('?', over),
        ('{', over),
        ('P', back),
        ('}', begun),
        ('q', over),
    ];
    let names: Vec<&str> = recorded.run.nodes.iter().map(String::as_str).collect();
    let paper = Paper::default();
    let begin = |app: &mut super::App| {
        (app.store, app.watching) = (None, Some("this is a replay".to_owned()));
        app.replay(played(&recorded, 4.0));
    };
    let last = rehearsed((&names, empty.path(), &["--read-only"]), begin, (Screen::Fleet, paper.clone()), keys);
    assert_eq!((last.nodes.len(), last.nodes[3].state), (NODES, State::Fail));
    let written = paper.text();
    for text in ["REPLAY", "paused", "over"] {
        assert!(written.contains(text), "{text}");
    }
    let store = Db::open(empty.path(), &Options::default()).unwrap();
    assert!(store.runs().unwrap().is_empty(), "nothing is written");
}
