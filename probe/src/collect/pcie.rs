//! The PCIe devices that carry a job's data: links as they are and could be, error counters, address translation.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

use muster_wire::Reading;

use super::root::{number, reading};
use super::{Facts, Root, Then};

const DEVICES: &str = "/sys/bus/pci/devices";
/// Devices told one by one.
const MOST: usize = 256;
/// Capability id of Access Control Services, and where its control register lies behind it.
const ACS: u16 = 0x000d;
const ACS_CONTROL: usize = 6;
/// A configuration space with extended capabilities.
const CONFIG: u64 = 4096;

pub(super) fn look(root: &Root, facts: &mut Facts) {
    let names = match root.names(DEVICES) {
        Reading::Value(names) => names,
        other => return facts.count("devices", other.map(|_| 0.0)),
    };
    facts.count("devices", Reading::Value(names.len() as f64));
    let mut counts = [("gpu", 0_u32), ("nic", 0), ("nvme", 0), ("bridge", 0)];
    for name in &names {
        let Some(kind) = kind(root, name) else { continue };
        if let Some((_, count)) = counts.iter_mut().find(|(known, _)| *known == kind) {
            *count += 1;
        }
        if counts.iter().map(|(_, count)| *count as usize).sum::<usize>() <= MOST {
            device(root, name, kind, facts);
        }
    }
    for (kind, count) in counts {
        facts.count(&format!("count.{kind}"), Reading::Value(f64::from(count)));
    }
    let groups = root.names("/sys/kernel/iommu_groups");
    facts.count("iommu.groups", groups.as_ref_reading().map(|names| names.len() as f64));
    let first = groups.value().and_then(|names| names.first());
    facts.text(
        "iommu.type",
        match first {
            Some(group) => root.text(&format!("/sys/kernel/iommu_groups/{group}/type")),
            None => Reading::Absent,
        },
    );
}

/// GPU, network or InfiniBand adapter, NVMe disk or bridge; nothing else matters here.
fn kind(root: &Root, name: &str) -> Option<&'static str> {
    let class = root.text(&format!("{DEVICES}/{name}/class"));
    match class.value()?.get(..6)? {
        "0x0300" | "0x0302" | "0x1200" => Some("gpu"),
        "0x0200" | "0x0207" => Some("nic"),
        "0x0108" => Some("nvme"),
        "0x0604" => Some("bridge"),
        _ => None,
    }
}

fn device(root: &Root, name: &str, kind: &'static str, facts: &mut Facts) {
    let at = |file: &str| format!("{DEVICES}/{name}/{file}");
    let key = |fact: &str| format!("device.{name}.{fact}");
    facts.text(&key("kind"), Reading::Value(kind));
    facts.text(
        &key("id"),
        root.text(&at("vendor")).and_then(|vendor| root.text(&at("device")).map(|device| format!("{vendor}:{device}"))),
    );
    for (fact, file) in [("speed", "current_link_speed"), ("speed_max", "max_link_speed")] {
        facts.count(&key(fact), while_linked(root.text(&at(file))).and_then(|text| transfers(&text)));
    }
    for (fact, file) in [("width", "current_link_width"), ("width_max", "max_link_width")] {
        facts.count(&key(fact), while_linked(root.text(&at(file))).and_then(|text| lanes(&text)));
    }
    for (fact, file) in [
        ("aer.correctable", "aer_dev_correctable"),
        ("aer.nonfatal", "aer_dev_nonfatal"),
        ("aer.fatal", "aer_dev_fatal"),
    ] {
        facts.count(&key(fact), root.text(&at(file)).and_then(|text| total(&text)));
    }
    if kind == "bridge" {
        facts.flag(&key("acs"), acs(root, name));
    } else {
        facts.count(&key("numa_node"), root.counted(&at("numa_node")));
        slot(root, name, &key, facts);
    }
}

/// What the slot can do: a card behind an older bridge never reaches its own most.
fn slot(root: &Root, name: &str, key: &dyn Fn(&str) -> String, facts: &mut Facts) {
    let real: Reading<PathBuf> = reading(fs::canonicalize(root.path(&format!("{DEVICES}/{name}"))));
    let above = |file: &str| {
        real.as_ref_reading().and_then(|path| match path.parent() {
            Some(parent) => while_linked(reading(fs::read_to_string(parent.join(file)))),
            None => Reading::Absent,
        })
    };
    let trimmed = |text: Reading<String>| text.map(|text| text.trim().to_owned());
    facts.count(&key("slot.speed_max"), trimmed(above("max_link_speed")).and_then(|text| transfers(&text)));
    facts.count(&key("slot.width_max"), trimmed(above("max_link_width")).and_then(|text| lanes(&text)));
}

/// Devices without a PCIe link say so, or refuse.
fn while_linked(text: Reading<String>) -> Reading<String> {
    match text {
        Reading::Value(text) if text.starts_with("Unknown") => Reading::Absent,
        Reading::Failed(why) if why.contains("os error 22") => Reading::Absent,
        other => other,
    }
}

/// `32.0 GT/s PCIe` in GT/s.
fn transfers(text: &str) -> Reading<f64> {
    number(text.split(' ').next().unwrap_or_default())
}

/// A width; 0 and 255 mean that there is no link.
fn lanes(text: &str) -> Reading<f64> {
    number(text).and_then(|lanes| if (1.0..=32.0).contains(&lanes) { Reading::Value(lanes) } else { Reading::Absent })
}

/// The last line of a counter file: `TOTAL_ERR_COR 12`.
fn total(text: &str) -> Reading<f64> {
    let line = text.lines().find(|line| line.starts_with("TOTAL_ERR_"));
    match line.and_then(|line| line.split_once(' ')) {
        Some((_, count)) => number(count),
        None => Reading::Failed("no total".to_owned()),
    }
}

/// Whether a bridge redirects requests between devices, read from its configuration space. Without privileges only
/// the first 64 bytes of it may be read.
fn acs(root: &Root, name: &str) -> Reading<bool> {
    let bytes = File::open(root.path(&format!("{DEVICES}/{name}/config"))).and_then(|file| {
        let mut bytes = Vec::new();
        file.take(CONFIG).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    reading(bytes).and_then(|bytes| if bytes.len() <= 64 { Reading::Denied } else { capability(&bytes) })
}

fn capability(config: &[u8]) -> Reading<bool> {
    let word = |at: usize| Some(u16::from_le_bytes([*config.get(at)?, *config.get(at + 1)?]));
    let mut at = 0x100;
    // Every capability takes at least 8 bytes: more steps than that would be a circle.
    for _ in 0..480 {
        let (Some(id), Some(rest)) = (word(at), word(at + 2)) else { return Reading::Absent };
        if id == ACS {
            return word(at + ACS_CONTROL).map_or(Reading::Absent, |control| Reading::Value(control != 0));
        }
        at = usize::from(rest >> 4);
        if id == 0 || at < 0x100 {
            return Reading::Absent;
        }
    }
    Reading::Failed("its capabilities point at one another".to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use muster_wire::Datum;
    use proptest::prelude::*;

    use super::super::testing::{Tree, number, reading_of, text};
    use super::*;

    fn tree() -> Tree {
        let bus = "/sys/devices/pci0000:80/0000:80:01.0";
        let gpu = format!("{bus}/0000:81:00.0");
        let files: Vec<(String, &str)> = vec![
            (format!("{bus}/class"), "0x060400\n"),
            (format!("{bus}/max_link_speed"), "16.0 GT/s PCIe\n"),
            (format!("{bus}/max_link_width"), "16\n"),
            (format!("{bus}/config"), "short"),
            (format!("{gpu}/class"), "0x030200\n"),
            (format!("{gpu}/vendor"), "0x10de\n"),
            (format!("{gpu}/device"), "0x2330\n"),
            (format!("{gpu}/current_link_speed"), "16.0 GT/s PCIe\n"),
            (format!("{gpu}/max_link_speed"), "32.0 GT/s PCIe\n"),
            (format!("{gpu}/current_link_width"), "8\n"),
            (format!("{gpu}/max_link_width"), "16\n"),
            (format!("{gpu}/aer_dev_correctable"), "RxErr 2\nBadTLP 3\nTOTAL_ERR_COR 5\n"),
            (format!("{gpu}/aer_dev_fatal"), "Undefined 0\n"),
            ("/sys/kernel/iommu_groups/0/type".into(), "DMA-FQ\n"),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let tree = Tree::new(&files);
        let list = tree.path().join("sys/bus/pci/devices");
        std::fs::create_dir_all(&list).unwrap();
        for device in [bus, &gpu] {
            let name = device.rsplit('/').next().unwrap();
            symlink(tree.path().join(device.trim_start_matches('/')), list.join(name)).unwrap();
        }
        tree
    }

    #[test]
    fn a_gpu_behind_an_older_bridge_is_read_with_its_slot() {
        let facts = tree().look(look);
        assert_eq!((number(&facts, "count.gpu"), number(&facts, "count.bridge")), (1.0, 1.0));
        assert_eq!(text(&facts, "device.0000:81:00.0.id"), "0x10de:0x2330");
        assert_eq!(number(&facts, "device.0000:81:00.0.speed"), 16.0);
        assert_eq!(number(&facts, "device.0000:81:00.0.speed_max"), 32.0);
        assert_eq!(number(&facts, "device.0000:81:00.0.slot.speed_max"), 16.0);
        assert_eq!(number(&facts, "device.0000:81:00.0.width"), 8.0);
        assert_eq!(number(&facts, "device.0000:81:00.0.aer.correctable"), 5.0);
        assert!(matches!(reading_of(&facts, "device.0000:81:00.0.aer.fatal"), Reading::Failed(_)));
        assert_eq!(reading_of(&facts, "device.0000:81:00.0.aer.nonfatal"), Reading::Absent);
        assert_eq!(reading_of(&facts, "device.0000:80:01.0.acs"), Reading::Denied);
        assert_eq!(text(&facts, "iommu.type"), "DMA-FQ");
    }

    #[test]
    fn access_control_is_found_behind_other_capabilities() {
        let mut config = vec![0; 4096];
        // An AER capability at 0x100 that points at 0x150, where ACS is the last.
        config[0x100..0x104].copy_from_slice(&[0x01, 0x00, 0x02, 0x15]);
        config[0x150..0x154].copy_from_slice(&[0x0d, 0x00, 0x01, 0x00]);
        assert_eq!(capability(&config), Reading::Value(false));
        config[0x156] = 0x1d;
        assert_eq!(capability(&config), Reading::Value(true));
        assert_eq!(capability(&[0; 256]), Reading::Absent);
        let facts = tree().look(look);
        assert!(facts.iter().all(|fact| fact.reading != Reading::Value(Datum::Flag(true))));
    }

    proptest! {
        #[test]
        fn any_configuration_space_and_any_text_is_read_without_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..1024),
            any in ".{0,60}",
        ) {
            let _ = capability(&bytes);
            let _ = (transfers(&any), lanes(&any), total(&any));
        }
    }
}
