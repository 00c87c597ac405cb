//! Two queue pairs of one port, connected with each other: writes go in at one end and come out at the other.

use std::ffi::c_int;
use std::io;

use super::layout::{
    Address, Capacity, Completion, CompletionQueue, ETHERNET, INIT, LOCAL_WRITE, Part, PortAttributes, QueuePair,
    QueuePairAttributes, QueuePairWish, READY_TO_RECEIVE, READY_TO_SEND, RELIABLE, REMOTE_WRITE, Request, SUCCESS,
    mask,
};
use super::library::Adapter;
use crate::driver::Trouble;

/// Most writes under way.
pub(super) const DEPTH: u32 = 64;
/// Completions that are taken at once.
const TAKEN: usize = 16;
/// Empty looks for completions before others may use the core.
const PATIENCE: u32 = 10_000;
/// A lost packet is sent again after 4.096 us times 2 to this power, 67 ms, and so many times.
const TIMEOUT: u8 = 14;
const RETRIES: u8 = 7;
/// Number of the first packet; any will do between two ends of one process.
const FIRST: u32 = 0x1b;

/// One message: where it is read, and where it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) bytes: u32,
}

pub(super) struct Pair<'a> {
    adapter: &'a Adapter,
    queue: *mut CompletionQueue,
    sender: *mut QueuePair,
    /// Keys of what is read, and of what is written.
    keys: (u32, u32),
}

impl<'a> Pair<'a> {
    /// Makes and connects both ends. `gid` is the index of the own address, where the port is addressed so.
    pub(super) fn connect(
        adapter: &'a Adapter,
        (number, port): (u8, &PortAttributes),
        gid: Option<u8>,
        keys: (u32, u32),
    ) -> Result<Self, Trouble> {
        let queue = adapter.completion_queue(DEPTH)?;
        let [sender, receiver] = [end(adapter, queue)?, end(adapter, queue)?];
        let address = address(adapter, (number, port), gid)?;
        for (own, other, what) in [(receiver, sender, "the receiving end"), (sender, receiver, "the sending end")] {
            join(adapter, own, (number_of(other), address, port.active_mtu), what)?;
        }
        Ok(Self { adapter, queue, sender, keys })
    }

    /// Writes `count` messages, number `n` as `message` says, at most [`DEPTH`] at once; returns when the last has arrived.
    ///
    /// # Errors
    /// With the words of the first completion that is none.
    pub(super) fn write(&mut self, count: u32, message: &dyn Fn(u32) -> Message) -> Result<(), Trouble> {
        let (mut posted, mut done, mut empty) = (0, 0, 0);
        while done < count {
            while posted < count && posted - done < DEPTH {
                self.post(posted, message(posted))?;
                posted += 1;
            }
            let taken = self.poll()?;
            done += taken;
            empty = if taken > 0 { 0 } else { empty + 1 };
            if empty > PATIENCE {
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    #[expect(unsafe_code, reason = "posting goes through the adapter's table of functions")]
    fn post(&self, number: u32, Message { from, to, bytes }: Message) -> Result<(), Trouble> {
        let mut part = Part { address: from, length: bytes, key: self.keys.0 };
        let mut request = Request::write(number.into(), &raw mut part, (to, self.keys.1));
        let mut refused = std::ptr::null_mut();
        // SAFETY: the queue pair was made by the library and never destroyed; its context holds the table.
        let code = unsafe {
            (*(*self.sender).context).post_send.map(|post| post(self.sender, &raw mut request, &raw mut refused))
        };
        match code {
            Some(0) => Ok(()),
            Some(code) => Err(Trouble::Failed(format!("ibv_post_send: {}", io::Error::from_raw_os_error(code)))),
            None => Err(Trouble::Failed("the adapter's driver cannot post".to_owned())),
        }
    }

    /// How many writes have arrived since the last call.
    #[expect(unsafe_code, reason = "polling goes through the adapter's table of functions")]
    fn poll(&self) -> Result<u32, Trouble> {
        let mut found = [Completion::default(); TAKEN];
        // SAFETY: the queue was made by the library and never destroyed; there is room for as many as it is told.
        let count = unsafe {
            (*(*self.queue).context).poll_cq.map(|poll| poll(self.queue, TAKEN as c_int, found.as_mut_ptr()))
        };
        let count = count.and_then(|count| usize::try_from(count).ok()).filter(|count| *count <= TAKEN);
        let count = count.ok_or_else(|| Trouble::Failed("ibv_poll_cq failed".to_owned()))?;
        match found[..count].iter().find(|completion| completion.status != SUCCESS) {
            None => Ok(count as u32),
            Some(Completion { id, status, vendor, .. }) => {
                let words = self.adapter.status(*status);
                Err(Trouble::Failed(format!("message {id} ended with status {status}, {words} (vendor {vendor:#x})")))
            }
        }
    }
}

/// One end.
fn end(adapter: &Adapter, queue: *mut CompletionQueue) -> Result<*mut QueuePair, Trouble> {
    let capacity = Capacity { sends: DEPTH, receives: 1, send_parts: 1, receive_parts: 1, ..Capacity::default() };
    let none = std::ptr::null_mut;
    let (send, receive) = (queue, queue);
    let mut wish =
        QueuePairWish { own: none(), send, receive, shared: none(), capacity, kind: RELIABLE, signal_all: 0 };
    adapter.queue_pair(&mut wish)
}

#[expect(unsafe_code, reason = "its number stands in what the library made")]
fn number_of(pair: *mut QueuePair) -> u32 {
    // SAFETY: made by the library and never destroyed.
    unsafe { (*pair).number }
}

/// The port's own address, as the other end is to be given it.
fn address(adapter: &Adapter, (number, port): (u8, &PortAttributes), gid: Option<u8>) -> Result<Address, Trouble> {
    let mut address = Address { lid: port.lid, port: number, ..Address::default() };
    match gid {
        Some(index) => {
            address.gid = adapter.gid(number, index)?;
            (address.is_global, address.own_index, address.hops) = (1, index, 64);
        }
        None if port.link_layer == ETHERNET => {
            return Err(Trouble::NotRun("its table of addresses (GIDs) is empty".to_owned()));
        }
        None => {}
    }
    Ok(address)
}

/// Takes one end to where it receives and sends.
fn join(
    adapter: &Adapter,
    own: *mut QueuePair,
    (peer, address, path_mtu): (u32, Address, c_int),
    what: &str,
) -> Result<(), Trouble> {
    let mut wanted = QueuePairAttributes {
        state: INIT,
        port: address.port,
        access: LOCAL_WRITE | REMOTE_WRITE,
        ..QueuePairAttributes::default()
    };
    adapter.modify(own, &mut wanted, mask::STATE | mask::PKEY | mask::PORT | mask::ACCESS, what)?;
    wanted = QueuePairAttributes {
        state: READY_TO_RECEIVE,
        address,
        peer,
        path_mtu,
        receive_number: FIRST,
        reads_taken: 1,
        not_ready_timer: 12,
        ..QueuePairAttributes::default()
    };
    let route = mask::STATE | mask::ADDRESS | mask::PATH_MTU | mask::PEER;
    let receiving = mask::RECEIVE_NUMBER | mask::READS_TAKEN | mask::NOT_READY_TIMER;
    adapter.modify(own, &mut wanted, route | receiving, what)?;
    wanted = QueuePairAttributes {
        state: READY_TO_SEND,
        send_number: FIRST,
        reads_at_once: 1,
        timeout: TIMEOUT,
        retries: RETRIES,
        not_ready_retries: RETRIES,
        ..QueuePairAttributes::default()
    };
    let again = mask::TIMEOUT | mask::RETRIES | mask::NOT_READY_RETRIES;
    adapter.modify(own, &mut wanted, mask::STATE | mask::SEND_NUMBER | mask::READS_AT_ONCE | again, what)
}
