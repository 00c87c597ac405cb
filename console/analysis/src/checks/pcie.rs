//! Do the devices that carry a job's data have the links that they could have?

use super::check::{Ask, Found, some};
use super::compare::{Lacking, Same};
use super::{Check, Gap, NodeFacts, Policy, Severity};

const fn differs(key: &'static str) -> Same {
    Same { collector: "pcie", key, lacking: Lacking::Differs }
}

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "pcie-devices",
        area: "pcie",
        title: "as many GPUs, adapters and disks on the bus as on the group's nodes",
        severity: Severity::Critical,
        source: "GCM; NVSentinel; Crusoe",
        next: "look in the kernel log and the BMC for the device that is gone; power-cycle, then reseat it",
        needs: &["pcie"],
        ask: Ask::Equal(&[differs("count.gpu"), differs("count.nic"), differs("count.nvme")]),
    },
    Check {
        id: "pcie-link",
        area: "pcie",
        title: "every link is as wide and as fast as device and slot can",
        severity: Severity::Critical,
        source: "DCGM 3; cvs (32 GT/s x16); AzNHC",
        next: "reseat the device or its riser; look for lanes disabled in the BIOS; replace what trains down again",
        needs: &["pcie"],
        ask: Ask::Node(link),
    },
    Check {
        id: "pcie-uncorrected",
        area: "pcie",
        title: "no uncorrected PCIe error since boot",
        severity: Severity::Critical,
        source: "DCGM 107; NVSentinel",
        next: "reseat the device; replace it or its riser if they come back",
        needs: &["pcie"],
        ask: Ask::Node(|node, _| counted(node, &["aer.fatal", "aer.nonfatal"], 0.0).map(Found::from)),
    },
    Check {
        id: "pcie-corrected",
        area: "pcie",
        title: "few corrected PCIe errors since boot",
        severity: Severity::Warn,
        source: "DCGM 98; gpud",
        next: "reseat the device; replace it or its riser if the count keeps growing",
        needs: &["pcie"],
        ask: Ask::Node(|node, policy| {
            counted(node, &["aer.correctable"], policy.limit("pcie_corrected")).map(Found::from)
        }),
    },
    Check {
        id: "acs",
        area: "pcie",
        title: "no bridge sends traffic between GPUs and adapters up to the root (ACS is off)",
        severity: Severity::Warn,
        source: "gpud pci; cvs; ml-engineering network/benchmarks",
        next: "turn ACS off on the bridges at boot (setpci), or in the BIOS; leave it on where virtual machines run",
        needs: &["pcie", "cpu"],
        ask: Ask::Node(acs),
    },
    Check {
        id: "iommu",
        area: "pcie",
        title: "addresses are passed through, not translated",
        severity: Severity::Warn,
        source: "cvs host_configs (iommu=pt)",
        next: "add iommu=pt to the kernel command line and reboot",
        needs: &["pcie", "cpu"],
        ask: Ask::Node(iommu),
    },
];

fn devices<'a>(node: &NodeFacts<'a>) -> Result<Vec<(&'a str, &'a str)>, Gap> {
    node.looked("pcie")?;
    let mut all = Vec::new();
    for device in node.instances("pcie", "device.", ".kind") {
        all.push((device, node.text("pcie", &format!("device.{device}.kind"))?));
    }
    if all.is_empty() { Err(Gap::Absent("no GPU, adapter, disk or bridge on a PCIe bus".to_owned())) } else { Ok(all) }
}

fn link(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    let (mut bad, mut linked) = (Vec::new(), 0);
    for (device, kind) in devices(node)?.into_iter().filter(|(_, kind)| *kind != "bridge") {
        let read = |fact: &str| node.number("pcie", &format!("device.{device}.{fact}"));
        for (now, most, slot, unit) in
            [("width", "width_max", "slot.width_max", "lanes"), ("speed", "speed_max", "slot.speed_max", "GT/s")]
        {
            let (Ok(now_at), Ok(most)) = (read(now), read(most)) else { continue };
            linked += 1;
            let most = read(slot).map_or(most, |slot| most.min(slot));
            // An idle GPU lowers its speed to save power; its width never changes.
            if now_at < most && !(kind == "gpu" && now == "speed") {
                bad.push(format!("{kind} {device} has {now_at} of {most} {unit}"));
            }
        }
    }
    if linked == 0 {
        return Ok(Found::not_applicable("no device with a PCIe link"));
    }
    Ok(Found::fail_if(&bad, "every link at its most"))
}

/// Devices whose counters are over `most`, or how many were asked.
struct Errors {
    bad: Vec<String>,
    asked: usize,
}

impl From<Errors> for Found {
    fn from(errors: Errors) -> Self {
        match errors {
            Errors { asked: 0, .. } => Self::not_applicable("no device counts its errors"),
            Errors { bad, asked } => Self::fail_if(&bad, format!("{asked} devices")),
        }
    }
}

fn counted(node: &NodeFacts<'_>, counters: &[&str], most: f64) -> Result<Errors, Gap> {
    let mut errors = Errors { bad: Vec::new(), asked: 0 };
    for (device, kind) in devices(node)? {
        let (mut sum, mut any) = (0.0, false);
        for counter in counters {
            match node.number("pcie", &format!("device.{device}.{counter}")) {
                Ok(count) => (sum, any) = (sum + count, true),
                Err(Gap::Absent(_)) => {}
                Err(gap) => return Err(gap),
            }
        }
        errors.asked += usize::from(any);
        if sum > most {
            errors.bad.push(format!("{kind} {device}: {sum:.0} since boot"));
        }
    }
    Ok(errors)
}

/// Both matter where GPUs talk to adapters on bare metal.
fn bare_metal_with_gpus(node: &NodeFacts<'_>) -> Result<Option<Found>, Gap> {
    if node.text("cpu", "flags").is_ok_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")) {
        return Ok(Some(Found::not_applicable("a virtual machine: the host decides")));
    }
    node.looked("cpu")?;
    let gpus = match node.number("pcie", "count.gpu") {
        Err(Gap::Absent(_)) => 0.0,
        read => read?,
    };
    Ok((gpus == 0.0).then(|| Found::not_applicable("no GPU")))
}

fn acs(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    if let Some(found) = bare_metal_with_gpus(node)? {
        return Ok(found);
    }
    let (mut on, mut asked) = (Vec::new(), 0);
    for bridge in node.instances("pcie", "device.", ".acs") {
        match node.flag("pcie", &format!("device.{bridge}.acs")) {
            Ok(true) => on.push(bridge.to_owned()),
            Ok(false) => {}
            Err(Gap::Absent(_)) => continue,
            Err(gap) => return Err(gap),
        }
        asked += 1;
    }
    Ok(match (on.is_empty(), asked) {
        (_, 0) => Found::not_applicable("no bridge with ACS"),
        (true, _) => Found::pass(format!("off on {asked} bridges")),
        (false, _) => Found::warn(format!("on at {} of {asked} bridges: {}", on.len(), some(&on))),
    })
}

fn iommu(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    if let Some(found) = bare_metal_with_gpus(node)? {
        return Ok(found);
    }
    let kind = node.text("pcie", "iommu.type")?;
    let said = format!("IOMMU type {kind}");
    Ok(if kind == "identity" { Found::pass(said) } else { Found::warn(said) })
}

#[cfg(test)]
mod tests {
    use muster_wire::{Datum, Reading};

    use crate::State;
    use crate::checks::testing::{Fleet, absent, number, text};

    /// One device with its link: now and most, width and speed; and what the slot allows.
    fn device(kind: &str, [width, width_max, speed, speed_max, slot]: [f64; 5]) -> Fleet {
        let at = |fact: &str| format!("device.0000:81:00.0.{fact}");
        let mut fleet = Fleet::new(1, "pcie", &[("count.gpu", number(1.0)), ("iommu.type", text("DMA-FQ"))]);
        fleet.set(0, "pcie", &at("kind"), text(kind));
        for (fact, value) in [("width", width), ("width_max", width_max), ("speed", speed), ("speed_max", speed_max)] {
            fleet.set(0, "pcie", &at(fact), number(value));
        }
        fleet.set(0, "pcie", &at("slot.speed_max"), number(slot));
        fleet
    }

    #[test]
    fn a_lost_lane_fails_a_saving_gpu_does_not_and_the_slot_sets_the_most() {
        let lost = device("gpu", [8.0, 16.0, 32.0, 32.0, 32.0]).ask("pcie-link").remove(0);
        assert_eq!((lost.state, lost.said.as_str()), (State::Fail, "gpu 0000:81:00.0 has 8 of 16 lanes"));
        assert_eq!(device("gpu", [16.0, 16.0, 2.5, 32.0, 32.0]).ask("pcie-link")[0].state, State::Pass);
        assert_eq!(device("nic", [16.0, 16.0, 16.0, 32.0, 32.0]).ask("pcie-link")[0].state, State::Fail);
        assert_eq!(device("nic", [16.0, 16.0, 16.0, 32.0, 16.0]).ask("pcie-link")[0].state, State::Pass);
        let mut virtual_disk = Fleet::new(1, "pcie", &[("device.0000:00:03.0.kind", text("nvme"))]);
        virtual_disk.set(0, "pcie", "device.0000:00:03.0.width", absent());
        assert_eq!(virtual_disk.ask("pcie-link")[0].state, State::NotApplicable);
    }

    #[test]
    fn errors_are_counted_per_device() {
        let mut fleet = device("nvme", [4.0, 4.0, 16.0, 16.0, 16.0]);
        assert_eq!(fleet.ask("pcie-uncorrected")[0].state, State::NotApplicable);
        fleet.set(0, "pcie", "device.0000:81:00.0.aer.fatal", number(0.0));
        fleet.set(0, "pcie", "device.0000:81:00.0.aer.nonfatal", number(2.0));
        fleet.set(0, "pcie", "device.0000:81:00.0.aer.correctable", number(2000.0));
        assert_eq!(fleet.ask("pcie-uncorrected")[0].said, "nvme 0000:81:00.0: 2 since boot");
        assert_eq!(fleet.ask("pcie-corrected")[0].state, State::Warn);
    }

    #[test]
    fn translation_and_acs_matter_on_bare_metal_with_gpus() {
        let mut fleet = device("gpu", [16.0, 16.0, 32.0, 32.0, 32.0]);
        fleet.set(0, "cpu", "flags", text("avx2 aes"));
        assert_eq!(fleet.ask("iommu")[0].said, "IOMMU type DMA-FQ");
        assert_eq!(fleet.ask("acs")[0].state, State::NotApplicable);
        fleet.set(0, "pcie", "device.0000:80:01.0.acs", Reading::Value(Datum::Flag(true)));
        assert_eq!(fleet.ask("acs")[0].said, "on at 1 of 1 bridges: 0000:80:01.0");
        fleet.deny(0, "pcie", "device.0000:80:01.0.acs");
        assert_eq!(fleet.ask("acs")[0].state, State::Unknown);
        fleet.set(0, "cpu", "flags", text("avx2 hypervisor"));
        assert_eq!(fleet.ask("iommu")[0].state, State::NotApplicable);
    }
}
