//! How does one connection to each neighbour send and receive at the same time?

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::pair::meet::{Limit, TICK};
use crate::steps::Halt;

/// One connection to every neighbour; a collective over several lanes is cut into slices that know nothing of each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lane {
    pub(crate) out: BTreeMap<usize, Arc<TcpStream>>,
    pub(crate) back: BTreeMap<usize, Arc<TcpStream>>,
}

/// What of an exchange is over: this node's kernel has all that is sent, or all has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Sent,
    Received,
}

/// Why an exchange did not end.
#[derive(Debug)]
pub(crate) enum Broken {
    Stopped,
    /// The time is over: nothing more arrives, or nothing more is taken.
    Late {
        receiving: bool,
    },
    Sending(String),
    Receiving(String),
}

impl Lane {
    /// Sends `what` to one neighbour while exactly `into` arrives from another.
    pub(crate) fn exchange(
        &self,
        send: (usize, &[u8]),
        receive: (usize, &mut [u8]),
        limit: &Limit<'_>,
    ) -> Result<(), Broken> {
        self.exchange_telling(send, receive, limit, &mut |_| {})
    }

    /// The same; `tell` hears when each half is over.
    pub(crate) fn exchange_telling(
        &self,
        (to, mut what): (usize, &[u8]),
        (from, into): (usize, &mut [u8]),
        limit: &Limit<'_>,
        tell: &mut dyn FnMut(Half),
    ) -> Result<(), Broken> {
        let out = self.out.get(&to).ok_or_else(|| Broken::Sending("there is no connection".into()))?;
        let back = self.back.get(&from).ok_or_else(|| Broken::Receiving("there is no connection".into()))?;
        let mut have = 0;
        let (mut sending, mut receiving) = (true, true);
        loop {
            let mut moved = 0;
            if !what.is_empty() {
                moved += match send(&**out, what, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                    Err(Errno::AGAIN | Errno::INTR) => 0,
                    sent => sent.map_err(|e| Broken::Sending(e.to_string()))?,
                };
                what = &what[moved..];
            }
            if have < into.len() {
                let arrived = match recv(&**back, &mut into[have..], RecvFlags::DONTWAIT) {
                    Ok((_, 0)) => return Err(Broken::Receiving("the connection was closed".into())),
                    Err(Errno::AGAIN | Errno::INTR) => 0,
                    seen => seen.map_err(|e| Broken::Receiving(e.to_string()))?.1,
                };
                have += arrived;
                moved += arrived;
            }
            if what.is_empty() && std::mem::take(&mut sending) {
                tell(Half::Sent);
            }
            if have == into.len() && std::mem::take(&mut receiving) {
                tell(Half::Received);
            }
            if !(sending || receiving) {
                return Ok(());
            }
            if moved == 0 {
                limit.check().map_err(|halt| match halt {
                    Halt::Stopped => Broken::Stopped,
                    _ => Broken::Late { receiving: have < into.len() },
                })?;
                wait((out, !what.is_empty()), (back, have < into.len()));
            }
        }
    }

    /// Tells every rank a word and hears theirs, around the ring: nobody goes on before all came this far.
    pub(crate) fn words(&self, (me, n): (usize, usize), word: u64, limit: &Limit<'_>) -> Result<Vec<u64>, Broken> {
        let mut words = vec![0; n];
        words[me] = word;
        for s in 0..n - 1 {
            let mut heard = [0; 8];
            let said = words[(me + n - s) % n].to_be_bytes();
            self.exchange(((me + 1) % n, &said), ((me + n - 1) % n, &mut heard), limit)?;
            words[(me + 2 * n - s - 1) % n] = u64::from_be_bytes(heard);
        }
        Ok(words)
    }
}

/// Waits until one of them can go on, a tick at most.
fn wait((out, sends): (&TcpStream, bool), (back, receives): (&TcpStream, bool)) {
    let flags = |wanted: bool, flags| if wanted { flags } else { PollFlags::empty() };
    let mut fds = [PollFd::new(out, flags(sends, PollFlags::OUT)), PollFd::new(back, flags(receives, PollFlags::IN))];
    let chosen = if receives { &mut fds[usize::from(!sends)..] } else { &mut fds[..1] };
    // Whatever it says, the next look at the connections says it better.
    let _ = poll(chosen, Some(&Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() }));
}
