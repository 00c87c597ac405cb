//! What computes a rank's steps: one core by the CPU tape, or all GPUs of the node by the GPU worker. All ranks of a job have the
//! same, as other machine code may round otherwise, and then weights part.

use muster_tape::{Replica, Tape};
use muster_wire::Between;

use super::between::{agree, begin};
use super::board::Board;
use super::comm::Communicator;
use super::group::hash;
use super::log::Log;
use super::options::Part;
use super::step::Failure;
use super::train::unlike;
use crate::gpu::Training;
use crate::steps::Halt;
use crate::topology;

/// Fixed, so that every job does the same.
const SEED: u64 = 0x6d75_7374_6572;

pub(super) enum Engine<'a> {
    Core {
        replica: Box<Replica<'a>>,
        /// Numbers of the first batch, and of how many there are.
        batches: (u64, u64),
    },
    Gpus(Box<Training<'a>>),
}

/// What a rank's computing gave.
#[derive(Debug, Default)]
pub(super) struct Computed {
    /// Summed over batches.
    pub(super) loss: f32,
    /// How long each GPU took, seconds, where GPUs compute.
    pub(super) gpus_s: Vec<f64>,
}

/// What an update left behind.
#[derive(Debug)]
pub(super) struct Updated {
    /// A number of all bits of all weights.
    pub(super) weights: u64,
    /// Now and then, in the same steps on all ranks: what one batch gives on GPUs.
    pub(super) same: Option<String>,
}

/// The GPUs of this node, where all ranks have such as compute alike; else why not. With them comes how many batches all
/// ranks have.
pub(super) fn gpus<'a>(
    (board, part): (&'a Board, &Part),
    ring: &mut Communicator<'_>,
    log: Log,
) -> Result<Option<(Box<Training<'a>>, u64)>, Failure> {
    let (own, why) = match own_gpus(board, part) {
        Ok(training) => (Some(Box::new(training)), String::new()),
        Err(why) => (None, why),
    };
    let word = own.as_ref().map_or(0, |training| hash(&[training.code.as_bytes()]).max(1));
    let words = ring.all_gather(word).map_err(Failure::Trouble)?;
    let counts = ring.all_gather(own.as_ref().map_or(0, |own| own.gpus as u64)).map_err(Failure::Trouble)?;
    let Some(mut training) = own.filter(|_| words.iter().all(|one| *one == word)) else {
        let (ranks, why) = match words.iter().position(|one| *one != word) {
            _ if word == 0 => (vec![part.rank], why),
            Some(rank) if words[rank] == 0 => (vec![rank], format!("rank {rank} uses no GPU")),
            other => {
                let rank = other.unwrap_or(0);
                (vec![rank], format!("the GPUs of rank {rank} are of another kind or driver"))
            }
        };
        if part.between == Between::Nccl {
            return Err(Failure::Wrong(format!("NCCL between nodes was asked for, and CPUs compute: {why}"), ranks));
        }
        log.engine(None, &why);
        return Ok(None);
    };
    come_together((part, &counts), ring, &mut training, log)?;
    let first = counts[..part.rank].iter().sum();
    let same = training.begin(first).map_err(|halt| wrong(part.rank, &training, halt))?;
    alike(ring, &same, "before the first step")?;
    Ok(Some((training, counts.iter().sum())))
}

/// Settles by which way gradients get from node to node, and says it.
fn come_together(
    (part, counts): (&Part, &[u64]),
    ring: &mut Communicator<'_>,
    training: &mut Training<'_>,
    log: Log,
) -> Result<(), Failure> {
    let name = |training: &Training<'_>| format!("{}gpu-{}", training.gpus, training.engine);
    log.engine(Some(&name(training)), "");
    match agree(part, ring, training)? {
        Err(lacks) => log.between("tcp", Some(&lacks)),
        Ok(nccl) => {
            log.between(&nccl, None);
            begin(part, ring, training, counts)?;
            log.engine(Some(&name(training)), "");
        }
    }
    Ok(())
}

/// What one batch gives on the GPUs of each rank must be the same.
pub(super) fn alike(ring: &mut Communicator<'_>, same: &str, when: &str) -> Result<(), Failure> {
    let found = ring.all_gather(hash(&[same.as_bytes()])).map_err(Failure::Trouble)?;
    unlike_ranks(&found, when).map_or(Ok(()), |(why, odd)| Err(Failure::Wrong(why, odd)))
}

fn unlike_ranks(found: &[u64], when: &str) -> Option<(String, Vec<usize>)> {
    let odd = unlike(found);
    let what = format!("{when}, gradients of one batch");
    let why = match &odd[..] {
        [] if found.iter().all(|one| *one == found[0]) => return None,
        [] => format!("{what} differ between ranks, and no more than half of them agree"),
        odd => {
            let names: Vec<String> = odd.iter().map(ToString::to_string).collect();
            format!("{what} on all GPUs of rank {} are not those of the other ranks", names.join(", "))
        }
    };
    Some((why, odd))
}

fn own_gpus<'a>(board: &'a Board, part: &Part) -> Result<Training<'a>, String> {
    let why = match () {
        () if part.cpu => "--cpu",
        () if part.per_node > 1 => "several ranks of a node compute on its CPUs",
        () if part.checkpoint.is_some() => "checkpoints are of trainings on CPUs",
        () => {
            let address = (part.between != Between::Tcp).then(|| part.peers[part.rank].ip());
            return Training::start(part.model.name(), part.timeout, (&board.halt, address)).map_err(
                |halt| match halt {
                    Halt::NotApplicable(why) | Halt::NotRun(why) | Halt::Denied(why) | Halt::Failed(why) => why,
                    Halt::Stopped => "ended".to_owned(),
                },
            );
        }
    };
    Err(why.to_owned())
}

/// A GPU that is wrong, lost or hangs accuses its rank; who only waits for other ranks accuses nobody.
pub(super) fn wrong(rank: usize, training: &Training<'_>, halt: Halt) -> Failure {
    let Some(doing) = training.waiting() else { return own_fault(rank, halt) };
    match halt {
        Halt::Failed(why) | Halt::NotRun(why) => {
            // Whoever knows more says it first.
            if training.is_ended_meanwhile() {
                return Failure::Ended;
            }
            Failure::Wrong(
                format!(
                    "{doing}: {why}; every rank came to it, so one of them or the network that NCCL uses between them holds it up"
                ),
                Vec::new(),
            )
        }
        halt => own_fault(rank, halt),
    }
}

fn own_fault(rank: usize, halt: Halt) -> Failure {
    match halt {
        Halt::Failed(why) => Failure::Wrong(why, vec![rank]),
        Halt::NotRun(why) | Halt::Denied(why) | Halt::NotApplicable(why) => Failure::Exception(why),
        Halt::Stopped => Failure::Ended,
    }
}

impl<'a> Engine<'a> {
    /// The CPU tape.
    ///
    /// # Errors
    /// Without the memory for it.
    pub(super) fn core(tape: &'a Tape, part: &Part) -> Result<Self, Failure> {
        let (needed, free) = (tape.memory * size_of::<f32>(), topology::available_memory());
        if needed > free / 4 * 3 {
            let model = part.model.name();
            return Err(Failure::Start(format!(
                "{model} needs {} MB, and {} MB are available",
                needed >> 20,
                free >> 20
            )));
        }
        let replica = Replica::new(tape, SEED).map_err(|why| Failure::Start(why.to_string()))?;
        let batches = u64::from(part.batches);
        Ok(Self::Core { replica: Box::new(replica), batches: (part.rank as u64 * batches, batches) })
    }

    /// Numbers that are summed over all ranks.
    pub(super) fn numbers(&self) -> usize {
        match self {
            Self::Core { replica, .. } => replica.parameters(),
            Self::Gpus(training) => training.words,
        }
    }

    /// Adds the gradients of this rank's batches to `sums`.
    pub(super) fn backward(&mut self, sums: &mut [f32], rank: usize) -> Result<Computed, Failure> {
        match self {
            Self::Core { replica, batches: (first, count) } => {
                let mut loss = 0.0;
                for batch in *first..*first + *count {
                    replica.load(batch);
                    loss += replica.backward();
                    replica.gradients(sums);
                }
                Ok(Computed { loss, gpus_s: Vec::new() })
            }
            Self::Gpus(training) => {
                let (loss, gpus_s) = training.backward(sums).map_err(|halt| wrong(rank, training, halt))?;
                Ok(Computed { loss, gpus_s })
            }
        }
    }

    /// Updates weights by `gradients`.
    pub(super) fn update(&mut self, gradients: &[f32], rank: usize) -> Result<Updated, Failure> {
        match self {
            Self::Core { replica, .. } => {
                replica.update(gradients);
                Ok(Updated { weights: replica.fingerprint(), same: None })
            }
            Self::Gpus(training) => {
                let (weights, same) = training.update(gradients).map_err(|halt| wrong(rank, training, halt))?;
                Ok(Updated { weights, same })
            }
        }
    }

    /// Appends every weight, four bytes each; none where GPUs compute, of which no checkpoints are kept.
    pub(super) fn weights(&mut self, bytes: &mut Vec<u8>) {
        if let Self::Core { replica, .. } = self {
            replica.weights(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_whose_gpus_compute_otherwise_than_most_is_named_and_of_two_nobody_is() {
        assert_eq!(unlike_ranks(&[5, 5, 5], "then"), None);
        let (why, odd) = unlike_ranks(&[5, 6, 5], "then").unwrap();
        assert_eq!(odd, [1]);
        assert!(why.ends_with("on all GPUs of rank 1 are not those of the other ranks"), "{why}");
        let (why, odd) = unlike_ranks(&[5, 6], "then").unwrap();
        assert!(odd.is_empty() && why.ends_with("no more than half of them agree"), "{why}");
    }

    #[test]
    fn a_worker_that_names_a_gpu_accuses_its_rank_and_one_that_ends_otherwise_is_an_error_of_the_program() {
        let why = || "GPU 3: its gradients".to_owned();
        assert_eq!(own_fault(2, Halt::Failed(why())), Failure::Wrong(why(), vec![2]));
        assert_eq!(own_fault(2, Halt::NotRun(why())), Failure::Exception(why()));
        assert_eq!(own_fault(2, Halt::Stopped), Failure::Ended);
    }
}
