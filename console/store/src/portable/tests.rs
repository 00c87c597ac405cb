//! What is written is read back, and whatever happens to the bytes is told.

use std::path::Path;

use proptest::prelude::*;

use super::*;

fn packed(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let sources = parts
        .iter()
        .map(|(name, part)| Source { name: (*name).to_owned(), bytes: part.len() as u64, from: Box::new(*part) })
        .collect();
    write(&mut bytes, (Kind::Run, "r1"), ("1.2.3", 7), sources).unwrap();
    bytes
}

/// The head and the parts, read from `bytes`.
fn unpacked(bytes: &[u8]) -> Result<(Head, Vec<Vec<u8>>), PortableError> {
    let dir = tempfile::tempdir().unwrap();
    let head = Portable::of(Path::new("f.replay"), bytes, bytes.len() as u64)?.unpack(dir.path())?;
    let parts = head.parts.iter().map(|part| fs::read(dir.path().join(&part.name)).unwrap()).collect();
    Ok((head, parts))
}

#[test]
fn what_is_written_is_read_back_and_says_what_it_is() {
    let long: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
    let bytes = packed(&[("run.log", &long), ("about.json", b"{}"), ("none", b"")]);
    let (head, parts) = unpacked(&bytes).unwrap();
    assert_eq!((head.kind, head.name.as_str(), head.writer.as_str(), head.written_ms), (Kind::Run, "r1", "1.2.3", 7));
    assert_eq!(parts, [long, b"{}".to_vec(), Vec::new()]);
}

#[test]
fn every_fault_is_told_with_the_file_and_its_place() {
    let long: Vec<u8> = vec![7; 100_000];
    let bytes = packed(&[("a", &long), ("b", b"xyz")]);
    let said = |bytes: &[u8]| unpacked(bytes).unwrap_err().to_string();
    assert_eq!(said(b"muster"), "f.replay: not a muster replay file");
    assert_eq!(said(&[b'x'; 100]), "f.replay: not a muster replay file");
    let mut newer = bytes.clone();
    newer[12] = 9;
    assert_eq!(said(&newer), "f.replay: written by a newer muster (format 9; this one knows up to 1)");
    let cut = bytes.len() - 5;
    assert_eq!(said(&bytes[..cut]), format!("f.replay: cut off at byte {cut}: 5 bytes are missing"));
    assert_eq!(said(&bytes[..18]), "f.replay: cut off at byte 18: a frame has no end");
    let mut rotten = bytes.clone();
    let last = rotten.len() - 1;
    rotten[last] ^= 1;
    let at = bytes.len() - 11;
    assert_eq!(said(&rotten), format!("f.replay: damaged at byte {at}: the checksum of the next 3 bytes is wrong"));
    let longer = [&bytes[..], b"!"].concat();
    assert_eq!(said(&longer), format!("f.replay: damaged at byte {}: something follows the last part", bytes.len()));
}

#[test]
fn a_part_that_becomes_shorter_while_it_is_read_is_told() {
    let source = Source { name: "run.log".to_owned(), bytes: 10, from: Box::new(&b"short"[..]) };
    let error = write(&mut Vec::new(), (Kind::Run, "r1"), ("1.2.3", 7), vec![source]).unwrap_err();
    assert_eq!(error.to_string(), "run.log became shorter while it was read");
}

#[test]
fn a_flipped_bit_anywhere_is_told() {
    let bytes = packed(&[("run.log", b"what a node said"), ("about.json", b"{\"run\": 1}")]);
    for bit in 0..bytes.len() * 8 {
        let mut rotten = bytes.clone();
        rotten[bit / 8] ^= 1 << (bit % 8);
        assert!(unpacked(&rotten).is_err(), "bit {bit}");
    }
    for end in 0..bytes.len() {
        assert!(unpacked(&bytes[..end]).is_err(), "{end} bytes");
    }
}

#[test]
fn a_part_cannot_be_written_outside_the_folder_nor_over_another() {
    for name in ["../x", "/etc/x", "", ".x", "a/b"] {
        let why = unpacked(&packed(&[(name, b"x")])).unwrap_err().to_string();
        assert!(why.contains("a part has a name that may name no file"), "{name}: {why}");
    }
    assert!(unpacked(&packed(&[("a", b"x"), ("a", b"y")])).is_err());
    assert!(unpacked(&packed(&[])).is_err());
}

#[test]
fn a_file_that_promises_more_than_it_has_takes_no_memory() {
    let mut bytes = Vec::new();
    let head = Head {
        kind: Kind::Run,
        name: "r".to_owned(),
        writer: "1".to_owned(),
        written_ms: 1,
        parts: vec![
            Part { name: "a".to_owned(), bytes: u64::MAX / 2 },
            Part { name: "b".to_owned(), bytes: u64::MAX / 2 },
        ],
    };
    ciborium::into_writer(&head, &mut bytes).unwrap();
    let crc = checksum((0, 0), &bytes);
    let frame = [&MAGIC[..], &FORMAT.to_le_bytes(), &(bytes.len() as u32).to_le_bytes(), &crc.to_le_bytes(), &bytes];
    let why = unpacked(&frame.concat()).unwrap_err().to_string();
    assert!(why.contains("longer than any file") || why.contains("are missing"), "{why}");
}

/// A file with this head and these frames behind it, each with its part, its number and its bytes.
fn made(head: &Head, frames: &[(u32, u64, &[u8])]) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &FORMAT.to_le_bytes()].concat();
    let mut add = |place: (u32, u64), frame: &[u8]| {
        bytes.extend((frame.len() as u32).to_le_bytes());
        bytes.extend(checksum(place, frame).to_le_bytes());
        bytes.extend(frame);
    };
    let mut told = Vec::new();
    ciborium::into_writer(head, &mut told).unwrap();
    add((0, 0), &told);
    frames.iter().for_each(|(part, nr, frame)| add((*part, *nr), frame));
    bytes
}

fn head(parts: &[(&str, u64)]) -> Head {
    let part = |(name, bytes): &(&str, u64)| Part { name: (*name).to_owned(), bytes: *bytes };
    let parts = parts.iter().map(part).collect();
    Head { kind: Kind::Case, name: "job-4711".to_owned(), writer: "1".to_owned(), written_ms: 1, parts }
}

#[test]
fn what_a_head_says_is_believed_within_bounds() {
    let said = |head: &Head| unpacked(&made(head, &[])).map(|(head, _)| head).map_err(|e| e.to_string());
    let with = |change: &dyn Fn(&mut Head)| {
        let mut head = head(&[("a", 0)]);
        change(&mut head);
        said(&head).map(drop)
    };
    assert_eq!(with(&|_| ()), Ok(()));
    assert_eq!(with(&|head| head.name = "n".repeat(TEXT)), Ok(()));
    assert_eq!(with(&|head| head.writer = "w".repeat(TEXT)), Ok(()));
    let no_name = Err("f.replay: damaged at byte 16: the head names what it holds by no name".to_owned());
    assert_eq!(with(&|head| head.name = "n".repeat(TEXT + 1)), no_name);
    assert_eq!(with(&|head| head.writer = "w".repeat(TEXT + 1)), no_name);
    assert_eq!(with(&|head| head.name = "a\u{1b}b".to_owned()), no_name);
    assert_eq!(with(&|head| head.writer = "a\nb".to_owned()), no_name);
    let parts =
        |count: usize| -> Vec<Part> { (0..count).map(|nr| Part { name: format!("p{nr}"), bytes: 0 }).collect() };
    let no_parts = Err("f.replay: damaged at byte 16: the head lists too few or too many parts".to_owned());
    assert_eq!(with(&|head| head.parts = parts(PARTS)), Ok(()));
    assert_eq!(with(&|head| head.parts = parts(PARTS + 1)), no_parts);
    assert_eq!(with(&|head| head.parts = parts(0)), no_parts);
}

#[test]
fn a_part_is_made_of_full_frames_and_one_that_holds_the_rest() {
    let whole = vec![5; CHUNK];
    let of = |frames: &[(u32, u64, &[u8])]| {
        let bytes: u64 = frames.iter().map(|frame| frame.2.len() as u64).sum();
        unpacked(&made(&head(&[("a", bytes)]), frames)).map(|(_, parts)| parts[0].len()).map_err(|e| e.to_string())
    };
    assert_eq!(of(&[(1, 0, &whole), (1, 1, b"rest")]), Ok(CHUNK + 4));
    assert_eq!(of(&[(1, 0, &whole), (1, 1, &whole)]), Ok(2 * CHUNK));
    let why = of(&[(1, 0, b"rest"), (1, 1, &whole)]).unwrap_err();
    assert!(why.ends_with("a frame is shorter than its part"), "{why}");
    let why = of(&[(1, 0, &[&whole[..], b"!"].concat()), (1, 1, b"x")]).unwrap_err();
    assert!(why.ends_with("a frame is longer than its part"), "{why}");
    for frames in [[(1, 1, &whole[..]), (1, 0, b"rest")], [(2, 0, &whole[..]), (1, 1, b"rest")]] {
        let why = of(&frames).unwrap_err();
        assert!(why.ends_with("the checksum of the next 65536 bytes is wrong"), "{why}");
    }
}

#[test]
fn a_format_of_nought_and_a_file_that_shrinks_while_it_is_read_are_told() {
    let bytes = packed(&[("a", b"xyz")]);
    let mut nought = bytes.clone();
    nought[12] = 0;
    assert_eq!(unpacked(&nought).unwrap_err().to_string(), "f.replay: damaged at byte 12: its format is 0");
    let length = bytes.len() as u64;
    let why = Portable::of(Path::new("f.replay"), &bytes[..20], length).map(drop).unwrap_err().to_string();
    assert_eq!(why, format!("f.replay: cut off at byte {length}: it became shorter while it was read"));
    assert_eq!(unpacked(&bytes[..16]).unwrap_err().to_string(), "f.replay: cut off at byte 16: a frame has no end");
    assert_eq!(unpacked(&bytes[..15]).unwrap_err().to_string(), "f.replay: not a muster replay file");
}

#[test]
fn as_many_parts_are_written_as_are_read() {
    let source = |nr: usize| Source { name: format!("p{nr}"), bytes: 1, from: Box::new(&b"x"[..]) };
    let written = |count: usize| {
        let mut bytes = Vec::new();
        write(&mut bytes, (Kind::Watch, "w"), ("1", 7), (0..count).map(source).collect()).map(|()| bytes)
    };
    assert_eq!(unpacked(&written(PARTS).unwrap()).unwrap().1.len(), PARTS);
    let why = written(PARTS + 1).unwrap_err().to_string();
    assert_eq!(why, "17 parts are more than the 16 that a replay file may have");
}

#[test]
fn a_replay_file_is_known_by_its_beginning_and_opened_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.replay");
    fs::write(&path, packed(&[("run.log", b"frames")])).unwrap();
    assert!(is_portable(&path));
    assert_eq!(Portable::open(&path).unwrap().head().parts[0].name, "run.log");
    for other in [&b"MUSTERRPL\r\n"[..], b"MUSTERLOG\r\n\0 and more", b""] {
        fs::write(&path, other).unwrap();
        assert!(!is_portable(&path), "{other:?}");
    }
    assert!(!is_portable(dir.path()) && !is_portable(&dir.path().join("gone")));
    let why = Portable::open(&dir.path().join("gone")).map(drop).unwrap_err().to_string();
    assert!(why.contains("gone: cannot read: "), "{why}");
    assert_eq!([Kind::Run, Kind::Watch, Kind::Case].map(Kind::word), ["run", "watch recording", "triage case"]);
}

#[test]
fn an_unpacked_part_names_machines_and_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, bytes) = (tempfile::tempdir().unwrap(), packed(&[("a", b"x")]));
    let unpack = || Portable::of(Path::new("f"), &bytes[..], bytes.len() as u64).unwrap().unpack(dir.path());
    unpack().unwrap();
    assert_eq!(fs::metadata(dir.path().join("a")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(unpack().unwrap_err().to_string().contains("cannot unpack into"), "what is there is not written over");
}

#[test]
fn a_run_is_taken_in_under_a_name_that_may_be_one() {
    let dir = tempfile::tempdir().unwrap();
    let (db, file) = (dir.path().join("db"), dir.path().join("unpacked"));
    fs::create_dir_all(db.join("runs")).unwrap();
    fs::write(&file, b"frames").unwrap();
    assert!(matches!(take_in(&db, "../r", &file), Err(StoreError::BadName { .. })));
    take_in(&db, "r1", &file).unwrap();
    assert_eq!(file_of(&db, "r1"), db.join("runs/r1.log"));
    assert_eq!((fs::read(file_of(&db, "r1")).unwrap(), file.exists()), (b"frames".to_vec(), false));
    assert!(take_in(&db, "r2", &file).unwrap_err().to_string().contains("cannot create"));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), magic in any::<bool>()) {
        let bytes = if magic { [&MAGIC[..], &FORMAT.to_le_bytes(), &bytes].concat() } else { bytes };
        prop_assert!(unpacked(&bytes).is_err());
    }

    #[test]
    fn parts_of_any_content_come_back_and_damage_of_any_byte_is_told(
        parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 1..5),
        at in any::<proptest::sample::Index>(),
        by in 1_u8..,
    ) {
        let names = ["a", "b", "c", "d"];
        let named: Vec<(&str, &[u8])> = names.iter().copied().zip(parts.iter().map(Vec::as_slice)).collect();
        let bytes = packed(&named);
        prop_assert_eq!(&unpacked(&bytes).unwrap().1, &parts);
        let mut rotten = bytes.clone();
        rotten[at.index(bytes.len())] ^= by;
        prop_assert!(unpacked(&rotten).is_err());
    }
}
