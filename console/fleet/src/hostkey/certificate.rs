//! Is a host's certificate one that a trusted authority gave to this host, for now?

use std::time::{SystemTime, UNIX_EPOCH};

use russh::keys::ssh_key::certificate::CertType;
use russh::keys::{Certificate, HashAlg, PublicKey};

use super::known::{KnownHosts, Verdict, revocation};
use super::line;

impl KnownHosts {
    /// Judges the certificate that `host` shows on `port`, at the present time.
    ///
    /// A certificate that no trusted authority signed counts as the plain key inside it, as in OpenSSH.
    pub fn check_certificate(&self, host: &str, port: u16, certificate: &Certificate) -> Verdict {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.check_certificate_at(host, port, certificate, now)
    }

    /// The same at `now`, in seconds since 1970.
    pub fn check_certificate_at(&self, host: &str, port: u16, certificate: &Certificate, now: u64) -> Verdict {
        let name = line::host_name(host, port);
        let key = PublicKey::from(certificate.public_key().clone());
        let signer = PublicKey::from(certificate.signature_key().clone());
        let entries = self.about(&name);
        if let Some(revoked) = revocation(&entries, &key).or_else(|| revocation(&entries, &signer)) {
            return revoked;
        }
        let trusted = self.authorities(&name).iter().any(|entry| entry.key.key_data() == signer.key_data());
        if !trusted {
            return self.check(host, port, &key);
        }
        match fault(certificate, host, now) {
            Some(reason) => Verdict::BadCertificate { reason },
            None => Verdict::Known,
        }
    }
}

/// What is wrong with a certificate whose signer is trusted.
fn fault(certificate: &Certificate, host: &str, now: u64) -> Option<String> {
    let signer = certificate.signature_key().fingerprint(HashAlg::Sha256);
    let principals = certificate.valid_principals();
    let names_host = principals.is_empty() || principals.iter().any(|name| name.eq_ignore_ascii_case(host));
    if certificate.cert_type() != CertType::Host {
        Some("it is a user certificate, not a host's".to_owned())
    } else if now < certificate.valid_after() {
        Some("it is not valid yet; are the clocks right?".to_owned())
    } else if now >= certificate.valid_before() {
        Some("it has expired".to_owned())
    } else if !names_host {
        Some(format!("it was given to {}, not to {host}", principals.join(", ")))
    } else if certificate.critical_options().iter().next().is_some() {
        Some("it has critical options, which host certificates cannot have".to_owned())
    } else if certificate.validate_at(now, [&signer]).is_err() {
        Some("its signature does not hold".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use russh::keys::PrivateKey;
    use russh::keys::ssh_key::certificate::Builder;
    use russh::keys::ssh_key::private::Ed25519Keypair;
    use std::path::Path;

    const NOW: u64 = 1_000;

    fn private(seed: u8) -> PrivateKey {
        PrivateKey::from(Ed25519Keypair::from_seed(&[seed; 32]))
    }

    fn line(seed: u8) -> String {
        private(seed).public_key().to_openssh().unwrap()
    }

    /// Key 1 signed by authority 9 for `names`, changed by `change`.
    fn certificate(names: &[&str], change: impl Fn(&mut Builder)) -> Certificate {
        signed(CertType::Host, names, change)
    }

    fn signed(kind: CertType, names: &[&str], change: impl Fn(&mut Builder)) -> Certificate {
        let mut builder = Builder::new(vec![5; 16], private(1).public_key().key_data().clone(), 500, 2_000).unwrap();
        builder.cert_type(kind).unwrap();
        for name in names {
            builder.valid_principal(*name).unwrap();
        }
        if names.is_empty() {
            builder.all_principals_valid().unwrap();
        }
        change(&mut builder);
        builder.sign(&private(9)).unwrap()
    }

    fn check(text: &str, certificate: &Certificate, now: u64) -> Verdict {
        let mut known = KnownHosts::default();
        known.add(text, Path::new("kh"));
        known.check_certificate_at("n1.lab", 2222, certificate, now)
    }

    #[test]
    fn a_certificate_of_a_trusted_authority_for_this_host_and_time_is_known() {
        let trusted = format!("@cert-authority [*.lab]:* {}\n", line(9));
        assert_eq!(check(&trusted, &certificate(&["n1.lab"], |_| ()), NOW), Verdict::Known);
        assert_eq!(check(&trusted, &certificate(&[], |_| ()), NOW), Verdict::Known);
        for (certificate, now, word) in [
            (certificate(&["n2.lab"], |_| ()), NOW, "given to n2.lab"),
            (certificate(&["n1.lab"], |_| ()), 2_000, "expired"),
            (certificate(&["n1.lab"], |_| ()), 499, "not valid yet"),
            (certificate(&["n1.lab"], |b| _ = b.critical_option("x", "y").unwrap()), NOW, "critical"),
            (signed(CertType::User, &["n1.lab"], |_| ()), NOW, "user certificate"),
        ] {
            let Verdict::BadCertificate { reason } = check(&trusted, &certificate, now) else { panic!("{word}") };
            assert!(reason.contains(word), "{reason}");
        }
    }

    #[test]
    fn a_forged_signature_of_a_trusted_authority_does_not_hold() {
        let trusted = format!("@cert-authority * {}\n", line(9));
        let mut bytes = certificate(&["n1.lab"], |_| ()).to_bytes().unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let forged = Certificate::from_bytes(&bytes).unwrap();
        let Verdict::BadCertificate { reason } = check(&trusted, &forged, NOW) else { panic!("accepted") };
        assert!(reason.contains("signature"), "{reason}");
    }

    #[test]
    fn revoking_the_key_or_its_authority_refuses_the_certificate() {
        let trusted = format!("@cert-authority * {}\n", line(9));
        for revoked in [1, 9] {
            let text = format!("{trusted}@revoked * {}\n", line(revoked));
            let verdict = check(&text, &certificate(&["n1.lab"], |_| ()), NOW);
            assert_eq!(verdict, Verdict::Revoked { file: "kh".into(), line: 2 });
        }
    }

    #[test]
    fn a_certificate_of_a_stranger_counts_as_the_key_inside_it() {
        let certificate = certificate(&["n1.lab"], |_| ());
        assert_eq!(check("", &certificate, NOW), Verdict::Unknown);
        assert_eq!(check(&format!("@cert-authority * {}\n", line(8)), &certificate, NOW), Verdict::Unknown);
        assert_eq!(check(&format!("[n1.lab]:2222 {}\n", line(1)), &certificate, NOW), Verdict::Known);
        // An authority's own line must not trust a plain key, nor the other way round.
        assert_eq!(check(&format!("@cert-authority * {}\n", line(1)), &certificate, NOW), Verdict::Unknown);
        let text = format!("[n1.lab]:2222 {}\n", line(9));
        assert!(matches!(check(&text, &certificate, NOW), Verdict::Changed { .. }));
    }
}
