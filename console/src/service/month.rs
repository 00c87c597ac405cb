//! A month of twelve machines with faults and repairs: who is defective, who replaces them, and who is let back.

use std::collections::BTreeMap;

use muster_analysis::Params;
use muster_analysis::service::{Marked, Service, Spare, Swap, repeated, swaps, told};
use muster_run::{Record, Run, RunState, noted};
use muster_store::{Db, Options, Store};
use muster_wire::{Datum, Direction, Fact, MetricId, Outcome, Profile, Reading, Series, Unit};

use super::{
    Counterpart, Mark, Refusal, Replaced, Standing, failures, keep_failures, mark, marks, refusals, replace,
    replace_listed, standings,
};
use crate::judge::{Judging, assess, report};
use crate::risk::incidents::incidents_of;

const DAY_MS: u64 = 86_400_000;

struct Month {
    db: Db,
    /// Speed of each machine, 1 for a healthy one.
    speed: BTreeMap<String, f64>,
    /// Serial number of the machine that stands under each name.
    serial: BTreeMap<String, String>,
    _dir: tempfile::TempDir,
}

impl Month {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), &Options::default()).unwrap();
        let names: Vec<String> = (1..=12).map(|n| format!("n{n:02}")).collect();
        let serial = names.iter().map(|name| (name.clone(), format!("SN-{name}"))).collect();
        Self { db, speed: names.into_iter().map(|name| (name, 1.0)).collect(), serial, _dir: dir }
    }

    fn record(&self, run: &str, node: &str, work: &str) -> Record {
        let text =
            |key: &str, text: String| Fact { key: key.into(), reading: Reading::Value(Datum::Text(text)), unit: None };
        let series = |metric: &str, level: f64| Series {
            metric: MetricId::new(work, metric, "own"),
            unit: Unit::BytesPerSec,
            direction: Direction::HigherIsBetter,
            values: (0..32).map(|step| level * self.speed[node] * (1.0 + 1e-3 * f64::from(step % 7))).collect(),
            warmup: 0,
            started_ns: 0,
        };
        let (facts, series) = match work {
            "collect/cpu" => (vec![text("model", "EPYC 9654".into())], vec![]),
            "collect/identity" => (vec![text("dmi.serial", self.serial[node].clone())], vec![]),
            _ => (vec![], vec![series("copy", 100.0), series("triad", 90.0)]),
        };
        Record { outcome: Outcome::Done, series, ..noted(run, node, work, facts, 2) }
    }

    /// A run of `works` on `nodes` that begins on a day.
    fn begun(&mut self, day: u64, nodes: &[&str], works: &[&str]) -> Run {
        let started_ms = day * DAY_MS;
        let run = Run {
            id: format!("day{day:02}"),
            playbook: "build-out".into(),
            profile: Profile::Smoke,
            started_ms,
            ended_ms: None,
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            plan: works.iter().map(|work| (*work).to_owned()).collect(),
            state: RunState::Running,
        };
        self.db.begin(&run).unwrap();
        run
    }

    /// The same, as the program ends it.
    fn run(&mut self, day: u64, nodes: &[&str], works: &[&str]) {
        let run = self.begun(day, nodes, works);
        let (id, started_ms) = (run.id.clone(), run.started_ms);
        let all: Vec<Record> =
            nodes.iter().flat_map(|node| works.iter().map(|work| self.record(&id, node, work))).collect();
        self.db.append_many(&all).unwrap();
        let ended = Run { state: RunState::Finished, ended_ms: Some(started_ms + 1), ..run };
        let judging = Judging::of(&self.db, &ended, Params::default()).unwrap();
        let said = report(&ended, &assess(&ended, &all, &judging));
        let (known, done) = (self.db.incidents().unwrap(), self.db.summaries(&id).unwrap());
        self.db.record_incidents(&incidents_of(&ended, &said, &done, &known)).unwrap();
        keep_failures(&mut self.db, &ended, &said).unwrap();
        self.db.end(&id, RunState::Finished, started_ms + 1).unwrap();
    }

    fn set(&mut self, nodes: &[&str], speed: f64) {
        self.speed.extend(nodes.iter().map(|node| ((*node).to_owned(), speed)));
    }

    fn all(&self) -> Vec<String> {
        self.speed.keys().cloned().collect()
    }

    fn scan(&mut self, day: u64) {
        let all = self.all();
        self.run(
            day,
            &all.iter().map(String::as_str).collect::<Vec<_>>(),
            &["collect/cpu", "collect/identity", "cpu-stream"],
        );
    }

    fn mark(&mut self, node: &str, state: Marked, day: u64) {
        let mark_ = Mark { state, at_ms: day * DAY_MS, who: "kim".into(), why: "RMA".into(), counterpart: None };
        mark(&mut self.db, node, mark_).unwrap();
    }

    fn standings(&self) -> Vec<Standing> {
        let of = |name: String| {
            let rack = if name.as_str() <= "n06" { "r1" } else { "r2" };
            (name, BTreeMap::from([("rack".to_owned(), rack.to_owned())]))
        };
        let nodes: Vec<_> = self.all().into_iter().map(of).collect();
        standings(&self.db, &Params::default(), &nodes).unwrap()
    }

    fn standing(&self, node: &str) -> Standing {
        self.standings().into_iter().find(|one| one.machine.name == node).unwrap()
    }

    fn hands(&self, node: &str) -> Service {
        self.standing(node).service
    }

    /// In whose hands a machine is, and the other one of its swap without the days.
    fn swapped(&self, node: &str) -> (Service, Option<String>) {
        let one = self.standing(node);
        let sentence = |other: &Counterpart| other.sentence().split(" 20").next().unwrap_or_default().to_owned();
        (one.service, one.counterpart.as_ref().map(sentence))
    }

    fn refused(&self, node: &str, day: u64) -> Vec<Refusal> {
        refusals(&self.db, &Params::default(), node, day * DAY_MS).unwrap().0
    }
}

#[test]
fn a_machine_that_fails_is_replaced_and_comes_back_only_when_it_passes_what_condemned_it() {
    let mut month = Month::new();
    month.scan(1);
    assert!(month.standings().iter().all(|one| one.service == Service::InService), "{:?}", month.standings());
    month.mark("n05", Marked::HotBuffer, 2);
    month.mark("n11", Marked::HotBuffer, 2);

    // Day 3: a machine of the second rack is at half its speed.
    month.speed.insert("n08".into(), 0.5);
    month.scan(3);
    let all = month.standings();
    let of = |service: Service| all.iter().filter(move |one| one.service == service);
    let out: Vec<_> = of(Service::Defective).map(|one| one.machine.clone()).collect();
    assert_eq!(out.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["n08"]);
    assert_eq!(out[0].hardware.as_deref(), Some("EPYC 9654"), "as its run saw it");
    let spares: Vec<Spare> = of(Service::HotBuffer)
        .map(|one| Spare { machine: one.machine.clone(), refused: one.known.refused().map(str::to_owned) })
        .collect();
    let found = swaps(&out, &spares);
    assert!(matches!(&found[0], Swap::By { spare, .. } if spare == "n11"), "{found:?}");

    // Day 4: into repair. Nobody has validated it since.
    month.mark("n08", Marked::InRepair, 4);
    assert_eq!(month.hands("n08"), Service::InRepair);
    let refused = month.refused("n08", 4);
    assert!(refused.len() == 1 && refused[0].why.starts_with("it was not validated since"), "{refused:?}");

    // Day 5: a run that holds less than what condemned it.
    month.run(5, &["n01", "n02", "n03", "n04", "n06", "n08"], &["collect/cpu"]);
    let refused = month.refused("n08", 4);
    assert!(refused.iter().any(|one| one.why.contains("left out collect/identity, cpu-stream")), "{refused:?}");

    // Day 6: among peers that are as slow, or alone, it looks like any other; by what condemned it, it does not.
    let slow = ["n01", "n02", "n03", "n04", "n06"];
    month.set(&slow, 0.5);
    month.run(6, &["n01", "n02", "n03", "n04", "n06", "n08"], &["collect/cpu", "collect/identity", "cpu-stream"]);
    month.set(&slow, 1.0);
    let refused = month.refused("n08", 4);
    assert!(
        refused
            .iter()
            .any(|one| one.fails && one.why.contains("run day03, which found it defective, would still fail it")),
        "{refused:?}"
    );

    // Day 9: repaired for real.
    month.speed.insert("n08".into(), 1.0);
    month.scan(9);
    assert_eq!(month.refused("n08", 4), []);
    let (_, ended) = refusals(&month.db, &Params::default(), "n08", 4 * DAY_MS).unwrap();
    month.db.record_incidents(&ended).unwrap();
    month.mark("n08", Marked::InService, 9);
    assert_eq!(month.hands("n08"), Service::InService);
}

#[test]
fn a_machine_in_repair_names_who_took_its_place_and_the_history_of_both_keeps_it() {
    let params = Params::default();
    let mut month = Month::new();
    month.scan(1);
    month.mark("n05", Marked::HotBuffer, 2);
    month.mark("n11", Marked::HotBuffer, 2);
    month.set(&["n08"], 0.5);
    month.scan(3);
    let all = month.standings();
    let names = ["n08", "n02"].map(str::to_owned);
    let done = replace_listed(&mut month.db, &params, &all, &names, "RMA 4711").unwrap();
    let why = "it is in service, and only a defective node has a spare listed; name one: muster swap replace -w n02 --by SPARE";
    let expected = [("n08", Ok("n11".to_owned())), ("n02", Err(why.to_owned()))];
    assert_eq!(done, expected.map(|(node, by)| Replaced { node: node.to_owned(), by }));
    let said = |text: &str| Some(text.to_owned());
    assert_eq!(month.swapped("n08"), (Service::InRepair, said("replaced by n11 on")));
    assert_eq!(month.swapped("n11"), (Service::InService, said("in place of n08 since")));
    assert_eq!(month.swapped("n05"), (Service::HotBuffer, None));

    // No machine takes two places, and one in repair takes none.
    let took = month.standing("n11");
    let why = replace(&mut month.db, &params, ("n03", &took), "").unwrap();
    assert_eq!(why.as_deref(), Some("n11 is in place of n08, which is in repair"));
    let broken = month.standing("n08");
    let why = replace(&mut month.db, &params, ("n03", &broken), "").unwrap();
    assert!(why.is_some_and(|why| why.starts_with("n08 is in repair; give it back first")));
    assert_eq!(marks(&month.db).unwrap().get("n03"), None);

    // The same said again changes nothing; another spare takes the place of the first.
    assert_eq!(replace(&mut month.db, &params, ("n08", &took), "").unwrap(), None);
    assert_eq!(marks(&month.db).unwrap()["n08"].len(), 1);
    let other = month.standing("n05");
    assert_eq!(replace(&mut month.db, &params, ("n08", &other), "").unwrap(), None);
    assert_eq!(month.swapped("n08"), (Service::InRepair, said("replaced by n05 on")));
    assert_eq!(month.swapped("n05"), (Service::InService, said("in place of n08 since")));
    assert_eq!(month.swapped("n11"), (Service::InService, None));

    // Repaired and given back: nobody stands in for anybody, and what was is kept.
    mark(&mut month.db, "n08", Mark::now(Marked::InService, "")).unwrap();
    assert!(["n05", "n08", "n11"].into_iter().all(|node| month.standing(node).counterpart.is_none()));
    let kept = marks(&month.db).unwrap();
    let told = |node: &str| kept[node].iter().map(Mark::swap).collect::<Vec<_>>();
    assert_eq!(told("n08"), ["replaced by n11", "replaced by n05", ""]);
    assert_eq!(told("n05"), ["", "in place of n08"]);
    assert!(kept["n08"][1].at_ms == kept["n08"][0].at_ms && kept["n08"][1].why == "RMA 4711", "{:?}", kept["n08"]);
}

#[test]
fn a_run_that_goes_on_makes_nobody_suspect() {
    let mut month = Month::new();
    month.scan(1);
    let names = month.all();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let run = month.begun(2, &names, &["cpu-stream"]);
    let first = month.record(&run.id, "n01", "cpu-stream");
    month.db.append_many(&[first]).unwrap();
    assert!(
        month.standings().iter().all(|one| one.service == Service::InService && one.run.as_deref() == Some("day01"))
    );
}

#[test]
fn a_machine_that_fails_is_known_again_by_its_number_where_it_is_put_next() {
    let mut month = Month::new();
    for (day, node) in [(3, "n08"), (12, "n08"), (20, "n02")] {
        month.serial.insert(node.into(), "SN-n08".into());
        month.set(&[node], 0.6);
        month.scan(day);
        month.set(&[node], 1.0);
    }
    let again = repeated(&failures(&month.db).unwrap());
    let first = again.first().unwrap();
    assert_eq!((first.part.serial.as_str(), first.failures.len()), ("SN-n08", 3), "{again:#?}");
    assert_eq!(told(first).unwrap(), "third time this node fails, before on n08");
    assert_eq!(month.hands("n02"), Service::Defective);
}
