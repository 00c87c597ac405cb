//! May a machine that was repaired be given back? Only when a full validation since then passes, and passes by what condemned it, too.
//!
//! Of a run that found it defective, its own records are exchanged for those of the validation, and that run is judged anew: the same
//! peers, the same terms, the same limits.

use anyhow::Result;
use muster_analysis::records::leaves;
use muster_analysis::{Params, State};
use muster_run::{LINK, Record, Run, RunState, is_work};
use muster_store::{Incident, Store};

use super::shell::argument;
use crate::judge::{ByNode, Judging, assess, each_report, report};
use crate::risk::incidents::OWN;

/// Why a machine is not given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// In words, with what to do about it.
    pub why: String,
    /// It fails; otherwise nobody knows.
    pub fails: bool,
}

impl Refusal {
    fn open(why: impl Into<String>) -> Self {
        Self { why: why.into(), fails: false }
    }

    fn fails(why: impl Into<String>) -> Self {
        Self { why: why.into(), fails: true }
    }
}

/// What speaks against giving `node` back, which is in repair since `since_ms`; and the incidents that end when nothing does, with
/// when they end.
///
/// # Errors
/// When the store cannot be read.
pub fn refusals(
    store: &dyn Store,
    params: &Params,
    node: &str,
    since_ms: u64,
) -> Result<(Vec<Refusal>, Vec<Incident>)> {
    let incidents = store.incidents()?;
    let of_repair = |one: &&Incident| one.node == node && one.end_ms.is_none_or(|end| end >= since_ms);
    let (own, others): (Vec<&Incident>, Vec<&Incident>) =
        incidents.iter().filter(of_repair).partition(|one| condemning(one).is_some());
    let mut refused: Vec<Refusal> = others
        .iter()
        .filter(|one| one.end_ms.is_none())
        .map(|one| {
            Refusal::open(format!(
                "{} opened an incident of it that is still open: {}; muster incidents close -w {}",
                one.who,
                one.reason,
                argument(node)
            ))
        })
        .collect();
    let mut condemned = Vec::new();
    for id in own.iter().filter_map(|one| condemning(one)) {
        match store.run(id)? {
            Some(run) => condemned.push(run),
            None => refused
                .push(Refusal::open(format!("run {id}, which found it defective, is not in the database any more"))),
        }
    }
    let runs = store.runs()?;
    let validates = |run: &&Run| {
        run.started_ms >= since_ms && run.state == RunState::Finished && run.nodes.iter().any(|name| name == node)
    };
    let Some(validation) = runs.iter().find(validates) else {
        let (how, word) = (condemned.first().map_or("build-out".to_owned(), again), argument(node));
        refused
            .push(Refusal::open(format!("it was not validated since it went into repair: muster run {how} -w {word}")));
        return Ok((refused, Vec::new()));
    };
    refused.extend(of_validation(store, params, validation, node)?);
    let records: Vec<Record> = store.records_of(&validation.id, node)?;
    for run in &condemned {
        refused.extend(by(store, params, run, (validation, &records), node)?);
    }
    let at_ms = validation.ended_ms.unwrap_or(validation.started_ms);
    let ended = own.into_iter().filter(|one| one.end_ms.is_none());
    let ended = ended.map(|one| Incident { end_ms: Some(at_ms.max(one.start_ms)), ..one.clone() }).collect();
    Ok((refused, ended))
}

/// The run that opened an incident.
fn condemning(incident: &Incident) -> Option<&str> {
    incident.source.strip_prefix(OWN)?.strip_prefix(' ')
}

fn again(run: &Run) -> String {
    format!("{} --profile {}", argument(&run.playbook), run.profile.name())
}

/// What the validation itself says against the machine.
fn of_validation(store: &dyn Store, params: &Params, run: &Run, node: &str) -> Result<Option<Refusal>> {
    let judging = Judging::of(store, run, params.clone())?;
    let said = ByNode::of(store, run, &judging, |name| name == node)?;
    let mut refused = Some(Refusal::open(format!("run {} says nothing of it", run.id)));
    each_report(&said, &mut |_, report| {
        let why = report.reasons.first().map_or("something about it is undecided", String::as_str);
        refused = match report.state {
            State::Pass if !report.undecided => None,
            State::Fail => Some(Refusal::fails(format!("run {} fails it: {why}", run.id))),
            _ => Some(Refusal::open(format!("run {} does not pass it: {why}", run.id))),
        };
        Ok(())
    })?;
    Ok(refused)
}

/// What the run that condemned the machine would say of it now.
fn by(
    store: &dyn Store,
    params: &Params,
    run: &Run,
    (validation, now): (&Run, &[Record]),
    node: &str,
) -> Result<Vec<Refusal>> {
    let how = format!("muster run {} -w {}", again(run), argument(node));
    if validation.profile != run.profile {
        let (is, was) = (validation.profile.name(), run.profile.name());
        return Ok(vec![Refusal::open(format!(
            "run {} used the profile {is}, run {}, which found it defective, {was}: {how}",
            validation.id, run.id
        ))]);
    }
    let missing: Vec<&str> =
        run.plan.iter().filter(|work| !validation.plan.contains(work)).map(String::as_str).collect();
    if !missing.is_empty() {
        let few = missing.iter().take(4).copied().collect::<Vec<_>>().join(", ");
        let more = if missing.len() > 4 { format!(" and {} more", missing.len() - 4) } else { String::new() };
        return Ok(vec![Refusal::open(format!(
            "run {} left out {few}{more} of run {}, which found it defective: {how}",
            validation.id, run.id
        ))]);
    }
    let judging = Judging::of(store, run, params.clone())?;
    let mut failed = Vec::new();
    each_report(&ByNode::of(store, run, &judging, |name| name == node)?, &mut |_, own| {
        failed.extend(own.verdicts.into_iter().filter(|verdict| verdict.state == State::Fail));
        Ok(())
    })?;
    let mut records = store.records(&run.id)?;
    records.retain(|record| record.node != node || !(is_work(&record.work) || record.work == LINK || leaves(record)));
    let moved = |record: &Record| Record { run: run.id.clone(), ..record.clone() };
    records.extend(now.iter().filter(|record| is_work(&record.work)).map(moved));
    let after = report(run, &assess(run, &records, &judging));
    let Some(own) = after.nodes.into_iter().find(|one| one.node == node) else {
        return Ok(vec![Refusal::open(format!("run {}, which found it defective, cannot be judged anew", run.id))]);
    };
    let state = |metric: &str| own.verdicts.iter().find(|one| one.of.metric == metric).map(|one| one.state);
    let open = failed.iter().filter(|verdict| !matches!(state(&verdict.of.metric), Some(State::Pass | State::Fail)));
    let mut refused: Vec<Refusal> = open
        .map(|verdict| {
            Refusal::open(format!("by run {}, which found it defective, {} is not decided", run.id, verdict.of.metric))
        })
        .collect();
    if own.state == State::Fail {
        let why = own.reasons.first().map_or("", String::as_str);
        refused
            .insert(0, Refusal::fails(format!("run {}, which found it defective, would still fail it: {why}", run.id)));
    }
    Ok(refused)
}
