//! Products of a warpgroup, which run beside its threads: their sums may not be touched, and their operands may be read,
//! until somebody has waited for them.

use std::collections::VecDeque;

use crate::code::{Arg, Async, Instr, Number, Reg};
use crate::fault::Unit;
use crate::rng::Rng;
use crate::step::Env;
use crate::trap::Why;
use crate::warp::Warp;

/// A product that was started.
#[derive(Clone, Debug)]
struct Product {
    /// Number of its group.
    group: u64,
    number: Number,
    /// Descriptors of the operands.
    left: u64,
    right: u64,
    /// Whether the old sums count.
    adds: bool,
    sums: Vec<Reg>,
    done: bool,
}

/// The products of one warp.
#[derive(Debug, Default)]
pub(crate) struct Products {
    /// In the order in which they were started.
    started: VecDeque<Product>,
    /// Groups that were committed.
    groups: u64,
    /// By register, whether a product under way has it.
    flying: Vec<bool>,
    /// By register, whether it was written since the last fence. Everything was, before the first.
    unfenced: Vec<bool>,
    /// All four warps of the group have come to the next product.
    pub(crate) released: bool,
    /// Where this one waits for the others.
    pub(crate) gathered: Option<u32>,
}

impl Products {
    /// For a kernel with so many registers; none where there are no products.
    pub(crate) fn new(registers: usize) -> Self {
        Self { flying: vec![false; registers], unfenced: vec![true; registers], ..Self::default() }
    }

    /// Checks that an instruction touches nothing that is under way, and notes what it writes.
    pub(crate) fn touch(&mut self, instr: &Instr) -> Result<(), Why> {
        if !self.started.is_empty() && instr.args.iter().any(|arg| self.is_flying(arg)) {
            return Err(Why::InFlight);
        }
        if let Some(arg) = instr.args.first().filter(|_| !self.unfenced.is_empty()) {
            registers(arg, &mut |reg| self.unfenced[reg] = true);
        }
        Ok(())
    }

    fn is_flying(&self, arg: &Arg) -> bool {
        let mut flying = false;
        registers(arg, &mut |reg| flying |= self.flying[reg]);
        flying
    }
}

/// The registers of an operand.
fn registers(arg: &Arg, see: &mut dyn FnMut(Reg)) {
    match arg {
        Arg::Reg(reg) | Arg::Mem(Some(reg), _) => see(*reg),
        Arg::Pair(one, other) => [one, other].into_iter().for_each(|reg| see(*reg)),
        Arg::Many(args) => args.iter().for_each(|arg| registers(arg, see)),
        _ => {}
    }
}

impl Warp {
    pub(crate) fn products(&mut self, instr: &Instr, what: Async, env: &mut Env<'_>) -> Result<(), Why> {
        match what {
            Async::ProductFence => self.products.unfenced.fill(false),
            Async::ProductCommit => self.products.groups += 1,
            Async::ProductWait => {
                let Some(Arg::Imm(pending)) = instr.args.first() else { return Err(Why::Operands) };
                let over = self.products.groups.saturating_sub(*pending);
                let due = self.products.started.iter().take_while(|product| product.group < over).count();
                self.work_off(due, env)?;
                self.products.started.drain(..due);
                self.products.flying.fill(false);
                for reg in self.products.started.iter().flat_map(|product| &product.sums) {
                    self.products.flying[*reg] = true;
                }
            }
            Async::Product(number) => {
                self.products.released = false;
                let product = self.begun(instr, number, env)?;
                product.sums.iter().for_each(|reg| self.products.flying[*reg] = true);
                self.products.started.push_back(product);
                // Some are done at once, others as late as may be.
                if likely(env.rng) {
                    self.work_off(self.products.started.len(), env)?;
                }
            }
            _ => return Err(Why::Operands),
        }
        Ok(())
    }

    fn begun(&self, instr: &Instr, number: Number, env: &Env<'_>) -> Result<Product, Why> {
        let [Arg::Many(sums), left, right, adds, scales @ ..] = instr.args.as_slice() else {
            return Err(Why::Operands);
        };
        let sums: Vec<Reg> =
            sums.iter().filter_map(|sum| if let Arg::Reg(reg) = sum { Some(*reg) } else { None }).collect();
        let one = |arg: &Arg| {
            let lanes = self.read(arg, env).ok_or(Why::Operands)?;
            // What the whole warpgroup has in common.
            if lanes.iter().all(|lane| *lane == lanes[0]) { Ok(lanes[0]) } else { Err(Why::Operands) }
        };
        if self.products.is_flying(left) || self.products.is_flying(right) {
            return Err(Why::InFlight);
        }
        if sums.iter().any(|reg| self.products.unfenced[*reg]) {
            return Err(Why::Unfenced("registers"));
        }
        // Neither negated nor transposed.
        if !scales.iter().zip([1, 1, 0, 0]).all(|(arg, plain)| *arg == Arg::Imm(plain)) || !sums.len().is_multiple_of(4)
        {
            return Err(Why::Operands);
        }
        let (left, right, adds) = (one(left)?, one(right)?, one(adds)? != 0);
        Ok(Product { group: self.products.groups, number, left, right, adds, sums, done: false })
    }

    /// Does the first `count` of the products that were started.
    fn work_off(&mut self, count: usize, env: &mut Env<'_>) -> Result<(), Why> {
        for index in 0..count {
            if !self.products.started[index].done {
                self.products.started[index].done = true;
                let product = self.products.started[index].clone();
                self.multiply(&product, env)?;
            }
        }
        Ok(())
    }

    /// This warp's 16 rows of a product.
    fn multiply(&mut self, product: &Product, env: &mut Env<'_>) -> Result<(), Why> {
        let number = product.number;
        let first = self.number() % 4 * 16;
        let left =
            (first..first + 16).map(|row| elements(product.left, row, number, env)).collect::<Result<Vec<_>, _>>()?;
        let columns = product.sums.len() * 2;
        let right = (0..columns).map(|row| elements(product.right, row, number, env)).collect::<Result<Vec<_>, _>>()?;
        for (index, reg) in product.sums.iter().enumerate() {
            let mut values = self.registers[*reg];
            for (lane, value) in values.iter_mut().enumerate() {
                let (row, column) = (lane / 4 + index % 4 / 2 * 8, index / 4 * 8 + lane % 4 * 2 + index % 2);
                let products = left[row].iter().zip(&right[column]).map(|(x, y)| x * y).sum();
                *value = number.sum(products, if product.adds { *value } else { 0 });
            }
            if index == 0 {
                env.spoil(Unit::Mma, &mut values);
            }
            self.registers[*reg] = values;
        }
        Ok(())
    }
}

fn likely(rng: &mut Rng) -> bool {
    rng.below(2) == 0
}

/// Row `row` of the operand that a descriptor describes, 32 bytes along k.
fn elements(descriptor: u64, row: usize, number: Number, env: &Env<'_>) -> Result<Vec<f64>, Why> {
    let field = |from: u32| ((descriptor >> from & 0x3fff) << 4) as usize;
    let (start, leading, stride) = (field(0), field(16), field(32));
    // Bytes of a swizzled row; none of them without.
    let width = match descriptor >> 62 {
        0 => 0,
        1 => 128,
        2 => 64,
        _ => 32,
    };
    if descriptor >> 49 & 7 != 0 {
        return Err(Why::Operands);
    }
    let place = |byte: usize| {
        if width == 0 {
            return start + row / 8 * stride + row % 8 * 16 + byte / 16 * leading + byte % 16;
        }
        // The number of a row of 128 bytes of shared memory turns the pieces of 16 bytes around.
        let at = start + row / 8 * stride + row % 8 * width + byte;
        at ^ ((at >> 7 & (width / 16 - 1)) << 4)
    };
    (0..32)
        .step_by(number.size())
        .map(|byte| {
            let at = place(byte);
            let outside = Why::Outside { space: "shared", at: at as u64, size: number.size() };
            let bytes = env.shared.get(at..at + number.size()).ok_or(outside)?;
            env.pipe.seen(at, number.size())?;
            Ok(number.value(crate::memory::number(bytes) as u32))
        })
        .collect()
}
