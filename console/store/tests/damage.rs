//! Whatever happens to the files, what was acknowledged and is still there comes back, and the rest is told.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{db, record, run};
use muster_run::{Record, RunState};
use muster_store::{Db, Options, Store, StoreError, Table, check, rebuild};

/// A closed database with one finished run of `n` records.
fn filled(dir: &Path, n: usize) -> Vec<Record> {
    let records: Vec<Record> = (0..n).map(|i| record("r", &format!("n{i:04}"), "disk", 8)).collect();
    let mut store = db(dir);
    store.begin(&run("r", 1)).unwrap();
    store.append_many(&records).unwrap();
    store.put(Table::Criteria, "disk", b"sample").unwrap();
    store.end("r", RunState::Finished, 2).unwrap();
    records
}

fn log(dir: &Path) -> PathBuf {
    dir.join("runs/r.log")
}

/// Offset and length of every frame.
fn frames(bytes: &[u8]) -> Vec<(usize, usize)> {
    let (mut at, mut found) = (16, Vec::new());
    while at < bytes.len() {
        let length = 8 + u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        found.push((at, length));
        at += length;
    }
    found
}

/// The index's files, after sled wrote its snapshot: it does so when it opens.
fn index_image(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    drop(db(dir));
    let files = fs::read_dir(dir.join("index")).unwrap().map(|e| e.unwrap().path());
    files.filter(|p| p.is_file()).map(|p| (p.clone(), fs::read(p).unwrap())).collect()
}

#[test]
fn a_run_file_cut_at_any_byte_keeps_every_whole_record_and_takes_new_ones() {
    let origin = tempfile::tempdir().unwrap();
    let records = filled(origin.path(), 3);
    let whole = fs::read(log(origin.path())).unwrap();
    let ends: Vec<usize> = frames(&whole).iter().map(|(at, length)| at + length).collect();
    for cut in 0..whole.len() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("runs")).unwrap();
        fs::write(log(dir.path()), &whole[..cut]).unwrap();
        let good = ends.iter().filter(|&&end| end <= cut).count();
        let kept = good.saturating_sub(1).min(records.len());
        let reader = Db::open_read_only(dir.path()).unwrap();
        assert_eq!(reader.runs().unwrap().len(), usize::from(good > 0), "cut at {cut}");
        drop(reader);

        let mut store = db(dir.path());
        let clean = ends.contains(&cut);
        let said = store.opened().repairs.join("\n");
        let last = ends.iter().rev().find(|&&end| end <= cut).copied().unwrap_or(0);
        assert_eq!(said.contains(&format!("{} bytes at its end", cut - last)), !clean && cut > 0, "cut {cut}: {said}");
        if !clean && cut > 0 {
            let copy = dir.path().join(format!("damaged/r.log.{last}"));
            assert_eq!(fs::read(copy).unwrap(), whole[last..cut], "what is cut off is kept aside");
        }
        store.begin(&run("r", 1)).unwrap();
        assert_eq!(store.records("r").unwrap(), records[..kept], "cut at {cut}");
        store.append(&record("r", "new", "disk", 2)).unwrap();
        drop(store);
        let report = check(dir.path()).unwrap();
        assert!(report.sound(), "cut at {cut}: {report:?}");
        assert_eq!(Db::open_read_only(dir.path()).unwrap().done("r").unwrap().len(), kept + 1);
    }
}

#[test]
fn a_flipped_byte_costs_one_frame_and_is_told_wherever_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let records = filled(dir.path(), 3);
    let whole = fs::read(log(dir.path())).unwrap();
    let frames = frames(&whole);
    for at in 16..whole.len() {
        let hit = frames.iter().position(|&(start, length)| (start..start + length).contains(&at)).unwrap();
        let mut bad = whole.clone();
        bad[at] ^= 0x40;
        fs::write(log(dir.path()), &bad).unwrap();
        let report = check(dir.path()).unwrap();
        let damage = &report.files[0].damage;
        assert_eq!(damage.len(), 1, "byte {at}");
        assert_eq!((damage[0].offset, damage[0].bytes), (frames[hit].0 as u64, frames[hit].1 as u64), "byte {at}");
        assert_eq!(damage[0].tail, hit == frames.len() - 1);

        let store = Db::open_read_only(dir.path()).unwrap();
        let mut left = records.clone();
        if (1..=3).contains(&hit) {
            left.remove(hit - 1);
        }
        assert_eq!(store.records("r").unwrap(), left, "byte {at}");
        let said = store.notices().join("\n");
        let expected = match hit {
            0 => "the beginning of run r is damaged".to_owned(),
            4 => format!("offset {} are damaged", frames[hit].0),
            _ => "1 record of run r is damaged and left out (muster db check)".to_owned(),
        };
        assert!(said.contains(&expected), "byte {at}: {said}");
    }
}

#[test]
fn a_record_that_rotted_after_it_was_indexed_is_left_out_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let records = filled(dir.path(), 5);
    let mut bytes = fs::read(log(dir.path())).unwrap();
    let (at, length) = frames(&bytes)[3];
    bytes[at + length / 2] ^= 1;
    fs::write(log(dir.path()), &bytes).unwrap();
    let store = db(dir.path());
    let left = [&records[..2], &records[3..]].concat();
    assert_eq!(store.records("r").unwrap(), left);
    let said = store.notices().join("\n");
    assert!(said.contains("disk on n0002") && said.contains("1 record of run r is damaged and left out"), "{said}");
    assert_eq!(store.records("r").unwrap(), left, "and the second look costs no more");
    drop(store);
    let store = db(dir.path());
    assert_eq!(store.records("r").unwrap(), left);
    assert_eq!(store.done("r").unwrap().len(), 4, "what is lost is measured again on resume");
    drop(store);
    assert_eq!(db(dir.path()).opened().repairs, Vec::<String>::new(), "told once by opening, always by check");
    assert!(!check(dir.path()).unwrap().sound());

    let report = rebuild(dir.path(), false).unwrap();
    assert!(report.sound() && report.notes.join("\n").contains("moved to"), "{report:?}");
    assert_eq!(fs::read(dir.path().join(format!("damaged/r.log.{at}"))).unwrap(), bytes[at..at + length]);
    let store = Db::open_read_only(dir.path()).unwrap();
    assert_eq!((store.records("r").unwrap(), store.notices()), (left, Vec::<String>::new()));
}

#[test]
fn a_resumed_run_measures_again_what_rotted_unseen() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 5);
    let mut bytes = fs::read(log(dir.path())).unwrap();
    for frame in [2, 3] {
        let (at, length) = frames(&bytes)[frame];
        bytes[at + length - 1] ^= 1;
    }
    fs::write(log(dir.path()), &bytes).unwrap();
    for store in [Db::open_read_only(dir.path()).unwrap(), db(dir.path())] {
        assert_eq!(store.done("r").unwrap().len(), 3);
        assert!(store.notices().join("\n").contains("2 records of run r are damaged and left out (muster db check)"));
    }
}

#[test]
fn a_log_file_that_is_gone_is_told_by_everybody_until_it_is_forgotten() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    filled(dir, 3);
    let incident = muster_store::Incident {
        node: "n1".into(),
        start_ms: 1,
        end_ms: None,
        category: "disk".into(),
        reason: String::new(),
        source: "operator".into(),
        who: "me".into(),
        found_by: None,
    };
    db(dir).record_incidents(&[incident]).unwrap();
    assert!(check(dir).unwrap().sound());
    fs::remove_file(dir.join("incidents.log")).unwrap();
    fs::remove_file(log(dir)).unwrap();
    for _ in 0..2 {
        let reader = Db::open_read_only(dir).unwrap().opened().repairs.join("\n");
        let writer = db(dir).opened().repairs.join("\n");
        for said in [reader, writer] {
            assert!(
                said.contains("incidents.log: the file is gone") && said.contains("r.log: the file is gone"),
                "{said}"
            );
        }
        assert!(!check(dir).unwrap().sound());
        assert!(!rebuild(dir, false).unwrap().sound(), "what is gone cannot be healed");
    }
    assert!(rebuild(dir, true).unwrap().sound());
    assert_eq!(Db::open_read_only(dir).unwrap().opened().repairs, Vec::<String>::new());
}

#[test]
fn a_version_that_rotted_is_told_and_written_anew() {
    let dir = tempfile::tempdir().unwrap();
    let records = filled(dir.path(), 3);
    let whole = fs::read(dir.path().join("version")).unwrap();
    let flipped = (0..whole.len() * 8).map(|bit| {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    });
    for rotten in flipped.chain([Vec::new(), b"3\n".to_vec()]) {
        fs::write(dir.path().join("version"), &rotten).unwrap();
        let reader = Db::open_read_only(dir.path()).unwrap();
        let told = reader.notices().join("\n").contains("is no version number");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        assert_eq!((reader.records("r").unwrap(), told), (records.clone(), text(&rotten) != text(&whole)));
        assert_eq!(Db::open(dir.path(), &Options::default()).is_err(), told, "{rotten:?}");
        assert_eq!(check(dir.path()).unwrap().sound(), !told);
        if told {
            assert!(rebuild(dir.path(), false).unwrap().sound(), "{rotten:?}");
            assert_eq!(fs::read(dir.path().join("version")).unwrap(), whole);
        }
    }
}

#[test]
fn a_header_that_rotted_hides_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let records = filled(dir.path(), 3);
    let mut bytes = fs::read(log(dir.path())).unwrap();
    let whole = bytes.clone();
    for bit in 0..16 * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(log(dir.path()), &bytes).unwrap();
        assert_eq!(Db::open_read_only(dir.path()).unwrap().records("r").unwrap(), records, "bit {bit}");
        assert!(rebuild(dir.path(), false).unwrap().sound());
        assert!(fs::read(log(dir.path())).unwrap() == whole, "bit {bit}");
        bytes.clone_from(&whole);
    }
}

#[test]
fn what_rotted_at_the_beginning_of_a_run_is_told_by_what_is_lost_with_it() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 3);
    let whole = fs::read(log(dir.path())).unwrap();
    let frames = frames(&whole);
    let told = |rotten: &[usize], length: usize| {
        let mut bytes = whole[..length].to_vec();
        rotten.iter().for_each(|at| bytes[*at] ^= 1);
        fs::write(log(dir.path()), &bytes).unwrap();
        // What lies beside the file saves reading it.
        for beside in ["contents", "overview"] {
            fs::remove_file(log(dir.path()).with_extension(beside)).unwrap_or_default();
        }
        let said = Db::open_read_only(dir.path()).unwrap().notices();
        let own = said.into_iter().filter(|said| !said.contains("the file was longer"));
        own.map(|said| said.replace(&dir.path().display().to_string(), "db")).collect::<Vec<String>>()
    };
    let beginning = "the beginning of run r is damaged: its playbook and plan are not known (muster db check)";
    let one = "1 record of run r is damaged and left out (muster db check)";
    let (begin, first) = (frames[0].0 + 20, frames[1].0 + 20);
    let header = "db/runs/r.log: 16 bytes at offset 0 are damaged: its header is not that of a muster log (what follows is readable)";
    assert_eq!(told(&[3], whole.len()), [header]);
    assert_eq!(told(&[begin], whole.len())[0], beginning);
    assert_eq!(told(&[begin], whole.len()).len(), 2, "{:?}", told(&[begin], whole.len()));
    assert_eq!(told(&[3, begin], whole.len())[0], beginning);
    assert_eq!(told(&[first], whole.len()), [one]);
    assert_eq!(told(&[begin, first], whole.len()), [beginning, one]);
    let alone = told(&[begin], frames[1].0);
    assert_eq!(alone.len(), 1, "{alone:?}");
    assert!(alone[0].contains("nothing whole follows"), "a run that had only begun: {alone:?}");
}

#[test]
fn what_a_writer_is_in_the_middle_of_is_no_damage_and_everything_else_is() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 3);
    let whole = fs::read(log(dir.path())).unwrap();
    let mut rotten = whole.clone();
    rotten[frames(&whole)[2].0 + 20] ^= 1;
    let unfinished = [&whole[..], &[7; 5]].concat();
    let told = |bytes: &[u8]| {
        fs::write(log(dir.path()), bytes).unwrap();
        let report = check(dir.path()).unwrap();
        let notices = Db::open_read_only(dir.path()).unwrap().notices();
        (report.files[0].damage.len(), notices.len(), report.notes)
    };
    assert_eq!((told(&whole), told(&unfinished).0, told(&rotten).0), ((0, 0, vec![]), 1, 1));
    assert_eq!(told(&unfinished).1, 1, "nobody writes: a crash left it");
    fs::write(log(dir.path()), &whole).unwrap();
    let writer = db(dir.path());
    let notes = vec![format!("the index was not compared: process {} is writing", std::process::id())];
    assert_eq!((told(&whole), told(&unfinished)), ((0, 0, notes.clone()), (0, 0, notes.clone())));
    assert_eq!(told(&rotten).0, 1);
    drop(writer);
}

#[test]
fn a_writer_that_has_no_index_reads_the_log_files_whatever_lies_beside_them() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 3);
    let mut bytes = fs::read(log(dir.path())).unwrap();
    let (at, length) = frames(&bytes)[2];
    bytes[at + length - 1] ^= 1;
    fs::write(log(dir.path()), bytes).unwrap();
    fs::remove_dir_all(dir.path().join("index")).unwrap();
    let store = db(dir.path());
    assert_eq!(store.opened().repairs, ["1 record of run r is damaged and left out (muster db check)"]);
    assert_eq!(store.records("r").unwrap().len(), 2);
}

#[test]
fn criteria_that_were_cut_off_are_told_and_no_longer_listed_and_new_ones_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("criteria/criteria.log");
    let mut store = db(dir.path());
    store.put(Table::Criteria, "a", b"first").unwrap();
    let short = fs::read(&path).unwrap();
    store.put(Table::Criteria, "b", b"second").unwrap();
    let reader = Db::open_read_only(dir.path()).unwrap();
    drop(store);
    let keys = |store: &Db| store.list(Table::Criteria).unwrap().into_iter().map(|seen| seen.key).collect::<Vec<_>>();
    assert_eq!(keys(&reader), ["a", "b"]);
    fs::write(&path, &short).unwrap();
    assert_eq!(keys(&reader), ["a"]);
    assert!(reader.notices().join("\n").contains("criteria.log is shorter than it was: read again from its beginning"));
    let mut store = db(dir.path());
    assert_eq!(keys(&store), ["a"]);
    store.put(Table::Criteria, "c", b"third").unwrap();
    assert_eq!(
        (keys(&store), store.get(Table::Criteria, "c").unwrap()),
        (vec!["a".into(), "c".into()], Some(b"third".to_vec()))
    );
}

#[test]
fn a_run_whose_beginning_rotted_still_shows_its_records() {
    let dir = tempfile::tempdir().unwrap();
    let records = filled(dir.path(), 3);
    let mut bytes = fs::read(log(dir.path())).unwrap();
    bytes[30] ^= 1;
    fs::write(log(dir.path()), &bytes).unwrap();
    rebuild(dir.path(), false).unwrap();
    let store = db(dir.path());
    let shown = store.run("r").unwrap().unwrap();
    assert_eq!((shown.playbook.as_str(), shown.nodes.len(), shown.state), ("", 3, RunState::Finished));
    assert_eq!(store.records("r").unwrap(), records);
}

#[test]
fn an_emptied_snapshot_is_moved_away_and_the_index_opens_again() {
    let dir = tempfile::tempdir().unwrap();
    let records = filled(dir.path(), 400);
    let mut emptied = 0;
    for (path, _) in index_image(dir.path()) {
        if path.file_name().unwrap().to_str().unwrap().starts_with("snap.") {
            fs::write(path, b"").unwrap();
            emptied += 1;
        }
    }
    assert!(emptied > 0, "sled leaves a snapshot behind");
    let store = db(dir.path());
    let said = store.opened().repairs.join("\n");
    assert!(said.contains("snapshot files moved to damaged/"), "{said}");
    assert_eq!(store.records("r").unwrap(), records);
    drop(store);
    assert!(check(dir.path()).unwrap().sound());
}

#[test]
fn an_index_cut_anywhere_or_overwritten_never_loses_a_record() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    let records = filled(dir, 1_000);
    let image = index_image(dir);
    let mut told = 0;
    for round in 0..16 {
        fs::remove_dir_all(dir.join("index")).unwrap();
        fs::create_dir(dir.join("index")).unwrap();
        for (path, bytes) in &image {
            let mut bytes = bytes.clone();
            if path.ends_with("db") {
                damage(&mut bytes, round);
            }
            fs::write(path, bytes).unwrap();
        }
        for look in ["first", "second"] {
            let store = db(dir);
            assert_eq!(store.records("r").unwrap(), records, "round {round}, {look} look");
            assert_eq!(store.nodes().unwrap().len(), records.len(), "round {round}, {look} look");
            assert_eq!(store.get(Table::Criteria, "disk").unwrap().unwrap(), b"sample", "round {round}, {look} look");
            told += store.notices().len();
        }
    }
    assert!(told > 0, "some of this was damage that sled could not mend");
}

/// Even rounds cut the file, odd ones overwrite some of it, ever further back.
fn damage(bytes: &mut Vec<u8>, round: usize) {
    let used = bytes.iter().rposition(|&b| b != 0).unwrap();
    let at = used * (round / 2) / 8;
    if round.is_multiple_of(2) {
        bytes.truncate(at);
    } else {
        bytes.iter_mut().skip(at).take(2_000).for_each(|b| *b ^= 0xa5);
    }
}

#[test]
fn an_index_that_is_gone_or_is_not_one_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let records = filled(dir.path(), 20);
    fs::remove_dir_all(dir.path().join("index")).unwrap();
    assert!(!check(dir.path()).unwrap().index.is_empty());
    assert_eq!(db(dir.path()).records("r").unwrap(), records);
    fs::remove_dir_all(dir.path().join("index")).unwrap();
    fs::write(dir.path().join("index"), b"not a folder").unwrap();
    let store = db(dir.path());
    assert!(store.opened().repairs.join("\n").contains("made anew"), "{:?}", store.opened());
    assert_eq!(store.records("r").unwrap(), records);
    drop(store);
    assert!(check(dir.path()).unwrap().sound());
}

#[test]
fn rebuild_makes_an_index_that_agrees() {
    let dir = tempfile::tempdir().unwrap();
    let records = filled(dir.path(), 50);
    fs::write(dir.path().join("index/db"), b"rubbish").unwrap();
    let report = rebuild(dir.path(), false).unwrap();
    assert!(report.sound(), "{report:?}");
    assert_eq!((report.files[0].records, report.files[0].frames), (50, 52));
    assert_eq!(db(dir.path()).records("r").unwrap(), records);
}

#[test]
fn an_index_of_another_history_is_seen_by_check_and_healed_by_opening() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let records = filled(one.path(), 10);
    filled(two.path(), 30);
    fs::copy(log(one.path()), log(two.path())).unwrap();
    assert!(!check(two.path()).unwrap().index.is_empty());
    let store = db(two.path());
    assert_eq!(store.records("r").unwrap(), records);
    assert_eq!(store.nodes().unwrap().len(), 10);
    assert!(store.opened().repairs.join("\n").contains("r.log: the file was longer"));
    drop(store);
    assert!(check(two.path()).unwrap().index.is_empty());
    assert!(rebuild(two.path(), false).unwrap().sound());
}

#[test]
fn a_run_file_that_was_removed_is_no_longer_listed() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 3);
    fs::remove_file(log(dir.path())).unwrap();
    let store = db(dir.path());
    assert!(store.opened().repairs.join("\n").contains("run r is gone"));
    assert!(store.runs().unwrap().is_empty() && store.nodes().unwrap().is_empty());
}

#[test]
fn a_newer_database_or_run_file_is_refused_in_words_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 3);
    let mut bytes = fs::read(log(dir.path())).unwrap();
    bytes[12..16].copy_from_slice(&(9 | (!9_u32 & 0xffff) << 16).to_le_bytes());
    fs::write(dir.path().join("runs/new.log"), &bytes).unwrap();
    let mut store = db(dir.path());
    assert!(store.opened().repairs.join("\n").contains("new.log was written by a newer muster (format 9)"));
    assert_eq!(store.runs().unwrap().len(), 1);
    assert!(store.begin(&run("new", 1)).unwrap_err().to_string().contains("not overwritten"));
    drop(store);
    assert_eq!(fs::read(dir.path().join("runs/new.log")).unwrap(), bytes);

    fs::write(dir.path().join("version"), "2 1ad5be0d\n").unwrap();
    for said in [
        Db::open(dir.path(), &Options::default()).unwrap_err(),
        Db::open_read_only(dir.path()).unwrap_err(),
        check(dir.path()).unwrap_err(),
        rebuild(dir.path(), false).unwrap_err(),
    ] {
        assert!(matches!(said, StoreError::Newer { found: 2, known: 1, .. }), "{said}");
    }
}
