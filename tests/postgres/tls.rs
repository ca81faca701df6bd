//! The encrypted way to the server: its certificate and its name are verified, and nothing is ever
//! sent in clear where encryption is wanted.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::nodes::home;
use crate::support::postgres::{Cluster, Database};
use crate::support::steps;

/// An authority of our own, and its certificate as `sslrootcert` takes it.
fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

/// Gives the server a certificate for these names, and has it speak TLS from the next connection
/// on.
fn certify(cluster: &Cluster, authority: &CertifiedIssuer<'static, KeyPair>, names: &[&str]) {
    let key = KeyPair::generate().expect("a key");
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let certificate = CertificateParams::new(names)
        .expect("names")
        .signed_by(&key, authority)
        .expect("a certificate");
    let (data, _) = cluster.places();
    let owner = std::fs::metadata(data).expect("the cluster's folder");
    for (file, text) in [("server.crt", certificate.pem()), ("server.key", key.serialize_pem())] {
        let path = data.join(file);
        std::fs::write(&path, text).expect("a file of the server");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
            .expect("its rights");
        chown(&path, Some(owner.uid()), Some(owner.gid())).expect("its owner");
    }
    cluster.set(&["ssl=on"]);
}

fn write(path: PathBuf, text: &str) -> PathBuf {
    std::fs::write(&path, text).expect("a file");
    path
}

#[test]
fn only_the_right_server_is_spoken_to() {
    let (ours, other) = (authority("Ours"), authority("Somebody else"));
    let cluster = Cluster::start(&[]);
    let database = Database::in_cluster(&cluster.url);
    let files = home(&database.url());
    let ours_file = write(files.directory.join("ours.pem"), &ours.pem());
    let other_file = write(files.directory.join("other.pem"), &other.pem());
    let at = |host: &str, root: &Path, mode: &str| {
        let url = database.url().replacen("127.0.0.1", host, 1);
        format!("{url}?sslmode={mode}&sslrootcert={}", root.display())
    };
    let refused = |url: &str, reason: &str| {
        let outcome = home(url).run(&["check"]);
        assert!(!outcome.status.success(), "{url} was accepted");
        assert!(outcome.stderr.contains(reason), "{url}: {}", outcome.stderr);
    };
    drop(files.start());

    // A server without TLS is not spoken to where it is wanted.
    refused(&at("127.0.0.1", &ours_file, "verify-full"), "cannot be reached");

    certify(&cluster, &ours, &["localhost", "127.0.0.1"]);
    for mode in ["require", "verify-ca", "verify-full"] {
        for host in ["localhost", "127.0.0.1"] {
            home(&at(host, &ours_file, mode)).run(&["check"]).expect_success("the check");
            // Every mode verifies: there is none that encrypts for whoever answers.
            refused(&at(host, &other_file, mode), "certificate");
        }
    }
    // Whose authority is right and whose name is not.
    certify(&cluster, &ours, &["db.example"]);
    for mode in ["require", "verify-ca", "verify-full"] {
        refused(&at("127.0.0.1", &ours_file, mode), "certificate");
    }
    certify(&cluster, &ours, &["127.0.0.1"]);

    // A node that serves speaks TLS on each of its connections.
    let encrypted = home(&at("127.0.0.1", &ours_file, "verify-full"));
    let server = encrypted.start();
    steps::six_steps(&mut server.client(&encrypted.key()), "42.00");
    let connections = |ssl: bool| {
        let own = "datname = current_database() AND application_name = 'hundi'";
        database.value(&format!(
            "SELECT COUNT(*) FROM pg_stat_ssl JOIN pg_stat_activity USING \
         (pid) WHERE {own} AND ssl = {ssl}"
        ))
    };
    assert_ne!(connections(true), "0");
    assert_eq!(connections(false), "0", "a connection is in clear");
    // The control: a node that was told to speak in clear does.
    let clear = home(&at("127.0.0.1", &ours_file, "disable"));
    let _clear = clear.start();
    assert_ne!(connections(false), "0");
}
