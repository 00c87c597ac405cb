//! How much memory there is, how it is used, and whether it corrects or loses bits.

use muster_wire::{Reading, Unit};

use super::root::number;
use super::{Facts, Root, Then};

const KIB: f64 = 1024.0;
const EDAC: &str = "/sys/devices/system/edac/mc";

/// Fact, line of /proc/meminfo, and whether it is in kB.
const LINES: [(&str, &str, bool); 11] = [
    ("total", "MemTotal", true),
    ("available", "MemAvailable", true),
    ("free", "MemFree", true),
    ("swap.total", "SwapTotal", true),
    ("swap.free", "SwapFree", true),
    ("hugepages.size", "Hugepagesize", true),
    ("hugepages.total", "HugePages_Total", false),
    ("hugepages.free", "HugePages_Free", false),
    ("shared", "Shmem", true),
    ("dirty", "Dirty", true),
    ("corrupted", "HardwareCorrupted", true),
];

pub(super) fn look(root: &Root, facts: &mut Facts) {
    let info = root.text("/proc/meminfo");
    for (key, name, kib) in LINES {
        let value = info.clone().and_then(|text| line(&text, name));
        let value = value.map(|value| if kib { value * KIB } else { value });
        facts.number(key, value, Some(if kib { Unit::Bytes } else { Unit::Count }));
    }
    facts.text("hugepages.transparent", root.text("/sys/kernel/mm/transparent_hugepage/enabled").map(chosen));
    for node in root.numbered("/sys/devices/system/node", "node") {
        let info = root.text(&format!("/sys/devices/system/node/{node}/meminfo"));
        for (key, name) in [("total", "MemTotal"), ("free", "MemFree")] {
            let value = info.clone().and_then(|text| line(&text, name)).map(|value| value * KIB);
            facts.number(&format!("{node}.{key}"), value, Some(Unit::Bytes));
        }
    }
    errors(root, facts);
    let modules: usize =
        root.numbered(EDAC, "mc").iter().map(|mc| root.numbered(&format!("{EDAC}/{mc}"), "dimm").len()).sum();
    facts.count("edac.dimms", if modules == 0 { Reading::Absent } else { Reading::Value(modules as f64) });
    let free = root.text("/proc/buddyinfo").and_then(|text| huge_share(&text));
    facts.number("free.huge_share", free, Some(Unit::Ratio));
}

/// Share of the free memory of the ordinary zones that lies in blocks of at least 2 MiB: order 9 of 4 KiB pages.
fn huge_share(text: &str) -> Reading<f64> {
    const HUGE: usize = 9;
    let (mut all, mut huge) = (0.0, 0.0);
    for line in text.lines() {
        let Some((zone, counts)) = line.split_once(", zone ").and_then(|(_, rest)| rest.trim().split_once(' ')) else {
            return Reading::Failed("a line that is no zone".to_owned());
        };
        if zone.starts_with("DMA") {
            continue;
        }
        for (order, count) in counts.split_whitespace().take(64).enumerate() {
            let Ok(blocks) = count.parse::<u32>() else {
                return Reading::Failed("a count that is no number".to_owned());
            };
            let pages = f64::from(blocks) * 2.0_f64.powi(i32::try_from(order).unwrap_or(i32::MAX));
            all += pages;
            huge += if order >= HUGE { pages } else { 0.0 };
        }
    }
    if all > 0.0 { Reading::Value(huge / all) } else { Reading::Absent }
}

/// Corrected and uncorrected errors per memory controller, and their sums. No controller: absent, not zero.
fn errors(root: &Root, facts: &mut Facts) {
    let controllers = root.numbered(EDAC, "mc");
    for (key, file) in [("corrected", "ce_count"), ("uncorrected", "ue_count")] {
        let mut sum = Reading::Absent;
        for controller in &controllers {
            let count = root.counted(&format!("{EDAC}/{controller}/{file}"));
            facts.count(&format!("edac.{controller}.{key}"), count.clone());
            sum = match (sum, count) {
                (Reading::Value(sum), Reading::Value(count)) => Reading::Value(sum + count),
                (Reading::Absent, count) => count,
                (sum, Reading::Absent) => sum,
                // A sum over some of the controllers would look healthier than it is.
                (Reading::Value(_), failed) => failed,
                (failed, _) => failed,
            };
        }
        facts.count(&format!("edac.{key}"), sum);
    }
}

/// The number in the line called `name`; per-node files put `Node 0` before the name.
fn line(text: &str, name: &str) -> Reading<f64> {
    let value = text.lines().find_map(|line| {
        let (before, after) = line.split_once(':')?;
        (before.split_whitespace().last() == Some(name)).then_some(after)
    });
    value.map_or(Reading::Absent, |value| number(value.split_whitespace().next().unwrap_or_default()))
}

/// `always [madvise] never` is `madvise`.
fn chosen(text: String) -> String {
    let inner = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(inner, _)| inner.to_owned());
    inner.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Tree, number, reading_of, text};
    use super::*;

    #[test]
    fn sizes_are_bytes_and_errors_are_summed() {
        let tree = Tree::new(&[
            ("/proc/meminfo", "MemTotal:       1024 kB\nHugePages_Total:       3\nDirty: much kB\n"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:   512 kB\n"),
            ("/sys/devices/system/edac/mc/mc0/ce_count", "3\n"),
            ("/sys/devices/system/edac/mc/mc0/ue_count", "0\n"),
            ("/sys/devices/system/edac/mc/mc1/ce_count", "4\n"),
            ("/sys/devices/system/edac/mc/mc1/ue_count", "none\n"),
        ]);
        let facts = tree.look(look);
        assert_eq!(number(&facts, "total"), 1_048_576.0);
        assert_eq!(number(&facts, "hugepages.total"), 3.0);
        assert_eq!(reading_of(&facts, "available"), Reading::Absent);
        assert!(matches!(reading_of(&facts, "dirty"), Reading::Failed(_)));
        assert_eq!(text(&facts, "hugepages.transparent"), "madvise");
        assert_eq!(number(&facts, "node0.total"), 524_288.0);
        assert_eq!(number(&facts, "edac.corrected"), 7.0);
        assert!(matches!(reading_of(&facts, "edac.uncorrected"), Reading::Failed(_)));
    }

    #[test]
    fn free_memory_is_shared_out_by_the_size_of_its_blocks_and_modules_are_counted() {
        let tree = Tree::new(&[
            (
                "/proc/buddyinfo",
                "Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3\n\
                 Node 0, zone   Normal    512      0      0      0      0      0      0      0      0      1      0\n",
            ),
            ("/sys/devices/system/edac/mc/mc0/dimm0/size", "32768\n"),
            ("/sys/devices/system/edac/mc/mc0/dimm1/size", "32768\n"),
        ]);
        let facts = tree.look(look);
        assert_eq!(number(&facts, "free.huge_share"), 0.5);
        assert_eq!(number(&facts, "edac.dimms"), 2.0);
        assert!(matches!(huge_share("garbage"), Reading::Failed(_)));
        assert!(matches!(huge_share("Node 0, zone Normal x"), Reading::Failed(_)));
        assert_eq!(huge_share("Node 0, zone DMA 4 4"), Reading::Absent);
    }

    #[test]
    fn no_controller_is_no_clean_bill() {
        let facts = Tree::new(&[("/proc/meminfo", "MemTotal: 1 kB")]).look(look);
        assert_eq!(reading_of(&facts, "edac.corrected"), Reading::Absent);
    }
}
