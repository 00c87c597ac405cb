//! How the table of quantiles was found; see `examples/decide_quantiles.rs`.

use statrs::function::erf::erfc;

use super::reference::of_all;
use super::sorted::Sorted;
use super::student;
use crate::Chance;

/// Chances at which the law found has the quantiles that were simulated.
const AT: [f64; 2] = [1e-3, 1e-6];

/// Degrees of freedom and factor of the law that a healthy node's offset follows in a fleet of `nodes`, by simulating
/// `draws` sets of peers. The node itself is not drawn but integrated over, which reaches chances of one in a million.
#[must_use]
pub fn law(nodes: usize, draws: usize, chance: &mut Chance) -> (f64, f64) {
    if nodes <= 5 {
        // All others are kept: Student's own law.
        return ((nodes - 2) as f64, 1.0);
    }
    // Far from zero, where a spread relative to the centre is a spread.
    let far = 1e6;
    let peers: Vec<(f64, f64)> = (0..draws)
        .map(|_| {
            let values: Vec<f64> = (1..nodes).map(|_| far + chance.normal()).collect();
            let found = of_all(&Sorted::of(&values), 0.0);
            let spread = found.scale * found.centre * (1.0 + 1.0 / found.kept as f64).sqrt();
            (found.centre - far, spread)
        })
        .collect();
    let beyond = |spreads: f64| -> f64 {
        let each = |(centre, spread): &(f64, f64)| 0.5 * erfc((centre + spreads * spread) / std::f64::consts::SQRT_2);
        peers.iter().map(each).sum::<f64>() / draws as f64
    };
    let quantile = AT.map(|p| halve(1.0, 4000.0, |spreads| beyond(spreads) < p));
    let ratio = quantile[1] / quantile[0];
    let df = halve(1.2, 2000.0, |df| student::quantile(AT[1], df) / student::quantile(AT[0], df) < ratio);
    (df, quantile[0] / student::quantile(AT[0], df))
}

/// Where `holds` begins to, between `low` and `high`, on a logarithmic scale.
fn halve(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..40 {
        let middle = (low * high).sqrt();
        if holds(middle) { high = middle } else { low = middle }
    }
    (low * high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::law::LAW;
    use super::*;

    #[test]
    fn the_law_of_the_table_is_found_again() {
        assert_eq!(law(5, 1, &mut Chance::new(0)), (3.0, 1.0));
        for nodes in [16, 32] {
            let (df, factor) = law(nodes, 4000, &mut Chance::new(nodes as u64));
            let row = LAW.iter().find(|row| row.0 == nodes as f64).unwrap();
            // Few draws know the far tail less well than the near one.
            for (at, share) in AT.into_iter().zip([0.05, 0.25]) {
                let [own, stored] = [(df, factor), (row.1, row.2)].map(|(df, b)| b * student::quantile(at, df));
                assert!((own / stored - 1.0).abs() < share, "{nodes} {at}: {own} {stored}");
            }
        }
    }
}
