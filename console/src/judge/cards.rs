//! Keeps what is seen of GPU cards, by node.

use anyhow::{Context, Result};
use muster_analysis::records::cards::{Cards, Look, kept_with, looked_at};
use muster_run::Run;
use muster_store::{Store, Table};

/// Everything that is known, if `run` looks at cards at all.
///
/// # Errors
/// When the store cannot be read.
pub fn known(store: &dyn Store, run: &Run) -> Result<Cards> {
    let mut cards = Cards::default();
    if !looked_at(run) {
        return Ok(cards);
    }
    for node in store.list(Table::Cards)?.into_iter().map(|seen| seen.key) {
        cards.add(&node, kept(store, &node)?);
    }
    Ok(cards)
}

/// Keeps how the cards of a finished run lay.
///
/// # Errors
/// When the store cannot keep it.
pub fn keep_cards(store: &mut dyn Store, run: &Run) -> Result<()> {
    if !looked_at(run) {
        return Ok(());
    }
    let new = known(&*store, run)?.new_of(run, &store.records(&run.id)?);
    for (node, looks) in new {
        let all = kept_with(kept(&*store, &node)?, run, looks);
        store.put(Table::Cards, &node, &serde_json::to_vec(&all)?)?;
    }
    Ok(())
}

fn kept(store: &dyn Store, node: &str) -> Result<Vec<Look>> {
    let Some(bytes) = store.get(Table::Cards, node)? else { return Ok(Vec::new()) };
    serde_json::from_slice(&bytes).with_context(|| format!("GPU history of {node} is corrupt (run: muster db check)"))
}

#[cfg(test)]
mod tests {
    use muster_analysis::State;
    use muster_analysis::findings::Finding;
    use muster_run::{RunState, noted};
    use muster_store::{Db, Options};
    use muster_wire::{Component, Datum, Fact, Profile, Reading};

    use super::*;

    /// The benchmark that looks.
    const WORK: &str = "sm-sdc";

    fn run(number: u64) -> Run {
        Run {
            id: format!("r{number}"),
            playbook: "p".into(),
            profile: Profile::Smoke,
            started_ms: number * 1000,
            ended_ms: None,
            nodes: vec!["n1".into(), "n2".into()],
            plan: vec![WORK.into()],
            state: RunState::Running,
        }
    }

    /// A run in which GPU 0 of `n1` is the card `uuid`, and one multiprocessor takes `cycles`.
    fn ran(store: &mut Db, number: u64, uuid: &str, cycles: f64) -> Vec<Finding> {
        let run = run(number);
        let text =
            |key: &str, text: String| Fact { key: key.into(), reading: Reading::Value(Datum::Text(text)), unit: None };
        let facts =
            vec![text("gpu.0.uuid", uuid.into()), text("gpu.0.distance", format!("0:220 1:300 2:{cycles} 3:250"))];
        store.begin(&run).unwrap();
        store.append(&noted(&run.id, "n1", WORK, facts, number * 1000 + 500)).unwrap();
        let said = known(store, &run).unwrap().findings(&run, &store.records(&run.id).unwrap());
        keep_cards(store, &run).unwrap();
        said
    }

    #[test]
    fn a_card_is_held_against_its_own_past_and_another_card_is_a_notice() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        let quiet = |said: Vec<Finding>| said.is_empty();
        assert!(quiet(ran(&mut store, 1, "GPU-a", 260.0)), "nothing is known yet");
        assert!(quiet(ran(&mut store, 2, "GPU-a", 260.5)));
        // What moved stays moved: it is not what is usual next time.
        for number in [3, 4] {
            let said = ran(&mut store, number, "GPU-a", 290.0);
            let why = &said[0].sentence;
            assert_eq!((said[0].state, &said[0].component), (State::Warn, &Component::Gpu(0)));
            let told = "1 of 4 multiprocessors is not as far from L2 as in 2 earlier runs of this card: 2 by ";
            assert!(why.starts_with("n1: sm-sdc: GPU 0: ") && why.contains(told) && why.ends_with("(GPU-a)"), "{why}");
        }
        let said = ran(&mut store, 5, "GPU-b", 330.0);
        let why = "n1: GPU 0 is GPU-b now and was GPU-a in run r2: 1 of 4 SMs moved in the L2 latency map";
        assert_eq!((said.len(), said[0].state, said[0].sentence.as_str()), (1, State::Pass, why));
        assert!(quiet(ran(&mut store, 6, "GPU-b", 330.0)), "told once");
        assert!(ran(&mut store, 7, "GPU-c", 330.0)[0].sentence.ends_with("under another name"));
        // What an earlier run said does not change because of later ones.
        let early = run(2);
        let again = known(&store, &early).unwrap().findings(&early, &store.records("r2").unwrap());
        assert!(quiet(again));
    }

    #[test]
    fn cards_that_share_an_identity_and_hostile_identities_are_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        assert!(ran(&mut store, 1, "GPU-\u{1b}[2J", 260.0).is_empty());
        assert!(store.list(Table::Cards).unwrap().is_empty());
    }
}
