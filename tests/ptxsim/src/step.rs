//! One instruction of one warp.

use crate::alu::{self, Lanes};
use crate::block::Place;
use crate::code::{Arg, Async, Instr, Op, Space, Two, Ty};
use crate::device::Launch;
use crate::fault::{Flip, Unit};
use crate::memory::{Memory, number};
use crate::pipe::Pipe;
use crate::rng::Rng;
use crate::trap::Why;
use crate::warp::{Flight, Warp, lanes};

/// What a warp sees of its block and device.
pub(crate) struct Env<'a> {
    pub(crate) launch: &'a Launch<'a>,
    pub(crate) place: Place,
    pub(crate) memory: &'a mut Memory,
    pub(crate) shared: Vec<u8>,
    /// How many times as long everything takes here.
    pub(crate) slow: f64,
    /// Cycles by which loads past L1 take longer here.
    pub(crate) far: u64,
    /// Faults of this multiprocessor, and how many instructions of their unit there were.
    pub(crate) flips: Vec<(Flip, u64)>,
    pub(crate) rng: &'a mut Rng,
    /// What runs beside the threads.
    pub(crate) pipe: Pipe,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Went,
    /// All lanes that are left stand at the block's barrier.
    Waits,
    /// The warp stands at a product of its warpgroup.
    Gathers,
    Done,
}

impl Warp {
    /// Executes the next instruction of the lanes that stand lowest.
    pub(crate) fn step(&mut self, env: &mut Env<'_>) -> Result<Turn, Why> {
        let kernel = env.launch.kernel;
        let mut candidates = self.live & !self.waiting;
        if candidates == 0 {
            return Ok(if self.live == 0 { Turn::Done } else { Turn::Waits });
        }
        loop {
            // Lanes at a collective are passed over until all its members have come.
            let (pc, group) = self.lowest(candidates).ok_or(Why::Deadlock)?;
            let Some(instr) = kernel.code.get(pc as usize) else {
                self.live &= !group;
                return Ok(Turn::Went);
            };
            let mask = group & self.guarded(instr);
            match self.members(instr, env)? {
                Some(members) if mask != 0 && mask != members => candidates &= !group,
                _ if mask != 0 && self.gathers(instr, pc) => return Ok(Turn::Gathers),
                _ => {
                    self.execute(instr, (pc, group, mask), env)?;
                    return Ok(Turn::Went);
                }
            }
        }
    }

    /// Whether the warp has to wait here for the others of its warpgroup.
    fn gathers(&mut self, instr: &Instr, pc: u32) -> bool {
        let gathers = matches!(instr.op, Op::Async(Async::Product(_))) && !self.products.released;
        if gathers {
            self.products.gathered = Some(pc);
        }
        gathers
    }

    fn guarded(&self, instr: &Instr) -> u32 {
        let Some((reg, negated)) = instr.guard else { return u32::MAX };
        let holds = |lane: &usize| (self.registers[reg][*lane] != 0) != negated;
        (0..32).filter(holds).fold(0, |mask, lane| mask | 1 << lane)
    }

    /// Lanes that a collective needs together; none for other instructions.
    fn members(&self, instr: &Instr, env: &Env<'_>) -> Result<Option<u32>, Why> {
        let named = |at: usize| {
            let mask = instr.args.get(at).and_then(|arg| self.read(arg, env)).ok_or(Why::Operands)?;
            Ok(Some(mask[self.live.trailing_zeros() as usize & 31] as u32 & self.live))
        };
        match instr.op {
            Op::Mma(_) | Op::LdMatrix { .. } => Ok(Some(self.live)),
            Op::Shuffle(_) => named(4),
            Op::WarpBarrier => named(0),
            Op::Async(Async::Product(_) | Async::ProductFence | Async::ProductCommit | Async::ProductWait) => {
                Ok(Some(u32::MAX))
            }
            _ => Ok(None),
        }
    }

    fn execute(&mut self, instr: &Instr, (pc, group, mask): (u32, u32, u32), env: &mut Env<'_>) -> Result<(), Why> {
        self.cycles += cost(instr);
        env.memory.counts.instructions += 1;
        if matches!(instr.op, Op::Load { space: Space::Global, past_l1: true }) {
            self.cycles += env.far;
        }
        if !matches!(instr.op, Op::Async(Async::Product(_))) {
            self.products.touch(instr)?;
        }
        match instr.op {
            Op::Branch => {
                let Some(Arg::Label(to)) = instr.args.first() else { return Err(Why::Operands) };
                self.go(group & mask, *to as u32);
                self.go(group & !mask, pc + 1);
                return Ok(());
            }
            Op::Leave => self.live &= !mask,
            Op::Barrier => {
                self.waiting |= mask;
                self.go(group & !mask, pc + 1);
                return Ok(());
            }
            Op::WarpBarrier => {}
            Op::Load { space, .. } => self.load(instr, space, mask, env)?,
            Op::Store(space) => self.store(instr, space, mask, env)?,
            Op::Atomic(space, op) => self.atomic(instr, (space, op), mask, env)?,
            Op::CopyAsync => self.depart(instr, mask, env)?,
            Op::Commit => lanes(mask).for_each(|lane| self.groups[lane] += 1),
            Op::Wait => self.land(instr, mask, env)?,
            Op::LdMatrix { transposed } => self.matrix(instr, transposed, env)?,
            Op::Async(what @ (Async::Product(_) | Async::ProductFence | Async::ProductCommit | Async::ProductWait)) => {
                self.products(instr, what, env)?
            }
            Op::Async(what) => self.pipe(instr, what, mask, env)?,
            Op::Mma(number) => self.product(instr, number, mask, env)?,
            Op::Shuffle(how) => self.shuffle(instr, how, mask, env)?,
            Op::Pack | Op::Unpack => self.repack(instr, mask, env)?,
            _ => {
                let Some(Arg::Reg(to)) = instr.args.first() else { return Err(Why::Operands) };
                let mut values = [0; 32];
                self.arithmetic(instr, env, &mut values)?;
                self.write(*to, mask, &values);
            }
        }
        self.go(group, pc + 1);
        Ok(())
    }

    fn arithmetic(&self, instr: &Instr, env: &mut Env<'_>, to: &mut Lanes) -> Result<(), Why> {
        let mut rooms = [const { None }; 4];
        let [first, second, third, fourth] = &mut rooms;
        let read = |at: usize, room| self.operand(instr.args.get(at), env, room);
        let (a, ty) = (read(1, first)?, instr.ty);
        *to = match instr.op {
            Op::Mov => alu::each(a, |v| ty.cut(v)),
            Op::One(op) => alu::single(op, ty, a).ok_or(Why::Operands)?,
            Op::Two(op) => alu::two(op, ty, a, read(2, second)?).ok_or(Why::Operands)?,
            Op::Not if ty == Ty::Pred => alu::each(a, |v| v ^ 1),
            Op::Not => alu::each(a, |v| ty.cut(!v)),
            Op::Neg => match ty {
                Ty::F32 => alu::each(a, |v| v ^ 1 << 31),
                Ty::F64 => alu::each(a, |v| v ^ 1 << 63),
                _ => alu::each(a, |v| ty.cut(v.wrapping_neg())),
            },
            Op::Mad { wide } => alu::mad(ty, wide, a, read(2, second)?, read(3, third)?),
            Op::Fma => alu::fma(ty, a, read(2, second)?, read(3, third)?),
            Op::Convert { from } => alu::convert(ty, from, a).ok_or(Why::Operands)?,
            Op::Set { how, unordered } => alu::compare((how, unordered), ty, a, read(2, second)?),
            Op::Select => {
                let (b, which) = (read(2, second)?, read(3, third)?);
                std::array::from_fn(|lane| if which[lane] != 0 { a[lane] } else { b[lane] })
            }
            Op::Bfi => alu::insert(ty, a, read(2, second)?, read(3, third)?, read(4, fourth)?),
            _ => return Err(Why::Operands),
        };
        match instr.op {
            Op::Fma => env.spoil(Unit::Fma, to),
            Op::Mad { .. } => env.spoil(Unit::Mad, to),
            _ => {}
        }
        Ok(())
    }

    /// Address of each lane; alignment is checked for `size` bytes.
    pub(crate) fn address(&self, arg: Option<&Arg>, size: usize, mask: u32) -> Result<Lanes, Why> {
        let Some(Arg::Mem(base, offset)) = arg else { return Err(Why::Operands) };
        let base = base.map_or(&[0; 32], |reg| &self.registers[reg]);
        let at = alu::each(base, |b| b.wrapping_add_signed(*offset));
        match lanes(mask).find(|lane| !at[*lane].is_multiple_of(size as u64)) {
            Some(lane) => Err(Why::Misaligned { at: at[lane], size }),
            None => Ok(at),
        }
    }

    fn load(&mut self, instr: &Instr, space: Space, mask: u32, env: &mut Env<'_>) -> Result<(), Why> {
        let (to, width) = (instr.args.first().ok_or(Why::Operands)?, instr.ty.size());
        let to = if let Arg::Many(many) = to { many.as_slice() } else { std::slice::from_ref(to) };
        let at = self.address(instr.args.get(1), width * to.len(), mask)?;
        for lane in lanes(mask) {
            for (part, arg) in to.iter().enumerate() {
                let Arg::Reg(reg) = arg else { return Err(Why::Operands) };
                let value = number(env.bytes(space, at[lane] + (part * width) as u64, width)?);
                self.registers[*reg][lane] = value;
            }
        }
        Ok(())
    }

    fn store(&self, instr: &Instr, space: Space, mask: u32, env: &mut Env<'_>) -> Result<(), Why> {
        let (from, width) = (instr.args.get(1).ok_or(Why::Operands)?, instr.ty.size());
        let from = if let Arg::Many(many) = from { many.as_slice() } else { std::slice::from_ref(from) };
        let at = self.address(instr.args.first(), width * from.len(), mask)?;
        for (part, arg) in from.iter().enumerate() {
            let mut room = None;
            let values = self.operand(Some(arg), env, &mut room)?;
            for lane in lanes(mask) {
                env.put(space, at[lane] + (part * width) as u64, &values[lane].to_le_bytes()[..width])?;
            }
        }
        Ok(())
    }

    fn atomic(&mut self, instr: &Instr, (space, op): (Space, Two), mask: u32, env: &mut Env<'_>) -> Result<(), Why> {
        // `atom` has a destination before its address, `red` has none.
        let (to, at) = match instr.args.as_slice() {
            [Arg::Reg(to), Arg::Mem(..), ..] => (Some(*to), 1),
            _ => (None, 0),
        };
        let width = instr.ty.size();
        let address = self.address(instr.args.get(at), width, mask)?;
        let values = instr.args.get(at + 1).and_then(|arg| self.read(arg, env)).ok_or(Why::Operands)?;
        for lane in lanes(mask) {
            let old = number(env.bytes(space, address[lane], width)?);
            let new = alu::one(op, instr.ty, old, values[lane]).ok_or(Why::Operands)?;
            env.put(space, address[lane], &new.to_le_bytes()[..width])?;
            if let Some(to) = to {
                self.registers[to][lane] = old;
            }
        }
        Ok(())
    }

    fn repack(&mut self, instr: &Instr, mask: u32, env: &Env<'_>) -> Result<(), Why> {
        match instr.args.as_slice() {
            [Arg::Reg(to), Arg::Many(parts)] => {
                let width = 8 * instr.ty.size() / parts.len();
                let mut whole = [0; 32];
                for (index, part) in parts.iter().enumerate() {
                    let values = self.read(part, env).ok_or(Why::Operands)?;
                    let keep = u64::MAX >> (64 - width);
                    (0..32).for_each(|lane| whole[lane] |= (values[lane] & keep) << (width * index));
                }
                self.write(*to, mask, &whole);
            }
            [Arg::Many(parts), from] => {
                let width = 8 * instr.ty.size() / parts.len();
                let whole = self.read(from, env).ok_or(Why::Operands)?;
                for (index, part) in parts.iter().enumerate() {
                    match part {
                        Arg::Reg(to) => {
                            self.write(*to, mask, &whole.map(|v| v >> (width * index) & (u64::MAX >> (64 - width))))
                        }
                        Arg::Sink => {}
                        _ => return Err(Why::Operands),
                    }
                }
            }
            _ => return Err(Why::Operands),
        }
        Ok(())
    }
}

impl Env<'_> {
    pub(crate) fn bytes(&mut self, space: Space, at: u64, size: usize) -> Result<&[u8], Why> {
        let held = |bytes: &'static str| Why::Outside { space: bytes, at, size };
        let from = at as usize;
        match space {
            Space::Global => {
                self.memory.counts.loaded += size as u64;
                self.memory.read(at, size)
            }
            Space::Shared => self.shared.get(from..from.saturating_add(size)).ok_or_else(|| held("shared")),
            Space::Param => self.launch.params.get(from..from.saturating_add(size)).ok_or_else(|| held("param")),
        }
    }

    pub(crate) fn put(&mut self, space: Space, at: u64, bytes: &[u8]) -> Result<(), Why> {
        let from = at as usize;
        match space {
            Space::Global => {
                self.memory.counts.stored += bytes.len() as u64;
                self.memory.write(at, bytes)
            }
            Space::Shared => {
                let outside = Why::Outside { space: "shared", at, size: bytes.len() };
                let to = self.shared.get_mut(from..from.saturating_add(bytes.len())).ok_or(outside)?;
                to.copy_from_slice(bytes);
                self.pipe.written(from, bytes.len());
                Ok(())
            }
            Space::Param => Err(Why::Operands),
        }
    }

    pub(crate) fn land(&mut self, flight: &Flight) -> Result<(), Why> {
        let mut bytes = match flight.taken {
            0 => Vec::new(),
            taken => self.bytes(Space::Global, flight.from, taken)?.to_vec(),
        };
        bytes.resize(flight.size, 0);
        self.put(Space::Shared, flight.to, &bytes)
    }

    /// Applies this multiprocessor's faults to a result: one lane, one bit.
    pub(crate) fn spoil(&mut self, unit: Unit, values: &mut Lanes) {
        for (flip, count) in self.flips.iter_mut().filter(|(flip, _)| flip.unit == unit) {
            *count += 1;
            if count.is_multiple_of(flip.every) {
                values[(*count / flip.every) as usize % 32] ^= 1 << flip.bit;
            }
        }
    }
}

/// Cycles a warp is held by an instruction. Only their ratios mean anything.
const fn cost(instr: &Instr) -> u64 {
    match instr.op {
        Op::Load { space: Space::Global, past_l1: true } => 600,
        Op::Load { space: Space::Global, .. } | Op::Atomic(Space::Global, _) => 16,
        Op::Store(Space::Global) | Op::CopyAsync => 8,
        Op::Mma(_) => 16,
        Op::Async(Async::Product(_)) => 64,
        Op::Load { .. } | Op::Store(_) | Op::LdMatrix { .. } | Op::Atomic(..) | Op::Shuffle(_) => 4,
        Op::Fma if matches!(instr.ty, Ty::F64) => 2,
        _ => 1,
    }
}
