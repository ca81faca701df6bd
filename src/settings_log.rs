//! Keeps the settings in force in the audit log. A start writes an entry if its settings differ
//! from those of the last entry. Plain settings are kept as they are. Tables that may hold secrets
//! or account numbers are kept as a keyed digest, which shows that something changed, but not what.
//! The digest is over the table's `Debug`, so a change of what that hides does not show: the debit
//! account's number, and the paths of nodes.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::audit::{self, Action, Fact};
use crate::config::Config;
use crate::kernel::{Now, StoreError, Via, hex};
use crate::services::Services;
use crate::store::{Store, Tx};

type Facts = BTreeMap<String, String>;

/// The settings that should be the same on every node of one service, by their names.
fn facts(config: &Config, services: &Services) -> Facts {
    let settings = &services.settings;
    let digest = |name: &str, table: &dyn Debug| {
        let text = format!("{table:?}");
        let mark = services.sealer.fingerprint(&[b"settings", name.as_bytes(), text.as_bytes()]);
        hex::encode(&mark[..8])
    };
    let shown = |value: &Option<String>| value.clone().unwrap_or_default();
    let console = config.console.as_ref();
    [
        ("quote_lock_seconds", settings.quote_lock_seconds.to_string()),
        ("funding_seconds", settings.funding_seconds.to_string()),
        ("amount_minimum", settings.amount_min.to_string()),
        ("amount_maximum", settings.amount_max.to_string()),
        ("fee", settings.fee.to_string()),
        ("spread_basis_points", settings.spread_basis_points.to_string()),
        ("purpose_code", settings.purpose_code_default.clone()),
        ("four_eyes_above", settings.four_eyes_above.map_or("off".into(), |at| at.to_string())),
        ("payout_limits", format!("{:?}", settings.payout_limits)),
        ("gst", settings.is_gst_charged.to_string()),
        ("issuer_name", settings.issuers.default.name.clone()),
        ("sponsor_bank_name", shown(&settings.sponsor_bank_name)),
        ("allow_loopback_webhooks", settings.loopback_webhooks_allowed.to_string()),
        ("console", console.is_some().to_string()),
        (
            "console.oidc",
            console.and_then(|console| console.oidc.as_ref()).map_or("off".into(), |oidc| {
                let factor = if oidc.is_second_factor_there() { " second_factor" } else { "" };
                let email = if oidc.link_by_email { " link_by_email" } else { "" };
                format!("{} {}{factor}{email}", oidc.issuer, oidc.client_id)
            }),
        ),
        ("live", services.is_live_configured().to_string()),
        ("test_chain", digest("test_chain", &config.test_chain)),
        ("live_chain", digest("live_chain", &config.live_chain)),
        ("bank", digest("bank", &config.bank)),
        ("rates", digest("rates", &config.rates)),
        ("checks", digest("checks", &config.checks)),
        ("screening", digest("screening", &config.screening)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Writes an entry to the audit log, if the settings differ from those of the last entry.
pub async fn keep(config: &Config, store: &Store, services: &Services) -> Result<(), String> {
    let facts = facts(config, services);
    let write = move |tx: &mut dyn Tx, now: &mut Now| Ok(keep_changed(tx, now, &facts)?);
    let kept = store.write(write).await;
    kept.map_err(|error| format!("the settings in force cannot be written down: {error}"))
}

fn keep_changed(tx: &mut dyn Tx, now: &Now, facts: &Facts) -> Result<(), StoreError> {
    let last = audit::rows::newest_of(tx, Action::Settings.as_str())?;
    let before: Facts = match &last {
        Some(entry) => serde_json::from_str(&entry.details).unwrap_or_default(),
        None => Facts::new(),
    };
    let changed: Vec<&str> = facts
        .iter()
        .filter(|(name, value)| before.get(*name) != Some(value))
        .map(|(name, _)| name.as_str())
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    let changed = changed.join(" ");
    let mut details: Vec<(&str, &str)> =
        facts.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    details.push(("changed", &changed));
    let fact = Fact {
        actor: "",
        via: Via::Service,
        action: Action::Settings,
        subject: "settings",
        details: &details,
    };
    audit::append(tx, now, &fact)
}
