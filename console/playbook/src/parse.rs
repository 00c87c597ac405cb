//! Whether a text is a playbook: every problem in it, each with its place, or the playbook.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use muster_analysis::checks::{self, AREAS, EXPECTATIONS, LIMITS};
use muster_wire::{BENCHMARKS, Between, COLLECTORS, Collective, Profile, RANKS_PER_NODE, TRAIN_DDP, TRAIN_MODELS};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::unknown;
use crate::{Length, Pairs, Playbook, PlaybookError, Problem, Step, Train};

const PLAYBOOK_FIELDS: &[&str] = &["name", "title", "about", "profile", "steps"];
const STEP_FIELDS: &[&str] = &[
    "id",
    "about",
    "collect",
    "run",
    "check",
    "demand",
    "limits",
    "expect",
    "pairs",
    "rounds",
    "collective",
    "train_ddp",
    "profile",
    "idle_s",
    "drop_failed",
    "select",
    "limit_s",
];
const TRAIN_FIELDS: &[&str] = &["model", "ranks_per_node", "seconds", "steps", "between"];
/// Longest training: a day; and most steps of one.
const MAX_TRAIN_S: u64 = 24 * 3600;
const MAX_TRAIN_STEPS: u64 = 1_000_000;
/// Longest limit a step may set: a week.
const MAX_LIMIT_S: u64 = 7 * 24 * 3600;
/// Longest wait for an idle node: an hour.
const MAX_IDLE_S: u64 = 3600;

impl Playbook {
    /// Reads a playbook; `file` is only repeated in messages.
    ///
    /// # Errors
    /// Everything wrong with it, in the order of the file: syntax (the first fault only), unknown or missing
    /// fields, unknown benchmarks, collectors and profiles, duplicate ids, work named twice, empty steps.
    pub fn parse(text: &str, file: &str) -> Result<Self, PlaybookError> {
        let mut reader = Reader { text, problems: Vec::new(), ids: BTreeMap::new(), works: BTreeMap::new() };
        let playbook = match DeTable::parse(text) {
            Ok(root) => reader.playbook(root.get_ref(), &(0..0)),
            Err(error) => {
                let message = error.message().lines().next().unwrap_or("not TOML").to_owned();
                reader.problem(&error.span().unwrap_or(0..0), format!("not TOML: {message}"));
                None
            }
        };
        match playbook {
            Some(playbook) if reader.problems.is_empty() => Ok(playbook),
            _ => {
                reader.problems.sort_by_key(|problem| (problem.line, problem.column));
                Err(PlaybookError { file: file.to_owned(), problems: reader.problems })
            }
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    problems: Vec<Problem>,
    /// Step id to the line that used it first.
    ids: BTreeMap<String, usize>,
    /// Kind and name of work to the step and line that named it first.
    works: BTreeMap<(&'static str, String), (String, usize)>,
}

impl Reader<'_> {
    fn problem(&mut self, span: &Range<usize>, message: String) {
        self.problems.push(Problem::at(self.text, span, message));
    }

    fn line(&self, span: &Range<usize>) -> usize {
        Problem::at(self.text, span, String::new()).line
    }

    fn playbook(&mut self, table: &DeTable<'_>, span: &Range<usize>) -> Option<Playbook> {
        self.known_fields(table, PLAYBOOK_FIELDS, "playbook");
        let name = self.name(table, "name", span);
        let title = self.required(table, "title", span);
        let about = self.string(table, "about").unwrap_or_default();
        let profile = self.profile(table);
        if !table.contains_key("profile") {
            self.problem(span, "the playbook has no 'profile': smoke, quick, standard or full".to_owned());
        }
        let steps = self.steps(table, span);
        Some(Playbook { name: name?, title: title?, about, profile: profile?, steps })
    }

    fn steps(&mut self, table: &DeTable<'_>, span: &Range<usize>) -> Vec<Step> {
        let Some(value) = table.get("steps") else {
            self.problem(span, "the playbook has no [[steps]]".to_owned());
            return Vec::new();
        };
        let Some(array) = value.get_ref().as_array() else {
            self.wrong_type(value, "steps", "a list of tables, written [[steps]]");
            return Vec::new();
        };
        if array.is_empty() {
            self.problem(&value.span(), "the playbook has no [[steps]]".to_owned());
        }
        array
            .iter()
            .filter_map(|item| match item.get_ref() {
                DeValue::Table(step) => self.step(step, &item.span()),
                _ => {
                    self.wrong_type(item, "steps", "a list of tables, written [[steps]]");
                    None
                }
            })
            .collect()
    }

    fn step(&mut self, table: &DeTable<'_>, span: &Range<usize>) -> Option<Step> {
        self.known_fields(table, STEP_FIELDS, "step");
        let id = self.name(table, "id", span);
        if let (Some(id), Some(value)) = (&id, table.get("id")) {
            let line = self.line(&value.span());
            match self.ids.get(id) {
                Some(first) => {
                    let message = format!("step id '{id}' is already used in line {first}");
                    self.problem(&value.span(), message);
                }
                None => drop(self.ids.insert(id.clone(), line)),
            }
        }
        let shown = id.clone().unwrap_or_else(|| "?".to_owned());
        let collect = self.works(table, "collect", &shown);
        let run = self.works(table, "run", &shown);
        let check = self.checks(table, "check");
        let demand = self.demand(table, check.as_deref().unwrap_or_default());
        let pairs = self.pairs(table, span, &shown);
        let collective = self.works(table, "collective", &shown);
        let train = self.train(table, &shown);
        let own = [&collect, &run, &check].into_iter().any(|works| works.as_ref().is_none_or(|w| !w.is_empty()));
        let together = collective.as_ref().is_none_or(|names| !names.is_empty());
        let elsewhere = "its other work belongs into another step";
        let (pairwise, trains) = (table.contains_key("pairs"), table.contains_key("train_ddp"));
        match [own, pairwise, together, trains].iter().filter(|kind| **kind).count() {
            0 => {
                let what = "'collect', 'check', 'run', 'pairs', 'collective' or 'train_ddp'";
                self.problem(span, format!("step '{shown}' does nothing: give it {what}"));
            }
            1 => {}
            _ if pairwise => self.problem(span, format!("step '{shown}' measures pairs: {elsewhere}")),
            _ if together => self.problem(span, format!("step '{shown}' runs a collective: {elsewhere}")),
            _ => self.problem(span, format!("step '{shown}' trains: {elsewhere}")),
        }
        let limits = self.numbers(table, "limits", &LIMITS.iter().map(|limit| limit.name).collect::<Vec<_>>());
        let expect = self.numbers(table, "expect", &EXPECTATIONS.iter().map(|known| known.0).collect::<Vec<_>>());
        Some(Step {
            about: self.string(table, "about").unwrap_or_default(),
            profile: self.profile(table),
            drop_failed: self.flag(table, "drop_failed"),
            select: self.flag(table, "select"),
            limit: self.seconds(table, "limit_s", MAX_LIMIT_S),
            idle: self.seconds(table, "idle_s", MAX_IDLE_S),
            line: self.line(span),
            id: id?,
            train,
            collect: collect?,
            run: run?,
            pairs,
            collective: collective?.iter().filter_map(|name| name.parse().ok()).collect(),
            check: check?,
            demand: demand?,
            limits,
            expect,
        })
    }

    fn known_fields(&mut self, table: &DeTable<'_>, fields: &[&str], of: &str) {
        for key in table.keys() {
            let name = key.get_ref();
            if !fields.contains(&name.as_ref()) {
                self.problem(&key.span(), unknown(&format!("{of} field"), name, fields.iter().copied()));
            }
        }
    }

    fn wrong_type(&mut self, value: &Spanned<DeValue<'_>>, field: &str, wanted: &str) {
        let found = value.get_ref().type_str();
        self.problem(&value.span(), format!("'{field}' must be {wanted}, not {found}"));
    }

    fn string(&mut self, table: &DeTable<'_>, field: &str) -> Option<String> {
        let value = table.get(field)?;
        match value.get_ref() {
            DeValue::String(text) => Some(text.trim().to_owned()),
            _ => {
                self.wrong_type(value, field, "a string");
                None
            }
        }
    }

    fn required(&mut self, table: &DeTable<'_>, field: &str, span: &Range<usize>) -> Option<String> {
        let Some(value) = table.get(field) else {
            let of = if span.is_empty() { "playbook" } else { "step" };
            self.problem(span, format!("the {of} has no '{field}'"));
            return None;
        };
        let text = self.string(table, field)?;
        if text.is_empty() {
            self.problem(&value.span(), format!("'{field}' is empty"));
            return None;
        }
        Some(text)
    }

    /// A required string made of lower-case letters, digits and dashes: it ends up in commands and file names.
    fn name(&mut self, table: &DeTable<'_>, field: &str, span: &Range<usize>) -> Option<String> {
        let name = self.required(table, field, span)?;
        if name.len() <= 64 && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
            return Some(name);
        }
        let at = table.get(field)?.span();
        self.problem(&at, format!("'{field}' must be at most 64 lower-case letters, digits and dashes"));
        None
    }

    fn profile(&mut self, table: &DeTable<'_>) -> Option<Profile> {
        let text = self.string(table, "profile")?;
        let found = text.parse().ok();
        if found.is_none() {
            let at = table.get("profile")?.span();
            self.problem(&at, unknown("profile", &text, Profile::ALL.iter().map(|profile| profile.name())));
        }
        found
    }

    /// Which pairs a step measures. A run keeps one result per pair, so only one step may.
    fn pairs(&mut self, table: &DeTable<'_>, span: &Range<usize>, step: &str) -> Option<Pairs> {
        let rounds = self.whole(table, "rounds", u64::from(u32::MAX));
        let name = self.string(table, "pairs")?;
        let at = table.get("pairs")?.span();
        let found = Pairs::named(&name, rounds.unwrap_or(0) as u32);
        match found {
            None => self.problem(&at, unknown("scan of pairs", &name, Pairs::NAMES.into_iter())),
            Some(Pairs::Sample { .. }) if !table.contains_key("rounds") => {
                self.problem(span, format!("step '{step}' samples pairs: give it 'rounds'"));
            }
            Some(_) => {}
        }
        let line = self.line(&at);
        if let Some((first, line)) = self.works.insert(("pairs", String::new()), (step.to_owned(), line)) {
            self.problem(&at, format!("pairs are already measured in step '{first}' (line {line})"));
        }
        found
    }

    /// What a step trains. A run keeps one result per node and benchmark, so only one step may.
    fn train(&mut self, table: &DeTable<'_>, step: &str) -> Option<Train> {
        let value = table.get("train_ddp")?;
        let DeValue::Table(own) = value.get_ref() else {
            self.wrong_type(value, "train_ddp", "a table");
            return None;
        };
        self.known_fields(own, TRAIN_FIELDS, "train_ddp");
        let model = self.string(own, "model");
        if let (Some(name), Some(at)) = (&model, own.get("model"))
            && !TRAIN_MODELS.contains(&name.as_str())
        {
            self.problem(&at.span(), unknown("model", name, TRAIN_MODELS.into_iter()));
        }
        let seconds = self.whole(own, "seconds", MAX_TRAIN_S).map(|s| Length::Time(Duration::from_secs(s)));
        let steps = self.whole(own, "steps", MAX_TRAIN_STEPS).map(Length::Steps);
        if seconds.is_some() && steps.is_some() {
            self.problem(&value.span(), "'train_ddp' ends after 'seconds' or after 'steps', not both".to_owned());
        }
        let between = self.string(own, "between").map(|name| {
            name.parse().unwrap_or_else(|_| {
                let at = own.get("between").map_or_else(|| value.span(), |at| at.span());
                self.problem(&at, unknown("way", &name, Between::ALL.map(Between::name).into_iter()));
                Between::Auto
            })
        });
        let ranks = self.whole(own, "ranks_per_node", RANKS_PER_NODE.into()).unwrap_or(1);
        let line = self.line(&value.span());
        if let Some((first, line)) = self.works.insert(("training", TRAIN_DDP.to_owned()), (step.to_owned(), line)) {
            self.problem(&value.span(), format!("step '{first}' trains already (line {line})"));
        }
        Some(Train {
            model,
            ranks_per_node: ranks as u16,
            length: seconds.or(steps),
            between: between.unwrap_or_default(),
            timeout: None,
        })
    }

    fn flag(&mut self, table: &DeTable<'_>, field: &str) -> bool {
        let Some(value) = table.get(field) else { return false };
        value.get_ref().as_bool().unwrap_or_else(|| {
            self.wrong_type(value, field, "true or false");
            false
        })
    }

    fn seconds(&mut self, table: &DeTable<'_>, field: &str, most: u64) -> Option<Duration> {
        self.whole(table, field, most).map(Duration::from_secs)
    }

    /// A whole number from 1 to `most`.
    fn whole(&mut self, table: &DeTable<'_>, field: &str, most: u64) -> Option<u64> {
        let value = table.get(field)?;
        let number = value
            .get_ref()
            .as_integer()
            .and_then(|integer| u64::from_str_radix(integer.as_str(), integer.radix()).ok())
            .filter(|number| (1..=most).contains(number));
        if number.is_none() {
            let unit = if field.ends_with("_s") { "whole seconds" } else { "a whole number" };
            self.problem(&value.span(), format!("'{field}' must be {unit} from 1 to {most}"));
        }
        number
    }

    /// The names in `collect` or `run`; `None` after a problem, so that one mistake is told once.
    fn works(&mut self, table: &DeTable<'_>, field: &str, step: &str) -> Option<Vec<String>> {
        let Some(value) = table.get(field) else { return Some(Vec::new()) };
        let Some(array) = value.get_ref().as_array() else {
            self.wrong_type(value, field, "a list of names");
            return None;
        };
        let before = self.problems.len();
        let names = array.iter().filter_map(|item| self.work(item, field, step)).collect();
        (self.problems.len() == before).then_some(names)
    }

    /// The checks in `demand`, which must be among the step's own.
    fn demand(&mut self, table: &DeTable<'_>, asked: &[String]) -> Option<Vec<String>> {
        let demand = self.checks(table, "demand")?;
        if let Some((id, value)) = demand.iter().find(|id| !asked.contains(id)).zip(table.get("demand")) {
            self.problem(&value.span(), format!("'demand' names {id}, which the step's 'check' does not ask for"));
        }
        Some(demand)
    }

    /// The checks in `field`, areas spelt out; `None` after a problem.
    fn checks(&mut self, table: &DeTable<'_>, field: &str) -> Option<Vec<String>> {
        let Some(value) = table.get(field) else { return Some(Vec::new()) };
        let Some(array) = value.get_ref().as_array() else {
            self.wrong_type(value, field, "a list of names");
            return None;
        };
        let (mut ids, before) = (Vec::new(), self.problems.len());
        for item in array {
            let Some(name) = item.get_ref().as_str() else {
                self.wrong_type(item, field, "a list of names");
                continue;
            };
            let named = checks::named(name);
            if named.is_empty() {
                let known = AREAS.iter().copied().chain(checks::checks().map(|check| check.id));
                self.problem(&item.span(), unknown("check", name, known));
            }
            for check in named.into_iter().filter(|check| !ids.iter().any(|id| id == check.id)).collect::<Vec<_>>() {
                ids.push(check.id.to_owned());
            }
        }
        (self.problems.len() == before).then_some(ids)
    }

    /// The table `field`: names of `known` with a number of 0 or more each.
    fn numbers(&mut self, table: &DeTable<'_>, field: &str, known: &[&str]) -> Vec<(String, f64)> {
        let Some(value) = table.get(field) else { return Vec::new() };
        let DeValue::Table(inner) = value.get_ref() else {
            self.wrong_type(value, field, "a table of numbers");
            return Vec::new();
        };
        let mut numbers = Vec::new();
        for (name, value) in inner {
            if !known.contains(&name.get_ref().as_ref()) {
                self.problem(&name.span(), unknown(field.trim_end_matches('s'), name.get_ref(), known.iter().copied()));
                continue;
            }
            let text = match value.get_ref() {
                DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
                DeValue::Float(float) => float.as_str(),
                _ => "",
            };
            match text.parse::<f64>() {
                Ok(number) if number.is_finite() && number >= 0.0 => {
                    numbers.push((name.get_ref().to_string(), number));
                }
                _ => self.problem(&value.span(), format!("'{}' must be a number of 0 or more", name.get_ref())),
            }
        }
        numbers
    }

    fn work(&mut self, item: &Spanned<DeValue<'_>>, field: &str, step: &str) -> Option<String> {
        let Some(name) = item.get_ref().as_str() else {
            self.wrong_type(item, field, "a list of names");
            return None;
        };
        let (kind, known): (_, Vec<&str>) = match field {
            "collect" => ("collector", COLLECTORS.iter().map(|collector| collector.name).collect()),
            "collective" => ("collective", Collective::ALL.map(Collective::name).to_vec()),
            _ => ("benchmark", BENCHMARKS.iter().map(|benchmark| benchmark.name).collect()),
        };
        if !known.contains(&name) {
            self.problem(&item.span(), unknown(kind, name, known.into_iter()));
            return None;
        }
        let key = (kind, name.to_owned());
        if let Some((first, line)) = self.works.get(&key) {
            // A run keeps one result per node and name: a second one could not be told from the first.
            let message = format!("{kind} '{name}' is already part of step '{first}' (line {line})");
            self.problem(&item.span(), message);
            return None;
        }
        let line = self.line(&item.span());
        self.works.insert(key, (step.to_owned(), line));
        Some(name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
name = \"mine\"
title = \"Mine\"
profile = \"quick\"

[[steps]]
id = \"look\"
collect = [\"cpu\", \"disk\"]

[[steps]]
id = \"work\"
about = \"Measure.\"
run = [\"disk\", \"cpu-gemm\"]
profile = \"smoke\"
drop_failed = true
limit_s = 90
";

    fn error(text: &str) -> String {
        Playbook::parse(text, "p.toml").unwrap_err().to_string()
    }

    /// The messages alone, each with its line and column.
    fn told(text: &str) -> Vec<String> {
        let error = Playbook::parse(text, "p.toml").unwrap_err();
        error.problems.iter().map(|p| format!("{}:{} {}", p.line, p.column, p.message)).collect()
    }

    #[test]
    fn a_good_playbook_is_read_in_full() {
        let playbook = Playbook::parse(GOOD, "p.toml").unwrap();
        assert_eq!((playbook.name.as_str(), playbook.profile, playbook.steps.len()), ("mine", Profile::Quick, 2));
        let step = &playbook.steps[1];
        assert_eq!((step.id.as_str(), step.line, step.drop_failed), ("work", 9, true));
        assert_eq!(step.run, ["disk", "cpu-gemm"]);
        assert_eq!((step.profile, step.limit), (Some(Profile::Smoke), Some(Duration::from_secs(90))));
        assert_eq!(playbook.steps[0].collect, ["cpu", "disk"]);
    }

    #[test]
    fn an_unknown_benchmark_is_told_with_file_line_column_text_and_the_nearest_name() {
        assert_eq!(
            error(&GOOD.replace("\"cpu-gemm\"", "\"cpu-gem\"")),
            "p.toml:12:16: no benchmark 'cpu-gem': did you mean 'cpu-gemm'?\n   \
             12 | run = [\"disk\", \"cpu-gem\"]\n      |                ^"
        );
    }

    #[test]
    fn an_unknown_field_collector_or_profile_is_told_with_its_line() {
        assert_eq!(told(&GOOD.replace("limit_s", "limt_s")), ["15:1 no step field 'limt_s': did you mean 'limit_s'?"]);
        assert_eq!(
            told(&GOOD.replace("title =", "titel =")),
            ["1:1 the playbook has no 'title'", "2:1 no playbook field 'titel': did you mean 'title'?"]
        );
        let answers = told(&GOOD.replace("\"cpu\"", "\"aura-reader\""));
        assert!(answers[0].starts_with("7:12 no collector 'aura-reader': there are identity, cpu, "), "{answers:?}");
        assert_eq!(told(&GOOD.replace("smoke", "smok")), ["13:11 no profile 'smok': did you mean 'smoke'?"]);
    }

    #[test]
    fn checks_are_named_by_id_or_area_and_their_limits_and_expectations_by_name() {
        let text = GOOD.replace("limit_s = 90", "check = [\"swap\", \"memory\"]\nexpect = { cpus = 192 }");
        let step = Playbook::parse(&text, "p.toml").unwrap().steps.remove(1);
        assert_eq!(step.check[0], "swap");
        assert_eq!(step.check.iter().filter(|id| *id == "swap").count(), 1);
        assert!(step.check.contains(&"memory-size".to_owned()) && !step.check.contains(&"nic-mtu".to_owned()));
        assert_eq!(step.expect, [("cpus".to_owned(), 192.0)]);
        let demand = "check = [\"swap\", \"kernel-log\"]\ndemand = [\"kernel-log\"]";
        let step = Playbook::parse(&GOOD.replace("limit_s = 90", demand), "p.toml").unwrap().steps.remove(1);
        assert_eq!(step.demand[..], step.check[1..]);
        assert_eq!(
            told(&GOOD.replace("limit_s = 90", "check = [\"swap\"]\ndemand = [\"xid\"]")),
            ["16:10 'demand' names xid, which the step's 'check' does not ask for"]
        );
        let text = GOOD.replace("limit_s = 90", "check = [\"nic-mtus\"]\nlimits = { majorty = 0.9, booted_s = -1 }");
        assert_eq!(
            told(&text),
            [
                "15:10 no check 'nic-mtus': did you mean 'nic-mtu'?",
                "16:12 no limit 'majorty': did you mean 'majority'?",
                "16:38 'booted_s' must be a number of 0 or more"
            ]
        );
    }

    #[test]
    fn duplicate_ids_and_work_named_twice_point_at_the_first_use() {
        assert_eq!(told(&GOOD.replace("\"work\"", "\"look\"")), ["10:6 step id 'look' is already used in line 6"]);
        assert_eq!(
            told(&GOOD.replace("[\"disk\", \"cpu-gemm\"]", "[\"disk\", \"disk\"]")),
            ["12:16 benchmark 'disk' is already part of step 'work' (line 12)"]
        );
    }

    #[test]
    fn a_step_that_does_nothing_is_refused() {
        assert_eq!(
            told(&GOOD.replace("collect = [\"cpu\", \"disk\"]", "collect = []")),
            ["5:1 step 'look' does nothing: give it 'collect', 'check', 'run', 'pairs', 'collective' or 'train_ddp'"]
        );
        assert_eq!(told("name='a'\ntitle='A'\nprofile='full'\nsteps=[]"), ["4:7 the playbook has no [[steps]]"]);
    }

    #[test]
    fn pairs_are_a_step_of_their_own_and_only_one() {
        let with = |step: &str| format!("{GOOD}[[steps]]\nid = \"net\"\n{step}\n");
        let playbook = Playbook::parse(&with("pairs = \"sample\"\nrounds = 5"), "p.toml").unwrap();
        assert_eq!(playbook.steps[2].pairs, Some(Pairs::Sample { rounds: 5 }));
        assert_eq!(told(&with("pairs = \"ful\"")), ["18:9 no scan of pairs 'ful': did you mean 'full'?"]);
        assert_eq!(told(&with("pairs = \"sample\"")), ["16:1 step 'net' samples pairs: give it 'rounds'"]);
        assert_eq!(
            told(&with("pairs = \"full\"\nrun = [\"cpu-stream\"]")),
            ["16:1 step 'net' measures pairs: its other work belongs into another step"]
        );
        let twice = with("pairs = \"full\"\n[[steps]]\nid = \"again\"\npairs = \"quick\"");
        assert_eq!(told(&twice), ["21:9 pairs are already measured in step 'net' (line 18)"]);
    }

    #[test]
    fn collectives_are_a_step_of_their_own() {
        let with = |step: &str| format!("{GOOD}[[steps]]\nid = \"net\"\n{step}\n");
        let playbook = Playbook::parse(&with("collective = [\"allreduce\", \"alltoall\"]"), "p.toml").unwrap();
        assert_eq!(playbook.steps[2].collective, [Collective::AllReduce, Collective::AllToAll]);
        assert_eq!(
            told(&with("collective = [\"allreduc\"]")),
            ["18:15 no collective 'allreduc': did you mean 'allreduce'?"]
        );
        assert_eq!(
            told(&with("collective = [\"allreduce\"]\nrun = [\"cpu-stream\"]")),
            ["16:1 step 'net' runs a collective: its other work belongs into another step"]
        );
    }

    #[test]
    fn a_training_is_a_step_of_its_own_and_only_one() {
        let with = |step: &str| format!("{GOOD}[[steps]]\nid = \"net\"\n{step}\n");
        let train = |text: &str| Playbook::parse(&with(text), "p.toml").unwrap().steps.remove(2).train.unwrap();
        let plain = Train { model: None, ranks_per_node: 1, length: None, between: Between::Auto, timeout: None };
        assert_eq!(train("train_ddp = {}"), plain);
        assert_eq!(train("train_ddp = { between = \"nccl\" }").between, Between::Nccl);
        let wrong = told(&with("train_ddp = { between = \"ring\" }"));
        assert!(wrong.len() == 1 && wrong[0].contains("'ring'") && wrong[0].contains("auto, nccl, tcp"), "{wrong:?}");
        let own = train("train_ddp = { model = \"lstm-nano\", ranks_per_node = 2, steps = 7 }");
        assert_eq!((own.model.as_deref(), own.ranks_per_node), (Some("lstm-nano"), 2));
        assert_eq!(own.length, Some(Length::Steps(7)));
        assert_eq!(
            told(&with("train_ddp = { model = \"gpt2-nan\", rank = 2, ranks_per_node = 65 }")),
            [
                "18:23 no model 'gpt2-nan': did you mean 'gpt2-nano'?",
                "18:35 no train_ddp field 'rank': there are model, ranks_per_node, seconds, steps, between",
                "18:62 'ranks_per_node' must be a whole number from 1 to 64"
            ]
        );
        assert_eq!(
            told(&with("train_ddp = { seconds = 5, steps = 5 }")),
            ["18:13 'train_ddp' ends after 'seconds' or after 'steps', not both"]
        );
        assert_eq!(
            told(&with("train_ddp = {}\nrun = [\"cpu-stream\"]")),
            ["16:1 step 'net' trains: its other work belongs into another step"]
        );
        let twice = with("train_ddp = {}\n[[steps]]\nid = \"again\"\ntrain_ddp = {}");
        assert_eq!(told(&twice), ["21:13 step 'net' trains already (line 18)"]);
    }

    #[test]
    fn wrong_types_and_bad_values_are_told_all_at_once() {
        let text = GOOD.replace("true", "\"yes\"").replace("= 90", "= 0").replace("\"mine\"", "\"My Own\"");
        assert_eq!(
            told(&text),
            [
                "1:8 'name' must be at most 64 lower-case letters, digits and dashes",
                "14:15 'drop_failed' must be true or false, not string",
                "15:11 'limit_s' must be whole seconds from 1 to 604800",
            ]
        );
        assert_eq!(told(&GOOD.replace("\"cpu\",", "7,")), ["7:12 'collect' must be a list of names, not integer"]);
    }

    #[test]
    fn an_empty_file_names_everything_that_is_missing() {
        assert_eq!(told("").len(), 4);
    }

    #[test]
    fn broken_toml_is_told_with_its_line() {
        let error = Playbook::parse("name = \"a\"\ntitle = \n", "p.toml").unwrap_err();
        assert_eq!(error.line(), 2);
        assert!(error.to_string().starts_with("p.toml:2:"), "{error}");
    }
}
