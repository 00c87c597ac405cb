//! Are all disks and file systems there, writable, whole, and not full?

use muster_wire::Datum;

use super::check::{Ask, Found, some};
use super::compare::{Count, Lacking, Same};
use super::{Check, Gap, NodeFacts, Policy, Severity};

const fn same(key: &'static str) -> Same {
    Same { collector: "disk", key, lacking: Lacking::Skipped }
}

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "nvme-count",
        area: "disk",
        title: "as many NVMe disks as expected",
        severity: Severity::Critical,
        source: "AzNHC check_nvme_count (8)",
        next: "look for `nvme` in the kernel log and the BMC; reseat or replace the missing disk",
        needs: &["disk"],
        ask: Ask::Count(Count { collector: "disk", key: "nvme", expect: "nvme", per: 1.0, tolerance: None }),
    },
    Check {
        id: "disk-consistent",
        area: "disk",
        title: "model, size and firmware of each disk are those of the group",
        severity: Severity::Warn,
        source: "soperator nvme_raid_health; imbue",
        next: "update the firmware as on the others; another model wants an `sku` of its own",
        needs: &["disk"],
        ask: Ask::Equal(&[same("device.*.model"), same("device.*.size"), same("device.*.firmware")]),
    },
    Check {
        id: "raid-whole",
        area: "disk",
        title: "no software RAID runs with a disk missing",
        severity: Severity::Critical,
        source: "soperator nvme_raid_health",
        next: "cat /proc/mdstat, replace the failed disk and add it again with mdadm",
        needs: &["disk"],
        ask: Ask::Node(raid),
    },
    Check {
        id: "filesystem-use",
        area: "disk",
        title: "room on every local file system",
        severity: Severity::Critical,
        source: "GCM (80 % warning, 85 % critical); imbue (95 %)",
        next: "find out what fills it (`du -x`): logs, images, core dumps of earlier jobs",
        needs: &["disk"],
        ask: Ask::Node(space),
    },
    Check {
        id: "filesystem-inodes",
        area: "disk",
        title: "free inodes on every local file system",
        severity: Severity::Warn,
        source: "NHC check_fs_iused",
        next: "find the directory with the many small files and clean it",
        needs: &["disk"],
        ask: Ask::Node(inodes),
    },
    Check {
        id: "filesystem-writable",
        area: "disk",
        title: "every local file system can be written to",
        severity: Severity::Critical,
        source: "NHC check_fs_mount_rw; GCM",
        next: "look for file system errors in the kernel log; check and repair it before it is mounted again",
        needs: &["disk"],
        ask: Ask::Node(writable),
    },
    Check {
        id: "fstab-mounted",
        area: "disk",
        title: "all that /etc/fstab names is mounted",
        severity: Severity::Critical,
        source: "GCM check_fstab; gpud nfs",
        next: "mount it; look at the server of a remote file system, or at the disk of a local one",
        needs: &["disk"],
        ask: Ask::Node(mounted),
    },
];

fn raid(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    node.looked("disk")?;
    let arrays = node.instances("disk", "device.", ".md.degraded");
    if arrays.is_empty() {
        return Ok(Found::not_applicable("no software RAID"));
    }
    let mut bad = Vec::new();
    for array in &arrays {
        match node.number("disk", &format!("device.{array}.md.degraded")) {
            Ok(missing) if missing > 0.0 => bad.push(format!("{array} has {missing:.0} disks missing")),
            // RAID 0 does not count what it cannot do without.
            Ok(_) | Err(Gap::Absent(_)) => {}
            Err(gap) => return Err(gap),
        }
    }
    Ok(Found::fail_if(&bad, format!("{} arrays whole", arrays.len())))
}

/// The worst share in use, and the sentences of those over each limit.
fn shares(node: &NodeFacts<'_>, (of, free): (&str, &str), limits: [f64; 2]) -> Result<Found, Gap> {
    node.looked("disk")?;
    let (mut over, mut full, mut worst) = (Vec::new(), Vec::new(), 0.0_f64);
    let mounts = node.instances("disk", "mount.", &format!(".{of}"));
    for mount in &mounts {
        let read = |what: &str| node.number("disk", &format!("mount.{mount}.{what}"));
        let (of, free) = match (read(of), read(free)) {
            (Ok(of), Ok(free)) => (of, free),
            (Err(Gap::Absent(_)), _) | (_, Err(Gap::Absent(_))) => continue,
            (Err(gap), _) | (_, Err(gap)) => return Err(gap),
        };
        // File systems without a fixed number of inodes have none in all.
        if of <= 0.0 {
            continue;
        }
        let used = (1.0 - free / of).clamp(0.0, 1.0);
        worst = worst.max(used);
        let said = format!("{mount} is {:.0} % full", used * 100.0);
        match used {
            used if used > limits[1] => full.push(said),
            used if used > limits[0] => over.push(said),
            _ => {}
        }
    }
    Ok(match (full.is_empty(), over.is_empty(), mounts.is_empty()) {
        (false, ..) => Found::fail(some(&full)),
        (true, false, _) => Found::warn(some(&over)),
        (true, true, true) => Found::not_applicable("no local file system"),
        (true, true, false) => Found::pass(format!("at most {:.0} % full", worst * 100.0)),
    })
}

fn space(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    shares(node, ("size", "free"), [policy.limit("filesystem_warn"), policy.limit("filesystem_fail")])
}

fn inodes(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    shares(node, ("inodes", "inodes_free"), [policy.limit("filesystem_warn"), policy.limit("filesystem_fail")])
}

fn writable(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    node.looked("disk")?;
    // Images that are read-only by their nature.
    const IMAGES: [&str; 3] = ["erofs", "iso9660", "squashfs"];
    let mut bad = Vec::new();
    let mounts = node.instances("disk", "mount.", ".options");
    for mount in &mounts {
        let text = |what: &str| node.text("disk", &format!("mount.{mount}.{what}"));
        let (options, kind) = (text("options")?, text("type")?);
        let read_only = options.split(',').any(|option| option == "ro");
        let wanted = node.text("disk", &format!("fstab.{mount}.options"));
        let meant = wanted.is_ok_and(|options| options.split(',').any(|option| option == "ro"));
        if read_only && !meant && !IMAGES.contains(&kind) {
            bad.push(format!("{mount} ({kind}) is read-only"));
        }
    }
    if mounts.is_empty() {
        return Ok(Found::not_applicable("no file system that work is put on"));
    }
    Ok(Found::fail_if(&bad, format!("{} file systems", mounts.len())))
}

fn mounted(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    node.looked("disk")?;
    let wanted = node.instances("disk", "fstab.", ".mounted");
    if wanted.is_empty() {
        return Ok(Found::not_applicable("no /etc/fstab, or nothing in it"));
    }
    let missing = |path: &&&str| matches!(node.datum("disk", &format!("fstab.{path}.mounted")), Ok(Datum::Flag(false)));
    let bad: Vec<String> = wanted.iter().filter(missing).map(|path| format!("{path} is not mounted")).collect();
    Ok(Found::fail_if(&bad, format!("all {} of /etc/fstab", wanted.len())))
}

#[cfg(test)]
mod tests {
    use muster_wire::{Datum, Reading};

    use crate::State;
    use crate::checks::testing::{Fleet, absent, number, text};

    fn flag(flag: bool) -> Reading<Datum> {
        Reading::Value(Datum::Flag(flag))
    }

    #[test]
    fn a_full_file_system_fails_and_one_that_fills_up_warns() {
        let mut fleet = Fleet::new(3, "disk", &[("mount./.size", number(100.0)), ("mount./.free", number(50.0))]);
        fleet.set(1, "disk", "mount./.free", number(12.0));
        fleet.set(2, "disk", "mount./.free", number(2.0));
        let found = fleet.ask("filesystem-use");
        assert_eq!([found[0].state, found[1].state, found[2].state], [State::Pass, State::Warn, State::Fail]);
        assert_eq!(found[2].said, "/ is 98 % full");
        assert_eq!(found[0].said, "at most 50 % full");
    }

    #[test]
    fn a_file_system_without_inodes_of_its_own_is_not_full() {
        let fleet = Fleet::new(1, "disk", &[("mount./.inodes", number(0.0)), ("mount./.inodes_free", number(0.0))]);
        assert_eq!(fleet.ask("filesystem-inodes")[0].state, State::Pass);
        let silent = Fleet::new(1, "disk", &[("mount./.size", absent())]);
        assert_eq!(silent.ask("filesystem-inodes")[0].state, State::NotApplicable);
    }

    #[test]
    fn a_file_system_that_turned_read_only_fails_unless_it_is_meant_to_be() {
        let facts = [("mount./data.options", text("ro,noatime")), ("mount./data.type", text("ext4"))];
        let mut fleet = Fleet::new(2, "disk", &facts);
        fleet.set(1, "disk", "fstab./data.options", text("ro,noatime"));
        let found = fleet.ask("filesystem-writable");
        assert_eq!((found[0].state, found[1].state), (State::Fail, State::Pass));
        assert_eq!(found[0].said, "/data (ext4) is read-only");
    }

    #[test]
    fn what_is_not_mounted_and_what_misses_a_disk_is_named() {
        let mut fleet = Fleet::new(1, "disk", &[("fstab./data.mounted", flag(false)), ("fstab./.mounted", flag(true))]);
        assert_eq!(fleet.ask("fstab-mounted")[0].said, "/data is not mounted");
        assert_eq!(fleet.ask("raid-whole")[0].state, State::NotApplicable);
        fleet.set(0, "disk", "device.md0.md.degraded", number(1.0));
        assert_eq!(fleet.ask("raid-whole")[0].said, "md0 has 1 disks missing");
    }

    #[test]
    fn a_missing_drive_is_seen_where_the_others_have_eight() {
        let mut fleet = Fleet::new(4, "disk", &[("nvme", number(8.0))]);
        fleet.set(2, "disk", "nvme", number(7.0));
        assert_eq!(fleet.ask("nvme-count")[2].said, "nvme: 7, 3 of 4 nodes have 8");
    }
}
