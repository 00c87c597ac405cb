//! `muster run`: a playbook without a screen.

use anyhow::anyhow;
use clap::Args;
use muster_fleet::Node;
use muster_playbook::Playbook;
use muster_wire::Profile;

use super::playbook::delivery;
use super::select;
use crate::config::Config;
use crate::exit::{Ended, PASS, Problem, USAGE};
use crate::options::{Ask, Pick, Say};
use crate::risk::Advice;
use crate::session::stored_basis;
use crate::{database, out, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Playbook name or file.
    pub playbook: String,
    /// Which nodes.
    #[command(flatten)]
    pub pick: Pick,
    /// What the run says.
    #[command(flatten)]
    pub say: Say,
    /// Start a new run instead of resuming an interrupted one.
    #[arg(long)]
    pub new: bool,
    /// For a playbook that leaves its benchmarks to the Selector: about which job.
    #[command(flatten)]
    pub ask: Ask,
    /// Length of each benchmark where a step does not set it [default: the playbook's].
    #[arg(long)]
    pub profile: Option<Profile>,
    /// How often a node in doubt is measured at most; healthy nodes drawn at random are measured beside it.
    #[arg(long, value_name = "N", default_value_t = session::VISITS, value_parser = clap::value_parser!(u8).range(1..=9))]
    pub visits: u8,
    /// Show the plan, as text, and exit.
    #[arg(long)]
    pub dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  muster run cbd -w 'node[001-128]'
  muster run cbd -w node007 --profile standard     longer steps, for a closer look
  muster run cbd-light -w @canary --json --fail-on warn
  muster run regular -w @rack7 --job-hours 72      what muster select recommends
  muster run cbd --visits 5                        more patience with a noisy fleet
  muster run build-out --dry-run";

/// Runs it.
pub async fn run(options: &Options, config: &Config) -> Ended {
    if options.dry_run && options.say.json {
        return Err(Problem { code: USAGE, error: anyhow!("--dry-run shows the plan as text; it has no --json") });
    }
    let mut playbook = session::playbook(&options.playbook)?;
    playbook.profile = options.profile.unwrap_or(playbook.profile);
    let mut nodes = session::nodes_for_work(config, &options.pick)?;
    if playbook.selects() {
        let advice = selected(&mut playbook, &mut nodes, options, config)?;
        if nodes.is_empty() {
            return nothing(&advice, &options.say);
        }
    } else if options.ask.given() {
        let why = anyhow!(
            "{} leaves nothing to the Selector: --job-hours, --p0 and --budget mean nothing to it",
            playbook.name
        );
        return Err(Problem { code: USAGE, error: why });
    }
    if options.dry_run {
        let names: Vec<String> = nodes.into_iter().map(|n| n.name).collect();
        out::line(muster_playbook::plan(&playbook, &names).to_string().trim_end())?;
        out::line(&format!("\n{}", delivery(names.len(), config)))?;
        return Ok(PASS);
    }
    let mut store = database::write(config)?;
    let settings = session::settings_for(config, &nodes).await?;
    let job =
        session::Job { fresh: options.new, visits: options.visits, ..session::Job::new(playbook, nodes, settings) };
    let done = session::headless(job, &mut store, config, &options.say).await?;
    session::finish(&done, &options.say)
}

/// Keeps the benchmarks and the nodes that the Selector asks for.
fn selected(
    playbook: &mut Playbook,
    nodes: &mut Vec<Node>,
    options: &Options,
    config: &Config,
) -> Result<Advice, Problem> {
    let names: Vec<String> = nodes.iter().map(|n| n.name.clone()).collect();
    let ask = options.ask.question();
    let store = database::write(config)?;
    let basis = stored_basis(&store, (&names, playbook), None, vec![ask.job_hours])?;
    let advice = Advice::new(&basis, &ask);
    if !options.say.quiet {
        select::told(&select::held(&store, config, &names, None)?.nodes).into_iter().for_each(out::note);
        out::note(&advice.selection.reason);
    }
    let picks: Vec<String> = advice.selection.picks.iter().map(|pick| pick.benchmark.clone()).collect();
    *playbook = playbook.clone().picked(&picks);
    nodes.retain(|node| advice.validate.contains(&node.name));
    Ok(advice)
}

/// No run begins where nothing has to run; what there is to say is why.
fn nothing(advice: &Advice, say: &Say) -> Ended {
    if say.json {
        out::json(advice)?;
    } else {
        out::line(&advice.selection.reason)?;
    }
    Ok(PASS)
}
