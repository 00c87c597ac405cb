//! How do all ranks of a job find each other and make their rings?

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use muster_wire::Secret;

use super::board::Board;
use super::group::Group;
use crate::collective::Lane;
use crate::pair::meet::{self, Door, Guest, Limit};
use crate::steps::Halt;

/// Set in the number of a guest who comes for a ring other than the first.
const OTHER: u16 = 0x8000;
/// Pause before a rank that is not there yet is called again.
const AGAIN: Duration = Duration::from_millis(100);
/// Visits of other works of the probe are numbered from 0.
const VISIT: u64 = 0x6464_7000;

/// Listens where the other ranks look for this one.
pub(super) fn listen(own: SocketAddr) -> Result<TcpListener, Halt> {
    let listener = TcpListener::bind(own).map_err(|e| Halt::Failed(format!("cannot listen on {own}: {e}")))?;
    listener.set_nonblocking(true).map_err(|e| Halt::Failed(format!("cannot listen on {own}: {e}")))?;
    Ok(listener)
}

/// Makes one connection to the next rank of every ring and waits for those before; gives a lane for each ring.
pub(super) fn rings(board: &Board, listener: &TcpListener, limit: &Limit<'_>) -> Result<Vec<Lane>, Halt> {
    let secret = Secret(board.secret);
    let door = Door { secret: &secret, visit: VISIT };
    let place = |group: &Group, by: usize| {
        let n = group.ranks.len();
        let me = group.ranks.iter().position(|rank| *rank == board.rank).unwrap_or(0);
        ((me + by) % n, group.ranks[(me + by) % n])
    };
    let mark = |ring: usize, rank: usize| rank as u16 | if ring == 0 { 0 } else { OTHER };
    let rings: Vec<&Group> = board.kept.iter().map(|kept| &kept.group).collect();
    let before = |group: &Group| place(group, group.ranks.len() - 1).1;
    let mut guests: Vec<Guest> = rings
        .iter()
        .enumerate()
        .map(|(ring, group)| Guest::new(mark(ring, before(group)), board.peers[before(group)].ip(), 1))
        .collect();
    let call = |(ring, group): (usize, &&Group)| {
        let next = place(group, 1).1;
        let way = (board.peers[board.rank].ip(), board.peers[next]);
        patient_call(way, &door, mark(ring, board.rank), limit)
            .map_err(|halt| explained(halt, |why| format!("cannot reach rank {next}: {why}")))
    };
    let (called, came) = thread::scope(|scope| {
        let calls = scope.spawn(|| rings.iter().enumerate().map(call).collect::<Result<Vec<_>, Halt>>());
        let came = meet::welcome(listener, &door, &mut guests, limit);
        (calls.join().unwrap_or_else(|_| Err(Halt::Failed("a connecting thread panicked".into()))), came)
    });
    came.map_err(|halt| {
        explained(halt, |why| {
            let missing = guests.iter().filter(|guest| guest.missing());
            let ranks: Vec<String> = missing.map(|guest| format!("rank {}", guest.who & !OTHER)).collect();
            format!("{why}: no connection from {}", ranks.join(", "))
        })
    })?;
    let mut lanes = Vec::new();
    for ((group, out), guest) in rings.iter().zip(called?).zip(guests) {
        let back = guest.links().next().ok_or_else(|| Halt::Failed("a connection is missing".into()))?;
        let (next, before) = (place(group, 1).0, place(group, group.ranks.len() - 1).0);
        let one = |at: usize, stream| BTreeMap::from([(at, Arc::new(stream))]);
        lanes.push(Lane { out: one(next, out), back: one(before, back) });
    }
    Ok(lanes)
}

fn explained(halt: Halt, explain: impl FnOnce(String) -> String) -> Halt {
    match halt {
        Halt::Failed(why) => Halt::Failed(explain(why)),
        halt => halt,
    }
}

/// Ranks start one after another: who is not there yet is called again.
fn patient_call(
    way: (IpAddr, SocketAddr),
    door: &Door<'_>,
    who: u16,
    limit: &Limit<'_>,
) -> Result<std::net::TcpStream, Halt> {
    loop {
        match meet::call(way, door, (who, 1), limit) {
            Ok(mut streams) => return streams.pop().ok_or_else(|| Halt::Failed("no connection".into())),
            Err(Halt::Failed(why)) if limit.check().is_err() => return Err(Halt::Failed(why)),
            Err(Halt::Failed(_)) => thread::sleep(AGAIN),
            Err(halt) => return Err(halt),
        }
    }
}
