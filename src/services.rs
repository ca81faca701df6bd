//! What a rule may use besides the transaction: settings, the sealer and the ports to the outside
//! world.

use crate::account_verification::AccountVerifier;
use crate::chains::address::ChainAddress;
use crate::chains::pool::AddressPool;
use crate::ifsc::Directory;
use crate::issuers::Issuers;
use crate::kernel::seal::{SealedPlace, Sealer, SealingKey};
use crate::kernel::{Currency, Id, IdKind, Mode, Money, Now, Rate, StoreError, hex};
use crate::rails::Rail;
use crate::rates::{Market, RateBounds};
use crate::screening::lists::Lists;
use crate::screening::{Screener, ScreeningFinding, ScreeningHit, ScreeningQuestion};
use crate::secrets;
use crate::store::Tx;
use crate::store::idempotency::AnswerSealer;

/// The operator's settings that rules read. `config` checks them, except `rate_bounds`, which the
/// start reads from the table `[rates]`.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a quote lock lives: 30 to 900 s.
    pub quote_lock_seconds: i64,
    /// How long a transfer waits for its deposit: 900 to 86 400 s.
    pub funding_seconds: i64,
    /// Bounds of a quote lock's amount, in USD.
    pub amount_min: Money,
    pub amount_max: Money,
    /// Flat fee of a quote lock, in USD.
    pub fee: Money,
    /// How far the caller's rate is below the market, in hundredths of a percent: 0 to 1 000.
    pub spread_basis_points: i64,
    /// The range in which a market rate may be quoted.
    pub rate_bounds: RateBounds,
    /// The purpose code of a transfer whose caller names none, unless sender and beneficiary have
    /// the same name.
    pub purpose_code_default: String,
    /// Whether webhooks may go to loopback over http, in test mode.
    pub loopback_webhooks_allowed: bool,
    /// How long one step of the simulated world takes: 1 to 60 000 ms.
    pub simulation_step_milliseconds: i64,
    /// The simulated market: INR for one USD, and USD for one USDT.
    pub test_mid_market_rate: Rate,
    pub test_usdt_usd: Rate,
    /// How links for callers begin, without a slash at the end.
    pub public_url: String,
    /// Who appears on the payer's page and on payment advices.
    pub issuers: Issuers,
    /// The bank that sends the INR, for payment advices: 1 to 100 characters.
    pub sponsor_bank_name: Option<String>,
    /// Where reports of security faults go, for security.txt.
    pub security_contact: Option<String>,
    /// The last four digits of the account that live mode pays INR from, for payment advices.
    pub debit_account_last4: Option<String>,
    /// Whether the operator is the Indian converter that charges GST on the exchange (see
    /// `quote_locks::gst`).
    pub is_gst_charged: bool,
    /// Decisions about more than this, in USD, need a second person; some others need one whatever
    /// their amount (see `operator::four_eyes`). `None` leaves every decision to one person.
    pub four_eyes_above: Option<Money>,
    pub payout_limits: PayoutLimits,
}

/// The most rupees that may be paid out in an Indian day or month; `None` is no limit. A payout
/// that exceeds a limit waits for the operator.
#[derive(Clone, Debug, Default)]
pub struct PayoutLimits {
    pub sender_day: Option<Money>,
    pub sender_month: Option<Money>,
    pub beneficiary_day: Option<Money>,
    pub beneficiary_month: Option<Money>,
    /// Of an account as a whole.
    pub account_day: Option<Money>,
    pub account_month: Option<Money>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            quote_lock_seconds: 300,
            funding_seconds: 1_800,
            amount_min: Money::new(1_000, Currency::Usd),
            amount_max: Money::new(5_000_000, Currency::Usd),
            fee: Money::zero(Currency::Usd),
            spread_basis_points: 0,
            rate_bounds: RateBounds::default(),
            purpose_code_default: "P1301".into(),
            loopback_webhooks_allowed: false,
            simulation_step_milliseconds: 250,
            test_mid_market_rate: Rate(88_412_500),
            test_usdt_usd: Rate(1_000_000),
            public_url: "http://127.0.0.1:8080".into(),
            issuers: Issuers::default(),
            sponsor_bank_name: None,
            security_contact: None,
            debit_account_last4: None,
            is_gst_charged: false,
            payout_limits: PayoutLimits::default(),
            four_eyes_above: None,
        }
    }
}

/// The ports of one mode.
pub struct Ports {
    pub rates: Box<dyn Market>,
    pub rail: Box<dyn Rail>,
    pub accounts: Box<dyn AccountVerifier>,
    pub screener: Box<dyn Screener>,
    pub addresses: AddressPool,
    pub chain: crate::chains::ChainProfile,
}

/// Settings, secrets and ports, shared by every request and worker.
pub struct Services {
    pub settings: Settings,
    pub sealer: Sealer,
    pub ifsc: Directory,
    pub test: Ports,
    /// `None` until every part of live mode is configured.
    pub live: Option<Ports>,
    /// The sanctions lists, where the operator configured them.
    pub screening: Option<std::sync::Arc<Lists>>,
}

impl Services {
    /// The sanctions lists that the subjects of a mode are compared with, if they are compared with
    /// any.
    pub fn lists(&self, mode: Mode) -> Option<&std::sync::Arc<Lists>> {
        self.screening
            .as_ref()
            .filter(|_| self.ports(mode).map_or(true, |ports| ports.screener.asks_lists()))
    }
    /// Screens a person or business, from memory. Where live mode is not configured, its subjects
    /// are compared with the lists all the same; without lists, the finding is `not_compared`.
    pub fn screen(&self, mode: Mode, question: &ScreeningQuestion) -> ScreeningFinding {
        match (self.ports(mode), &self.screening) {
            (Ok(ports), _) => ports.screener.screen(question),
            (Err(_), Some(lists)) => lists.matcher().screen(question),
            (Err(_), None) => ScreeningFinding::not_compared(),
        }
    }
    /// Screens an address that paid, or that a refund goes to, in the same way.
    pub fn screen_address(&self, mode: Mode, address: &ChainAddress) -> ScreeningFinding {
        match (self.ports(mode), &self.screening) {
            (Ok(ports), _) => ports.screener.screen_address(address),
            (Err(_), Some(lists)) => lists.matcher().screen_address(address),
            (Err(_), None) => ScreeningFinding::not_compared(),
        }
    }

    /// The fingerprint to which a decision about a hit is bound: the entry as it is, and what is
    /// known of the subject.
    pub fn screening_basis(&self, question: &ScreeningQuestion, hit: &ScreeningHit) -> [u8; 32] {
        let birth = question.date_of_birth.map(|date| date.to_string()).unwrap_or_default();
        let parts = [
            &[question.name.clone(), birth],
            question.aliases.as_slice(),
            &question.countries,
            &question.identifiers,
        ]
        .map(|list| list.join("\n"));
        let mut all: Vec<&[u8]> = vec![b"screening", &hit.entry_hash];
        all.extend(parts.iter().map(String::as_bytes));
        self.sealer.fingerprint(&all)
    }
    /// The ports of a mode. `Err` for live mode that is not configured; live keys then cannot
    /// create anything that needs them.
    pub fn ports(&self, mode: Mode) -> Result<&Ports, StoreError> {
        match mode {
            Mode::Test => Ok(&self.test),
            Mode::Live => self
                .live
                .as_ref()
                .ok_or_else(|| StoreError::Broken("live mode is not configured".into())),
        }
    }
    /// Whether this mode's chain has this name and is simulated.
    pub fn simulates(&self, mode: Mode, chain: &str) -> bool {
        self.ports(mode)
            .is_ok_and(|ports| ports.chain.is_simulated() && ports.chain.name.as_str() == chain)
    }
    /// Whether the deposit addresses of an account key, named by its fingerprint, belong to this
    /// mode's simulated chain. The chain's name alone does not show it: a test net that was
    /// configured earlier may have the same name, but has another key.
    pub fn simulates_addresses(&self, mode: Mode, chain: &str, account_fingerprint: u32) -> bool {
        self.simulates(mode, chain)
            && self
                .ports(mode)
                .is_ok_and(|ports| ports.addresses.account_fingerprint() == account_fingerprint)
    }
    /// The ports of every mode that is configured.
    pub fn all_ports(&self) -> impl Iterator<Item = &Ports> {
        std::iter::once(&self.test).chain(&self.live)
    }
    /// Whether live mode is configured, so that live keys can create objects.
    pub fn is_live_configured(&self) -> bool {
        self.live.is_some()
    }
    /// The end of a link that opens without a key: an identifier, and a mark that only this server
    /// can make for this purpose.
    pub fn marked<K: IdKind>(&self, purpose: &[u8], id: Id<K>) -> String {
        let mark = self.sealer.fingerprint(&[purpose, &id.to_bytes()]);
        format!("{id}.{}", hex::encode(&mark[..16]))
    }
    /// The identifier in the end of a link, as [`Services::marked`] makes it, if the mark is right.
    /// Marks are compared in constant time.
    pub fn unmarked<K: IdKind>(&self, purpose: &[u8], token: &str) -> Option<Id<K>> {
        let id = token.split_once('.').and_then(|(id, _)| Id::parse(id))?;
        let expected = self.marked(purpose, id);
        bool::from(subtle::ConstantTimeEq::ct_eq(expected.as_bytes(), token.as_bytes()))
            .then_some(id)
    }
    /// The key that seals in this transaction.
    pub fn sealing_key(&self, tx: &mut dyn Tx) -> Result<SealingKey<'_>, StoreError> {
        secrets::sealing_key(tx, &self.sealer)
    }
    /// Opens a sealed value of the row `id`. `Err` if no key opens it.
    pub fn open(
        &self,
        place: &SealedPlace,
        id: &[u8],
        sealed: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        self.sealer.open(place, id, sealed)
    }
}

impl AnswerSealer for Services {
    fn seal(
        &self,
        tx: &mut dyn Tx,
        now: &mut Now,
        answer_id: &[u8],
        plain: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let key = self.sealing_key(tx)?;
        key.seal(now.random_bytes(), &SealedPlace::STORED_ANSWER, answer_id, plain)
    }
    fn open(&self, answer_id: &[u8], sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        Services::open(self, &SealedPlace::STORED_ANSWER, answer_id, sealed)
    }
}
