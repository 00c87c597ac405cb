//! Triage where lines point at the wrong machine: harmless ones, old ones, those of others, and those that only follow.

use std::collections::BTreeMap;
use std::fmt::Write;

use muster_import::bundle::{gather, part};
use muster_logs::Category;
use muster_logs::Rules;
use muster_triage::diagnose;

/// Nodes n0 to n3 with two ranks each; rank 0 tells a step every ten seconds from 10:00:00 on.
pub(super) struct Bundle(BTreeMap<String, String>);

/// What triage says: the category, and who is suspected.
type Said = (Category, Vec<(Option<String>, Option<u32>)>);

/// A wall clock, so many seconds after 10:00:00.
fn clock(seconds: u32) -> String {
    format!("{:02}:{:02}:{:02}", 10 + seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn nobody() -> Vec<(Option<String>, Option<u32>)> {
    vec![(None, None)]
}

fn rank(rank: u32) -> Vec<(Option<String>, Option<u32>)> {
    vec![(Some(format!("n{}", rank / 2)), Some(rank))]
}

impl Bundle {
    pub(super) fn new(steps: u32) -> Self {
        let member = |rank: u32| format!(r#"{{"rank": {rank}, "node": "n{}", "pid": {}}}"#, rank / 2, 1000 + rank);
        let ranks: Vec<String> = (0..8).map(member).collect();
        let job = format!(r#"{{"nodes": ["n0", "n1", "n2", "n3"], "world_size": 8, "ranks": [{}]}}"#, ranks.join(", "));
        let mut bundle = Self(BTreeMap::from([("job.json".to_owned(), job)]));
        for rank in 0..8 {
            bundle.says(rank, "starts");
        }
        bundle.steps(0, steps);
        bundle
    }

    /// Steps of rank 0 from one number to before another.
    pub(super) fn steps(&mut self, from: u32, to: u32) {
        for step in from..to {
            let at = clock(step * 10);
            self.says(
                0,
                &format!("[2026-11-20 {at}] iteration {step}/ 100000 | elapsed time per iteration (ms): 9999.5 |"),
            );
        }
    }

    pub(super) fn says(&mut self, rank: u32, line: &str) {
        writeln!(self.0.entry(format!("logs/rank_{rank}.log")).or_default(), "{line}").unwrap();
    }

    pub(super) fn kernel(&mut self, node: &str, seconds: u32, line: &str) {
        let at = clock(seconds);
        writeln!(self.0.entry(format!("dmesg/{node}.log")).or_default(), "[Fri Nov 20 {at} 2026] {line}").unwrap();
    }

    pub(super) fn exception(&mut self, rank: u32, exception: &str) {
        self.says(rank, &format!("[rank{rank}]: Traceback (most recent call last):"));
        self.says(rank, &format!("[rank{rank}]:   File \"/job/train.py\", line 412, in main"));
        self.says(rank, &format!("[rank{rank}]: {exception}"));
    }

    /// A watchdog's words on one operation of one group.
    fn timed_out(&mut self, rank: u32, seconds: u32, (op, count, group): (&str, u32, &str), (asked, done): (u32, u32)) {
        let at = format!("[rank{rank}]:[E1120 {}.000000 ProcessGroupNCCL.cpp", clock(seconds));
        let seq = done + 1;
        self.says(rank, &format!("{at}:632] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={count}, NumelOut={count}, Timeout(ms)=600000) ran for 600041 milliseconds before timing out."));
        self.says(rank, &format!("{at}:2268] [PG ID 0 PG GUID {group} Rank {rank}]  failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: {asked}, last completed work: {done}"));
    }

    /// All ranks wait for `late` in the operation after so many steps.
    pub(super) fn hangs(&mut self, late: u32, steps: u32) {
        for rank in 0..8 {
            let asked = if rank == late { steps } else { steps + 1 };
            self.timed_out(rank, steps * 10 + 610, ("ALLREDUCE", 4, "0(default_pg)"), (asked, steps));
        }
    }

    pub(super) fn files(&self) -> Vec<(String, String)> {
        self.0.iter().map(|(path, text)| (path.clone(), text.clone())).collect()
    }

    fn said(&self) -> Said {
        let rules = Rules::built_in().unwrap();
        let parts = self.0.iter().map(|(path, text)| (path.clone(), part(path, text.as_bytes(), &rules)));
        let report = diagnose(&gather(parts), &rules);
        (report.category, report.suspects.into_iter().map(|suspect| (suspect.node, suspect.rank)).collect())
    }
}

pub(super) const XID: &str =
    "NVRM: Xid (PCI:0000:11:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";

#[test]
fn a_hang_is_located_by_its_watchdogs() {
    let mut bundle = Bundle::new(60);
    bundle.hangs(5, 60);
    assert_eq!(bundle.said(), (Category::HangNotLaunched, rank(5)));
}

#[test]
fn a_rank_that_tries_again_to_reach_the_meeting_point_has_lost_nobody() {
    for why in ["97 - Address family not supported by protocol", "111 - Connection refused"] {
        let mut bundle = Bundle::new(0);
        for rank in 0..8 {
            bundle.says(
                rank,
                &format!(
                    "[W socket.cpp:663] [c10d] The client socket has failed to connect to [n0]:29500 (errno: {why})."
                ),
            );
        }
        assert_eq!(bundle.said().0, Category::Undecided, "{why}");
    }
}

#[test]
fn whoever_only_lost_the_lost_machine_first_is_not_blamed_alone() {
    let mut bundle = Bundle::new(60);
    bundle.says(0, "n0:1000:2000 [0] NCCL WARN NET/IB: Got completion from peer n3<37730> with status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_2");
    for rank in 1..6 {
        let node = rank / 2;
        bundle.says(
            rank,
            &format!(
                "n{node}:{}:2000 [0] NCCL WARN socketProgress: Connection closed by remote peer n0<4791>",
                1000 + rank
            ),
        );
    }
    let ends = ["n3", "n0"].map(|node| (Some(node.to_owned()), None));
    assert_eq!(bundle.said(), (Category::Undecided, ends.to_vec()), "either of the two");
}

#[test]
fn operations_of_two_ranks_and_of_uneven_sizes_are_no_mistake_of_the_program() {
    for (op, odd) in [("SEND", "RECV"), ("ALLTOALL_BASE", "ALLTOALL_BASE"), ("SCATTER", "SCATTER")] {
        let mut bundle = Bundle::new(60);
        for rank in 0..8 {
            let (op, count) = if rank == 0 { (op, 64) } else { (odd, 4 + rank) };
            bundle.timed_out(rank, 1210, (op, count, "7(PIPELINE)"), (61, 60));
        }
        assert_ne!(bundle.said().0, Category::UserBug, "{op}");
    }
}

#[test]
fn a_rank_whose_watchdog_tells_of_another_size_than_all_others_is_where_to_look() {
    let mut bundle = Bundle::new(60);
    for of in 0..8 {
        let count = if of == 5 { 8 } else { 4 };
        bundle.timed_out(of, 1210, ("ALLREDUCE", count, "0(default_pg)"), (61, 60));
    }
    assert_eq!(bundle.said(), (Category::UserBug, rank(5)));
}

#[test]
fn two_groups_at_the_same_number_are_not_taken_for_one() {
    let mut bundle = Bundle::new(60);
    for rank in 0..8 {
        bundle.timed_out(rank, 1209, ("ALLGATHER", 4096, "3(TENSOR)"), (61, 60));
        bundle.timed_out(rank, 1211, ("ALLREDUCE", 1, "0(default_pg)"), (61, 60));
    }
    assert_ne!(bundle.said().0, Category::UserBug);
}

#[test]
fn a_machine_outside_of_the_job_or_long_after_its_end_is_not_why_it_ended() {
    for (node, seconds) in [("n9", 605), ("n2", 5 * 3600)] {
        let mut bundle = Bundle::new(61);
        bundle.kernel(node, seconds, XID);
        bundle.exception(5, "KeyError: 'input_ids'");
        assert_eq!(bundle.said(), (Category::UserBug, rank(5)), "{node}");
    }
    let mut bundle = Bundle::new(61);
    bundle.kernel("n2.hall", 605, XID);
    assert_eq!(bundle.said().0, Category::HardwareCritical, "in time, on a machine of the job under its long name");
}

#[test]
fn what_a_rank_outlived_did_not_end_the_job() {
    let mut bundle = Bundle::new(5);
    bundle.exception(0, "wandb.errors.CommError: HTTPError 502");
    bundle.steps(5, 60);
    bundle.hangs(5, 60);
    assert_eq!(bundle.said(), (Category::HangNotLaunched, rank(5)));
}

#[test]
fn two_more_steps_may_have_been_under_way_and_three_were_not() {
    for (more, expected) in [(2, (Category::UserBug, rank(0))), (3, (Category::HangNotLaunched, rank(5)))] {
        let mut bundle = Bundle::new(30);
        bundle.exception(0, "KeyError: 'input_ids'");
        bundle.steps(30, 30 + more);
        bundle.hangs(5, 30 + more);
        assert_eq!(bundle.said(), expected, "{more} steps");
    }
}

#[test]
fn steps_that_leave_a_buffer_behind_the_exception_do_not_excuse_it() {
    let mut bundle = Bundle::new(5);
    bundle.exception(0, "KeyError: 'input_ids'");
    bundle.steps(5, 60);
    assert_eq!(bundle.said(), (Category::UserBug, rank(0)));
}

#[test]
fn of_two_attempts_in_one_log_the_last_one_counts() {
    let mut bundle = Bundle::new(60);
    bundle.hangs(3, 60);
    bundle.steps(130, 200);
    bundle.hangs(5, 200);
    assert_eq!(bundle.said(), (Category::HangNotLaunched, rank(5)));
}

#[test]
fn an_exception_that_only_wraps_what_another_rule_knows_is_no_mistake_of_the_program() {
    let mut bundle = Bundle::new(0);
    for rank in [4, 5] {
        bundle.exception(rank, "RuntimeError: No CUDA GPUs are available");
    }
    let (category, suspects) = bundle.said();
    assert_eq!((category, suspects[0].0.as_deref()), (Category::HardwareCritical, Some("n2")));
    let mut bundle = Bundle::new(0);
    bundle.exception(0, "RuntimeError: [Rank 0]: Rank 5 failed to pass monitoredBarrier in 30000 ms");
    assert_eq!(bundle.said(), (Category::HangNotLaunched, rank(5)));
    let mut bundle = Bundle::new(60);
    bundle.exception(0, "torch.distributed.elastic.multiprocessing.api.SignalException: Process 77 got signal: 15");
    assert_eq!(bundle.said().0, Category::Undecided);
}

#[test]
fn memory_and_room_that_ran_out_are_the_cause_of_the_exceptions_that_follow() {
    let mut bundle = Bundle::new(61);
    bundle.kernel(
        "n2",
        604,
        "Out of memory: Killed process 1005 (python3) total-vm:204800kB, anon-rss:102400kB, UID:1000",
    );
    bundle.exception(4, "EOFError");
    assert_eq!(bundle.said(), (Category::ProcessExited, rank(5)));
    let mut bundle = Bundle::new(61);
    bundle.exception(5, "OSError: [Errno 28] No space left on device: '/local/ckpt/step_60'");
    bundle.exception(5, "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 64 vs 0");
    assert_eq!(bundle.said().0, Category::Storage);
}

#[test]
fn a_process_of_somebody_else_that_the_kernel_killed_is_not_of_the_job() {
    let mut bundle = Bundle::new(60);
    bundle.kernel(
        "n3",
        595,
        "Out of memory: Killed process 812 (prometheus) total-vm:204800kB, anon-rss:102400kB, UID:1000",
    );
    bundle.hangs(5, 60);
    assert_eq!(bundle.said(), (Category::HangNotLaunched, rank(5)));
}

#[test]
fn a_trouble_that_was_over_while_the_job_went_on_did_not_end_it() {
    let troubles = [
        ("nfs: server 10.9.0.4 not responding, still trying", "nfs: server 10.9.0.4 OK"),
        (
            "Lustre: lfs-OST7-osc-ff: Connection to lfs-OST7 (at 10.0.1.7@o2ib) was lost; in progress operations will wait",
            "Lustre: lfs-OST7-osc-ff: Connection restored to 10.0.1.7@o2ib (at 10.0.1.7@o2ib)",
        ),
        (
            "mce: CPU3: Package temperature above threshold, cpu clock throttled (total events = 17)",
            "mce: CPU3: Package temperature/speed normal",
        ),
    ];
    for (begins, ends) in troubles {
        let mut bundle = Bundle::new(60);
        for node in ["n0", "n1", "n3"] {
            bundle.kernel(node, 550, begins);
            bundle.kernel(node, 560, ends);
        }
        bundle.hangs(5, 60);
        assert_eq!(bundle.said(), (Category::HangNotLaunched, rank(5)), "{begins}");
    }
    let mut bundle = Bundle::new(60);
    for node in ["n0", "n1", "n3"] {
        bundle.kernel(node, 592, troubles[0].0);
        bundle.kernel(node, 1300, troubles[0].1);
    }
    bundle.hangs(5, 60);
    assert_eq!(bundle.said().0, Category::Storage, "it was over only after the job had stood");
}

#[test]
fn a_job_that_reached_its_time_limit_and_of_which_nothing_else_is_known_is_undecided() {
    let ended = |why: &str, steps| {
        let mut bundle = Bundle::new(steps);
        bundle
            .says(0, &format!("slurmstepd: error: *** JOB 7 ON n0 CANCELLED AT 2026-11-20T10:10:05 DUE TO {why} ***"));
        bundle.said()
    };
    assert_eq!(ended("TIME LIMIT", 0).0, Category::Undecided);
    assert_eq!(ended("TIME LIMIT", 61), (Category::None, nobody()));
    assert_eq!(ended("PREEMPTION", 0), (Category::None, nobody()));
}

#[test]
fn what_most_machines_say_alike_since_they_booted_accuses_none() {
    let mut bundle = Bundle::new(60);
    for node in ["n0", "n1", "n2", "n3"] {
        let line = "[    3.000000] nvme nvme0: Removing after probe failure status: -19\n";
        bundle.0.insert(format!("dmesg/{node}.log"), line.to_owned());
    }
    bundle.hangs(5, 60);
    assert_eq!(bundle.said(), (Category::HangNotLaunched, rank(5)));
}
