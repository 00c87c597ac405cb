//! Heat and power of the CPUs, and heat of disks, where the kernel lets us read them.

use super::look::Look;
use crate::collect::Root;

/// Names under which drivers tell the temperature of a CPU.
const SENSORS: [&str; 4] = ["coretemp", "k10temp", "zenpower", "cpu_thermal"];
/// The same of a disk.
const DISKS: [&str; 2] = ["nvme", "drivetemp"];
/// Looks from one reading of the disks to the next: some answer slowly, and none heats up fast.
const SELDOM: u32 = 10;
/// Sensors of a driver.
const INPUTS: usize = 512;

/// Files found when watching began: looking for them costs more than reading them.
pub(super) struct Source {
    temperatures: Vec<String>,
    disks: Vec<String>,
    looks: u32,
    /// The hottest disk when last looked at.
    disk: Option<f64>,
    /// Energy counters of whole packages.
    energies: Vec<String>,
}

impl Source {
    pub(super) fn new(root: &Root) -> Self {
        let drivers = root.numbered("/sys/class/hwmon", "hwmon").into_iter();
        let is_of = |driver: &String, kinds: &[&str]| {
            let name = root.text(&format!("/sys/class/hwmon/{driver}/name"));
            name.value().is_some_and(|name| kinds.contains(&name.as_str()))
        };
        let inputs = |driver: String| {
            let names = root.names(&format!("/sys/class/hwmon/{driver}")).value().cloned().unwrap_or_default();
            let is_input = |name: &String| name.starts_with("temp") && name.ends_with("_input");
            // The first is the package, which is as hot as its hottest core.
            let first = names.into_iter().take(INPUTS).find(is_input);
            first.map(|name| format!("/sys/class/hwmon/{driver}/{name}"))
        };
        let zones = root.names("/sys/class/powercap").value().cloned().unwrap_or_default();
        let package = |zone: &String| zone.starts_with("intel-rapl:") && zone.matches(':').count() == 1;
        let energy = |zone: String| format!("/sys/class/powercap/{zone}/energy_uj");
        Self {
            temperatures: drivers.clone().filter(|driver| is_of(driver, &SENSORS)).filter_map(inputs).collect(),
            disks: drivers.filter(|driver| is_of(driver, &DISKS)).filter_map(inputs).collect(),
            looks: 0,
            disk: None,
            energies: zones.into_iter().filter(package).map(energy).collect(),
        }
    }

    pub(super) fn look(&mut self, root: &Root, look: &mut Look) {
        let read = |file: &String| root.number(file).value().copied();
        if let Some(hottest) = self.temperatures.iter().filter_map(read).reduce(f64::max) {
            look.level("cpu_temp_c", hottest / 1e3);
        }
        if self.looks.is_multiple_of(SELDOM) {
            self.disk = self.disks.iter().filter_map(read).reduce(f64::max);
        }
        self.looks = self.looks.wrapping_add(1);
        if let Some(hottest) = self.disk {
            look.level("disk_temp_c", hottest / 1e3);
        }
        for file in &self.energies {
            if let Some(energy_uj) = read(file) {
                look.count("cpu_power_w", file, energy_uj * 1e-6);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hottest_package_counts_and_the_energy_of_packages_adds_up() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (driver, name, heat) in
            [("hwmon0", "coretemp", "61000"), ("hwmon1", "coretemp", "74000"), ("hwmon2", "nvme", "90000")]
        {
            write(&format!("sys/class/hwmon/{driver}/name"), name);
            write(&format!("sys/class/hwmon/{driver}/temp1_input"), heat);
        }
        let energy = |uj: &str| {
            write("sys/class/powercap/intel-rapl:0/energy_uj", uj);
            write("sys/class/powercap/intel-rapl:1/energy_uj", uj);
            write("sys/class/powercap/intel-rapl:0:0/energy_uj", uj);
        };
        let root = Root::at(tree.path());
        let (mut first, mut second) = (Look::at(0), Look::at(2_000_000_000));
        energy("1000000");
        let mut source = Source::new(&root);
        source.look(&root, &mut first);
        energy("401000000");
        source.look(&root, &mut second);
        assert_eq!(second.since(&first), [("cpu_power_w", 400.0), ("cpu_temp_c", 74.0), ("disk_temp_c", 90.0)]);
    }
}
