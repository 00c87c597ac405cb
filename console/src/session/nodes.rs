//! Which nodes are meant, and of which inventory?

use std::collections::BTreeSet;

use anyhow::{Context, anyhow};
use muster_fleet::{Inventory, Node, Transport, slurm};

use super::ways::{asked, asks_slurm};
use crate::config::{Config, Source};
use crate::exit::{CONFIG, Code, IO, Problem, UNDECIDED, USAGE};
use crate::options::Pick;
use crate::out;

/// Nodes named on the command line, or those of the Slurm job whose allocation is used, or all of the inventory.
///
/// # Errors
/// When the inventory is wrong or a name is unknown.
pub fn nodes(config: &Config, pick: &Pick) -> Result<Vec<Node>, Problem> {
    of_inventory(config, &in_job(config, pick))
}

/// The nodes to work on: as [`nodes()`], but where none are named inside a Slurm allocation, the nodes of that job, and a note says so.
///
/// # Errors
/// As [`nodes()`], and when Slurm does not tell the nodes of that job.
pub fn nodes_for_work(config: &Config, pick: &Pick) -> Result<Vec<Node>, Problem> {
    let pick = in_job(config, pick);
    let Some(job) = around(config, &pick, crate::slurm::around) else { return of_inventory(config, &pick) };
    out::note(format_args!(
        "using the nodes of Slurm job {job}, in whose allocation muster runs; -w picks some of them"
    ));
    of_inventory(config, &Pick { job: Some(job), ..pick })
}

/// Those of the inventory that are named, or of the job that is; all of it where nothing is.
///
/// # Errors
/// As [`nodes()`].
pub(super) fn of_inventory(config: &Config, pick: &Pick) -> Result<Vec<Node>, Problem> {
    let (inventory, pick) = match inventory(config, pick)? {
        Some((inventory, whole)) => {
            let pick = pick.resolved(whole, |name| inventory.node(name).is_some())?;
            (inventory, pick)
        }
        None => {
            // Without an inventory the names on the command line, or of the job, are hosts for ~/.ssh/config to explain.
            let named = pick.resolved("the job", |_| true)?.include.join(",");
            let exclude = pick.exclude.iter().map(|list| bare(list)).collect();
            // All of them are meant: users and ports are no part of a name that could be looked up again.
            (Inventory::from_names(&named).code(USAGE)?, Pick { include: Vec::new(), exclude, job: None })
        }
    };
    let nodes = inventory.select(&pick.selection()).code(USAGE)?;
    if nodes.is_empty() {
        return Err(Problem { code: USAGE, error: anyhow!("no node is left after -w and -x") });
    }
    Ok(nodes)
}

/// The same, of the job that the options of Slurm name where nobody names nodes: no other node can have a step of it.
fn in_job(config: &Config, pick: &Pick) -> Pick {
    let (transport, options) = asked(config);
    let job = options.job.filter(|_| !pick.names() && (transport == Transport::Slurm || asks_slurm(config)));
    Pick { job: job.or_else(|| pick.job.clone()), ..pick.clone() }
}

/// The job in whose allocation this console runs, where probes are its steps and nobody names nodes or another job.
fn around(config: &Config, pick: &Pick, job: impl FnOnce() -> Option<String>) -> Option<String> {
    let (transport, options) = asked(config);
    let free = transport == Transport::Slurm && options.job.is_none() && !pick.names();
    free.then(job).flatten()
}

/// The hosts of a list as an inventory of them calls them, without users; what is no list of hosts is left as it is.
fn bare(list: &str) -> String {
    let hosts = Inventory::from_names(list);
    let names = |hosts: Inventory| hosts.nodes().iter().map(|node| node.name.clone()).collect::<Vec<_>>().join(",");
    hosts.map_or_else(|_| list.to_owned(), names)
}

/// The inventory, and what it is called: of the file, or Slurm's; none where the names on the command line must do.
fn inventory(config: &Config, pick: &Pick) -> Result<Option<(Inventory, &'static str)>, Problem> {
    let file = &config.inventory.value;
    let asked = config.slurm.value.is_some() || config.transport.value == Transport::Slurm;
    if asks_slurm(config) || asked && !file.exists() {
        return Ok(Some((of_slurm()?, "Slurm")));
    }
    // Only a file that nobody named may be missing; the environment names one for whole shells, with and without nodes in it.
    let may_miss = matches!(config.inventory.source, Source::Environment | Source::Default);
    if !file.exists() && pick.names() && may_miss {
        return Ok(None);
    }
    let loaded = Inventory::load(file)
        .map_err(|why| anyhow!("{why}"))
        .context("no usable inventory; `muster demo` needs none, and assets/inventory.sample.toml is a start")
        .code(if file.exists() { CONFIG } else { IO })?;
    let left = loaded.slurm.is_some() || loaded.transport == Some(Transport::Slurm);
    if loaded.nodes().is_empty() && (left || asked) {
        return Ok(Some((of_slurm()?, "Slurm")));
    }
    if loaded.nodes().is_empty() {
        return Err(Problem { code: USAGE, error: anyhow!("{}: the inventory has no node", file.display()) });
    }
    Ok(Some((loaded, "the inventory")))
}

fn of_slurm() -> Result<Inventory, Problem> {
    slurm::scan().map_err(anyhow::Error::msg).code(IO)
}

/// Those of `nodes` that are in the partition which the command line names with Slurm's nodes; all where it names none.
///
/// # Errors
/// [`UNDECIDED`], as of a run, where none is in it; [`IO`] where Slurm does not answer.
pub fn in_partition(nodes: Vec<Node>, config: &Config) -> Result<Vec<Node>, Problem> {
    let partition =
        config.slurm.value.as_ref().filter(|_| asks_slurm(config)).and_then(|asked| asked.partition.as_ref());
    let Some(partition) = partition else { return Ok(nodes) };
    let listed = slurm::listed().map_err(anyhow::Error::msg).code(IO)?;
    within(nodes, &listed, partition)
}

fn within(mut nodes: Vec<Node>, listed: &[slurm::Listed], partition: &str) -> Result<Vec<Node>, Problem> {
    let inside = listed.iter().filter(|one| one.partitions.iter().any(|own| own == partition));
    let inside: BTreeSet<&str> = inside.map(|one| one.name.as_str()).collect();
    if !nodes.iter().any(|node| inside.contains(node.name.as_str())) {
        let all = muster_fleet::hostlist::fold(nodes.iter().map(|node| node.name.as_str()));
        return Err(Problem { code: UNDECIDED, error: anyhow!("{all}: not in Slurm's partition {partition}") });
    }
    nodes.retain(|node| inside.contains(node.name.as_str()));
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_partition_its_own_nodes_are_listed_and_of_one_that_is_not_there_nothing() {
        let nodes = || Inventory::from_names("n1,n2").unwrap().nodes().to_vec();
        let one = |name: &str, partition: &str| slurm::Listed {
            name: name.to_owned(),
            partitions: vec![partition.to_owned()],
            ..slurm::Listed::default()
        };
        let listed = [one("n1", "gpu"), one("n2", "cpu"), one("n3", "gpu")];
        let names: Vec<String> = within(nodes(), &listed, "gpu").unwrap().into_iter().map(|node| node.name).collect();
        assert_eq!(names, ["n1"]);
        let problem = within(nodes(), &listed, "nope").unwrap_err();
        assert_eq!(problem.code, UNDECIDED);
        assert_eq!(problem.error.to_string(), "n[1-2]: not in Slurm's partition nope");
    }

    #[test]
    fn the_job_that_probes_are_started_in_names_the_nodes_where_nobody_else_does() {
        let missing = tempfile::tempdir().unwrap().path().join("none.toml");
        let job = |slurm: &str, pick: &Pick| {
            let flags = crate::config::Raw {
                inventory: Some(missing.clone()),
                slurm: Some(slurm::Options::parse(slurm).unwrap()),
                ..Default::default()
            };
            let path = std::path::Path::new("none");
            let mut config = crate::config::resolve(flags, crate::config::Raw::default(), path).unwrap();
            config.inventory.source = Source::Default;
            in_job(&config, pick).job
        };
        let named = Pick { include: vec!["n1".to_owned()], ..Pick::default() };
        let other = Pick { job: Some("5".to_owned()), ..Pick::default() };
        let without = Pick { exclude: vec!["n1".to_owned()], ..Pick::default() };
        for slurm in ["job=4711", "job=4711,ssh"] {
            assert_eq!(job(slurm, &Pick::default()).as_deref(), Some("4711"), "{slurm}");
            assert_eq!(job(slurm, &without).as_deref(), Some("4711"), "{slurm}");
            assert_eq!((job(slurm, &named), job(slurm, &other).as_deref()), (None, Some("5")), "{slurm}");
        }
        assert_eq!(job("partition=gpu", &Pick::default()), None);
    }

    #[test]
    fn inside_an_allocation_work_is_for_its_nodes_where_nobody_names_any() {
        let path = std::path::Path::new("none");
        let inside = |slurm: &str, pick: &Pick| {
            let file = crate::config::Raw {
                inventory: Some(path.join("none.toml")),
                slurm: Some(slurm::Options::parse(slurm).unwrap()),
                transport: Some("slurm".to_owned()),
                ..Default::default()
            };
            let config = crate::config::resolve(crate::config::Raw::default(), file, path).unwrap();
            around(&config, &in_job(&config, pick), || Some("4711".to_owned()))
        };
        let without = Pick { exclude: vec!["n1".to_owned()], ..Pick::default() };
        assert_eq!(inside("partition=gpu", &Pick::default()).as_deref(), Some("4711"));
        assert_eq!(inside("partition=gpu", &without).as_deref(), Some("4711"));
        let named = Pick { include: vec!["n1".to_owned()], ..Pick::default() };
        let other = Pick { job: Some("5".to_owned()), ..Pick::default() };
        for (slurm, pick) in [("", &named), ("", &other), ("job=5", &Pick::default()), ("ssh", &Pick::default())] {
            assert_eq!(inside(slurm, pick), None, "{slurm} {pick:?}");
        }
    }

    #[test]
    fn hosts_named_with_user_and_port_need_no_inventory_and_can_be_left_out_by_either_name() {
        let file = tempfile::tempdir().unwrap().path().join("none.toml");
        let config = crate::config::resolve(
            crate::config::Raw { inventory: Some(file), ..Default::default() },
            crate::config::Raw::default(),
            std::path::Path::new("none"),
        );
        let mut config = config.unwrap();
        let one = Pick { include: vec!["n1".to_owned()], ..Pick::default() };
        assert_eq!(nodes(&config, &one).unwrap_err().code, IO, "a file that somebody named must be there");
        config.inventory.source = Source::Environment;
        assert!(nodes(&config, &one).is_ok(), "the shell's inventory may be missing");
        config.inventory.source = Source::Default;
        let named = |include: &str, exclude: &[&str]| {
            let exclude = exclude.iter().map(|list| (*list).to_owned()).collect();
            let pick = Pick { include: vec![include.to_owned()], exclude, job: None };
            let nodes = nodes(&config, &pick).map_err(|problem| problem.error.to_string())?;
            Ok::<_, String>(nodes.into_iter().map(|node| (node.name, node.user, node.port)).collect::<Vec<_>>())
        };
        let root = |name: &str| (name.to_owned(), Some("root".to_owned()), 2222);
        let list = "root@10.0.0.[1-3]:2222";
        assert_eq!(named(list, &[]).unwrap(), ["10.0.0.1:2222", "10.0.0.2:2222", "10.0.0.3:2222"].map(root));
        let left = ["10.0.0.1:2222", "10.0.0.3:2222"].map(root);
        for exclude in ["root@10.0.0.2:2222", "10.0.0.2:2222"] {
            assert_eq!(named(list, &[exclude]).unwrap(), left, "{exclude}");
        }
        assert!(named(list, &["10.0.0.9:2222"]).unwrap_err().contains("10.0.0.9:2222"));
        assert!(named("root@n1,@rack7", &[]).unwrap_err().contains("needs an inventory"));
    }
}
