//! What the simulated node has, from a few lines of text.

use crate::fault::Faults;

/// Devices and how the driver behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Number of devices.
    pub devices: usize,
    /// Multiprocessors of each.
    pub sms: u32,
    /// Bytes of memory of each.
    pub memory: u64,
    /// Clock of each, kHz. Slow, so that little work takes as much time as a benchmark asks for.
    pub clock_khz: f64,
    /// Bytes per second of each device's memory.
    pub bandwidth: f64,
    /// Version that the driver reports.
    pub version: i32,
    /// What `cuInit` answers.
    pub init: i32,
    /// Faults, by device.
    pub faults: Vec<(usize, Faults)>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            devices: 1,
            sms: 6,
            memory: 20 << 20,
            clock_khz: 200.0,
            bandwidth: 1e9,
            version: 12_020,
            init: 0,
            faults: Vec::new(),
        }
    }
}

impl Config {
    /// Reads lines such as `devices 8`, `sms 12`, `driver 11040`, `init 999` and `gpu 3 flip sm=5 unit=mma bit=12 every=9`.
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
        fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
            text.parse().map_err(|_| format!("'{text}' is no number"))
        }
        match words {
            [] => {}
            ["devices", n] => self.devices = number(n)?,
            ["sms", n] => self.sms = number(n)?,
            ["memory", n] => self.memory = number(n)?,
            ["clock_khz", n] => self.clock_khz = number(n)?,
            ["bandwidth", n] => self.bandwidth = number(n)?,
            ["driver", n] => self.version = number(n)?,
            ["init", n] => self.init = number(n)?,
            ["gpu", index, fault @ ..] => {
                let index = number(index)?;
                let known = self.faults.iter().position(|(at, _)| *at == index);
                let at = known.unwrap_or_else(|| {
                    self.faults.push((index, Faults::default()));
                    self.faults.len() - 1
                });
                self.faults[at].1.add(fault)?;
            }
            [other, ..] => return Err(format!("no setting '{other}'")),
        }
        Ok(())
    }

    /// Faults of one device.
    #[must_use]
    pub fn faults_of(&self, device: usize) -> Faults {
        self.faults.iter().find(|(at, _)| *at == device).map(|(_, faults)| faults.clone()).unwrap_or_default()
    }

    /// The file `libcuda.conf` beside the library that this process loaded, or the defaults.
    ///
    /// # Errors
    /// When that file is not understood.
    pub(crate) fn beside_library() -> Result<Self, String> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let library = maps.lines().filter_map(|l| l.split_whitespace().last()).find(|p| p.contains("/libcuda.so"));
        let file = library.map(|path| std::path::Path::new(path).with_file_name("libcuda.conf"));
        file.and_then(|path| std::fs::read_to_string(path).ok())
            .map_or_else(|| Ok(Self::default()), |text| Self::parse(&text))
    }
}
