//! Environment variables that are not text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::refused_start;
use crate::support::Home;

const NOT_UTF8: &[u8] = b"secret\xff";

/// A service manager or a shell may hand on what other programs set.
#[test]
fn foreign_variables_that_are_not_utf8_are_ignored() {
    let mut home = Home::new("cli-foreign");
    for name in ["OLDPWD", "NOTIFY_SOCKET", "LESSOPEN_FILE"] {
        home.set(name, OsStr::from_bytes(NOT_UTF8));
    }
    let server = home.start();
    home.run(&["keys", "list"]).expect_success("keys list");
    assert!(server.stop().success());
}

/// A setting that cannot be read is refused. Ignoring it would mean the default.
#[test]
fn variables_of_ours_that_are_not_utf8_are_refused_by_name() {
    // A setting, a secret, one that clap reads, one that is read before the log begins.
    for name in
        ["HUNDI_LISTEN", "HUNDI_ENCRYPTION_KEY", "HUNDI_FEE_FILE", "HUNDI_ACTOR", "HUNDI_LOG"]
    {
        let mut home = Home::new("cli-not-utf8");
        home.set(name, OsStr::from_bytes(NOT_UTF8));
        let refused = refused_start(&home);
        assert!(refused.stderr.contains(&format!("{name} is not UTF-8")), "{}", refused.stderr);
        assert!(!refused.stderr.contains("secret"), "the value is shown: {}", refused.stderr);
        assert!(!home.database_path().exists(), "a database was made");
        let refused = home.run(&["keys", "list"]);
        assert!(!refused.status.success() && refused.stderr.contains(name), "{}", refused.stderr);
    }
}
