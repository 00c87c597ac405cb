//! Measures or reads pairs, says what they point at, and shows the matrix.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context, anyhow};
use muster_analysis::network::topology::node_name;
use muster_analysis::network::{LOSS, Matrix, Topology, direction_of, guess, judged, localise_beside, read_matrix};
use muster_playbook::Pairs;
use muster_playbook::report::PairsReport;
use muster_run::{Record, RunState};
use muster_store::Store;

use super::options::{Options, Scan};
use super::{files, picture};
use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, INTERRUPTED, IO, Problem, UNDECIDED, USAGE};
use crate::judge::pairs;
use crate::options::{Common, Line, Say, matches_any};
use crate::{database, judge, out, session, work};

use crate::work::PairEngine;

/// What is known of some pairs.
struct Seen {
    matrices: BTreeMap<String, Matrix>,
    topology: Topology,
    report: PairsReport,
    visits: Vec<[String; 7]>,
}

/// Measures or reads, localises, prints.
pub async fn run(options: &Options, config: &Config, common: &Common) -> Ended {
    if options.show {
        crate::cli::console::terminal("without --show what the pairs point at is printed")?;
    }
    let (seen, state) = match (&options.scan, &options.run, &options.from) {
        (Some(method), ..) => scan(*method, options, config).await?,
        (None, Some(id), _) => {
            let store = database::read(config)?;
            let seen = stored(&*store, Some(id.as_str()).filter(|id| !id.is_empty()), options, config)?;
            database::damaged(&*store);
            (seen, RunState::Finished)
        }
        (None, None, Some(file)) => (read(file, options, config)?, RunState::Finished),
        (None, None, None) => return Err(anyhow!("give --scan, --run or --from").into()),
    };
    if options.show {
        let origin = match (&options.from, &seen.report.run) {
            (Some(file), _) => file.display().to_string(),
            (None, Some(run)) => format!("run {}", run.id),
            (None, None) => String::new(),
        };
        let (matrices, topology) = (seen.matrices, seen.topology);
        let pairs = judge::Pairs {
            origin,
            matrices,
            units: BTreeMap::new(),
            topology,
            localised: BTreeMap::new(),
            params: session::params(config),
        };
        return super::show::show(pairs, config, common).await;
    }
    show(&seen, options, config)?;
    Ok(match state {
        RunState::Finished | RunState::Incomplete => seen.report.exit_code(),
        RunState::Cancelled => INTERRUPTED,
        _ => UNDECIDED,
    })
}

async fn scan(method: Scan, options: &Options, config: &Config) -> Result<(Seen, RunState), Problem> {
    let fabric = work::Fabric {
        topology: options.topology.as_deref().map(files::topology).transpose()?,
        routes: options.routes.as_deref().map(files::routes).transpose()?.unwrap_or_default(),
        streams: options.streams,
        duration_ms: options.duration,
        engine: options.engine,
        ..work::Fabric::default()
    };
    let pairs = match method {
        Scan::Full => Pairs::Full,
        Scan::Quick => Pairs::Quick,
        Scan::Sample => Pairs::Sample { rounds: options.rounds },
        Scan::Bisect => Pairs::Bisect,
    };
    let mut playbook = session::playbook("network-full")?;
    playbook.name = match options.engine {
        PairEngine::Tcp => format!("network-{}", pairs.name()),
        PairEngine::Allreduce => format!("network-{}-allreduce", pairs.name()),
        PairEngine::Rdma => format!("network-{}-rdma", pairs.name()),
    };
    playbook.profile = options.profile;
    playbook.steps.iter_mut().for_each(|step| step.pairs = Some(pairs));
    let nodes = session::nodes_for_work(config, &options.pick)?;
    enough(nodes.len())?;
    let settings = session::settings_for(config, &nodes).await?;
    let mut store = database::write(config)?;
    let job = session::Job { fabric, fresh: options.new, ..session::Job::new(playbook, nodes, settings) };
    let say = Say { json: options.json, quiet: options.quiet, fail_on: Line::Warn };
    let done = session::headless(job, &mut store, config, &say).await?;
    Ok((stored(&store, Some(&done.report.run.id), options, config)?, done.state))
}

/// Refuses a scan of so few nodes that they make no pair.
fn enough(nodes: usize) -> Result<(), Problem> {
    if nodes < 2 {
        return Err(Problem { code: USAGE, error: anyhow!("a scan of pairs needs at least two nodes") });
    }
    Ok(())
}

/// The pairs of a run in the database, between the nodes that are meant; a scan that was just made is of no others.
fn stored(store: &dyn Store, id: Option<&str>, options: &Options, config: &Config) -> Result<Seen, Problem> {
    let run = session::run_of(store, id)?;
    let mut records = store.records(&run.id).code(IO)?;
    if options.scan.is_none() && options.pick.given() {
        let picked: BTreeSet<String> = options.pick.of_run(&run, config)?.into_iter().collect();
        let measured = any_pair(&records);
        between(&mut records, &picked);
        if measured && !any_pair(&records) {
            return Err(none_left(&format!("run {}", run.id)));
        }
    }
    let given = options.topology.as_deref().map(files::topology).transpose()?;
    let none = || anyhow!("run {} measured no pairs; see `muster pairs --scan`", run.id);
    let found = pairs::network(&run, &records, given, &session::params(config)).with_context(none).code(USAGE)?;
    let mut matrices = found.matrices;
    only(&mut matrices, options);
    Ok(Seen { matrices, topology: found.topology, report: found.report, visits: pairs::visits(&records) })
}

fn any_pair(records: &[Record]) -> bool {
    records.iter().any(|record| pairs::kept::receiver(record).is_some())
}

/// Leaves what `picked` nodes are for the scan, and the visits of pairs whose nodes are both `picked`.
fn between(records: &mut Vec<Record>, picked: &BTreeSet<String>) {
    records.retain(|record| {
        let receiver = pairs::kept::receiving_node(record);
        picked.contains(&record.node) && receiver.is_none_or(|node| picked.contains(node))
    });
}

fn none_left(whole: &str) -> Problem {
    Problem { code: USAGE, error: anyhow!("{whole}: no pair is left after -w and -x") }
}

/// The pairs in a file.
fn read(file: &std::path::Path, options: &Options, config: &Config) -> Result<Seen, Problem> {
    let name = file.display().to_string();
    let direction = |metric: &str| options.better.direction(metric).unwrap_or_else(|| direction_of(metric));
    let mut matrices = read_matrix(&files::read(file)?, direction).with_context(|| name.clone()).code(CONFIG)?;
    only(&mut matrices, options);
    if matrices.is_empty() {
        return Err(Problem { code: USAGE, error: anyhow!("{name}: no row of the metrics asked for") });
    }
    restrict(&mut matrices, &name, options, config)?;
    let topology = match &options.topology {
        Some(file) => files::topology(file)?,
        None => guess(matrices.values()),
    };
    let mut report = PairsReport::new(topology.source());
    for (metric, matrix) in &matrices {
        report.add(metric, localise_beside(matrix, matrices.get(LOSS), &topology, &session::params(config)));
    }
    Ok(Seen { matrices, topology, report, visits: Vec::new() })
}

/// Uplinks by sender and receiver.
type Routes = HashMap<(String, String), String>;

/// Leaves what is between the nodes that are meant, over the uplinks that --routes tells.
fn restrict(
    matrices: &mut BTreeMap<String, Matrix>,
    name: &str,
    options: &Options,
    config: &Config,
) -> Result<(), Problem> {
    let routes: Routes = options.routes.as_deref().map(files::routes).transpose()?.unwrap_or_default();
    if !options.pick.given() && routes.is_empty() {
        return Ok(());
    }
    let nodes: BTreeSet<&str> =
        matrices.values().flat_map(Matrix::endpoints).map(|endpoint| node_name(endpoint)).collect();
    let picked: BTreeSet<String> = options.pick.of_names(nodes, name, config)?.into_iter().collect();
    for matrix in matrices.values_mut() {
        *matrix = restricted(matrix, &picked, &routes);
    }
    matrices.retain(|_, matrix| !matrix.is_empty());
    if matrices.is_empty() { Err(none_left(name)) } else { Ok(()) }
}

/// The visits of pairs whose nodes are both `picked`. What `routes` tells stands above what the file does, of ends or else of their nodes.
fn restricted(matrix: &Matrix, picked: &BTreeSet<String>, routes: &Routes) -> Matrix {
    let mut kept = Matrix::new(matrix.metric(), matrix.direction());
    let route = |src: &str, dst: &str| routes.get(&(src.to_owned(), dst.to_owned()));
    for (at, cell) in matrix.cells().iter().enumerate() {
        let [src, dst] = [cell.src, cell.dst].map(|end| matrix.endpoints()[end as usize].as_str());
        if [src, dst].iter().all(|end| picked.contains(node_name(end))) {
            let values: Vec<f64> = matrix.values(at).iter().copied().map(f64::from).collect();
            let told = route(src, dst).or_else(|| route(node_name(src), node_name(dst)));
            kept.push_named(src, dst, &values, told.map(String::as_str).or_else(|| matrix.up(at)));
        }
    }
    kept
}

fn only(matrices: &mut BTreeMap<String, Matrix>, options: &Options) {
    if !options.metric.is_empty() {
        matrices.retain(|metric, _| matches_any(&options.metric, metric));
    }
}

fn show(seen: &Seen, options: &Options, config: &Config) -> Result<(), Problem> {
    if let Some(file) = &options.png {
        let shown = seen.matrices.iter().find(|(metric, _)| judged(metric)).or_else(|| seen.matrices.iter().next());
        let (_, matrix) =
            shown.with_context(|| format!("{}: there is no matrix to draw", file.display())).code(USAGE)?;
        let losses = seen.matrices.get(LOSS);
        let found = localise_beside(matrix, losses, &seen.topology, &session::params(config));
        picture::write(file, matrix, &seen.topology, &found).code(IO)?;
    }
    if options.json {
        out::json(&seen.report)
    } else if options.visits {
        out::line(files::visits_text(&seen.visits)?.trim_end())
    } else if options.csv {
        out::line(files::csv_text(&seen.matrices)?.trim_end())
    } else {
        out::line(&seen.report.lines().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use muster_wire::{Direction, Outcome};

    use super::*;

    #[test]
    fn of_a_run_the_pairs_between_picked_nodes_are_left_with_what_these_nodes_are() {
        let record = |node: &str, work: &str| Record {
            run: "r".to_owned(),
            node: node.to_owned(),
            work: work.to_owned(),
            outcome: Outcome::Done,
            at_ms: 0,
            elapsed_ns: 0,
            series: Vec::new(),
            facts: Vec::new(),
        };
        let all = ["net-pair", "net-pair/b", "net-pair/b~2", "net-pair/b:rail1", "net-pair/c"];
        let mut records: Vec<Record> = all.iter().map(|work| record("a", work)).collect();
        records.extend([record("c", "net-pair"), record("c", "net-pair/a")]);
        let picked = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        between(&mut records, &picked(&["a", "b"]));
        let left: Vec<&str> = records.iter().map(|record| record.work.as_str()).collect();
        assert_eq!(left, all[..4]);
        assert!(any_pair(&records));
        between(&mut records, &picked(&["a"]));
        assert!(records.len() == 1 && !any_pair(&records), "a pair needs both of its nodes: {records:?}");
    }

    #[test]
    fn one_node_makes_no_pair() {
        assert_eq!(enough(1).unwrap_err().code, USAGE);
        assert!(enough(2).is_ok());
    }

    #[test]
    fn pairs_of_picked_nodes_are_kept_with_their_values_and_the_uplinks_that_are_told() {
        let mut matrix = Matrix::new("throughput", Direction::HigherIsBetter);
        matrix.push_named("a:rail0", "b:rail0", &[1.0, 2.0], Some("old"));
        matrix.push_named("b:rail0", "a:rail0", &[], Some("old"));
        matrix.push_named("a:rail0", "c", &[3.0], None);
        let picked = ["a", "b"].map(str::to_owned).into();
        let routes = [(("a".to_owned(), "b".to_owned()), "l1-s1".to_owned())].into();
        let kept = restricted(&matrix, &picked, &routes);
        assert_eq!(kept.endpoints(), ["a:rail0", "b:rail0"]);
        assert_eq!((kept.len(), kept.values(0), kept.values(1)), (2, &[1.0_f32, 2.0][..], &[][..]));
        assert_eq!((kept.up(0), kept.up(1)), (Some("l1-s1"), Some("old")));
        assert!(restricted(&matrix, &["c".to_owned()].into(), &routes).is_empty());
    }
}
