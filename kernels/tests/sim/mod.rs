//! A simulated GPU with a tape in its memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use muster_gpu::code::PTX;
use muster_gpu::train::{Clock, Launch, Part, Program, Word};
use muster_ptxsim::{Counts, Device, Faults, Kernel, Launch as Ordered, Ran, Trap, parse};
use muster_tape::{Span, Tape};

use crate::library;

/// Kernels of Hopper, which exist as text for tests only.
const HOPPER: &str = include_str!("../../prebuilt/wgmma.sm_90a.ptx");

/// A simulated GPU with a tape in its memory.
pub struct Sim {
    pub device: Device,
    kernels: Vec<Arc<[Kernel]>>,
    pub program: Program,
    tape: u64,
    space: u64,
    clock: u64,
}

impl Sim {
    pub fn new(tape: &Tape, program: Program, faults: Faults) -> Self {
        Self::with(&texts(), tape, program, faults)
    }

    /// With kernels from other texts.
    pub fn with(texts: &[String], tape: &Tape, program: Program, faults: Faults) -> Self {
        let mut device = Device::new(4, 256 << 20, faults, 1);
        let kernels = texts.iter().map(|text| read(text)).collect();
        let mut allocate = |bytes: usize| device.memory.allocate(bytes.max(16) as u64).unwrap();
        let (at, space, clock) = (allocate(tape.memory * 4), allocate(program.space), allocate(Clock::BYTES));
        let mut sim = Self { device, kernels, program, tape: at, space, clock };
        // What nobody wrote is no number.
        let poison = vec![0xff; tape.memory * 4];
        sim.device.memory.write(at, &poison).unwrap();
        sim.restart();
        sim
    }

    pub fn restart(&mut self) {
        let start: Vec<u8> = Clock::START.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.device.memory.write(self.clock, &start).unwrap();
        for launch in self.program.setup.clone() {
            self.run(&launch);
        }
    }

    pub fn step(&mut self) -> f32 {
        self.try_step().unwrap_or_else(|trap| panic!("{trap}"))
    }

    /// A step, unless a kernel of it is stopped.
    pub fn try_step(&mut self) -> Result<f32, Trap> {
        for part in self.program.step.clone() {
            self.part(&part)?;
        }
        Ok(self.loss())
    }

    /// One part of a step, and what the kernel did if it is one.
    pub fn part(&mut self, part: &Part) -> Result<Counts, Trap> {
        match part {
            Part::Kernel(launch) => Ok(self.try_run(launch)?.counts),
            Part::Library(product) => {
                let ends = [product.left, product.right, product.result].map(|word| self.word(word));
                let bias = product.bias.map(|word| self.word(word));
                library::multiply(&mut self.device.memory, &product.product, ends, bias);
                Ok(Counts::default())
            }
        }
    }

    pub fn loss(&mut self) -> f32 {
        let bytes = self.device.memory.read(self.clock + Clock::LOSS as u64, 4).unwrap();
        f32::from_le_bytes(bytes.try_into().unwrap())
    }

    fn word(&self, word: Word) -> u64 {
        match word {
            Word::U32(value) => u64::from(value),
            Word::F32(value) => u64::from(value.to_bits()),
            Word::U64(value) => value,
            Word::F64(value) => value.to_bits(),
            Word::Null => 0,
            Word::Tape(element) => self.tape + element as u64 * 4,
            Word::Space(byte) => self.space + byte as u64,
            Word::Clock(byte) => self.clock + byte as u64,
        }
    }

    /// Runs one kernel to its end.
    pub fn run(&mut self, launch: &Launch) {
        self.try_run(launch).unwrap_or_else(|trap| panic!("{launch:?}: {trap}"));
    }

    fn try_run(&mut self, launch: &Launch) -> Result<Ran, Trap> {
        let kernel = self.kernels.iter().flat_map(|text| text.iter()).find(|k| k.name() == launch.kernel).unwrap();
        assert_eq!(kernel.param_layout().len(), launch.args.len(), "parameters of {}", launch.kernel);
        let mut params = Vec::new();
        for ((at, size), word) in kernel.param_layout().iter().zip(&launch.args) {
            params.resize(*at, 0);
            let bytes = self.word(*word);
            params.extend(&bytes.to_le_bytes()[..*size]);
        }
        let (grid, block) = ([launch.grid.0, launch.grid.1, 1], [launch.threads, 1, 1]);
        let ordered = Ordered { kernel, grid, block, shared: launch.shared as usize, params: &params };
        self.device.launch(&ordered)
    }

    pub fn put(&mut self, span: Span, elements: &[f32]) {
        let bytes: Vec<u8> = elements.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.device.memory.write(self.tape + span.offset as u64 * 4, &bytes).unwrap();
    }

    pub fn elements(&mut self, span: Span) -> Vec<f32> {
        let bytes = self.device.memory.read(self.tape + span.offset as u64 * 4, span.len * 4).unwrap();
        bytes.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    }
}

/// The kernels of a text, which is read once: for every operation anew it would take longer than what is run.
fn read(text: &str) -> Arc<[Kernel]> {
    static KNOWN: Mutex<BTreeMap<String, Arc<[Kernel]>>> = Mutex::new(BTreeMap::new());
    if let Some(known) = KNOWN.lock().unwrap().get(text) {
        return known.clone();
    }
    let kernels: Arc<[Kernel]> = parse(text).unwrap().into();
    KNOWN.lock().unwrap().insert(text.to_owned(), kernels.clone());
    kernels
}

/// The kernels that are shipped as text, and those of Hopper.
pub fn texts() -> Vec<String> {
    let text = |image: &[u8]| std::str::from_utf8(image).unwrap().trim_end_matches('\0').to_owned();
    let shipped = PTX.modules.iter().map(|module| text(&module.image()));
    shipped.chain([HOPPER.to_owned()]).collect()
}
