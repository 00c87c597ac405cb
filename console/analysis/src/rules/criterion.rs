//! When a value breaks a rule: the three comparisons that are read from a lambda.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A comparison with a constant; true means violated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// `x < c`
    Below(f64),
    /// `x > c`
    Above(f64),
    /// `x != c`
    Not(f64),
}

impl Test {
    /// Whether `x` violates it.
    #[must_use]
    pub fn violated(self, x: f64) -> bool {
        match self {
            Self::Below(c) => x < c,
            Self::Above(c) => x > c,
            Self::Not(c) => x != c,
        }
    }

    /// Reads `lambda x: x < -0.05` with any argument name and spacing; `None` for anything else.
    #[must_use]
    pub(super) fn read(text: &str) -> Option<Self> {
        let (argument, body) = text.trim().strip_prefix("lambda")?.split_once(':')?;
        // `lambdax` is a name, not a lambda.
        if !argument.starts_with([' ', '\t']) {
            return None;
        }
        let argument = argument.trim();
        let mut letters = argument.chars();
        let name = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
        let rest = body.trim().strip_prefix(argument).filter(|_| name)?.trim_start();
        let (make, number): (fn(f64) -> Self, &str) = if let Some(number) = rest.strip_prefix("!=") {
            (Self::Not, number)
        } else if let Some(number) = rest.strip_prefix('<') {
            (Self::Below, number)
        } else {
            (Self::Above, rest.strip_prefix('>')?)
        };
        constant(number.trim()).map(make)
    }
}

/// A decimal constant; names, infinities and arithmetic are not constants.
fn constant(text: &str) -> Option<f64> {
    let plain = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E'));
    text.parse().ok().filter(|v: &f64| plain && v.is_finite())
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Below(c) => write!(f, "x < {c}"),
            Self::Above(c) => write!(f, "x > {c}"),
            Self::Not(c) => write!(f, "x != {c}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_three_forms_are_read() {
        assert_eq!(Test::read("lambda x:x>0.05"), Some(Test::Above(0.05)));
        assert_eq!(Test::read(" lambda  val : val < -5e-2 "), Some(Test::Below(-0.05)));
        assert_eq!(Test::read("lambda x: x != 0"), Some(Test::Not(0.0)));
        assert!(Test::Not(0.0).violated(1.0) && !Test::Below(-0.05).violated(-0.05));
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "x>5",
            "lambda x:x>=5",
            "lambda x:x<=5",
            "lambda x:x==5",
            "lambda x:y>5",
            "lambda x:xx>5",
            "lambda x:x>y",
            "lambda x:x>5 or x<1",
            "lambda x:x>inf",
            "lambda x:x>1_000",
            "lambda x:x>0x10",
            "lambda x:x>5;import os",
            "lambda x:__import__('os').system('true')",
            "lambda label: bool(min(label[\"rule1\"].values())/max(label[\"rule1\"].values())<0.95)",
            "lambdax:x>5",
            "lambda :>5",
            "",
        ] {
            assert_eq!(Test::read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "\\PC{0,40}", op in "[<>!=]{1,2}", c in proptest::num::f64::ANY) {
            let _ = Test::read(&text);
            let _ = Test::read(&format!("lambda x:x{op}{c}"));
        }
    }
}
