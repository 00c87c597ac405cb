//! Why is this node risky? What each feature does to the probability of an incident, in any model.

use serde::{Deserialize, Serialize};

use super::{Survival, Table};

/// Effect of one feature on the probability of an incident by a horizon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Feature.
    pub name: String,
    /// Its 10 % and 90 % quantile, as the table holds it.
    pub range: (f64, f64),
    /// Mean probability with the feature at its low and at its high value, the other features as they are: the
    /// partial dependence of Friedman (2001).
    pub risk: (f64, f64),
}

/// Effects of all features, the strongest first, over at most 200 rows of `table` spread evenly.
#[must_use]
pub fn effects(model: &dyn Survival, table: &Table, horizon: f64) -> Vec<Effect> {
    let step = table.len().div_ceil(200).max(1);
    let rows: Vec<&[f64]> = (0..table.len()).step_by(step).map(|i| table.row(i)).collect();
    let mut found: Vec<Effect> = (0..table.width()).map(|j| effect(model, table, &rows, j, horizon)).collect();
    found.sort_by(|a, b| strength(b).total_cmp(&strength(a)));
    found
}

fn strength(effect: &Effect) -> f64 {
    (effect.risk.1 - effect.risk.0).abs()
}

fn effect(model: &dyn Survival, table: &Table, rows: &[&[f64]], j: usize, horizon: f64) -> Effect {
    let mut column: Vec<f64> = (0..table.len()).map(|i| table.row(i)[j]).collect();
    column.sort_by(f64::total_cmp);
    let quantile = |q: f64| column.get(((column.len().max(1) - 1) as f64 * q).round() as usize).copied().unwrap_or(0.0);
    let range = (quantile(0.1), quantile(0.9));
    let mean_risk = |value: f64| {
        let moved: Vec<f64> = rows
            .iter()
            .flat_map(|row| row.iter().enumerate().map(move |(k, v)| if k == j { value } else { *v }))
            .collect();
        let curves = model.survive(&moved, &[horizon]);
        (0..rows.len()).map(|i| 1.0 - curves.row(i)[0]).sum::<f64>() / rows.len().max(1) as f64
    };
    let risk = (mean_risk(range.0), mean_risk(range.1));
    Effect { name: table.names()[j].clone(), range, risk }
}

/// The median of each feature over `rows`, `width` values each.
#[must_use]
pub fn usual(rows: &[f64], width: usize) -> Vec<f64> {
    let median = |j: usize| {
        let mut column: Vec<f64> = rows.iter().skip(j).step_by(width.max(1)).copied().collect();
        column.sort_by(f64::total_cmp);
        column.get(column.len() / 2).copied().unwrap_or(0.0)
    };
    (0..width).map(median).collect()
}

/// What sets `row` apart: for each feature, by its place, the change of the row's probability of an incident by
/// `horizon` when the feature takes its value in `usual` instead; positive raises the row's risk. The strongest first,
/// those without effect left out.
#[must_use]
pub fn reasons(model: &dyn Survival, row: &[f64], usual: &[f64], horizon: f64) -> Vec<(usize, f64)> {
    let moved = (0..row.len()).flat_map(|j| (0..row.len()).map(move |k| if j == k { usual[k] } else { row[k] }));
    let asked: Vec<f64> = row.iter().copied().chain(moved).collect();
    let curves = model.survive(&asked, &[horizon]);
    let own = curves.row(0)[0];
    let mut found: Vec<(usize, f64)> = (0..row.len()).map(|j| (j, curves.row(j + 1)[0] - own)).collect();
    found.retain(|(_, effect)| effect.abs() > 1e-6);
    found.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chance;
    use crate::risk::{Cox, Ties};

    #[test]
    fn the_feature_that_matters_stands_first() {
        let mut c = Chance::new(1);
        let (mut x, mut time) = (vec![], vec![]);
        for _ in 0..500 {
            let strong = c.normal();
            x.extend([c.normal(), strong]);
            time.push(100.0 * c.exponential() * (-strong).exp());
        }
        let table = Table::new(vec!["noise".into(), "strong".into()], x, time, vec![true; 500]).unwrap();
        let model = Cox::fit(&table, 1e-4, Ties::Efron).unwrap();
        let found = effects(&model, &table, 50.0);
        assert_eq!(found[0].name, "strong");
        assert!(found[0].risk.1 > found[0].risk.0 + 0.3, "{found:?}");
        let why = reasons(&model, &[0.0, 2.0], &usual(table.values(), 2), 50.0);
        assert!(why[0].0 == 1 && why[0].1 > 0.2, "{why:?}");
    }
}
