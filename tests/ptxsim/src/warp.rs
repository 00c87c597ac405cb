//! One warp: where each of its lanes is, and which of them go next.

use crate::alu::Lanes;
use crate::code::{Arg, Instr, Kernel, Reg, Special};
use crate::device::Launch;
use crate::step::Env;
use crate::trap::Why;
use crate::wgmma::Products;

/// An asynchronous copy that has not landed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub(crate) lane: usize,
    /// Number of the group, counted per lane.
    pub(crate) group: u32,
    pub(crate) to: u64,
    pub(crate) from: u64,
    pub(crate) size: usize,
    /// As many bytes are copied, and zeros follow.
    pub(crate) taken: usize,
}

#[derive(Debug)]
pub(crate) struct Warp {
    first: u32,
    pub(crate) registers: Vec<Lanes>,
    pub(crate) pc: [u32; 32],
    /// Lanes that have not left.
    pub(crate) live: u32,
    /// Lanes at the block's barrier.
    pub(crate) waiting: u32,
    pub(crate) cycles: u64,
    pub(crate) flights: Vec<Flight>,
    pub(crate) groups: [u32; 32],
    /// Those of its warpgroup in which it has a part.
    pub(crate) products: Products,
}

impl Warp {
    /// Warp number `index` of a block of so many threads. It reuses the registers of a finished warp: touching thousands of fresh
    /// pages for every block took longer than the block's work.
    pub(crate) fn new(launch: &Launch<'_>, (index, threads): (u32, u32), mut registers: Vec<Lanes>) -> Self {
        let first = index * 32;
        let lanes = (threads - first).min(32);
        registers.clear();
        registers.resize(launch.kernel.registers, [0; 32]);
        Self {
            first,
            registers,
            pc: [0; 32],
            live: u32::MAX >> (32 - lanes),
            waiting: 0,
            cycles: 0,
            flights: Vec::new(),
            groups: [0; 32],
            products: Products::new(if launch.kernel.asynchronous { launch.kernel.registers } else { 0 }),
        }
    }

    /// Its number in the block.
    pub(crate) const fn number(&self) -> usize {
        self.first as usize / 32
    }

    pub(crate) const fn done(&self) -> bool {
        self.live == 0
    }

    pub(crate) const fn waits(&self) -> bool {
        self.waiting != 0
    }

    /// Whether every lane that is left stands at the barrier.
    pub(crate) const fn arrived(&self) -> bool {
        self.live == self.waiting
    }

    /// Leaves the barrier at the time `now`.
    pub(crate) fn pass(&mut self, now: u64) {
        for lane in lanes(self.waiting) {
            self.pc[lane] += 1;
        }
        self.waiting = 0;
        self.cycles = now;
    }

    /// The lanes that stand lowest among `candidates`, and where: code that was jumped over waits for those before.
    pub(crate) fn lowest(&self, candidates: u32) -> Option<(u32, u32)> {
        let first = self.pc[lanes(candidates).next()?];
        // Lanes rarely diverge, and one comparison is quicker than 32.
        if self.pc == [first; 32] {
            return Some((first, candidates));
        }
        let at = lanes(candidates).map(|lane| self.pc[lane]).min()?;
        let group = lanes(candidates).filter(|lane| self.pc[*lane] == at).fold(0, |mask, lane| mask | 1 << lane);
        Some((at, group))
    }

    /// Line of the PTX text where it goes on.
    pub(crate) fn line(&self, kernel: &Kernel) -> usize {
        let at = self.lowest(self.live & !self.waiting).or_else(|| self.lowest(self.live));
        at.and_then(|(pc, _)| kernel.code.get(pc as usize)).map_or(0, |instr: &Instr| instr.line)
    }

    pub(crate) fn read(&self, arg: &Arg, env: &Env<'_>) -> Option<Lanes> {
        self.operand(Some(arg), env, &mut None).ok().copied()
    }

    /// Values of an operand: borrowed from a register, or made in `room`.
    pub(crate) fn operand<'a>(
        &'a self,
        arg: Option<&Arg>,
        env: &Env<'_>,
        room: &'a mut Option<Lanes>,
    ) -> Result<&'a Lanes, Why> {
        Ok(match arg.ok_or(Why::Operands)? {
            Arg::Reg(reg) => &self.registers[*reg],
            Arg::Imm(value) => room.insert([*value; 32]),
            Arg::Special(special) => room.insert(std::array::from_fn(|lane| self.special(*special, lane, env))),
            _ => return Err(Why::Operands),
        })
    }

    /// Moves the lanes of `group` to instruction `to`.
    pub(crate) fn go(&mut self, group: u32, to: u32) {
        if group == u32::MAX {
            self.pc = [to; 32];
        } else {
            lanes(group).for_each(|lane| self.pc[lane] = to);
        }
    }

    pub(crate) fn write(&mut self, reg: Reg, mask: u32, values: &Lanes) {
        let to = &mut self.registers[reg];
        if mask == u32::MAX {
            *to = *values;
        } else {
            lanes(mask).for_each(|lane| to[lane] = values[lane]);
        }
    }

    fn special(&self, special: Special, lane: usize, env: &Env<'_>) -> u64 {
        let [x, y, _] = env.launch.block;
        let thread = self.first + lane as u32;
        let value = match special {
            Special::Tid(0) => thread % x,
            Special::Tid(1) => thread / x % y,
            Special::Tid(_) => thread / x / y,
            Special::Ntid(axis) => env.launch.block[axis],
            Special::Ctaid(axis) => env.place.block[axis],
            Special::Nctaid(axis) => env.launch.grid[axis],
            Special::Lane => lane as u32,
            Special::Warp => self.first / 32,
            Special::Sm => env.place.sm,
            Special::Sms => env.place.sms,
            Special::Clock => return env.place.begin + (self.cycles as f64 * env.slow) as u64,
        };
        u64::from(value)
    }
}

/// Numbers of the lanes in a mask.
pub(crate) fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        let next = (lane < 32).then_some(lane)?;
        mask &= mask - 1;
        Some(next)
    })
}
