//! The worker's executable: carried in this one, put into memory or a file, gone with the probe.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};

use super::{libraries, node};

static WORKER: &[u8] = include_bytes!(env!("MUSTER_GPU_PATH"));

/// An executable that lives as long as this value, whatever happens to the probe.
pub(super) struct Program {
    path: PathBuf,
    /// Where NVIDIA's libraries beside the driver's lie.
    libraries: OsString,
    /// Keeps what no folder knows any more.
    _executable: OwnedFd,
}

impl Program {
    /// Puts the worker where it can be executed; a sentence when that is nowhere.
    pub(super) fn new() -> Result<Self, String> {
        if WORKER.is_empty() {
            return Err("this probe was built without its GPU worker".to_owned());
        }
        let tried = Self::in_memory(WORKER).and_then(Self::tried);
        tried
            .or_else(|_| Self::in_file(WORKER, &folders()))
            .map_err(|why| format!("the GPU worker cannot be started here: {why}"))
    }

    fn in_memory(worker: &[u8]) -> io::Result<Self> {
        // Kernels from 6.3 on may demand the flag, older ones do not know it.
        let fd = memfd_create("muster-gpu", MemfdFlags::CLOEXEC | MemfdFlags::EXEC)
            .or_else(|_| memfd_create("muster-gpu", MemfdFlags::CLOEXEC))?;
        let mut file = File::from(fd);
        file.write_all(worker)?;
        Ok(Self::held(file))
    }

    fn held(executable: File) -> Self {
        let executable = OwnedFd::from(executable);
        let path = PathBuf::from(format!("/proc/self/fd/{}", executable.as_raw_fd()));
        Self { path, libraries: libraries::list(), _executable: executable }
    }

    /// Where memory may not be executed: in the first of `folders` that takes an executable.
    fn in_file(worker: &[u8], folders: &[PathBuf]) -> io::Result<Self> {
        let mut last = io::Error::other("no folder for it");
        for folder in folders {
            let path = folder.join(format!("muster-gpu-{}", std::process::id()));
            let made = OpenOptions::new().write(true).create_new(true).mode(0o700).open(&path);
            let written = made.and_then(|mut file| {
                let written = file.write_all(worker).and_then(|()| File::open(&path));
                // A file that is open for writing is not executed; one that is open for reading needs no name.
                drop(file);
                let _ = fs::remove_file(&path);
                Self::held(written?).tried()
            });
            match written {
                Ok(program) => return Ok(program),
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
        self.start_with(arguments, Stdio::null(), None)
    }

    /// The same for one that reads orders, and has a variable more in its environment.
    pub(super) fn start_with(
        &self,
        arguments: &[String],
        orders: Stdio,
        variable: Option<(&str, String)>,
    ) -> io::Result<Child> {
        let mut command = Command::new(&self.path);
        command.args(arguments).stdin(orders).stdout(Stdio::piped()).stderr(Stdio::null());
        // GPUs are numbered as nvidia-smi and the PCI bus number them.
        command.env("CUDA_DEVICE_ORDER", "PCI_BUS_ID").env(libraries::VARIABLE, &self.libraries).envs(variable);
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

/// Where an executable may lie.
fn folders() -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()));
    let common = ["/dev/shm", "/tmp", "/var/tmp"].map(PathBuf::from);
    own.into_iter().chain(common).chain(beside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn true_program() -> Vec<u8> {
        fs::read("/bin/true").unwrap()
    }

    #[test]
    fn an_executable_runs_from_memory() {
        let program = Program::in_memory(&true_program()).and_then(Program::tried).unwrap();
        assert!(program.start(&[]).unwrap().wait().unwrap().success());
    }

    #[test]
    fn a_file_in_the_first_folder_that_takes_one_stands_in_and_is_never_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let folders = [PathBuf::from("/nowhere"), PathBuf::from("/proc"), dir.path().to_owned()];
        let program = Program::in_file(&true_program(), &folders).unwrap();
        assert!(program.start(&[]).unwrap().wait().unwrap().success());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_cannot_run_anywhere_leaves_no_file_and_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let failed = Program::in_file(b"no program", &[dir.path().to_owned()]).err().unwrap();
        assert_eq!(failed.raw_os_error(), Some(8), "{failed}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
