//! Which playbooks come with the program.

use crate::Playbook;

/// Name and text of every playbook under `playbooks/`, in the order lists show them.
const BUILTIN: &[(&str, &str)] = &[
    ("build-out", include_str!("../../../playbooks/build-out.toml")),
    ("cbd", include_str!("../../../playbooks/cbd.toml")),
    ("cbd-multi", include_str!("../../../playbooks/cbd-multi.toml")),
    ("cbd-light", include_str!("../../../playbooks/cbd-light.toml")),
    ("regular", include_str!("../../../playbooks/regular.toml")),
    ("burn-in", include_str!("../../../playbooks/burn-in.toml")),
    ("network-full", include_str!("../../../playbooks/network-full.toml")),
    ("network-quick", include_str!("../../../playbooks/network-quick.toml")),
    ("network-bisect", include_str!("../../../playbooks/network-bisect.toml")),
    ("demo", include_str!("../../../playbooks/demo.toml")),
];

/// Name and text of every playbook that comes with the program.
#[must_use]
pub fn builtin() -> &'static [(&'static str, &'static str)] {
    BUILTIN
}

/// The built-in playbook called `name`; on a miss, the known names and the nearest one, as a sentence.
///
/// # Errors
/// A sentence for the user.
pub fn find_builtin(name: &str) -> Result<Playbook, String> {
    let Some((found, text)) = BUILTIN.iter().find(|(known, _)| *known == name) else {
        return Err(crate::error::unknown("playbook", name, BUILTIN.iter().map(|(known, _)| *known)));
    };
    Playbook::parse(text, &format!("{found}.toml")).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_in_the_playbooks_folder_is_built_in_parses_plans_and_bears_its_own_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../playbooks");
        let mut files = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            files += 1;
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(builtin().contains(&(name.as_str(), text.as_str())), "{name} is not built in");
            let playbook = Playbook::parse(&text, &path.display().to_string()).unwrap();
            assert_eq!(playbook.name, name);
            assert!(!playbook.about.is_empty() && playbook.steps.iter().all(|step| !step.about.is_empty()), "{name}");
            let plan = crate::plan(&playbook, &["n1".to_owned(), "n2".to_owned()]);
            assert_eq!(plan.phases.len(), playbook.steps.len());
            assert!(plan.phases.iter().all(|phase| !phase.limit.is_zero() && phase.nodes.len() == 2));
        }
        assert_eq!(files, builtin().len());
    }

    #[test]
    fn the_quick_playbooks_keep_their_promised_time() {
        let budget = |name: &str| crate::plan(&find_builtin(name).unwrap(), &[]).budget().as_secs();
        assert!(budget("cbd-light") < 60, "{}", budget("cbd-light"));
        assert!(budget("cbd") <= 180, "{}", budget("cbd"));
        assert!(budget("demo") < 10, "{}", budget("demo"));
        assert!(budget("cbd-multi") < 180, "{}", budget("cbd-multi"));
        assert!(budget("build-out") <= 660, "{}", budget("build-out"));
    }

    #[test]
    fn a_misspelt_playbook_gets_the_nearest_name() {
        let error = find_builtin("build_out").unwrap_err();
        assert_eq!(error, "no playbook 'build_out': did you mean 'build-out'?");
        let error = find_builtin("zzz").unwrap_err();
        assert_eq!(
            error,
            "no playbook 'zzz': there are build-out, cbd, cbd-multi, cbd-light, regular, burn-in, network-full, \
             network-quick, network-bisect, demo"
        );
    }
}
