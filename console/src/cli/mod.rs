//! What a person may type: one file per subcommand, each answering with an exit code.

use std::ffi::OsString;

use anyhow::anyhow;
use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::exit::{Ended, Problem, USAGE};
use crate::options::Common;

pub mod checks;
pub mod clean;
pub mod collective;
pub mod completions;
pub mod config;
pub mod console;
pub mod criteria;
pub mod db;
pub mod demo;
pub mod doctor;
pub mod drain;
pub mod export;
pub mod gate;
pub mod help;
pub mod import;
pub mod incidents;
pub mod man;
pub mod model;
pub mod nodes;
pub mod pairs;
pub mod playbook;
pub mod replay;
pub mod results;
pub mod run;
pub mod runs;
pub mod select;
pub mod simulate;
pub mod swap;
pub mod triage;
pub mod tune;
pub mod virtual_nodes;
pub mod watch;

/// Tells which machines of a GPU fleet can be trusted with a job, and shows why.
#[derive(Debug, Parser)]
#[command(version, about, after_help = after_help(), args_conflicts_with_subcommands = false)]
pub struct Cli {
    /// Open the console on one stored run, as `muster runs` names it; esc shows the whole fleet.
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// Settings for every subcommand.
    #[command(flatten)]
    pub common: Common,
    /// What to do; the console when left out.
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Cli {
    /// What the command line says, and the environment where that says nothing.
    ///
    /// # Errors
    /// When it cannot be understood, or asks for help or the version.
    pub fn of(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let matches = Self::command().try_get_matches_from(words)?;
        let mut cli = Self::from_arg_matches(&matches).map_err(|why| why.format(&mut Self::command()))?;
        cli.common.inventory_of_shell = matches.value_source("inventory") == Some(ValueSource::EnvVariable);
        Ok(cli)
    }

    /// The stored run that the console opens on.
    ///
    /// # Errors
    /// When there is a subcommand as well.
    pub fn stored_run(&self) -> Result<Option<&str>, Problem> {
        match (&self.run, &self.command) {
            (Some(run), Some(_)) => {
                let why =
                    anyhow!("--run opens the console and takes no subcommand; `muster results {run}` prints the run");
                Err(Problem { code: USAGE, error: why })
            }
            (run, _) => Ok(run.as_deref()),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  muster demo                         a local fleet with one slow node
  muster -i hall7.toml                the console on your inventory
  muster --run 20261121T143000Z-cbd-1f2e
                                      the console on one stored run; needs no inventory
  muster -i hall7.toml run cbd -w 'node[001-128]' --json > verdicts.json
  muster runs                         recorded runs, newest first
  muster criteria learn --from samples.csv --json
";

/// Examples, topics and exit codes, below the help of the whole program.
fn after_help() -> String {
    let mut text = format!("{EXAMPLES}\n{}\nExit codes:\n", help::list());
    for (code, meaning) in crate::exit::MEANINGS {
        text += &format!("  {code:>3} {meaning}\n");
    }
    text
}

/// The whole command line, built; its `help` knows the topics.
#[must_use]
pub fn definition() -> clap::Command {
    let mut whole = Cli::command();
    whole.build();
    let topics = help::TOPICS.iter().map(|topic| {
        let name = format!("muster help {}", topic.name);
        clap::Command::new(topic.name).about(topic.about).bin_name(name).disable_help_flag(true)
    });
    whole.mut_subcommand("help", |help| help.subcommands(topics))
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a local fleet of real SSH nodes, one of them slow, and open the console.
    Demo(demo::Options),
    /// Run a playbook without a screen; resumes an interrupted run.
    Run(run::Options),
    /// List, show or check playbooks.
    #[command(subcommand)]
    Playbook(playbook::Action),
    /// List the nodes of the inventory and when each was last seen.
    Nodes(nodes::Options),
    /// Show the values and verdicts of a run.
    Results(results::Options),
    /// List recorded runs, newest first.
    Runs(runs::Options),
    /// Play a stored run, a recording of a watch or a triage case, or a file of one, in the console.
    Replay(replay::Options),
    /// Learn what is normal for each metric; compare, freeze and exchange it.
    #[command(subcommand)]
    Criteria(criteria::Action),
    /// List the health and consistency checks that a playbook can ask for.
    #[command(subcommand)]
    Checks(checks::Action),
    /// Measure the network between nodes and name the node, NIC, leaf, uplink or pair that is slow.
    Pairs(pairs::Options),
    /// Run all-reduce, all-gather or all-to-all over TCP: bus bandwidth, and every byte checked.
    Collective(collective::Options),
    /// Name the machine of a job that is unlike its peers, live or from recorded telemetry.
    Watch(watch::Options),
    /// Say why a job failed, hangs or is slow, from what its nodes tell: root cause, evidence, next action.
    Triage(triage::Options),
    /// Find the fewest steps that keep a benchmark repeatable.
    Tune(tune::Options),
    /// Import results of other tools as a run: SuperBench, nccl-tests, perftest, fio, nvbandwidth, dcgmi, CSV.
    Import(import::Options),
    /// Recommend which benchmarks to run on which nodes before a job.
    Select(select::Options),
    /// Decide whether a job may start on these nodes, for a scheduler's prolog.
    Gate(gate::Options),
    /// Train, show and evaluate models of incident risk.
    #[command(subcommand)]
    Model(model::Action),
    /// Simulate a month of a cluster under each validation policy.
    Simulate(simulate::Options),
    /// Incident log: list, add, close, import, export.
    #[command(subcommand)]
    Incidents(incidents::Action),
    /// Export a run: JSON, Markdown, HTML, CSV, Parquet, OpenMetrics, or a ticket.
    Export(export::Options),
    /// Take nodes out of Slurm's service, with a reason.
    Drain(drain::DrainOptions),
    /// Give nodes back to Slurm that muster drained.
    Resume(drain::ResumeOptions),
    /// List which spares replace the defective nodes; nodes into repair, and back after a validation.
    Swap(swap::Options),
    /// Remove probes from nodes.
    Clean(clean::Options),
    /// Check this machine's own setup.
    Doctor(doctor::Options),
    /// Show the settings in force and where each came from.
    Config(config::Options),
    /// Check or rebuild the database.
    #[command(subcommand)]
    Db(db::Action),
    /// Answer as the virtual nodes of a demo; `muster demo --virtual` starts it.
    #[command(hide = true)]
    VirtualNodes(virtual_nodes::Options),
    /// Print shell completions.
    Completions(completions::Options),
    /// Write the manual: a page for each subcommand and topic.
    #[command(hide = true)]
    Man(man::Options),
}

/// What the program says of itself, whatever its settings are.
#[must_use]
pub fn told(cli: &Cli) -> Option<Ended> {
    match &cli.command {
        Some(Command::Completions(options)) => Some(completions::run(options)),
        Some(Command::Man(options)) => Some(man::run(options)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Every subcommand below `command`, by its whole name.
    fn leaves(command: &clap::Command, name: &str, found: &mut Vec<(String, String)>) {
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            let name = format!("{name} {}", inner.get_name());
            if inner.has_subcommands() {
                leaves(inner, &name, found);
            } else {
                found.push((name, inner.clone().render_long_help().to_string()));
            }
        }
    }

    #[test]
    fn every_help_text_has_an_example_of_its_own_command() {
        let mut found = Vec::new();
        leaves(&Cli::command(), "muster", &mut found);
        assert!(found.len() > 40, "{}", found.len());
        let without = found.iter().filter(|(name, help)| {
            let mut words = name.split(' ');
            let last = words.next_back().unwrap_or_default();
            let examples = help.split("Example").nth(1).unwrap_or_default();
            !(examples.contains(name.as_str()) || examples.contains(&format!(" {last} ")))
        });
        let names: Vec<&str> = without.map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, Vec::<&str>::new());
    }

    #[test]
    fn an_inventory_on_the_command_line_is_not_the_shells() {
        for words in [["muster", "-i", "a.toml", "runs"], ["muster", "runs", "-i", "a.toml"]] {
            let cli = Cli::of(words.map(OsString::from)).unwrap();
            assert_eq!(
                (cli.common.inventory, cli.common.inventory_of_shell),
                (Some(std::path::PathBuf::from("a.toml")), false)
            );
        }
        assert!(Cli::of(["muster", "nosuch"].map(OsString::from)).is_err());
    }

    #[test]
    fn a_stored_run_is_opened_by_its_id_and_stands_beside_no_subcommand() {
        let parsed = |words: &[&str]| Cli::try_parse_from(words).unwrap();
        assert_eq!(parsed(&["muster", "--run", "r1"]).stored_run().unwrap(), Some("r1"));
        assert_eq!(parsed(&["muster"]).stored_run().unwrap(), None);
        assert_eq!(parsed(&["muster", "runs"]).stored_run().unwrap(), None);
        let problem = parsed(&["muster", "--run", "r1", "runs"]).stored_run().unwrap_err();
        assert_eq!(problem.code, USAGE);
        assert!(problem.error.to_string().contains("muster results r1"), "{}", problem.error);
    }

    #[test]
    fn settings_of_every_subcommand_stand_under_a_heading_of_their_own() {
        let mut command = Cli::command();
        command.build();
        let results = command.find_subcommand_mut("results").unwrap().render_long_help().to_string();
        let (own, settings) = results.split_once("Settings of every subcommand:").unwrap();
        assert!(own.contains("--node <NODE>") && !own.contains("--ssh-config"), "{own}");
        assert!(settings.contains("--ssh-config") && !settings.contains("--checks"), "{settings}");
    }
}
