//! Triage on made bundles: other names, sizes, orders of ranks, skews and missing parts than any recorded ones.

use std::fmt::Write;

use muster_import::bundle::{gather, part};
use muster_logs::Category;
use muster_logs::Rules;
use muster_triage::report::{Kind, Report};
use muster_triage::{SURE, diagnose};

/// What is wrong with the made job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    NotLaunched,
    NotStarted,
    Xid,
    OtherSize,
    Preempted,
    Storage,
    SlowGpu,
    SlowLink,
    Even,
}

pub(super) const FAULTS: [Fault; 9] = [
    Fault::NotLaunched,
    Fault::NotStarted,
    Fault::Xid,
    Fault::OtherSize,
    Fault::Preempted,
    Fault::Storage,
    Fault::SlowGpu,
    Fault::SlowLink,
    Fault::Even,
];

impl Fault {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NotLaunched => "not-launched",
            Self::NotStarted => "not-started",
            Self::Xid => "xid",
            Self::OtherSize => "other-size",
            Self::Preempted => "preempted",
            Self::Storage => "storage",
            Self::SlowGpu => "slow-gpu",
            Self::SlowLink => "slow-link",
            Self::Even => "even",
        }
    }
}

/// A made job: `nodes` x `per` ranks, ranks given to nodes from the last, node `n`'s clock ahead by `n * skew` seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) fault: Fault,
    pub(super) nodes: usize,
    pub(super) per: usize,
    pub(super) culprit: usize,
    pub(super) skew: f64,
}

/// 2026-03-04 05:06:07.
const START: u64 = 1_772_600_767;
const SEQ: u64 = 500;

impl Made {
    fn world(self) -> usize {
        self.nodes * self.per
    }

    fn node_at(self, rank: usize) -> usize {
        self.nodes - 1 - rank / self.per
    }

    fn node(self, rank: usize) -> String {
        format!("rack{}-blade{}", self.node_at(rank) % 3, self.node_at(rank))
    }

    fn hangs(self) -> bool {
        matches!(self.fault, Fault::NotLaunched | Fault::NotStarted | Fault::Xid | Fault::OtherSize | Fault::Storage)
    }

    fn at(self, rank: usize, after: f64) -> String {
        let seconds = START as f64 + after + self.node_at(rank) as f64 * self.skew;
        let day = seconds % 86_400.0;
        // The job stays within its day.
        format!("2026-03-04 {:02}:{:02}:{:06.3}", day as u64 / 3600, day as u64 / 60 % 60, day % 60.0)
    }

    pub(super) fn files(self) -> Vec<(String, String)> {
        let mut files = vec![("job.json".to_owned(), self.job())];
        for rank in 0..self.world() {
            files.push((format!("logs/rank_{rank}.log"), self.log(rank)));
            if self.hangs() && !(self.fault == Fault::Xid && rank == self.culprit) {
                files.push((format!("fr/nccl_trace_{rank}"), self.dump(rank)));
            }
            if !self.hangs() {
                files.push((format!("inspector/{rank}.jsonl"), self.timed(rank)));
            }
        }
        for node in 0..self.nodes {
            let rank = (self.nodes - 1 - node) * self.per;
            files.push((format!("dmesg/{}.log", self.node(rank)), self.kernel(rank)));
        }
        files.push(("ras/poll1.json".to_owned(), self.poll(0)));
        files.push(("ras/poll2.json".to_owned(), self.poll(1)));
        files
    }

    fn job(self) -> String {
        let ranks: Vec<String> = (0..self.world())
            .map(|rank| {
                format!(
                    r#"{{"rank": {rank}, "node": "{}", "pid": {}, "local_rank": {}}}"#,
                    self.node(rank),
                    7000 + rank,
                    rank % self.per
                )
            })
            .collect();
        format!(r#"{{"job": "made", "world_size": {}, "ranks": [{}]}}"#, self.world(), ranks.join(", "))
    }

    fn log(self, rank: usize) -> String {
        let mut text = String::new();
        for step in 0..8_u32 {
            writeln!(
                text,
                "[{}] iteration {step}/ 100000 | elapsed time per iteration (ms): 2000.0 | lm loss: 2.1E+00 |",
                self.at(rank, f64::from(step) * 2.0)
            )
            .unwrap();
        }
        if self.fault == Fault::Preempted && rank.is_multiple_of(self.per) {
            writeln!(
                text,
                "slurmstepd: error: *** STEP 7.0 ON {} CANCELLED AT 2026-03-04T05:06:30 DUE TO PREEMPTION ***",
                self.node(rank)
            )
            .unwrap();
        }
        let silent = rank == self.culprit && matches!(self.fault, Fault::NotLaunched | Fault::Storage | Fault::Xid);
        if self.hangs() && !silent {
            writeln!(text, "[{0}] [rank{1}]:[E304 05:16:30.5 ProcessGroupNCCL.cpp:632] [Rank {1}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={SEQ}, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600100 milliseconds before timing out.", self.at(rank, 620.0), rank).unwrap();
        }
        text
    }

    fn kernel(self, first: usize) -> String {
        let mut text = format!("[{}] mlx5_core 0000:1b:00.0 ib2: Link up\n", self.at(first, -4000.0));
        let own = self.node(first) == self.node(self.culprit);
        if own && self.fault == Fault::Xid {
            writeln!(
                text,
                "[{}] NVRM: Xid (PCI:0000:52:00): 79, pid={}, name=python3, GPU has fallen off the bus.",
                self.at(first, 15.0),
                7000 + self.culprit
            )
            .unwrap();
        }
        if own && self.fault == Fault::Storage {
            for minute in 0..4_u32 {
                writeln!(
                    text,
                    "[{}] nfs: server 10.9.0.4 not responding, still trying",
                    self.at(first, 16.0 + 60.0 * f64::from(minute))
                )
                .unwrap();
            }
        }
        text
    }

    fn dump(self, rank: usize) -> String {
        let it = rank == self.culprit;
        let (enqueued, completed) = match self.fault {
            Fault::NotLaunched | Fault::Storage if it => (SEQ - 1, SEQ - 1),
            Fault::NotStarted if it => (SEQ, SEQ - 3),
            _ => (SEQ, SEQ - 1),
        };
        let entry = |seq: u64| {
            let done = seq <= completed;
            let size = if self.fault == Fault::OtherSize && it && seq == SEQ { 8 } else { 4 };
            let ns = (START + seq) * 1_000_000_000 + (self.node_at(rank) as f64 * self.skew * 1e9) as u64;
            format!(
                r#"{{"pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": {seq}, "profiling_name": "nccl:all_reduce", "time_created_ns": {ns}, "time_discovered_completed_ns": {}, "input_sizes": [[{size}]], "output_sizes": [[{size}]], "input_dtypes": ["Float"], "state": "{}", "retired": {done}, "is_p2p": false}}"#,
                if done { ns.to_string() } else { "null".to_owned() },
                if done { "completed" } else { "scheduled" },
            )
        };
        let entries: Vec<String> = (SEQ - 6..=enqueued).map(entry).collect();
        let ranks: Vec<String> = (0..self.world()).map(|rank| rank.to_string()).collect();
        format!(
            r#"{{"version": "2.10", "pg_config": {{"0": {{"name": "0", "desc": "default_pg", "ranks": "[{}]"}}}}, "pg_status": {{"0": {{"last_enqueued_collective": {enqueued}, "last_started_collective": -1, "last_completed_collective": {completed}}}}}, "entries": [{}]}}"#,
            ranks.join(", "),
            entries.join(", "),
        )
    }

    fn poll(self, number: u64) -> String {
        let count = |rank: usize| match self.fault {
            Fault::NotLaunched | Fault::Storage if rank == self.culprit => 99,
            _ if self.hangs() => 100,
            _ => 100 + 10 * number,
        };
        let ranks: Vec<String> = (0..self.world())
            .map(|rank| format!(r#"{{"rank": {rank}, "host": "{}", "pid": {}, "cuda_dev": 0, "nvml_dev": {}, "collective_counts": {{"AllReduce": {}}}}}"#, self.node(rank), 7000 + rank, rank % self.per, count(rank)))
            .collect();
        format!(
            r#"{{"nccl_version": "2.28.9", "timestamp": "2026-03-04 05:{:02}:00", "communicators": [{{"hash": "0xabc", "size": {}, "ranks": [{}], "missing_ranks": []}}]}}"#,
            7 + number,
            self.world(),
            ranks.join(", "),
        )
    }

    /// Operations of the node's communicator, and of one per place on the node over all nodes.
    fn timed(self, rank: usize) -> String {
        let mut text = String::new();
        let head = |comm: String, rank_in: usize, ranks: usize, nodes: usize| {
            format!(
                r#""header": {{"id": "{comm}", "rank": {rank_in}, "n_ranks": {ranks}, "nnodes": {nodes}}}, "metadata": {{"hostname": "{}", "pid": {}}}"#,
                self.node(rank),
                7000 + rank
            )
        };
        let (place, own) = (rank % self.per, self.node_at(rank) == self.node_at(self.culprit));
        for seq in 0..10_usize {
            let noise = ((rank * 7 + seq * 5) % 9) as f64;
            let waits = self.fault == Fault::SlowGpu && own && rank != self.culprit;
            let took = if waits { 3000.0 } else { 600.0 } + noise;
            writeln!(text, r#"{{{}, "coll_perf": {{"coll": "AllReduce", "coll_sn": {seq}, "coll_msg_size_bytes": 4096, "coll_exec_time_us": {took}}}}}"#, head(format!("n{}", self.node_at(rank)), place, self.per, 1)).unwrap();
            let slow = self.fault == Fault::SlowLink && place == self.culprit % self.per;
            let took = if slow { 5000.0 } else { 2000.0 } + noise;
            let across = head(format!("p{place}"), self.node_at(rank), self.nodes, self.nodes);
            writeln!(text, r#"{{{across}, "coll_perf": {{"coll": "AllGather", "coll_sn": {seq}, "coll_msg_size_bytes": 8192, "coll_exec_time_us": {took}}}}}"#).unwrap();
            let peer = (self.node_at(rank) + 1) % self.nodes;
            let touches = slow && (own || peer == self.node_at(self.culprit));
            let took = if touches { 2500.0 } else { 1000.0 } + noise;
            writeln!(text, r#"{{{across}, "p2p_perf": {{"p2p": "Send", "p2p_sn": {seq}, "p2p_peer": {peer}, "p2p_msg_size_bytes": 1024, "p2p_exec_time_us": {took}}}}}"#).unwrap();
        }
        text
    }

    fn triage(self, rules: &Rules, without: &str) -> Report {
        let files = self.files().into_iter().filter(|(path, _)| without.is_empty() || !path.starts_with(without));
        diagnose(&gather(files.map(|(path, text)| (path.clone(), part(&path, text.as_bytes(), rules)))), rules)
    }

    fn wanted(self) -> (&'static [Category], Kind) {
        match self.fault {
            Fault::NotLaunched => (&[Category::HangNotLaunched], Kind::Rank),
            Fault::NotStarted => (&[Category::HangNotStarted], Kind::Gpu),
            Fault::Xid => (&[Category::HardwareCritical], Kind::Gpu),
            Fault::OtherSize => (&[Category::UserBug], Kind::UserCode),
            Fault::Preempted | Fault::Even => (&[Category::None], Kind::None),
            Fault::Storage => (&[Category::Storage], Kind::Storage),
            Fault::SlowGpu => (&[Category::SlowGpu], Kind::Gpu),
            Fault::SlowLink => (&[Category::SlowLink], Kind::Link),
        }
    }

    /// Whether nobody but the culprit is accused.
    fn innocent(self, report: &Report) -> bool {
        report.suspects.iter().filter(|suspect| suspect.confidence >= SURE).all(|suspect| match suspect.kind {
            Kind::None => !matches!(self.fault, Fault::SlowGpu | Fault::SlowLink) && !self.hangs(),
            Kind::Storage => self.fault == Fault::Storage,
            Kind::UserCode => self.fault == Fault::OtherSize,
            _ if matches!(self.fault, Fault::Preempted | Fault::Even | Fault::OtherSize) => false,
            _ => {
                suspect.node.as_deref() == Some(&self.node(self.culprit))
                    && suspect.rank.is_none_or(|rank| rank as usize == self.culprit)
            }
        })
    }
}

fn cases() -> Vec<Made> {
    let shapes = [(3, 4, 5, 0.0), (5, 2, 9, 3.5), (4, 8, 0, -0.4)];
    let of = |fault| shapes.map(|(nodes, per, culprit, skew)| Made { fault, nodes, per, culprit, skew });
    FAULTS.into_iter().flat_map(of).collect()
}

#[test]
fn each_fault_is_named_with_its_category_whatever_the_shape_of_the_job() {
    let rules = Rules::built_in().unwrap();
    let mut wrong = Vec::new();
    for made in cases() {
        let report = made.triage(&rules, "");
        let (categories, kind) = made.wanted();
        let first = report.suspects.first();
        let right = categories.contains(&report.category)
            && first.is_some_and(|first| first.kind == kind && first.confidence >= SURE)
            && made.innocent(&report);
        if !right {
            wrong.push(format!(
                "{made:?}: {} {:?}",
                report.category.name(),
                first.map(|first| (&first.sentence, first.confidence))
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn dumps_that_ranks_write_as_the_scheduler_ends_them_are_no_hang() {
    let rules = Rules::built_in().unwrap();
    let made = Made { fault: Fault::Preempted, nodes: 4, per: 2, culprit: 3, skew: 0.0 };
    let midway = Made { fault: Fault::NotLaunched, ..made };
    let told =
        made.files().into_iter().filter(|(path, _)| !path.starts_with("ras/") && !path.starts_with("inspector/"));
    let dumps = (0..made.world()).map(|rank| (format!("fr/nccl_trace_{rank}"), midway.dump(rank)));
    let parts = told.chain(dumps).map(|(path, text)| (path.clone(), part(&path, text.as_bytes(), &rules)));
    let report = diagnose(&gather(parts), &rules);
    assert_eq!(report.category, Category::None, "{report:#?}");
    assert!(report.suspects.iter().all(|suspect| suspect.node.is_none() && suspect.rank.is_none()), "{report:#?}");
}

/// Logs of a preempted job whose first node's kernel killed a process for memory, seconds after the job's first step.
fn with_a_process_killed(made: Made, seconds: f64, rules: &Rules) -> Report {
    let rank = made.culprit;
    let line = format!(
        "[{}] Out of memory: Killed process 4242 (python3) total-vm:204800kB, anon-rss:102400kB, UID:1000\n",
        made.at(rank, seconds)
    );
    let files = made.files().into_iter().filter(|(path, _)| path.starts_with("logs/") || path.starts_with("dmesg/"));
    let files = files.chain([("job.json".to_owned(), made.job())]);
    let parts = files.map(|(path, text)| {
        let own = path == format!("dmesg/{}.log", made.node(rank));
        let text = if own { text + &line } else { text };
        (path.clone(), part(&path, text.as_bytes(), rules))
    });
    diagnose(&gather(parts), rules)
}

#[test]
fn a_process_that_the_kernel_killed_before_the_job_began_is_not_what_ended_it() {
    let rules = Rules::built_in().unwrap();
    let made = Made { fault: Fault::Preempted, nodes: 4, per: 2, culprit: 3, skew: 0.0 };
    for skew in [0.0, 3.5] {
        let before = with_a_process_killed(Made { skew, ..made }, -15.0, &rules);
        assert_eq!(before.category, Category::None, "{before:#?}");
        assert!(before.suspects.iter().all(|suspect| suspect.node.is_none() && suspect.rank.is_none()), "{before:#?}");
    }
    let during = with_a_process_killed(made, 13.0, &rules);
    assert_ne!(during.category, Category::None, "one of its own is: {during:#?}");
    assert_eq!(during.suspects[0].node.as_deref(), Some(&*made.node(made.culprit)), "{during:#?}");
}

#[test]
fn without_a_source_the_answer_is_right_or_open_and_never_another_name() {
    let rules = Rules::built_in().unwrap();
    let (mut wrong, mut sure, mut all) = (Vec::new(), 0, 0);
    for made in cases() {
        for without in ["logs/", "dmesg/", "fr/", "ras/", "ras/poll2", "inspector/", "job.json"] {
            let report = made.triage(&rules, without);
            all += 1;
            sure += usize::from(report.suspects.first().is_some_and(|first| first.confidence >= SURE));
            if !made.innocent(&report) {
                wrong.push(format!(
                    "{made:?} without {without}: {} {}",
                    report.category.name(),
                    report.suspects[0].sentence
                ));
            }
            assert!(!report.not_looked_at.is_empty());
        }
    }
    println!("{sure} of {all} answers with a source removed are sure, {} of them wrong", wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn confidence_is_kept_on_made_cases_with_one_source_each() {
    let rules = Rules::built_in().unwrap();
    // By tenths of confidence: how many, and how many right.
    let mut tenths = [(0_usize, 0_usize); 11];
    for made in cases() {
        for only in ["logs/", "dmesg/", "fr/", "ras/", "inspector/"] {
            let files = made.files().into_iter().filter(|(path, _)| path == "job.json" || path.starts_with(only));
            let report = diagnose(
                &gather(files.map(|(path, text)| (path.clone(), part(&path, text.as_bytes(), &rules)))),
                &rules,
            );
            if let Some(first) = report.suspects.first() {
                let culprit = first.rank.is_none_or(|rank| rank as usize == made.culprit)
                    && first.node.as_deref().is_none_or(|node| node == made.node(made.culprit));
                let tenth = &mut tenths[(first.confidence * 10.0) as usize];
                *tenth = (tenth.0 + 1, tenth.1 + usize::from(culprit));
            }
        }
    }
    println!("confidence in tenths (all, right): {tenths:?}");
    let sure = tenths[8..].iter().fold((0, 0), |sum, tenth| (sum.0 + tenth.0, sum.1 + tenth.1));
    assert!(sure.1 * 10 >= sure.0 * 9, "{tenths:?}");
}
