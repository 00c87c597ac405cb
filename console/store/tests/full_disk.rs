//! A disk that fills up costs what was being added and nothing else.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{db, record, run};
use muster_run::Record;
use muster_skip::Lacks;
use muster_store::{Db, Store, StoreError, check};

/// A file system of a few megabytes, unmounted at the end.
struct Tiny(tempfile::TempDir);

impl Tiny {
    /// `None` when this user may not mount, and then `test` is skipped.
    fn mount(test: &str, kib: u32) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "muster-test"]).arg(dir.path());
        let out = command.output();
        if out.as_ref().is_ok_and(|o| o.status.success()) {
            return Some(Self(dir));
        }
        muster_skip::skip(test, Lacks::Root, &format!("a small file system cannot be mounted: {out:?}"));
        None
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// Samples that do not compress.
fn noise(node: &str) -> Record {
    use rand::{Rng, SeedableRng};
    let mut random = rand::rngs::StdRng::seed_from_u64(node.len() as u64);
    let mut record = record("r", node, "disk", 4_000);
    record.series[0].values.iter_mut().for_each(|v| *v = f64::from_bits(random.random::<u64>() >> 2));
    record
}

/// Appends until the disk is full.
fn fill(store: &mut Db, kept: &mut Vec<Record>) -> StoreError {
    for i in 0.. {
        let record = noise(&format!("n{i:05}"));
        match store.append(&record) {
            Ok(()) => kept.push(record),
            Err(e) => return e,
        }
    }
    unreachable!("the file system has no end")
}

#[test]
fn a_full_disk_is_named_and_what_was_acknowledged_stays() {
    let Some(tiny) = Tiny::mount("a_full_disk_is_named_and_what_was_acknowledged_stays", 4_096) else { return };
    let place = tiny.path().join("db");
    let ballast = tiny.path().join("ballast");
    fs::write(&ballast, vec![1; 256 << 10]).unwrap();
    let mut store = db(&place);
    store.begin(&run("r", 1)).unwrap();
    let mut kept = Vec::new();
    let said = fill(&mut store, &mut kept);
    assert!(matches!(&said, StoreError::Full { kept: n, .. } if *n == kept.len() as u64), "{said:?}");
    assert!(said.to_string().contains("runs/r.log") && said.to_string().contains("no space left"), "{said}");
    assert!(kept.len() > 20);
    assert_eq!(store.records("r").unwrap(), kept, "in the session that met it");
    let length = fs::metadata(place.join("runs/r.log")).unwrap().len();
    assert!(matches!(store.append(&noise("again")), Err(StoreError::Full { .. })));
    assert_eq!(fs::metadata(place.join("runs/r.log")).unwrap().len(), length, "the half frame is gone");
    assert!(matches!(store.begin(&run("other", 2)), Ok(()) | Err(StoreError::Full { .. })));
    drop(store);
    assert_eq!(Db::open_read_only(&place).unwrap().records("r").unwrap(), kept, "by a reader of the full disk");

    let store = db(&place);
    assert_eq!(store.records("r").unwrap(), kept, "by a writer of the full disk");
    drop(store);

    fs::remove_file(&ballast).unwrap();
    let mut store = db(&place);
    store.begin(&run("r", 1)).unwrap();
    store.append(&noise("after")).unwrap();
    kept.insert(0, noise("after"));
    assert_eq!(store.records("r").unwrap(), kept, "and there is room again");
    drop(store);
    assert!(check(&place).unwrap().files.iter().all(|f| f.damage.is_empty()));
}

#[test]
fn a_batch_that_does_not_fit_is_not_kept_in_part() {
    let Some(tiny) = Tiny::mount("a_batch_that_does_not_fit_is_not_kept_in_part", 3_072) else { return };
    let mut store = db(&tiny.path().join("db"));
    store.begin(&run("r", 1)).unwrap();
    store.append(&noise("first")).unwrap();
    let batch: Vec<Record> = (0..200).map(|i| noise(&format!("b{i}"))).collect();
    assert!(matches!(store.append_many(&batch), Err(StoreError::Full { kept: 1, .. })));
    assert_eq!(store.records("r").unwrap(), [noise("first")]);
    store.append(&noise("second")).unwrap();
    drop(store);
    assert_eq!(Db::open_read_only(tiny.path().join("db")).unwrap().done("r").unwrap().len(), 2);
}
