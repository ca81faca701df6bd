//! The settings in force: one list of them, which the console shows and the audit log keeps. When
//! the service starts, it adds an entry if its settings differ from the last ones. Plain settings
//! are kept as they are. Each table that may hold secrets or account numbers is kept as a keyed
//! digest, which shows that the table changed, but not what changed in it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};

use crate::app_state::{SettingValue, ShownSetting};
use crate::audit::rows::Sought;
use crate::audit::{self, Action, Fact};
use crate::chains::settings::ChainSettings;
use crate::config::Config;
use crate::console::openid::settings::OidcSettings;
use crate::kernel::{Now, StoreError, Via, hex};
use crate::rails::files::settings::BankSettings;
use crate::services::Services;
use crate::store::{Store, Tx};

/// With how many earlier entries a start of the service compares its settings. The last entry alone
/// is not enough, because it may be of another node, which may have settings of its own.
const ENTRIES_MAX: i64 = 100;

/// The settings of an entry of the audit log, by name and as text.
type SettingTexts = BTreeMap<String, String>;

/// What a digest covers in addition to the table's `Debug`, which hides it.
fn hidden_of_bank(bank: &BankSettings) -> SecretString {
    SecretString::from(bank.debit_account_number())
}

fn hidden_of_chain(chain: &ChainSettings) -> SecretString {
    let mut hidden = chain.account_key.to_string();
    for endpoint in &chain.endpoints {
        hidden.push('\n');
        hidden.push_str(endpoint.whole_address().expose_secret());
    }
    SecretString::from(hidden)
}

fn oidc_text(oidc: &OidcSettings) -> String {
    let mut text = format!("{} {}", oidc.issuer, oidc.client_id);
    for (name, value) in [("name", &oidc.name), ("acr", &oidc.acr)] {
        if let Some(value) = value {
            text.push_str(&format!(" {name}={value}"));
        }
    }
    for (name, is) in [
        ("second_factor", oidc.provider_asks_second_factor()),
        ("link_by_email", oidc.link_by_email),
    ] {
        if is {
            text.push_str(&format!(" {name}"));
        }
    }
    text
}

/// Every setting, by its key in the configuration. Those of one node come first, then those that
/// all nodes share.
pub fn shown(config: &Config, services: &Services) -> Vec<ShownSetting> {
    use SettingValue::{EachSecond, Money, Most, NotSet, Number, Seconds, YesOrNo};
    let settings = &config.settings;
    let digest = |name: &str, bytes: &[u8]| {
        let mark = services.sealer.fingerprint(&[b"settings", name.as_bytes(), bytes]);
        SettingValue::Digest(hex::encode(&mark[..8]))
    };
    let table = |name: &str, table: Option<&dyn Debug>, hidden: Option<SecretString>| {
        let Some(table) = table else { return NotSet };
        let hidden = hidden.unwrap_or_default();
        let text = SecretString::from(format!("{table:?}\n{}", hidden.expose_secret()));
        digest(name, text.expose_secret().as_bytes())
    };
    let text = |text: &str| SettingValue::Text(text.to_owned());
    let or_not = |value: Option<String>| value.map_or(NotSet, SettingValue::Text);
    let path =
        |path: &Option<PathBuf>| or_not(path.as_ref().map(|path| path.display().to_string()));
    let bank = |name: &str, bank: &Option<BankSettings>| {
        table(name, bank.as_ref().map(|bank| bank as &dyn Debug), bank.as_ref().map(hidden_of_bank))
    };
    let chain = |name: &str, chain: &Option<ChainSettings>| {
        let shown = chain.as_ref().map(|chain| chain as &dyn Debug);
        table(name, shown, chain.as_ref().map(hidden_of_chain))
    };
    let (console, issuer) = (config.console.as_ref(), &settings.issuers.default);
    let limits = &settings.payout_limits;
    let has_second_factor = console.is_some_and(|console| console.requires_second_factor);
    let of_accounts = &settings.issuers.by_account;
    let of_accounts = (!of_accounts.is_empty()).then_some(of_accounts as &dyn Debug);
    let oidc = console.and_then(|console| console.oidc.as_ref());
    let own = [
        ("listen", text(&config.listen)),
        ("console_listen", or_not(console.map(|console| console.listen.clone()))),
        ("database_connections", Number(config.database_connections as i64)),
        ("role", text(config.role.as_str())),
        ("drain_seconds", Seconds(config.drain_seconds as i64)),
        ("metrics", YesOrNo(config.shows_metrics)),
    ];
    let shared = [
        ("console_url", or_not(console.and_then(|console| console.url.clone()))),
        ("console_second_factor", YesOrNo(has_second_factor || services.is_live_configured())),
        (
            "console_proxies",
            or_not(
                console
                    .filter(|console| !console.proxies.is_empty())
                    .map(|console| console.proxies.to_string()),
            ),
        ),
        ("database", text(&config.database.to_string())),
        ("public_url", text(&settings.public_url)),
        ("four_eyes_above", Most(settings.four_eyes_above)),
        ("rate_limit_reads", EachSecond(config.rate_limits.reads)),
        ("rate_limit_writes", EachSecond(config.rate_limits.writes)),
        ("allow_loopback_webhooks", YesOrNo(settings.loopback_webhooks_allowed)),
        ("quote_lock_seconds", Seconds(settings.quote_lock_seconds)),
        ("funding_seconds", Seconds(settings.funding_seconds)),
        ("amount_minimum", Money(settings.amount_min)),
        ("amount_maximum", Money(settings.amount_max)),
        ("fee", Money(settings.fee)),
        ("spread_basis_points", Number(settings.spread_basis_points)),
        ("gst", YesOrNo(settings.is_gst_charged)),
        ("sender_day_inr_max", Most(limits.sender_day)),
        ("sender_month_inr_max", Most(limits.sender_month)),
        ("beneficiary_day_inr_max", Most(limits.beneficiary_day)),
        ("beneficiary_month_inr_max", Most(limits.beneficiary_month)),
        ("account_day_inr_max", Most(limits.account_day)),
        ("account_month_inr_max", Most(limits.account_month)),
        ("purpose_code", text(&settings.purpose_code_default)),
        ("issuer_name", text(&issuer.name)),
        ("issuer_address", or_not(issuer.address.clone())),
        ("issuer_licence", or_not(issuer.licence.clone())),
        (
            "issuer_logo",
            issuer.logo.as_ref().map_or(NotSet, |logo| digest("issuer_logo", &logo.png)),
        ),
        ("issuer_colour", or_not(issuer.colour.map(|colour| colour.to_string()))),
        ("sponsor_bank_name", or_not(settings.sponsor_bank_name.clone())),
        ("security_contact", or_not(settings.security_contact.clone())),
        ("simulation_step_milliseconds", Number(settings.simulation_step_milliseconds)),
        ("test_mid_market_rate", text(&settings.test_mid_market_rate.to_string())),
        ("test_usdt_usd", text(&settings.test_usdt_usd.to_string())),
        ("ifsc_file", path(&config.ifsc_file)),
        ("live", YesOrNo(services.is_live_configured())),
        ("console.oidc", or_not(oidc.map(oidc_text))),
        ("test_chain", chain("test_chain", &config.test_chain)),
        ("live_chain", chain("live_chain", &config.live_chain)),
        ("bank", bank("bank", &config.bank)),
        ("test_bank", bank("test_bank", &config.test_bank)),
        ("rates", table("rates", config.rates.as_ref().map(|table| table as &dyn Debug), None)),
        ("checks", table("checks", config.checks.as_ref().map(|table| table as &dyn Debug), None)),
        (
            "screening",
            table("screening", config.screening.as_ref().map(|table| table as &dyn Debug), None),
        ),
        ("issuers", table("issuers", of_accounts, None)),
    ];
    let own = own.into_iter().map(|setting| (setting, true));
    let all = own.chain(shared.into_iter().map(|setting| (setting, false)));
    all.map(|((name, value), is_of_node)| ShownSetting { name, value, is_of_node }).collect()
}

/// Adds an entry to the audit log if the settings differ from the last ones.
pub async fn keep(config: &Config, store: &Store, services: &Services) -> Result<(), String> {
    let shown = shown(config, services);
    let write = move |tx: &mut dyn Tx, now: &mut Now| Ok(keep_changed(tx, now, &shown)?);
    let kept = store.write(write).await;
    kept.map_err(|error| format!("the settings in force cannot be recorded: {error}"))
}

/// [`keep`] within a transaction. Nodes that share a database may differ in some settings
/// ([`ShownSetting::is_of_node`]). So an entry is also left out if an earlier one has the same
/// settings, and every entry after that one has the same shared settings.
fn keep_changed(tx: &mut dyn Tx, now: &Now, shown: &[ShownSetting]) -> Result<(), StoreError> {
    let action = Action::Settings.as_str().to_owned();
    let sought = Sought { action, before: i64::MAX, ..Sought::default() };
    let entries = audit::rows::sought(tx, &sought, ENTRIES_MAX)?.into_iter();
    let before: Vec<SettingTexts> = entries
        .map(|(entry, _)| serde_json::from_str(&entry.details).unwrap_or_default())
        .collect();
    let current: Vec<(&ShownSetting, String)> =
        shown.iter().map(|setting| (setting, setting.value.to_string())).collect();
    let differing = |before: &SettingTexts, is_of_node: bool| {
        let of_kind = current.iter().filter(move |(setting, _)| setting.is_of_node == is_of_node);
        let names = of_kind.filter(|(setting, value)| before.get(setting.name) != Some(value));
        names.map(|(setting, _)| setting.name).collect::<Vec<_>>()
    };
    let mut alike = before.iter().take_while(|texts| differing(texts, false).is_empty());
    if alike.any(|texts| differing(texts, true).is_empty()) {
        return Ok(());
    }
    let none = SettingTexts::new();
    let last = before.first().unwrap_or(&none);
    let changed = [differing(last, true), differing(last, false)].concat().join(" ");
    let mut details: Vec<(&str, &str)> =
        current.iter().map(|(setting, value)| (setting.name, value.as_str())).collect();
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
