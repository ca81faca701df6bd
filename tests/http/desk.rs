//! Services without a server, whose ports a test chooses and whose clock it moves.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hundi::account_verification::AccountVerifier;
use hundi::account_verification::simulated::SimulatedVerifier;
use hundi::app::{KeyRequest, create_key};
use hundi::beneficiaries::{self, Beneficiary, Kyc, NewBeneficiary};
use hundi::chains::address::{AddressBytes, ChainAddress};
use hundi::chains::derivation::AccountXpub;
use hundi::chains::pool::AddressPool;
use hundi::chains::tron::Tron;
use hundi::chains::{ChainName, ChainProfile, Depth, Following, Movement};
use hundi::ifsc::Directory;
use hundi::kernel::id::kind;
use hundi::kernel::seal::Sealer;
use hundi::kernel::{Clock, Currency, Id, Metadata, Mode, Money, Now, OperationError, Rate, Scope};
use hundi::keys::Permissions;
use hundi::outbound::Client;
use hundi::quote_locks::{self, QuoteAmount};
use hundi::rails::simulated::SimulatedBank;
use hundi::rates::Market;
use hundi::rates::fixed::FixedRate;
use hundi::screening::lists::{Lists, Reload};
use hundi::screening::settings::ScreeningSource;
use hundi::senders::{self, NewSender, SenderType};
use hundi::services::{Ports, Services, Settings};
use hundi::store::{Store, Tx};
use hundi::transfers::{self, NewTransfer, Transfer};
use hundi::workers::tasks;

pub const TEST: Scope = Scope::new(1, Mode::Test);
pub const LIVE: Scope = Scope::new(1, Mode::Live);

/// Where refunds of [`Desk::transfer`] go.
pub const REFUND_TO: AddressBytes = AddressBytes::of_20([8; 20]);

const LIST_HEADER: &str = "id,name,aliases,date_of_birth,country,address,note\n";

pub struct Desk {
    pub store: Store,
    pub services: Arc<Services>,
    clock: Arc<AtomicI64>,
    folder: PathBuf,
}

/// A movement of what the transfer expects to its deposit address.
pub fn movement(transfer: &Transfer, depth: Depth) -> Movement {
    Movement {
        transaction_hash: format!("{:064x}", 7),
        log_index: 0,
        from_address: AddressBytes::of_20([9; 20]),
        contract: None,
        to_address: *transfer.deposit_address.bytes(),
        asset: "USDT".into(),
        amount: transfer.expected,
        depth,
    }
}

pub fn client() -> Client {
    Client::new(rustls::RootCertStore::empty()).unwrap()
}

fn rates_fixed() -> Box<dyn Market> {
    Box::new(FixedRate { mid: Rate(88_000_000), usdt_usd: Rate(1_000_000) })
}

fn ports(
    rates: Box<dyn Market>,
    accounts: Box<dyn AccountVerifier>,
    lists: Arc<Lists>,
    address_index_name: &str,
) -> Ports {
    Ports {
        rates,
        rail: Box::new(SimulatedBank { step_milliseconds: 5 }),
        accounts,
        screener: Box::new(lists),
        addresses: AddressPool::new(
            &Tron,
            AccountXpub::generate_for_test_mode(&[7; 64]),
            address_index_name.into(),
        ),
        chain: ChainProfile {
            name: ChainName::Tron,
            asset: Currency::Usdt,
            token_contract: ChainAddress::of_chain("tron", AddressBytes::of_20([1; 20])),
            following: Following::Simulated,
        },
    }
}

impl Desk {
    pub async fn with_verifier(accounts: Box<dyn AccountVerifier>) -> Desk {
        Desk::new(rates_fixed(), accounts).await
    }
    pub async fn with_rates(rates: Box<dyn Market>) -> Desk {
        Desk::new(rates, Box::new(SimulatedVerifier)).await
    }

    /// One whose rates stand still.
    pub async fn with_rates_fixed() -> Desk {
        Desk::with_verifier(Box::new(SimulatedVerifier)).await
    }

    /// Configures live mode, with simulated ports.
    pub fn configure_live(&mut self) {
        let services = self.services_mut();
        let lists = services.screening.clone().unwrap();
        let verifier = Box::new(SimulatedVerifier);
        services.live = Some(ports(rates_fixed(), verifier, lists, "live_address_index_next"));
    }

    /// Its services, for changing them.
    pub fn services_mut(&mut self) -> &mut Services {
        // The lane lets go of them a moment after it has answered.
        while Arc::strong_count(&self.services) > 1 {
            std::thread::yield_now();
        }
        Arc::get_mut(&mut self.services).unwrap()
    }

    async fn new(rates: Box<dyn Market>, accounts: Box<dyn AccountVerifier>) -> Desk {
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).unwrap();
        let folder =
            std::env::temp_dir().join(format!("hundi-desk-{:016x}", u64::from_be_bytes(random)));
        std::fs::create_dir(&folder).unwrap();
        let clock = Arc::new(AtomicI64::new(1_790_000_000_000));
        let store = Store::open(
            &folder.join("test.db"),
            Clock::Manual(clock.clone()),
            hundi::webhooks::sequencer::sequence,
        )
        .unwrap();
        // A list with one entry that is nobody here: without a list everybody would wait for the
        // operator.
        let list = folder.join("own.csv");
        std::fs::write(&list, format!("{LIST_HEADER}1,Zebulon Quackenbush,,,,,\n")).unwrap();
        let source = ScreeningSource { operator_file: Some(list), ..ScreeningSource::default() };
        let lists = Arc::new(Lists::load(source.try_into().unwrap()).unwrap());
        let test = ports(rates, accounts, lists.clone(), "test_address_index_next");
        let settings = Settings { simulation_step_milliseconds: 5, ..Settings::default() };
        let services = Arc::new(Services {
            settings,
            sealer: Sealer::new(&[9; 32]),
            ifsc: Directory::embedded().unwrap(),
            test,
            live: None,
            screening: Some(lists),
        });
        let desk = Desk { store, services, clock, folder };
        let request = KeyRequest {
            account: "default".into(),
            mode: Mode::Test,
            permissions: Permissions::All,
            expires_at: None,
        };
        desk.write(move |tx, now, _| Ok(create_key(tx, now, &request)?)).await.unwrap();
        desk
    }

    pub async fn write<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&mut dyn Tx, &mut Now, &Services) -> Result<T, OperationError>
        + Send
        + 'static,
    ) -> Result<T, OperationError> {
        let services = self.services.clone();
        self.store.write(move |tx, now| work(tx, now, &services)).await
    }

    /// Puts another list in the place of the one there is, and reads it.
    pub fn write_list(&self, entries: &str) {
        std::fs::write(self.folder.join("own.csv"), format!("{LIST_HEADER}{entries}")).unwrap();
        assert_eq!(
            self.services.screening.as_ref().unwrap().reload_if_changed(),
            Ok(Reload::Changed)
        );
    }

    pub fn instant(&self) -> i64 {
        self.clock.load(Ordering::SeqCst) / 1000
    }
    pub fn advance_seconds(&self, seconds: i64) {
        self.clock.fetch_add(seconds * 1000, Ordering::SeqCst);
    }

    /// Creates a submitted beneficiary.
    pub async fn beneficiary(
        &self,
        scope: Scope,
        account_number: &str,
        ifsc: &str,
    ) -> Id<kind::Beneficiary> {
        let (account_number, ifsc) = (account_number.to_owned(), ifsc.to_owned());
        let created = self.write(move |tx, now, services| {
            let ask = NewBeneficiary {
                name: "Asha Rao".into(),
                account_number: account_number.clone(),
                ifsc: ifsc.clone(),
                email: None,
                phone: None,
                kyc: Kyc::default(),
                metadata: Metadata::default(),
                submit: true,
            };
            Ok(beneficiaries::create(tx, now, services, scope, ask)?.id)
        });
        created.await.unwrap()
    }

    /// A transfer of 100.00 USD from Ravi Menon to Asha Rao that awaits its deposit, with a refund
    /// address.
    pub async fn transfer(&self) -> Transfer {
        let indices = self.write(|tx, _, services| Ok(services.test.addresses.reserve(tx)?));
        self.services.test.addresses.restock(indices.await.unwrap());
        self.services.test.addresses.derive(8, 0);
        let beneficiary = self.beneficiary(TEST, "50100012345678", "HDFC0000001").await;
        self.run_tasks().await;
        let made = self.write(move |tx, now, services| {
            let sender = senders::create(tx, now, services, TEST, sender("Ravi Menon"))?.id;
            let sell = Money::new(10_000, Currency::Usd);
            let ask = QuoteAmount::Sell(sell);
            let lock = quote_locks::create(tx, now, services, TEST, ask, Metadata::default())?;
            let ask = NewTransfer {
                sender_id: sender.into(),
                beneficiary_id: beneficiary.into(),
                quote_lock_id: lock.id.into(),
                amount: sell,
                payout_currency: Currency::Inr,
                purpose_code: None,
                refund_address: Some(ChainAddress::of_chain("tron", REFUND_TO)),
                payer_sets_refund_address: false,
                return_url: None,
                policy: Default::default(),
                reference: None,
                metadata: Metadata::default(),
            };
            transfers::create(tx, now, services, TEST, ask)
        });
        made.await.unwrap()
    }

    /// Runs the tasks that are due within a second.
    pub async fn run_tasks(&self) {
        self.advance_seconds(1);
        self.write(|tx, now, services| {
            tasks::run_due(tx, now, services, hundi::tasks::TASKS_AT_ONCE_MAX)
        })
        .await
        .unwrap();
    }

    pub async fn find(&self, scope: Scope, id: Id<kind::Beneficiary>) -> Beneficiary {
        self.write(move |tx, _, _| Ok(beneficiaries::rows::find(tx, scope, id)?))
            .await
            .unwrap()
            .unwrap()
    }
}

fn sender(name: &str) -> NewSender {
    NewSender {
        name: name.into(),
        sender_type: SenderType::Individual,
        country: "AE".into(),
        email: None,
        address: None,
        date_of_birth: None,
        nationality: None,
        identification: None,
        metadata: Metadata::default(),
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
