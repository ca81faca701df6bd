//! The directory of IFSCs and the review of beneficiaries, as an operator uses them on the command
//! line.

mod support;

use serde_json::{Value, json};
use support::{Home, until};

fn packed(home: &Home, name: &str, rows: &str) -> String {
    let (csv, file) =
        (home.directory.join(format!("{name}.csv")), home.directory.join(format!("{name}.bin")));
    std::fs::write(&csv, format!("BANK,IFSC,BRANCH,NEFT,RTGS,IMPS,UPI\n{rows}")).expect("a CSV");
    let (csv, file) = (csv.display().to_string(), file.display().to_string());
    let outcome =
        home.run_plain(&["ifsc-pack", &csv, &file, "--as-of", "2026-10-31", "--source", "a test"]);
    assert!(outcome.expect_success("ifsc-pack").stdout.contains("1 branches"));
    file
}

#[test]
fn an_ifsc_is_looked_up_in_the_binary_or_in_the_operators_file() {
    let mut home = Home::new("directory-ifsc");
    let shown = home.run_plain(&["ifsc", "hdfc0000001"]).expect_success("ifsc").stdout;
    for part in [
        "code\tHDFC0000001",
        "bank\tHDFC Bank",
        "rails\tNEFT RTGS IMPS",
        "payouts\tyes",
        "2026-06-30",
    ] {
        assert!(shown.contains(part), "{part} is missing in {shown}");
    }
    for (code, part) in [("HDFC0ZZZZZZ", "not in the directory of"), ("HDFC", "is no IFSC")] {
        let refused = home.run_plain(&["ifsc", code]);
        assert!(!refused.status.success() && refused.stderr.contains(part), "{}", refused.stderr);
    }
    let file = packed(&home, "new", "New Bank,NEWB0000001,First,true,true,true,true\n");
    home.set("HUNDI_IFSC_FILE", &file);
    assert!(
        home.run_plain(&["ifsc", "NEWB0000001"])
            .expect_success("ifsc")
            .stdout
            .contains("bank\tNew Bank")
    );
    let server = home.start();
    let mut client = server.client(&home.key());
    let body = json!({"name": "Asha Rao", "account_number": "50100012345678", "ifsc": "NEWB0000001",
        "account_type": "nre"});
    let created = client.post("/v1/beneficiaries", &body).expect_success("a beneficiary");
    assert_eq!(
        (&created["bank_name"], &created["branch_name"]),
        (&json!("New Bank"), &json!("First"))
    );
    assert!(server.stop().success());
    // A damaged file is refused at the start rather than at the first beneficiary.
    std::fs::write(&file, b"hundiIF1 and nothing more").expect("a write");
    let refused = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        !refused.status.success() && refused.stderr.contains("ifsc-pack"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_beneficiary_in_verification_is_listed_and_reviewed() {
    let home = Home::new("directory-review");
    let server = home.start();
    let mut client = server.client(&home.key());
    let mut create = |account_number: &str| {
        let body = json!({"name": "Asha Rao", "account_number": account_number,
            "ifsc": "HDFC0000001", "account_type": "nre"});
        client.post("/v1/beneficiaries", &body).expect_success("a beneficiary")["id"]
            .as_str()
            .expect("an ID")
            .to_owned()
    };
    // The simulated look-up never answers about this one.
    let waiting = create("50100012340004");
    create("50100012345678");
    let mut reader = server.client(&home.key());
    let mut status_is = |id: &str, status: &str| {
        let path = format!("/v1/beneficiaries/{id}");
        until("the status", std::time::Duration::from_secs(20), || {
            let found: Value = reader.get(&path).expect_success("a beneficiary");
            (found["status"] == status).then_some(())
        });
    };
    let listed =
        home.run(&["beneficiaries", "list", "--status", "verifying"]).expect_success("list").stdout;
    let line = listed.lines().find(|line| line.starts_with(&waiting)).expect("the line");
    assert!(
        line.contains("\tdefault\ttest\tverifying\tverification_pending\t")
            && line.contains("…0004\tHDFC0000001\tHDFC Bank"),
        "{line}"
    );
    assert!(!listed.contains("50100012340004"));
    let whole = ["beneficiaries", "list", "--status", "verifying", "--show-account-numbers"];
    let log = || home.run(&["audit", "export"]).expect_success("audit export").stdout;
    let looks = |log: &str| log.matches("account_number_seen").count();
    let without = home.run(&whole);
    assert!(!without.status.success() && without.stderr.contains("--reason TEXT"));
    assert!(!without.stdout.contains("50100012340004"));
    assert_eq!(looks(&log()), 0);
    let with_reason = [&whole[..], &["--reason", "a look at the bank"]].concat();
    let full = home.run(&with_reason).expect_success("list").stdout;
    assert!(full.contains("50100012340004"));
    let kept = log();
    assert_eq!(looks(&kept), 1, "one for each beneficiary that is shown: {kept}");
    assert!(kept.contains(&waiting) && kept.contains("a look at the bank"), "{kept}");
    // Once there are operators, it is one of them who may decide.
    for (name, role) in [("asha", "admin"), ("vimala", "viewer"), ("omar", "operator")] {
        let by = ["--actor", "asha", "--reason", "a test"];
        let made = [&["operators", "create", name, "--role", role], &by[..]].concat();
        home.run(&made).expect_success("operators create");
    }
    for (name, is_shown) in [("", false), ("vimala", false), ("nobody", false), ("omar", true)] {
        let shown = home.run(&[&with_reason[..], &["--actor", name]].concat());
        assert_eq!(shown.status.success(), is_shown, "{name}: {}", shown.stderr);
        assert_eq!(shown.stdout.contains("50100012340004"), is_shown, "{name}");
    }
    assert_eq!(looks(&log()), 2);
    let by = ["--actor", "omar", "--reason", "a test"];
    for arguments in [
        &["beneficiaries", "review", &waiting][..],
        &["beneficiaries", "review", &waiting, "--match", "--invalid"],
        &["beneficiaries", "review", "nobody", "--match"],
        &["beneficiaries", "list", "--status", "asleep"],
    ] {
        assert!(!home.run(arguments).status.success(), "{arguments:?}");
    }
    let review = [&["beneficiaries", "review", &waiting, "--match"], &by[..]].concat();
    let outcome = home.run(&review).expect_success("review");
    assert!(outcome.stdout.contains("is active"));
    status_is(&waiting, "active");
    let again = home.run(&[&["beneficiaries", "review", &waiting, "--invalid"], &by[..]].concat());
    assert!(!again.status.success() && again.stderr.contains("does not take"), "{}", again.stderr);
    assert!(home.check().status.success());
}
