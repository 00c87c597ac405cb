//! Does the model rank the one that fails first as the riskier one? Time-dependent concordance (Antolini, Boracchi
//! and Biganzoli 2005).

use crate::risk::{Curves, Table};

/// Share of comparable pairs (i fails at `t_i` while j is watched longer, or is censored at the same time) with
/// `S(t_i | x_i) < S(t_i | x_j)`; equal predictions count half, so that a model of one rate scores 0.5. None
/// without a comparable pair. O(events x rows).
#[must_use]
pub fn concordance(table: &Table, curves: &Curves) -> Option<f64> {
    let order = table.by_duration();
    let (mut concordant, mut pairs) = (0.0_f64, 0_u64);
    let mut at = vec![0.0; table.len()];
    let mut first = 0;
    while first < order.len() {
        let time = table.duration()[order[first]];
        let tied = order[first..].iter().take_while(|&&i| table.duration()[i] == time).count();
        // Events come first within a tie, see `Table::by_duration`.
        let events = order[first..first + tied].iter().filter(|&&i| table.event()[i]).count();
        let later = first + events;
        if events > 0 && later < order.len() {
            order[first..].iter().for_each(|&i| at[i] = curves.at(i, time));
            for &i in &order[first..later] {
                let own = at[i];
                let (mut above, mut equal) = (0_u64, 0_u64);
                for &j in &order[later..] {
                    above += u64::from(own < at[j]);
                    equal += u64::from(own == at[j]);
                }
                concordant += above as f64 + 0.5 * equal as f64;
                pairs += (order.len() - later) as u64;
            }
        }
        first += tied;
    }
    (pairs > 0).then(|| concordant / pairs as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chance;

    /// The definition, pair by pair.
    fn by_definition(t: &Table, c: &Curves) -> Option<f64> {
        let (mut sum, mut n) = (0.0, 0.0);
        for i in 0..t.len() {
            for j in 0..t.len() {
                let (ti, tj) = (t.duration()[i], t.duration()[j]);
                if i != j && t.event()[i] && (ti < tj || (ti == tj && !t.event()[j])) {
                    let (a, b) = (c.at(i, ti), c.at(j, ti));
                    sum += if a < b {
                        1.0
                    } else if a == b {
                        0.5
                    } else {
                        0.0
                    };
                    n += 1.0;
                }
            }
        }
        (n > 0.0).then(|| sum / n)
    }

    #[test]
    fn the_walk_equals_the_definition() {
        for seed in 0..20 {
            let mut chance = Chance::new(seed);
            let n = 40;
            let time: Vec<f64> = (0..n).map(|_| 1.0 + chance.below(12) as f64).collect();
            let event: Vec<bool> = (0..n).map(|_| chance.unit() < 0.6).collect();
            let values: Vec<f64> = (0..n)
                .flat_map(|_| {
                    let rate = 0.01 * (1 + chance.below(5)) as f64;
                    (1..=12).map(move |t| (-rate * f64::from(t)).exp())
                })
                .collect();
            let table = Table::new(vec![], vec![], time, event).unwrap();
            let curves = Curves::new((1..=12).map(f64::from).collect(), values);
            assert_eq!(concordance(&table, &curves), by_definition(&table, &curves));
        }
    }

    #[test]
    fn order_decides_and_a_constant_model_scores_one_half() {
        let t = Table::new(vec![], vec![], vec![1.0, 2.0, 3.0], vec![true, true, false]).unwrap();
        let curves =
            |r: [f64; 3]| Curves::new(vec![1.0, 2.0], r.iter().flat_map(|r| [(-r).exp(), (-2.0 * r).exp()]).collect());
        assert_eq!(concordance(&t, &curves([3.0, 2.0, 1.0])), Some(1.0));
        assert_eq!(concordance(&t, &curves([1.0, 2.0, 3.0])), Some(0.0));
        assert_eq!(concordance(&t, &curves([1.0; 3])), Some(0.5));
        assert_eq!(concordance(&t.select(&[2]), &curves([1.0; 3])), None);
    }
}
