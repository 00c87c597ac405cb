//! The worker's executable: carried in this one, put into memory or a file, gone with the probe.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};

use super::node;

static WORKER: &[u8] = include_bytes!(env!("MUSTER_GPU_PATH"));

/// An executable that lives as long as this value.
pub(super) struct Program {
    path: PathBuf,
    /// Keeps an executable in memory alive.
    _memory: Option<OwnedFd>,
    file: bool,
}

impl Program {
    /// Puts the worker where it can be executed; a sentence when that is nowhere.
    pub(super) fn new() -> Result<Self, String> {
        if WORKER.is_empty() {
            return Err("this probe was built without its GPU worker".to_owned());
        }
        let tried = Self::in_memory().and_then(Self::tried).or_else(|_| Self::in_file().and_then(Self::tried));
        tried.map_err(|why| format!("the GPU worker cannot be started here: {why}"))
    }

    fn in_memory() -> io::Result<Self> {
        // Kernels from 6.3 on may demand the flag, older ones do not know it.
        let fd = memfd_create("muster-gpu", MemfdFlags::CLOEXEC | MemfdFlags::EXEC)
            .or_else(|_| memfd_create("muster-gpu", MemfdFlags::CLOEXEC))?;
        let mut file = File::from(fd);
        file.write_all(WORKER)?;
        let fd = OwnedFd::from(file);
        let path = PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        Ok(Self { path, _memory: Some(fd), file: false })
    }

    /// Where memory may not be executed: the first folder that takes an executable.
    fn in_file() -> io::Result<Self> {
        let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()));
        let common = ["/dev/shm", "/tmp", "/var/tmp"].map(PathBuf::from);
        let mut last = io::Error::other("no folder for it");
        for folder in own.into_iter().chain(common).chain(beside) {
            let path = folder.join(format!("muster-gpu-{}", std::process::id()));
            let made = OpenOptions::new().write(true).create_new(true).mode(0o700).open(&path);
            match made.and_then(|mut file| file.write_all(WORKER)) {
                Ok(()) => {
                    let program = Self { path, _memory: None, file: true };
                    match program.tried() {
                        Ok(program) => return Ok(program),
                        Err(error) => last = error,
                    }
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Starts it once without work: some systems refuse only then.
    fn tried(self) -> io::Result<Self> {
        self.start(&[]).and_then(|mut child| child.wait())?;
        Ok(self)
    }

    /// Starts the worker; its frames come on its standard output.
    pub(super) fn start(&self, arguments: &[String]) -> io::Result<Child> {
        let mut command = Command::new(&self.path);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        // GPUs are numbered as nvidia-smi and the PCI bus number them.
        command.env("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
        if let Some(folder) = node::library_folder() {
            let given = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
            let folders = std::env::split_paths(&given).chain([folder]).filter(|f| !f.as_os_str().is_empty());
            if let Ok(path) = std::env::join_paths(folders) {
                command.env("LD_LIBRARY_PATH", path);
            }
        }
        command.spawn()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.file {
            let _ = fs::remove_file(&self.path);
        }
    }
}
