//! How many files may this process have open, and thus how many connections?

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::transport::Transport;

/// Files that are open beside the connections: database, logs, jump hosts.
const OTHER_FILES: usize = 128;

/// Connections that may be open at the same time. The limit on files is raised as far as it goes: a node that only measures
/// holds a connection and nothing else.
pub(crate) fn connections(transport: Transport) -> usize {
    let files = raise_files();
    // The system's ssh, and srun, take three pipes for each node.
    let each = if matches!(transport, Transport::OpenSsh | Transport::Slurm) { 4 } else { 1 };
    files.saturating_sub(OTHER_FILES) / each
}

/// Raises the limit on files that this process may have open as far as it goes, and gives it.
pub(crate) fn raise_files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    let files = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    usize::try_from(files.unwrap_or(u64::MAX)).unwrap_or(usize::MAX)
}
