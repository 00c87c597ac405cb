//! A block device for one node: a sparse file behind a loop device, with ext4 on it.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::shell::run;

/// A loop device; gone when dropped.
#[derive(Debug)]
pub struct Disk {
    file: PathBuf,
    device: String,
}

impl Disk {
    /// Makes one of `megabytes` with its file in `dir`.
    ///
    /// # Errors
    /// When the system has no loop device left or refuses one.
    pub fn new(dir: &Path, name: &str, megabytes: u64) -> Result<Self> {
        let file = dir.join(format!("{name}.img"));
        File::create(&file)?.set_len(megabytes << 20)?;
        let path = file.display().to_string();
        run(&["mkfs.ext4", "-q", "-O", "^has_journal", "-E", "lazy_itable_init=0", &path])?;
        let device = run(&["losetup", "--find", "--show", &path])?.trim().to_owned();
        Ok(Self { file, device })
    }

    /// Path such as `/dev/loop0`.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// `major:minor`.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn number(&self) -> Result<String> {
        Ok(run(&["lsblk", "-ndo", "MAJ:MIN", &self.device])?.trim().to_owned())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = run(&["losetup", "--detach", &self.device]);
        let _ = std::fs::remove_file(&self.file);
    }
}
