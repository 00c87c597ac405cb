//! Why rules were refused.

use thiserror::Error;

/// Why rules were refused: which file, which rule, which field.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}: {}{why}", at(.rule, .field))]
pub struct BadRule {
    /// Name of the text, as the caller gave it.
    pub file: String,
    /// Id of the rule; empty where the whole file is meant.
    pub rule: String,
    /// Field of the rule; empty where the whole rule is meant.
    pub field: String,
    /// What is wrong.
    pub why: String,
}

fn at(rule: &str, field: &str) -> String {
    match (rule, field) {
        ("", _) => String::new(),
        (rule, "") => format!("rule {rule}: "),
        (rule, field) => format!("rule {rule}, {field}: "),
    }
}
