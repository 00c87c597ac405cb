//! From what is known to what the Selector advises: the model in force, the outlook, and the answer as documents have it
//! and as the screen shows it.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use muster_analysis::risk::{
    Category, Choice, CoxTimeSettings, FitError, History, KaplanMeier, Kind, Samples, Sampling, Saved, Settings,
    Survival, feature_names, trained,
};
use muster_analysis::selector::{
    Answer, Coverage, CoverageSettings, Defect, Exploration, NodeOutlook, Outlook, Question, Selection, defects,
};
use muster_playbook::Playbook;
use muster_store::Store;
use muster_tui::snapshot::{self, Ask, CoverageTable, RiskRow, SurvivalStep};
use serde::Serialize;

use super::incidents::OWN;
use super::knowledge::{Log, Measured};

/// Kinds that are fitted in a second or two, while somebody waits for an answer.
const QUICK: [Kind; 6] = [
    Kind::Exponential,
    Kind::ExponentialPerCount,
    Kind::ExponentialPerHour,
    Kind::KaplanMeier,
    Kind::Weibull,
    Kind::Cox,
];
/// Durations are told apart up to this many hours.
pub const CAP_H: f64 = 2400.0;
/// Steps of the fleet's curve that are shown.
const STEPS: usize = 200;

/// Which model gave the risks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelNote {
    /// Its name; none when nothing is known.
    pub name: Option<&'static str>,
    /// Why this one.
    pub reason: String,
    /// Incidents in the log.
    pub incidents: usize,
    /// Length of the log, in hours.
    pub log_hours: f64,
}

/// All that answers rest on, for some nodes.
#[derive(Clone, Debug)]
pub struct Basis {
    /// Nodes and benchmarks.
    pub outlook: Outlook,
    /// The model in force.
    pub model: ModelNote,
    /// Nodes that failed a validation and have not passed one since.
    pub failed: BTreeSet<String>,
    /// Nodes without a single result in the database, or that the file of incidents does not name: what the model says of them
    /// is what it says of others.
    pub unmeasured: Vec<String>,
    fleet: KaplanMeier,
    defects: Vec<Defect>,
    features: Vec<String>,
}

/// How the models of incident logs are fitted: rows of one node are near copies, so batches are larger and patience is
/// shorter than on small survival data.
#[must_use]
pub fn incident_settings() -> Settings {
    let cox_time = CoxTimeSettings { batch: 1024, patience: 6, epochs: 100, ..CoxTimeSettings::default() };
    Settings { ridge: 1e-3, cox_time }
}

/// The saved model of the database, with its version.
///
/// # Errors
/// When it cannot be read.
pub fn saved(store: &dyn Store) -> Result<Option<(Saved, u64)>> {
    let Some(seen) = store.models()?.pop() else { return Ok(None) };
    let bytes = store.model(Some(seen.version))?.context("the model is gone")?;
    let text = String::from_utf8(bytes).context("the model is no text")?;
    let saved = Saved::from_json(&text).with_context(|| format!("model {}", seen.version))?;
    Ok(Some((saved, seen.version)))
}

/// A model fitted while somebody waits: the best of the quick ones, or a constant rate where there are too few
/// incidents to compare.
fn fitted(log: &Log, samples: &Samples) -> Result<Saved, FitError> {
    let fit = |kinds: &[Kind]| trained(kinds, samples, log.window, CAP_H, &incident_settings());
    fit(&QUICK).or_else(|_| fit(&[Kind::Exponential]))
}

fn in_force(log: &Log, history: &History, saved: Option<(Saved, String)>) -> Result<(Option<Saved>, String)> {
    if let Some((saved, origin)) = saved {
        if ![true, false].iter().any(|checks| saved.features == feature_names(*checks)) {
            bail!("{origin} was trained on other features; train a new one: muster model train");
        }
        let why = saved.choice.as_ref().map_or("named by a person", |c: &Choice| c.reason.as_str());
        let reason = format!("{origin}: {why}");
        return Ok((Some(saved), reason));
    }
    // Thousands of rows need not be made to see that there is nothing to learn from.
    let none = log.incidents.is_empty();
    Ok(match if none { Err(FitError::NoEvents) } else { fitted(log, &log.samples(history)?) } {
        Ok(saved) => {
            let why = saved.choice.as_ref().map_or("too few incidents to compare models", |c| c.reason.as_str());
            let reason = format!("no model is saved, fitted now without the network: {why}");
            (Some(saved), reason)
        }
        Err(why) => (None, format!("nothing is known of the risk: {why}")),
    })
}

impl Basis {
    /// What is known of `nodes` at the end of `log`, for the benchmarks of `playbook`; `saved` is a model and where it
    /// came from. Curves are kept at `times` (hours, rising).
    ///
    /// # Errors
    /// When the saved model does not fit.
    pub fn new(
        log: &Log,
        measured: &Measured,
        saved: Option<(Saved, String)>,
        (nodes, playbook): (&[String], &Playbook),
        times: Vec<f64>,
    ) -> Result<Self> {
        let history = log.history(nodes);
        let (model, reason) = in_force(log, &history, saved)?;
        let now = log.window.end_h;
        let benchmarks = measured.benchmarks(playbook, now);
        let names: Vec<String> = benchmarks.iter().map(|b| b.id.clone()).collect();
        let defects = defects(&log.incidents, &measured.validations, &names, now);
        let coverage = Coverage::new(&defects, &CoverageSettings::default());
        let asked = model.as_ref().map(|m| &m.model as &dyn Survival);
        let features = model.as_ref().map_or_else(Vec::new, |m| m.features.clone());
        let sampling = Sampling { checks: features == feature_names(true), ..Sampling::default() };
        let outlook = Outlook::new(&history, nodes, (asked, &sampling), times).with_benchmarks(benchmarks, coverage);
        let name = model.as_ref().map(|m| m.model.kind().name());
        let log_hours = now - log.window.start_h;
        let own = log.incidents.iter().filter(|i| i.end_h.is_none() && i.source.starts_with(OWN));
        let failed = own.map(|i| i.node.clone()).collect();
        let model = ModelNote { name, reason, incidents: log.incidents.len(), log_hours };
        let unmeasured = nodes.iter().filter(|name| !measured.nodes.contains(*name)).cloned().collect();
        Ok(Self { outlook, model, failed, unmeasured, fleet: history.gaps(), defects, features })
    }

    /// The answer to one question.
    #[must_use]
    pub fn answer(&self, ask: &Ask) -> Answer {
        self.outlook.answer(&Question {
            job_h: ask.job_hours,
            p0: ask.p0,
            budget_minutes: ask.budget_minutes,
            exploration: Some(Exploration::default()),
        })
    }

    fn reasons(&self, node: &NodeOutlook, most: usize) -> Vec<(String, f64)> {
        let named = |(at, effect): &(usize, f64)| Some((self.features.get(*at)?.clone(), *effect));
        node.reasons.iter().take(most).filter_map(named).collect()
    }

    /// Names of the nodes that `answer` asks to validate, the riskiest first.
    #[must_use]
    pub fn validate(&self, answer: &Answer) -> Vec<String> {
        answer.validate.iter().map(|&i| self.outlook.nodes()[i].node.clone()).collect()
    }
}

/// The `muster.select` document.
#[derive(Debug, Serialize)]
pub struct Advice {
    schema: &'static str,
    version: u32,
    /// Length of the job asked about.
    pub job_hours: f64,
    /// Joint risk that may remain.
    pub p0: f64,
    /// Joint risk of the nodes that are up.
    pub joint_risk: f64,
    /// Which model gave it.
    pub model: ModelNote,
    /// What to run.
    pub selection: Selection,
    /// Nodes to run it on, the riskiest first.
    pub validate: Vec<String>,
    /// Every node, the riskiest first.
    pub nodes: Vec<NodeAdvice>,
}

/// One node of the document.
#[derive(Debug, Serialize)]
pub struct NodeAdvice {
    /// Name.
    pub node: String,
    /// Probability of an incident during the job.
    pub risk: f64,
    /// Whether the picks should run on it.
    pub validate: bool,
    /// Whether an incident is open.
    pub down: bool,
    /// Incidents in the log.
    pub incidents: usize,
    /// Hours since the last one ended.
    pub quiet_hours: Option<f64>,
    /// Strongest features, with the change of risk over a week.
    pub reasons: Vec<Reason>,
}

/// One feature's part in a risk.
#[derive(Debug, Serialize)]
pub struct Reason {
    feature: String,
    effect: f64,
}

/// Places of the nodes, the riskiest first.
fn by_risk(answer: &Answer) -> Vec<usize> {
    let mut order: Vec<usize> = (0..answer.risks.len()).collect();
    order.sort_by(|&a, &b| answer.risks[b].total_cmp(&answer.risks[a]).then(a.cmp(&b)));
    order
}

impl Advice {
    /// The document of one question.
    #[must_use]
    pub fn new(basis: &Basis, ask: &Ask) -> Self {
        let answer = basis.answer(ask);
        let node = |i: usize| {
            let known = &basis.outlook.nodes()[i];
            let reason = |(feature, effect)| Reason { feature, effect };
            NodeAdvice {
                node: known.node.clone(),
                risk: answer.risks[i],
                validate: answer.validate.contains(&i),
                down: known.down,
                incidents: known.incidents,
                quiet_hours: known.quiet_h,
                reasons: basis.reasons(known, 3).into_iter().map(reason).collect(),
            }
        };
        Self {
            schema: "muster.select",
            version: 1,
            job_hours: ask.job_hours,
            p0: answer.p0,
            joint_risk: answer.joint,
            model: basis.model.clone(),
            nodes: by_risk(&answer).into_iter().map(node).collect(),
            validate: basis.validate(&answer),
            selection: answer.selection,
        }
    }
}

/// What the Selector screen shows for one question.
#[must_use]
pub fn picture(basis: &Basis, ask: &Ask) -> snapshot::Selector {
    let answer = basis.answer(ask);
    let mut asked = vec![false; answer.risks.len()];
    answer.validate.iter().for_each(|&i| asked[i] = true);
    let curves = basis.outlook.curves();
    let row = |i: usize| {
        let known = &basis.outlook.nodes()[i];
        let curve = curves.map_or_else(Vec::new, |c| c.times().iter().copied().zip(c.row(i).iter().copied()).collect());
        RiskRow {
            name: known.node.clone(),
            risk: answer.risks[i],
            validate: asked[i],
            down: known.down,
            incidents: known.incidents,
            quiet_hours: known.quiet_h,
            curve: curve.into(),
            reasons: basis.reasons(known, 5).into(),
        }
    };
    let step = |(hours, survival, at_risk)| SurvivalStep { hours, survival, at_risk };
    let every = basis.fleet.steps().count().div_ceil(STEPS).max(1);
    let note = &basis.model;
    snapshot::Selector {
        ask: ask.clone(),
        model: snapshot::Model {
            name: note.name.unwrap_or("none").to_owned(),
            reason: note.reason.clone(),
            incidents: note.incidents,
            log_hours: note.log_hours,
        },
        nodes: by_risk(&answer).into_iter().map(row).collect(),
        joint: answer.joint,
        p0: answer.p0,
        fleet: basis.fleet.steps().step_by(every).map(step).collect(),
        coverage: Arc::new(coverage(basis)),
        selection: Arc::new(answer.selection),
    }
}

fn coverage(basis: &Basis) -> CoverageTable {
    let count = |c: &Category| basis.defects.iter().filter(|d| d.category == *c).count();
    let categories: Vec<Category> = Category::ALL.into_iter().filter(|c| count(c) > 0).collect();
    let benchmarks = basis.outlook.benchmarks();
    let cells = (0..benchmarks.len()).flat_map(|b| categories.iter().map(move |c| (b, *c)));
    CoverageTable {
        found: cells.map(|(b, c)| basis.outlook.coverage().cell(c, b)).collect(),
        defects: categories.iter().map(count).collect(),
        benchmarks: benchmarks.iter().map(|b| b.id.clone()).collect(),
        categories: categories.into(),
    }
}
