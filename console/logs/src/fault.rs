//! What exactly is wrong with a suspect, where that decides what is to be done: finer than its category.

use serde::{Deserialize, Serialize};

/// What exactly is wrong. Log rules name it as `fault = "out-of-memory"`; what is done about each stands in `action` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// A signal stopped the process (SIGSTOP, SIGTSTP).
    Stopped,
    /// A debugger holds the process.
    Traced,
    /// The process's control group is frozen.
    Frozen,
    /// The kernel or the scheduler ended the process for lack of memory.
    OutOfMemory,
    /// A file system is full, or a quota used up.
    DiskFull,
    /// A mounted file system does not answer.
    MountHangs,
    /// A local disk, or the file system on it, does not answer.
    DiskStalls,
    /// A local disk fails to read or write, or the file system on it is damaged.
    DiskBroken,
    /// The node cannot be reached over the network.
    Unreachable,
    /// A GPU that the machine cannot reach any more: it cannot be reset either.
    GpuOffBus,
    /// The processor inside a GPU does not answer.
    GpuFirmware,
    /// An AMD GPU failed or does not answer: AMD's tools reset it.
    AmdGpu,
    /// An `NVLink` failed.
    NvLink,
    /// A switch between the GPUs is missing.
    SwitchMissing,
    /// The firmware of a network adapter failed.
    AdapterFirmware,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Stopped,
        Self::Traced,
        Self::Frozen,
        Self::OutOfMemory,
        Self::DiskFull,
        Self::MountHangs,
        Self::DiskStalls,
        Self::DiskBroken,
        Self::Unreachable,
        Self::GpuOffBus,
        Self::GpuFirmware,
        Self::AmdGpu,
        Self::NvLink,
        Self::SwitchMissing,
        Self::AdapterFirmware,
    ];
}

/// A fault, with what an action needs to name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// What exactly is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// The process by its number on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The file, folder or mount that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl From<Option<Fault>> for Cause {
    fn from(fault: Option<Fault>) -> Self {
        Self { fault, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_alone_is_a_cause_without_process_and_path() {
        let of = |fault| Cause::from(fault);
        assert_eq!(of(Some(Fault::DiskFull)), Cause { fault: Some(Fault::DiskFull), pid: None, path: None });
        assert_eq!(of(None), Cause::default());
    }
}
