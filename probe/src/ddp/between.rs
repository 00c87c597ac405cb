//! Do the GPUs of all nodes sum their gradients by NCCL? What ranks agree on before, how they begin, and who is to blame when the
//! sums are wrong.

use std::fmt;
use std::time::Duration;

use muster_wire::Between;

use super::comm::Communicator;
use super::engine::wrong;
use super::options::Part;
use super::step::Failure;
use crate::gpu::{PATIENCE, Training};

/// Words of a number and a text that ranks tell each other.
const SAID: usize = 17;
/// Words of what NCCL's ranks find each other by.
const ID: usize = 16;
/// GPUs that bring known numbers at a time: sums of more are not exact in single precision.
const BRING: usize = 256;
/// Beyond the time that a worker has, until other ranks no longer wait for this one.
const LONGER: Duration = PATIENCE.saturating_mul(2);

/// Why NCCL is not used, and the ranks that it is due to, where it is to some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lacks {
    pub(super) ranks: Vec<usize>,
    pub(super) why: String,
}

impl fmt::Display for Lacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ranks, why } = self;
        match &ranks[..] {
            [] => f.write_str(why),
            [rank] => write!(f, "rank {rank}: {why}"),
            ranks => {
                let names: Vec<String> = ranks.iter().map(ToString::to_string).collect();
                write!(f, "ranks {}: {why}", names.join(", "))
            }
        }
    }
}

/// The engine of NCCL that all ranks have and want, or why not; the same on every rank.
pub(super) fn agree(
    part: &Part,
    ring: &mut Communicator<'_>,
    training: &Training<'_>,
) -> Result<Result<String, Lacks>, Failure> {
    let own = if part.between == Between::Tcp {
        Err("--between tcp")
    } else {
        training.nccl.as_ref().copied().map_err(String::as_str)
    };
    let said = ring.gather(packed(own.unwrap_or(0), own.err().unwrap_or(""))).map_err(Failure::Trouble)?;
    let decided = decided(&said.iter().map(unpacked).collect::<Vec<_>>());
    match decided {
        Err(lacks) if part.between == Between::Nccl => {
            Err(Failure::Wrong(format!("NCCL between nodes was asked for, and there is none; {lacks}"), lacks.ranks))
        }
        decided => Ok(decided),
    }
}

fn decided(said: &[(u64, String)]) -> Result<String, Lacks> {
    if let Some((_, why)) = said.iter().find(|(version, _)| *version == 0) {
        let ranks = (0..said.len()).filter(|rank| said[*rank].0 == 0).collect();
        return Err(Lacks { ranks, why: why.clone() });
    }
    let versions: Vec<String> = said.iter().map(|(version, _)| written(*version)).collect();
    let count = |of: &String| versions.iter().filter(|version| *version == of).count();
    let Some(most) = versions.iter().find(|version| 2 * count(version) > versions.len()) else {
        let mut all = versions.clone();
        all.sort();
        all.dedup();
        return Err(Lacks { ranks: Vec::new(), why: format!("versions {} of NCCL", all.join(" and ")) });
    };
    let ranks: Vec<usize> = (0..versions.len()).filter(|rank| versions[*rank] != *most).collect();
    match ranks.first() {
        None => Ok(format!("nccl-{most}")),
        Some(first) => {
            let why = format!("NCCL {}, where most have {most}", versions[*first]);
            Err(Lacks { ranks, why })
        }
    }
}

/// Major and minor number of what `ncclGetVersion` says.
fn written(version: u64) -> String {
    format!("{}.{}", version / 10_000, version / 100 % 100)
}

/// Brings all GPUs together by NCCL, those of this rank from `first` of `world` on, and makes sure that their sums are right.
pub(super) fn begin(
    part: &Part,
    ring: &mut Communicator<'_>,
    training: &mut Training<'_>,
    counts: &[u64],
) -> Result<(), Failure> {
    ring.be_patient(LONGER);
    // A rank whose NCCL hangs or fails by itself is known before it holds up the others.
    training.alone().map_err(|halt| wrong(part.rank, training, halt))?;
    ring.all_gather(1).map_err(Failure::Trouble)?;
    let id = if part.rank == 0 { training.id().map_err(|halt| wrong(part.rank, training, halt))? } else { [0; ID] };
    let ids = ring.gather(id).map_err(Failure::Trouble)?;
    let (first, world) = (counts[..part.rank].iter().sum(), counts.iter().sum());
    training.join(ids[0], (first, world)).map_err(|halt| wrong(part.rank, training, halt))?;
    let world = world as usize;
    for first in (0..world).step_by(BRING) {
        if let Some(why) = known(part, ring, training, (first, BRING.min(world - first)))?.into_iter().flatten().next()
        {
            return Err(suspect(part, ring, training, (counts, &why))?);
        }
    }
    Ok(())
}

/// What each rank finds wrong with a sum of known numbers of so many GPUs.
fn known(
    part: &Part,
    ring: &mut Communicator<'_>,
    training: &mut Training<'_>,
    gpus: (usize, usize),
) -> Result<Vec<Option<String>>, Failure> {
    let own = training.known(gpus).map_err(|halt| wrong(part.rank, training, halt))?;
    let said = packed(u64::from(own.is_some()), own.as_deref().unwrap_or(""));
    let all = ring.gather(said).map_err(Failure::Trouble)?;
    Ok(all.iter().map(unpacked).map(|(is_wrong, why)| (is_wrong > 0).then_some(why)).collect())
}

/// Lets every GPU bring known numbers alone.
fn suspect(
    part: &Part,
    ring: &mut Communicator<'_>,
    training: &mut Training<'_>,
    (counts, why): (&[u64], &str),
) -> Result<Failure, Failure> {
    let owners: Vec<usize> = (0..).zip(counts).flat_map(|(rank, count)| vec![rank; *count as usize]).collect();
    let mut found = Vec::new();
    for gpu in 0..owners.len() {
        let seen = known(part, ring, training, (gpu, 1))?;
        found.push(seen.iter().map(Option::is_some).collect());
    }
    let (sentence, accused) = verdict(&owners, &found, why);
    Ok(Failure::Wrong(format!("a sum of known numbers by NCCL over all nodes is wrong: {sentence}"), accused))
}

/// Who is to blame: `found` says for each GPU that brought numbers alone which ranks held wrong sums then; `owners` has their ranks.
fn verdict(owners: &[usize], found: &[Vec<bool>], why: &str) -> (String, Vec<usize>) {
    let ranks = found.first().map_or(0, Vec::len);
    let most = |seen: &[bool]| 2 * seen.iter().filter(|seen| **seen).count() > seen.len();
    let holders: Vec<usize> =
        (0..ranks).filter(|rank| most(&found.iter().map(|seen| seen[*rank]).collect::<Vec<_>>())).collect();
    if !holders.is_empty() && 2 * holders.len() <= ranks {
        let names: Vec<String> = holders.iter().map(ToString::to_string).collect();
        return (format!("rank {} holds wrong sums, whichever GPU brings the numbers", names.join(", ")), holders);
    }
    let bringers: Vec<usize> = (0..found.len()).filter(|gpu| most(&found[*gpu])).collect();
    let mut accused: Vec<usize> = bringers.iter().map(|gpu| owners[*gpu]).collect();
    accused.dedup();
    if accused.is_empty() || 2 * accused.len() > ranks {
        return (format!("{why}; who brings or carries it wrongly is not known"), Vec::new());
    }
    let place = |gpu: &usize| {
        let before = owners.iter().position(|rank| *rank == owners[*gpu]).unwrap_or(0);
        format!("GPU {} of rank {}", gpu - before, owners[*gpu])
    };
    let names: Vec<String> = bringers.iter().map(place).collect();
    (format!("what {} brings arrives wrong", names.join(", ")), accused)
}

fn packed(number: u64, text: &str) -> [u64; SAID] {
    let mut bytes = [0; 8 * (SAID - 1)];
    let text = muster_wire::clean(text, bytes.len());
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    let mut words = [number; SAID];
    let pieces = bytes.as_chunks().0;
    words[1..].iter_mut().zip(pieces).for_each(|(word, piece)| *word = u64::from_be_bytes(*piece));
    words
}

fn unpacked(words: &[u64; SAID]) -> (u64, String) {
    let bytes = words[1..].iter().flat_map(|word| word.to_be_bytes()).take_while(|byte| *byte != 0).collect();
    (words[0], String::from_utf8(bytes).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(versions: &[u64]) -> Result<String, Lacks> {
        let why = |version: u64| if version == 0 { "no libnccl.so.2 on this node" } else { "" };
        decided(&versions.iter().map(|version| unpacked(&packed(*version, why(*version)))).collect::<Vec<_>>())
    }

    #[test]
    fn all_ranks_take_nccl_where_its_versions_are_alike_but_for_patches() {
        assert_eq!(of(&[22_105, 22_104, 22_105]).as_deref(), Ok("nccl-2.21"));
    }

    #[test]
    fn who_has_no_nccl_or_another_version_is_named_and_of_two_versions_nobody_is() {
        let lacks = of(&[22_105, 0, 22_105, 0]).unwrap_err();
        assert_eq!(lacks.to_string(), "ranks 1, 3: no libnccl.so.2 on this node");
        let lacks = of(&[22_105, 22_304, 22_105]).unwrap_err();
        assert_eq!((lacks.ranks, &*lacks.why), (vec![1], "NCCL 2.23, where most have 2.21"));
        let lacks = of(&[22_304, 22_105]).unwrap_err();
        assert_eq!((lacks.ranks, &*lacks.why), (vec![], "versions 2.21 and 2.23 of NCCL"));
    }

    #[test]
    fn the_gpu_is_named_whose_numbers_arrive_wrong_everywhere_or_the_rank_that_holds_wrong_sums_always() {
        let owners = [0, 0, 1, 1, 2, 2];
        let all = |seen: [bool; 3]| vec![seen.to_vec(); 6];
        let mut found = all([false; 3]);
        found[3] = vec![true; 3];
        let (why, accused) = verdict(&owners, &found, "GPU 0 holds 9 wrong sums");
        assert_eq!((&*why, accused), ("what GPU 1 of rank 1 brings arrives wrong", vec![1]));
        let (why, accused) = verdict(&owners, &all([false, false, true]), "");
        assert_eq!((&*why, accused), ("rank 2 holds wrong sums, whichever GPU brings the numbers", vec![2]));
        for nobody in [all([false; 3]), all([true; 3])] {
            let (why, accused) = verdict(&owners, &nobody, "GPU 0 holds 9 wrong sums");
            assert!(accused.is_empty() && why.ends_with("is not known"), "{why}");
        }
    }
}
