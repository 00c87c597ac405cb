//! A job that hangs because one GPU has lost its memory, told by made-up logs and dumps, and judged by the real procedure.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use muster_logs::{Field, Kind, Rules, Scan, Stream, Tally};
use muster_triage::case::{Case, Config, Dump, Entry, Joined, Log, Member, Status, Step, Whose};
use muster_triage::overview::overview;
use muster_triage::report::Subject;
use muster_tui::snapshot::Triaged;

/// Ranks on a node.
const PER_NODE: usize = 8;
/// 2026-11-21 13:45 UTC.
const BEGAN_S: f64 = 1_795_268_700.0;

/// Cases that were made, by the names of their nodes.
static MADE: Mutex<BTreeMap<String, Triaged>> = Mutex::new(BTreeMap::new());

/// The case of a job on the nodes called `names`, eight ranks each, at most 1,024: the GPU of a rank in the middle is broken.
pub(crate) fn triaged(names: &[String]) -> Triaged {
    let names = &names[..names.len().min(128)];
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(names.join(",")).or_insert_with(|| judged(&case(names), &[])).clone()
}

/// The same with what a person has marked as wrong.
pub(crate) fn judged(case: &Case, wrong: &[Subject]) -> Triaged {
    let rules = Rules::built_in().expect("the rules of the program are whole");
    let name = "job-4711".to_owned();
    let overview = Arc::new(overview(case, &rules, wrong));
    let testable = Ok(overview.nodes.clone());
    Triaged { name, overview, confirmed: Vec::new(), notes: Vec::new(), testable }
}

/// What the job's files say.
pub(crate) fn case(names: &[String]) -> Case {
    let rules = Rules::built_in().expect("the rules of the program are whole");
    let world = names.len() * PER_NODE;
    let bad = world / 2 + 3;
    let mut case = Case::default();
    case.job.world_size = Some(world as u32);
    for rank in 0..world {
        let node = names[rank / PER_NODE].clone();
        let gpu = Some((rank % PER_NODE) as u32);
        case.job.members.push(Member { rank: rank as u32, node: Some(node), pid: Some(4_000 + rank as u32), gpu });
        case.dumps.push(dump(rank, world, rank == bad));
        let mut told = log(&rules, Whose::Rank(rank as u32), &output(rank, rank == bad));
        if rank == bad {
            told.comms.push(Joined {
                host: Some(names[rank / PER_NODE].clone()),
                pid: Some(4_000 + rank as u32),
                rank: Some(rank as u32),
                ranks: Some(world as u32),
                gpu: Some((rank % PER_NODE) as u32),
                bus: Some("PCI:0000:07:00".into()),
                comm: Some("0x1".into()),
            });
        }
        case.logs.push(told);
    }
    for (at, name) in names.iter().enumerate() {
        case.logs.push(log(&rules, Whose::Kernel(name.clone()), &kernel(name, at == bad / PER_NODE)));
    }
    case
}

fn dump(rank: usize, world: usize, bad: bool) -> Dump {
    let pair = format!("{}", 1 + rank / 2);
    let first = (rank / 2 * 2) as u32;
    let config = |desc: &str, ranks: Vec<u32>| Config { desc: desc.into(), ranks };
    let groups = [
        ("0".to_owned(), config("default_pg", (0..world as u32).collect())),
        (pair.clone(), config("TENSOR_MODEL_PARALLEL_GROUP", vec![first, first + 1])),
    ];
    let status = |enqueued, completed| Status { enqueued: Some(enqueued), started: None, completed: Some(completed) };
    let behind = if bad { 2 } else { 0 };
    let entry = |slot: &str, group: &str, seq: u64, at_s: f64| Entry {
        slot: slot.into(),
        group: group.into(),
        seq,
        op: "nccl:all_reduce".into(),
        created_s: Some(at_s),
        completed_s: (seq <= 88).then_some(at_s + 0.01),
        retired: seq <= 88,
        ..Entry::default()
    };
    let mut entries: Vec<Entry> = (80..89).map(|seq| entry("0", "0", seq, BEGAN_S + 10.0 * seq as f64)).collect();
    entries.push(entry("1", &pair, 40, BEGAN_S));
    Dump {
        rank: rank as u32,
        groups: groups.into_iter().collect(),
        status: [("0".to_owned(), status(90 - behind, 88)), ("1".to_owned(), status(40, 40))].into_iter().collect(),
        entries,
        left_out: 0,
    }
}

fn output(rank: usize, bad: bool) -> String {
    let steps = (0..6).map(|step| {
        format!("[2026-11-21 13:5{step}:00] iteration {step}/ 900 | elapsed time per iteration (ms): 60000.0 |\n")
    });
    let mut text: String = steps.collect();
    if !bad {
        text += &format!(
            "[rank{rank}]:[E1121 14:05:3{}.459121942 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=89, OpType=ALLREDUCE, NumelIn=62914560, NumelOut=62914560, Timeout(ms)=600000) ran for 600083 milliseconds before timing out.\n",
            rank % 10
        );
    }
    text
}

fn kernel(name: &str, bad: bool) -> String {
    let mut text = format!("2026-11-21T13:40:00.000000+00:00 {name} kernel: Linux version 6.8.0\n");
    if bad {
        text += &format!(
            "2026-11-21T13:55:12.250000+00:00 {name} kernel: NVRM: Xid (PCI:0000:07:00): 48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 7, subpartition 1.\n"
        );
        text += &format!(
            "2026-11-21T13:55:12.260000+00:00 {name} kernel: NVRM: Xid (PCI:0000:07:00): 45, pid='<unknown>', name=<unknown>, Ch 00000008\n"
        );
    }
    text
}

/// A log as the importer keeps it.
fn log(rules: &Rules, whose: Whose, text: &str) -> Log {
    let is_kernel = matches!(whose, Whose::Kernel(_));
    let mut scan = Scan::new(rules, if is_kernel { Stream::Kernel } else { Stream::Job });
    let (mut tally, mut steps, mut last) = (Tally::default(), Vec::new(), None);
    let mut take = |hit: &muster_logs::Hit<'_>| {
        tally.add(hit);
        last = hit.stamp.or(last);
        if let Some(step) = hit.fields.number(Field::Step).filter(|_| hit.rule.kind == Kind::Progress) {
            steps.push(Step { step, row: hit.row, at: hit.stamp, seconds: hit.fields.seconds() });
        }
    };
    scan.feed(text.as_bytes(), &mut take);
    let scanned = scan.finish(&mut take);
    Log { steps, last, ..Log::of(whose, &scanned, &tally) }
}
