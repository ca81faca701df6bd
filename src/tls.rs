//! Root certificates for outgoing TLS connections, such as those to webhook receivers, chain nodes
//! and PostgreSQL. For PostgreSQL the address may name a file of its own (`sslrootcert`).

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

/// The variables by which an operator names the trusted certificates.
const NAMING_VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// The certificates that the platform trusts, or Mozilla's if the platform has none. If one of
/// [`NAMING_VARIABLES`] is set, only the certificates that it names count. If it names none that
/// can be read, no connection is trusted. Reads many files: call it only at a start.
pub fn platform_roots() -> RootCertStore {
    let loaded = rustls_native_certs::load_native_certs();
    for error in &loaded.errors {
        tracing::warn!(%error, "a file of trusted certificates could not be read");
    }
    let are_named = NAMING_VARIABLES.iter().any(|name| std::env::var_os(name).is_some());
    let roots = roots_of(loaded.certs, are_named);
    if roots.is_empty() {
        tracing::error!(
            "no certificate that {} name could be read: no TLS connection is trusted",
            NAMING_VARIABLES.join(" or ")
        );
    }
    roots
}

fn roots_of(certificates: Vec<CertificateDer<'static>>, are_named: bool) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() && !are_named {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_roots_on_every_machine() {
        assert!(!platform_roots().is_empty());
        assert!(!roots_of(Vec::new(), false).is_empty());
    }

    #[test]
    fn certificates_that_cannot_be_read_are_not_replaced_by_others() {
        assert!(roots_of(Vec::new(), true).is_empty());
        assert!(
            roots_of(vec![CertificateDer::from(b"no certificate".as_slice())], true).is_empty()
        );
    }
}
