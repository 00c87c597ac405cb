//! Who wrote a line, by how it begins.

use std::sync::LazyLock;

use regex::Regex;

/// Who wrote a line, as far as its beginning says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Rank in the job: `[rank4]:` of PyTorch, `4: ` of `srun --label`, `[1,4]<stdout>` of Open MPI.
    pub rank: Option<u32>,
    /// Rank on its node: `[default4]:` of torchrun.
    pub local_rank: Option<u32>,
    /// Host: of an NCCL line, or of syslog.
    pub host: Option<String>,
    /// Process, of an NCCL line.
    pub pid: Option<u32>,
    /// Thread, of an NCCL line.
    pub tid: Option<u32>,
    /// GPU by its index in the process, of an NCCL line.
    pub gpu: Option<u32>,
}

/// Bytes of a line in which its beginning lies.
const HEAD: usize = 256;

static NCCL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?:^|[\s\]:])(?P<host>[A-Za-z0-9][A-Za-z0-9._-]*):(?P<pid>\d{1,10}):(?P<tid>\d{1,10}) \[(?P<gpu>\d{1,3})\] (?:\S+:\d+ )?(?:\(?\w+\)? )?NCCL ",
    )
    .ok()
});
static RANK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?:\[[^\]]{1,40}\] ?|\S{1,40} ){0,3}?\[rank(?P<rank>\d{1,7})\]:").ok());
static LOCAL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\[(?:default|[a-z]+)(?P<local>\d{1,4})\]:").ok());
static LABEL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?:\s{0,6}(?P<srun>\d{1,7}): |\[\d+,(?P<mpi>\d{1,7})\](?:<[a-z]+>)?:)").ok());
static SYSLOG: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) (?P<host>[A-Za-z0-9][A-Za-z0-9._-]*) \S+?(?:\[\d+\])?: ").ok()
});

impl Origin {
    /// Reads the beginning of a line.
    #[must_use]
    pub fn of(line: &str) -> Self {
        let head = &line[..line.floor_char_boundary(HEAD)];
        let mut origin = Self::default();
        let number = |regex: &Option<Regex>, names: &[&str]| -> Option<u32> {
            let captures = regex.as_ref()?.captures(head)?;
            names.iter().find_map(|name| captures.name(name)).and_then(|found| found.as_str().parse().ok())
        };
        origin.rank = number(&RANK, &["rank"]).or_else(|| number(&LABEL, &["srun", "mpi"]));
        if origin.rank.is_none() {
            origin.local_rank = number(&LOCAL, &["local"]);
        }
        if let Some(captures) = NCCL.as_ref().and_then(|nccl| nccl.captures(head)) {
            let number = |name: &str| captures.name(name).and_then(|found| found.as_str().parse().ok());
            origin.host = captures.name("host").map(|host| host.as_str().to_owned());
            (origin.pid, origin.tid, origin.gpu) = (number("pid"), number("tid"), number("gpu"));
        } else if let Some(captures) = SYSLOG.as_ref().and_then(|syslog| syslog.captures(head)) {
            origin.host = captures.name("host").map(|host| host.as_str().to_owned());
        }
        origin
    }
}

#[cfg(test)]
mod tests {
    use super::Origin;

    #[test]
    fn the_beginning_of_a_line_names_its_writer() {
        let nccl = Origin::of("[2026-01-06 20:12:28.100] w083:675095:675132 [3] NCCL INFO x");
        assert_eq!(
            (nccl.host.as_deref(), nccl.pid, nccl.tid, nccl.gpu),
            (Some("w083"), Some(675_095), Some(675_132), Some(3))
        );
        assert_eq!(Origin::of("[rank12]:[E817 17:40:34.2 ProcessGroupNCCL.cpp:1515] x").rank, Some(12));
        assert_eq!(Origin::of("[2026-01-06 06:51:53.735] [rank7]:[E106 06:51 x.cpp:1] x").rank, Some(7));
        assert_eq!(Origin::of("3: Traceback (most recent call last):").rank, Some(3));
        assert_eq!(Origin::of("[1,5]<stderr>:w1:1:2 [0] NCCL INFO x").rank, Some(5));
        assert_eq!(Origin::of("[default4]:W0101 x").local_rank, Some(4));
        assert_eq!(Origin::of("Dec  2 11:38:47 gpu-7 kernel: [  219.4] NVRM: x").host.as_deref(), Some("gpu-7"));
        assert_eq!(Origin::of("nothing of the kind"), Origin::default());
        assert_eq!(Origin::of("10:20:30 [0] x").host, None);
    }
}
