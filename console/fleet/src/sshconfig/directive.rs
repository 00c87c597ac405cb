//! Of what is an SSH configuration made, once it is read?

use super::value::Setting;

/// One line, or one included file, that counts.
#[derive(Debug, Clone)]
pub(super) enum Directive {
    /// `Host`: what follows holds for aliases that match.
    Host(Vec<String>),
    /// `Match`: what follows holds when every criterion does; `None` is a block that is never followed.
    Match(Option<Vec<Criterion>>),
    /// A file in place of its `Include`.
    Include(Vec<Directive>),
    /// A setting; the first that holds wins.
    Set(Setting),
}

/// One condition of a `Match` line.
#[derive(Debug, Clone)]
pub(super) struct Criterion {
    pub(super) negated: bool,
    pub(super) subject: Subject,
    pub(super) patterns: Vec<String>,
}

/// What a condition looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    All,
    Host,
    OriginalHost,
    User,
    LocalUser,
}

/// Reads the words after `Match`. The inner `None` is a condition that is not followed here, such as `exec`.
pub(super) fn criteria(words: &[String]) -> Result<Option<Vec<Criterion>>, String> {
    let mut criteria = Vec::new();
    let mut followed = true;
    // `host=a` and `host a` are the same.
    let mut words = words.iter().flat_map(|word| match word.split_once('=') {
        Some((name, value)) if is_name(name) => vec![name, value],
        _ => vec![word.as_str()],
    });
    while let Some(word) = words.next() {
        let (negated, name) = word.strip_prefix('!').map_or((false, word), |name| (true, name));
        let name = name.to_ascii_lowercase();
        let subject = match name.as_str() {
            "all" => Some(Subject::All),
            "host" => Some(Subject::Host),
            "originalhost" => Some(Subject::OriginalHost),
            "user" => Some(Subject::User),
            "localuser" => Some(Subject::LocalUser),
            "canonical" | "final" | "exec" | "localnetwork" | "tagged" | "version" | "sessiontype" | "command" => None,
            other => return Err(format!("unknown condition {other:?} after Match")),
        };
        followed &= subject.is_some();
        let bare = matches!(name.as_str(), "all" | "canonical" | "final");
        let patterns = match (bare, if bare { None } else { words.next() }) {
            (true, _) => Vec::new(),
            (false, Some(value)) => value.split(',').map(str::to_owned).collect(),
            (false, None) => return Err(format!("expected a pattern after {name:?}")),
        };
        if let Some(subject) = subject {
            criteria.push(Criterion { negated, subject, patterns });
        }
    }
    match criteria.iter().position(|criterion| criterion.subject == Subject::All) {
        _ if criteria.is_empty() && followed => Err("expected a condition after Match, such as host or all".to_owned()),
        Some(_) if criteria.len() > 1 => Err("`all` cannot be combined with other conditions".to_owned()),
        _ => Ok(followed.then_some(criteria)),
    }
}

fn is_name(word: &str) -> bool {
    let bare = word.strip_prefix('!').unwrap_or(word);
    ["host", "originalhost", "user", "localuser", "exec"].iter().any(|name| bare.eq_ignore_ascii_case(name))
}
