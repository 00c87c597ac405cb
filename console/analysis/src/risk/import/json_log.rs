//! Which incidents does a JSON file tell? An array, an object with `incidents`, or one object per line.

use serde::Deserialize;

use super::line::{Limits, LineError, Parsed};
use crate::risk::Incident;

#[derive(Deserialize)]
#[serde(untagged)]
enum Whole {
    Array(Vec<serde_json::Value>),
    Object { incidents: Vec<serde_json::Value> },
}

/// Incidents of a JSON text, each an object as [`Incident`] is written; `end_h`, `reason`, `source` and `who` may
/// be left out.
///
/// # Errors
/// When the text is too long, or is none of the three forms. Single unreadable incidents are listed in
/// [`Parsed::errors`], by line where each has its own, else by position in the array.
pub fn json_incidents(text: &str, limits: Limits) -> Result<Parsed, LineError> {
    limits.check(text)?;
    let mut parsed = Parsed::default();
    match serde_json::from_str::<Whole>(text) {
        Ok(Whole::Array(items) | Whole::Object { incidents: items }) => {
            for (k, item) in items.into_iter().enumerate() {
                if !parsed.take(checked(serde_json::from_value(item), k + 1), limits) {
                    break;
                }
            }
        }
        Err(whole) => {
            for (k, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                if !parsed.take(checked(serde_json::from_str(line), k + 1), limits) {
                    break;
                }
            }
            if parsed.incidents.is_empty() {
                return Err(LineError::new(whole.line(), whole.to_string()));
            }
        }
    }
    Ok(parsed)
}

fn checked(found: serde_json::Result<Incident>, line: usize) -> Result<Incident, LineError> {
    let incident = found.map_err(|e| LineError::new(line, e.to_string()))?;
    incident.check().map_err(|why| LineError::new(line, why.to_string()))?;
    Ok(incident)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::risk::Category;

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
        assert!(json_incidents("{\"a\":1}", Limits::default()).is_err());
        let backwards = r#"[{"node":"n","start_h":5,"end_h":2,"category":"gpu"}]"#;
        assert_eq!(json_incidents(backwards, Limits::default()).unwrap().refused, 1);
    }
}
