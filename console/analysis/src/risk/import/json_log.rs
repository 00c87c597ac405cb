//! Which incidents does a JSON file tell? An array, an object with `incidents`, or one object per line.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::line::{Limits, LineError, Parsed};
use crate::risk::{Category, Incident};

/// Incidents of a JSON text, each an object as [`Incident`] is written; `end_h`, `reason`, `source` and `who` may
/// be left out.
///
/// # Errors
/// When the text is too long, or is none of the three forms. Single unreadable incidents are listed in
/// [`Parsed::errors`], by line where each has its own, else by position in the array.
pub fn json_incidents(text: &str, limits: Limits) -> Result<Parsed, LineError> {
    limits.check(text)?;
    match serde_json::from_str::<Value>(text) {
        Ok(whole) => Ok(listed(items(whole)?.into_iter().map(Ok).zip(1..), limits)),
        Err(why) => {
            let lines = || text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
            let parsed = listed(lines().map(|(line, k)| (serde_json::from_str(line), k)), limits);
            // A text that is broken somewhere has no objects on its lines, and where it is broken is what helps.
            let by_line = lines().next().is_some_and(|(line, _)| serde_json::from_str::<IgnoredAny>(line).is_ok());
            if parsed.incidents.is_empty() && !by_line {
                return Err(LineError::new(why.line(), format!("it is no JSON: {why}")));
            }
            Ok(parsed)
        }
    }
}

/// The incidents of a text that is one JSON value, unread.
fn items(whole: Value) -> Result<Vec<Value>, LineError> {
    let none = |what: &str| Err(LineError::new(1, what));
    match whole {
        Value::Array(items) => Ok(items),
        Value::Object(mut object) => match object.remove("incidents") {
            Some(Value::Array(items)) => Ok(items),
            Some(_) => none("`incidents` is no array"),
            None if object.contains_key("node") => Ok(vec![Value::Object(object)]),
            None => none("it is an object with neither `incidents` nor `node`"),
        },
        _ => none("it is neither an array nor an object"),
    }
}

fn listed(found: impl Iterator<Item = (serde_json::Result<Value>, usize)>, limits: Limits) -> Parsed {
    let mut parsed = Parsed::default();
    for (value, at) in found {
        let word = value.as_ref().ok().and_then(|value| value.get("category")?.as_str()).map(str::to_owned);
        let incident = checked(value.and_then(serde_json::from_value), at);
        let unknown = incident.as_ref().is_ok_and(|incident| incident.category == Category::Unknown);
        let word = word.filter(|word| unknown && word != Category::Unknown.name());
        if !parsed.take(incident, limits) {
            break;
        }
        if let Some(word) = word {
            parsed.unknown_category(at, &word, limits);
        }
    }
    parsed
}

fn checked(found: serde_json::Result<Incident>, line: usize) -> Result<Incident, LineError> {
    let incident = found.map_err(|e| LineError::new(line, e.to_string()))?;
    incident.check().map_err(|why| LineError::new(line, why.to_string()))?;
    Ok(incident)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_are_read() {
        let one = r#"{"node":"n1","start_h":1.0,"end_h":2.0,"category":"gpu"}"#;
        let two = r#"{"node":"n2","start_h":3.0,"category":"nvlink","who":"ann"}"#;
        let texts = [format!("[{one},{two}]"), format!("{{\"incidents\":[{one},{two}]}}"), format!("{one}\n\n{two}\n")];
        for text in texts {
            let parsed = json_incidents(&text, Limits::default()).unwrap();
            assert_eq!(parsed.incidents.len(), 2, "{text}");
            assert_eq!(parsed.incidents[1].category, Category::NvLink);
            assert_eq!(parsed.incidents[1].who, "ann");
        }
        let bad = json_incidents(&format!("{one}\n{{\"node\":3}}\n"), Limits::default()).unwrap();
        assert_eq!((bad.incidents.len(), bad.errors[0].line), (1, 2));
        assert_eq!(json_incidents(one, Limits::default()).unwrap().incidents.len(), 1, "a single line");
        let odd = json_incidents(&format!("{one}\n{}", one.replace("gpu", "imps")), Limits::default()).unwrap();
        assert_eq!((odd.incidents.len(), odd.doubtful, odd.doubts[0].line), (2, 1, 2));
        assert!(odd.doubts[0].why.contains("\"imps\""), "{}", odd.doubts[0]);
        let backwards = r#"[{"node":"n","start_h":5,"end_h":2,"category":"gpu"}]"#;
        assert_eq!(json_incidents(backwards, Limits::default()).unwrap().refused, 1);
    }

    #[test]
    fn what_is_none_of_the_forms_is_said_and_what_lacks_a_field_is_counted() {
        let why = |text: &str| json_incidents(text, Limits::default()).unwrap_err().to_string();
        for (text, said) in [
            ("{}", "line 1: it is an object with neither `incidents` nor `node`"),
            ("{\"a\":1}", "line 1: it is an object with neither `incidents` nor `node`"),
            ("{\"incidents\":3}", "line 1: `incidents` is no array"),
            ("7", "line 1: it is neither an array nor an object"),
        ] {
            assert_eq!(why(text), said, "{text}");
        }
        assert!(why("").starts_with("line 1: it is no JSON"), "{}", why(""));
        assert!(why("[\n {\"node\": \"n1\",\n}]").starts_with("line 3: it is no JSON"));
        for (text, refused) in
            [("[{\"node\":\"n1\"}]", 1), ("{\"node\":\"n1\"}", 1), ("{\"node\":1}\n{\"node\":2}\n{\"nod", 3)]
        {
            let parsed = json_incidents(text, Limits::default()).unwrap();
            assert_eq!((parsed.incidents.len(), parsed.refused), (0, refused), "{text}");
        }
        let parsed = json_incidents("[{\"node\":\"n1\"}]", Limits::default()).unwrap();
        assert_eq!(parsed.errors[0].to_string(), "line 1: missing field `start_h`");
    }
}
