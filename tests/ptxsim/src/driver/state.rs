//! What the driver remembers: devices with their clocks, modules, events.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::config::Config;
use super::errors::{Code, ILLEGAL_ADDRESS, INVALID_PTX, LAUNCH_FAILED, NO_BINARY};
use super::sensor::{Sensor, sensors};
use crate::code::Kernel;
use crate::device::{Device, Launch};
use crate::parse::parse;

/// Time of a launch before its first block runs, and of a copy, nanoseconds.
const LATENCY: f64 = 4_000.0;
/// Bytes per second between host and device.
const BUS: f64 = 0.4e9;

pub(super) struct Card {
    pub(super) device: Device,
    /// Virtual time, nanoseconds.
    pub(super) now: f64,
    /// Error that all later calls get: a CUDA context does not recover.
    pub(super) broken: Option<Code>,
    /// A kernel that does not end runs on it.
    pub(super) hangs: bool,
    launches: u64,
    /// What the management library shows.
    pub(super) sensors: BTreeMap<String, Sensor>,
}

pub(super) struct State {
    pub(super) config: Config,
    pub(super) cards: Vec<Card>,
    /// All kernels of all modules; a module is its range.
    pub(super) kernels: Vec<Kernel>,
    pub(super) modules: Vec<std::ops::Range<usize>>,
    pub(super) events: Vec<f64>,
    /// Device of the current context. The worker has one.
    pub(super) current: usize,
}

static STATE: OnceLock<Mutex<State>> = OnceLock::new();

/// The driver's state, made at the first call.
pub(super) fn state() -> MutexGuard<'static, State> {
    let made = STATE.get_or_init(|| {
        let config = Config::beside_library().unwrap_or_else(|why| {
            eprintln!("libcuda.conf: {why}");
            Config { init: 999, ..Config::default() }
        });
        Mutex::new(State::new(config))
    });
    made.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn new(config: Config) -> Self {
        let card = |index: usize| Card {
            device: Device::new(config.sms, config.memory, config.faults_of(index), index as u64 + 1),
            now: 0.0,
            broken: None,
            hangs: false,
            launches: 0,
            sensors: sensors(
                config.sensors.iter().filter(|(at, ..)| *at == index).map(|(_, name, shows)| (name, shows)),
            ),
        };
        let cards = (0..config.devices).map(card).collect();
        Self { config, cards, kernels: Vec::new(), modules: Vec::new(), events: Vec::new(), current: 0 }
    }

    pub(super) fn card(&mut self) -> &mut Card {
        &mut self.cards[self.current]
    }

    /// What a sensor of a card shows now; nothing where it has none, or the code that its call answers.
    pub(super) fn sense(&mut self, card: usize, name: &str) -> Option<Result<u64, i32>> {
        let sensor = self.cards.get_mut(card)?.sensors.get_mut(name)?;
        let now = sensor.value;
        sensor.value += sensor.step;
        Some(if sensor.code == 0 { Ok(now) } else { Err(sensor.code) })
    }

    /// Loads PTX; machine code is for other devices than these.
    pub(super) fn load(&mut self, image: &[u8]) -> Result<usize, Code> {
        let text = std::str::from_utf8(image).map_err(|_| NO_BINARY)?;
        let kernels = parse(text).map_err(|why| {
            eprintln!("libcuda (simulated): {why}");
            INVALID_PTX
        })?;
        let first = self.kernels.len();
        self.kernels.extend(kernels);
        self.modules.push(first..self.kernels.len());
        Ok(self.modules.len())
    }

    pub(super) fn launch(
        &mut self,
        function: usize,
        shape: ([u32; 3], [u32; 3], usize),
        params: &[u8],
    ) -> Result<(), Code> {
        let (clock, bandwidth, current) = (self.config.clock_khz, self.config.bandwidth, self.current);
        let (kernel, card) = (&self.kernels[function], &mut self.cards[current]);
        if let Some(code) = card.broken {
            return Err(code);
        }
        card.launches += 1;
        if card.device.faults.lost_after.is_some_and(|last| card.launches > last) {
            card.broken = Some(LAUNCH_FAILED);
            return Err(LAUNCH_FAILED);
        }
        if card.device.faults.hang.iter().any(|name| name == kernel.name()) {
            card.hangs = true;
            return Ok(());
        }
        let (grid, block, shared) = shape;
        let ran = card.device.launch(&Launch { kernel, grid, block, shared, params }).map_err(|trap| {
            eprintln!("libcuda (simulated): {trap}");
            card.broken = Some(ILLEGAL_ADDRESS);
            ILLEGAL_ADDRESS
        })?;
        let busy = (ran.cycles as f64 / clock * 1e6).max(ran.moved as f64 / bandwidth * 1e9);
        card.now += LATENCY + busy;
        Ok(())
    }
}

impl Card {
    /// Lets the time of a copy pass.
    pub(super) fn copied(&mut self, bytes: usize) {
        self.now += LATENCY + bytes as f64 / BUS * 1e9;
    }

    /// The code that every call on a broken device gets.
    pub(super) fn usable(&self) -> Result<(), Code> {
        self.broken.map_or(Ok(()), Err)
    }
}
