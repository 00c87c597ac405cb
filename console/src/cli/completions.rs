//! `muster completions`: a completion script for a shell.

use clap::Args;
use clap_complete::Shell;

use crate::exit::{Ended, PASS};
use crate::out;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  muster completions bash > /etc/bash_completion.d/muster")]
pub struct Options {
    /// Which shell.
    pub shell: Shell,
}

/// Writes the script to standard output.
pub fn run(options: &Options) -> Ended {
    // A writer that fails is a panic there.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut super::definition(), "muster", &mut script);
    out::by(|to| Ok(to.write_all(&script)?))?;
    Ok(PASS)
}
