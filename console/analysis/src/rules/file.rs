//! Which rules a file holds, and which of its rules are refused.

use serde::{Deserialize, Serialize};

use super::Test;
use super::select::Pattern;
use super::yaml::{self, Node, Value};

/// What a rule compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// `(value - baseline) / baseline`
    Variance,
    /// The value.
    Value,
    /// The value, and that it is there.
    FailureCheck,
    /// Nothing: it collects values for rules that combine others.
    Collect,
}

/// One rule that can be applied.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its key in the file.
    pub name: String,
    /// Where it starts, from 1.
    pub line: usize,
    /// What it compares.
    pub function: Function,
    /// When a value violates it; absent only where it collects.
    pub test: Option<Test>,
    /// The criterion as written, for messages.
    pub criteria: String,
    /// What a violation is filed under.
    pub category: String,
    /// Counted for other rules only; a violation does not make a node defective.
    pub store: bool,
    pub(super) patterns: Vec<Pattern>,
}

/// A rule that is not applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Its key in the file.
    pub rule: String,
    /// Where the part that is refused stands, from 1.
    pub line: usize,
    /// Why.
    pub why: String,
}

/// A file that holds no rules at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rules, line {line}: {why}")]
pub struct BadRules {
    /// Line, from 1; 0 where the file ends too soon.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

/// A rule file as read.
#[derive(Clone, Debug)]
pub struct RuleFile {
    /// Rules that can be applied, in the file's order.
    pub rules: Vec<Rule>,
    /// Rules that cannot, in the file's order. While there are any, no node passes.
    pub refused: Vec<Refusal>,
}

impl RuleFile {
    /// Reads a rule file of SuperBench 0.4 to 0.12 (`superbench: rules: name: {function, criteria, categories,
    /// metrics, store}`).
    ///
    /// # Errors
    /// When the text is not YAML or has no rules. A rule that cannot be applied is no error but a [`Refusal`].
    pub fn parse(text: &str) -> Result<Self, BadRules> {
        let root = yaml::parse(text).map_err(|(line, why)| BadRules { line, why })?;
        let bad = |why: &str| BadRules { line: root.line, why: why.to_owned() };
        let rules = root.get("superbench").and_then(|s| s.get("rules")).ok_or_else(|| bad("no superbench.rules"))?;
        let Value::Map(entries) = &rules.value else {
            return Err(BadRules { line: rules.line, why: "superbench.rules is not a mapping".to_owned() });
        };
        let mut file = Self { rules: Vec::new(), refused: Vec::new() };
        for (name, body) in entries {
            let name = name.text().unwrap_or_default();
            match rule(name, body) {
                Ok(rule) => file.rules.push(rule),
                Err((line, why)) => file.refused.push(Refusal { rule: name.to_owned(), line, why }),
            }
        }
        Ok(file)
    }
}

fn rule(name: &str, body: &Node) -> Result<Rule, yaml::Bad> {
    let word = |key: &str| match body.get(key) {
        None => Ok(None),
        Some(node) => node.text().map(|t| Some((node.line, t))).ok_or((node.line, format!("{key} must be a word"))),
    };
    let lacks = |key: &str| (body.line, format!("lacks {key}"));
    let store = match body.get("store") {
        None => false,
        Some(node) => node.truth().ok_or((node.line, "store must be true or false".to_owned()))?,
    };
    let (_, category) = word("categories")?.ok_or_else(|| lacks("categories"))?;
    let criteria = word("criteria")?;
    let function = match word("function")? {
        // With a criterion SuperBench would look for the function and fail.
        None if store && criteria.is_none() => Function::Collect,
        None => return Err(lacks("function")),
        Some((_, "variance")) => Function::Variance,
        Some((_, "value")) => Function::Value,
        Some((_, "failure_check")) => Function::FailureCheck,
        Some((line, "multi_rules")) => {
            return Err((line, "multi_rules combine rules by code, which is not run".to_owned()));
        }
        Some((line, other)) => return Err((line, format!("no function '{other}'"))),
    };
    let test = match criteria {
        _ if function == Function::Collect => None,
        None => return Err(lacks("criteria")),
        Some((line, text)) => {
            let forms = "only lambda x: x < c, x > c and x != c are read";
            Some(Test::read(text).ok_or((line, format!("criteria '{}': {forms}", muster_wire::clean(text, 200))))?)
        }
    };
    Ok(Rule {
        name: name.to_owned(),
        line: body.line,
        function,
        test,
        criteria: criteria.map_or_else(String::new, |(_, text)| text.to_owned()),
        category: category.to_owned(),
        store,
        patterns: patterns(body.get("metrics").ok_or_else(|| lacks("metrics"))?)?,
    })
}

fn patterns(metrics: &Node) -> Result<Vec<Pattern>, yaml::Bad> {
    let one = |node: &Node| {
        let text = node.text().ok_or((node.line, "a metric must be a word".to_owned()))?;
        Pattern::new(text).map_err(|why| (node.line, format!("metric '{}': {why}", muster_wire::clean(text, 200))))
    };
    match &metrics.value {
        Value::List(items) => items.iter().map(one).collect(),
        _ => Ok(vec![one(metrics)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refusal(body: &str) -> Refusal {
        let file = RuleFile::parse(&format!("superbench:\n  rules:\n    r:\n{body}")).unwrap();
        assert!(file.rules.is_empty(), "{body}");
        file.refused[0].clone()
    }

    #[test]
    fn what_is_not_one_of_the_three_forms_is_refused_with_its_line() {
        let code =
            "      function: value\n      categories: C\n      criteria: 'lambda x:print(x)'\n      metrics: a/b\n";
        let found = refusal(code);
        assert_eq!((found.rule.as_str(), found.line), ("r", 6));
        assert!(found.why.contains("print(x)"), "{}", found.why);
        assert_eq!(
            refusal("      function: multi_rules\n      categories: C\n      criteria: 'lambda l:True'\n").line,
            4
        );
        assert_eq!(refusal("      categories: C\n      store: 'true'\n      metrics: a/b\n").line, 5);
        assert!(refusal("      function: value\n      metrics: a/b\n").why.contains("categories"));
        let bad = "      function: value\n      categories: C\n      criteria: 'lambda x:x>0'\n      metrics:\n        - a/b\n        - 'a/('\n";
        assert_eq!(refusal(bad).line, 9);
    }

    #[test]
    fn a_rule_is_read_whole() {
        let text = "superbench:\n  rules:\n    r:\n      function: variance\n      criteria: lambda x:x<-0.05\n      categories: Mem\n      store: True\n      metrics:\n        - mem-bw/H2D:\\d+\n";
        let file = RuleFile::parse(text).unwrap();
        let rule = &file.rules[0];
        assert_eq!((rule.function, rule.test, rule.store), (Function::Variance, Some(Test::Below(-0.05)), true));
        assert_eq!((rule.category.as_str(), rule.patterns.len()), ("Mem", 1));
    }

    #[test]
    fn what_holds_no_rules_is_an_error_with_a_line() {
        for (text, line) in
            [("", 1), ("a: [", 1), ("a: 1\nb: *x", 2), ("superbench: 3", 1), ("superbench:\n  rules: x", 2)]
        {
            let error = RuleFile::parse(text).unwrap_err();
            assert!(error.line.abs_diff(line) <= 1, "{text:?}: {error}");
        }
        assert!(RuleFile::parse(&"[".repeat(100_000)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "[a-z:#'\"\\[\\]{}&*!|> \n-]{0,80}") {
            let _ = RuleFile::parse(&text);
        }
    }
}
