//! What does it mean when srun ends with these words?

use crate::link::FailureKind;

/// Words of srun and slurmstepd, what kind of failure they tell, and what it is in a sentence. The first row that fits counts.
const WORDS: &[(&str, FailureKind, &str)] = &[
    ("DUE TO TIME LIMIT", FailureKind::Cut, "Slurm's time limit ended the step"),
    ("DUE TO NODE FAILURE", FailureKind::LinkLost, "Slurm lost the node"),
    ("Node failure on", FailureKind::LinkLost, "Slurm lost the node"),
    ("CANCELLED AT", FailureKind::Cut, "Slurm cancelled the step (scancel, or the job ended)"),
    ("already completing or completed", FailureKind::Cut, "the Slurm job is over"),
    ("has been revoked", FailureKind::Cut, "the Slurm job is over"),
    ("xpired or invalid job", FailureKind::Cut, "the Slurm job is over"),
    ("Invalid job id", FailureKind::Cut, "the Slurm job is over"),
    ("Required node not available", FailureKind::Unreachable, "Slurm says the node is down, drained or reserved"),
    ("Requested nodes are busy", FailureKind::Unreachable, "Slurm has no room for a step on the node"),
    ("Task launch for", FailureKind::Unreachable, "Slurm does not reach the node"),
    ("Unable to contact slurm controller", FailureKind::Unreachable, "slurmctld does not answer"),
    ("not in this job", FailureKind::BadConfig, "the node is not, or no longer, in the Slurm job"),
    (
        "Requested node configuration is not available",
        FailureKind::BadConfig,
        "the node is not, or no longer, in the Slurm job",
    ),
];

/// The kind of failure and a sentence, where the words are known.
pub(crate) fn explained(errors: &[u8]) -> Option<(FailureKind, &'static str)> {
    let text = String::from_utf8_lossy(errors);
    WORDS.iter().find(|(words, ..)| text.contains(words)).map(|(_, kind, what)| (*kind, *what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_a_lost_node_and_a_cancelled_job_are_told_apart() {
        let step = "slurmstepd: error: *** STEP 5.0 ON n001 CANCELLED AT 2026-11-25T08:00:00";
        for (end, kind, what) in [
            (" DUE TO TIME LIMIT ***", FailureKind::Cut, "Slurm's time limit ended the step"),
            (" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***", FailureKind::LinkLost, "Slurm lost the node"),
            (" ***", FailureKind::Cut, "Slurm cancelled the step (scancel, or the job ended)"),
        ] {
            assert_eq!(explained(format!("{step}{end}").as_bytes()), Some((kind, what)));
        }
        assert_eq!(explained(b"srun: error: n001: task 0: Killed"), None);
    }
}
