//! Solves the small symmetric systems of Newton's method.

/// Solution of `a x = b` for a positive definite `a` (row-major, its lower triangle read) by Cholesky's
/// decomposition; none when `a` is not positive definite.
pub(super) fn solve(mut a: Vec<f64>, mut b: Vec<f64>) -> Option<Vec<f64>> {
    let n = b.len();
    for j in 0..n {
        let pivot = a[j * n + j] - (0..j).map(|k| a[j * n + k].powi(2)).sum::<f64>();
        if pivot.is_nan() || pivot <= 0.0 {
            return None;
        }
        let root = pivot.sqrt();
        a[j * n + j] = root;
        for i in j + 1..n {
            let dot: f64 = (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
            a[i * n + j] = (a[i * n + j] - dot) / root;
        }
    }
    for i in 0..n {
        let dot: f64 = (0..i).map(|k| a[i * n + k] * b[k]).sum();
        b[i] = (b[i] - dot) / a[i * n + i];
    }
    for i in (0..n).rev() {
        let dot: f64 = (i + 1..n).map(|k| a[k * n + i] * b[k]).sum();
        b[i] = (b[i] - dot) / a[i * n + i];
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::solve;

    #[test]
    fn a_system_is_solved_and_a_bad_one_refused() {
        let x = solve(vec![4.0, 2.0, 2.0, 3.0], vec![10.0, 8.0]).unwrap();
        assert!((x[0] - 1.75).abs() < 1e-12 && (x[1] - 1.5).abs() < 1e-12, "{x:?}");
        assert!(solve(vec![1.0, 2.0, 2.0, 1.0], vec![1.0, 1.0]).is_none());
    }
}
