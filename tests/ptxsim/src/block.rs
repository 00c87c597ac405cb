//! One block: its shared memory, its warps in random turns, and its barrier.

use crate::alu::Lanes;
use crate::device::Launch;
use crate::fault::Faults;
use crate::memory::Memory;
use crate::pipe::Pipe;
use crate::rng::Rng;
use crate::step::{Env, Turn};
use crate::trap::{Trap, Why};
use crate::warp::Warp;

/// Shared memory that nobody wrote reads as not-a-number.
const POISON: u8 = 0xff;
/// Instructions of one block after which it is taken for endless.
const ENOUGH: u64 = 2_000_000_000;
/// Longest turn of a warp, instructions.
const TURN: u64 = 48;
/// Warps that a multiprocessor serves at the same time.
const SCHEDULERS: u64 = 4;

/// Where and when a block runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) block: [u32; 3],
    pub(crate) sm: u32,
    pub(crate) sms: u32,
    /// Cycles of the multiprocessor before this block.
    pub(crate) begin: u64,
}

/// Runs a block to its end; the cycles it took. `spare` are registers of finished warps.
pub(crate) fn run(
    launch: &Launch<'_>,
    place: Place,
    (memory, faults): (&mut Memory, &Faults),
    (rng, spare): (&mut Rng, &mut Vec<Vec<Lanes>>),
) -> Result<u64, Trap> {
    let threads = launch.block.iter().product::<u32>();
    let mut warp = |index| Warp::new(launch, (index, threads), spare.pop().unwrap_or_default());
    let mut warps: Vec<Warp> = (0..threads.div_ceil(32)).map(&mut warp).collect();
    let (slow, far) = (faults.slowness(place.sm), faults.distance(place.sm));
    let shared = vec![POISON; launch.kernel.shared + launch.shared];
    let flips = faults.flips.iter().filter(|f| f.sm.is_none_or(|sm| sm == place.sm)).map(|f| (*f, 0)).collect();
    let pipe = Pipe::new(if launch.kernel.asynchronous { shared.len() } else { 0 });
    let mut env = Env { launch, place, memory, shared, slow, far, flips, rng, pipe };
    let mut ready: Vec<usize> = (0..warps.len()).collect();
    let mut steps = 0;
    while !ready.is_empty() {
        let pick = env.rng.below(ready.len() as u64) as usize;
        let index = ready[pick];
        let mut turn = 1 + env.rng.below(TURN);
        steps += turn;
        env.pipe.warp = index as u8 + 1;
        env.tick(8).map_err(|why| trap(launch, place, (index, 0), why))?;
        while turn > 0 {
            let went = warps[index].step(&mut env);
            // An instruction that goes wrong does not move its lanes on.
            let wrong = |why| trap(launch, place, (index, warps[index].line(launch.kernel)), why);
            match went.map_err(wrong)? {
                Turn::Went => turn -= 1,
                went => {
                    ready.swap_remove(pick);
                    if went == Turn::Gathers {
                        let gathered = gather(&mut warps, index);
                        let wrong = |why| trap(launch, place, (index, warps[index].line(launch.kernel)), why);
                        ready.extend(gathered.map_err(wrong)?);
                    }
                    break;
                }
            }
        }
        if steps > ENOUGH {
            let line = warps[index].line(launch.kernel);
            return Err(trap(launch, place, (index, line), Why::Endless));
        }
        if let Some(lost) = warps.iter().position(|w| w.products.gathered.is_some()).filter(|_| ready.is_empty()) {
            return Err(trap(launch, place, (lost, warps[lost].line(launch.kernel)), Why::Deadlock));
        }
        if ready.is_empty() && warps.iter().any(Warp::waits) {
            meet(&mut warps).map_err(|i| trap(launch, place, (i, warps[i].line(launch.kernel)), Why::Deadlock))?;
            ready = (0..warps.len()).filter(|i| !warps[*i].done()).collect();
        }
    }
    if !env.pipe.is_empty() {
        return Err(trap(launch, place, (0, 0), Why::InFlight));
    }
    let longest = warps.iter().map(|w| w.cycles).max().unwrap_or(0);
    let together = warps.iter().map(|w| w.cycles).sum::<u64>() / SCHEDULERS;
    spare.extend(warps.into_iter().map(|warp| warp.registers));
    Ok((longest.max(together) as f64 * slow) as u64)
}

/// The four warps of a warpgroup, once all of them stand at the same product.
fn gather(warps: &mut [Warp], index: usize) -> Result<std::ops::Range<usize>, Why> {
    let group = index / 4 * 4..index / 4 * 4 + 4;
    let members = warps.get_mut(group.clone()).ok_or(Why::Deadlock)?;
    if members.iter().any(|w| w.products.gathered.is_none()) {
        return Ok(0..0);
    }
    if members.iter().any(|w| w.products.gathered != members[0].products.gathered) {
        return Err(Why::Deadlock);
    }
    for warp in members {
        warp.products.gathered = None;
        warp.products.released = true;
    }
    Ok(group)
}

/// Lets everybody pass the barrier, at the time of the last; the warp that can never come, if there is one.
fn meet(warps: &mut [Warp]) -> Result<(), usize> {
    if let Some(index) = warps.iter().position(|w| !w.arrived()) {
        return Err(index);
    }
    let last = warps.iter().map(|w| w.cycles).max().unwrap_or(0);
    for warp in warps.iter_mut().filter(|w| !w.done()) {
        warp.pass(last);
    }
    Ok(())
}

fn trap(launch: &Launch<'_>, place: Place, (warp, line): (usize, usize), why: Why) -> Trap {
    Trap { kernel: launch.kernel.name.clone(), line, block: place.block, thread: warp as u32 * 32, why }
}
