//! What a configuration file can contain.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::addresses::ConsoleTable;
use crate::account_verification::ChecksTable;
use crate::chains::settings::ChainSources;
use crate::issuers::IssuerSource;
use crate::rails::files::settings::BankTable;
use crate::rates::http::RateSettings;
use crate::screening::settings::ScreeningSource;

/// The file's keys. Each that is a single value is also `HUNDI_<NAME>` in the environment. Tables
/// can only be in the file, except `[test_chain]` and `[live_chain]`: see [`ChainSources::over`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileKeys {
    pub listen: Option<String>,
    pub console_listen: Option<String>,
    pub console_url: Option<String>,
    pub console_second_factor: Option<bool>,
    pub console_proxies: Option<String>,
    pub console: Option<ConsoleTable>,
    pub database: Option<String>,
    pub database_connections: Option<i64>,
    pub drain_seconds: Option<i64>,
    pub role: Option<String>,
    pub public_url: Option<String>,
    pub metrics: Option<bool>,
    pub rate_limit_reads: Option<u32>,
    pub rate_limit_writes: Option<u32>,
    pub allow_loopback_webhooks: Option<bool>,
    pub quote_lock_seconds: Option<i64>,
    pub funding_seconds: Option<i64>,
    pub amount_minimum: Option<String>,
    pub amount_maximum: Option<String>,
    pub fee: Option<String>,
    pub spread_basis_points: Option<i64>,
    pub purpose_code: Option<String>,
    pub simulation_step_milliseconds: Option<i64>,
    pub test_mid_market_rate: Option<String>,
    pub test_usdt_usd: Option<String>,
    pub ifsc_file: Option<PathBuf>,
    pub gst: Option<bool>,
    pub sender_day_inr_max: Option<String>,
    pub sender_month_inr_max: Option<String>,
    pub beneficiary_day_inr_max: Option<String>,
    pub beneficiary_month_inr_max: Option<String>,
    pub account_day_inr_max: Option<String>,
    pub account_month_inr_max: Option<String>,
    pub four_eyes_above: Option<String>,
    pub test_chain: Option<ChainSources>,
    pub live_chain: Option<ChainSources>,
    pub bank: Option<BankTable>,
    pub test_bank: Option<BankTable>,
    pub rates: Option<RateSettings>,
    pub checks: Option<ChecksTable>,
    pub issuer_name: Option<String>,
    pub issuer_address: Option<String>,
    pub issuer_licence: Option<String>,
    pub issuer_logo: Option<PathBuf>,
    pub issuer_colour: Option<String>,
    /// By the account's name.
    pub issuers: Option<BTreeMap<String, IssuerSource>>,
    pub sponsor_bank_name: Option<String>,
    pub security_contact: Option<String>,
    pub screening: Option<ScreeningSource>,
}

impl FileKeys {
    /// Every table, and whether the file has it.
    pub(super) fn tables(&self) -> [(&'static str, bool); 9] {
        [
            ("console.oidc", self.console.as_ref().is_some_and(|console| console.oidc.is_some())),
            ("test_chain", self.test_chain.is_some()),
            ("live_chain", self.live_chain.is_some()),
            ("bank", self.bank.is_some()),
            ("test_bank", self.test_bank.is_some()),
            ("rates", self.rates.is_some()),
            ("checks", self.checks.is_some()),
            ("issuers", self.issuers.is_some()),
            ("screening", self.screening.is_some()),
        ]
    }
}
