//! Whose fault it is when GPUs that train together do not come to what they must: known numbers are summed, and all GPUs compute
//! the same.

use super::known::{fill_summands, wrong_alike, wrong_sums};
use super::{Team, Way, wait};
use crate::driver::{Gpu, Trouble};

const SEED: u32 = 0xdd9;
/// How often it is looked for what made a loss change.
const TRIES: usize = 4;

/// Everything that is wrong before a training begins, in sentences. Leaves other weights behind.
///
/// # Errors
/// The driver's or the library's.
pub fn all(team: &Team<'_>, way: &Way<'_>) -> Result<Vec<String>, Trouble> {
    let sums = sums(team, way)?;
    Ok(sums.into_iter().chain(of_batch(team)?).collect())
}

/// The same of computing alone, without sums.
///
/// # Errors
/// The driver's, with the GPU.
pub fn of_batch(team: &Team<'_>) -> Result<Vec<String>, Trouble> {
    team.restart()?;
    Ok(odd_of_batch(&team.same_batch()?, |gpu, others| {
        format!(
            "GPU {gpu}: its gradients of the same batch are not those of {others} other GPUs: this GPU computes wrongly"
        )
    }))
}

/// What is wrong after so many steps that left all GPUs with the same weights.
///
/// # Errors
/// The driver's, with the GPU.
pub fn after(team: &Team<'_>, steps: usize) -> Result<Vec<String>, Trouble> {
    Ok(odd_of_batch(&team.same_batch()?, |gpu, others| {
        format!(
            "GPU {gpu}: after {steps} steps its gradients of the same batch are not those of {others} other GPUs: it computed \
             wrongly, or got other sums"
        )
    }))
}

/// Why losses changed from one round to the next, of the GPUs in `changed` and in these words.
///
/// # Errors
/// As of [`all`].
pub fn of_losses(team: &Team<'_>, way: &Way<'_>, changed: &[(usize, String)]) -> Result<Vec<String>, Trouble> {
    for _ in 0..TRIES {
        let found = all(team, way)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    if changed.len() < team.replicas.len() {
        let one = |(gpu, why): &(usize, String)| format!("GPU {gpu}: {why}: it computed wrongly, or got wrong sums");
        return Ok(changed.iter().map(one).collect());
    }
    let why = changed.first().map_or("", |(_, why)| why);
    Ok(vec![format!("on all GPUs alike, {why}: a gradient or a sum was wrong, and right each time it was looked for")])
}

/// Known numbers, summed as gradients are.
fn sums(team: &Team<'_>, way: &Way<'_>) -> Result<Option<String>, Trouble> {
    let gpus = team.sides();
    for (number, part) in team.parts().iter().enumerate() {
        let bytes = part.chunk as usize * 16 * gpus.len();
        for (rank, (gpu, at)) in gpus.iter().zip(&part.places).enumerate() {
            fill_summands(gpu, (*at, bytes), (SEED, rank))?;
        }
        wait(gpus)?;
        way.start(gpus, team.parts(), number)?;
        wait(gpus)?;
        way.settled()?;
        let ends: Vec<(&Gpu, u64)> = gpus.iter().zip(part.places.iter().copied()).collect();
        if let Some(wrong) = wrong_sums(&ends, (part.chunk as usize, 1), SEED)? {
            let whose =
                if matches!(way, Way::Nccl(_) | Way::Nodes(_)) { wrong.of_anybody() } else { wrong.of_own_kernels() };
            return Ok(Some(format!("a sum of known numbers: {whose}")));
        }
    }
    Ok(None)
}

/// The same over all GPUs of many nodes, those of this one from `own` on: `count` of them from `first` on bring known numbers, the
/// others zeros. At most 256 may bring some, or sums are not exact.
///
/// # Errors
/// The driver's or the library's.
pub fn over_nodes(
    team: &Team<'_>,
    way: &Way<'_>,
    (first, count): (usize, usize),
    own: usize,
) -> Result<Option<String>, Trouble> {
    let gpus = team.sides();
    for (number, part) in team.parts().iter().enumerate() {
        let bytes = part.vectors as usize * 16;
        for (rank, (gpu, at)) in (own..).zip(gpus.iter().zip(&part.places)) {
            match rank.checked_sub(first).filter(|rank| *rank < count) {
                Some(rank) => fill_summands(gpu, (*at, bytes), (SEED, rank))?,
                None => gpu.put_at(*at, &vec![0_u32; bytes / 4])?,
            }
        }
        wait(gpus)?;
        way.start(gpus, team.parts(), number)?;
        team.settle(way)?;
        let ends: Vec<(&Gpu, u64)> = gpus.iter().zip(part.places.iter().copied()).collect();
        if let Some(wrong) = wrong_alike(&ends, part.vectors as usize, (count, SEED))? {
            return Ok(Some(wrong.of_anybody()));
        }
    }
    Ok(None)
}

/// GPUs whose `found` is not that of most, in a sentence of `told` about one and how many agree with each other; or that nobody has
/// most of them on its side, with one GPU of each opinion.
pub(crate) fn odd<T: PartialEq>(found: &[T], what: &str, told: impl Fn(usize, usize) -> String) -> Vec<String> {
    let count = |of: &T| found.iter().filter(|one| *one == of).count();
    if let Some(most) = found.iter().find(|of| 2 * count(of) > found.len()) {
        let others = count(most);
        return (0..found.len()).filter(|at| found[*at] != *most).map(|gpu| told(gpu, others)).collect();
    }
    let first = |at: &usize| found.iter().position(|of| *of == found[*at]) == Some(*at);
    let list: Vec<String> = (0..found.len()).filter(first).map(|gpu| gpu.to_string()).collect();
    let gpus = list.join(", ");
    vec![format!(
        "GPUs {gpus} have different {what}, and no more than half of all GPUs agree: which of them compute wrongly is not known"
    )]
}

/// The same of what all GPUs found for one batch.
fn odd_of_batch(found: &[(f32, u64)], told: impl Fn(usize, usize) -> String) -> Vec<String> {
    let bits: Vec<(u32, u64)> = found.iter().map(|(loss, digest)| (loss.to_bits(), *digest)).collect();
    odd(&bits, "gradients of the same batch", told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_as_most_is_named_and_where_nobody_has_most_all_opinions_are() {
        let odd = |found: &[(f32, u64)]| odd_of_batch(found, |gpu, others| format!("{gpu} not {others}"));
        assert_eq!(odd(&[(1.0, 5); 3]), [""; 0]);
        assert_eq!(odd(&[(1.0, 5)]), [""; 0], "of one there is nothing to compare");
        assert_eq!(odd(&[(1.0, 5), (1.0, 6), (1.0, 5)]), ["1 not 2"]);
        assert_eq!(odd(&[(1.0, 5), (2.0, 5), (1.0, 5), (1.0, 5)]), ["1 not 3"], "a loss counts as well");
        for undecided in [vec![(1.0, 5), (1.0, 6)], vec![(1.0, 5), (1.0, 6), (1.0, 6), (1.0, 5)]] {
            let said = odd(&undecided);
            assert!(said.len() == 1 && said[0].starts_with("GPUs 0, 1 have different gradients"), "{said:?}");
        }
        assert_eq!(odd(&[(f32::NAN, 1), (f32::NAN, 1)]), [""; 0], "no number is equal to itself here");
    }
}
