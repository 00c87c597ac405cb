//! Who may use a directory, and what is said to who may not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{db, record, run};
use muster_store::{Db, Options, Store, StoreError, check, rebuild};

fn refused(dir: &Path) -> StoreError {
    Db::open(dir, &Options::default()).unwrap_err()
}

#[test]
fn two_writers_never_share_a_database_and_the_second_learns_who_the_first_is() {
    let dir = tempfile::tempdir().unwrap();
    let first = db(dir.path());
    let said = refused(dir.path()).to_string();
    assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
    assert!(said.contains(dir.path().to_str().unwrap()), "{said}");
    assert!(matches!(rebuild(dir.path(), false), Err(StoreError::Locked { .. })));
    assert!(check(dir.path()).unwrap().notes.join("\n").contains("is writing"));
    drop(first);
    drop(db(dir.path()));
}

#[test]
fn a_reader_that_looks_for_a_writer_never_turns_one_away() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    store.begin(&run("r", 1)).unwrap();
    drop(store);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let reader = Db::open_read_only(dir.path()).unwrap();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                reader.runs().unwrap();
            }
        });
        let opened: Vec<_> = (0..30).map(|_| Db::open(dir.path(), &Options::default()).map(drop)).collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(opened.iter().all(Result::is_ok), "{opened:?}");
    });
}

#[test]
fn a_file_a_strange_directory_and_nothing_at_all_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"x").unwrap();
    assert!(matches!(refused(&file), StoreError::NotADirectory { .. }));
    assert!(matches!(refused(&file.join("below")), StoreError::NotADirectory { .. }));
    assert!(matches!(Db::open_read_only(&file), Err(StoreError::NotADirectory { .. })));
    let said = refused(dir.path()).to_string();
    assert!(said.contains("\"file\"") && said.contains("empty or a new directory"), "{said}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was made in it");
    let nothing = dir.path().join("nothing");
    assert!(Db::open_read_only(&nothing).unwrap_err().to_string().contains("no database at"));
    assert!(check(&nothing).is_err() && rebuild(&nothing, false).is_err() && !nothing.exists());
    drop(db(&nothing.join("deeper")));
}

const AS_NOBODY: &str = "MUSTER_STORE_TEST_AS_NOBODY";

/// Runs one test of this program as the user nobody, who is bound by permissions as root is not.
fn as_nobody(test: &str, dir: &Path) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    // The program lies where only root may look, perhaps.
    let program: PathBuf = dir.join("test-program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(&program);
    let out = command.args(["--exact", test, "--nocapture"]).env(AS_NOBODY, dir).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && text.contains("1 passed"), "{text}");
    Some(text)
}

#[test]
fn a_directory_that_may_not_be_written_says_so_and_can_be_read() {
    if let Some(place) = std::env::var_os(AS_NOBODY) {
        return without_permission(Path::new(&place));
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let place = dir.path().join("db");
    let mut store = db(&place);
    store.begin(&run("r", 1)).unwrap();
    store.append(&record("r", "n1", "disk", 4)).unwrap();
    drop(store);
    fs::create_dir(dir.path().join("closed")).unwrap();
    let name = "a_directory_that_may_not_be_written_says_so_and_can_be_read";
    if as_nobody(name, dir.path()).is_some() {
        return;
    }
    for (path, mode) in [("db", 0o555), ("db/lock", 0o444), ("closed", 0o555)] {
        fs::set_permissions(dir.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    without_permission(dir.path());
    for path in ["db", "closed"] {
        fs::set_permissions(dir.path().join(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn without_permission(dir: &Path) {
    let place = dir.join("db");
    let said = refused(&place).to_string();
    assert!(said.starts_with("no permission to") && said.contains(place.to_str().unwrap()), "{said}");
    let said = refused(&dir.join("closed/db")).to_string();
    assert!(said.starts_with("no permission to create"), "{said}");
    let reader = Db::open_read_only(&place).unwrap();
    assert_eq!(reader.records("r").unwrap(), [record("r", "n1", "disk", 4)]);
    assert!(check(&place).unwrap().files.iter().all(|f| f.damage.is_empty()));
}
