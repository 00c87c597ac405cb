//! What an importer says of another tool's metric. It is kept beside the values, as a fact of their record.

use std::borrow::Cow;
use std::collections::HashMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::describe::{Described, describe};
use super::entry::MetricRole;
use crate::{Category, Component, Datum, Fact, MetricId, Reading, limits};

/// Begins the key of a fact that declares a metric; the metric's `name@engine` follows.
pub const DECLARED: &str = "declare.";
const AGGREGATED: &str = "aggregated";
const RAW: &str = "raw";

/// What a metric of another tool is. Unit and direction stand in its series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// What it speaks of.
    pub component: Component,
    /// What it is used for.
    pub role: MetricRole,
    /// Whether each value is already an average of many steps, so that one value is worth as much as a series.
    pub aggregated: bool,
}

impl Declared {
    /// The fact that says so of `metric`.
    #[must_use]
    pub fn fact(&self, metric: &MetricId) -> Fact {
        let reading = Reading::Value(Datum::Text(self.text()));
        Fact { key: format!("{DECLARED}{}", within(metric)), reading, unit: None }
    }

    /// `judged aggregated gpu:3`.
    fn text(&self) -> String {
        let steps = if self.aggregated { AGGREGATED } else { RAW };
        format!("{} {steps} {}", self.role.name(), self.component)
    }

    /// The metric's `name@engine` and what `fact` declares of it; `None` where it declares nothing that is understood.
    #[must_use]
    pub fn parse(fact: &Fact) -> Option<(&str, Self)> {
        let name = fact.key.strip_prefix(DECLARED)?;
        let Some(Datum::Text(text)) = fact.reading.value() else { return None };
        if text.len() > limits::TEXT_BYTES {
            return None;
        }
        let mut words = text.splitn(3, ' ');
        let (role, steps, component) = (words.next()?, words.next()?, words.next()?);
        let role = MetricRole::ALL.into_iter().find(|known| known.name() == role)?;
        let aggregated = match steps {
            AGGREGATED => true,
            RAW => false,
            _ => return None,
        };
        Some((name, Self { component: Component::from_str(component).ok()?, role, aggregated }))
    }

    /// What is known of `metric`, this declared.
    #[must_use]
    pub fn describe(&self, metric: &MetricId) -> Described {
        let usual = describe(metric);
        let own = Category::of(self.component.kind());
        let category = if usual.component == self.component { usual.category } else { own };
        // Another tool's metric may carry the name of one of ours; what ours may not fall below is not its limit.
        let ours = usual.component == self.component && usual.role == self.role;
        Described {
            component: self.component.clone(),
            role: self.role,
            aggregated: self.aggregated,
            category,
            limit: usual.limit.filter(|_| ours),
            title: if ours { usual.title } else { Cow::Owned(usual.kind.clone().into_owned()) },
            ..usual
        }
    }
}

/// What a metric is called among those of one benchmark.
fn within(metric: &MetricId) -> String {
    format!("{}@{}", metric.name, metric.engine)
}

/// Everything that the facts of one record declare.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declarations(HashMap<String, Declared>);

impl Declarations {
    /// Reads the facts of one record; what is not understood is left out.
    #[must_use]
    pub fn of<'a>(facts: impl IntoIterator<Item = &'a Fact>) -> Self {
        let known = facts.into_iter().filter_map(Declared::parse);
        Self(known.take(limits::FACTS).map(|(name, declared)| (name.to_owned(), declared)).collect())
    }

    /// What is known of a metric of that record.
    #[must_use]
    pub fn describe(&self, metric: &MetricId) -> Described {
        self.0.get(&within(metric)).map_or_else(|| describe(metric), |declared| declared.describe(metric))
    }
}

/// What is known of one metric of a record with these facts; [`Declarations`] is faster for many.
#[must_use]
pub fn describe_in<'a>(facts: impl IntoIterator<Item = &'a Fact>, metric: &MetricId) -> Described {
    let (mut known, own) = (facts.into_iter().filter_map(Declared::parse), within(metric));
    match known.find(|(name, _)| *name == own) {
        Some((_, declared)) => declared.describe(metric),
        None => describe(metric),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_declared_is_heard_before_the_catalogue() {
        let (metric, other) = (MetricId::new("mem-bw", "h2d_bw:0", "superbench"), MetricId::new("mem-bw", "x", "e"));
        let declared =
            Declared { component: Component::Nic(Some("a b".into())), role: MetricRole::Tail, aggregated: true };
        let facts = [declared.fact(&metric)];
        for found in [describe_in(&facts, &metric), Declarations::of(&facts).describe(&metric)] {
            assert_eq!(
                (found.component, found.role, found.aggregated),
                (declared.component.clone(), MetricRole::Tail, true)
            );
            assert_eq!(found.category, Category::Network);
        }
        assert_eq!(describe_in(&facts, &other), describe(&other));
        assert_eq!(describe_in(&[], &metric).component, Component::Gpu(0));
    }

    #[test]
    fn a_declared_metric_of_another_part_or_role_has_neither_title_nor_limit_of_ours() {
        let all = crate::catalog::BENCHMARKS.iter();
        let metric =
            all.flat_map(|of| of.metrics.iter().map(|metric| MetricId::new(of.name, metric.pattern, "muster")));
        let mut plain = metric.filter(|id| !id.name.contains('{') && describe(id).role == MetricRole::Judged);
        let metric = plain.find(|id| describe(id).title != describe(id).kind).unwrap();
        let ours = describe(&metric);
        let declared = Declared { component: ours.component.clone(), role: ours.role, aggregated: ours.aggregated };
        assert_eq!(declared.describe(&metric).title, ours.title);
        let elsewhere = Declared { component: Component::Nic(Some("x".into())), ..declared.clone() };
        let tail = Declared { role: MetricRole::Tail, ..declared };
        for foreign in [elsewhere, tail] {
            let found = foreign.describe(&metric);
            assert_eq!((found.title, found.limit), (ours.kind.clone(), None));
        }
    }

    #[test]
    fn our_limit_is_that_of_our_metric_alone() {
        let metric = MetricId::new("cpu-burn", "core_3_pass", "own");
        let of = |component, role| Declared { component, role, aggregated: false }.describe(&metric).limit;
        assert_eq!(describe(&metric).limit, Some(1.0));
        assert_eq!(of(Component::Core(3), MetricRole::Judged), Some(1.0));
        assert_eq!(of(Component::Core(4), MetricRole::Judged), None);
        assert_eq!(of(Component::Core(3), MetricRole::Tail), None);
    }

    #[test]
    fn what_is_broken_is_what_ours_says_of_the_same_part_and_otherwise_the_part_that_was_declared() {
        let metric = MetricId::new("gpu-copy-bw", "host-to-device:0", "own");
        let of = |component| {
            let declared = Declared { component, role: MetricRole::Judged, aggregated: false };
            declared.describe(&metric).category
        };
        assert_eq!(of(Component::Gpu(0)), Category::Pcie, "a copy from the host goes over the bus");
        assert_eq!((of(Component::Gpu(1)), of(Component::Nic(None))), (Category::Gpu, Category::Network));
    }

    #[test]
    fn a_declaration_may_be_as_long_as_any_text() {
        let long = |bytes: usize| {
            let start = "judged raw nic:";
            let text = format!("{start}{}", "x".repeat(bytes - start.len()));
            let fact = Fact { key: "declare.x".into(), reading: Reading::Value(Datum::Text(text)), unit: None };
            Declared::parse(&fact).is_some()
        };
        assert!(long(limits::TEXT_BYTES) && !long(limits::TEXT_BYTES + 1));
    }

    #[test]
    fn what_is_not_a_declaration_declares_nothing() {
        let fact = |key: &str, text: &str| Fact {
            key: key.into(),
            reading: Reading::Value(Datum::Text(text.into())),
            unit: None,
        };
        for (key, text) in [
            ("declare.x", ""),
            ("declare.x", "judged"),
            ("declare.x", "judged raw"),
            ("declare.x", "judged raw gpu:"),
            ("declare.x", "judged often gpu:3"),
            ("declare.x", "guessed raw gpu:3"),
            ("declared.x", "judged raw gpu:3"),
        ] {
            assert_eq!(Declared::parse(&fact(key, text)), None, "{key} {text}");
        }
        let long = format!("judged raw nic:{}", "x".repeat(limits::TEXT_BYTES));
        assert_eq!(Declared::parse(&fact("declare.x", &long)), None);
        let absent = Fact { key: "declare.x".into(), reading: Reading::Absent, unit: None };
        assert_eq!(Declared::parse(&absent), None);
    }

    fn component() -> impl Strategy<Value = Component> {
        let name = "[a-z0-9/:_ -]{1,12}";
        prop_oneof![
            Just(Component::Cpu),
            any::<u32>().prop_map(Component::Core),
            Just(Component::Memory),
            proptest::option::of(name).prop_map(Component::Disk),
            proptest::option::of(name).prop_map(Component::Nic),
            name.prop_map(Component::IbPort),
            any::<u32>().prop_map(Component::Gpu),
            Just(Component::Gpus),
            any::<(u32, u32)>().prop_map(|(a, b)| Component::GpuLink(a.min(b), a.max(b))),
            Just(Component::Application),
            Just(Component::Node),
        ]
    }

    proptest! {
        #[test]
        fn a_declaration_survives_being_kept(
            component in component(),
            role in proptest::sample::select(MetricRole::ALL.to_vec()),
            aggregated in any::<bool>(),
            name in "\\PC{0,20}",
        ) {
            let declared = Declared { component, role, aggregated };
            let (fact, key) = (declared.fact(&MetricId::new("b", name.as_str(), "e")), format!("{name}@e"));
            prop_assert_eq!(Declared::parse(&fact), Some((key.as_str(), declared)));
        }

        #[test]
        fn no_fact_is_too_strange(key in "(declare\\.)?\\PC{0,9}", text in "((judged|tail|x) )?(raw |aggregated )?\\PC{0,12}") {
            let fact = Fact { key, reading: Reading::Value(Datum::Text(text)), unit: None };
            let _ = Declared::parse(&fact);
        }
    }
}
