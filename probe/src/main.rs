//! What runs on a node: one static program with read-only collectors and measured work.
//!
//! `serve` speaks the wire contract to a console; `info`, `list` and `run` are for people and scripts.
//! The program is linked statically, so nothing here may reach dlopen, getaddrinfo, getpwnam or iconv.

mod bench;
mod busy;
mod cli;
mod clock;
mod collect;
mod collective;
mod ddp;
mod exit;
mod fault;
mod gate;
mod gpu;
mod job;
mod out;
mod pair;
mod passes;
mod pin;
mod report;
mod serve;
mod steps;
mod stop;
mod table;
mod topology;
mod watch;
mod work;

fn main() -> std::process::ExitCode {
    cli::main()
}
