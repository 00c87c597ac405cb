//! How work becomes a series: batches long enough to be timed, warm-up until steady, then every value.

use muster_wire::Profile;

use crate::driver::Trouble;

/// Most pieces of work in one timed batch.
const BATCH: u32 = 4096;
/// Warm-up ends when the last values vary by less than this.
const STEADY: f64 = 0.005;
/// As many values are looked at for it.
const WINDOW: usize = 8;

/// Which of `[smoke, quick, standard, full]` a profile takes.
pub(crate) fn pick<T: Copy>(profile: Profile, of: [T; 4]) -> T {
    of[profile as usize]
}

/// Values of a series. The probe takes two passes in smoke, so these are half.
pub(crate) fn values(profile: Profile) -> usize {
    pick(profile, [16, 32, 64, 256])
}

/// Milliseconds of one piece of work, as often as a series has values, and how many batches warmed up. `batch` does so
/// many pieces and says how long all of them took; `done` hears before each batch which part of the values is there:
/// whoever waits for a worker takes silence for a hang.
///
/// # Errors
/// Those of `batch`.
pub(crate) fn times(
    profile: Profile,
    done: &mut dyn FnMut(f64),
    batch: &mut dyn FnMut(u32) -> Result<f64, Trouble>,
) -> Result<(Vec<f64>, usize), Trouble> {
    let mut batch = |count: u32| batch(count).map(|ms| ms / f64::from(count));
    let target = pick(profile, [2.0, 5.0, 20.0, 20.0]);
    let mut count = 1;
    loop {
        done(0.0);
        let ms = batch(count)?;
        if ms * f64::from(count) >= target || count >= BATCH {
            break;
        }
        count = ((target / ms.max(1e-6)).ceil() as u32).clamp(count + 1, count * 16).min(BATCH);
    }
    let (mut warm, most) = (Vec::new(), pick(profile, [2, 48, 128, 256]));
    while warm.len() < most && !steady(&warm) {
        done(0.0);
        warm.push(batch(count)?);
    }
    let (mut taken, values) = (Vec::new(), values(profile));
    while taken.len() < values {
        done(taken.len() as f64 / values as f64);
        taken.push(batch(count)?);
    }
    Ok((taken, warm.len()))
}

/// Whether the last values of a warm-up agree.
fn steady(values: &[f64]) -> bool {
    let Some(last) = values.len().checked_sub(WINDOW).map(|from| &values[from..]) else { return false };
    let mean = last.iter().sum::<f64>() / WINDOW as f64;
    let variance = last.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / WINDOW as f64;
    variance.sqrt() <= STEADY * mean
}
