//! What does a virtual node's shell do with a command of the console? It knows the script that installs the probe and the one that
//! cleans up, by their beginning, and answers as they would; other commands end well and do nothing.

/// A command, as far as a virtual node understands it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Install the probe and become it.
    Install(Install),
    /// Remove what is there; answers begin with this word.
    Clean(String),
    /// Anything else.
    Other,
}

/// The values that the script to install the probe begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Install {
    /// Begins every answer.
    pub(super) word: String,
    /// File name of the probe.
    pub(super) file: String,
    /// Its size, bytes.
    pub(super) size: usize,
    /// Its SHA-256, hexadecimal.
    pub(super) sha256: String,
    /// Bytes that are sent when it is packed; 0 where it is not.
    pub(super) packed: usize,
}

/// What `command` is.
pub(super) fn order(command: &str) -> Order {
    let Some(script) = command.strip_prefix("exec sh -c '") else { return Order::Other };
    let mut install = Install::default();
    for (name, value) in
        script.split("; ").map_while(|word| word.split_once('=')).take_while(|(name, _)| *name != "LC_ALL")
    {
        match name {
            "n" => value.clone_into(&mut install.word),
            "f" => value.clone_into(&mut install.file),
            "h" => value.clone_into(&mut install.sha256),
            "s" => install.size = value.parse().unwrap_or(0),
            "z" => install.packed = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    match (install.word.is_empty(), install.file.is_empty()) {
        (true, _) => Order::Other,
        (false, true) => Order::Clean(install.word),
        (false, false) => Order::Install(install),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Probe;
    use crate::script;

    #[test]
    fn the_scripts_of_the_console_are_understood() {
        let probe = Probe::new(vec![7; 100_000].into());
        let main = probe.main();
        let packed = main.packed().unwrap().len();
        let wanted = Install {
            word: "muster-1".to_owned(),
            file: main.file_name(),
            size: main.size(),
            sha256: main.sha256().to_owned(),
            packed,
        };
        assert_eq!(
            order(&script::install("muster-1", &probe, &["/x".to_owned()], "serve", None)),
            Order::Install(wanted)
        );
        assert_eq!(order(&script::clean("muster-2", &[])), Order::Clean("muster-2".to_owned()));
        assert_eq!(order(&script::kill(77)), Order::Other);
        assert_eq!(order("exit 0"), Order::Other);
    }
}
