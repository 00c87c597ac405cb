//! By how much is the wall clock that a process writes into its log ahead of UTC?

use std::path::{Component, Path, PathBuf};

use muster_wire::Reading;
use tz::{TimeZone, TimeZoneSettings};

use super::files::PATIENCE;
use super::find::Found;
use super::open::{Owner, regular, whole, within};
use super::process::inside;
use crate::collect::{Root, Then as _};

/// Where a machine says which zone it is in.
const LOCAL: &str = "/etc/localtime";
/// Largest file of a time zone, and most links on the way to it.
const FILE: u64 = 64 << 10;
const LINKS: usize = 8;

/// Seconds east of Greenwich at `now_s`, as the process reckons: by its variable `TZ`, or else the file of the machine that it sees.
/// Denied where its environment is: `TZ` may be in it.
pub(super) fn offset(root: &Root, found: &Found, now_s: f64) -> Reading<i32> {
    let Some(words) = &found.environment else { return Reading::Denied };
    let word = words.get("TZ").map(|word| word.trim_start_matches(':'));
    let zone = match word {
        None => file(root, found.pid, LOCAL),
        Some(name) => named(root, found.pid, name),
    };
    zone.and_then(|zone| match zone.find_local_time_type(now_s as i64) {
        Ok(kind) => Reading::Value(kind.ut_offset()),
        Err(why) => Reading::Failed(why.to_string()),
    })
}

/// A zone by what `TZ` says: a name, a path, or a rule such as `CET-1CEST`.
fn named(root: &Root, pid: u32, name: &str) -> Reading<TimeZone> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_+-".contains(c);
    if name.is_empty() {
        return Reading::Value(TimeZone::utc());
    }
    if name.chars().all(plain) && !name.contains("..") {
        let path = if name.starts_with('/') { name.to_owned() } else { format!("/usr/share/zoneinfo/{name}") };
        match file(root, pid, &path) {
            Reading::Absent => {}
            known => return known,
        }
    }
    // A rule; the file of that name has been looked for.
    match TimeZoneSettings::new(&[], |_| Err("not looked for".into())).parse_posix_tz(name) {
        Ok(zone) => Reading::Value(zone),
        Err(why) => Reading::Failed(format!("TZ: {why}")),
    }
}

/// A zone from a file; without one, the C library counts in UTC.
fn file(root: &Root, pid: u32, path: &str) -> Reading<TimeZone> {
    let (root, way) = (root.clone(), path.to_owned());
    let read = within(PATIENCE, move || {
        let path = followed(&root, pid, &way);
        let (file, metadata) = regular(&path, &Owner::Named)?;
        whole(file, metadata.len(), FILE)
    });
    match crate::collect::reading(read.unwrap_or_else(|| Err(std::io::ErrorKind::TimedOut.into()))) {
        Reading::Value(bytes) => match TimeZone::from_tz_data(&bytes) {
            Ok(zone) => Reading::Value(zone),
            Err(why) => Reading::Failed(why.to_string()),
        },
        Reading::Absent if path == LOCAL => Reading::Value(TimeZone::utc()),
        Reading::Absent => Reading::Absent,
        Reading::Denied => Reading::Denied,
        Reading::Failed(why) => Reading::Failed(why),
    }
}

/// Where a path of the process ends: links are followed in what it sees, which may be a container.
fn followed(root: &Root, pid: u32, path: &str) -> PathBuf {
    let mut path = PathBuf::from(path);
    for _ in 0..LINKS {
        let Ok(target) = std::fs::read_link(inside(root, pid, &path.to_string_lossy())) else { break };
        let from = path.parent().unwrap_or(Path::new("/")).join(target);
        path = PathBuf::from("/");
        for part in from.components() {
            match part {
                Component::Normal(name) => path.push(name),
                Component::ParentDir => drop(path.pop()),
                _ => {}
            }
        }
    }
    inside(root, pid, &path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::words::Place;
    use super::*;

    /// A zone of fixed offset without a name of the system: version 1 of RFC 8536, one type.
    fn fixed(seconds: i32) -> Vec<u8> {
        let mut bytes = b"TZif".to_vec();
        bytes.extend([0; 16]);
        for count in [0_u32, 0, 0, 0, 1, 4] {
            bytes.extend(count.to_be_bytes());
        }
        bytes.extend(seconds.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(b"XST\0");
        bytes
    }

    fn offset_of(tree: &Path, environment: Option<&[(&str, &str)]>) -> Reading<i32> {
        let environment = environment.map(|words| {
            words.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
        });
        let first = crate::watch::job::parse("7 (x) S 1 1 7 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 77 9 5").unwrap();
        let found = Found { pid: 7, first, arguments: Vec::new(), environment, place: Place::default() };
        // 2026-07-01, when summer time holds in the north.
        offset(&Root::at(tree), &found, 1_782_864_000.0)
    }

    #[test]
    fn the_clock_of_a_process_is_that_of_its_variable_or_of_its_machine() {
        let tree = tempfile::tempdir().unwrap();
        let zones = tree.path().join("proc/7/root/usr/share/zoneinfo/Test");
        std::fs::create_dir_all(&zones).unwrap();
        std::fs::create_dir_all(tree.path().join("proc/7/root/etc")).unwrap();
        let of = |words: &[(&str, &str)]| offset_of(tree.path(), Some(words));
        assert_eq!(of(&[]), Reading::Value(0), "no file is UTC");
        std::fs::write(zones.join("East"), fixed(19_800)).unwrap();
        std::os::unix::fs::symlink("/usr/share/zoneinfo/Test/East", tree.path().join("proc/7/root/etc/localtime"))
            .unwrap();
        assert_eq!(of(&[]), Reading::Value(19_800), "the link leads on in what the process sees");
        assert_eq!(of(&[("TZ", "Test/East")]), Reading::Value(19_800));
        assert_eq!(of(&[("TZ", "")]), Reading::Value(0));
        assert_eq!(of(&[("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")]), Reading::Value(7_200));
        assert!(matches!(of(&[("TZ", "../../../etc/shadow")]), Reading::Failed(_)));
        assert_eq!(offset_of(tree.path(), None), Reading::Denied);
        std::fs::write(zones.join("East"), "TZif and nothing").unwrap();
        assert!(matches!(of(&[]), Reading::Failed(_)));
    }
}
