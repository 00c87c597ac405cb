//! `muster completions`: a completion script for a shell.

use clap::Args;
use clap_complete::Shell;

use crate::exit::{Ended, PASS};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  muster completions bash > /etc/bash_completion.d/muster")]
pub struct Options {
    /// Which shell.
    pub shell: Shell,
}

/// Writes the script to standard output.
pub fn run(options: &Options) -> Ended {
    clap_complete::generate(options.shell, &mut super::definition(), "muster", &mut std::io::stdout());
    Ok(PASS)
}
