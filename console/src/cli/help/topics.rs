//! What concerns several subcommands: said once, for `muster help`, for the manual and on the web.

use std::fmt::Write as _;

use clap::Command;

use super::{codes, plain};

/// One topic.
#[derive(Debug)]
pub struct Topic {
    /// As a person types it.
    pub name: &'static str,
    /// In one line.
    pub about: &'static str,
    /// The text for a terminal of 80 columns, given the whole command line.
    pub text: fn(&Command) -> String,
}

/// All of them.
pub const TOPICS: [Topic; 3] = [
    Topic { name: "exit-codes", about: "what the program's exit code says, of each subcommand", text: codes::text },
    Topic { name: "selection", about: "how nodes are named: lists, groups, labels, files, jobs", text: selection },
    Topic { name: "verdicts", about: "how a node is judged", text: verdicts },
];

const SELECTION: &str = include_str!("../../../../docs/SELECTION.md");
const VERDICTS: &str = include_str!("../../../../docs/VERDICTS.md");
/// Where the figures begin that a terminal does not need.
const FIGURES: &str = "\n## How often this is right";

fn selection(_: &Command) -> String {
    plain::render(SELECTION)
}

fn verdicts(_: &Command) -> String {
    let told = VERDICTS.split(FIGURES).next().unwrap_or(VERDICTS);
    plain::render(told) + "\nHow often this is right: docs/VERDICTS.md.\n"
}

/// One line for each, below a heading.
#[must_use]
pub fn list() -> String {
    let mut text = "Topics:\n".to_owned();
    for topic in &TOPICS {
        let _ = writeln!(text, "  muster help {:<12} {}", topic.name, topic.about);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_has_a_text_that_fits_a_terminal_and_holds_no_markup() {
        let whole = crate::cli::definition();
        for topic in &TOPICS {
            let text = (topic.text)(&whole);
            assert!(text.lines().count() > 20, "{}: {text}", topic.name);
            let wide = text.lines().find(|line| line.chars().count() > 80);
            assert_eq!(wide, None, "{}", topic.name);
            for markup in ["**", "](", "```", "| ", "\n#"] {
                assert!(!text.contains(markup), "{}: {markup} in {text}", topic.name);
            }
        }
    }

    #[test]
    fn the_figures_of_the_verdicts_are_left_to_their_page() {
        assert!(VERDICTS.contains(FIGURES));
        assert!(!verdicts(&Command::new("muster")).contains("healthy runs | with a fail"));
    }
}
