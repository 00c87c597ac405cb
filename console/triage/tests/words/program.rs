//! Jobs of six ranks on three nodes, by the errors of their program.

use muster_triage::case::{Case, Job, Member, Reached, Whose};

use super::{RULES, made::log};

const WRONG: &str = "ValueError: x";
const OTHER: &str = "KeyError: 'x'";
const STEP: &str = "iteration 5/ 100 | elapsed time per iteration (ms): 900.0 |";

/// Six ranks on three nodes whose clocks are known to half a second, and further logs: whose (`n1` of a kernel, `1` of a rank, `out` of
/// all), at which second after the last step, or at none, and the line.
pub(super) fn job(lines: &[(&str, Option<u32>, &str)]) -> Case {
    let member =
        |rank: u32| Member { rank, node: Some(format!("n{}", rank / 2)), pid: Some(100 + rank), gpu: Some(rank % 2) };
    let reached = |nr: u32| Reached { node: format!("n{nr}"), clock: Some((0.0, 0.5)), ..Reached::default() };
    let mut logs = vec![log(Whose::Rank(0), &format!("[2026-11-20 10:10:00] {STEP}\n"), &RULES)];
    for (of, second, line) in lines {
        let whose = match of.parse::<u32>() {
            Ok(rank) => Whose::Rank(rank),
            _ if *of == "out" => Whose::Job("out".to_owned()),
            _ => Whose::Kernel((*of).to_owned()),
        };
        let at = second.map_or(String::new(), |second| format!("[2026-11-20 10:10:{second:02}] "));
        logs.push(log(whose, &format!("{at}{line}\n"), &RULES));
    }
    Case {
        job: Job { world_size: Some(6), members: (0..6).map(member).collect(), ..Job::default() },
        reached: (0..3).map(reached).collect(),
        logs,
        ..Case::default()
    }
}

#[test]
fn what_a_program_says_of_its_end_is_said_word_for_word() {
    let mut text = String::new();
    let mut tell = |name: &str, lines: &[(&str, Option<u32>, &str)]| {
        super::in_short(&mut text, name, "program-errors", &job(lines))
    };
    let of = |ranks: &[&'static str], second, line| ranks.iter().map(|rank| (*rank, second, line)).collect::<Vec<_>>();
    tell("rank 3 has an exception", &of(&["3"], Some(5), WRONG));
    tell("ranks 1, 2 and 3 have one", &of(&["1", "2", "3"], Some(5), WRONG));
    tell("ranks 1 to 4 have one", &of(&["1", "2", "3", "4"], Some(5), WRONG));
    tell("rank 3 has one, and rank 4 another a second later", &[("3", Some(5), WRONG), ("4", Some(6), OTHER)]);
    tell("rank 3 has one, and rank 4 another two seconds later", &[("3", Some(5), WRONG), ("4", Some(7), OTHER)]);
    tell("rank 3 has one, and rank 4 another without a time", &[("3", Some(5), WRONG), ("4", None, OTHER)]);
    let asserted = "/app/gather.cu:118: kernel: block: [5,0,0], thread: [3,0,0] Assertion `index < size` failed.";
    tell("rank 3 failed an assertion in a file", &of(&["3"], Some(5), asserted));
    tell(
        "rank 3 failed an assertion, and has an exception at the same time",
        &[("3", Some(5), WRONG), ("3", Some(5), asserted)],
    );
    let lost = "NVRM: Xid (PCI:0000:11:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";
    tell("rank 3 has one, and a GPU is lost elsewhere", &[("3", Some(5), WRONG), ("n2", Some(5), lost)]);
    let disk = "[    3.000000] nvme nvme0: Removing after probe failure status: -19";
    let disks = ["n0", "n1", "n2"].map(|node| (node, None, disk));
    tell(
        "rank 3 has one, and all nodes lack a disk since they booted",
        &[&of(&["3"], Some(5), WRONG)[..], &disks].concat(),
    );
    tell("the log of all ranks has one", &[("out", Some(5), WRONG)]);
    tell("the kernel of n1 names it", &[("n1", Some(5), WRONG)]);
    super::hold("program.txt", &text);
}

#[test]
fn what_ran_out_before_an_exception_is_said_word_for_word() {
    let mut text = String::new();
    let mut tell = |name: &str, lines: &[(&str, Option<u32>, &str)]| {
        super::in_short(&mut text, name, "program-errors", &job(lines))
    };
    let memory = "Out of memory: Killed process 4711 (python3) total-vm:204800kB, anon-rss:102400kB";
    let full = "OSError: [Errno 28] No space left on device";
    for (name, line) in
        [("the memory of n1", memory), ("the memory of n2", memory), ("the disk of n1", full), ("the disk of n2", full)]
    {
        let (node, rank) = if name.ends_with("n1") { ("n1", "2") } else { ("n2", "4") };
        let of = if line == memory { node } else { rank };
        tell(
            &format!("{name} ran out at the same time as rank 3 had one"),
            &[("3", Some(5), WRONG), (of, Some(5), line)],
        );
        tell(&format!("{name} ran out a second later"), &[("3", Some(5), WRONG), (of, Some(6), line)]);
        tell(&format!("{name} ran out two seconds later"), &[("3", Some(5), WRONG), (of, Some(7), line)]);
    }
    let (before, after) = (format!("{full}\n{WRONG}"), format!("{WRONG}\n{full}"));
    tell("the room of rank 3 ran out before its exception, without times", &[("3", None, &before)]);
    tell("the room of rank 3 ran out after its exception, without times", &[("3", None, &after)]);
    let loader = "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed.";
    tell(
        "a loader of rank 3 was killed before its exception, without times",
        &[("3", None, &format!("{loader}\n{WRONG}"))],
    );
    tell("a loader of rank 2 was killed before, on the same node", &[("3", Some(5), WRONG), ("2", Some(5), loader)]);
    tell("a loader of rank 4 was killed before, on another node", &[("3", Some(5), WRONG), ("4", Some(5), loader)]);
    super::hold("ran-out.txt", &text);
}

#[test]
fn what_ranks_say_of_what_another_asks_for_is_said_word_for_word() {
    let mut text = String::new();
    let mut tell = |name: &str, lines: &[(&str, Option<u32>, &str)]| {
        super::in_short(&mut text, name, "program-errors", &job(lines))
    };
    let odd = "rank 3 (n1) runs allreduce 41 of 8 elements, 5 ranks run allreduce 41 of 16 elements";
    let other = "rank 4 (n2) runs allreduce 41 of 8 elements, 5 ranks run allreduce 41 of 16 elements";
    tell("one rank says it of rank 3", &[("0", Some(5), odd)]);
    tell("three ranks say it of rank 3", &[("0", Some(5), odd), ("1", Some(5), odd), ("5", Some(5), odd)]);
    tell("one rank each says it of ranks 3 and 4", &[("0", Some(5), odd), ("1", Some(5), other)]);
    let asks = |rank: u32, count: u32| {
        let begin = |line: u32| format!("[rank{rank}]:[E1120 10:20:10.000000 ProcessGroupNCCL.cpp:{line}]");
        format!(
            "{} [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn={count}, NumelOut={count}, Timeout(ms)=600000) ran for 600041 milliseconds before timing out.\n{} [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by watchdog at work sequence id: 9 PG status: last enqueued work: 9, last completed work: 8",
            begin(632),
            begin(2268)
        )
    };
    let (few, many) = ([0, 1, 2, 3, 4, 5].map(|rank| asks(rank, 8)), [0, 1, 2, 3, 4, 5].map(|rank| asks(rank, 16)));
    const RANKS: [&str; 6] = ["0", "1", "2", "3", "4", "5"];
    for odd in [&[3][..], &[3, 4], &[3, 4, 5]] {
        let of = |at: usize| if odd.contains(&at) { few[at].as_str() } else { many[at].as_str() };
        let lines: Vec<(&str, Option<u32>, &str)> =
            RANKS.iter().enumerate().map(|(at, rank)| (*rank, None, of(at))).collect();
        tell(&format!("the watchdogs of ranks {odd:?} tell another size"), &lines);
    }
    super::hold("asked.txt", &text);
}
