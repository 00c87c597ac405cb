//! Names in commands that are printed to be copied.

/// `text` as one argument of a shell: as it is where no shell takes it apart, else in quotes.
#[must_use]
pub fn argument(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:%@+,/=".contains(c);
    // What begins with a dash is an option, and with `=` a path for some shells.
    let safe = text.starts_with(|c: char| c.is_ascii_alphanumeric() || "./_@".contains(c)) && text.chars().all(plain);
    if safe { text.to_owned() } else { quoted(text) }
}

/// `text` in quotes, whatever it is.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_takes_apart_is_quoted_and_a_host_name_stays_as_it_is() {
        for plain in ["n001", "n1,n2", "root@10.0.0.1:2222", "fe80::1%eth0", "/var/lib/muster", "./job"] {
            assert_eq!(argument(plain), plain);
        }
        for (text, said) in [
            ("n3;touch PWN", "'n3;touch PWN'"),
            ("n[1-4]", "'n[1-4]'"),
            ("it's", r"'it'\''s'"),
            ("$(id)", "'$(id)'"),
            ("-x", "'-x'"),
            ("", "''"),
        ] {
            assert_eq!(argument(text), said);
        }
    }
}
