//! Gives a node RDMA adapters that exist in tests only: what the kernel would show of them, and a libibverbs that has them.

use anyhow::{Context, Result};

use crate::node::Node;

/// Where the library lies on a node.
const FOLDER: &str = "/usr/local/verbs";
const CLASS: &str = "/sys/class/infiniband";

/// An adapter with one port.
#[derive(Clone, Copy, Debug)]
pub struct Adapter {
    /// Its name.
    pub name: &'static str,
    /// `InfiniBand` or `Ethernet`.
    pub layer: &'static str,
    /// As the kernel shows it: `4: ACTIVE`.
    pub state: &'static str,
}

/// The libibverbs that cargo built beside the dependencies of a test.
///
/// # Panics
/// When it is not there.
#[must_use]
pub fn verbs_library() -> Vec<u8> {
    let built = std::env::current_exe().expect("a running test").with_file_name("libmuster_verbs.so");
    std::fs::read(&built).unwrap_or_else(|why| panic!("{}: {why}", built.display()))
}

impl Node {
    /// Shows adapters where the kernel shows them. Their counters are files that a process of the node may write.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn show_adapters(&self, adapters: &[Adapter]) -> Result<()> {
        // The other classes stay as they are.
        self.sh(
            "mkdir -p /tmp/class; mount --bind /sys/class /tmp/class; mount -t tmpfs class /sys/class; \
             for d in /tmp/class/*; do n=/sys/class/${d##*/}; mkdir $n; mount --bind $d $n; done; umount -l /tmp/class",
        )?;
        for Adapter { name, layer, state } in adapters {
            let port = format!("{CLASS}/{name}/ports/1");
            let gid = "0000:0000:0000:0000:0000:ffff:0a09:0001";
            self.sh(&format!(
                "mkdir -p {port}/gids {port}/gid_attrs/types {port}/counters {port}/hw_counters; cd {port}; \
                 echo '1: CA' > {CLASS}/{name}/node_type; echo '{state}' > state; echo '5: LinkUp' > phys_state; \
                 echo {layer} > link_layer; echo '400 Gb/sec (4X NDR)' > rate; echo {gid} > gids/3; \
                 echo 'RoCE v2' > gid_attrs/types/3; echo 0 > counters/symbol_error; echo 7 > hw_counters/packet_seq_err; chmod a+w hw_counters/*"
            ))?;
        }
        Ok(())
    }

    /// Puts `library` where programs of a login find it as libibverbs, with settings that it reads.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn drive_adapters(&self, library: &[u8], settings: &str) -> Result<()> {
        self.sh(&format!("mkdir -p {FOLDER}"))?;
        self.put(&format!("{FOLDER}/libibverbs.so.1"), library)?;
        self.put(&format!("{FOLDER}/libibverbs.conf"), settings.as_bytes())?;
        self.sshd(&format!("SetEnv LD_LIBRARY_PATH={FOLDER}")).context("sshd with adapters")
    }
}
