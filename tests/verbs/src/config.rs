//! Which adapters there are and what is wrong with them, from a few lines of text.

/// What is wrong with an adapter.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Everything takes so many times as long.
    Slow(f64),
    /// Flips this bit of one byte in so many that arrive.
    Flip {
        /// Bit of the byte.
        bit: u32,
        /// Bytes from one to the next.
        every: u64,
    },
    /// Its port is not active.
    Down,
    /// After so many messages all end with this status.
    Status {
        /// As `enum ibv_wc_status` numbers it.
        status: i32,
        /// Messages before it.
        after: u64,
    },
    /// After so many messages nothing ends any more.
    Hang(u64),
    /// The counter of this name in `hw_counters` of its port grows by so much with its first message.
    Counts(String, u64),
    /// It reaches memory of GPUs by their addresses, as with NVIDIA's kernel module.
    PeerMemory,
    /// A call of this name fails with this error of the system.
    Refuse(String, i32),
}

/// An adapter with one port.
#[derive(Clone, Debug, PartialEq)]
pub struct Adapter {
    /// Its name.
    pub name: String,
    /// Whether it is addressed by GID.
    pub ethernet: bool,
    /// What is wrong with it.
    pub faults: Vec<Fault>,
}

/// The adapters of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// In the order in which they are listed.
    pub adapters: Vec<Adapter>,
    /// Bytes per second of each. Little, so that it is the same on a busy machine.
    pub rate: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { adapters: Vec::new(), rate: 1e9 }
    }
}

impl Config {
    /// Reads lines such as `rate 2e8`, `adapter mlx5_0 infiniband`, `adapter mlx5_1 ethernet`, and about those that are known by
    /// then `mlx5_0 slow factor=10`, `mlx5_0 flip bit=3 every=1000`, `mlx5_0 down`, `mlx5_0 status 12 after=5`,
    /// `mlx5_0 hang after=3`, `mlx5_0 counts packet_seq_err 3`, `mlx5_0 peer-memory`, `mlx5_0 refuse ibv_reg_mr 12`.
    ///
    /// # Errors
    /// With the number of the first line that is not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut config = Self::default();
        for (number, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            config.line(&words).map_err(|why| format!("line {}: {why}", number + 1))?;
        }
        Ok(config)
    }

    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            [] => {}
            ["rate", rate] => self.rate = number(rate, "")?,
            ["adapter", name, layer @ ("infiniband" | "ethernet")] => {
                let (name, ethernet) = ((*name).to_owned(), *layer == "ethernet");
                self.adapters.push(Adapter { name, ethernet, faults: Vec::new() });
            }
            [name, fault @ ..] => {
                let adapter = self.adapters.iter_mut().find(|adapter| adapter.name == *name);
                adapter.ok_or_else(|| format!("no adapter '{name}'"))?.faults.push(fault_of(fault)?);
            }
        }
        Ok(())
    }

    /// The file `libibverbs.conf` beside the library that this process loaded, or no adapters.
    pub(crate) fn beside_library() -> Self {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let library =
            maps.lines().filter_map(|line| line.split_whitespace().last()).find(|path| path.contains("/libibverbs.so"));
        let file = library.map(|path| std::path::Path::new(path).with_file_name("libibverbs.conf"));
        let text = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        Self::parse(&text).unwrap_or_else(|why| {
            eprintln!("libibverbs.conf: {why}");
            Self::default()
        })
    }
}

fn fault_of(words: &[&str]) -> Result<Fault, String> {
    Ok(match words {
        ["slow", factor] => Fault::Slow(number(factor, "factor=")?),
        ["flip", bit, every] => {
            Fault::Flip { bit: number(bit, "bit=")? as u32, every: number(every, "every=")? as u64 }
        }
        ["down"] => Fault::Down,
        ["status", status, after] => {
            Fault::Status { status: number(status, "")? as i32, after: number(after, "after=")? as u64 }
        }
        ["hang", after] => Fault::Hang(number(after, "after=")? as u64),
        ["counts", counter, by] => Fault::Counts((*counter).to_owned(), number(by, "")? as u64),
        ["peer-memory"] => Fault::PeerMemory,
        ["refuse", call, code] => Fault::Refuse((*call).to_owned(), number(code, "")? as i32),
        _ => return Err(format!("no fault '{}' of an adapter", words.join(" "))),
    })
}

fn number(word: &str, name: &str) -> Result<f64, String> {
    let found = word.strip_prefix(name).and_then(|text| text.parse::<f64>().ok());
    found.filter(|number| *number > 0.0 || word.ends_with('0')).ok_or_else(|| format!("'{word}' is not {name}NUMBER"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_not_understood_is_named() {
        let good = "rate 2e8\nadapter a infiniband # one\na slow factor=2\na flip bit=0 every=9\na hang after=3\n";
        let config = Config::parse(good).unwrap();
        assert_eq!((config.rate, config.adapters[0].faults.len()), (2e8, 3));
        for (wrong, line) in
            [("adapter a token-ring", 1), ("\nb down", 2), ("adapter a ethernet\na slow", 2), ("rate x", 1)]
        {
            assert!(Config::parse(wrong).unwrap_err().starts_with(&format!("line {line}: ")), "{wrong}");
        }
    }
}
