//! Assembles live mode from its tables of the configuration, and says which tables are missing.

use std::sync::Arc;

use secrecy::SecretString;

use crate::account_verification::http::HttpVerifier;
use crate::account_verification::manual::ManualVerifier;
use crate::account_verification::{AccountVerifier, ChecksTable};
use crate::app_state::LivePart;
use crate::chains::settings::ChainSettings;
use crate::config::Config;
use crate::outbound::Client;
use crate::rails::files::settings::BankSettings;
use crate::rates::http::HttpRates;
use crate::screening::lists::Lists;

/// The variable with the secret value of the header `checks.header_name`, by which the look-up
/// service recognises us.
const CHECKS_SECRET_VARIABLE: &str = "HUNDI_CHECKS_SECRET";

/// Every part that live mode needs.
pub struct LiveParts {
    pub chain: ChainSettings,
    pub bank: BankSettings,
    pub rates: Arc<HttpRates>,
    pub accounts: Box<dyn AccountVerifier>,
    pub lists: Arc<Lists>,
}

/// The parts of live mode, present or missing, in the order in which an operator sets them up.
pub fn parts(config: &Config) -> Vec<LivePart> {
    let part =
        |table, purpose, is_configured, fault| LivePart { table, purpose, is_configured, fault };
    let bank_fault = config.bank.as_ref().filter(|bank| !bank.supports_nre).map(|_| {
        "supports_nre is false, so every transfer is refused: set it once the sponsor bank has \
         marked the debit account for foreign inward remittance"
            .to_owned()
    });
    vec![
        part(
            "live_chain",
            "nodes and account key of the chain that deposits come over",
            config.live_chain.is_some(),
            None,
        ),
        part(
            "bank",
            "the sponsor bank's folders and debit account",
            config.bank.is_some(),
            bank_fault,
        ),
        part("rates", "where market rates come from", config.rates.is_some(), None),
        part(
            "checks",
            "who looks accounts up: adapter = \"http\" or \"manual\"",
            config.checks.is_some(),
            None,
        ),
        part(
            "screening",
            "sanctions lists of OFAC, the UN and your own",
            config.screening.is_some(),
            None,
        ),
    ]
}

/// Whether every part of live mode is configured.
pub fn is_configured(config: &Config) -> bool {
    parts(config).iter().all(|part| part.is_configured)
}

/// Makes the adapter that looks accounts up, from the table `[checks]`. Its secret comes from the
/// environment. `Err` if the table's address or secret cannot be used.
pub fn account_checks(
    table: &ChecksTable,
    environment: &dyn Fn(&str) -> Option<String>,
    client: &Client,
) -> Result<Box<dyn AccountVerifier>, String> {
    let secret =
        environment(CHECKS_SECRET_VARIABLE).filter(|text| !text.is_empty()).map(SecretString::from);
    Ok(match table {
        ChecksTable::Http(settings) => {
            Box::new(HttpVerifier::new(settings, secret, client.clone())?)
        }
        ChecksTable::Manual {} => Box::new(ManualVerifier),
    })
}

/// Makes the parts of live mode. `Ok(None)` if at least one of its tables is missing; if some
/// exist, the log names the missing ones. `Err` if none is missing, but one cannot be used.
///
/// `serves_at` is the time in Unix seconds for a server, which refuses to start with sanctions
/// lists that are too old at that time. A command beside the server gives `None` and works with
/// the lists as they are.
pub fn assemble(
    config: &Config,
    environment: &dyn Fn(&str) -> Option<String>,
    client: &Client,
    lists: Option<&Arc<Lists>>,
    serves_at: Option<i64>,
) -> Result<Option<LiveParts>, String> {
    let parts = parts(config);
    let missing: Vec<&str> =
        parts.iter().filter(|part| !part.is_configured).map(|part| part.table).collect();
    if missing.len() < parts.len() && !missing.is_empty() {
        tracing::warn!(
            missing = missing.join(", "),
            "live mode is off: these tables of the configuration are missing; `hundi doctor` says \
             more"
        );
    }
    let (Some(chain), Some(bank), Some(rates), Some(checks), Some(lists)) =
        (&config.live_chain, &config.bank, &config.rates, &config.checks, lists)
    else {
        return Ok(None);
    };
    if let Some(reason) = serves_at.and_then(|now_seconds| lists.why_not_live(now_seconds)) {
        return Err(format!("live mode cannot start: {reason}"));
    }
    let accounts = account_checks(checks, environment, client)?;
    Ok(Some(LiveParts {
        chain: chain.clone(),
        bank: bank.clone(),
        rates: Arc::new(HttpRates::new(rates, environment, client.clone())?),
        accounts,
        lists: lists.clone(),
    }))
}
