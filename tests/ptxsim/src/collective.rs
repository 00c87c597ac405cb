//! What lanes do together, and the copies that land when they like.

use crate::alu::Lanes;
use crate::code::{Arg, Instr, Number, Shuffle, Space};
use crate::fault::Unit;
use crate::matrix;
use crate::memory::number;
use crate::step::Env;
use crate::trap::Why;
use crate::warp::{Flight, Warp, lanes};

impl Warp {
    pub(crate) fn depart(&mut self, instr: &Instr, mask: u32, env: &mut Env<'_>) -> Result<(), Why> {
        let Some(Arg::Imm(size)) = instr.args.get(2) else { return Err(Why::Operands) };
        let size = *size as usize;
        let to = self.address(instr.args.first(), size, mask)?;
        let from = self.address(instr.args.get(1), size, mask)?;
        let taken = instr.args.get(3).and_then(|arg| self.read(arg, env)).unwrap_or([size as u64; 32]);
        for lane in lanes(mask) {
            let taken = taken[lane] as usize;
            if taken > size {
                return Err(Why::Operands);
            }
            let flight = Flight { lane, group: self.groups[lane], to: to[lane], from: from[lane], size, taken };
            // Hardware may land it at once or at the last moment: each happens half of the time.
            if env.rng.below(2) == 0 { env.land(&flight)? } else { self.flights.push(flight) }
        }
        Ok(())
    }

    pub(crate) fn land(&mut self, instr: &Instr, mask: u32, env: &mut Env<'_>) -> Result<(), Why> {
        let Some(Arg::Imm(pending)) = instr.args.first() else { return Err(Why::Operands) };
        let mut still = Vec::new();
        for flight in self.flights.drain(..) {
            let due = u64::from(flight.group) + pending < u64::from(self.groups[flight.lane]);
            if due && mask >> flight.lane & 1 == 1 { env.land(&flight)? } else { still.push(flight) }
        }
        self.flights = still;
        Ok(())
    }

    pub(crate) fn matrix(&mut self, instr: &Instr, transposed: bool, env: &mut Env<'_>) -> Result<(), Why> {
        let Some(Arg::Many(to)) = instr.args.first() else { return Err(Why::Operands) };
        let rows = self.address(instr.args.get(1), 16, u32::MAX >> (32 - 8 * to.len()))?;
        for (index, arg) in to.iter().enumerate() {
            let Arg::Reg(reg) = arg else { return Err(Why::Operands) };
            let mut values = [0; 32];
            for (lane, value) in values.iter_mut().enumerate() {
                let mut element = |row: usize, column: usize| {
                    Ok(number(env.bytes(Space::Shared, rows[8 * index + row] + 2 * column as u64, 2)?))
                };
                let (major, minor) = (lane / 4, lane % 4 * 2);
                let pair = if transposed {
                    [element(minor, major)?, element(minor + 1, major)?]
                } else {
                    [element(major, minor)?, element(major, minor + 1)?]
                };
                *value = pair[0] | pair[1] << 16;
            }
            self.registers[*reg] = values;
        }
        Ok(())
    }

    pub(crate) fn product(&mut self, instr: &Instr, number: Number, mask: u32, env: &mut Env<'_>) -> Result<(), Why> {
        let many = |at: usize| match instr.args.get(at) {
            Some(Arg::Many(args)) => args.iter().map(|a| self.read(a, env).ok_or(Why::Operands)).collect(),
            _ => Err(Why::Operands),
        };
        let (a, b, c): (Vec<Lanes>, Vec<Lanes>, Vec<Lanes>) = (many(1)?, many(2)?, many(3)?);
        let mut sums = matrix::mma(number, &a, &b, &c);
        env.spoil(Unit::Mma, &mut sums[0]);
        let Some(Arg::Many(to)) = instr.args.first() else { return Err(Why::Operands) };
        for (arg, values) in to.iter().zip(&sums) {
            let Arg::Reg(reg) = arg else { return Err(Why::Operands) };
            self.write(*reg, mask, values);
        }
        Ok(())
    }

    pub(crate) fn shuffle(&mut self, instr: &Instr, how: Shuffle, mask: u32, env: &Env<'_>) -> Result<(), Why> {
        let read = |at: usize| instr.args.get(at).and_then(|arg| self.read(arg, env)).ok_or(Why::Operands);
        let (values, by, limits) = (read(1)?, read(2)?, read(3)?);
        let mut out = values;
        let mut valid = [1; 32];
        for lane in 0..32 {
            let (by, clamp, segment) =
                (by[lane] as usize & 31, limits[lane] as usize & 31, limits[lane] as usize >> 8 & 31);
            let top = (lane & segment) | (clamp & !segment & 31);
            let from = match how {
                Shuffle::Xor => Some(lane ^ by).filter(|from| *from <= top),
                Shuffle::Down => Some(lane + by).filter(|from| *from <= top),
                Shuffle::Up => lane.checked_sub(by).filter(|from| *from >= top),
                Shuffle::Index => Some((lane & segment) | (by & !segment)).filter(|from| *from <= top),
            };
            match from {
                Some(from) => out[lane] = values[from],
                None => valid[lane] = 0,
            }
        }
        match instr.args.first() {
            Some(Arg::Reg(to)) => self.write(*to, mask, &out),
            Some(Arg::Pair(to, predicate)) => {
                self.write(*to, mask, &out);
                self.write(*predicate, mask, &valid);
            }
            _ => return Err(Why::Operands),
        }
        Ok(())
    }
}
