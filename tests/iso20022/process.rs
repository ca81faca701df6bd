//! The service's own worker and the simulated bank as a process of its own, with nothing but two
//! folders between them.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hundi::rails::files::folders::Folders;
use serde_json::json;

use crate::bank::{PAID, REFUSED, RETURNED, settings, temporary};
use crate::support::{Server, WAIT, id};

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_pay_through_two_folders() {
    let folder = temporary();
    let folders = Folders::open(&folder).unwrap();
    let bank = Command::new(env!("CARGO_BIN_EXE_hundi"))
        .args([
            "bank-simulator",
            "--seed",
            "5",
            "--behaviour",
            "delays,duplicates,reordering,stray_lines",
            "--outbox",
        ])
        .arg(&folders.outbox)
        .arg("--inbox")
        .arg(&folders.inbox)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _bank = Running(bank);
    let server = Server::start_bank(settings(folder.clone(), ""), true).await;
    let client = server.client().await;
    let mut transfers = Vec::new();
    for (account, wanted) in
        [(PAID, "payout_settled"), (REFUSED, "refund_processing"), (RETURNED, "refund_processing")]
    {
        let body = client.transfer_body(account, "100.00").await;
        let transfer = client.post("/v1/transfers", body).await.ok();
        client.deposit(&transfer, json!({})).await;
        transfers.push((transfer, wanted));
    }
    for (transfer, wanted) in transfers {
        client.wait_status(&format!("/v1/transfers/{}", id(&transfer)), wanted).await;
    }
    // Beside the running server, the operator sees the bank's charges, which belong to no payout,
    // and says that they are explained; then nothing differs.
    let reconcile = |more: &[&str]| {
        let command = server
            .binary(&["reconcile", "--database", &server.database_url])
            .args(more)
            .output()
            .unwrap();
        (command.status.code(), String::from_utf8(command.stdout).unwrap())
    };
    let mut accepted_count = 0;
    let started = Instant::now();
    loop {
        let (code, told) = reconcile(&[]);
        let lines: Vec<&str> =
            told.lines().filter(|line| line.starts_with("line_unmatched")).collect();
        assert_eq!(code, Some(i32::from(!told.contains("no differences"))), "{told}");
        for line in &lines {
            assert!(line.contains("-5.90 INR"), "{told}");
            let (code, told) = reconcile(&["--accept", line.split_whitespace().nth(1).unwrap()]);
            assert_eq!(code, Some(0), "{told}");
            accepted_count += 1;
        }
        if accepted_count > 0 && lines.is_empty() && code == Some(0) {
            break;
        }
        assert!(started.elapsed() < WAIT, "{told}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(reconcile(&["--accept", "request_01K5ZZZZZZ7Q2X7N4V6T9R0ABC"]).0, Some(1));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_unknown_behaviour_is_refused_by_name() {
    let told = Command::new(env!("CARGO_BIN_EXE_hundi"))
        .args([
            "bank-simulator",
            "--outbox",
            "/nowhere",
            "--inbox",
            "/nowhere",
            "--behaviour",
            "kind",
        ])
        .output()
        .unwrap();
    assert!(!told.status.success());
    assert!(String::from_utf8_lossy(&told.stderr).contains("stray_lines"));
}
