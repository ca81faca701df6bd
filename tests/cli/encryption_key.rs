//! The encryption key of one process with a file: what a change of it keeps, and what it refuses.
//! `tests/postgres/encryption_key.rs` does the same with several nodes.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use crate::Kept;
use crate::support::rotation::{self, Before, NEW_KEY, OLD_KEY, give, rotate};
use crate::support::{Home, steps};

fn home(name: &str) -> Home {
    let mut home =
        Home::new(name).with("HUNDI_RATE_LIMIT_READS", "0").with("HUNDI_RATE_LIMIT_WRITES", "0");
    give(&mut home, OLD_KEY, None);
    home
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted kills")]
fn key_changes_under_load_and_kills() {
    rotation::changes_the_key(&mut [home("cli-rotation")]);
}

/// Without a server nobody has to be asked, and a process that has one key of two does not start.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted kills")]
fn half_a_change_needs_both_keys() {
    let mut home = home("cli-rotation-half");
    let server = home.start();
    let api_key = home.key();
    let before = Before::make(&mut server.client(&api_key));
    assert!(server.stop().success());
    give(&mut home, OLD_KEY, Some(NEW_KEY));
    home.set("HUNDI_TEST_FAULT", "rotation_dies_at_batch_2");
    assert!(!rotate(&home).status.success());
    home.unset("HUNDI_TEST_FAULT");
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    for (key, words) in [(OLD_KEY, "does not fit"), (NEW_KEY, "is being changed from")] {
        give(&mut home, key, None);
        let refused = home.run(&serve);
        assert!(!refused.status.success() && refused.stderr.contains(words), "{}", refused.stderr);
    }
    // With both it goes on, whichever is called the next.
    give(&mut home, NEW_KEY, Some(OLD_KEY));
    let server = home.start();
    before.still_works(&mut server.client(&api_key));
    let check = home.check().expect_success("the check half way").stdout;
    assert!(check.contains("is being changed from"), "{check}");
    rotate(&home).expect_success("the rest of the change");
    assert!(server.stop().success());
    give(&mut home, NEW_KEY, None);
    let server = home.start();
    before.still_works(&mut server.client(&api_key));
    home.check().expect_success("the check afterwards");
}

/// The control: a change that forgets one column is noticed with the new key alone.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted fault")]
fn forgotten_values_are_noticed() {
    let mut home = home("cli-rotation-control");
    let server = home.start();
    Before::make(&mut server.client(&home.key()));
    assert!(server.stop().success());
    give(&mut home, OLD_KEY, Some(NEW_KEY));
    home.set("HUNDI_TEST_FAULT", "rotation_forgets_senders");
    rotate(&home).expect_success("a change that forgets senders");
    home.unset("HUNDI_TEST_FAULT");
    give(&mut home, NEW_KEY, None);
    let check = home.check();
    assert!(!check.status.success(), "nothing was noticed:\n{}", check.stdout);
    assert!(check.stdout.contains("senders.identification"), "{}", check.stdout);
}

/// Keys in files beside the database, as a first start makes one.
#[test]
fn keys_in_files_are_changed_too() {
    let home = Home::new("cli-rotation-files");
    let server = home.start();
    steps::six_steps(&mut server.client(&home.key()), "42.00");
    assert!(server.stop().success());
    let file = |suffix: &str| home.directory.join(format!("hundi.db{suffix}"));
    std::fs::write(file(".key-next"), format!("{NEW_KEY}\n")).unwrap();
    let open = rotate(&home);
    assert!(!open.status.success() && open.stderr.contains("chmod 600"), "{}", open.stderr);
    std::fs::set_permissions(file(".key-next"), Permissions::from_mode(0o600)).unwrap();
    let done = rotate(&home).expect_success("the change").stdout;
    assert!(done.contains("done: "), "{done}");
    assert!(!done.contains(NEW_KEY), "the key is shown");
    std::fs::rename(file(".key-next"), file(".key")).unwrap();
    home.check().expect_success("the check with the new file");
    let server = home.start();
    steps::six_steps(&mut server.client(&home.key()), "42.00");
}

/// A key that does not fit is refused before an older database is migrated, by a command too.
#[test]
fn wrong_key_leaves_an_older_database_as_it_was() {
    let mut kept = Kept::copy(|list| list);
    let path = kept.home.database_path();
    let before = std::fs::read(&path).unwrap();
    let log = kept.home.directory.join("hundi.db-wal");
    let is_as_before = || {
        let is_empty = std::fs::metadata(&log).map_or(true, |log| log.len() == 0);
        is_empty && std::fs::read(&path).unwrap() == before
    };
    let file = kept.home.directory.join("hundi.db.key");
    let commands: [&[&str]; 5] = [
        &["serve", "--listen", "127.0.0.1:0"],
        &["keys", "create", "--mode", "test"],
        &["keys", "list"],
        &["accounts", "suspend", "default"],
        &["keys", "rotate-encryption"],
    ];
    for is_in_file in [false, true] {
        if is_in_file {
            std::fs::write(&file, format!("{NEW_KEY}\n")).unwrap();
            std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
            kept.home.unset("HUNDI_ENCRYPTION_KEY");
        } else {
            kept.home.set("HUNDI_ENCRYPTION_KEY", NEW_KEY);
        }
        for command in commands {
            let refused = kept.home.run(command);
            assert!(!refused.status.success(), "{command:?}: {}", refused.stdout);
            let told = &refused.stderr;
            assert!(told.contains("does not fit") && told.contains(".key"), "{command:?}: {told}");
            assert!(!told.contains("broken"), "{command:?}: {told}");
            assert!(is_as_before(), "{command:?} wrote to the database");
        }
    }
    // With the right key the same command migrates, and works.
    std::fs::remove_file(&file).unwrap();
    kept.home.set("HUNDI_ENCRYPTION_KEY", &kept.text("encryption_key"));
    kept.home.key();
    assert!(!is_as_before());
}
