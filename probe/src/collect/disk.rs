//! Which disks there are, and how much room is on what is mounted.

use std::collections::HashSet;

use muster_wire::{Reading, Unit};
use rustix::fs::statvfs;

use super::root::reading;
use super::{Facts, Root, Then};

const BLOCK: &str = "/sys/block";
/// Block devices that are memory or files, not disks.
const NOT_DISKS: [&str; 5] = ["loop", "ram", "zram", "nbd", "fd"];
/// File systems that answer from this machine. Asking any other how full it is can hang for ever.
const LOCAL: [&str; 14] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "bcachefs", "vfat", "exfat", "erofs", "overlay",
    "tmpfs",
];
/// Of these only the places where work is put; the others are the system's own.
const MEMORY: [&str; 2] = ["overlay", "tmpfs"];
const PLACES: [&str; 6] = ["/", "/tmp", "/var/tmp", "/dev/shm", "/home", "/run"];
/// File systems of other machines, listed and not asked.
const REMOTE: [&str; 10] =
    ["nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "glusterfs", "gpfs", "beegfs", "fuse.sshfs"];
const SECTOR: f64 = 512.0;
const MOUNTS: usize = 128;
/// Longer paths are those of containers, and do not fit in a key.
const PATH: usize = 72;

pub(super) fn look(root: &Root, facts: &mut Facts) {
    match root.names(BLOCK) {
        Reading::Value(names) => {
            let disks = names.iter().filter(|name| !NOT_DISKS.iter().any(|kind| is_numbered(name, kind)));
            disks.for_each(|name| device(root, name, facts));
        }
        other => facts.count("devices", other.map(|_| 0.0)),
    }
    match root.text("/proc/self/mounts") {
        Reading::Value(text) => mounts(root, &text, facts),
        other => facts.text("mounts", other),
    }
    let drives = root.numbered("/sys/class/nvme", "nvme").len();
    facts.count("nvme", if drives == 0 { Reading::Absent } else { Reading::Value(drives as f64) });
    if let Reading::Value(table) = root.text("/etc/fstab") {
        let mounted = root.text("/proc/self/mounts").value().map_or_else(HashSet::new, |text| mount_points(text));
        fstab(&table, &mounted, facts);
    }
}

fn mount_points(text: &str) -> HashSet<String> {
    text.lines().filter_map(|line| line.split_whitespace().nth(1)).map(unescape).collect()
}

/// What is to be mounted at boot, and whether it is.
fn fstab(table: &str, mounted: &HashSet<String>, facts: &mut Facts) {
    let mut seen = HashSet::new();
    for line in table.lines().filter(|line| !line.trim_start().starts_with('#')).take(MOUNTS) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, path, kind, rest @ ..] = &words[..] else { continue };
        let options = rest.first().copied().unwrap_or("defaults");
        let asked = options.split(',').any(|option| matches!(option, "noauto" | "x-systemd.automount"));
        let path = unescape(path);
        if asked || !path.starts_with('/') || *kind == "swap" || path.len() > PATH || !seen.insert(path.clone()) {
            continue;
        }
        facts.flag(&format!("fstab.{path}.mounted"), Reading::Value(mounted.contains(&path)));
        facts.text(&format!("fstab.{path}.options"), Reading::Value(options));
    }
}

fn device(root: &Root, name: &str, facts: &mut Facts) {
    let at = |file: &str| format!("{BLOCK}/{name}/{file}");
    let key = |fact: &str| format!("device.{name}.{fact}");
    facts.text(&key("model"), root.text(&at("device/model")));
    facts.text(&key("firmware"), root.text(&at("device/firmware_rev")));
    facts.text(&key("serial"), root.text(&at("device/serial")));
    facts.text(&key("state"), root.text(&at("device/state")));
    facts.number(&key("size"), root.number(&at("size")).map(|sectors| sectors * SECTOR), Some(Unit::Bytes));
    facts.flag(&key("rotational"), root.flag(&at("queue/rotational")));
    facts.flag(&key("read_only"), root.flag(&at("ro")));
    facts.text(&key("scheduler"), root.text(&at("queue/scheduler")));
    if root.path(&at("md")).is_dir() {
        facts.count(&key("md.degraded"), root.counted(&at("md/degraded")));
        facts.text(&key("md.state"), root.text(&at("md/array_state")));
    }
}

fn mounts(root: &Root, text: &str, facts: &mut Facts) {
    let mut seen = HashSet::new();
    let mut skipped = 0_u32;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [source, path, kind, options, ..] = words[..] else { continue };
        let path = unescape(path);
        let memory = MEMORY.contains(&kind) && !PLACES.contains(&path.as_str());
        if memory || !(LOCAL.contains(&kind) || REMOTE.contains(&kind)) {
            continue;
        }
        // The same file system again is a bind mount; tmpfs and overlay share their source's name.
        let known = !MEMORY.contains(&kind) && seen.contains(source) || seen.contains(path.as_str());
        if known || path.len() > PATH || seen.len() >= 2 * MOUNTS {
            skipped += 1;
            continue;
        }
        seen.extend([source.to_owned(), path.clone()]);
        let key = |fact: &str| format!("mount.{path}.{fact}");
        facts.text(&key("source"), Reading::Value(unescape(source)));
        facts.text(&key("type"), Reading::Value(kind));
        facts.text(&key("options"), Reading::Value(options));
        if LOCAL.contains(&kind) {
            room(root, &path, &key, facts);
        }
    }
    facts.count("mounts.skipped", Reading::Value(f64::from(skipped)));
}

fn room(root: &Root, path: &str, key: &dyn Fn(&str) -> String, facts: &mut Facts) {
    let asked = reading(statvfs(root.path(path)).map_err(std::io::Error::from));
    let bytes = |count: fn(&rustix::fs::StatVfs) -> u64| {
        asked.as_ref_reading().map(|stat| count(stat) as f64 * stat.f_frsize as f64)
    };
    facts.number(&key("size"), bytes(|stat| stat.f_blocks), Some(Unit::Bytes));
    facts.number(&key("free"), bytes(|stat| stat.f_bavail), Some(Unit::Bytes));
    facts.count(&key("inodes"), asked.as_ref_reading().map(|stat| stat.f_files as f64));
    facts.count(&key("inodes_free"), asked.as_ref_reading().map(|stat| stat.f_favail as f64));
}

/// Spaces and the like are written as octal: `\040`.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 4).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let (shown, length) = code.filter(u8::is_ascii).map_or(('\\', 1), |code| (char::from(code), 4));
        out.push(shown);
        rest = &rest[at + length..];
    }
    out + rest
}

fn is_numbered(name: &str, kind: &str) -> bool {
    name.strip_prefix(kind).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use muster_wire::Datum;

    use super::super::testing::{Tree, number, reading_of, text};
    use super::*;

    #[test]
    fn disks_and_mounts_are_read_and_remote_ones_are_not_asked() {
        let tree = Tree::new(&[
            ("/sys/block/nvme0n1/device/model", "Samsung PM9A3  \n"),
            ("/sys/block/nvme0n1/size", "2000\n"),
            ("/sys/block/nvme0n1/queue/rotational", "0\n"),
            ("/sys/block/loop0/size", "8\n"),
            (
                "/proc/self/mounts",
                "/dev/nvme0n1p1 / ext4 rw,noatime 0 0\nproc /proc proc rw 0 0\n/dev/nvme0n1p1 /bind ext4 rw 0 0\n\
                 nas:/home /home\\040of nfs4 rw 0 0\n/dev/sdb1 /gone xfs ro 0 0\ntmpfs /run/user/0 tmpfs rw 0 0\nbroken\n",
            ),
        ]);
        let facts = tree.look(look);
        assert_eq!(text(&facts, "device.nvme0n1.model"), "Samsung PM9A3");
        assert_eq!(number(&facts, "device.nvme0n1.size"), 1_024_000.0);
        assert_eq!(reading_of(&facts, "device.nvme0n1.rotational"), Reading::Value(Datum::Flag(false)));
        assert_eq!(reading_of(&facts, "device.nvme0n1.read_only"), Reading::Absent);
        assert!(number(&facts, "mount./.size") >= number(&facts, "mount./.free"));
        assert_eq!(text(&facts, "mount./.options"), "rw,noatime");
        assert_eq!(text(&facts, "mount./home of.type"), "nfs4");
        assert!(!facts.iter().any(|fact| fact.key == "mount./home of.size"));
        assert_eq!(reading_of(&facts, "mount./gone.free"), Reading::Absent);
        assert_eq!(number(&facts, "mounts.skipped"), 1.0);
        assert!(!facts.iter().any(|fact| fact.key.contains("loop0") || fact.key.contains("/run/user")));
    }

    #[test]
    fn what_should_be_mounted_and_is_not_is_told() {
        let tree = Tree::new(&[
            ("/proc/self/mounts", "/dev/sda1 / ext4 rw 0 0\n"),
            (
                "/etc/fstab",
                "# comment\nUUID=1 / ext4 defaults 0 1\nnas:/data /data\\040set nfs4 rw 0 0\nUUID=2 none swap sw 0 0\n\
                 UUID=3 /backup xfs noauto 0 0\nshort\nUUID=4 /usb vfat user,noauto 0 0\n",
            ),
            ("/sys/class/nvme/nvme0/model", "x"),
            ("/sys/class/nvme/nvme1/model", "x"),
        ]);
        let facts = tree.look(look);
        assert_eq!(reading_of(&facts, "fstab./.mounted"), Reading::Value(Datum::Flag(true)));
        assert_eq!(reading_of(&facts, "fstab./data set.mounted"), Reading::Value(Datum::Flag(false)));
        assert_eq!(facts.iter().filter(|fact| fact.key.starts_with("fstab.")).count(), 4);
        assert_eq!(number(&facts, "nvme"), 2.0);
    }

    #[test]
    fn escapes_in_paths_are_read_as_the_kernel_writes_them() {
        assert_eq!(unescape("/a\\040b\\134c"), "/a b\\c");
        assert_eq!(unescape("/a\\04"), "/a\\04");
        assert_eq!(unescape("/ä\\"), "/ä\\");
    }
}
