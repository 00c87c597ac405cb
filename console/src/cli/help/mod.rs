//! `muster help TOPIC`: what concerns several subcommands. The help of a subcommand is clap's own.

mod codes;
mod plain;
mod topics;

pub use topics::{TOPICS, list};

/// The topic that is asked for by these words of a command line.
#[must_use]
pub fn asked(words: &[String]) -> Option<String> {
    let [help, word] = words else { return None };
    let topic = TOPICS.iter().find(|topic| help == "help" && topic.name == word)?;
    Some((topic.text)(&super::definition()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_told_and_subcommands_are_left_to_their_own_help() {
        let asked = |words: &[&str]| asked(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        for topic in &TOPICS {
            assert!(asked(&["help", topic.name]).is_some_and(|text| text.lines().count() > 20));
            assert!(super::super::definition().find_subcommand(topic.name).is_none(), "{}", topic.name);
        }
        for words in [&["help"][..], &["help", "run"], &["help", "nosuch"], &["run", "selection"], &[]] {
            assert_eq!(asked(words), None, "{words:?}");
        }
    }
}
