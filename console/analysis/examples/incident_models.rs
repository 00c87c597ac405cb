//! Every incident model on node status samples, by node and by time, and on an incident log, with the choice the
//! program makes.
//!
//! `cargo run --release -p muster-analysis --example incident_models -- SAMPLES.csv[.gz] INCIDENTS.csv NODES HOURS`,
//! where the samples have `node`, `t_h`, `tbni_h`, `event`, `fold_node`, `fold_random`.

#![expect(clippy::disallowed_methods, reason = "reads files and measures time, which the library never does")]

use std::error::Error;
use std::io::Read;
use std::sync::LazyLock;
use std::time::Instant;

use muster_analysis::risk::evaluate::{
    Bench, Plan, Split, Summary, by_fold, by_node, by_time, cross_validate, summarise,
};
use muster_analysis::risk::import::{Columns, Limits, csv_incidents, survival_file};
use muster_analysis::risk::{
    CoxTimeSettings, History, Kind, Samples, Sampling, Settings, Window, choose, effects, refit, samples,
};

/// Seconds since the first call: wall clock, since predictions use all cores. To be run on a quiet machine.
fn now() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_secs_f64()
}

fn unpacked(path: &str) -> Result<String, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let mut text = String::new();
    if path.ends_with(".gz") {
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text)?;
    } else {
        text = String::from_utf8(bytes)?;
    }
    Ok(text)
}

/// Larger batches and less patience than on small survival data: rows of one node are near copies.
fn settings() -> Settings {
    let cox_time = CoxTimeSettings { batch: 1024, patience: 6, epochs: 100, ..CoxTimeSettings::default() };
    Settings { ridge: 1e-3, cox_time }
}

fn line(s: &Summary) -> String {
    let list = |v: &[f64]| v.iter().map(|x| format!("{x:.4}")).collect::<Vec<_>>().join(" ");
    let lift: Vec<f64> = s.lift.iter().map(|l| l.unwrap_or(f64::NAN)).collect();
    format!(
        "{:22} {:.3} {:.4} {:.4} | {} | {} | {} | {:.4} {:.4} | {:6.2} {:6.2}",
        s.name,
        s.ctd.unwrap_or(f64::NAN),
        s.ibs,
        s.inbll,
        list(&s.brier),
        list(&s.calibration),
        lift.iter().map(|x| format!("{x:.2}")).collect::<Vec<_>>().join(" "),
        s.accuracy_median.unwrap_or(f64::NAN),
        s.accuracy_mean.unwrap_or(f64::NAN),
        s.fit_s,
        s.predict_s
    )
}

fn report(title: &str, splits: &[Split]) -> Result<(), Box<dyn Error>> {
    println!("{title}, {} splits", splits.len());
    println!(
        "  model                   Ctd   IBS   INBLL | Brier 24 168 720 h | calibration error | lift | accuracy median mean | fit predict s"
    );
    for kind in Kind::ALL {
        let mut clock = now;
        let mut bench = Bench { plan: &|_| Plan::hours(2400.0), clock: &mut clock };
        match cross_validate(kind, splits, &settings(), 1, &mut bench) {
            Ok(runs) => println!("  {}", summarise(&runs).as_ref().map_or_else(String::new, line)),
            Err(why) => println!("  {}: {why}", kind.name()),
        }
    }
    Ok(())
}

fn chosen(samples: &Samples, cut: f64) -> Result<(), Box<dyn Error>> {
    let choice = choose(&Kind::ALL, samples, cut, &Plan::hours(2400.0), &settings())?;
    println!("  choice: {}", choice.reason);
    let model = refit(choice.kind, samples, &settings())?;
    for e in effects(&model, &samples.table, 720.0).iter().take(3) {
        println!("    {}: risk over 720 h {:.3} at its low, {:.3} at its high end", e.name, e.risk.0, e.risk.1);
    }
    Ok(())
}

fn given_samples(path: &str) -> Result<(), Box<dyn Error>> {
    let text = |s: &str| s.to_owned();
    let columns = Columns {
        duration: text("tbni_h"),
        event: text("event"),
        fold: Some(text("fold_node")),
        ignore: ["node", "t_h", "fold_random"].map(text).to_vec(),
        log1p: true,
    };
    let file = survival_file(&unpacked(path)?, &columns, Limits::default())?;
    let column = |k: usize| file.ignored.iter().map(move |row| row[k]);
    let samples =
        Samples { table: file.table.clone(), node: column(0).map(|n| n as usize).collect(), at_h: column(1).collect() };
    report("given samples by node", &by_fold(&file.table, &file.fold))?;
    let random: Vec<usize> = column(2).map(|f| f as usize).collect();
    report("given samples by row (flatters)", &by_fold(&file.table, &random)[..3])?;
    let end = samples.at_h.iter().copied().fold(0.0, f64::max);
    let cut = 0.7 * end;
    report("given samples by time", &[by_time(&samples.table, &samples.node, &samples.at_h, cut, 0)])?;
    chosen(&samples, cut)
}

fn from_log(path: &str, nodes: usize, hours: f64) -> Result<(), Box<dyn Error>> {
    let log = csv_incidents(&unpacked(path)?, Limits::default())?;
    println!("{} incidents, {} lines refused", log.incidents.len(), log.refused);
    let window = Window { start_h: 0.0, end_h: hours };
    let history = History::new(&log.incidents, &[], window).with_silent(nodes);
    let found = samples(&history, &Sampling { every_h: 48.0, ..Sampling::default() })?;
    println!("{} rows, {} events", found.table.len(), found.table.events());
    report("own samples by node", &by_node(&found.table, &found.node, 5, 0))?;
    let cut = 0.6 * hours;
    report("own samples by time", &[by_time(&found.table, &found.node, &found.at_h, cut, 0)])?;
    chosen(&found, cut)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [samples, incidents, nodes, hours] = args.as_slice() else {
        return Err("give SAMPLES.csv[.gz] INCIDENTS.csv NODES HOURS".into());
    };
    given_samples(samples)?;
    from_log(incidents, nodes.parse()?, hours.parse()?)
}
