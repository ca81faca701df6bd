//! What strangers of the machine and of the network may see and reach.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::{Home, steps};

#[test]
fn database_that_others_may_read_is_tightened() {
    let home = Home::new("cli-modes");
    let server = home.start();
    let key = home.key();
    let files = || {
        let listed = std::fs::read_dir(&home.directory).expect("the directory").flatten();
        let files = listed.map(|entry| entry.path()).filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("hundi.db"))
        });
        files.map(|path| {
            let mode = std::fs::metadata(&path).expect("its metadata").permissions().mode();
            (path, mode & 0o777)
        })
    };
    for (path, mode) in files() {
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
    }
    assert!(server.stop().success());
    std::fs::set_permissions(home.database_path(), Permissions::from_mode(0o644)).expect("a mode");
    let server = home.start();
    server.client(&key).post("/v1/senders", &steps::sender_body()).expect_success("a write");
    for (path, mode) in files() {
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
    }
    assert!(home.log().contains("its mode is 600 now"), "nobody was told: {}", home.log());
}

/// A service that the world reaches does not reach into its own machine for callers.
#[test]
fn loopback_webhooks_are_off_where_the_service_is_public() {
    let register = |home: &Home| {
        let server = home.start();
        let body = json!({ "url": "http://127.0.0.1:9/hooks" });
        server.client(&home.key()).post("/v1/webhook_endpoints", &body)
    };
    register(&Home::new("cli-loopback")).expect_success("a receiver of a service on loopback");
    let public = Home::new("cli-public").with("HUNDI_PUBLIC_URL", "https://pay.example.com");
    register(&public).expect_refusal(400, "parameter_value_invalid", "a receiver on loopback");
    let allowed = Home::new("cli-allowed")
        .with("HUNDI_PUBLIC_URL", "https://pay.example.com")
        .with("HUNDI_ALLOW_LOOPBACK_WEBHOOKS", "true");
    register(&allowed).expect_success("a receiver on loopback where the operator allows it");
}
