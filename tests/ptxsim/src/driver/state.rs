//! What the driver remembers: devices with their clocks, modules, streams, events, and who may open whose memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::config::Config;
use super::errors::{Code, ILLEGAL_ADDRESS, INVALID_PTX, LAUNCH_FAILED, NO_BINARY};
use super::nccl::Meeting;
use super::queue::{Event, Stream, Work};
use super::sensor::{Sensor, sensors};
use crate::code::Kernel;
use crate::device::{Device, Launch};
use crate::link::Link;
use crate::memory::{Memory, Peer};
use crate::parse::parse;
use crate::rng::Rng;

/// Time of a launch before its first block runs, and of a copy, nanoseconds.
pub(super) const LATENCY: f64 = 4_000.0;
/// Bytes per second between host and device.
const BUS: f64 = 0.4e9;

pub(super) struct Card {
    pub(super) device: Device,
    /// Virtual time, nanoseconds.
    pub(super) now: f64,
    /// Until when the host has waited for it.
    pub(super) host: f64,
    /// Error that all later calls get: a CUDA context does not recover.
    pub(super) broken: Option<Code>,
    /// A kernel that does not end runs on it.
    pub(super) hangs: bool,
    launches: u64,
    /// What the management library shows.
    pub(super) sensors: BTreeMap<String, Sensor>,
}

/// Kernels of a module, and the card that loaded it.
pub(super) struct Module {
    pub(super) card: usize,
    pub(super) kernels: Range<usize>,
}

pub(super) struct State {
    pub(super) config: Config,
    pub(super) cards: Vec<Card>,
    /// Kernels of all texts; cards that load the same text share them.
    pub(super) kernels: Vec<Kernel>,
    texts: Vec<(Vec<u8>, Range<usize>)>,
    pub(super) modules: Vec<Module>,
    pub(super) events: Vec<Event>,
    pub(super) streams: Vec<Stream>,
    pub(super) graphs: Vec<Vec<Work>>,
    /// Graphs that can be started.
    pub(super) ready: usize,
    /// Device of the current context.
    pub(super) current: usize,
    /// Whose memory may be opened by whom: by the first that of the second.
    pub(super) opened: Vec<(usize, usize)>,
    /// Ways between devices, by from and to.
    pub(super) links: Vec<Vec<Link>>,
    /// The same ways through adapters, once a communicator was told to use nothing else.
    pub(super) adapters: Option<Vec<Vec<Link>>>,
    /// Which stream goes on next is not for the caller to know.
    pub(super) rng: Rng,
    /// What groups of NCCL's calls asked for.
    pub(super) meetings: Vec<Meeting>,
    /// Those over several processes that this one has not brought its part to.
    pub(super) to_bring: Vec<usize>,
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
    pub(super) fn new(config: Config) -> Self {
        let card = |index: usize| Card {
            device: Device::numbered(index, (config.sms, config.memory), config.faults_of(index), index as u64 + 1),
            now: 0.0,
            host: 0.0,
            broken: None,
            hangs: false,
            launches: 0,
            sensors: sensors(
                config.sensors.iter().filter(|(at, ..)| *at == index).map(|(_, name, shows)| (name, shows)),
            ),
        };
        let count = config.devices;
        Self {
            cards: (0..count).map(card).collect(),
            kernels: Vec::new(),
            texts: Vec::new(),
            modules: Vec::new(),
            events: Vec::new(),
            streams: Vec::new(),
            graphs: Vec::new(),
            ready: 0,
            current: 0,
            opened: Vec::new(),
            links: (0..count).map(|from| (0..count).map(|to| config.link_of((from, to))).collect()).collect(),
            adapters: None,
            rng: Rng(7),
            meetings: Vec::new(),
            to_bring: Vec::new(),
            config,
        }
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

    /// Loads PTX for the current card; machine code is for other devices than these.
    pub(super) fn load(&mut self, image: &[u8]) -> Result<usize, Code> {
        let known = self.texts.iter().find(|(text, _)| text == image).map(|(_, range)| range.clone());
        let kernels = match known {
            Some(range) => range,
            None => {
                let text = std::str::from_utf8(image).map_err(|_| NO_BINARY)?;
                let first = self.kernels.len();
                let also = self.config.also.as_ref().map(std::fs::read_to_string).transpose();
                for text in [Some(text.to_owned()), also.map_err(|_| NO_BINARY)?].into_iter().flatten() {
                    self.kernels.extend(parse(&text).map_err(|why| {
                        eprintln!("libcuda (simulated): {why}");
                        INVALID_PTX
                    })?);
                }
                self.texts.push((image.to_vec(), first..self.kernels.len()));
                first..self.kernels.len()
            }
        };
        self.modules.push(Module { card: self.current, kernels });
        Ok(self.modules.len())
    }

    /// Runs a kernel to its end, unless the card is broken, or becomes so.
    pub(super) fn launch(&mut self, at: usize, index: usize, shape: ([u32; 3], [u32; 3], usize), params: &[u8]) {
        let kernel = &self.kernels[index];
        let card = &mut self.cards[at];
        card.launches += 1;
        if card.device.faults.lost_after.is_some_and(|last| card.launches > last) {
            card.broken = Some(LAUNCH_FAILED);
            return;
        }
        if card.device.faults.hang.iter().any(|name| name == kernel.name()) {
            card.hangs = true;
            return;
        }
        self.lend(at);
        let (kernel, card) = (&self.kernels[index], &mut self.cards[at]);
        let (grid, block, shared) = shape;
        let ran = card.device.launch(&Launch { kernel, grid, block, shared, params });
        let away = self.take_back(at);
        let card = &mut self.cards[at];
        match ran {
            Ok(ran) => {
                let computed = ran.cycles as f64 / self.config.clock_khz * 1e6;
                card.now += LATENCY + computed.max(ran.counts.moved() as f64 / self.config.bandwidth * 1e9).max(away);
            }
            Err(trap) => {
                eprintln!("libcuda (simulated): {trap}");
                card.broken = Some(ILLEGAL_ADDRESS);
            }
        }
    }

    /// Gives the memory of all others to a card for as long as its kernel runs.
    fn lend(&mut self, at: usize) {
        for other in (0..self.cards.len()).filter(|other| *other != at) {
            let peer = Peer {
                memory: std::mem::take(&mut self.cards[other].device.memory),
                open: self.opened.contains(&(at, other)),
                inward: std::mem::take(&mut self.links[other][at]),
                outward: std::mem::take(&mut self.links[at][other]),
                arrived: Vec::new(),
            };
            self.cards[at].device.memory.peers.push(peer);
        }
    }

    /// Gives everybody his memory back; nanoseconds of the slowest way that was used.
    fn take_back(&mut self, at: usize) -> f64 {
        let mut slowest = 0.0_f64;
        let others: Vec<usize> = (0..self.cards.len()).filter(|other| *other != at).collect();
        for (peer, other) in std::mem::take(&mut self.cards[at].device.memory.peers).into_iter().zip(others) {
            let Peer { memory, mut inward, mut outward, .. } = peer;
            slowest = slowest.max(inward.time(self.config.link)).max(outward.time(self.config.link));
            self.cards[other].device.memory = memory;
            self.links[other][at] = inward;
            self.links[at][other] = outward;
        }
        slowest
    }

    /// The copy engine's work: from anywhere to anywhere, by the direct way or through the host.
    pub(super) fn copy(&mut self, at: usize, (to, from): (u64, u64), size: usize) -> Result<(), Code> {
        let card = |address| Memory::device_of(address).filter(|card| *card < self.cards.len()).ok_or(ILLEGAL_ADDRESS);
        let (source, sink) = (card(from)?, card(to)?);
        let read = self.cards[source].device.memory.read(from, size);
        let mut bytes = read.map_err(|_| ILLEGAL_ADDRESS)?.to_vec();
        if source == sink {
            self.cards[at].copied(size / 2);
        } else {
            let link = &mut self.links[source][sink];
            link.carry(&mut bytes);
            // Without peer access all of it goes through the host, in and out again.
            let direct = self.opened.contains(&(source, sink)) || self.opened.contains(&(sink, source));
            let time = link.time(self.config.link) * if direct { 1.0 } else { 3.0 };
            self.cards[at].now += LATENCY + time;
        }
        self.cards[sink].device.memory.write(to, &bytes).map_err(|_| ILLEGAL_ADDRESS)
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
