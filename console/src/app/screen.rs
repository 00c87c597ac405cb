//! What the terminal can show.

use muster_tui::Screen;

use crate::config::Config;

/// How the screen draws, and where it opens.
#[must_use]
pub fn options(config: &Config, ascii: bool, first: Screen) -> muster_tui::Options {
    let color = match config.color.value.as_str() {
        "always" => true,
        "never" => false,
        _ => std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
    };
    muster_tui::Options { ascii: ascii || !draws_unicode(&|name| std::env::var(name).ok()), color, first }
}

/// Whether the locale and the terminal can show more than ASCII, as far as the environment says it.
fn draws_unicode(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let given = |name: &&str| variable(name).filter(|value| !value.is_empty());
    // In this order, as setlocale(3) does.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(given).unwrap_or_default().to_lowercase();
    let plain = ["dumb", "linux", "vt52", "vt100", "vt102", "vt220", "ansi"];
    let terminal = variable("TERM").unwrap_or_default();
    (locale.contains("utf-8") || locale.contains("utf8")) && !plain.contains(&terminal.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_or_a_terminal_that_cannot_gets_ascii() {
        let draws = |set: &[(&str, &str)]| {
            draws_unicode(&|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert!(draws(&[("LANG", "en_GB.UTF-8"), ("TERM", "xterm-256color")]));
        assert!(draws(&[("LANG", "C"), ("LC_CTYPE", "C.utf8"), ("TERM", "screen")]));
        assert!(!draws(&[("LANG", "en_GB.UTF-8"), ("LC_ALL", "C"), ("TERM", "xterm")]));
        assert!(!draws(&[("LANG", "en_GB.UTF-8"), ("TERM", "linux")]));
        assert!(!draws(&[("TERM", "xterm")]));
    }
}
