//! Is a document what its published schema says?

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::path::Path;

use serde_json::Value;

/// Asserts that `document` conforms to `schema`, a file name in `assets/schemas`; `said` is shown where it does not.
///
/// # Panics
/// When it does not, or there is no such schema.
pub fn conforms(schema: &str, document: &Value, said: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/schemas").join(schema);
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(document).map(|e| e.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new(), "{said}");
}
