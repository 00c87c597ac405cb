//! One rank of a data-parallel training over many nodes: a real job, for a benchmark and for those who break it.
//!
//! Every rank has the same weights and data of its own. In each step gradients are summed over all ranks, and afterwards every rank's
//! weights must be those of all others, bit for bit.
//!
//! | file | settles |
//! |---|---|
//! | `options` | what a rank is told |
//! | `group`, `meet` | which communicators there are, and how their ranks find each other |
//! | `comm`, `bucket` | how gradients are summed |
//! | `train`, `step` | what a step is |
//! | `engine` | what computes it: a core, or all GPUs of the node |
//! | `between` | whether GPUs of all nodes sum by NCCL, and how they begin that |
//! | `board` | what others may ask of a rank while it works |
//! | `ask`, `verdict` | who is to blame when a step does not end |
//! | `checkpoint` | when weights are saved |
//! | `recorder`, `dump`, `pickle` | PyTorch's flight recorder |
//! | `ras` | NCCL's RAS protocol |
//! | `log` | what is printed |
//! | `ordered`, `child`, `said` | the ranks of a node that a console ordered, as processes of the probe |

mod ask;
mod between;
mod board;
mod bucket;
mod checkpoint;
mod child;
mod comm;
mod dump;
mod engine;
mod group;
mod log;
mod meet;
mod options;
mod ordered;
mod pickle;
mod ras;
mod recorder;
mod said;
mod step;
#[cfg(test)]
mod tests;
mod train;
mod verdict;

use std::net::TcpListener;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::exit::USAGE;
use crate::pair::meet::Limit;
use crate::steps::Halt;
use crate::stop;

use board::{Board, End};
use comm::{Communicator, Kind};
use log::Log;
pub(crate) use options::Options;
use options::Part;
pub(crate) use ordered::take_part;
use step::Failure;
use train::train;

/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(50);
/// A rank that has ended badly still answers the others for so long.
const LINGER: Duration = Duration::from_secs(2);

const EXCEPTION: u8 = 1;
const WRONG: u8 = 2;
const LATE: u8 = 4;
const GONE: u8 = 5;
const TOLD: u8 = 6;

/// Takes part in a training, as a process of its own.
pub(crate) fn run(options: &Options) -> ExitCode {
    let part = match options.part() {
        Ok(part) => part,
        Err(why) => {
            eprintln!("muster-probe train-ddp: {why}");
            return ExitCode::from(USAGE);
        }
    };
    stop::catch_signals();
    stop::catch_wishes();
    let log = Log::new(part.rank, options.json);
    let listener = if options.inherited { inherited() } else { meet::listen(part.peers[part.rank]) };
    let board = Arc::new(Board::new(part.rank, (part.peers.clone(), part.per_node), part.secret));
    look_out(&board, &part, log);
    let ended =
        listener.map_err(|halt| Failure::Start(words(halt))).and_then(|listener| whole(&board, &part, listener, log));
    let Err(failure) = ended else {
        log.say("done");
        return ExitCode::SUCCESS;
    };
    ExitCode::from(finish(&board, &part, log, &failure))
}

/// The port that whoever started this process opened for it.
fn inherited() -> Result<TcpListener, Halt> {
    let failed = |e: std::io::Error| Halt::Failed(format!("no port on standard input: {e}"));
    // Nobody else would end a rank whose console is gone.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let listener = TcpListener::from(std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

fn words(halt: Halt) -> String {
    match halt {
        Halt::Failed(why) => why,
        halt => format!("{halt:?}"),
    }
}

/// Meets the others and trains with them.
fn whole(board: &Arc<Board>, part: &Part, listener: TcpListener, log: Log) -> Result<(), Failure> {
    let limit = Limit::new(part.meet, &board.halt, "the ranks did not meet");
    let lanes = meet::rings(board, &listener, &limit).map_err(|halt| match board.ended() {
        Some(_) => Failure::Ended,
        None => Failure::Start(words(halt)),
    })?;
    let answering = Arc::clone(board);
    thread::spawn(move || ask::answer(&answering, &listener));
    let mut rings: Vec<Communicator<'_>> =
        lanes.into_iter().enumerate().map(|(comm, lane)| Communicator::new(board, comm, lane, part.timeout)).collect();
    let pids = rings[0].all_gather(std::process::id().into()).map_err(Failure::Trouble)?;
    board.know_pids(pids.into_iter().map(|pid| u32::try_from(pid).unwrap_or(0)).collect());
    ras::serve(board, part.ras);
    let ended = train(board, part, &mut rings, log);
    if let Err(failure) = &ended {
        tell(board, part, log, failure);
    }
    ended
}

/// Says what happened, keeps what was recorded, and ends the others. The connections of the rings are open until all know.
fn tell(board: &Board, part: &Part, log: Log, failure: &Failure) {
    let everybody: Vec<usize> = (0..part.world).collect();
    let others: Vec<usize> = everybody.iter().copied().filter(|rank| *rank != part.rank).collect();
    let sentence = match failure {
        Failure::Trouble(trouble) if trouble.kind != Kind::Ended => {
            let answers = ask::all(board, &everybody, part.ras.patience);
            // Whoever was asked meanwhile to end has it from somebody who knew before.
            if board.ended().is_some() { None } else { Some(verdict::sentence(board, trouble, &answers)) }
        }
        Failure::Wrong(why, odd) => Some((why.clone(), odd.clone())),
        Failure::Start(why) => Some((why.clone(), Vec::new())),
        Failure::Exception(why) => return log.error(why),
        Failure::Trouble(_) | Failure::Ended => None,
    };
    let sentence = sentence.map(|(sentence, accused)| {
        board.fail(&sentence, accused);
        log.error(&sentence);
        sentence
    });
    dump(board, part, log);
    let told = match (&sentence, board.ended()) {
        (Some(sentence), _) => format!("rank {}: {sentence}", part.rank),
        (None, Some(End::Signal(name))) => format!("rank {} was ended by {name}", part.rank),
        (None, _) => return thread::sleep(LINGER),
    };
    ask::end(board, &others, &told);
    thread::sleep(LINGER);
}

/// The exit code, and the last line.
fn finish(board: &Board, part: &Part, log: Log, failure: &Failure) -> u8 {
    let code = match (failure, board.ended()) {
        (Failure::Exception(_), _) => EXCEPTION,
        (_, Some(End::Signal(name))) => {
            log.error(&format!("ended by {name} in step {}", board.step()));
            return u8::try_from(128 + stop::number()).unwrap_or(TOLD);
        }
        (_, Some(End::Told(why))) if !board.has_failed() => {
            log.error(&format!("ended in step {}; {why}", board.step()));
            TOLD
        }
        (Failure::Wrong(..), _) => WRONG,
        (Failure::Start(why), _) => {
            if !board.has_failed() {
                log.error(why);
            }
            LATE
        }
        (Failure::Trouble(trouble), _) => match trouble.kind {
            Kind::Late => LATE,
            Kind::Mismatch => WRONG,
            Kind::Gone | Kind::Ended => GONE,
        },
        (Failure::Ended, _) => TOLD,
    };
    log.end((code, board.step()), failure, (part.rank, board.accused()));
    code
}

fn dump(board: &Board, part: &Part, log: Log) {
    let Some(dir) = &part.dir else { return };
    match dump::dump(board, dir) {
        Ok(path) => log.say(&format!("flight recorder: {}", path.display())),
        Err(error) => log.error(&format!("flight recorder: cannot write to {}: {error}", dir.display())),
    }
}

/// Looks for signals: those that end the rank, and the wish for a dump.
fn look_out(board: &Arc<Board>, part: &Part, log: Log) {
    let (board, part) = (Arc::clone(board), part.clone());
    thread::spawn(move || {
        loop {
            if let Some(name) = stop::signal() {
                board.end(End::Signal(name));
            }
            if stop::wished() {
                dump(&board, &part, log);
            }
            thread::sleep(LOOK);
        }
    });
}
