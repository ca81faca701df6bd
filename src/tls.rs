//! Root certificates for every outgoing TLS connection: webhooks, chain nodes, rates, PostgreSQL.

use rustls::RootCertStore;

/// The certificates that the platform trusts, or Mozilla's where it has none. Reads files: call it
/// once at start, outside the runtime's workers.
pub fn platform_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_are_roots_on_every_machine() {
        assert!(!super::platform_roots().is_empty());
    }
}
