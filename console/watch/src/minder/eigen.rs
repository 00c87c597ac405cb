//! The axes of a symmetric matrix, by Jacobi's rotations.

/// Sweeps over all pairs; convergence is quadratic, and eight are enough for any matrix met so far.
const SWEEPS: usize = 30;
/// Off-diagonal share at which the matrix counts as diagonal.
const SMALL: f64 = 1e-12;

/// Eigenvalues in falling order, each with its unit vector, of a symmetric matrix of `n` rows.
pub(super) fn symmetric(mut matrix: Vec<f64>, n: usize) -> Vec<(f64, Vec<f64>)> {
    let mut axes: Vec<f64> = (0..n * n).map(|at| f64::from(u8::from(at / n == at % n))).collect();
    let all: f64 = matrix.iter().map(|x| x * x).sum();
    for _ in 0..SWEEPS {
        let off: f64 = (0..n * n).filter(|at| at / n != at % n).map(|at| matrix[at] * matrix[at]).sum();
        if off <= SMALL * SMALL * all {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(&mut matrix, &mut axes, n, (p, q));
            }
        }
    }
    let axis = |column: usize| (matrix[column * n + column], (0..n).map(|row| axes[row * n + column]).collect());
    let mut found: Vec<(f64, Vec<f64>)> = (0..n).map(axis).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found
}

/// Turns the axes `p` and `q` so that their common entry is zero.
fn rotate(matrix: &mut [f64], axes: &mut [f64], n: usize, (p, q): (usize, usize)) {
    let off = matrix[p * n + q];
    if off == 0.0 {
        return;
    }
    let theta = (matrix[q * n + q] - matrix[p * n + p]) / (2.0 * off);
    let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let t = if theta == 0.0 { 1.0 } else { t };
    let c = 1.0 / t.hypot(1.0);
    let s = t * c;
    let turn = |values: &mut [f64], a: usize, b: usize| {
        let (x, y) = (values[a], values[b]);
        (values[a], values[b]) = (c * x - s * y, s * x + c * y);
    };
    for k in 0..n {
        turn(matrix, k * n + p, k * n + q);
    }
    for k in 0..n {
        turn(matrix, p * n + k, q * n + k);
    }
    for k in 0..n {
        turn(axes, k * n + p, k * n + q);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_analysis::Chance;

    /// A symmetric matrix of `n` rows whose entries are of that size.
    fn drawn(n: usize, size: f64, chance: &mut Chance) -> Vec<f64> {
        let mut matrix = vec![0.0; n * n];
        for a in 0..n {
            for b in 0..=a {
                let value = size * chance.normal();
                (matrix[a * n + b], matrix[b * n + a]) = (value, value);
            }
        }
        matrix
    }

    #[test]
    fn axes_and_values_give_the_matrix_back() {
        let mut chance = Chance::new(2);
        for (n, size) in (1..=9).flat_map(|n| [1e-4, 1.0, 1e4].map(|size| (n, size))) {
            let matrix = drawn(n, size, &mut chance);
            let found = symmetric(matrix.clone(), n);
            assert!(found.windows(2).all(|pair| pair[0].0 >= pair[1].0));
            for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))) {
                let again: f64 = found.iter().map(|(value, axis)| value * axis[a] * axis[b]).sum();
                assert!((again - matrix[a * n + b]).abs() < 1e-10 * size, "{n}: {a} {b}");
                let product: f64 = found[a].1.iter().zip(&found[b].1).map(|(x, y)| x * y).sum();
                assert!((product - f64::from(u8::from(a == b))).abs() < 1e-9, "{n}: {a} {b}");
            }
        }
    }

    #[test]
    fn axes_that_are_there_already_stay_and_equal_ones_are_told_apart() {
        assert_eq!(symmetric(vec![3.0], 1), [(3.0, vec![1.0])]);
        let diagonal = symmetric(vec![1.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 2.0], 3);
        assert_eq!(diagonal.iter().map(|(value, _)| *value).collect::<Vec<_>>(), [5.0, 2.0, 1.0]);
        assert_eq!(diagonal[0].1, [0.0, 1.0, 0.0]);
        // Two and a half either way: half and half of both.
        let pair = symmetric(vec![2.0, 0.5, 0.5, 2.0], 2);
        for ((value, axis), (expected, sign)) in pair.iter().zip([(2.5, 1.0), (1.5, -1.0)]) {
            assert!((value - expected).abs() < 1e-12 && (axis[0] * axis[1] - 0.5 * sign).abs() < 1e-12, "{pair:?}");
        }
    }
}
