//! Gives a node GPUs that a driver library simulates, or the signs of a GPU without one.

use anyhow::{Context, Result};

use crate::node::Node;

/// Where the simulated driver lies on a node.
const FOLDER: &str = "/usr/local/simulated";

/// The driver library that cargo built beside the dependencies of a test.
///
/// # Panics
/// When it is not there.
#[must_use]
pub fn simulated_driver() -> Vec<u8> {
    let built = std::env::current_exe().expect("a running test").with_file_name("libmuster_ptxsim.so");
    std::fs::read(&built).unwrap_or_else(|why| panic!("{}: {why}", built.display()))
}

impl Node {
    /// Puts `library` where programs of a login find it as the NVIDIA driver's, as its management library and as NCCL, with
    /// settings that it reads.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn drive_gpus(&self, library: &[u8], settings: &str) -> Result<()> {
        self.sh(&format!("mkdir -p {FOLDER}"))?;
        self.put(&format!("{FOLDER}/libcuda.so.1"), library)?;
        self.sh(&format!("cp {FOLDER}/libcuda.so.1 {FOLDER}/libnvidia-ml.so.1"))?;
        for other in ["libnccl.so.2", "libcublas.so.12", "libcudnn.so.9"] {
            self.sh(&format!("ln -s libcuda.so.1 {FOLDER}/{other}"))?;
        }
        self.set_gpus(settings)?;
        self.sshd(&format!("SetEnv LD_LIBRARY_PATH={FOLDER}")).context("sshd with a driver")
    }

    /// Gives its GPUs other settings.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn set_gpus(&self, settings: &str) -> Result<()> {
        self.put(&format!("{FOLDER}/libcuda.conf"), settings.as_bytes())
    }

    /// Takes one of NVIDIA's libraries away, such as `libnccl.so.2`.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn remove_library(&self, name: &str) -> Result<()> {
        self.sh(&format!("rm {FOLDER}/{name}")).map(drop)
    }

    /// Forbids to execute what lies in memory alone; nothing where the kernel has no such switch.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn forbid_memory_execution(&self) -> Result<()> {
        self.sh("f=/proc/sys/vm/memfd_noexec; [ ! -e $f ] || echo 2 > $f").map(drop)
    }

    /// Shows an NVIDIA GPU on the bus.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn gpu_on_the_bus(&self) -> Result<()> {
        let device = "/sys/bus/pci/devices/0000:1b:00.0";
        let show = format!("mkdir -p {device}; echo 0x10de > {device}/vendor; echo 0x030200 > {device}/class");
        self.sh(&format!("mount -t tmpfs bus /sys/bus; {show}")).map(drop)
    }
}
