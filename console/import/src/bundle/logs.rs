//! Logs of ranks, jobs and kernels: one pass, only what rules know is kept.

use std::collections::VecDeque;
use std::io::BufRead;

use muster_logs::stamp::Stamp;
use muster_logs::{Field, Hit, Kind, Limits as Keep, Rules, Scan, Scanned, Stream, Tally};
use muster_triage::case::{Joined, Log, Step, Whose};
use muster_wire::{clean, limits};

use crate::Bad;

/// Latest steps that are kept of a log.
const STEPS: usize = 2048;
/// Communicators that are kept of a log.
const COMMS: usize = 256;
/// Bytes read at once.
const PIECE: usize = 1 << 18;
/// What is kept of a log of a rank: a thousand of them stay under half a gigabyte.
const KEEP: Keep = Keep { per_rule: 48, lines: 512, text: 512 };

/// Whose log a file in `logs/` is, by its name: `rank_3.log`, `worker-rank3.err`, or the job's.
#[must_use]
pub fn whose(file: &str) -> Whose {
    let lower = file.to_ascii_lowercase();
    let rank = lower.find("rank").map(|at| &lower[at + 4..]).and_then(|rest| {
        let digits = rest.trim_start_matches(['_', '-', '.', '=']);
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok()
    });
    rank.map_or_else(|| Whose::Job(clean(file, limits::NAME_BYTES)), Whose::Rank)
}

/// The kernel's log of the node that the file is called by.
#[must_use]
pub fn kernel(file: &str) -> Whose {
    let name = file.strip_suffix(".gz").unwrap_or(file);
    let name = [".log", ".txt", ".dmesg", ".out"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    Whose::Kernel(clean(name, limits::NAME_BYTES))
}

/// Reads one.
///
/// # Errors
/// When the stream breaks.
pub fn read(whose: Whose, mut input: impl BufRead, rules: &Rules) -> Result<Log, Bad> {
    let is_kernel = matches!(whose, Whose::Kernel(_));
    let scan = Scan::new(rules, if is_kernel { Stream::Kernel } else { Stream::Job }).step_once();
    let mut kept = Kept {
        tally: Tally::new(KEEP),
        steps: VecDeque::new(),
        begun: None,
        comms: Vec::new(),
        adapters: Vec::new(),
        last: None,
    };
    let head = input.fill_buf().map_err(|source| Bad::Io { line: 1, source })?;
    let refused = if is_kernel { refusal(head) } else { None };
    let scanned = scanned(input, scan, &mut |hit| kept.take(hit))?;
    Ok(Log {
        steps: kept.steps.into(),
        begun: kept.begun,
        comms: kept.comms,
        adapters: kept.adapters,
        last: kept.last,
        refused,
        ..Log::of(whose, &scanned, &kept.tally)
    })
}

/// All steps that a log of a job tells, in its order, up to `most`; and how many more it tells.
///
/// # Errors
/// When the stream breaks.
pub fn steps(input: impl BufRead, rules: &Rules, most: usize) -> Result<(Vec<Step>, u64), Bad> {
    let scan = Scan::new(rules, Stream::Job).step_once();
    let (mut steps, mut left_out) = (Vec::new(), 0);
    let mut take = |hit: &Hit<'_>| {
        let step = hit.fields.number(Field::Step).filter(|_| hit.rule.kind == Kind::Progress);
        match step {
            Some(step) if steps.len() < most => {
                steps.push(Step { step, row: hit.row, at: hit.stamp, seconds: hit.fields.seconds() });
            }
            Some(_) => left_out += 1,
            None => {}
        }
    };
    scanned(input, scan, &mut take)?;
    Ok((steps, left_out))
}

/// Goes through all of a log.
fn scanned(mut input: impl BufRead, mut scan: Scan<'_>, take: &mut impl FnMut(&Hit<'_>)) -> Result<Scanned, Bad> {
    let mut piece = vec![0; PIECE];
    loop {
        let read =
            input.read(&mut piece).map_err(|source| Bad::Io { line: scan.scanned().lines as usize + 1, source })?;
        if read == 0 {
            return Ok(scan.finish(take));
        }
        scan.feed(&piece[..read], take);
    }
}

/// What a kernel log says that was denied: containers often may not read it.
fn refusal(head: &[u8]) -> Option<String> {
    let line = head.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty())?;
    let text = clean(&String::from_utf8_lossy(&line[..line.len().min(200)]), 200);
    let lower = text.to_ascii_lowercase();
    ["permission denied", "not permitted", "denied"]
        .iter()
        .any(|word| lower.contains(word))
        .then_some(text)
        .filter(|_| head.len() < 400)
}

struct Kept {
    tally: Tally,
    steps: VecDeque<Step>,
    begun: Option<Stamp>,
    comms: Vec<Joined>,
    adapters: Vec<String>,
    last: Option<Stamp>,
}

impl Kept {
    fn take(&mut self, hit: &Hit<'_>) {
        self.tally.add(hit);
        self.last = hit.stamp.or(self.last);
        let fields = &hit.fields;
        if hit.rule.kind == Kind::Progress
            && let Some(step) = fields.number(Field::Step)
        {
            // A job that goes on from a checkpoint starts at a later number, behind the lines of its start.
            if self.steps.is_empty() && (step <= 1 || !self.comms.is_empty()) {
                self.begun = hit.stamp;
            }
            if self.steps.len() == STEPS {
                self.steps.pop_front();
            }
            self.steps.push_back(Step { step, row: hit.row, at: hit.stamp, seconds: fields.seconds() });
        }
        if self.adapters.is_empty() && hit.text.contains("NET/IB : Using") {
            self.adapters = adapters(&hit.text);
        }
        let number = |field| fields.number(field).map(|n| n as u32);
        let joins = fields.get(Field::CommId).is_some() || fields.get(Field::Bus).is_some();
        if hit.rule.kind == Kind::Progress && joins && self.comms.len() < COMMS {
            let origin = hit.origin();
            self.comms.push(Joined {
                host: origin.host,
                pid: origin.pid,
                rank: number(Field::GroupRank).or_else(|| number(Field::Rank)),
                ranks: number(Field::Ranks),
                gpu: number(Field::Gpu).or(origin.gpu),
                bus: fields.get(Field::Bus).map(str::to_owned),
                comm: fields.get(Field::CommId).map(str::to_owned),
            });
        }
    }
}

/// `[0]mlx5_0:1/IB [1]mlx5_1:1/IB …`, in their order.
fn adapters(text: &str) -> Vec<String> {
    let words = text.split_whitespace().filter_map(|word| {
        let (number, rest) = word.strip_prefix('[')?.split_once(']')?;
        number.parse::<u32>().ok()?;
        rest.split(':').next().filter(|name| !name.is_empty()).map(str::to_owned)
    });
    words.take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_by_its_rank_or_its_node() {
        assert_eq!(whose("rank_12.log"), Whose::Rank(12));
        assert_eq!(whose("job-7.rank3.err"), Whose::Rank(3));
        assert_eq!(whose("slurm-7.out"), Whose::Job("slurm-7.out".into()));
        assert_eq!(kernel("n7.rack.log"), Whose::Kernel("n7.rack".into()));
    }

    #[test]
    fn a_job_begins_with_its_first_step_and_the_end_of_a_log_has_no_beginning() {
        let rules = Rules::built_in().unwrap();
        let step = |n: u32, second: u32| {
            format!(
                "[2026-03-04 05:06:{second:02}.000] iteration {n}/ 100 | elapsed time per iteration (ms): 2000.0 | lm loss: 2.1E+00 |\n"
            )
        };
        let begun = |text: String| read(whose("rank_0.log"), text.as_bytes(), &rules).unwrap().begun;
        let at = |second: u32| Some(Stamp::Local(1_772_600_760.0 + f64::from(second)));
        assert_eq!(begun(step(1, 7) + &step(2, 9)), at(7));
        assert_eq!(begun(step(41, 7) + &step(42, 9)), None);
        let joined = "n1:7000:7001 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 1000 commId 0x9 - Init COMPLETE\n";
        assert_eq!(begun(joined.to_owned() + &step(41, 7)), at(7));
        let many: String = (0..3 * STEPS as u32).map(|n| step(n, n % 60)).collect();
        assert_eq!(begun(many), at(0), "whatever is kept of the later ones");
    }

    #[test]
    fn adapters_come_in_the_order_of_the_line() {
        let line = "n1:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_2:1/IB [1]mlx5_0:1/RoCE [RO]; OOB eth0:10.1.4.20<0>";
        assert_eq!(adapters(line), ["mlx5_2", "mlx5_0"]);
    }

    #[test]
    fn a_refused_kernel_log_is_not_a_clean_one() {
        let rules = Rules::built_in().unwrap();
        let log = read(kernel("n1.log"), &b"dmesg: read kernel buffer failed: Operation not permitted\n"[..], &rules)
            .unwrap();
        assert!(log.refused.is_some());
        let clean = read(kernel("n1.log"), &b"[    1.000000] Linux version 6.8\n"[..], &rules).unwrap();
        assert!(clean.refused.is_none());
    }

    #[test]
    fn a_line_of_a_hundred_megabytes_and_a_million_different_lines_stay_small() {
        let rules = Rules::built_in().unwrap();
        let long = std::io::Read::take(std::io::repeat(b'x'), 100 << 20);
        let log = read(whose("rank_0.log"), std::io::BufReader::new(long), &rules).unwrap();
        assert_eq!(log.cut_lines, 1);
        let lines: String = (0..100_000).map(|n| format!("n1:1:{n} [0] misc/socket.cc:503 NCCL WARN socketProgress: Connection closed by remote peer h{n}<4>\n")).collect();
        let log = read(whose("rank_0.log"), lines.as_bytes(), &rules).unwrap();
        assert!(log.seen.len() <= 512 && log.not_kept > 90_000, "{} {}", log.seen.len(), log.not_kept);
    }
}
