//! How are nodes written so that every Slurm reads them?

use crate::hostlist::{fold, terms};

/// The names as a host list with at most one bracket in a name, since Slurm does not read more of them everywhere; as they are where more
/// would be folded.
#[must_use]
pub fn host_list(names: &[&str]) -> String {
    let folded = fold(names.iter().copied());
    let plain =
        |list: &str| terms(list).is_ok_and(|terms| terms.iter().all(|(_, term)| term.matches('[').count() <= 1));
    if plain(&folded) { folded } else { names.join(",") }
}

#[cfg(test)]
mod tests {
    use super::host_list;

    #[test]
    fn no_name_has_two_brackets() {
        assert_eq!(host_list(&["n001", "n002", "m1"]), "m1,n[001-002]");
        let racks = ["r1n1", "r1n2", "r2n1", "r2n2"];
        assert_eq!(host_list(&racks), "r1n1,r1n2,r2n1,r2n2");
    }
}
