//! SIGKILL at any moment: whatever was acknowledged is there, and the run goes on.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod common;
#[path = "common/incidents.rs"]
mod incidents;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{db, record, run};
use incidents::incident;
use muster_store::{Db, Store, Table, check};
use rand::{Rng, SeedableRng};

const CHILD: &str = "MUSTER_STORE_TEST_CHILD";
const NAME: &str = "every_acknowledged_record_survives_ten_kills_each_followed_by_a_resume";

/// Appends for ever, saying every record once it was acknowledged.
fn child(dir: &Path) -> ! {
    let mut store = db(dir);
    store.begin(&run("r", 1)).unwrap();
    let mut next = store.done("r").unwrap().len();
    let mut out = std::io::stdout().lock();
    loop {
        let batch: Vec<_> = (0..next % 5 + 1).map(|i| record("r", &node(next + i), "disk", size(next + i))).collect();
        store.append_many(&batch).unwrap();
        for record in &batch {
            writeln!(out, "\nack {}", record.node).unwrap();
        }
        out.flush().unwrap();
        next += batch.len();
        if next.is_multiple_of(7) {
            store.record_incidents(&[incident(next)]).unwrap();
            writeln!(out, "\ninc {next}").unwrap();
            out.flush().unwrap();
        }
        if next.is_multiple_of(17) {
            store.put(Table::Criteria, "disk", &next.to_le_bytes()).unwrap();
        }
    }
}

fn node(i: usize) -> String {
    format!("n{i:06}")
}

fn size(i: usize) -> usize {
    1 + i * 37 % 900
}

#[test]
fn every_acknowledged_record_survives_ten_kills_each_followed_by_a_resume() {
    if let Some(dir) = std::env::var_os(CHILD) {
        child(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let mut random = rand::rngs::StdRng::seed_from_u64(14);
    let (mut acknowledged, mut incidents) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..10 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", NAME, "--nocapture"]).env(CHILD, dir.path());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut hear = |acknowledged: &mut BTreeSet<String>| {
            let line = lines.next()?.unwrap();
            if let Some(number) = line.strip_prefix("inc ") {
                incidents.insert(number.parse::<usize>().unwrap());
            }
            if let Some(name) = line.strip_prefix("ack ") {
                acknowledged.insert(name.to_owned());
            }
            Some(())
        };
        let before = acknowledged.len();
        while acknowledged.len() < before + 20 {
            hear(&mut acknowledged).expect("the child works on until it is killed");
        }
        std::thread::sleep(Duration::from_micros(random.random_range(0..30_000)));
        child.kill().unwrap();
        while hear(&mut acknowledged).is_some() {}
        child.wait().unwrap();

        let reader = Db::open_read_only(dir.path()).unwrap();
        let done: BTreeSet<String> = reader.done("r").unwrap().into_iter().map(|(node, _)| node).collect();
        assert_eq!(acknowledged.difference(&done).collect::<Vec<_>>(), Vec::<&String>::new(), "round {round}");
        let told = reader.incidents().unwrap();
        let lost: Vec<_> = incidents.iter().filter(|&&i| !told.contains(&incident(i))).collect();
        assert_eq!(lost, Vec::<&usize>::new(), "round {round}");
        let store = db(dir.path());
        assert_eq!(store.incidents().unwrap(), told, "round {round}: a repair takes nothing");
        assert_eq!(store.done("r").unwrap(), reader.done("r").unwrap(), "round {round}: index and file agree");
        for (i, kept) in store.records("r").unwrap().iter().enumerate() {
            assert_eq!(*kept, record("r", &node(i), "disk", size(i)), "round {round}: no gap, nothing half");
        }
        drop(store);
        let report = check(dir.path()).unwrap();
        assert!(report.sound(), "round {round}: {report:?}");
    }
}
