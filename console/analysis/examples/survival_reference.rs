//! Scores and times of the incident models on plain survival files, beside those of pycox where given.
//!
//! `cargo run --release -p muster-analysis --example survival_reference -- FOLDER [SEEDS] [NAME..]`, where FOLDER
//! holds `NAME.csv` with `duration`, `event`, `fold` and, if pycox's runs are known, `pycox_results.csv`.

#![expect(clippy::disallowed_methods, reason = "reads files and measures time, which the library never does")]

use std::error::Error;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Instant;

use muster_analysis::risk::evaluate::{Bench, Plan, Summary, by_fold, cross_validate, summarise};
use muster_analysis::risk::import::{Columns, Limits, survival_file};
use muster_analysis::risk::{Kind, Settings};

/// Seconds since the first call: wall clock, since predictions use all cores. To be run on a quiet machine.
fn now() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_secs_f64()
}

/// Mean and standard deviation of pycox's `coxtime_32x32` in a column of its results.
fn pycox(text: &str, set: &str, column: &str) -> Option<(f64, f64)> {
    let mut lines = text.lines();
    let at = lines.next()?.split(',').position(|c| c == column)?;
    let of_set = |line: &&str| line.starts_with(&format!("{set},coxtime_32x32,"));
    let values: Vec<f64> = lines.filter(of_set).filter_map(|l| l.split(',').nth(at)?.parse().ok()).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let spread = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (n > 1.0).then(|| (mean, spread.sqrt()))
}

fn beside(name: &str, own: &Summary, reference: &str) {
    let of = |column: &str| pycox(reference, name, column);
    let (Some(c), Some(b), Some(f), Some(p)) = (of("ctd"), of("ibs"), of("fit_s"), of("pred_s")) else { return };
    println!(
        "{name:9} {:13} {:4} {:.4} +-{:.4} {:.4} +-{:.4} {:6} {:8.3} {:8.3}",
        "pycox", 15, c.0, c.1, b.0, b.1, "", f.0, p.0
    );
    println!(
        "{name:9} difference in pycox's standard deviations: C^td {:+.2}, IBS {:+.2}; fit {:.1} times faster, predict {:.1}",
        (own.ctd.unwrap_or(0.5) - c.0) / c.1,
        (own.ibs - b.0) / b.1,
        f.0 / own.fit_s,
        p.0 / own.predict_s
    );
}

fn report(folder: &Path, name: &str, seeds: u64, reference: &str) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(folder.join(format!("{name}.csv")))?;
    let columns =
        Columns { duration: "duration".into(), event: "event".into(), fold: Some("fold".into()), ..Columns::default() };
    let file = survival_file(&text, &columns, Limits::default())?;
    let splits = by_fold(&file.table, &file.fold);
    for kind in [Kind::Exponential, Kind::KaplanMeier, Kind::Weibull, Kind::Cox, Kind::CoxTime] {
        let mut clock = now;
        let mut bench = Bench { plan: &|split| Plan::hundred(&split.test), clock: &mut clock };
        let runs = cross_validate(kind, &splits, &Settings::default(), seeds, &mut bench)?;
        let Some(s) = summarise(&runs) else { continue };
        println!(
            "{name:9} {:13} {:4} {:.4} +-{:.4} {:.4} +-{:.4} {:.4} {:8.3} {:8.3}",
            s.name,
            s.runs,
            s.ctd.unwrap_or(0.5),
            s.ctd_sd.unwrap_or(0.0),
            s.ibs,
            s.ibs_sd,
            s.inbll,
            s.fit_s,
            s.predict_s
        );
        if kind == Kind::CoxTime {
            beside(name, &s, reference);
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().ok_or("which folder?")?;
    let seeds: u64 = args.next().map_or(Ok(3), |n| n.parse())?;
    let mut names: Vec<String> = args.collect();
    if names.is_empty() {
        names = ["support", "metabric", "gbsg", "flchain"].map(str::to_owned).to_vec();
    }
    let folder = Path::new(&folder);
    let reference = std::fs::read_to_string(folder.join("pycox_results.csv")).unwrap_or_default();
    println!("set       model         runs C^td           IBS            INBLL     fit s predict s");
    for name in names {
        report(folder, &name, seeds, &reference)?;
    }
    Ok(())
}
