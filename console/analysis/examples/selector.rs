//! How far Algorithm 1 is from the cheapest subset, and how fast a selection is.
//!
//! `cargo run --release -p muster-analysis --example selector [-- INSTANCES]`: random instances of up to 30
//! benchmarks solved by the greedy algorithm, with reverse delete, and exactly; the case without coverage; one
//! selection for 3,000 nodes and 30 benchmarks; and 1,000 nodes asked about one job after another.

#![expect(clippy::disallowed_methods, reason = "measures time, which the library never does")]

use muster_analysis::Chance;
use muster_analysis::risk::{
    Category, CoxTimeSettings, Fitted, History, Incident, Kind, Sampling, Settings, Survival, Table, Window, fit,
    refit, samples,
};
use muster_analysis::selector::{
    Benchmark, Coverage, CoverageSettings, Defect, Effort, Goal, Instance, Mode, Outlook, Question, Request, Set,
    algorithm1, joint_risk, nodes_to_validate, reverse_delete, select, solve,
};

/// CPU seconds of this process: what one idle core would have taken, also on a busy machine.
fn now() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn random(chance: &mut Chance) -> (Instance, f64) {
    let n = 5 + chance.below(26);
    let minutes: Vec<f64> = (0..n).map(|_| (1 + chance.below(40)) as f64).collect();
    let density = 0.05 + 0.2 * chance.unit();
    let defects = 20 + chance.below(80);
    let found: Vec<(Set, f64)> =
        (0..defects).map(|_| ((0..n).filter(|_| chance.unit() < density).collect(), 1.0)).collect();
    let instance = Instance::new(&minutes, found);
    let need = (0.5 + 0.45 * chance.unit()) * instance.found(Set::first(n));
    (instance, need)
}

fn spread(name: &str, mut ratios: Vec<f64>) {
    ratios.sort_by(f64::total_cmp);
    let n = ratios.len();
    let mean = ratios.iter().sum::<f64>() / n as f64;
    let optimal = ratios.iter().filter(|r| **r < 1.0 + 1e-9).count() as f64 / n as f64;
    let p95 = ratios[n * 95 / 100];
    println!(
        "{name:16} cost over optimum: mean {mean:.3}, p95 {p95:.2}, max {:.2}; optimal in {:.0} %",
        ratios[n - 1],
        100.0 * optimal
    );
}

fn compare(instances: usize) {
    let mut chance = Chance::new(11);
    let (mut greedy, mut pruned, mut times) = (vec![], vec![], vec![]);
    let (mut proved, mut above) = (0, 0);
    for _ in 0..instances {
        let (instance, need) = random(&mut chance);
        let first = algorithm1(&instance, need, Set::default());
        let second = reverse_delete(&instance, &first, need, Set::default());
        let start = now();
        let own = solve(&instance, Goal::Find(need), second.set(), Set::default(), Effort::default());
        times.push((now() - start) * 1e3);
        let exact = solve(&instance, Goal::Find(need), own.set, Set::default(), Effort { nodes: 20_000_000 });
        assert_eq!(exact.gap, 0.0, "the reference is proved");
        let best = instance.cost(exact.set);
        greedy.push(instance.cost(first.set()) / best);
        pruned.push(instance.cost(second.set()) / best);
        proved += usize::from(own.gap == 0.0);
        above += usize::from(instance.cost(own.set) * (1.0 - own.gap) > best + 1e-9);
    }
    spread("Algorithm 1", greedy);
    spread("+ reverse delete", pruned);
    times.sort_by(f64::total_cmp);
    println!(
        "exact search     proved in {proved} of {instances} within its default effort; above optimum plus printed gap: {above}; \
         ms: mean {:.2}, max {:.1}",
        times.iter().sum::<f64>() / instances as f64,
        times[instances - 1]
    );
}

fn defects(chance: &mut Chance, benchmarks: usize) -> Vec<Defect> {
    (0..200)
        .map(|_| Defect {
            category: Category::ALL[chance.below(9)],
            age_h: 4000.0 * chance.unit(),
            found_by: (0..benchmarks).filter(|_| chance.unit() < 0.1).collect(),
        })
        .collect()
}

fn without_coverage() {
    let benchmarks = [Benchmark { id: "a".into(), minutes: 5.0, idle_h: Some(1.0) }];
    let missed = vec![Defect { category: Category::Gpu, age_h: 1.0, found_by: vec![] }; 40];
    let coverage = Coverage::new(&missed, &CoverageSettings::default());
    let mode = Mode::Paper;
    let s =
        select(&Request { benchmarks: &benchmarks, coverage: &coverage, risk: 0.5, p0: 0.1, mode, exploration: None });
    println!("no coverage      {:?}: {}", s.outcome, s.reason);
}

fn model(chance: &mut Chance) -> Result<Fitted, Box<dyn std::error::Error>> {
    let mut table = |n: usize| {
        let values: Vec<f64> = (0..n * 35).map(|_| chance.normal()).collect();
        let duration: Vec<f64> =
            (0..n).map(|i| (900.0 * chance.exponential() * (-values[i * 35]).exp()).min(2400.0)).collect();
        let event = duration.iter().map(|d| *d < 2400.0).collect();
        Table::new((0..35).map(|k| format!("x{k}")).collect(), values, duration, event)
    };
    let (train, held_out) = (table(3000)?, table(1000)?);
    let settings =
        Settings { cox_time: CoxTimeSettings { epochs: 10, ..CoxTimeSettings::default() }, ..Settings::default() };
    Ok(fit(Kind::CoxTime, &train, &held_out, &settings)?)
}

fn large() -> Result<(), Box<dyn std::error::Error>> {
    let mut chance = Chance::new(5);
    let model = model(&mut chance)?;
    let rows: Vec<f64> = (0..3000 * 35).map(|_| chance.normal()).collect();
    let found = defects(&mut chance, 30);
    let benchmarks: Vec<Benchmark> = (0..30)
        .map(|k| Benchmark { id: format!("b{k}"), minutes: (1 + chance.below(30)) as f64, idle_h: Some(1.0) })
        .collect();
    for hours in [24.0, 168.0, 720.0] {
        let start = now();
        let curves = model.survive(&rows, &[hours]);
        let risks: Vec<f64> = (0..3000).map(|i| 1.0 - curves.row(i)[0]).collect();
        let asked = now() - start;
        let coverage = Coverage::new(&found, &CoverageSettings::default());
        let (risk, p0) = (joint_risk(risks.iter().copied()), 0.2);
        let mode = Mode::Cheapest;
        let s = select(&Request { benchmarks: &benchmarks, coverage: &coverage, risk, p0, mode, exploration: None });
        let nodes = nodes_to_validate(&risks, s.coverage, p0).len();
        println!(
            "3,000 nodes x 30 benchmarks, job of {hours} h: {:.1} ms, of which curves {:.1} ms; {} picks, {} nodes, gap {:?}",
            (now() - start) * 1e3,
            asked * 1e3,
            s.picks.len(),
            nodes,
            s.gap
        );
    }
    Ok(())
}

/// A thousand nodes with a past, asked about one job after another, as the screen does when a slider moves.
fn asked_again() -> Result<(), Box<dyn std::error::Error>> {
    let mut chance = Chance::new(6);
    let names: Vec<String> = (0..1000).map(|n| format!("n{n:04}")).collect();
    let window = Window { start_h: 0.0, end_h: 4000.0 };
    let incident = |node: &String, chance: &mut Chance| {
        let start = 4000.0 * chance.unit();
        Incident::new(node, start, Some(start + 10.0), Category::ALL[chance.below(9)])
    };
    let log: Vec<Incident> =
        names.iter().flat_map(|n| (0..chance.below(5)).map(|_| incident(n, &mut chance)).collect::<Vec<_>>()).collect();
    let history = History::new(&log, &names, window);
    let rows = samples(&history, &Sampling { every_h: 200.0, ..Sampling::default() })?;
    let settings =
        Settings { cox_time: CoxTimeSettings { epochs: 5, ..CoxTimeSettings::default() }, ..Settings::default() };
    let model = refit(Kind::CoxTime, &rows, &settings)?;
    let start = now();
    let coverage = Coverage::new(&defects(&mut chance, 30), &CoverageSettings::default());
    let benchmarks =
        (0..30).map(|k| Benchmark { id: format!("b{k}"), minutes: f64::from(1 + k % 20), idle_h: Some(1.0) }).collect();
    let times = (0..=40).map(|k| 2400_f64.powf(f64::from(k) / 40.0)).collect();
    let outlook = Outlook::new(&history, &names, (Some(&model), &Sampling::default()), times)
        .with_benchmarks(benchmarks, coverage);
    let built = now() - start;
    let start = now();
    let questions =
        [(24.0, 0.2, None), (72.0, 0.2, None), (72.0, 0.5, None), (72.0, 0.5, Some(20.0)), (700.0, 0.1, None)];
    for (job_h, p0, budget_minutes) in questions {
        let answer = outlook.answer(&Question { job_h, p0: Some(p0), budget_minutes, exploration: None });
        assert_eq!(answer.risks.len(), 1000);
    }
    let each = (now() - start) / questions.len() as f64;
    println!("1,000 nodes: outlook {:.1} ms, then {:.2} ms per question", built * 1e3, each * 1e3);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let instances = std::env::args().nth(1).map_or(Ok(300), |n| n.parse())?;
    compare(instances);
    without_coverage();
    large()?;
    asked_again()
}
