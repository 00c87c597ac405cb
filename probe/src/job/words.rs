//! Which words of a process's environment and command line may be told, and what rank they give it.

use std::collections::BTreeMap;

use muster_wire::clean;

/// Variables that are told, by their names.
const TOLD: [&str; 25] = [
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "NODE_RANK",
    "GROUP_RANK",
    "ROLE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_NTASKS",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "PMI_RANK",
    "PMI_SIZE",
    "PMIX_RANK",
    "MPI_LOCALRANKID",
    "CUDA_VISIBLE_DEVICES",
    "TORCHELASTIC_RUN_ID",
    "TZ",
];
/// Families of variables that are told.
const FAMILIES: [&str; 2] = ["NCCL_", "TORCH_"];
/// Parts of names whose values nobody else may see.
const SECRET: [&str; 9] = ["SECRET", "TOKEN", "PASSW", "KEY", "CRED", "AUTH", "COOKIE", "SESSION", "SIGNATURE"];
const RANK: [&str; 5] = ["RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"];
const WORLD: [&str; 4] = ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"];
const LOCAL: [&str; 4] = ["LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"];
/// Bytes of one value, and of a command line.
const VALUE: usize = 512;
const COMMAND: usize = 1_000;
/// Variables that are told of one process.
const MOST: usize = 200;
/// Largest rank that is one.
const RANKS: u32 = 1 << 20;

/// The variables of an environment, which separates them by zeros, that may be told.
pub(super) fn told(environment: &str) -> BTreeMap<String, String> {
    let pairs = environment.split('\0').filter_map(|pair| pair.split_once('='));
    let may = |name: &str| {
        let upper = name.to_ascii_uppercase();
        let known = TOLD.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family));
        known && !SECRET.iter().any(|part| upper.contains(part))
    };
    let may_be_told = pairs.filter(|(name, _)| may(name)).take(MOST);
    may_be_told.map(|(name, value)| (clean(name, 96), clean(&without_login(value), VALUE))).collect()
}

/// Rank, what tells it, rank on the node, and ranks of the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) rank: Option<u32>,
    pub(super) from: Option<String>,
    pub(super) local: Option<u32>,
    pub(super) world: Option<u32>,
}

impl Place {
    /// By the environment, or else by the command line.
    pub(super) fn of(words: &BTreeMap<String, String>, arguments: &[String]) -> Self {
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|rank| *rank < RANKS);
        let first = |names: &[&'static str]| names.iter().find_map(|name| Some((*name, number(words.get(*name)?)?)));
        let option = |names: &[&str]| names.iter().find_map(|name| number(&argument(arguments, name)?));
        let rank = first(&RANK).map(|(name, rank)| (rank, name.to_owned()));
        let rank = rank.or_else(|| Some((option(&["--rank"])?, "command line".to_owned())));
        Self {
            from: rank.as_ref().map(|(_, from)| from.clone()),
            rank: rank.map(|(rank, _)| rank),
            local: first(&LOCAL).map(|(_, local)| local).or_else(|| option(&["--local-rank", "--local_rank"])),
            world: first(&WORLD)
                .map(|(_, world)| world)
                .or_else(|| option(&["--world", "--world-size", "--world_size"])),
        }
    }

    /// Whether it is certain enough to take a process for a rank that nobody named: both numbers, by variables that only ranks have.
    pub(super) fn is_told(&self) -> bool {
        self.rank.is_some() && self.world.is_some_and(|world| world > 1) && self.from.as_deref() != Some("command line")
    }
}

/// The value of an option, written in either form.
pub(super) fn argument(arguments: &[String], name: &str) -> Option<String> {
    arguments.iter().enumerate().find_map(|(at, word)| match word.strip_prefix(name)? {
        "" => arguments.get(at + 1).cloned(),
        rest => rest.strip_prefix('=').map(str::to_owned),
    })
}

/// Whether it is a rank of muster's own training.
pub(super) fn is_own(arguments: &[String]) -> bool {
    arguments.get(1).is_some_and(|verb| verb == "train-ddp")
}

/// A command line for people: without what looks like a secret, and cut.
pub(super) fn shown(arguments: &[String]) -> String {
    let is_secret = |name: &str| {
        let upper = name.to_ascii_uppercase();
        SECRET.iter().any(|part| upper.contains(part))
    };
    let mut line = String::new();
    let mut hide = false;
    for word in arguments {
        if !line.is_empty() {
            line.push(' ');
        }
        let option = word.starts_with('-');
        if std::mem::take(&mut hide) && !option {
            line.push('…');
        } else if let Some((name, _)) = word.split_once('=').filter(|(name, _)| is_secret(name)) {
            line.push_str(name);
            line.push_str("=…");
        } else {
            hide = option && is_secret(word);
            line.push_str(&without_login(word));
        }
        if line.len() > COMMAND {
            break;
        }
    }
    clean(&line, COMMAND)
}

/// `https://user:word@host/` without the user and the word.
fn without_login(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://…{}", &rest[at..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn only_words_that_tell_a_place_are_told_and_no_secret() {
        let environment = "HOME=/root\0RANK=3\0NCCL_DEBUG=INFO\0NCCL_API_KEY=x\0TORCH_FR_DUMP_TEMP_FILE=/tmp/t_\0AWS_SECRET_ACCESS_KEY=y\0MASTER_ADDR=n1\0MUSTER_DDP_SECRET=z\0";
        let told = told(environment);
        let names: Vec<&str> = told.keys().map(String::as_str).collect();
        assert_eq!(names, ["MASTER_ADDR", "NCCL_DEBUG", "RANK", "TORCH_FR_DUMP_TEMP_FILE"]);
    }

    #[test]
    fn the_rank_of_the_job_comes_before_that_of_the_scheduler() {
        let environment = told("SLURM_PROCID=1\0SLURM_NTASKS=2\0RANK=11\0LOCAL_RANK=3\0WORLD_SIZE=16");
        let place = Place::of(&environment, &[]);
        assert_eq!((place.rank, place.local, place.world), (Some(11), Some(3), Some(16)));
        assert_eq!(place.from.as_deref(), Some("RANK"));
        assert!(place.is_told());
        let place = Place::of(&BTreeMap::new(), &words("muster-probe train-ddp --rank 5 --world=8"));
        assert_eq!((place.rank, place.world, place.is_told()), (Some(5), Some(8), false));
        assert_eq!(Place::of(&told("RANK=4294967295"), &[]).rank, None);
    }

    #[test]
    fn a_command_line_hides_what_looks_like_a_secret() {
        let line =
            words("python train.py --api-key abc --hf_token=def --lr 0.1 https://me:pw@host/x TOKEN=1 --secret --fast");
        assert_eq!(
            shown(&line),
            "python train.py --api-key … --hf_token=… --lr 0.1 https://…@host/x TOKEN=… --secret --fast"
        );
    }
}
