//! How is a model kept? As JSON with a schema name and a version, so that an old file is read or refused, never
//! misread.

use serde::{Deserialize, Serialize};

use super::{Choice, Effect, Fitted, Survival};

/// Name of the format.
pub const SCHEMA: &str = "muster.risk";
/// Version written, and the only one read so far.
pub const VERSION: u32 = 1;

/// A model with what is needed to use and to explain it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// Format, [`SCHEMA`].
    pub schema: String,
    /// Version of the format.
    pub version: u32,
    /// Features in the order of the model's rows.
    pub features: Vec<String>,
    /// Longest time to an incident the training rows tell apart, in hours.
    pub cap_h: f64,
    /// Length of the log it was trained on, in hours.
    pub hours: f64,
    /// Rows it was trained on, and how many of them saw an incident come.
    pub trained_on: (usize, usize),
    /// How it was chosen, unless a person named it.
    pub choice: Option<Choice>,
    /// What each feature does.
    pub effects: Vec<Effect>,
    /// The model.
    pub model: Fitted,
}

/// Why a saved model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Not JSON of this shape.
    #[error("this is no saved model: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Another format.
    #[error("this is {schema:?} version {version}; {SCHEMA:?} version {VERSION} is read")]
    Version {
        /// Format found.
        schema: String,
        /// Version found.
        version: u32,
    },
    /// Features and model do not fit together.
    #[error("the file names {named} features and its model has {needed}")]
    Features {
        /// Features named.
        named: usize,
        /// Features the model needs.
        needed: usize,
    },
}

impl Saved {
    /// Text of the model.
    ///
    /// # Errors
    /// When a number in it is not finite.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// Model of a text.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn from_json(text: &str) -> Result<Self, LoadError> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
            version: u32,
        }
        let Head { schema, version } = serde_json::from_str(text)?;
        if schema != SCHEMA || version != VERSION {
            return Err(LoadError::Version { schema, version });
        }
        let saved: Self = serde_json::from_str(text)?;
        let (named, needed) = (saved.features.len(), saved.model.width());
        if named == needed { Ok(saved) } else { Err(LoadError::Features { named, needed }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::risk::Exponential;
    use crate::risk::sets::{LEUKAEMIA_TREATED, survival_set};

    fn saved() -> Saved {
        let model = Fitted::Exponential(Exponential::fit(&survival_set(LEUKAEMIA_TREATED)).unwrap());
        Saved {
            schema: SCHEMA.into(),
            version: VERSION,
            features: vec!["x".into()],
            cap_h: 2400.0,
            hours: 1000.0,
            trained_on: (21, 9),
            choice: None,
            effects: vec![],
            model,
        }
    }

    #[test]
    fn a_model_comes_back_bit_for_bit_and_others_are_refused() {
        let text = saved().to_json().unwrap();
        assert_eq!(Saved::from_json(&text).unwrap(), saved());
        assert!(matches!(Saved::from_json("{}"), Err(LoadError::Unreadable(_))));
        let newer = text.replace("\"version\":1", "\"version\":2");
        assert!(matches!(Saved::from_json(&newer), Err(LoadError::Version { version: 2, .. })));
        let short = text.replace("[\"x\"]", "[]");
        assert!(matches!(Saved::from_json(&short), Err(LoadError::Features { named: 0, needed: 1 })));
    }
}
