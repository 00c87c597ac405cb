//! Which faults a device has, and the text that says so.

use crate::memory::Stuck;

/// Result of which instruction a multiprocessor gets wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Tensor core.
    Mma,
    /// Multiply-add of floats.
    Fma,
    /// Multiply-add of integers.
    Mad,
}

/// A multiprocessor that flips a bit of every n-th result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flip {
    /// Multiprocessor; nothing means all of them, alike.
    pub sm: Option<u32>,
    /// Of which unit.
    pub unit: Unit,
    /// Which bit of the result.
    pub bit: u32,
    /// One in this many instructions of a block.
    pub every: u64,
}

/// What is wrong with a device. Without faults it is a good one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Wrong results.
    pub flips: Vec<Flip>,
    /// Multiprocessors that take this many times as long.
    pub slow: Vec<(u32, f64)>,
    /// Multiprocessors that wait so many cycles longer for every load past L1.
    pub far: Vec<(u32, u64)>,
    /// Memory cells that do not take what is written.
    pub stuck: Vec<Stuck>,
    /// Kernels that never end, by name.
    pub hang: Vec<String>,
    /// The device falls off the bus when it is to run its n-th kernel, first is 1.
    pub lost_after: Option<u64>,
    /// No memory is given out, whatever is said to be free.
    pub full: bool,
    /// Streams do not run side by side.
    pub serial: bool,
}

impl Faults {
    /// One fault from its words, such as `flip sm=5 unit=mma bit=12 every=100` (or `sm=all`), `slow sm=7 factor=1.05`,
    /// `stuck offset=0x1000 bit=3 value=1`, `hang kernel=burn_mma`, `lost after=10`, `far sm=7 cycles=40`,
    /// `full` or `serial`.
    ///
    /// # Errors
    /// With a sentence about the first word that is not understood.
    pub fn add(&mut self, words: &[&str]) -> Result<(), String> {
        let (kind, fields) = words.split_first().ok_or("a fault without words")?;
        let field = |name: &str| {
            let found = fields.iter().find_map(|f| f.strip_prefix(name)?.strip_prefix('='));
            found.ok_or_else(|| format!("'{kind}' needs {name}=…"))
        };
        let number = |name: &str| {
            let text = field(name)?;
            let value = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16));
            value.map_err(|e| format!("{name}={text}: {e}"))
        };
        let small = |name: &str| u32::try_from(number(name)?).map_err(|e| format!("{name}: {e}"));
        match *kind {
            "flip" => {
                let unit = match field("unit")? {
                    "mma" => Unit::Mma,
                    "fma" => Unit::Fma,
                    "mad" => Unit::Mad,
                    other => return Err(format!("no unit '{other}': mma, fma or mad")),
                };
                let sm = if field("sm")? == "all" { None } else { Some(small("sm")?) };
                let (bit, every) = (small("bit")?, number("every")?.max(1));
                self.flips.push(Flip { sm, unit, bit, every });
            }
            "slow" => {
                let factor: f64 = field("factor")?.parse().map_err(|e| format!("factor: {e}"))?;
                self.slow.push((small("sm")?, factor));
            }
            "far" => self.far.push((small("sm")?, number("cycles")?)),
            "stuck" => {
                let (offset, bit, one) = (number("offset")?, small("bit")?, number("value")? != 0);
                self.stuck.push(Stuck { offset, bit: (bit % 8) as u8, one });
            }
            "hang" => self.hang.push(field("kernel")?.to_owned()),
            "lost" => self.lost_after = Some(number("after")?),
            "full" => self.full = true,
            "serial" => self.serial = true,
            other => return Err(format!("no fault '{other}': flip, slow, far, stuck, hang, lost, full or serial")),
        }
        Ok(())
    }

    /// How many cycles longer a load past L1 takes from a multiprocessor.
    #[must_use]
    pub fn distance(&self, sm: u32) -> u64 {
        self.far.iter().filter(|(s, _)| *s == sm).map(|(_, cycles)| cycles).sum()
    }

    /// How many times as long a multiprocessor takes.
    #[must_use]
    pub fn slowness(&self, sm: u32) -> f64 {
        self.slow.iter().filter(|(s, _)| *s == sm).map(|(_, factor)| factor).product()
    }
}
