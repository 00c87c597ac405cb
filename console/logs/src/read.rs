//! From the text of a rule file to rules.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::pattern::{Pattern, Row};
use super::{BadRule, Field, Kind, Part, Rule, RuleId, Stream};
use crate::Category;
use crate::fault::Fault;

/// Least examples of a rule, and of a table as a whole.
const EXAMPLES: usize = 2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Single {
    id: String,
    #[serde(rename = "match")]
    expression: String,
    unless: Option<String>,
    #[serde(default, rename = "where")]
    stream: Stream,
    since: Option<String>,
    until: Option<String>,
    source: String,
    examples: Vec<String>,
    #[serde(default)]
    not: Vec<String>,
    kind: Kind,
    part: Part,
    category: Option<Category>,
    fault: Option<Fault>,
    meaning: String,
    #[serde(default)]
    action: String,
    #[serde(default)]
    follows: Vec<String>,
    #[serde(default)]
    ends: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ByCode {
    id: String,
    #[serde(rename = "match")]
    expression: String,
    unless: Option<String>,
    #[serde(default, rename = "where")]
    stream: Stream,
    since: Option<String>,
    until: Option<String>,
    source: String,
    examples: Vec<Example>,
    #[serde(default)]
    not: Vec<String>,
    row: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    id: String,
    line: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Coded {
    id: Option<String>,
    /// Rules that say the same; none for what no other row covers.
    #[serde(default)]
    codes: Vec<u64>,
    when: Option<String>,
    source: Option<String>,
    kind: Kind,
    part: Part,
    category: Option<Category>,
    fault: Option<Fault>,
    meaning: String,
    #[serde(default)]
    action: String,
    #[serde(default)]
    follows: Vec<String>,
    #[serde(default)]
    ends: Vec<String>,
}

/// Rules of one file, numbered from `first`.
pub(crate) struct File {
    pub(crate) rules: Vec<Rule>,
    pub(crate) patterns: Vec<Pattern>,
}

/// Reads the text of one file.
pub(crate) fn read(file: &str, text: &str, first: usize) -> Result<File, BadRule> {
    let mut reader = Reader { file, family: String::new(), first, rules: Vec::new(), patterns: Vec::new() };
    let mut root: Table = text.parse().map_err(|why: toml::de::Error| reader.bad("", "", sentence(&why)))?;
    let family = root.remove("family");
    let family =
        family.as_ref().and_then(Value::as_str).ok_or_else(|| reader.bad("", "", "lacks family".to_owned()))?;
    family.clone_into(&mut reader.family);
    let (singles, tables) = (reader.list(&mut root, "rule")?, reader.list(&mut root, "table")?);
    if let Some(key) = root.keys().next() {
        return Err(reader.bad("", "", format!("there is no {key} in a rule file, only family, rule and table")));
    }
    for entry in singles {
        reader.single(entry)?;
    }
    for entry in tables {
        reader.by_code(entry)?;
    }
    Ok(File { rules: reader.rules, patterns: reader.patterns })
}

struct Reader<'a> {
    file: &'a str,
    family: String,
    first: usize,
    rules: Vec<Rule>,
    patterns: Vec<Pattern>,
}

impl Reader<'_> {
    fn bad(&self, rule: &str, field: &str, why: String) -> BadRule {
        BadRule { file: self.file.to_owned(), rule: rule.to_owned(), field: field.to_owned(), why }
    }

    fn list(&self, root: &mut Table, key: &str) -> Result<Vec<Table>, BadRule> {
        let table = |value| match value {
            Value::Table(table) => Ok(table),
            _ => Err(self.bad("", "", format!("{key} is written [[{key}]]"))),
        };
        match root.remove(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(entries)) => entries.into_iter().map(table).collect(),
            Some(_) => Err(self.bad("", "", format!("{key} is written [[{key}]]"))),
        }
    }

    /// One entry, with a word on the field that is wrong.
    fn entry<T: DeserializeOwned>(&self, entry: Table, known_as: &str) -> Result<T, BadRule> {
        let id = entry.get("id").and_then(Value::as_str).unwrap_or(known_as).to_owned();
        entry.try_into().map_err(|why: toml::de::Error| self.bad(&id, "", sentence(&why)))
    }

    fn single(&mut self, entry: Table) -> Result<(), BadRule> {
        let known_as = format!("number {}", self.rules.len() + 1);
        let entry: Single = self.entry(entry, &known_as)?;
        let mut pattern = self.pattern(&entry.id, &entry.expression, entry.unless.as_deref(), entry.stream)?;
        if entry.examples.len() < EXAMPLES {
            return Err(self.bad(&entry.id, "examples", format!("needs {EXAMPLES} examples or more")));
        }
        let rule = Rule {
            place: RuleId(0),
            family: String::new(),
            specificity: specificity(&pattern),
            id: entry.id,
            kind: entry.kind,
            part: entry.part,
            category: entry.category,
            fault: entry.fault,
            stream: entry.stream,
            meaning: entry.meaning,
            action: entry.action,
            source: entry.source,
            since: entry.since,
            until: entry.until,
            follows: entry.follows,
            ends: entry.ends,
            examples: entry.examples,
            not: entry.not,
        };
        pattern.step = rule.kind == Kind::Progress && pattern.captures_field(Field::Step);
        let rule = self.add(rule)?;
        pattern.rows.push(Row { rule, code: None, when: None });
        self.patterns.push(pattern);
        Ok(())
    }

    fn by_code(&mut self, entry: Table) -> Result<(), BadRule> {
        let entry: ByCode = self.entry(entry, "a table")?;
        let mut pattern = self.pattern(&entry.id, &entry.expression, entry.unless.as_deref(), entry.stream)?;
        if !pattern.captures_field(Field::Code) {
            return Err(self.bad(&entry.id, "match", "a table's expression captures code".to_owned()));
        }
        if entry.examples.len() < EXAMPLES {
            return Err(self.bad(&entry.id, "examples", format!("needs {EXAMPLES} examples or more")));
        }
        let from = self.rules.len();
        for row in &entry.row {
            self.row(&entry, row.clone(), &mut pattern)?;
        }
        for example in entry.examples {
            let Some(rule) = self.rules[from..].iter_mut().find(|rule| rule.id == example.id) else {
                return Err(self.bad(&entry.id, "examples", format!("no row is called {}", example.id)));
            };
            rule.examples.push(example.line);
        }
        self.patterns.push(pattern);
        Ok(())
    }

    fn row(&mut self, table: &ByCode, row: Table, pattern: &mut Pattern) -> Result<(), BadRule> {
        let coded: Coded = self.entry(row, &format!("{}, a row", table.id))?;
        let codes: Vec<Option<u64>> =
            if coded.codes.is_empty() { vec![None] } else { coded.codes.iter().map(|code| Some(*code)).collect() };
        for code in codes {
            let plain = code.map_or_else(|| format!("{}-other", table.id), |code| format!("{}-{code}", table.id));
            let id = match (&coded.id, code) {
                (Some(id), Some(code)) if coded.codes.len() > 1 => format!("{id}-{code}"),
                (Some(id), _) => id.clone(),
                (None, _) => plain,
            };
            let rule = Rule {
                place: RuleId(0),
                id,
                family: String::new(),
                kind: coded.kind,
                part: coded.part,
                category: coded.category,
                fault: coded.fault,
                stream: table.stream,
                meaning: coded.meaning.clone(),
                action: coded.action.clone(),
                source: coded.source.clone().unwrap_or_else(|| table.source.clone()),
                since: table.since.clone(),
                until: table.until.clone(),
                follows: coded.follows.clone(),
                ends: coded.ends.clone(),
                specificity: specificity(pattern),
                examples: Vec::new(),
                not: table.not.clone(),
            };
            let rule = self.add(rule)?;
            pattern.rows.push(Row { rule, code, when: coded.when.clone() });
        }
        Ok(())
    }

    fn pattern(&self, id: &str, match_: &str, unless: Option<&str>, stream: Stream) -> Result<Pattern, BadRule> {
        Pattern::new(match_, unless, stream).map_err(|(field, why)| self.bad(id, field, why))
    }

    fn add(&mut self, rule: Rule) -> Result<RuleId, BadRule> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if rule.id.is_empty() || !rule.id.chars().all(plain) {
            return Err(self.bad(&rule.id, "id", "is of lower-case letters, digits and hyphens".to_owned()));
        }
        for (field, text) in [("meaning", &rule.meaning), ("source", &rule.source)] {
            if text.trim().is_empty() {
                return Err(self.bad(&rule.id, field, "is empty".to_owned()));
            }
        }
        if rule.kind.may_be_root() && rule.action.trim().is_empty() {
            return Err(self.bad(&rule.id, "action", "what may be a cause needs one".to_owned()));
        }
        let place = u32::try_from(self.first + self.rules.len()).map(RuleId);
        let place = place.map_err(|_| self.bad(&rule.id, "", "too many rules".to_owned()))?;
        self.rules.push(Rule { place, family: self.family.clone(), ..rule });
        Ok(place)
    }
}

/// A line that names a device points at a part; one that names a rank or peer, at a machine; other lines at nothing in particular.
fn specificity(pattern: &Pattern) -> u8 {
    let of = |field| match field {
        Field::Bus | Field::Device | Field::Link | Field::Element | Field::Gpu | Field::File | Field::Server => 2,
        Field::Peer | Field::Host | Field::Rank | Field::Pid | Field::Exception => 1,
        _ => 0,
    };
    pattern.fields_known().map(of).max().unwrap_or(0)
}

/// TOML's errors fill several lines.
fn sentence(why: &toml::de::Error) -> String {
    why.message().lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use crate::{Rule, Rules};

    const RULE: &str = r#"
        family = "some"
        [[rule]]
        id = "some-rule"
        match = "lost (?P<peer>[a-z0-9]+)"
        kind = "distributed"
        part = "network"
        meaning = "A peer is lost."
        action = "Look at it."
        source = "somewhere"
        examples = ["lost n1", "lost n2"]
    "#;

    fn refused(what: &str, instead: &str) -> String {
        assert!(RULE.contains(what));
        Rules::read([("some.toml", RULE.replace(what, instead).as_str())]).unwrap_err().to_string()
    }

    #[test]
    fn a_wrong_rule_is_refused_by_file_rule_and_field() {
        assert!(Rules::read([("some.toml", RULE)]).is_ok());
        assert_eq!(refused("(?P<peer>", "(?P<pear>"), "some.toml: rule some-rule, match: no field is called pear");
        assert_eq!(
            refused("lost (?P<peer>[a-z0-9]+)", "[0-9]+"),
            "some.toml: rule some-rule, match: no text of three bytes or more is in every match"
        );
        assert_eq!(
            refused(r#"["lost n1", "lost n2"]"#, r#"["lost n1"]"#),
            "some.toml: rule some-rule, examples: needs 2 examples or more"
        );
        assert_eq!(refused("Look at it.", " "), "some.toml: rule some-rule, action: what may be a cause needs one");
        assert!(refused("distributed", "disturbed").starts_with("some.toml: rule some-rule: "));
        assert!(refused("source =", "sauce =").starts_with("some.toml: rule some-rule: "));
        assert!(refused("family =", "tribe =").starts_with("some.toml: "));
        assert!(refused("+)\"", "+\"").starts_with("some.toml: rule some-rule, match: "));
    }

    #[test]
    fn what_a_rule_must_say_is_neither_missing_nor_blank_and_a_file_holds_nothing_else() {
        let letters = "is of lower-case letters, digits and hyphens";
        assert_eq!(refused("some-rule", ""), format!("some.toml: {letters}"));
        for wrong in ["Some-rule", "some_rule", "some rule"] {
            assert_eq!(refused("some-rule", wrong), format!("some.toml: rule {wrong}, id: {letters}"));
        }
        assert_eq!(refused("A peer is lost.", " "), "some.toml: rule some-rule, meaning: is empty");
        assert_eq!(refused("somewhere", " "), "some.toml: rule some-rule, source: is empty");
        let quiet = RULE.replace("distributed", "notice").replace("Look at it.", "");
        assert!(Rules::read([("some.toml", quiet.as_str())]).is_ok(), "only what may be a cause needs an action");
        let other = refused("family =", "kin = 3\nfamily =");
        assert_eq!(other, "some.toml: there is no kin in a rule file, only family, rule and table");
        assert_eq!(refused("[[rule]]", "[rule]"), "some.toml: rule is written [[rule]]");
        let of_numbers = Rules::read([("some.toml", "family = 'some'\nrule = [3]")]).unwrap_err().to_string();
        assert_eq!(of_numbers, "some.toml: rule is written [[rule]]");
    }

    const TABLE: &str = r#"
        family = "some"
        [[table]]
        id = "lamp"
        match = "lamp (?P<code>[0-9]+)"
        source = "somewhere"
        examples = [{id = "red-1", line = "lamp 1"}, {id = "lamp-3", line = "lamp 3"}, {id = "lamp-other", line = "lamp 9"}]
        [[table.row]]
        id = "red"
        codes = [1, 2]
        kind = "notice"
        part = "node"
        meaning = "It is red."
        source = "elsewhere"
        [[table.row]]
        codes = [3]
        kind = "notice"
        part = "node"
        meaning = "It is green."
        [[table.row]]
        kind = "benign"
        part = "node"
        meaning = "It is on."
    "#;

    #[test]
    fn every_code_of_a_table_is_a_rule_of_its_own_with_the_examples_that_name_it() {
        let rules = Rules::read([("some.toml", TABLE)]).unwrap();
        let examples = |rule: &Rule| rule.examples.join(", ");
        let told: Vec<(&str, &str, &str, String)> = rules
            .iter()
            .map(|rule| (rule.id.as_str(), rule.meaning.as_str(), rule.source.as_str(), examples(rule)))
            .collect();
        assert_eq!(
            told,
            [
                ("red-1", "It is red.", "elsewhere", "lamp 1".to_owned()),
                ("red-2", "It is red.", "elsewhere", String::new()),
                ("lamp-3", "It is green.", "somewhere", "lamp 3".to_owned()),
                ("lamp-other", "It is on.", "somewhere", "lamp 9".to_owned()),
            ]
        );
        let refused = |what: &str, instead: &str| {
            assert!(TABLE.contains(what));
            Rules::read([("some.toml", TABLE.replace(what, instead).as_str())]).unwrap_err().to_string()
        };
        assert_eq!(
            refused("(?P<code>[0-9]+)", "[0-9]+"),
            "some.toml: rule lamp, match: a table's expression captures code"
        );
        assert_eq!(
            refused(r#", {id = "lamp-3", line = "lamp 3"}, {id = "lamp-other", line = "lamp 9"}"#, ""),
            "some.toml: rule lamp, examples: needs 2 examples or more"
        );
        let two = TABLE.replace(r#"{id = "red-1", line = "lamp 1"}, "#, "");
        assert!(Rules::read([("some.toml", two.as_str())]).is_ok());
        assert_eq!(refused(r#"id = "red-1""#, r#"id = "red""#), "some.toml: rule lamp, examples: no row is called red");
        assert!(refused("It is green.", "").starts_with("some.toml: rule lamp-3, meaning: "));
    }

    #[test]
    fn ids_are_unique_and_what_follows_follows_something_and_not_itself() {
        let twice = Rules::read([("a.toml", RULE), ("b.toml", RULE)]).unwrap_err().to_string();
        assert_eq!(twice, "b.toml: rule some-rule, id: is there already, in a.toml");
        let unknown = refused("source =", "follows = [\"other\"]\nsource =");
        assert_eq!(unknown, "some.toml: rule some-rule, follows: there is no rule other");
        let itself = refused("source =", "follows = [\"some-rule\"]\nsource =");
        assert_eq!(itself, "some.toml: rule some-rule, follows: leads back to itself");
    }

    #[test]
    fn how_exactly_a_rule_points_at_a_part_is_that_of_the_most_exact_field_that_it_reads() {
        let of = |field: &str| {
            let text = RULE.replace("(?P<peer>", &format!("(?P<{field}>"));
            Rules::read([("some.toml", text.as_str())]).unwrap().iter().next().unwrap().specificity
        };
        for exact in ["bus", "device", "link", "element", "gpu", "file", "server"] {
            assert_eq!(of(exact), 2, "{exact}");
        }
        for vague in ["peer", "host", "rank", "pid", "exception"] {
            assert_eq!(of(vague), 1, "{vague}");
        }
        assert_eq!((of("seq"), of("message")), (0, 0));
        let both = RULE.replace(r#""lost (?P<peer>[a-z0-9]+)""#, r"'(?P<seq>\d+) lost (?P<peer>[a-z0-9]+)'");
        assert_eq!(Rules::read([("some.toml", both.as_str())]).unwrap().iter().next().unwrap().specificity, 1);
    }

    #[test]
    fn a_rule_without_a_name_is_told_by_its_number_and_a_row_by_its_table() {
        assert!(refused("id = \"some-rule\"", "").starts_with("some.toml: rule number 1: missing field `id`"));
        let second = format!("{RULE}{}", RULE.replace("family = \"some\"", "").replace("id = \"some-rule\"", ""));
        let why = Rules::read([("some.toml", second.as_str())]).unwrap_err().to_string();
        assert!(why.starts_with("some.toml: rule number 2: "), "{why}");
        let row = TABLE.replace("kind = \"benign\"", "");
        let why = Rules::read([("some.toml", row.as_str())]).unwrap_err().to_string();
        assert!(why.starts_with("some.toml: rule lamp, a row: "), "{why}");
    }

    #[test]
    fn a_rule_is_found_by_its_place_and_its_name_over_all_files() {
        let rules = Rules::read([("some.toml", RULE), ("lamps.toml", TABLE)]).unwrap();
        for rule in rules.iter() {
            assert_eq!(rules.rule(rule.place()).id, rule.id);
            assert_eq!(rules.by_id(&rule.id).map(|found| &found.id), Some(&rule.id));
        }
        assert!(rules.by_id("lamp").is_none());
        let expressions: Vec<&str> = rules.expressions().collect();
        assert_eq!(expressions, ["lost (?P<peer>[a-z0-9]+)", "lamp (?P<code>[0-9]+)"]);
    }

    #[test]
    fn a_circle_of_rules_is_refused_however_long_it_is_and_a_chain_is_not() {
        let rule = |id: &str, follows: &str| {
            let text = RULE.replace("family = \"some\"", "").replace("some-rule", id);
            text.replace("source =", &format!("follows = [\"{follows}\"]\nsource ="))
        };
        let all = |last: &str| format!("family = \"some\"\n{}{}{}", rule("a", "b"), rule("b", "c"), rule("c", last));
        let why = |text: String| Rules::read([("some.toml", text.as_str())]).map(|_| ()).map_err(|why| why.to_string());
        assert_eq!(why(all("a")), Err("some.toml: rule a, follows: leads back to itself".to_owned()));
        assert_eq!(why(all("b")), Err("some.toml: rule b, follows: leads back to itself".to_owned()));
        let chain = format!("{}{}", all("d"), rule("d", "e").replace("follows = [\"e\"]", ""));
        assert_eq!(why(chain), Ok(()));
        let ends = RULE.replace("source =", "ends = [\"other\"]\nsource =");
        assert_eq!(why(ends), Err("some.toml: rule some-rule, ends: there is no rule other".to_owned()));
    }
}
