//! Which nodes are meant: of the inventory, or of a run.

use anyhow::anyhow;
use clap::Args;
use muster_fleet::hostlist::fold;
use muster_fleet::{Inventory, SelectError, Selection};
use muster_run::Run;

use crate::config::Config;
use crate::exit::{Code, IO, Problem, USAGE};
use crate::{out, slurm};

/// Which nodes.
#[derive(Args, Clone, Debug, Default)]
pub struct Pick {
    /// Nodes: host lists, @group, @label=value, ^file; separated by commas.
    #[arg(short = 'w', long = "nodes", value_name = "LIST")]
    pub include: Vec<String>,
    /// Nodes to leave out, in the same syntax.
    #[arg(short = 'x', long = "exclude", value_name = "LIST")]
    pub exclude: Vec<String>,
    /// The nodes of a Slurm job, asked of squeue, sacct or scontrol on this machine.
    #[arg(long = "job", value_name = "ID", value_parser = slurm::id, conflicts_with = "include")]
    pub job: Option<String>,
}

impl Pick {
    /// As the inventory understands it.
    #[must_use]
    pub fn selection(&self) -> Selection {
        Selection { include: self.include.clone(), exclude: self.exclude.clone() }
    }

    /// Whether it names any node, to take or to leave out.
    #[must_use]
    pub const fn given(&self) -> bool {
        self.names() || !self.exclude.is_empty()
    }

    /// Whether it names nodes to take.
    #[must_use]
    pub const fn names(&self) -> bool {
        !self.include.is_empty() || self.job.is_some()
    }

    /// The same with the nodes of the job in place of its id, as far as `known` knows them; the others are said. `whole` is what knows
    /// them.
    ///
    /// # Errors
    /// When Slurm does not tell the job's nodes, or none of them is known.
    pub fn resolved(&self, whole: &str, known: impl Fn(&str) -> bool) -> Result<Self, Problem> {
        let Some(job) = &self.job else { return Ok(self.clone()) };
        let all = slurm::nodes_of(job).code(IO)?;
        let (include, strange): (Vec<String>, Vec<String>) = all.into_iter().partition(|name| known(name));
        let strange = fold(strange.iter().map(String::as_str));
        if include.is_empty() {
            return Err(Problem {
                code: USAGE,
                error: anyhow!("no node of job {job} is in {whole}: it runs on {strange}"),
            });
        }
        if !strange.is_empty() {
            out::note(format_args!("nodes of job {job} that are not in {whole} are left out: {strange}"));
        }
        Ok(Self { include, exclude: self.exclude.clone(), job: None })
    }

    /// The nodes of `run` that are meant, in its order; groups and labels are the inventory's.
    ///
    /// # Errors
    /// When a name is not in the run; the message has the name most like it.
    pub fn of_run(&self, run: &Run, config: &Config) -> Result<Vec<String>, Problem> {
        self.of_names(run.nodes.iter().map(String::as_str), &format!("run {}", run.id), config)
    }

    /// Those of `names`, which are the nodes of `whole`, that are meant.
    ///
    /// # Errors
    /// When a name is not among them; the message has the name most like it.
    pub fn of_names<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
        whole: &str,
        config: &Config,
    ) -> Result<Vec<String>, Problem> {
        // An inventory that cannot be read only takes groups and labels away, and then they are what is not found.
        let inventory = Inventory::load(&config.inventory.value).unwrap_or_default();
        let inventory = inventory.of_run(names);
        let pick = self.resolved(whole, |name| inventory.node(name).is_some())?;
        let picked = inventory.select(&pick.selection()).map_err(|why| match why {
            SelectError::Unknown { names, nearest } => {
                let hint = nearest.map_or(String::new(), |name| format!("; did you mean {name}?"));
                anyhow!("not in {whole}: {names}{hint}")
            }
            other => other.into(),
        });
        Ok(picked.code(USAGE)?.into_iter().map(|node| node.name).collect())
    }
}
