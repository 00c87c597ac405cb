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
