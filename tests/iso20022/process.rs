//! The service's own worker and the simulated bank as a process of its own, with nothing but two folders between them.

use std::process::{Child, Command, Stdio};

use hundi::rails::iso20022::folders::Folders;
use serde_json::json;

use crate::bank::{PAID, REFUSED, RETURNED, settings, temporary};
use crate::support::{Server, id};

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
        .args(["bank-simulator", "--seed", "5", "--behaviour", "delays,duplicates,reordering,stray_lines", "--outbox"])
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
    for (account, wanted) in [(PAID, "payout_settled"), (REFUSED, "refund_processing"), (RETURNED, "refund_processing")] {
        let body = client.transfer_body(account, "100.00").await;
        let transfer = client.post("/v1/transfers", body).await.ok();
        client.deposit(&transfer, json!({})).await;
        transfers.push((transfer, wanted));
    }
    for (transfer, wanted) in transfers {
        client.wait_status(&format!("/v1/transfers/{}", id(&transfer)), wanted).await;
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_unknown_behaviour_is_refused_by_name() {
    let told = Command::new(env!("CARGO_BIN_EXE_hundi"))
        .args(["bank-simulator", "--outbox", "/nowhere", "--inbox", "/nowhere", "--behaviour", "kind"])
        .output()
        .unwrap();
    assert!(!told.status.success());
    assert!(String::from_utf8_lossy(&told.stderr).contains("stray_lines"));
}
