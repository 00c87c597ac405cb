//! Which GPUs the bus, the driver and the device files know of, and what NVIDIA's management library tells of them.

use muster_wire::Reading;

use super::{Facts, Root, Then};

const DEVICES: &str = "/sys/bus/pci/devices";
const DRIVER: &str = "/proc/driver/nvidia";
const NVIDIA: &str = "0x10de";
/// GPUs told one by one.
const MOST: usize = 32;

pub(super) fn look(root: &Root, facts: &mut Facts) {
    let pci = root.names(DEVICES).map(|names| names.iter().filter(|name| is_gpu(root, name)).count());
    facts.count("gpus", pci.and_then(|count| if count == 0 { Reading::Absent } else { Reading::Value(count as f64) }));
    facts.text("driver.version", root.text(&format!("{DRIVER}/version")).and_then(|text| version(&text)));
    let known = root.names(&format!("{DRIVER}/gpus"));
    facts.count("driver.gpus", known.as_ref_reading().map(|names| names.len() as f64));
    let files = root.numbered("/dev", "nvidia").len();
    facts.count("device_files", if files == 0 { Reading::Absent } else { Reading::Value(files as f64) });
    for (key, module) in [("nouveau", "nouveau"), ("peermem", "nvidia_peermem"), ("gdrdrv", "gdrdrv")] {
        facts.flag(key, loaded(root, module));
    }
    for name in known.value().into_iter().flatten().take(MOST) {
        let information = root.text(&format!("{DRIVER}/gpus/{name}/information"));
        for (key, line) in
            [("model", "Model"), ("uuid", "GPU UUID"), ("vbios", "Video BIOS"), ("firmware", "GPU Firmware")]
        {
            let value = information.as_ref_reading().and_then(|text| value(text, line));
            facts.text(&format!("gpu.{name}.{key}"), value);
        }
    }
    if root.is_system() {
        facts.extend(crate::gpu::health());
    }
}

fn is_gpu(root: &Root, name: &str) -> bool {
    let says = |file: &str, words: &[&str]| {
        let text = root.text(&format!("{DEVICES}/{name}/{file}"));
        text.value().is_some_and(|text| words.iter().any(|word| text.starts_with(word)))
    };
    says("vendor", &[NVIDIA]) && says("class", &["0x0300", "0x0302"])
}

/// Absent where modules cannot be seen at all.
fn loaded(root: &Root, module: &str) -> Reading<bool> {
    if root.path("/sys/module").is_dir() {
        Reading::Value(root.path(&format!("/sys/module/{module}")).is_dir())
    } else {
        Reading::Absent
    }
}

/// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar …`: the first word that is digits and dots.
fn version(text: &str) -> Reading<String> {
    let is_version = |word: &&str| word.contains('.') && word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let found = text.lines().next().and_then(|line| line.split_whitespace().find(is_version));
    found.map_or_else(|| Reading::Failed("no version".to_owned()), |word| Reading::Value(word.to_owned()))
}

/// The value of `Name: \t value`.
fn value(text: &str, name: &str) -> Reading<String> {
    let found = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    });
    found.map_or(Reading::Absent, Reading::Value)
}

#[cfg(test)]
mod tests {
    use muster_wire::Datum;
    use proptest::prelude::*;

    use super::super::testing::{Tree, number, reading_of, text};
    use super::*;

    #[test]
    fn a_gpu_that_the_driver_does_not_know_shows_in_the_counts() {
        let tree = Tree::new(&[
            ("/sys/bus/pci/devices/0000:1b:00.0/vendor", "0x10de\n"),
            ("/sys/bus/pci/devices/0000:1b:00.0/class", "0x030200\n"),
            ("/sys/bus/pci/devices/0000:43:00.0/vendor", "0x10de\n"),
            ("/sys/bus/pci/devices/0000:43:00.0/class", "0x030200\n"),
            ("/sys/bus/pci/devices/0000:44:00.0/vendor", "0x10de\n"),
            ("/sys/bus/pci/devices/0000:44:00.0/class", "0x068000\n"),
            (
                "/proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\nGCC\n",
            ),
            ("/proc/driver/nvidia/gpus/0000:1b:00.0/information", "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 5\n"),
            ("/dev/nvidia0", ""),
            ("/dev/nvidiactl", ""),
            ("/sys/module/nvidia_peermem/refcnt", "0\n"),
        ]);
        let facts = tree.look(look);
        assert_eq!((number(&facts, "gpus"), number(&facts, "driver.gpus")), (2.0, 1.0));
        assert_eq!(number(&facts, "device_files"), 1.0);
        assert_eq!(text(&facts, "driver.version"), "550.54.15");
        assert_eq!(text(&facts, "gpu.0000:1b:00.0.model"), "NVIDIA H100 80GB HBM3");
        assert_eq!(reading_of(&facts, "nouveau"), Reading::Value(Datum::Flag(false)));
        assert_eq!(reading_of(&facts, "peermem"), Reading::Value(Datum::Flag(true)));
    }

    #[test]
    fn a_node_without_gpus_has_none_and_says_so() {
        let facts = Tree::new(&[("/sys/bus/pci/devices/0000:00:00.0/vendor", "0x8086\n")]).look(look);
        assert_eq!(reading_of(&facts, "gpus"), Reading::Absent);
        assert_eq!(reading_of(&facts, "driver.version"), Reading::Absent);
    }

    proptest! {
        #[test]
        fn any_driver_file_is_read_without_a_panic(any in ".{0,300}") {
            let _ = (version(&any), value(&any, "Model"));
        }
    }
}
