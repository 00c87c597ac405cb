//! What do the processes of a job do on this node, and what did they leave? One look of some seconds, read-only unless dumps are asked for.
//!
//! | file | settles |
//! |---|---|
//! | `find`, `words` | which processes are ranks of the job; what of their environment and command line may be told |
//! | `process` | state, wait channel, stack, threads, GPUs, outputs of one |
//! | `ras` | what NCCL's RAS answers |
//! | `files`, `folder`, `open` | logs, dumps and Inspector's files; how folders and files of others are opened and how long they are waited for |
//! | `held` | what ranks say last that end meanwhile |
//! | `health` | what collectors see of the node |
//! | `kernel`, `counters` | the kernel's log; counters of adapters and full connections |
//! | `gpus` | counters of GPUs |
//! | `zone` | how far the wall clock in its logs is from UTC |
//! | `dumps` | asking for dumps |
//! | `send` | pieces, and how much may be sent |

mod counters;
#[cfg(test)]
mod dialects;
mod dumps;
mod files;
mod find;
mod folder;
mod gpus;
mod health;
mod held;
mod kernel;
mod open;
mod process;
mod ras;
mod send;
mod words;
mod zone;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use muster_wire::{Counter, Frame, JobOrder, JobProcess, Outcome, PROCESSES_BYTES, Processes, Reading};

use crate::collect::Root;
use crate::stop::Stop;
use counters::Queues;
use find::{Found, Ranks};
use gpus::Gpus;
use health::Looking;
use held::Held;
use process::Open;
use send::Send;

/// Longest look, whatever was ordered.
const LONGEST: Duration = Duration::from_secs(45);
/// Looks at every process between the first and the last.
const LOOKS: u32 = 12;
/// Seconds that a process is left alone by RAS after its beginning: polls have ended jobs that were starting.
const YOUNG_S: f64 = 60.0;
/// Bytes of the kernel's log.
const KERNEL_LOG: usize = 1 << 20;
/// How long an order to end may go unnoticed.
const DOZE: Duration = Duration::from_millis(100);

/// One answer of RAS, or why there is none; the number is that of the poll.
type Answer = (u32, Result<Vec<u8>, String>);

/// Looks, sends everything in pieces, and says that it was all.
pub(crate) fn run(order: &JobOrder, root: &Root, stop: &Stop, say: &mut dyn FnMut(Frame)) {
    let looking = Looking::begin(&order.collectors, root);
    let gpus = Gpus::begin(order, root);
    let mut look = Job::begin(order, root);
    let asked = look.ask_ras(order);
    if order.ask_for_dumps {
        look.told.notes.extend(dumps::ask(root, look.ranks.iter().map(|(found, _)| found.clone())));
    }
    let mut send = Send::new(order.all_bytes, say);
    look.files(order, &mut send);
    look.wait(order, stop, asked.as_ref(), &mut send);
    looking.end(&mut send);
    let (counters, note) = gpus.end(stop);
    look.told.notes.extend(note);
    look.end(order, counters, &mut send);
    let outcome = match stop.order() {
        Some((_, why)) => Outcome::NotRun(why.to_owned()),
        None => Outcome::Done,
    };
    send.end(outcome);
}

struct Job<'a> {
    root: &'a Root,
    ranks: Vec<(Found, Open)>,
    told: Processes,
    began: Instant,
    sockets: BTreeSet<u64>,
    /// Folder with the tables of the job's network.
    net: String,
    queues: Queues,
    counts: counters::Counts,
    /// Files that were sent, so that none is sent twice.
    sent: BTreeSet<(u64, u64)>,
    /// Output of the ranks, held open.
    held: Vec<Held>,
    since_s: f64,
}

impl<'a> Job<'a> {
    fn begin(order: &JobOrder, root: &'a Root) -> Self {
        let Ranks { found, others, found_by, notes } = find::ranks(root, order);
        let at_s = files::now_s();
        let uptime = root.text("/proc/uptime");
        let uptime = uptime.value().and_then(|text| text.split(' ').next()?.parse::<f64>().ok()).unwrap_or(0.0);
        let ranks: Vec<(Found, Open)> = found
            .into_iter()
            .map(|found| {
                let open = process::open(root, found.pid);
                (found, open)
            })
            .collect();
        let processes: Vec<JobProcess> =
            ranks.iter().map(|(found, open)| process::begin(root, found, open, at_s - uptime)).collect();
        let since_s = processes.iter().map(|process| process.started_s).fold(f64::INFINITY, f64::min);
        let sockets = ranks.iter().flat_map(|(_, open)| open.sockets.iter().copied()).collect();
        let first = ranks.first().map(|(found, _)| found);
        let net = first
            .filter(|first| own_network(root, first.pid))
            .map_or("/proc/net".to_owned(), |first| format!("/proc/{}/net", first.pid));
        let told = Processes {
            zone_s: first.map_or(Reading::Absent, |first| zone::offset(root, first, at_s)),
            hostname: root.text("/proc/sys/kernel/hostname").value().cloned().unwrap_or_default(),
            addresses: counters::own_addresses(root).iter().map(IpAddr::to_string).collect(),
            found_by,
            at_s,
            looks: 1,
            processes,
            others,
            notes,
            ..Processes::default()
        };
        Self {
            root,
            ranks,
            told,
            began: Instant::now(),
            sockets,
            net,
            queues: Queues::default(),
            counts: counters::counts(root),
            sent: BTreeSet::new(),
            held: Vec::new(),
            // What was written a little before the processes began belongs to them, too; clocks of files are coarse.
            since_s: if since_s.is_finite() { since_s - 2.0 } else { at_s - f64::from(order.since_s) },
        }
    }

    /// Begins to ask RAS, once for the job, beside everything else; says why not.
    fn ask_ras(&mut self, order: &JobOrder) -> Option<Receiver<Answer>> {
        let address = match self.ras_address(order)? {
            Ok(address) => address,
            Err(why) => {
                self.told.ras.push(why);
                return None;
            }
        };
        let (give, take) = channel();
        let pause = Duration::from_millis(u64::from(order.pause_ms)).min(LONGEST);
        let asking = thread::Builder::new().name("ras".to_owned()).spawn(move || {
            let first = ras::ask(address);
            let answered = first.is_ok();
            if give.send((1, first)).is_err() || !answered {
                return;
            }
            thread::sleep(pause);
            // Nobody waits any more: then it is not wanted.
            let _ = give.send((2, ras::ask(address)));
        });
        asking.ok().map(|_| take)
    }

    /// Where RAS is to be asked; nothing where it is not to be asked.
    fn ras_address(&self, order: &JobOrder) -> Option<Result<SocketAddr, String>> {
        if !order.ras || self.ranks.is_empty() {
            return None;
        }
        let own = |found: &Found| words::is_own(&found.arguments);
        let young = self
            .told
            .processes
            .iter()
            .zip(&self.ranks)
            .find(|(told, (found, _))| !own(found) && self.told.at_s - told.started_s < YOUNG_S);
        if let Some((told, _)) = young {
            return Some(Err(format!(
                "not asked: process {} began less than {YOUNG_S:.0} s ago, and polls have ended jobs that were starting",
                told.pid
            )));
        }
        let (found, _) = self.ranks.first()?;
        if own_network(self.root, found.pid) {
            return Some(Err(
                "not asked: the job has a network of its own (container), which is not reached from the node"
                    .to_owned(),
            ));
        }
        let port = own(found).then(|| words::argument(&found.arguments, "--ras-port")).flatten();
        let word = port.map(|port| format!("127.0.0.1:{port}"));
        let word = word.or_else(|| found.environment.as_ref()?.get("NCCL_RAS_ADDR").cloned());
        let own: Vec<IpAddr> = self.told.addresses.iter().filter_map(|address| address.parse().ok()).collect();
        Some(ras::address(word.as_deref(), &own))
    }

    /// Kernel log, output and Inspector's files.
    fn files(&mut self, order: &JobOrder, send: &mut Send<'_>) {
        let (text, lines) = kernel::log(self.root, order.since_s, KERNEL_LOG);
        if !text.is_empty() || matches!(lines, Reading::Value(_)) {
            send.file("dmesg", text.as_bytes());
        }
        self.told.kernel_log = Some(lines);
        self.take_files(order, send, |look, send| {
            look.logs(send);
            look.inspector(send);
        });
    }

    fn take_files(
        &mut self,
        order: &JobOrder,
        send: &mut Send<'_>,
        take: impl FnOnce(&mut files::Look<'_>, &mut Send<'_>),
    ) {
        let mut look = files::Look {
            root: self.root,
            order,
            ranks: &self.ranks,
            since_s: self.since_s,
            stalled: std::mem::take(&mut self.told.stalled),
            notes: Vec::new(),
            sent: std::mem::take(&mut self.sent),
            held: std::mem::take(&mut self.held),
        };
        take(&mut look, send);
        let files::Look { stalled, notes, sent, held, .. } = look;
        (self.told.stalled, self.sent, self.held) = (stalled, sent, held);
        self.told.notes.extend(notes);
    }

    /// Looks again and again until RAS has answered twice and the time is over.
    fn wait(&mut self, order: &JobOrder, stop: &Stop, asked: Option<&Receiver<Answer>>, send: &mut Send<'_>) {
        let pause = Duration::from_millis(u64::from(order.pause_ms)).min(LONGEST);
        let step = pause / LOOKS;
        let mut next = Instant::now();
        let mut open = asked.is_some();
        while !stop.asked() && self.began.elapsed() < LONGEST && (open || self.began.elapsed() < pause) {
            if Instant::now() >= next {
                next += step.max(DOZE);
                self.look();
            }
            match asked.filter(|_| open).map(|asked| asked.recv_timeout(DOZE)) {
                Some(Ok((number, Ok(answer)))) => {
                    self.told.ras.push(format!("poll {number}: {} bytes", answer.len()));
                    send.file(&format!("ras/{number}"), &answer);
                }
                Some(Ok((number, Err(why)))) => self.told.ras.push(format!("poll {number}: {why}")),
                Some(Err(RecvTimeoutError::Timeout)) => {}
                Some(Err(RecvTimeoutError::Disconnected)) => open = false,
                None => thread::sleep(DOZE),
            }
        }
        if open && !stop.asked() {
            self.told.ras.push(format!("no end within {} s", LONGEST.as_secs()));
        }
    }

    fn look(&mut self) {
        self.told.looks += 1;
        for (told, (found, _)) in self.told.processes.iter_mut().zip(&self.ranks) {
            told.states.push(process::state(self.root, found).0);
        }
        self.queues.look(self.root, &self.net, &self.sockets);
    }

    /// What ranks said that ended while they were looked at.
    fn last_words(&mut self, send: &mut Send<'_>) {
        let ended = |pid: u32| self.told.processes.iter().any(|told| told.pid == pid && told.states.ends_with('-'));
        let held: Vec<Held> = std::mem::take(&mut self.held).into_iter().filter(|held| ended(held.pid)).collect();
        for held in held {
            let name = held.name.clone();
            if held.send_again(send) {
                self.told.stalled.push(name);
                break;
            }
        }
    }

    /// Dumps, the last look, and the document about it all.
    fn end(&mut self, order: &JobOrder, of_gpus: Vec<Counter>, send: &mut Send<'_>) {
        self.take_files(order, send, |look, send| look.dumps(send));
        let seconds = self.began.elapsed().as_secs_f64();
        self.told.looks += 1;
        for (told, (found, _)) in self.told.processes.iter_mut().zip(&self.ranks) {
            process::end(self.root, found, told, seconds);
        }
        self.last_words(send);
        self.told.seconds = seconds;
        self.told.counters = counters::told(&self.counts, &counters::counts(self.root));
        self.told.counters.extend(of_gpus);
        self.told.queues = self.queues.told();
        if self.queues.cut {
            self.told.notes.push("Not all of its connections were read: it has more than 262,144.".to_owned());
        }
        if !send.left_out.is_empty() {
            let names = send.left_out.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
            let note = format!("{} files left out, there was no more room: {names}", send.left_out.len());
            self.told.notes.push(note);
        }
        send.last();
        let mut document = serde_json::to_vec(&self.told).unwrap_or_default();
        if document.len() > PROCESSES_BYTES || document.len() as u64 > send.room() {
            for process in &mut self.told.processes {
                (process.stack, process.environment) = (Reading::Absent, Reading::Absent);
            }
            self.told.notes.push("Stacks and environments are left out, there was no more room.".to_owned());
            document = serde_json::to_vec(&self.told).unwrap_or_default();
        }
        send.file("processes.json", &document);
    }
}

/// Whether a process has a network of its own, such as a container's.
fn own_network(root: &Root, pid: u32) -> bool {
    let namespace = |pid: &str| root.link_name(&format!("/proc/{pid}/ns/net"));
    matches!((namespace("self"), namespace(&pid.to_string())), (Reading::Value(here), Reading::Value(there)) if here != there)
}
