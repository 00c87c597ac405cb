//! `muster man`: the manual as files, made of the same words as the help.

use std::fs::Permissions;
use std::io::Result;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use muster_playbook::report::rfc3339;

use super::help::TOPICS;
use crate::clock::now_ms;
use crate::exit::{Code, Ended, IO, PASS};
use crate::out;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  muster man --out /usr/local/share/man")]
pub struct Options {
    /// Folder for man1 and man7.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// Writes the pages.
pub fn run(options: &Options) -> Ended {
    for (path, page) in pages().code(IO)? {
        let path = options.out.join(path);
        folder(path.parent().unwrap_or(&options.out)).code(IO)?;
        out::replace(&path, &page, out::PUBLIC).code(IO)?;
    }
    Ok(PASS)
}

/// A folder that everybody may read, as a manual is.
fn folder(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o755))
}

/// Every page with the place where it belongs.
fn pages() -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let whole = super::definition();
    let mut found = Vec::new();
    each(&whole, &mut |command| {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        found.push((Path::new("man1").join(format!("{name}.1")), of_command(command)?));
        Ok(())
    })?;
    for topic in &TOPICS {
        let page = of_topic(topic.name, topic.about, &(topic.text)(&whole))?;
        found.push((Path::new("man7").join(format!("muster-{}.7", topic.name)), page));
    }
    Ok(found)
}

fn each(command: &Command, seen: &mut dyn FnMut(&Command) -> Result<()>) -> Result<()> {
    seen(command)?;
    told(command).try_for_each(|inner| each(inner, seen))
}

/// Its subcommands with pages; what `help` can be asked for has pages of its own.
fn told(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
}

fn of_command(command: &Command) -> Result<Vec<u8>> {
    let root = !command.get_display_name().is_some_and(|name| name.contains('-'));
    // What every subcommand takes is said once, in muster(1).
    let own = command.clone().mut_args(|argument| {
        let shared = argument.is_global_set() && !root;
        argument.hide(shared)
    });
    let page = man(own);
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if told(command).next().is_some() {
        page.render_subcommands_section(&mut text)?;
    }
    let mut rest = Roff::new();
    if let Some(help) = command.get_after_help() {
        below(&mut rest, &help.to_string());
    }
    see_also(&mut rest, root);
    rest.to_writer(&mut text)?;
    Ok(text)
}

fn man(command: Command) -> Man {
    let version = concat!("muster ", env!("CARGO_PKG_VERSION"));
    Man::new(command).source(version).manual("muster").date(date())
}

/// Today, or the day that packagers set, so that the same source always makes the same pages.
fn date() -> String {
    let set = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse::<u64>().ok());
    let at = rfc3339(set.map_or_else(now_ms, |seconds| seconds.saturating_mul(1000)));
    at.split('T').next().unwrap_or_default().to_owned()
}

/// What stands below the options in the help: examples as they are typed, exit codes, and what else there is.
fn below(page: &mut Roff, help: &str) {
    for paragraph in help.split("\n\n") {
        let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        let (heading, body) = match first.trim_end_matches(':') {
            "Example" | "Examples" => ("EXAMPLES", rest),
            "Topics" => ("TOPICS", rest),
            "Exit codes" => ("EXIT STATUS", rest),
            _ if first.starts_with("Exit codes") => ("EXIT STATUS", paragraph),
            _ => ("NOTES", paragraph),
        };
        page.control("SH", [heading]);
        verbatim(page, body);
    }
}

/// Lines as they are.
fn verbatim(page: &mut Roff, text: &str) {
    page.control("nf", []);
    for line in text.trim_end().lines() {
        if line.is_empty() {
            page.control("sp", []);
        } else {
            page.text([roman(line)]);
        }
    }
    page.control("fi", []);
}

fn see_also(page: &mut Roff, root: bool) {
    let topics = TOPICS.iter().map(|topic| format!("muster-{}(7)", topic.name));
    let first = (!root).then(|| "muster(1)".to_owned());
    page.control("SH", ["SEE ALSO"]);
    page.text([roman(first.into_iter().chain(topics).collect::<Vec<_>>().join(", "))]);
}

fn of_topic(name: &str, about: &str, text: &str) -> Result<Vec<u8>> {
    let mut page = Roff::new();
    let name = format!("muster-{name}");
    let version = concat!("muster ", env!("CARGO_PKG_VERSION"));
    page.control("TH", [name.as_str(), "7", &date(), version, "muster"]);
    page.control("SH", ["NAME"]);
    page.text([roman(format!("{name} - {about}"))]);
    page.control("SH", ["DESCRIPTION"]);
    verbatim(&mut page, text);
    let mut bytes = Vec::new();
    page.to_writer(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole names of all subcommands that help shows, joined as pages are.
    fn names(command: &Command, name: &str, found: &mut Vec<String>) {
        found.push(format!("man1/{name}.1"));
        for inner in told(command) {
            names(inner, &format!("{name}-{}", inner.get_name()), found);
        }
    }

    fn page(name: &str) -> String {
        let found = pages().unwrap().into_iter().find(|(path, _)| path.ends_with(name));
        String::from_utf8(found.unwrap().1).unwrap()
    }

    #[test]
    fn every_subcommand_and_every_topic_has_a_page_and_nothing_else_has() {
        let mut expected = Vec::new();
        names(&crate::cli::definition(), "muster", &mut expected);
        expected.extend(TOPICS.iter().map(|topic| format!("man7/muster-{}.7", topic.name)));
        let mut found: Vec<String> = pages().unwrap().iter().map(|(path, _)| path.display().to_string()).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
        assert!(found.len() > 55, "{}", found.len());
    }

    #[test]
    fn what_every_subcommand_takes_stands_on_the_first_page_alone() {
        let (whole, results) = (page("muster.1"), page("muster-results.1"));
        assert!(whole.contains("\\-\\-ssh\\-config") && whole.contains("SETTINGS OF EVERY SUBCOMMAND"), "{whole}");
        assert!(!results.contains("ssh\\-config") && results.contains("\\-\\-strict"), "{results}");
    }

    #[test]
    fn every_page_says_its_day() {
        let day =
            |line: &str| line.split_whitespace().any(|word| word.trim_matches('"').len() == 10 && word.contains("20"));
        for (path, page) in pages().unwrap() {
            let page = String::from_utf8(page).unwrap();
            assert!(page.lines().any(|line| line.starts_with(".TH") && day(line)), "{}", path.display());
        }
    }

    #[test]
    fn examples_stand_as_they_are_typed_and_exit_codes_by_themselves() {
        let results = page("muster-results.1");
        let (_, below) = results.split_once(".SH EXAMPLES\n.nf\n").unwrap();
        assert!(below.starts_with("  muster results\n"), "{below}");
        assert!(below.contains(".SH \"EXIT STATUS\"\n.nf\nExit codes, over the nodes shown: 0 all passed"), "{below}");
    }
}
