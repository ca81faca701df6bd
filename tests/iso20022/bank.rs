//! A server whose bank is the test's: payouts that wait, an agent that carries files, and a
//! simulated bank behind it.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hundi::kernel::id::kind;
use hundi::kernel::{Id, OperationError, StoreError};
use hundi::payouts::{self, Payout};
use hundi::rails::files::rows;
use hundi::rails::files::settings::{BankSettings, BankTable};
use hundi::rails::iso20022::simulator::{Behaviour, SimulatedIsoBank};
use hundi::reconcile::{self, DifferenceKind};
use hundi::workers::bank::publish::{FaultPoint, PublishStep, Stopped};
use hundi::workers::bank::{Bank, TurnReport};
use serde_json::{Value, json};

use crate::support::{Client, Server, id};

pub const DEBIT_ACCOUNT: &str = "00112233445566";
/// An account that is paid, and ones that the simulated bank treats otherwise.
pub const PAID: &str = "50100012345678";
pub const REFUSED: &str = "50100012341001";
pub const RETURNED: &str = "50100012341002";
pub const SILENT: &str = "50100012341003";
pub const UNREFERENCED: &str = "50100012341004";

pub fn temporary() -> PathBuf {
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).unwrap();
    std::env::temp_dir().join(format!("hundi-bank-{:016x}", u64::from_be_bytes(random)))
}

pub fn settings(folder: PathBuf, more: &str) -> BankSettings {
    let text = format!(
        "folder = '{}'\ndebit_account_name = 'Hundi & Co'\ndebit_account_number = \
         '{DEBIT_ACCOUNT}'\ndebit_account_ifsc = 'YESB0000240'\n\
         supports_nre = true\npoll_seconds = 1\n{more}",
        folder.display()
    );
    toml::from_str::<BankTable>(&text).unwrap().try_into().unwrap()
}

pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// A server, its worker by hand, the agent and the bank.
pub struct Scene {
    pub server: Server,
    pub client: Client,
    pub settings: Arc<BankSettings>,
    pub bank: Bank,
    pub simulated: SimulatedIsoBank,
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.settings.folder);
    }
}

impl Scene {
    pub async fn new(behaviour: Vec<Behaviour>) -> Scene {
        Scene::with(behaviour, "").await
    }

    /// The same with more settings of the bank.
    pub async fn with(behaviour: Vec<Behaviour>, more: &str) -> Scene {
        let settings = settings(temporary(), more);
        let server = Server::start_bank(settings.clone(), false).await;
        Scene::of(server, settings, behaviour).await
    }

    /// The same with a debit account at another branch, of another bank.
    pub async fn at_branch(ifsc: &str, more: &str) -> Scene {
        let mut settings = settings(temporary(), more);
        settings.debit_account_ifsc = ifsc.to_owned();
        let server = Server::start_bank(settings.clone(), false).await;
        Scene::of(server, settings, Vec::new()).await
    }

    /// On PostgreSQL, whatever the other tests run on.
    pub async fn on_postgres() -> Scene {
        let settings = settings(temporary(), "");
        let server = Server::start_bank_on_postgres(settings.clone()).await;
        Scene::of(server, settings, Vec::new()).await
    }

    async fn of(server: Server, settings: BankSettings, behaviour: Vec<Behaviour>) -> Scene {
        let client = server.client().await;
        let settings = Arc::new(settings);
        let bank = Bank::open_in_boot(settings.clone(), Some("boot-1".into())).unwrap();
        Scene {
            server,
            client,
            settings,
            bank,
            simulated: SimulatedIsoBank::new(7, now(), behaviour),
        }
    }

    /// A transfer whose payout waits for the bank.
    pub async fn payout(&self, account_number: &str, amount: &str) -> (Value, Id<kind::Payout>) {
        let body = self.client.transfer_body(account_number, amount).await;
        let transfer = self.client.post("/v1/transfers", body).await.ok();
        self.client.deposit(&transfer, json!({})).await;
        let path = format!("/v1/transfers/{}", id(&transfer));
        let transfer = self.client.wait_status(&path, "payout_processing").await;
        let payout_id = Id::parse(transfer["payout_id"].as_str().unwrap()).unwrap();
        (transfer, payout_id)
    }

    pub async fn find(&self, payout_id: Id<kind::Payout>) -> Payout {
        let found = self.server.app.state.store.write(move |tx, _| {
            let journalled = rows::find(tx, payout_id)?
                .ok_or_else(|| OperationError::from(StoreError::Broken("not journalled".into())))?;
            Ok(payouts::rows::find(tx, journalled.scope, payout_id)?)
        });
        found.await.unwrap().unwrap()
    }

    pub async fn turn(&mut self) -> TurnReport {
        self.bank.turn(&self.server.app.state).await.unwrap()
    }

    /// Writes one file in a given order of steps, up to a fault point.
    pub async fn publish_in(
        &self,
        order: &[PublishStep],
        fault: Option<FaultPoint>,
    ) -> Result<usize, Stopped> {
        let mut turn = TurnReport::default();
        self.bank.publish_in(&self.server.app.state, order, fault, &mut turn).await
    }

    /// What the agent finds in the outbox and takes away.
    pub fn taken(&self) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.bank.folders().outbox).unwrap() {
            let path = entry.unwrap().path();
            found.push(fs::read_to_string(&path).unwrap());
            fs::remove_file(path).unwrap();
        }
        found
    }

    pub fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.bank.folders().inbox.join(name), bytes).unwrap();
    }

    /// Carries files both ways until the bank has said everything, and lets the worker read all of
    /// it.
    pub async fn exchange(&mut self) -> TurnReport {
        let mut sum = TurnReport::default();
        loop {
            let turn = self.turn().await;
            sum.published_count += turn.published_count;
            sum.files_count += turn.files_count;
            sum.refused_count += turn.refused_count;
            sum.counts.applied += turn.counts.applied;
            sum.counts.ignored += turn.counts.ignored;
            sum.counts.unknown += turn.counts.unknown;
            for file in self.taken() {
                self.simulated.take(file.as_bytes(), now()).unwrap();
            }
            let files = self.simulated.next_files();
            let is_quiet = files.is_empty() && self.simulated.is_quiet();
            for file in files {
                self.put(&file.name, &file.bytes);
            }
            if is_quiet && fs::read_dir(&self.bank.folders().inbox).unwrap().next().is_none() {
                return sum;
            }
        }
    }

    /// The kinds of difference that reconciliation finds, sorted.
    pub async fn differences(&self) -> Vec<DifferenceKind> {
        let report =
            self.server.app.state.store.write(|tx, _| Ok(reconcile::run(tx)?)).await.unwrap();
        let mut kinds: Vec<DifferenceKind> =
            report.differences.iter().map(|difference| difference.kind).collect();
        kinds.sort_by_key(|kind| kind.as_str());
        kinds
    }

    pub fn assert_book(&self) {
        self.server.assert_book();
    }
}
