//! What the nodes of a job showed by themselves, once it had left them: what an offline diagnosis adds to the verdict.

use super::confidence::{SURE, Weight, confidence, with_another};
use super::offline::{Accused, AccusedKind, Answer, Offline, PAIRS, REFERENCE, SELF_TESTS};
use super::procedure::GUESS;
use super::report::{Done, Evidence, Kind, Source, Subject, Suspect};
use super::steps::Verdict;
use muster_logs::Category;
use muster_logs::fault::Cause;

/// The step of the procedure, followed by those of the diagnosis.
pub(super) fn steps(tested: &Offline) -> impl Iterator<Item = Done> {
    let result = match tested.verdict {
        Answer::Named => "something is named",
        Answer::NothingFound => "nothing found",
        Answer::Undecided => "undecided",
    };
    let own = Done { step: "offline-diagnosis", result: result.to_owned(), why: tested.sentence.clone() };
    std::iter::once(own).chain(tested.steps.iter().cloned())
}

/// Adds those accused to the suspects. They lead where nobody was named with confidence before. Gives what to do next where that
/// is for the test to say: who leads is its finding, or nobody is suspected at all.
pub(super) fn weigh(
    tested: &Offline,
    verdict: &mut Verdict,
    (wrong, marked_wrong): (&[Subject], &mut Vec<Suspect>),
) -> Option<String> {
    let nobody = verdict.suspects.is_empty();
    if tested.culprits.is_empty() {
        return nobody.then(|| tested.action.clone());
    }
    let sure = verdict.suspects.iter().any(|suspect| suspect.confidence >= SURE);
    let mut leads = Vec::new();
    let mut next = None;
    for accused in &tested.culprits {
        let found = suspect(accused);
        let same = |suspect: &Suspect| found.kind == Kind::Node && suspect.node == found.node;
        if let Some(known) = verdict.suspects.iter_mut().find(|known| same(known)) {
            known.confidence = with_another(known.confidence, Weight::Tested);
            known.evidence.extend(found.evidence);
        } else if wrong.contains(&found.subject()) {
            marked_wrong.push(found);
        } else {
            next = next.or_else(|| (found.confidence >= GUESS).then(|| (category(accused), found.subject())));
            leads.push(found);
        }
    }
    // The job's own evidence of the same node says better what is wrong with it than a test without the job.
    let corroborated = verdict.suspects.iter().any(|suspect| suspect.confidence >= SURE);
    verdict.suspects.extend(leads);
    verdict.suspects.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    let Some((category, subject)) = next.filter(|_| !sure && !corroborated) else {
        let doubtful = nobody && !verdict.suspects.is_empty();
        return doubtful.then(|| tested.action.clone());
    };
    verdict.category = category;
    let at = verdict.suspects.iter().position(|suspect| suspect.subject() == subject)?;
    verdict.suspects[..=at].rotate_right(1);
    let first = tested.culprits.first().is_some_and(|first| suspect(first).subject() == subject);
    first.then(|| tested.action.clone())
}

fn suspect(accused: &Accused) -> Suspect {
    let node = match accused.nodes.as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    };
    let (kind, element) = match accused.kind {
        AccusedKind::Node => (Kind::Node, None),
        AccusedKind::Way | AccusedKind::NodeOrWay => (Kind::Link, accused.element.clone().or_else(|| way(accused))),
    };
    let alone = confidence(&[Weight::Tested]);
    Suspect {
        kind,
        node: node.clone(),
        rank: None,
        gpu: None,
        element,
        cause: Cause::default(),
        confidence: if accused.kind == AccusedKind::NodeOrWay { alone / 2.0 } else { alone },
        sentence: accused.sentence.clone(),
        evidence: vec![Evidence {
            source: Source::Check,
            node,
            rank: None,
            at: None,
            text: format!("offline diagnosis, {}: {}", accused.step, accused.sentence),
        }],
    }
}

/// `to n6`: where the way leads.
fn way(accused: &Accused) -> Option<String> {
    match accused.with.as_slice() {
        [] => None,
        [one] => Some(format!("to {one}")),
        [first, more @ ..] => Some(format!("to {first} and {} more", more.len())),
    }
}

/// What a test says went wrong with a job: as much as it can say without it.
fn category(accused: &Accused) -> Category {
    match (accused.step.as_ref(), accused.kind) {
        (SELF_TESTS, _) => Category::HardwareCritical,
        (REFERENCE, _) => Category::HostStall,
        (PAIRS, _) => Category::SlowLink,
        (_, AccusedKind::Node) => Category::DistributedError,
        (_, AccusedKind::Way | AccusedKind::NodeOrWay) => Category::HangInNetwork,
    }
}

#[cfg(test)]
mod tests {
    use super::super::offline::HALVING;
    use super::*;

    fn accused(kind: AccusedKind, node: &str, with: &[&str], step: &'static str) -> Accused {
        Accused {
            kind,
            nodes: vec![node.into()],
            with: with.iter().map(|&name| name.into()).collect(),
            element: None,
            step: step.into(),
            sentence: format!("{node} fails"),
        }
    }

    fn said(culprits: Vec<Accused>, verdict: Answer) -> Offline {
        Offline {
            schema: super::super::offline::OFFLINE_SCHEMA.into(),
            version: 1,
            verdict,
            sentence: "said".into(),
            action: "do this".into(),
            nodes: vec!["n1".into(), "n2".into()],
            culprits,
            open: Vec::new(),
            steps: vec![Done { step: HALVING, result: "n1".into(), why: "so".into() }],
            trials: Vec::new(),
            runs: Vec::new(),
        }
    }

    fn before(node: &str, confidence: f64) -> Suspect {
        Suspect { confidence, ..suspect(&accused(AccusedKind::Node, node, &[], HALVING)) }
    }

    fn weighed(culprits: Vec<Accused>, before: Vec<Suspect>, wrong: &[Subject]) -> (Verdict, Option<String>, usize) {
        let category = if before.is_empty() { Category::Undecided } else { Category::Storage };
        let (mut verdict, mut marked) = (Verdict { category, suspects: before }, Vec::new());
        let next = weigh(&said(culprits, Answer::Named), &mut verdict, (wrong, &mut marked));
        (verdict, next, marked.len())
    }

    #[test]
    fn who_is_named_without_the_job_leads_only_where_nobody_was_named_with_confidence() {
        let n1 = || vec![accused(AccusedKind::Node, "n1", &[], HALVING)];
        let (verdict, next, _) = weighed(n1(), Vec::new(), &[]);
        assert_eq!((verdict.category, next.as_deref()), (Category::DistributedError, Some("do this")));
        assert!(verdict.suspects[0].confidence >= SURE);
        let (verdict, next, _) = weighed(n1(), vec![before("n2", 0.6)], &[]);
        assert_eq!((verdict.suspects[0].node.as_deref(), next.is_some()), (Some("n1"), true));
        let (verdict, next, _) = weighed(n1(), vec![before("n2", 0.95)], &[]);
        let order: Vec<Option<&str>> = verdict.suspects.iter().map(|suspect| suspect.node.as_deref()).collect();
        assert_eq!((order, verdict.category, next), (vec![Some("n2"), Some("n1")], Category::Storage, None));
    }

    #[test]
    fn a_test_that_names_nobody_says_what_to_do_next_only_where_nobody_is_suspected() {
        let (verdict, next, _) = weighed(Vec::new(), Vec::new(), &[]);
        assert_eq!((verdict.category, next.as_deref()), (Category::Undecided, Some("do this")));
        let (verdict, next, _) = weighed(Vec::new(), vec![before("n2", 0.6)], &[]);
        assert_eq!((verdict.suspects[0].confidence, next), (0.6, None));
    }

    #[test]
    fn two_nodes_of_which_nobody_knows_which_are_suspected_and_decide_nothing() {
        let culprits = vec![accused(AccusedKind::NodeOrWay, "n1", &["n2"], HALVING)];
        let (verdict, next, _) = weighed(culprits, Vec::new(), &[]);
        assert_eq!((verdict.category, verdict.suspects.len()), (Category::Undecided, 1));
        assert!(verdict.suspects[0].confidence < GUESS && next.as_deref() == Some("do this"));
    }

    #[test]
    fn a_node_that_both_accuse_keeps_what_the_job_said_of_it_and_is_surer() {
        let culprits = vec![accused(AccusedKind::Node, "n1", &[], SELF_TESTS)];
        let (verdict, next, _) = weighed(culprits, vec![before("n2", 0.65), before("n1", 0.6)], &[]);
        assert_eq!((verdict.suspects.len(), verdict.category, next), (2, Category::Storage, None));
        let first = &verdict.suspects[0];
        assert_eq!((first.node.as_deref(), first.confidence, first.evidence.len()), (Some("n1"), 0.94, 2));
    }

    #[test]
    fn a_way_names_both_ends_and_what_a_person_marked_as_wrong_does_not_lead() {
        let culprits = vec![accused(AccusedKind::Way, "n1", &["n2"], PAIRS)];
        let (verdict, ..) = weighed(culprits.clone(), Vec::new(), &[]);
        let first = &verdict.suspects[0];
        assert_eq!(
            (first.kind, first.element.as_deref(), verdict.category),
            (Kind::Link, Some("to n2"), Category::SlowLink)
        );
        let (verdict, next, marked) = weighed(culprits, Vec::new(), &[first.subject()]);
        assert_eq!((verdict.suspects.len(), verdict.category, next, marked), (0, Category::Undecided, None, 1));
    }

    #[test]
    fn what_was_kept_is_read_back_whole_and_nothing_else_is() {
        let whole = said(vec![accused(AccusedKind::Node, "n1", &[], HALVING)], Answer::Named);
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(Offline::parse(text.as_bytes()).unwrap(), whole);
        for (from, to) in [("triage-offline", "triage"), ("\"version\":1", "\"version\":2"), ("halving", "\\u001b[2J")]
        {
            let why = Offline::parse(text.replace(from, to).as_bytes()).unwrap_err();
            assert!(!why.contains('\u{1b}'), "{why}");
        }
        let hostile = text.replace("do this", "do\\u001b[2J this");
        assert!(!Offline::parse(hostile.as_bytes()).unwrap().action.contains('\u{1b}'));
    }

    #[test]
    fn the_steps_of_the_diagnosis_follow_its_answer() {
        let told: Vec<(&str, String)> =
            steps(&said(Vec::new(), Answer::Undecided)).map(|done| (done.step, done.result)).collect();
        assert_eq!(told, [("offline-diagnosis", "undecided".to_owned()), (HALVING, "n1".to_owned())]);
    }

    #[test]
    fn what_a_test_says_went_wrong_is_what_its_step_can_tell() {
        for (step, kind, said) in [
            (SELF_TESTS, AccusedKind::Node, Category::HardwareCritical),
            (REFERENCE, AccusedKind::Node, Category::HostStall),
            (HALVING, AccusedKind::Node, Category::DistributedError),
            (HALVING, AccusedKind::Way, Category::HangInNetwork),
            (HALVING, AccusedKind::NodeOrWay, Category::HangInNetwork),
            (PAIRS, AccusedKind::Way, Category::SlowLink),
        ] {
            assert_eq!(category(&accused(kind, "n1", &["n2"], step)), said, "{step} {kind:?}");
        }
    }

    #[test]
    fn a_way_is_called_by_its_name_or_else_by_where_it_leads_and_a_node_by_no_part() {
        let element = |kind, with: &[&str]| suspect(&accused(kind, "n1", with, HALVING)).element;
        assert_eq!(element(AccusedKind::Way, &[]), None);
        assert_eq!(element(AccusedKind::Way, &["n2"]).as_deref(), Some("to n2"));
        assert_eq!(element(AccusedKind::NodeOrWay, &["n2", "n3", "n4"]).as_deref(), Some("to n2 and 2 more"));
        assert_eq!(element(AccusedKind::Node, &["n2"]), None);
        let named = Accused { element: Some("uplink l3".into()), ..accused(AccusedKind::Way, "n1", &["n2"], PAIRS) };
        assert_eq!(suspect(&named).element.as_deref(), Some("uplink l3"));
        let several = Accused { nodes: vec!["n1".into(), "n2".into()], ..named };
        assert_eq!(
            (suspect(&several).node, suspect(&several).confidence),
            (None, 0.85),
            "of several nodes it is none's"
        );
        let said = &suspect(&several).evidence[0].text;
        assert_eq!(said, "offline diagnosis, pairs: n1 fails");
    }

    #[test]
    fn who_leads_by_a_test_stands_first_and_the_others_by_their_confidence() {
        let three = vec![
            accused(AccusedKind::NodeOrWay, "n3", &["n4"], HALVING),
            accused(AccusedKind::Node, "n1", &[], SELF_TESTS),
            accused(AccusedKind::Node, "n2", &[], HALVING),
        ];
        let (verdict, next, _) = weighed(three, vec![before("n5", 0.6)], &[]);
        let order: Vec<Option<&str>> = verdict.suspects.iter().map(|suspect| suspect.node.as_deref()).collect();
        assert_eq!(order, [Some("n1"), Some("n2"), Some("n5"), Some("n3")]);
        assert_eq!(
            (verdict.category, next),
            (Category::HardwareCritical, None),
            "what to do is said of the first accused"
        );
    }

    #[test]
    fn a_way_is_never_the_node_at_its_end() {
        let way = vec![accused(AccusedKind::Way, "n1", &["n2"], PAIRS)];
        let (verdict, ..) = weighed(way, vec![before("n1", 0.6)], &[]);
        let kinds: Vec<Kind> = verdict.suspects.iter().map(|suspect| suspect.kind).collect();
        assert_eq!((kinds, verdict.suspects[1].confidence), (vec![Kind::Link, Kind::Node], 0.6));
    }
}
