//! Is the job slow because of one GPU or one link, or all of it, or not at all?

use super::{Draft, Verdict, found, nothing, seen, who};
use crate::alerts;
use crate::confidence::Weight;
use crate::counters::Movement;
use crate::facts::Facts;
use crate::report::{Done, Kind as What, Source, Suspect};
use crate::slow::{Late, Link, Who};
use muster_logs::Category;
use muster_logs::{Kind, Part};

const STEP: &str = "slow-ranks";
/// Share of the ranks that must be timed before "nobody stands out" means anything.
const COVERED: f64 = 0.9;

/// Times the usual step that is a stall.
const STALL: f64 = 3.0;

/// The step.
pub(super) fn step(facts: &Facts<'_>) -> (Done, Option<Verdict>) {
    if let Some(backlog) = facts.standings.backlog.as_ref().filter(|_| facts.movement != Movement::Still) {
        let (node, of) = (&backlog.node, Some(backlog.node.clone()));
        let mut draft = Draft::new(What::Link, of.clone(), None);
        draft.add(Weight::Backlog, backlog.waits.iter().map(|text| seen(Source::Counter, &of, None, text.clone())));
        if let Some(text) = &backlog.again {
            draft.add(Weight::Notice, [seen(Source::Counter, &of, None, text.clone())]);
        }
        draft.checked(facts);
        draft.counted(facts);
        let suspect = draft.say(format!("{node}: data of the job waits to get there or away, and nowhere else: its link carries less than the others'."));
        let result = format!("data waits on the links of {node} alone");
        return found(STEP, result, Verdict { category: Category::SlowLink, suspects: vec![suspect] });
    }
    if let Some(timed) = timed(facts) {
        return timed;
    }
    if let Some(watched) = watched(facts) {
        return watched;
    }
    if facts.slow.compared == 0 {
        return nothing(
            STEP,
            "no operation was timed on all ranks of a communicator",
            "Without NCCL Inspector's times nobody can be called slow, or well.",
        );
    }
    even(facts, facts.layout.world())
}

/// What NCCL Inspector's times show.
fn timed(facts: &Facts<'_>) -> Option<(Done, Option<Verdict>)> {
    let world = facts.layout.world();
    let few = facts.slow.late.len() <= (world / 8).max(1);
    if few && !facts.slow.late.is_empty() && facts.movement != Movement::Still {
        let suspects: Vec<Suspect> = facts.slow.late.iter().map(|late| late_suspect(facts, late)).collect();
        let names: Vec<String> = suspects.iter().map(|s| who(s.rank, s.node.as_deref())).collect();
        let result = format!("late in operation after operation: {}", names.join(", "));
        return Some(found(STEP, result, Verdict { category: Category::SlowGpu, suspects }));
    }
    let link = facts.slow.links.first().filter(|_| facts.slow.links.len() <= 2)?;
    let suspects = link.ends.iter().take(super::SUSPECTS).map(|end| link_suspect(facts, link, end)).collect();
    let result = format!("communicator {} takes {:.1} times as long as its peers", link.comm, link.factor);
    Some(found(STEP, result, Verdict { category: Category::SlowLink, suspects }))
}

/// What a watch of the job alerted of.
fn watched(facts: &Facts<'_>) -> Option<(Done, Option<Verdict>)> {
    let standing = alerts::standing(facts);
    let category = alerts::category(standing.first()?.1);
    let mut nodes: Vec<String> = standing.into_iter().map(|(node, _)| node).collect();
    nodes.dedup();
    let suspect = |node: &String| {
        let mut draft = Draft::new(What::Node, Some(node.clone()), None);
        draft.watched(facts);
        draft.checked(facts);
        draft.counted(facts);
        draft.say(format!("{node} was unlike its peers while the job ran."))
    };
    let suspects = nodes.iter().map(suspect).collect();
    let result = format!("the watch found {} unlike its peers", nodes.join(" and "));
    Some(found(STEP, result, Verdict { category, suspects }))
}

fn late_suspect(facts: &Facts<'_>, late: &Late) -> Suspect {
    let (rank, node) = (late.who.rank, Some(late.who.node.clone()));
    let gpu = rank.and_then(|rank| facts.layout.gpu_of(rank));
    let mut draft = Draft::new(What::Gpu, node.clone(), rank).gpu(gpu);
    let text = format!(
        "shortest in {:.0} % of {} operations, {} in a row, at {:.2} of the others' mean: they wait for it",
        late.share * 100.0,
        late.of,
        late.run,
        late.ratio
    );
    draft.add(Weight::Late, [seen(Source::Inspector, &node, rank, text)]);
    let fits = |part| matches!(part, Part::Gpu | Part::GpuMemory | Part::Cooling | Part::Power);
    let notices = facts.events.iter().filter(|event| {
        event.node == node
            && event.source == Source::Kernel
            && fits(event.rule.part)
            && event.rule.kind <= Kind::Notice
            && !matches!(event.rule.kind, Kind::Consequence)
    });
    let notices: Vec<_> =
        notices.filter(|event| event.gpu.is_none() || event.gpu == gpu).map(|event| event.evidence()).take(3).collect();
    if !notices.is_empty() {
        draft.add(Weight::Notice, notices);
    }
    draft.checked(facts);
    draft.counted(facts);
    draft.say(format!(
        "{}, GPU {}: the others wait for it in every collective.",
        who(rank, node.as_deref()),
        gpu.map_or("unknown".to_owned(), |gpu| gpu.to_string())
    ))
}

fn link_suspect(facts: &Facts<'_>, link: &Link, end: &Who) -> Suspect {
    let node = Some(end.node.clone());
    let gpu = end.rank.and_then(|rank| facts.layout.gpu_of(rank));
    let adapter = gpu.and_then(|gpu| facts.layout.adapter(&end.node, gpu)).map(str::to_owned);
    let mut draft = Draft::new(What::Link, node.clone(), end.rank).gpu(gpu).element(adapter);
    let weight = if link.told && link.ends.len() == 1 { Weight::LinkTold } else { Weight::LinkOneOf };
    let text = format!(
        "communicator {} takes {:.1} times as long as others of its size{}",
        link.comm,
        link.factor,
        if link.told { ", and so do all transfers that touch this end" } else { "" }
    );
    draft.add(weight, [seen(Source::Inspector, &node, end.rank, text)]);
    draft.checked(facts);
    draft.counted(facts);
    let sentence = format!(
        "{}: its link carries less than its peers', {:.1} times as long for the same bytes.",
        who(end.rank, Some(&end.node)),
        link.factor
    );
    draft.one_of(if link.told { link.ends.len().max(1) } else { link.ends.len().max(2) }, sentence)
}

/// Nobody stands out: `none` when everybody was looked at and the job gets on.
fn even(facts: &Facts<'_>, world: usize) -> (Done, Option<Verdict>) {
    let (late, links) = (facts.slow.late.len(), facts.slow.links.len());
    let odd = match (late, links) {
        (0, 0) => "none stands out".to_owned(),
        (0, _) => format!("{links} links are slow"),
        (1, _) => "the others wait for one of them".to_owned(),
        (_, _) => format!("others wait for {late} of them"),
    };
    let of = if world > 0 { format!(" of {world}") } else { String::new() };
    let result = format!("{}{of} ranks timed, and {odd}", facts.slow.compared);
    let covered = facts.slow.compared as f64 >= COVERED * world as f64;
    if world == 0 {
        return nothing(STEP, result, "How many ranks there are is not known: others may be the slow ones.");
    }
    if !covered {
        return nothing(STEP, result, "The others were not timed: they may be the slow ones.");
    }
    if facts.hung() || facts.movement == Movement::Still || facts.roots().next().is_some() {
        return nothing(STEP, result, "Times are of finished operations only, and the job shows other trouble.");
    }
    if late + links > 0 {
        return nothing(STEP, result, "That many are not one GPU or one link: look for what they have in common.");
    }
    if !facts.slow.links_compared && facts.layout.nodes().len() > 1 {
        return nothing(
            STEP,
            result,
            "Communicators between nodes could not be compared with others of their kind: a slow link is not excluded.",
        );
    }
    let mut steps: Vec<f64> =
        facts.case.logs.iter().flat_map(|log| log.steps.iter().filter_map(|step| step.seconds)).collect();
    let usual = crate::clock::median(&mut steps);
    if steps.is_empty() || steps.iter().any(|seconds| *seconds > STALL * usual) {
        return nothing(
            STEP,
            result,
            "Operations are even, and steps are not told or stall now and then: what stalls between operations is not seen here.",
        );
    }
    let mut draft = Draft::new(What::None, None, None);
    draft.add(Weight::Even, [seen(Source::Inspector, &None, None, result.clone())]);
    if facts.movement == Movement::Moved {
        draft.add(Weight::Moving, [seen(Source::Ras, &None, None, "the job got on between two polls".to_owned())]);
    }
    let suspect = draft.say("No rank and no link stands out; if the job is slow, all of it is.");
    found(STEP, result, Verdict { category: Category::None, suspects: vec![suspect] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Case, Job, Joined, Log, Member, Step, Timed, Whose};
    use crate::made;
    use muster_logs::Rules;

    /// Four ranks on four nodes, and how long each takes for nine operations of all of them.
    fn case(took_us: impl Fn(u32) -> f64) -> Case {
        let member = |rank: u32| Member { rank, node: Some(format!("n{rank}")), pid: Some(rank), gpu: Some(0) };
        let timed = |seq: u64, rank: u32| Timed {
            comm: "c".to_owned(),
            rank,
            ranks: 4,
            nodes: 4,
            host: format!("n{rank}"),
            pid: rank,
            op: "AllReduce".to_owned(),
            peer: None,
            seq,
            bytes: 4096,
            took_us: took_us(rank),
        };
        Case {
            job: Job { members: (0..4).map(member).collect(), ..Job::default() },
            timed: (0..9)
                .flat_map(|seq| (0..4).map(move |rank| (seq, rank)))
                .map(|(seq, rank)| timed(seq, rank))
                .collect(),
            ..Case::default()
        }
    }

    /// What is said of rank 2, for which the others wait in every operation, with this line in a log.
    fn late(whose: Whose, line: &str) -> Suspect {
        let rules = Rules::built_in().unwrap();
        let mut case = case(|rank| if rank == 2 { 600.0 } else { 3000.0 });
        let gpu = |(gpu, bus): (u32, &str)| Joined {
            host: Some("n2".to_owned()),
            pid: None,
            rank: None,
            ranks: None,
            gpu: Some(gpu),
            bus: Some(bus.to_owned()),
            comm: None,
        };
        let comms = [(0, "0000:11:00.0"), (1, "0000:12:00.0")].map(gpu).to_vec();
        let job = Log { comms, ..made::log(Whose::Job("out".to_owned()), "", &rules) };
        case.logs = vec![job, made::log(whose, line, &rules)];
        let (_, verdict) = step(&Facts::of(&case, &rules));
        let Verdict { category, mut suspects } = verdict.unwrap();
        assert_eq!((category, suspects.len()), (Category::SlowGpu, 1), "{suspects:?}");
        suspects.remove(0)
    }

    #[test]
    fn a_notice_of_the_kernel_on_the_late_gpu_adds_to_it_and_one_on_another_gpu_node_or_part_does_not() {
        let kernel = |node: &str| Whose::Kernel(node.to_owned());
        let remapped =
            |bus: &str| format!("NVRM: Xid (PCI:0000:{bus}:00): 63, pid='<unknown>', name=<unknown>, Row Remapper\n");
        for (whose, line, confidence) in [
            (kernel("n2"), remapped("11"), 0.93),
            (kernel("n2"), remapped("13"), 0.93),
            (kernel("n2"), remapped("12"), 0.88),
            (kernel("n1"), remapped("11"), 0.88),
            (Whose::Rank(2), remapped("11"), 0.88),
            (kernel("n2"), "NVRM: A GPU crash dump has been created. If possible, please run\n".to_owned(), 0.88),
            (kernel("n2"), "mlx5_core 0000:44:00.0 ib2: Link down\n".to_owned(), 0.88),
        ] {
            let suspect = late(whose.clone(), &line);
            assert_eq!((suspect.node.as_deref(), suspect.rank, suspect.gpu), (Some("n2"), Some(2), Some(0)));
            let notices = suspect.evidence.iter().filter(|one| one.source == Source::Kernel).count();
            assert_eq!((suspect.confidence, notices > 0), (confidence, confidence > 0.9), "{whose:?} {line}");
        }
    }

    #[test]
    fn a_slow_link_is_named_with_its_adapter_and_for_less_where_it_is_one_of_several_ends() {
        let (rules, mut case) = (Rules::built_in().unwrap(), case(|_| 3000.0));
        let adapters = vec!["mlx5_4".to_owned()];
        case.logs = vec![Log { adapters, ..made::log(Whose::Rank(1), "", &rules) }];
        let facts = Facts::of(&case, &rules);
        let end = Who { node: "n1".to_owned(), pid: 1, rank: Some(1) };
        for (told, ends, confidence) in [(true, 1, 0.85), (true, 2, 0.2), (false, 1, 0.2), (false, 4, 0.1)] {
            let link = Link { comm: "c".to_owned(), factor: 2.5, ends: vec![end.clone(); ends], told };
            let suspect = link_suspect(&facts, &link, &end);
            assert_eq!((suspect.kind, suspect.rank, suspect.gpu), (What::Link, Some(1), Some(0)));
            assert_eq!((suspect.element.as_deref(), suspect.confidence), (Some("mlx5_4"), confidence), "{told} {ends}");
            assert_eq!(suspect.evidence[0].text.contains("all transfers that touch this end"), told);
        }
    }

    /// The verdict on a job whose GPUs are all alike, with steps that took so long.
    fn alike(case: &mut Case, seconds: &[f64]) -> (Done, Option<Verdict>) {
        let rules = Rules::built_in().unwrap();
        let step_of = |(nr, &seconds): (usize, &f64)| Step {
            step: nr as u64,
            row: 1 + nr as u64,
            at: None,
            seconds: Some(seconds),
        };
        let steps = seconds.iter().enumerate().map(step_of).collect();
        case.logs = vec![Log { steps, ..made::log(Whose::Rank(0), "", &rules) }];
        step(&Facts::of(case, &rules))
    }

    #[test]
    fn a_job_without_a_late_gpu_is_well_only_where_all_was_compared_and_no_step_stalled() {
        let mut one_node = case(|_| 3000.0);
        one_node.job.members.iter_mut().for_each(|member| member.node = Some("n0".to_owned()));
        one_node.timed.iter_mut().for_each(|one| (one.nodes, one.host) = (1, "n0".to_owned()));
        let (_, verdict) = alike(&mut one_node, &[1.0, 1.0, 3.0]);
        let verdict = verdict.unwrap();
        assert_eq!((verdict.category, verdict.suspects[0].kind), (Category::None, What::None));
        assert_eq!(verdict.suspects[0].confidence, 0.82);
        let open = |case: &mut Case, seconds: &[f64], why: &str| {
            let (done, verdict) = alike(case, seconds);
            assert!(verdict.is_none() && done.why.contains(why), "{done:?}");
            assert!(done.result.ends_with("ranks timed, and none stands out"), "{done:?}");
        };
        open(&mut one_node, &[1.0, 1.0, 3.1], "stall now and then");
        open(&mut one_node, &[], "steps are not told");
        open(&mut case(|_| 3000.0), &[1.0, 1.0], "a slow link is not excluded");
        one_node.job.world_size = Some(5);
        open(&mut one_node, &[1.0, 1.0], "they may be the slow ones");
    }
}
