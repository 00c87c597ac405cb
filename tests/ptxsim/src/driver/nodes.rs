//! NCCL's communicators over several processes: real bytes over TCP, through a thread of the process that made the id.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what nccl.h says")]

use std::collections::VecDeque;
use std::ffi::{CStr, c_char, c_int};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::errors::{Code, ILLEGAL_ADDRESS};
use super::nccl::{INTERNAL, INVALID_USAGE, Meeting, REMOTE, SYSTEM, WIDTH, fault, summed};
use super::state::{LATENCY, State, state};

/// First bytes of an id, before address and port.
const MARK: [u8; 8] = *b"ptxsim-0";
/// Communicators over processes in a handle, above the number of the card from one.
const SHIFT: u32 = 16;
/// Codes in the settings: it never returns, and the same only where other processes take part.
const NEVER: Code = 1000;
const NEVER_WITH_OTHERS: Code = 1003;
/// A rank that brings something else, and one that is slow, by so many times and really by so long.
const WRONG: Code = 1001;
const SLOW: Code = 1002;
const SLOWNESS: (f64, Duration) = (10.0, Duration::from_millis(30));

#[derive(Clone, Copy)]
#[repr(C)]
pub struct UniqueId([u8; 128]);

/// A rank that was asked to join when the group ends.
struct Joining {
    place: usize,
    card: usize,
    rank: u32,
    world: u32,
    id: UniqueId,
}

static JOINING: Mutex<Vec<Joining>> = Mutex::new(Vec::new());
static WORLDS: Mutex<Vec<World>> = Mutex::new(Vec::new());

/// A communicator of this process with others.
struct World {
    stream: TcpStream,
    heard: Arc<Heard>,
}

/// What came back: nanoseconds and sums, in order; and whether more can come.
#[derive(Default)]
struct Heard {
    sums: Mutex<VecDeque<(f64, Vec<u8>)>>,
    broken: AtomicBool,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetUniqueId(id: *mut UniqueId) -> Code {
    if let Some(code) = fault("ncclGetUniqueId") {
        return code;
    }
    let Some(address) = own_address(std::env::var("NCCL_SOCKET_IFNAME").ok().as_deref()) else { return INTERNAL };
    let Ok(listener) = TcpListener::bind((address, 0)) else { return SYSTEM };
    let Ok(SocketAddr::V4(own)) = listener.local_addr() else { return SYSTEM };
    let mut bytes = [0; 128];
    bytes[..8].copy_from_slice(&MARK);
    bytes[8..12].copy_from_slice(&own.ip().octets());
    bytes[12..14].copy_from_slice(&own.port().to_be_bytes());
    thread::spawn(move || serve(&listener));
    // SAFETY: the caller promises room for an id.
    unsafe { id.write(UniqueId(bytes)) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommInitRank(comm: *mut usize, world: c_int, id: UniqueId, rank: c_int) -> Code {
    match fault("ncclCommInitRank") {
        None | Some(NEVER | NEVER_WITH_OTHERS) => {}
        Some(code) => return code,
    }
    let card = state().current;
    let joining = Joining { place: comm as usize, card, rank: rank as u32, world: world as u32, id };
    JOINING.lock().unwrap_or_else(PoisonError::into_inner).push(joining);
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommDestroy(comm: usize) -> Code {
    let worlds = WORLDS.lock().unwrap_or_else(PoisonError::into_inner);
    // Each card's handle leaves the same connection; the first of them closes it.
    let _ = world_of(comm).and_then(|world| worlds.get(world)).map(|world| world.stream.shutdown(Shutdown::Both));
    0
}

/// Which communicator over processes a handle belongs to.
pub(super) const fn world_of(comm: usize) -> Option<usize> {
    (comm >> SHIFT).checked_sub(1)
}

/// The card of a handle of any kind.
pub(super) const fn card_of(comm: usize) -> usize {
    (comm & ((1 << SHIFT) - 1)) - 1
}

/// Whether connections of the communicator are gone.
pub(super) fn is_broken(world: usize) -> bool {
    let worlds = WORLDS.lock().unwrap_or_else(PoisonError::into_inner);
    worlds.get(world).is_none_or(|world| world.heard.broken.load(Ordering::Acquire))
}

/// Does what ranks were asked for since the group began; nothing where none was.
pub(super) fn join_asked() -> Option<Code> {
    let asked = std::mem::take(&mut *JOINING.lock().unwrap_or_else(PoisonError::into_inner));
    let first = asked.first()?;
    // As the real one does where it is asked to tell its version.
    println!("NCCL version 2.21.5+cuda12.4");
    let alone = asked.len() == first.world as usize;
    match fault("ncclCommInitRank") {
        Some(NEVER_WITH_OTHERS) if alone => {}
        Some(_) => loop {
            thread::sleep(Duration::from_secs(1));
        },
        None => {}
    }
    Some(join(first, &asked).unwrap_or(REMOTE))
}

/// Meets all others; nothing where a connection breaks.
fn join(first: &Joining, asked: &[Joining]) -> Option<Code> {
    let id = &first.id.0;
    if id[..8] != MARK {
        return Some(INVALID_USAGE);
    }
    let ip = Ipv4Addr::new(id[8], id[9], id[10], id[11]);
    let mut stream = TcpStream::connect((ip, u16::from_be_bytes([id[12], id[13]]))).ok()?;
    let _ = stream.set_nodelay(true);
    let card = [first.world, first.rank, asked.len() as u32].map(u32::to_be_bytes).concat();
    stream.write_all(&card).ok()?;
    stream.read_exact(&mut [0]).ok()?;
    let heard = Arc::new(Heard::default());
    let (reading, hearing) = (stream.try_clone().ok()?, Arc::clone(&heard));
    thread::spawn(move || hear(reading, &hearing));
    let mut worlds = WORLDS.lock().unwrap_or_else(PoisonError::into_inner);
    worlds.push(World { stream, heard });
    for one in asked {
        // SAFETY: the caller keeps the place until the group has ended.
        unsafe { (one.place as *mut usize).write(worlds.len() << SHIFT | (one.card + 1)) };
    }
    Some(0)
}

fn hear(mut stream: TcpStream, heard: &Heard) {
    while let Some(sum) = receive(&mut stream) {
        heard.sums.lock().unwrap_or_else(PoisonError::into_inner).push_back(sum);
    }
    heard.broken.store(true, Ordering::Release);
}

/// Nanoseconds and bytes.
fn receive(stream: &mut TcpStream) -> Option<(f64, Vec<u8>)> {
    let mut head = [0; 12];
    stream.read_exact(&mut head).ok()?;
    let (length, time) = head.split_first_chunk()?;
    let mut bytes = vec![0; u32::from_be_bytes(*length) as usize];
    stream.read_exact(&mut bytes).ok()?;
    Some((f64::from_be_bytes(time.try_into().ok()?), bytes))
}

fn send(stream: &mut TcpStream, time: f64, bytes: &[u8]) -> std::io::Result<()> {
    let head = [&(bytes.len() as u32).to_be_bytes()[..], &time.to_be_bytes()].concat();
    stream.write_all(&[&head, bytes].concat())
}

/// Waits for all ranks of the first one's communicator, then adds up what they send until one is gone.
fn serve(listener: &TcpListener) {
    let mut ends: Vec<(u32, u32, TcpStream)> = Vec::new();
    loop {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let mut card = [0; 12];
        if stream.read_exact(&mut card).is_err() {
            continue;
        }
        let [world, first, count] = [0, 4, 8].map(|at| card[at..at + 4].try_into().map_or(0, u32::from_be_bytes));
        let _ = stream.set_nodelay(true);
        ends.push((first, count, stream));
        if ends.iter().map(|(_, count, _)| count).sum::<u32>() >= world {
            break;
        }
    }
    ends.sort_by_key(|(first, ..)| *first);
    if ends.iter_mut().any(|(.., stream)| stream.write_all(&[1]).is_err()) {
        return;
    }
    loop {
        let mut all = Vec::new();
        let mut slowest = 0.0_f64;
        for (_, count, stream) in &mut ends {
            let Some((time, bytes)) = receive(stream) else {
                // Whoever is left hears of it at once, not when this process ends.
                ends.iter().for_each(|(.., stream)| drop(stream.shutdown(Shutdown::Both)));
                return;
            };
            slowest = slowest.max(time);
            all.extend(bytes.chunks(bytes.len().div_ceil(*count as usize).max(1)).map(<[u8]>::to_vec));
        }
        let sum = summed(&all);
        for (.., stream) in &mut ends {
            let _ = send(stream, slowest, &sum);
        }
    }
}

impl State {
    /// Sends what this process brings to sums over processes whose streams have all come.
    pub(super) fn bring(&mut self) {
        for number in std::mem::take(&mut self.to_bring) {
            let Meeting { world, held, .. } = self.meetings[number];
            if held || !self.all_here(number) {
                self.to_bring.push(number);
                continue;
            }
            self.meetings[number].sent = true;
            let Ok((time, bytes)) = self.brought(number) else { continue };
            let worlds = WORLDS.lock().unwrap_or_else(PoisonError::into_inner);
            let stream = world.and_then(|world| worlds.get(world)?.stream.try_clone().ok());
            // One that is gone is seen by whoever reads from it.
            let _ = stream.map(|mut stream| send(&mut stream, time, &bytes));
        }
    }

    fn brought(&mut self, number: usize) -> Result<(f64, Vec<u8>), Code> {
        let calls = self.meetings[number].calls.clone();
        let mut all = Vec::new();
        for call in &calls {
            all.push(self.bytes(call.rank, (call.from, call.bytes))?);
        }
        let mut time = calls.first().map_or(0.0, |call| call.bytes as f64 / self.config.link * 1e9);
        match self.config.failing.iter().find(|(name, _)| name == "ncclAllReduce").map(|(_, code)| *code) {
            // Every 64th number of the last card, in a bit that no rounding hides.
            Some(WRONG) => {
                all.last_mut()
                    .into_iter()
                    .for_each(|own| own.iter_mut().skip(2).step_by(64 * WIDTH).for_each(|b| *b ^= 16));
            }
            Some(SLOW) => {
                time *= SLOWNESS.0;
                thread::sleep(SLOWNESS.1);
            }
            _ => {}
        }
        Ok((time, all.concat()))
    }

    /// Whether the sums of a meeting over processes are here.
    pub(super) fn has_heard(&self, world: usize) -> bool {
        let worlds = WORLDS.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = worlds.get(world).map(|world| Arc::clone(&world.heard));
        heard.is_some_and(|heard| !heard.sums.lock().unwrap_or_else(PoisonError::into_inner).is_empty())
    }

    /// Gives every card of this process the sums; how long that took, nanoseconds.
    pub(super) fn take_sums(&mut self, number: usize, world: usize) -> Result<f64, Code> {
        let heard = {
            let worlds = WORLDS.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&worlds.get(world).ok_or(INVALID_USAGE)?.heard)
        };
        let sum = heard.sums.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let (time, bytes) = sum.ok_or(INVALID_USAGE)?;
        for call in std::mem::take(&mut self.meetings[number].calls) {
            self.cards[call.rank].device.memory.write(call.to, &bytes).map_err(|_| ILLEGAL_ADDRESS)?;
        }
        Ok(LATENCY + time)
    }
}

/// An entry of the kernel's list of interfaces, as `ifaddrs.h` has it.
#[repr(C)]
struct Interface {
    next: *const Interface,
    name: *const c_char,
    flags: u32,
    address: *const [u8; 8],
    others: [*const u8; 3],
}

unsafe extern "C" {
    fn getifaddrs(first: *mut *const Interface) -> c_int;
    fn freeifaddrs(first: *const Interface);
}

/// The first IPv4 address of an interface whose name is or begins as `wanted` says; without that, of any but loopback, and loopback's
/// where there is no other.
fn own_address(wanted: Option<&str>) -> Option<Ipv4Addr> {
    let mut found = Vec::new();
    let mut first = std::ptr::null();
    // SAFETY: the list is valid from one call to the other; an address begins with its family, and one of IPv4 has eight bytes.
    unsafe {
        if getifaddrs(&raw mut first) != 0 {
            return None;
        }
        let mut entry = first;
        while let Some(interface) = entry.as_ref() {
            if let Some([2, 0, _, _, a, b, c, d]) = interface.address.as_ref() {
                let name = CStr::from_ptr(interface.name).to_string_lossy().into_owned();
                found.push((name, Ipv4Addr::new(*a, *b, *c, *d)));
            }
            entry = interface.next;
        }
        freeifaddrs(first);
    }
    let is_wanted = |name: &str| match wanted {
        None => name != "lo",
        Some(list) => list.split(',').any(|one| one.strip_prefix('=').map_or(name.starts_with(one), |one| name == one)),
    };
    let loopback = wanted.is_none().then_some(Ipv4Addr::LOCALHOST);
    found.iter().find(|(name, _)| is_wanted(name)).map(|(_, address)| *address).or(loopback)
}
