//! Where a PostgreSQL server is, and whether the connection to it is encrypted.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use tokio_postgres::config::{Host, SslMode};

/// A parsed `postgres://user:password@host:port/name?sslmode=…`. Its text never shows the password.
#[derive(Clone)]
pub struct PostgresUrl {
    /// One for each server that the address names.
    pub(super) hosts: Vec<tokio_postgres::Config>,
    /// `None` if connections are not encrypted.
    pub(super) tls: Option<Arc<rustls::ClientConfig>>,
    shown: String,
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl PostgresUrl {
    /// `sslmode=disable` sends in clear. `require`, `verify-ca` and `verify-full` encrypt, and all
    /// three verify the server's certificate and name. The trusted roots are those in the file that
    /// `sslrootcert` names, or else the machine's. Without `sslmode`, connections are in clear if
    /// every server of the address is on this machine, and encrypted otherwise.
    pub fn parse(text: &str) -> Result<PostgresUrl, String> {
        const EXAMPLE: &str = "write postgres://USER@HOST:5432/NAME";
        let Some(("postgres" | "postgresql", rest)) = text.split_once("://") else {
            return Err(format!(
                "the database's address does not begin with postgres://: {EXAMPLE}"
            ));
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut pairs: Vec<(String, String)> =
            url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let own = |name: &str| {
            pairs.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        };
        let (mode, root_file) = (own("sslmode"), own("sslrootcert").map(PathBuf::from));
        pairs.retain(|(key, _)| key != "sslmode" && key != "sslrootcert");
        // Spaces become `%20`, because the driver's parser takes a plus sign as it is.
        let passed = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&pairs)
            .finish()
            .replace('+', "%20");
        let mut config = tokio_postgres::Config::from_str(&format!("postgres://{place}?{passed}"))
            .map_err(|error| {
                format!("the database's address cannot be read ({error}): {EXAMPLE}")
            })?;
        if config.get_hosts().is_empty() || config.get_dbname().is_none() {
            return Err(format!("the database's address names no host or no database: {EXAMPLE}"));
        }
        let is_named_here = config.get_hosts().iter().all(|host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => {
                name == "localhost"
                    || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
            }
        });
        // If the address of a host is given (`hostaddr`), the driver connects there and not to the
        // host's name.
        let is_here =
            is_named_here && config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback);
        let tls = match mode.as_deref() {
            Some("disable") => None,
            None if is_here => None,
            None | Some("require" | "verify-ca" | "verify-full") => {
                Some(Arc::new(client_config(root_file)?))
            }
            Some(_) => {
                return Err("sslmode must be disable, require, verify-ca or verify-full; a mode \
                            that may leave the connection unencrypted is refused"
                    .into());
            }
        };
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        let (login, servers) =
            place.rsplit_once('@').map_or((None, place), |(login, servers)| (Some(login), servers));
        let user = login
            .and_then(|login| login.split(':').next())
            .map_or(String::new(), |user| format!("{user}@"));
        Ok(PostgresUrl {
            hosts: of_each_host(&config),
            tls,
            shown: format!("postgres://{user}{servers}"),
        })
    }
}

/// Splits a configuration with several servers into one for each server. Left out are
/// `load_balance_hosts`, `connect_timeout` and `target_session_attrs`; `connect.rs` sets the last
/// two itself.
fn of_each_host(config: &tokio_postgres::Config) -> Vec<tokio_postgres::Config> {
    if config.get_hosts().len() < 2 {
        return vec![config.clone()];
    }
    let (ports, addresses) = (config.get_ports(), config.get_hostaddrs());
    let of_host = |(index, host): (usize, &Host)| {
        let mut one = tokio_postgres::Config::new();
        match host {
            Host::Unix(path) => one.host_path(path),
            Host::Tcp(name) => one.host(name),
        };
        one.port(*ports.get(index).or(ports.first()).unwrap_or(&5432));
        if let Some(address) = addresses.get(index) {
            one.hostaddr(*address);
        }
        one.ssl_mode(config.get_ssl_mode()).channel_binding(config.get_channel_binding());
        one.ssl_negotiation(config.get_ssl_negotiation());
        one.user(config.get_user().unwrap_or_default());
        one.dbname(config.get_dbname().unwrap_or_default());
        if let Some(password) = config.get_password() {
            one.password(password);
        }
        if let Some(options) = config.get_options() {
            one.options(options);
        }
        if let Some(name) = config.get_application_name() {
            one.application_name(name);
        }
        if let Some(timeout) = config.get_tcp_user_timeout() {
            one.tcp_user_timeout(*timeout);
        }
        one.keepalives(config.get_keepalives()).keepalives_idle(config.get_keepalives_idle());
        if let Some(interval) = config.get_keepalives_interval() {
            one.keepalives_interval(interval);
        }
        if let Some(retries) = config.get_keepalives_retries() {
            one.keepalives_retries(retries);
        }
        one
    };
    config.get_hosts().iter().enumerate().map(of_host).collect()
}

/// Encrypts a connection.
pub(super) fn connector(
    tls: &Arc<rustls::ClientConfig>,
) -> tokio_postgres_rustls::MakeRustlsConnect {
    tokio_postgres_rustls::MakeRustlsConnect::new((**tls).clone())
}

fn client_config(root_file: Option<PathBuf>) -> Result<rustls::ClientConfig, String> {
    let roots = match root_file {
        None => crate::tls::platform_roots(),
        Some(path) => {
            let shown = path.display();
            let pem = std::fs::read(&path)
                .map_err(|error| format!("cannot read the root certificates {shown}: {error}"))?;
            let mut roots = rustls::RootCertStore::empty();
            use rustls::pki_types::pem::PemObject;
            for certificate in rustls::pki_types::CertificateDer::pem_slice_iter(&pem) {
                let certificate =
                    certificate.map_err(|error| format!("{shown} cannot be read: {error:?}"))?;
                roots
                    .add(certificate)
                    .map_err(|error| format!("{shown} holds no root certificate: {error}"))?;
            }
            if roots.is_empty() {
                return Err(format!("{shown} holds no certificate"));
            }
            roots
        }
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| format!("TLS cannot be set up: {error}"))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_over_a_network_is_encrypted_unless_the_operator_says_otherwise() {
        for (text, is_encrypted) in [
            ("postgres://hundi@localhost/hundi", false),
            ("postgresql://hundi@127.0.0.1:5433/hundi", false),
            ("postgres://hundi@%2Frun%2Fpostgresql/hundi", false),
            ("postgres://hundi@db.example/hundi", true),
            ("postgres://hundi@localhost/hundi?sslmode=require", true),
            ("postgres://hundi@db.example/hundi?sslmode=verify-full", true),
            ("postgres://hundi@db.example/hundi?sslmode=disable", false),
            // `hostaddr` decides, whatever the host is called.
            ("postgres://hundi@localhost/hundi?hostaddr=127.0.0.1", false),
            ("postgres://hundi@localhost/hundi?hostaddr=192.0.2.7", true),
            ("postgres://hundi@%2Frun%2Fpostgresql/hundi?hostaddr=192.0.2.7", true),
            ("postgres://hundi@localhost,localhost/hundi?hostaddr=127.0.0.1,192.0.2.7", true),
            ("postgres://hundi@localhost/hundi?hostaddr=192.0.2.7&sslmode=disable", false),
            ("postgres://hundi@db.example/hundi?hostaddr=127.0.0.1", true),
        ] {
            assert_eq!(PostgresUrl::parse(text).unwrap().tls.is_some(), is_encrypted, "{text}");
        }
    }

    #[test]
    fn each_of_several_servers_has_the_settings_of_the_address() {
        let settings = "tcp_user_timeout=9&keepalives=0&keepalives_idle=8&keepalives_interval=7&\
                        keepalives_retries=6&sslnegotiation=direct&channel_binding=require";
        let parse = |hosts: &str| {
            PostgresUrl::parse(&format!("postgres://hundi@{hosts}/hundi?{settings}")).unwrap().hosts
        };
        let of = |config: &tokio_postgres::Config| {
            (
                (config.get_tcp_user_timeout().copied(), config.get_keepalives()),
                (config.get_keepalives_idle(), config.get_keepalives_interval()),
                config.get_keepalives_retries(),
                (config.get_ssl_negotiation(), config.get_channel_binding()),
            )
        };
        let one = parse("127.0.0.1:5433");
        assert_ne!(of(&one[0]), of(&tokio_postgres::Config::new()));
        let several = parse("127.0.0.1:5433,[::1]:5434");
        assert_eq!([of(&several[0]), of(&several[1])], [of(&one[0]), of(&one[0])]);
        // These are the values of the address, not the driver's defaults.
        let seconds = std::time::Duration::from_secs;
        assert_eq!(one[0].get_keepalives_interval(), Some(seconds(7)));
        assert_eq!((one[0].get_keepalives(), one[0].get_keepalives_retries()), (false, Some(6)));
    }

    #[test]
    fn an_unreadable_address_is_refused_and_a_password_is_never_shown() {
        let url =
            PostgresUrl::parse("postgres://hundi:geheim@localhost:5433/hundi?application_name=a")
                .unwrap();
        assert_eq!(url.to_string(), "postgres://hundi@localhost:5433/hundi");
        assert!(!format!("{url:?}").contains("geheim"));
        let several = PostgresUrl::parse(
            "postgres://hundi:ge%40heim@127.0.0.1:5433,[::1]:5434/hundi?options=-c%20geqo%3Doff",
        )
        .unwrap();
        assert_eq!(several.to_string(), "postgres://hundi@127.0.0.1:5433,[::1]:5434/hundi");
        let ports: Vec<&[u16]> = several.hosts.iter().map(|host| host.get_ports()).collect();
        assert_eq!(ports, [&[5433], &[5434]]);
        for host in &several.hosts {
            assert_eq!(
                (host.get_options(), host.get_password(), host.get_hosts().len()),
                (Some("-c geqo=off"), Some(&b"ge@heim"[..]), 1)
            );
        }
        for text in [
            "postgres://",
            "postgres://hundi@localhost",
            "mysql://hundi@localhost/hundi",
            "postgres://hundi@localhost/hundi?sslmode=prefer",
            "postgres://hundi@localhost/hundi?sslmode=allow",
            "postgres://hundi@localhost/hundi?nonsense=1",
            "postgres://hundi:geheim@localhost:port/hundi",
            "postgres://hundi@db.example/hundi?sslrootcert=/nowhere.pem",
        ] {
            let fault = PostgresUrl::parse(text).unwrap_err();
            assert!(!fault.contains("geheim"), "{fault}");
        }
    }
}
