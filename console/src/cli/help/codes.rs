//! The exit codes: of the program, and what each subcommand says of its own in its help.

use std::fmt::Write as _;

use clap::Command;

use super::plain;
use crate::exit::MEANINGS;

/// The topic.
pub fn text(whole: &Command) -> String {
    let mut text = "EXIT CODES\n\n".to_owned();
    for (code, meaning) in MEANINGS {
        let _ = writeln!(text, "  {code:>3}  {meaning}");
    }
    let mut own = Vec::new();
    let mut lenient = Vec::new();
    each(whole, &mut |name, command| {
        own.extend(paragraph(command).map(|said| (name.to_owned(), said)));
        if command.get_arguments().any(|argument| argument.get_long() == Some("fail-on")) {
            lenient.push(name.to_owned());
        }
    });
    let lenient = lenient.join(", ");
    let moved = format!("--fail-on fail or unknown exits with 0 for what is milder; of {lenient}.");
    let _ = write!(text, "\n{}\nWHAT SUBCOMMANDS SAY OF THEIR OWN\n", plain::wrap(&moved, 0));
    for (name, said) in own {
        let _ = write!(text, "\n  {name}\n{}", plain::wrap(&said, 6));
    }
    text
}

/// Calls `seen` for every subcommand that is shown, with its whole name.
fn each(command: &Command, seen: &mut dyn FnMut(&str, &Command)) {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help") {
        seen(inner.get_bin_name().unwrap_or_default(), inner);
        each(inner, seen);
    }
}

/// What its help says of exit codes.
fn paragraph(command: &Command) -> Option<String> {
    let help = command.get_after_help()?.to_string();
    let (_, said) = help.split_once("Exit codes")?;
    let said = said.split("\n\n").next()?.trim_start_matches([':', ',']);
    Some(said.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_and_every_subcommand_with_codes_of_its_own_is_in_the_topic() {
        let whole = crate::cli::definition();
        let text = text(&whole);
        for (code, meaning) in MEANINGS {
            assert!(text.contains(&format!("{code:>3}  {meaning}")), "{text}");
        }
        for name in ["muster watch", "muster watch evaluate", "muster gate", "muster drain", "muster triage"] {
            assert!(text.contains(&format!("\n  {name}\n      ")), "{text}");
        }
        assert!(text.contains("muster run, ") && text.contains("muster results"), "{text}");
    }
}
