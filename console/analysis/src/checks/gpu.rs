//! Do bus, driver and device files agree on the GPUs? What only NVML tells is not asked here.

use super::check::{Ask, Found};
use super::compare::{Count, Lacking, Same};
use super::{Check, Gap, NodeFacts, Policy, Severity};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "gpu-count",
        area: "gpu",
        title: "as many GPUs on the bus as expected",
        severity: Severity::Critical,
        source: "AzNHC check_gpu_count (8); GCM --gpu_num; NVIDIA/aicr#1858",
        next: "look for Xid 79 in the kernel log and for the GPU in lspci; power-cycle, then have it reseated",
        needs: &["gpu"],
        ask: Ask::Count(Count { collector: "gpu", key: "gpus", expect: "gpus", per: 1.0, tolerance: None }),
    },
    Check {
        id: "gpu-driver",
        area: "gpu",
        title: "the driver is loaded and drives every GPU on the bus",
        severity: Severity::Critical,
        source: "soperator PR#2684; DCGM level 1",
        next: "dmesg | grep NVRM names the GPU that did not come up; reload the driver or power-cycle",
        needs: &["gpu"],
        ask: Ask::Node(driver),
    },
    Check {
        id: "gpu-device-files",
        area: "gpu",
        title: "a device file for every GPU that the driver drives",
        severity: Severity::Critical,
        source: "DCGM 20",
        next: "nvidia-modprobe -u -c 0, or start nvidia-persistenced, which makes them at boot",
        needs: &["gpu"],
        ask: Ask::Node(device_files),
    },
    Check {
        id: "gpu-driver-consistent",
        area: "gpu",
        title: "driver, model and video BIOS are those of the group",
        severity: Severity::Warn,
        source: "imbue (vbios); GCM --gpu_vbios",
        next: "install the driver of the others; have a GPU of another BIOS updated",
        needs: &["gpu"],
        ask: Ask::Equal(&[
            Same { collector: "gpu", key: "driver.version", lacking: Lacking::Differs },
            Same { collector: "gpu", key: "gpu.*.model", lacking: Lacking::Skipped },
            Same { collector: "gpu", key: "gpu.*.vbios", lacking: Lacking::Skipped },
            Same { collector: "gpu", key: "gpu.*.firmware", lacking: Lacking::Skipped },
        ]),
    },
    Check {
        id: "nouveau",
        area: "gpu",
        title: "the nouveau driver is not loaded",
        severity: Severity::Critical,
        source: "DCGM 23",
        next: "blacklist nouveau, rebuild the initial ram disk and reboot",
        needs: &["gpu"],
        ask: Ask::Node(nouveau),
    },
    Check {
        id: "peermem",
        area: "gpu",
        title: "GPU memory can be reached over RDMA: nvidia-peermem is loaded",
        severity: Severity::Warn,
        source: "gpud peermem; AWS",
        next: "modprobe nvidia-peermem, unless the applications use dma-buf",
        needs: &["gpu", "infiniband"],
        ask: Ask::Node(peermem),
    },
];

fn gpus(node: &NodeFacts<'_>) -> Result<f64, Gap> {
    match node.number("gpu", "gpus") {
        Err(Gap::Absent(_)) => Err(Gap::Absent("no NVIDIA GPU on the bus".to_owned())),
        read => read,
    }
}

fn driver(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    let on_bus = gpus(node)?;
    let driven = match node.number("gpu", "driver.gpus") {
        Err(Gap::Absent(_)) => return Ok(Found::fail(format!("{on_bus:.0} GPUs on the bus and no driver loaded"))),
        read => read?,
    };
    let said = format!("{driven:.0} of {on_bus:.0} GPUs are driven");
    Ok(if driven < on_bus { Found::fail(said) } else { Found::pass(said) })
}

fn device_files(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    gpus(node)?;
    let driven = node.number("gpu", "driver.gpus")?;
    let files = match node.number("gpu", "device_files") {
        Err(Gap::Absent(_)) => 0.0,
        read => read?,
    };
    let said = format!("{files:.0} of /dev/nvidia[0-9]+ for {driven:.0} GPUs");
    Ok(if files < driven { Found::fail(said) } else { Found::pass(said) })
}

fn nouveau(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    gpus(node)?;
    Ok(if node.flag("gpu", "nouveau")? { Found::fail("nouveau is loaded") } else { Found::pass("not loaded") })
}

fn peermem(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    gpus(node)?;
    match node.number("infiniband", "devices") {
        Ok(devices) if devices > 0.0 => {}
        Ok(_) | Err(Gap::Absent(_)) => return Ok(Found::not_applicable("no RDMA device")),
        Err(gap) => return Err(gap),
    }
    Ok(if node.flag("gpu", "peermem")? { Found::pass("loaded") } else { Found::warn("not loaded") })
}

#[cfg(test)]
mod tests {
    use muster_wire::{Datum, Reading};

    use crate::State;
    use crate::checks::testing::{Fleet, absent, number};

    #[test]
    fn seven_of_eight_gpus_are_seen_on_the_bus_in_the_driver_and_among_the_files() {
        let facts = [("gpus", number(8.0)), ("driver.gpus", number(8.0)), ("device_files", number(8.0))];
        let mut fleet = Fleet::new(4, "gpu", &facts);
        fleet.set(1, "gpu", "gpus", number(7.0));
        fleet.set(2, "gpu", "driver.gpus", number(7.0));
        fleet.set(3, "gpu", "device_files", absent());
        assert_eq!(fleet.ask("gpu-count")[1].said, "gpus: 7, 3 of 4 nodes have 8");
        assert_eq!(fleet.ask("gpu-driver")[2].said, "7 of 8 GPUs are driven");
        assert_eq!(fleet.ask("gpu-device-files")[3].said, "0 of /dev/nvidia[0-9]+ for 8 GPUs");
        fleet.set(0, "gpu", "driver.gpus", absent());
        assert_eq!(fleet.ask("gpu-driver")[0].said, "8 GPUs on the bus and no driver loaded");
    }

    #[test]
    fn a_node_without_gpus_is_asked_nothing_unless_some_are_expected() {
        let mut fleet = Fleet::new(1, "gpu", &[("gpus", absent())]);
        for id in ["gpu-count", "gpu-driver", "gpu-device-files", "nouveau", "peermem"] {
            assert_eq!(fleet.ask(id)[0].state, State::NotApplicable, "{id}");
        }
        fleet.label(0, "gpus", "8");
        let found = fleet.ask("gpu-count").remove(0);
        assert_eq!((found.state, found.said.as_str()), (State::Fail, "gpus: 8 expected, there is no gpus here"));
    }

    #[test]
    fn the_wrong_driver_fails_and_a_missing_peermem_warns() {
        let flag = |flag| Reading::Value(Datum::Flag(flag));
        let facts = [("gpus", number(8.0)), ("nouveau", flag(true)), ("peermem", flag(false))];
        let mut fleet = Fleet::new(1, "gpu", &facts);
        fleet.set(0, "infiniband", "devices", number(8.0));
        assert_eq!(fleet.ask("nouveau")[0].state, State::Fail);
        assert_eq!(fleet.ask("peermem")[0].state, State::Warn);
    }
}
