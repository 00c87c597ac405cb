//! Block devices: bytes read and written, and how much of the time the busiest was busy, and how many requests waited for it.

use super::look::Look;
use crate::collect::Root;

/// Sectors of `/proc/diskstats` are of this size whatever the disk's are.
const SECTOR: f64 = 512.0;
/// What lies on other devices, or in memory.
const VIRTUAL: [&str; 5] = ["loop", "ram", "zram", "dm-", "md"];

pub(super) fn look(root: &Root, look: &mut Look) {
    if let Some(text) = root.text("/proc/diskstats").value() {
        disks(text, look);
    }
}

/// `major minor name reads merged sectors ms writes merged sectors ms running busy_ms …`.
fn disks(text: &str, look: &mut Look) {
    let mut whole = "";
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let Some(&name) = fields.get(2) else { continue };
        // Partitions come behind their disk.
        let is_part = !whole.is_empty() && name.strip_prefix(whole).is_some_and(is_part);
        if is_part || VIRTUAL.iter().any(|kind| name.starts_with(kind)) {
            continue;
        }
        whole = name;
        let number = |at: usize| fields.get(at).and_then(|word| word.parse::<f64>().ok());
        let (Some(read), Some(written), Some(busy_ms)) = (number(5), number(9), number(12)) else { continue };
        look.count("disk_read_gbs", name, read * SECTOR * 1e-9);
        look.count("disk_write_gbs", name, written * SECTOR * 1e-9);
        look.count_most("disk_busy_pct", name, busy_ms * 0.1);
        if let Some(waited_ms) = number(13) {
            // Milliseconds of all requests together: as many of them as seconds in a second.
            look.count_most("disk_queue", name, waited_ms * 1e-3);
        }
    }
}

/// `1` behind `sda`, `p1` behind `nvme0n1`.
fn is_part(rest: &str) -> bool {
    let digits = rest.strip_prefix('p').unwrap_or(rest);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_and_loops_do_not_count_twice() {
        let at = |sectors: u32, busy: u32| {
            let waited = 2 * busy;
            format!(
                "259 0 nvme0n1 1 0 {sectors} 0 1 0 0 0 0 {busy} {waited}\n259 1 nvme0n1p1 1 0 {sectors} 0 1 0 0 0 0 {busy} 0\n\
                 7 0 loop0 1 0 {sectors} 0 0 0 0 0 0 0 0\n8 0 sda 1 0 0 0 0 0 2000000 0 0 1 0\n"
            )
        };
        let (mut first, mut second) = (Look::at(0), Look::at(1_000_000_000));
        disks(&at(0, 0), &mut first);
        disks(&at(2_000_000, 250), &mut second);
        let found = second.since(&first);
        let expected =
            [("disk_busy_pct", 25.0), ("disk_queue", 0.5), ("disk_read_gbs", 1.024), ("disk_write_gbs", 0.0)];
        assert_eq!(found, expected);
    }
}
