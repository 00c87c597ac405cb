//! What is kept beside the runs, and how its entries are named in the file that all of it is in.

/// One kind of thing that is kept, each entry under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Versions of criteria, by the identity of their content.
    Criteria,
    /// Which version is frozen, by group and metric.
    Frozen,
    /// What a run is judged by, by run.
    Terms,
    /// Tuned steps, by benchmark.
    Steps,
    /// GPU cards as they were seen, by node.
    Cards,
    /// What a run showed of each node, by run: what models of risk learn from.
    Validations,
    /// In whose hands somebody put a node, by node.
    Service,
    /// Parts that a run found broken, with their serial numbers, by run.
    Failures,
}

impl Table {
    /// All but the criteria, which were there first and whose names begin with nothing.
    const NAMED: [Self; 7] =
        [Self::Frozen, Self::Terms, Self::Steps, Self::Cards, Self::Validations, Self::Service, Self::Failures];

    /// Begins the names of its entries.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Criteria => "",
            Self::Frozen => "frozen ",
            Self::Terms => "terms ",
            Self::Steps => "tuned ",
            Self::Cards => "cards ",
            Self::Validations => "validated ",
            Self::Service => "service ",
            Self::Failures => "failures ",
        }
    }

    /// Name of the entry under `key`.
    pub(crate) fn name(self, key: &str) -> String {
        format!("{}{key}", self.prefix())
    }

    /// The key of an entry, where it is of this table.
    pub(crate) fn key(self, name: &str) -> Option<&str> {
        match self {
            Self::Criteria => Self::NAMED.iter().all(|table| table.key(name).is_none()).then_some(name),
            named => name.strip_prefix(named.prefix()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_belongs_to_one_table_and_keeps_its_key() {
        let all = [&Table::NAMED[..], &[Table::Criteria]].concat();
        for table in &all {
            let name = table.name("profile=smoke|disk/latency");
            let found: Vec<(Table, &str)> = all.iter().filter_map(|of| Some((*of, of.key(&name)?))).collect();
            assert_eq!(found, [(*table, "profile=smoke|disk/latency")]);
        }
    }
}
