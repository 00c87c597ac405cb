//! What the simulated node has, from a few lines of text.

use super::sensor::Sensor;
use crate::fault::Faults;
use crate::link::Link;

/// Devices and how the driver behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Number of devices.
    pub devices: usize,
    /// Multiprocessors of each.
    pub sms: u32,
    /// Most threads of a block. Few, because each is interpreted.
    pub threads: u32,
    /// Bytes of memory of each.
    pub memory: u64,
    /// Clock of each, kHz. Slow, so that little work takes as much time as a benchmark asks for.
    pub clock_khz: f64,
    /// Bytes per second of each device's memory.
    pub bandwidth: f64,
    /// Version that the driver reports.
    pub version: i32,
    /// PTX whose kernels every module has as well, of devices that are not simulated otherwise.
    pub also: Option<String>,
    /// What `cuInit` answers.
    pub init: i32,
    /// What the management library answers when it is started.
    pub nvml: i32,
    /// Functions of NCCL, cuBLAS, cuBLASLt and cuDNN that fail, with their code; 1000 for one that never ends, 1001 for
    /// one that computes something else, 1002 for one that takes ten times as long, 1003 for one that never ends where other
    /// processes take part.
    pub failing: Vec<(String, i32)>,
    /// Version that NCCL reports.
    pub nccl: i32,
    /// Bytes per second from one device to another.
    pub link: f64,
    /// Ways between devices that are not as the others: from, to.
    pub links: Vec<((usize, usize), Link)>,
    /// Whether memory can be shared with drivers of other devices.
    pub dma_buf: bool,
    /// Bytes per second of one device's data to another through an RDMA adapter; nothing without adapters.
    pub adapters: Option<f64>,
    /// What the way through the adapters does to the data.
    pub through_adapters: Link,
    /// Whether memory can be taken while work is recorded that could be started again.
    pub takes_beside_graphs: bool,
    /// What tells this node's devices from those of other nodes.
    pub identity: u8,
    /// Devices that are other cards than these nodes usually have in that place.
    pub cards: Vec<(usize, u8)>,
    /// Faults, by device.
    pub faults: Vec<(usize, Faults)>,
    /// Device, sensor of the management library, and what it shows; nothing where the device lacks it.
    pub sensors: Vec<(usize, String, Option<Sensor>)>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            devices: 1,
            sms: 6,
            threads: 256,
            memory: 20 << 20,
            clock_khz: 200.0,
            bandwidth: 1e9,
            version: 12_020,
            also: None,
            init: 0,
            nvml: 0,
            failing: Vec::new(),
            nccl: 22_105,
            link: 20e6,
            links: Vec::new(),
            dma_buf: true,
            adapters: None,
            through_adapters: Link::default(),
            takes_beside_graphs: true,
            identity: 0,
            cards: Vec::new(),
            faults: Vec::new(),
            sensors: Vec::new(),
        }
    }
}

impl Config {
    /// Reads lines such as `devices 8`, `sms 12`, `driver 11040`, `init 999`, `gpu 3 flip sm=5 unit=mma bit=12 every=9`,
    /// `link 0 1 slow factor=4`, `no-dma-buf`, `no-memory-beside-graphs`, `adapters 2e6`, `adapters flip bit=3 every=100`, `nccl ncclAllReduce 1`, `nccl-version 22304`,
    /// `gpu 3 sensor temperature 91`, `gpu 3 sensor ecc_corrected 0 by 2`,
    /// `gpu 3 lacks power` and, with a result of `nvml.h`, `gpu 3 answers power 15`.
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
            ["threads", n] => self.threads = number(n)?,
            ["memory", n] => self.memory = number(n)?,
            ["clock_khz", n] => self.clock_khz = number(n)?,
            ["bandwidth", n] => self.bandwidth = number(n)?,
            ["also", file] => self.also = Some((*file).to_owned()),
            ["driver", n] => self.version = number(n)?,
            ["init", n] => self.init = number(n)?,
            ["link", from, to, fault @ ..] => {
                let between = (number(from)?, number(to)?);
                let mut link = self.link_of(between);
                link.add(fault)?;
                self.links.push((between, link));
            }
            ["no-dma-buf"] => self.dma_buf = false,
            ["adapters", rate] => self.adapters = Some(number(rate)?),
            ["adapters", fault @ ..] => self.through_adapters.add(fault)?,
            ["nccl-version", n] => self.nccl = number(n)?,
            ["nccl" | "cublas" | "cublaslt" | "cudnn", function, code] => {
                self.failing.push(((*function).to_owned(), number(code)?))
            }
            ["nvml", n] => self.nvml = number(n)?,
            ["gpu", index, "sensor", name, value] => {
                self.sense(number(index)?, name, Some(Sensor { value: number(value)?, ..Sensor::default() }));
            }
            ["gpu", index, "sensor", name, value, "by", step] => {
                let (value, step) = (number(value)?, number(step)?);
                self.sense(number(index)?, name, Some(Sensor { value, step, code: 0 }));
            }
            ["no-memory-beside-graphs"] => self.takes_beside_graphs = false,
            ["identity", n] => self.identity = number(n)?,
            ["gpu", index, "card", n] => self.cards.push((number(index)?, number(n)?)),
            ["gpu", index, "lacks", name] => self.sense(number(index)?, name, None),
            ["gpu", index, "answers", name, code] => {
                self.sense(number(index)?, name, Some(Sensor { code: number(code)?, ..Sensor::default() }));
            }
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

    fn sense(&mut self, device: usize, name: &str, shows: Option<Sensor>) {
        self.sensors.push((device, name.to_owned(), shows));
    }

    /// The way from one device to another.
    pub(crate) fn link_of(&self, between: (usize, usize)) -> Link {
        self.links.iter().rev().find(|(of, _)| *of == between).map(|(_, link)| link.clone()).unwrap_or_default()
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
        let ours = |path: &&str| path.contains("/libcuda.so") || path.contains("/libnvidia-ml.so");
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let library = maps.lines().filter_map(|l| l.split_whitespace().last()).find(ours);
        let file = library.map(|path| std::path::Path::new(path).with_file_name("libcuda.conf"));
        file.and_then(|path| std::fs::read_to_string(path).ok())
            .map_or_else(|| Ok(Self::default()), |text| Self::parse(&text))
    }
}
