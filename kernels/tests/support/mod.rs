//! A simulated device with one module loaded, and short words for moving data.

use muster_gpu::code::PTX;
use muster_ptxsim::{Device, Faults, Kernel, Launch, Why, parse};

#[derive(Clone, Copy, Debug)]
pub enum Arg {
    U32(u32),
    U64(u64),
    F64(f64),
}

pub struct Gpu {
    device: Device,
    kernels: Vec<Kernel>,
}

impl Gpu {
    pub fn new(module: &str, sms: u32, seed: u64) -> Self {
        let image = PTX.modules.iter().find(|m| m.name == module).unwrap().image();
        Self::on(&image, Device::new(sms, 64 << 20, Faults::default(), seed))
    }

    pub fn from_text(text: &str, sms: u32, seed: u64) -> Self {
        Self::on(text.as_bytes(), Device::new(sms, 64 << 20, Faults::default(), seed))
    }

    pub fn on(image: &[u8], device: Device) -> Self {
        let kernels = parse(std::str::from_utf8(image).unwrap().trim_end_matches('\0')).unwrap();
        Self { device, kernels }
    }

    pub fn buffer(&mut self, bytes: u64) -> Arg {
        Arg::U64(self.device.memory.allocate(bytes).unwrap())
    }

    pub fn words(&mut self, words: &[u32]) -> Arg {
        self.hold(&bytes_of(words))
    }

    pub fn doubles(&mut self, values: &[f64]) -> Arg {
        self.hold(&values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
    }

    fn hold(&mut self, bytes: &[u8]) -> Arg {
        let at = self.device.memory.allocate(bytes.len() as u64).unwrap();
        self.device.memory.write(at, bytes).unwrap();
        Arg::U64(at)
    }

    pub fn read_words(&mut self, at: Arg, count: u64) -> Vec<u32> {
        let Arg::U64(at) = at else { panic!("no address") };
        let bytes = self.device.memory.read(at, count as usize * 4).unwrap();
        bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
    }

    pub fn read_doubles(&mut self, at: Arg, count: u64) -> Vec<f64> {
        let Arg::U64(at) = at else { panic!("no address") };
        let bytes = self.device.memory.read(at, count as usize * 8).unwrap();
        bytes.chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
    }

    /// Runs and returns the cycles.
    pub fn run(&mut self, name: &str, (blocks, threads): (u32, u32), args: &[Arg]) -> u64 {
        self.run_with(name, ([blocks, 1], threads, 0), args).unwrap()
    }

    pub fn run_with(&mut self, name: &str, shape: ([u32; 2], u32, usize), args: &[Arg]) -> Result<u64, Why> {
        let kernel = self.kernels.iter().find(|k| k.name() == name).unwrap_or_else(|| panic!("no kernel {name}"));
        let mut params = Vec::new();
        assert_eq!(kernel.param_layout().len(), args.len(), "parameters of {name}");
        for ((at, _), arg) in kernel.param_layout().iter().zip(args) {
            params.resize(*at, 0);
            match arg {
                Arg::U32(value) => params.extend(value.to_le_bytes()),
                Arg::U64(value) => params.extend(value.to_le_bytes()),
                Arg::F64(value) => params.extend(value.to_le_bytes()),
            }
        }
        let (grid, threads, shared) = shape;
        let launch = Launch { kernel, grid: [grid[0], grid[1], 1], block: [threads, 1, 1], shared, params: &params };
        self.device.launch(&launch).map(|ran| ran.cycles).map_err(|trap| trap.why)
    }
}

fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}
