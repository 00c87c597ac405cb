//! Which stored run is meant.

use clap::Args;

/// Which run: its id alone or after `--run`, as `muster pairs` takes it.
#[derive(Args, Clone, Debug, Default)]
pub struct Which {
    /// Run id; the newest when left out.
    pub run: Option<String>,
    /// The same as RUN.
    #[arg(id = "run_id", long = "run", value_name = "ID", conflicts_with = "run")]
    named: Option<String>,
}

impl Which {
    /// Its id; `None` for the newest.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.run.as_deref().or(self.named.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        which: Which,
    }

    #[test]
    fn a_run_is_named_either_way_and_not_both() {
        let of = |words: &[&str]| {
            let words = [&["muster"], words].concat();
            Words::try_parse_from(words).map(|words| words.which.id().map(str::to_owned)).map_err(|why| why.kind())
        };
        assert_eq!((of(&["r1"]), of(&["--run", "r1"])), (Ok(Some("r1".into())), Ok(Some("r1".into()))));
        assert_eq!((of(&[]), of(&["r1", "--run", "r2"])), (Ok(None), Err(clap::error::ErrorKind::ArgumentConflict)));
    }
}
