//! Which model may be used? The one with the best Brier score on the latest part of the log; the network only
//! where it beats the simpler ones.

use serde::{Deserialize, Serialize};

use super::evaluate::{Plan, Split, by_time, integrated, node_folds};
use super::{FitError, Fitted, Kind, SCHEMA, Samples, Saved, Settings, Survival, VERSION, Window, effects, fit};

/// How one model did on held-out time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Model.
    pub kind: Kind,
    /// Integrated Brier score on the held-out part; none when it could not be fitted.
    pub ibs: Option<f64>,
    /// Why it could not.
    pub why: Option<String>,
}

/// The chosen model and how the choice came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Chosen kind.
    pub kind: Kind,
    /// All candidates, the simplest first.
    pub candidates: Vec<Candidate>,
    /// Rows before the cut and after it.
    pub rows: (usize, usize),
    /// One sentence for a person.
    pub reason: String,
}

/// Fits each of `kinds` (the simplest first) on the rows observed before `cut_h` and compares integrated Brier scores, at the times of
/// `plan`, on those after it. Equal scores go to the simpler model. Without a single incident on either side there
/// is no comparison, and the constant rate is chosen.
///
/// # Errors
/// When not even a constant rate can be fitted.
pub fn choose(
    kinds: &[Kind],
    samples: &Samples,
    cut_h: f64,
    plan: &Plan,
    settings: &Settings,
) -> Result<Choice, FitError> {
    let split = by_time(&samples.table, &samples.node, &samples.at_h, cut_h, settings.cox_time.seed);
    let candidates: Vec<Candidate> = kinds.iter().map(|&kind| judge(kind, &split, plan, settings)).collect();
    let rows = (split.train.len() + split.held_out.len(), split.test.len());
    if split.test.events() == 0 {
        fit(Kind::Exponential, &split.train, &split.held_out, settings)?;
        let reason = "exponential: no incident after the cut to compare models by".to_owned();
        return Ok(Choice { kind: Kind::Exponential, candidates, rows, reason });
    }
    let scored = || candidates.iter().filter_map(|c| c.ibs.map(|ibs| (c.kind, ibs)));
    let best = scored().reduce(|best, next| if next.1 < best.1 - 1e-9 { next } else { best });
    let (kind, ibs) = best.ok_or(FitError::NoEvents)?;
    let reason = match scored().find(|(k, _)| *k == Kind::CoxTime && kind != Kind::CoxTime) {
        Some((_, network)) => {
            format!("{}: held-out Brier score {ibs:.4}, cox_time {network:.4}; the simpler model is used", kind.name())
        }
        None => format!("{}: best held-out Brier score, {ibs:.4}", kind.name()),
    };
    Ok(Choice { kind, candidates, rows, reason })
}

fn judge(kind: Kind, split: &Split, plan: &Plan, settings: &Settings) -> Candidate {
    match fit(kind, &split.train, &split.held_out, settings) {
        Err(why) => Candidate { kind, ibs: None, why: Some(why.to_string()) },
        Ok(model) => {
            let curves = model.survive(split.test.values(), &plan.grid);
            Candidate { kind, ibs: Some(integrated(&split.test, &curves, &plan.grid).brier), why: None }
        }
    }
}

/// Fits `kind` on all rows; a fifth of the nodes say when the network has learnt enough.
///
/// # Errors
/// As [`fit`].
pub fn refit(kind: Kind, samples: &Samples, settings: &Settings) -> Result<Fitted, FitError> {
    let fold = node_folds(&samples.node, 5, settings.cox_time.seed);
    let rows = |stop: bool| -> Vec<usize> { (0..fold.len()).filter(|&i| (fold[i] == 0) == stop).collect() };
    fit(kind, &samples.table.select(&rows(false)), &samples.table.select(&rows(true)), settings)
}

/// A model of `samples` ready to be kept: `kind`, or the one that [`choose`] finds among `kinds` by the last 30 %
/// of `window`. Durations are told apart up to `cap_h`.
///
/// # Errors
/// As [`choose`] and [`refit`].
pub fn trained(
    kinds: &[Kind],
    samples: &Samples,
    window: Window,
    cap_h: f64,
    settings: &Settings,
) -> Result<Saved, FitError> {
    let (kind, choice) = match kinds {
        [only] => (*only, None),
        _ => {
            let cut = window.start_h + 0.7 * (window.end_h - window.start_h);
            let choice = choose(kinds, samples, cut, &Plan::hours(cap_h), settings)?;
            (choice.kind, Some(choice))
        }
    };
    let model = refit(kind, samples, settings)?;
    Ok(Saved {
        schema: SCHEMA.to_owned(),
        version: VERSION,
        features: samples.table.names().to_vec(),
        cap_h,
        hours: window.end_h - window.start_h,
        trained_on: (samples.table.len(), samples.table.events()),
        choice,
        effects: effects(&model, &samples.table, cap_h.min(720.0)),
        model,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chance;
    use crate::risk::Table;

    /// Rows whose hazard does, or does not, follow the first feature.
    fn rows(strength: f64) -> Samples {
        let mut c = Chance::new(2);
        let (mut x, mut time, mut event, mut node, mut at) = (vec![], vec![], vec![], vec![], vec![]);
        for i in 0..1500 {
            let up: f64 = c.normal();
            let t = 300.0 * c.exponential() * (-strength * up).exp();
            x.extend([up, c.normal()]);
            time.push(t.min(500.0));
            event.push(t < 500.0);
            node.push(i % 100);
            at.push((i / 100) as f64 * 100.0);
        }
        let names = vec!["up_h".to_owned(), "n_all".to_owned()];
        Samples { table: Table::new(names, x, time, event).unwrap(), node, at_h: at }
    }

    #[test]
    fn features_are_used_only_where_they_help() {
        let plan = Plan { grid: (1..20).map(|k| 24.0 * f64::from(k)).collect(), horizons: vec![], cap: None };
        let mut settings = Settings::default();
        settings.cox_time.epochs = 20;
        let with = choose(&Kind::ALL, &rows(1.0), 1000.0, &plan, &settings).unwrap();
        assert!(matches!(with.kind, Kind::Cox | Kind::CoxTime), "{with:?}");
        let without = choose(&Kind::ALL, &rows(0.0), 1000.0, &plan, &settings).unwrap();
        assert!(!matches!(without.kind, Kind::CoxTime), "{without:?}");
        assert!(without.reason.contains("the simpler model is used"), "{}", without.reason);
        let best = without.candidates.iter().filter_map(|c| c.ibs).fold(f64::INFINITY, f64::min);
        let chosen = without.candidates.iter().find(|c| c.kind == without.kind).unwrap();
        assert!(chosen.ibs.unwrap() <= best + 1e-9);
    }

    #[test]
    fn without_incidents_after_the_cut_a_constant_rate_is_all_there_is() {
        let plan = Plan::hours(480.0);
        let c = choose(&Kind::ALL, &rows(0.0), 99_999.0, &plan, &Settings::default());
        assert_eq!(c.unwrap().kind, Kind::Exponential);
    }
}
