//! Configuration, from a TOML file, environment variables and flags. A variable wins over the file,
//! and a flag over a variable. A value that cannot be read or is out of its range is an error, not
//! a default.

mod addresses;
mod file_keys;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use self::addresses::{ConsoleSettings, is_loopback};
use self::addresses::{contact, is_loopback_url, with_host};
use self::file_keys::FileKeys;
use crate::account_verification::ChecksTable;
use crate::app_state::SettingOrigin;
use crate::chains::settings::{ApiKeys, ChainSettings, ChainSources};
use crate::disk::WatchedFolder;
use crate::issuers::{self, IssuerSource, Issuers};
use crate::kernel::{Currency, Money, Rate, within};
use crate::rails::files::settings::BankSettings;
use crate::rate_limits::RequestRates;
use crate::rates::http::RateSettings;
use crate::screening::settings::ScreeningSettings;
use crate::secrets::GivenKeys;
pub use crate::secrets::{check_environment, check_secret_files, environment};
use crate::services::{PayoutLimits, Settings};
pub use crate::store::Database;
use crate::store::postgres;

pub const LISTEN_DEFAULT: &str = "127.0.0.1:8080";
pub const DATABASE_DEFAULT: &str = "sqlite:hundi.db";
/// The default limit of requests a second, for the reads of each API key and for its writes.
const REQUESTS_PER_SECOND_DEFAULT: u32 = 1_000;

crate::string_enum!(
    /// What a node does: `Serve` takes requests, `Work` runs the workers that hold a lease, and
    /// `All` does both.
    ProcessRole { All "all", Serve "serve", Work "work" }
);

/// How long a node on PostgreSQL drains by default, in seconds: `/readyz` answers 503 before the
/// port closes, so that a load balancer that checks every 2 s notices. With SQLite the default is
/// 0, because no other node could take the requests.
pub const DRAIN_SECONDS_DEFAULT: i64 = 5;
const DRAIN_SECONDS_MAX: i64 = 300;

/// The values of flags, which override the file and the environment.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    pub config: Option<PathBuf>,
    pub listen: Option<String>,
    pub database: Option<String>,
    pub role: Option<String>,
    pub allow_loopback_webhooks: Option<bool>,
    pub metrics: bool,
}

/// A configuration that was read and checked, except for `rates` and `checks`, whose values are
/// checked by those who use them.
#[derive(Debug)]
pub struct Config {
    pub listen: String,
    /// Where the operator's console listens, if it is on.
    pub console: Option<ConsoleSettings>,
    pub database: Database,
    /// How many connections to a PostgreSQL database.
    pub database_connections: usize,
    /// How long `/readyz` of a node that was told to stop answers 503 before its port closes, in
    /// seconds.
    pub drain_seconds: u64,
    pub role: ProcessRole,
    pub encryption_keys: GivenKeys,
    pub rate_limits: RequestRates,
    pub shows_metrics: bool,
    /// The file of a directory of bank branches (IFSC) that is newer than the one in the binary.
    pub ifsc_file: Option<PathBuf>,
    pub settings: Settings,
    /// Where each setting and table that the operator gave comes from.
    pub origins: BTreeMap<&'static str, SettingOrigin>,
    /// Whether `public_url` is set. If not, links begin with the address that the service listens
    /// on.
    pub is_public_url_set: bool,
    /// A test net for test mode; without it the chain is simulated.
    pub test_chain: Option<ChainSettings>,
    pub live_chain: Option<ChainSettings>,
    /// The sponsor bank of live mode.
    pub bank: Option<BankSettings>,
    /// A bank's test system or a simulator, instead of test mode's simulated bank. Never set
    /// together with `bank`: one worker serves one bank.
    pub test_bank: Option<BankSettings>,
    /// The market rates of live mode.
    pub rates: Option<RateSettings>,
    /// How live mode checks accounts.
    pub checks: Option<ChecksTable>,
    /// The sanctions lists, if the operator names any.
    pub screening: Option<ScreeningSettings>,
}

/// The value of the variable `HUNDI_<NAME>`. An empty one counts as not set.
fn from_environment<T: std::str::FromStr>(
    name: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<T>, String> {
    let variable = format!("HUNDI_{}", name.to_uppercase());
    match environment(&variable).filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            format!(
                "{variable} cannot be read: give a value like the one in the example configuration"
            )
        }),
    }
}

impl Config {
    /// The folders that the service writes to. A PostgreSQL database adds none, because its server
    /// keeps the files.
    pub fn watched_folders(&self) -> Vec<WatchedFolder> {
        let database = match &self.database {
            Database::Sqlite(path) => Some(path.parent().unwrap_or(Path::new("")).to_owned()),
            Database::Postgres(_) => None,
        };
        let bank = self.bank.as_ref().or(self.test_bank.as_ref()).map(|bank| bank.folder.clone());
        [("database", database), ("bank", bank)]
            .into_iter()
            .filter_map(|(of, folder)| Some(WatchedFolder { of, folder: folder? }))
            .collect()
    }

    /// Puts the address that was bound into `public_url`, if that is the default made from
    /// `listen`. With port 0 the operating system chose the port.
    pub fn set_bound_address(&mut self, address: std::net::SocketAddr) {
        if self.settings.public_url == format!("http://{}", self.listen) {
            self.settings.public_url = format!("http://{address}");
        }
    }

    /// Reads the file, then the environment, then the flags. `Err` describes the first fault.
    pub fn read(
        flags: &Flags,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Config, String> {
        let (config, faults) = Config::read_parts(flags, environment)?;
        match faults.into_iter().next() {
            Some((_, fault)) => Err(fault),
            None => Ok(config),
        }
    }

    /// Like [`Config::read`], but a fault in a table of a chain, a bank or the sanctions lists is
    /// no `Err`: that part is left out, and the second value has the table's name and its fault.
    pub fn read_parts(
        flags: &Flags,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(Config, Vec<(&'static str, String)>), String> {
        let mut faults = Vec::new();
        let file = match &flags.config {
            Some(path) => read_file(path)?,
            None => FileKeys::default(),
        };
        let mut origins = BTreeMap::new();
        for (table, is_there) in file.tables() {
            if is_there {
                origins.insert(table, SettingOrigin::File);
            }
        }
        macro_rules! value {
            ($name:ident) => {{
                let name = stringify!($name);
                let found = from_environment(name, environment)?;
                if found.is_some() {
                    origins.insert(name, SettingOrigin::Environment);
                } else if file.$name.is_some() {
                    origins.insert(name, SettingOrigin::File);
                }
                found.or(file.$name)
            }};
        }
        let listen =
            flags.listen.clone().or(value!(listen)).unwrap_or_else(|| LISTEN_DEFAULT.to_owned());
        let listen = with_host(listen);
        let public_url: Option<String> = value!(public_url);
        let database = flags
            .database
            .clone()
            .or(value!(database))
            .unwrap_or_else(|| DATABASE_DEFAULT.to_owned());
        let database = Database::parse(&database)?;
        let role_text = flags.role.clone().or(value!(role));
        let role = match role_text.as_deref() {
            None => ProcessRole::All,
            Some(word) => ProcessRole::parse(word)
                .ok_or_else(|| format!("role must be one of: {}", ProcessRole::WORDS.join(", ")))?,
        };
        if role != ProcessRole::All && matches!(database, Database::Sqlite(_)) {
            return Err("role must be `all` with SQLite, which one process serves; several nodes \
             need a database at postgres://"
                .into());
        }
        let connections = value!(database_connections);
        let (connections_min, connections_max) =
            (postgres::CONNECTIONS_MIN as i64, postgres::CONNECTIONS_MAX as i64);
        let default = postgres::CONNECTIONS_DEFAULT as i64;
        let database_connections = setting(
            "database_connections",
            connections,
            default,
            connections_min,
            connections_max,
        )? as usize;
        let drain_default = match database {
            Database::Sqlite(_) => 0,
            Database::Postgres(_) => DRAIN_SECONDS_DEFAULT,
        };
        let drain_seconds = value!(drain_seconds);
        let drain_seconds =
            setting("drain_seconds", drain_seconds, drain_default, 0, DRAIN_SECONDS_MAX)?
                .unsigned_abs();
        let defaults = Settings::default();
        let loopback_webhooks = flags
            .allow_loopback_webhooks
            .or(value!(allow_loopback_webhooks))
            .unwrap_or_else(|| {
                // A public URL of another host means a proxy on this machine. Then callers are on
                // other machines, though the service listens on loopback.
                is_loopback(&listen) && public_url.as_deref().is_none_or(is_loopback_url)
            });
        let bank = file.bank.map(BankSettings::try_from).transpose();
        let bank = part(&mut faults, "bank", bank);
        let test_bank = file.test_bank.map(BankSettings::try_from).transpose();
        let test_bank = part(&mut faults, "test_bank", test_bank);
        if bank.is_some() && test_bank.is_some() {
            return Err("[test_bank] and [bank] exclude each other: an installation that tests a \
                        bank must not pay anybody"
                .into());
        }
        let settings = Settings {
            quote_lock_seconds: setting(
                "quote_lock_seconds",
                value!(quote_lock_seconds),
                defaults.quote_lock_seconds,
                30,
                900,
            )?,
            funding_seconds: setting(
                "funding_seconds",
                value!(funding_seconds),
                defaults.funding_seconds,
                900,
                86_400,
            )?,
            amount_min: usd("amount_minimum", value!(amount_minimum), defaults.amount_min)?,
            amount_max: usd("amount_maximum", value!(amount_maximum), defaults.amount_max)?,
            fee: usd("fee", value!(fee), defaults.fee)?,
            spread_basis_points: setting(
                "spread_basis_points",
                value!(spread_basis_points),
                0,
                0,
                1_000,
            )?,
            rate_bounds: defaults.rate_bounds,
            purpose_code_default: purpose(value!(purpose_code), defaults.purpose_code_default)?,
            loopback_webhooks_allowed: loopback_webhooks,
            simulation_step_milliseconds: setting(
                "simulation_step_milliseconds",
                value!(simulation_step_milliseconds),
                defaults.simulation_step_milliseconds,
                1,
                60_000,
            )?,
            test_mid_market_rate: rate(
                "test_mid_market_rate",
                value!(test_mid_market_rate),
                defaults.test_mid_market_rate,
            )?,
            test_usdt_usd: rate("test_usdt_usd", value!(test_usdt_usd), defaults.test_usdt_usd)?,
            public_url: public_url
                .clone()
                .unwrap_or_else(|| format!("http://{listen}"))
                .trim_end_matches('/')
                .to_owned(),
            issuers: Issuers::read(
                IssuerSource {
                    name: value!(issuer_name),
                    address: value!(issuer_address),
                    licence: value!(issuer_licence),
                    logo: value!(issuer_logo),
                    colour: value!(issuer_colour),
                },
                file.issuers.unwrap_or_default(),
            )?,
            sponsor_bank_name: issuers::valid_text("sponsor_bank_name", value!(sponsor_bank_name))?,
            security_contact: contact(value!(security_contact))?,
            debit_account_last4: bank.as_ref().map(|bank| bank.debit_account_last4().to_owned()),
            is_gst_charged: value!(gst).unwrap_or(defaults.is_gst_charged),
            payout_limits: PayoutLimits {
                sender_day: inr("sender_day_inr_max", value!(sender_day_inr_max))?,
                sender_month: inr("sender_month_inr_max", value!(sender_month_inr_max))?,
                beneficiary_day: inr("beneficiary_day_inr_max", value!(beneficiary_day_inr_max))?,
                beneficiary_month: inr(
                    "beneficiary_month_inr_max",
                    value!(beneficiary_month_inr_max),
                )?,
                account_day: inr("account_day_inr_max", value!(account_day_inr_max))?,
                account_month: inr("account_month_inr_max", value!(account_month_inr_max))?,
            },
            four_eyes_above: match value!(four_eyes_above) {
                None => None,
                above => Some(usd("four_eyes_above", above, Money::zero(Currency::Usd))?),
            },
        };
        if settings.fee.units >= settings.amount_min.units
            || settings.amount_min.units > settings.amount_max.units
        {
            return Err("amount_minimum must be above the fee and at most amount_maximum".into());
        }
        let chain = |table: &str, sources: Option<ChainSources>| {
            sources
                .unwrap_or_default()
                .over(table, environment)?
                .read(table, &ApiKeys::read(table, environment))
        };
        let test_chain = chain("test_chain", file.test_chain);
        let live_chain = chain("live_chain", file.live_chain);
        let screening = file.screening.map(ScreeningSettings::try_from).transpose();
        let config = Config {
            origins: BTreeMap::new(),
            test_chain: part(&mut faults, "test_chain", test_chain),
            live_chain: part(&mut faults, "live_chain", live_chain),
            bank,
            test_bank,
            rates: file.rates,
            checks: file.checks,
            database,
            database_connections,
            drain_seconds,
            role,
            encryption_keys: GivenKeys::read(environment),
            rate_limits: RequestRates {
                reads: value!(rate_limit_reads).unwrap_or(REQUESTS_PER_SECOND_DEFAULT),
                writes: value!(rate_limit_writes).unwrap_or(REQUESTS_PER_SECOND_DEFAULT),
            },
            shows_metrics: flags.metrics || value!(metrics).unwrap_or(false),
            ifsc_file: value!(ifsc_file),
            listen,
            console: ConsoleSettings::read(
                value!(console_listen),
                value!(console_url),
                value!(console_second_factor).unwrap_or(false),
                value!(console_proxies),
                file.console,
            )?,
            settings,
            is_public_url_set: public_url.is_some(),
            screening: part(&mut faults, "screening", screening),
        };
        for (table, chain) in
            [("test_chain", &config.test_chain), ("live_chain", &config.live_chain)]
        {
            if chain.is_some() {
                origins.entry(table).or_insert(SettingOrigin::Environment);
            }
        }
        let flagged = [
            ("listen", flags.listen.is_some()),
            ("database", flags.database.is_some()),
            ("role", flags.role.is_some()),
            ("allow_loopback_webhooks", flags.allow_loopback_webhooks.is_some()),
            ("metrics", flags.metrics),
        ];
        let flagged = flagged.into_iter().filter(|(_, is_given)| *is_given);
        origins.extend(flagged.map(|(name, _)| (name, SettingOrigin::Flag)));
        Ok((Config { origins, ..config }, faults))
    }
}

/// A part of the configuration. `None` if it is missing or has a fault, which is added to `faults`.
fn part<T>(
    faults: &mut Vec<(&'static str, String)>,
    table: &'static str,
    read: Result<Option<T>, String>,
) -> Option<T> {
    read.unwrap_or_else(|fault| {
        faults.push((table, fault));
        None
    })
}

fn read_file(path: &Path) -> Result<FileKeys, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the configuration {}: {error}", path.display()))?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| {
            text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1
        });
        format!(
            "line {line} of the configuration {} cannot be read: {}",
            path.display(),
            without_value(error.message())
        )
    })
}

/// The TOML reader's message without the value that it quotes, which may be a password or an
/// account number.
fn without_value(message: &str) -> String {
    if !message.starts_with("invalid ") {
        return message.to_owned();
    }
    let expected = message
        .rsplit_once(", expected ")
        .map(|(_, expected)| format!(", which should be {expected}"));
    format!("a value is of the wrong kind{}", expected.unwrap_or_default())
}

fn setting(
    name: &str,
    value: Option<i64>,
    default: i64,
    min: i64,
    max: i64,
) -> Result<i64, String> {
    within(name, value.unwrap_or(default), min, max)
}

fn usd(name: &str, value: Option<String>, default: Money) -> Result<Money, String> {
    match value {
        None => Ok(default),
        Some(text) => Money::parse(&text, Currency::Usd)
            .ok_or_else(|| format!("{name} must be an amount in USD such as 10.00")),
    }
}

fn inr(name: &str, value: Option<String>) -> Result<Option<Money>, String> {
    let parse = |text: String| {
        Money::parse(&text, Currency::Inr)
            .filter(|money| money.units > 0)
            .ok_or_else(|| format!("{name} must be an amount in INR such as 500000.00"))
    };
    value.map(parse).transpose()
}

fn rate(name: &str, value: Option<String>, default: Rate) -> Result<Rate, String> {
    match value {
        None => Ok(default),
        Some(text) => Rate::parse(&text)
            .ok_or_else(|| format!("{name} must be a positive decimal with at most six places")),
    }
}

fn purpose(value: Option<String>, default: String) -> Result<String, String> {
    let code = value.unwrap_or(default);
    let known = crate::transfers::PurposeCode::parse(&code).is_some();
    if known {
        Ok(code)
    } else {
        Err(format!(
            "purpose_code must be one of: {}",
            crate::transfers::PurposeCode::WORDS.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)], flags: Flags) -> Result<Config, String> {
        let variables: Vec<(String, String)> =
            variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Config::read(&flags, &move |name| {
            variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        })
    }

    #[test]
    fn the_example_can_be_read() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/hundi.example.toml");
        let config = read(&[], Flags { config: Some(path.into()), ..Flags::default() }).unwrap();
        assert_eq!((config.rate_limits.reads, config.rate_limits.writes), (100, 25));
        assert!(config.shows_metrics && !config.settings.loopback_webhooks_allowed);
        // The keys that the example sets; its comments name the others.
        let text = std::fs::read_to_string(path).unwrap();
        let named = text
            .lines()
            .filter(|line| line.split_once(" = ").is_some_and(|(name, _)| !name.starts_with('#')))
            .count();
        assert_eq!(named, 23);
    }

    #[test]
    fn the_commented_tables_of_the_example_read_too() {
        let text =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/hundi.example.toml"))
                .unwrap();
        let is_setting = |line: &str| {
            line.starts_with('[')
                || line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '))
        };
        let uncommented: Vec<&str> = text
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|rest| is_setting(rest)).unwrap_or(line))
            .collect();
        // The tables come after the keys of the top.
        let (top, tables) = uncommented
            .split_at(uncommented.iter().position(|line| line.starts_with('[')).unwrap());
        let key = concat!(
            "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7",
            "dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd"
        );
        let text = format!("{}\n{}", top.join("\n"), tables.join("\n")).replace("xpub…", key);
        let path = std::env::temp_dir().join(format!("hundi-example-{}.toml", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let config = read(&[], Flags { config: Some(path.clone()), ..Flags::default() });
        std::fs::remove_file(path).unwrap();
        let config = config.unwrap();
        assert!(
            config.live_chain.is_some()
                && config.bank.is_some()
                && config.rates.is_some()
                && config.checks.is_some()
        );
        assert!(config.screening.is_some() && config.ifsc_file.is_some());
        assert!(
            crate::live::parts(&config)
                .iter()
                .all(|part| part.is_configured && part.fault.is_none())
        );
    }

    #[test]
    fn a_mistake_in_the_file_is_named_by_its_line_and_not_by_its_value() {
        for (text, wanted) in [
            ("listen = \"127.0.0.1:1\"\ndatabase = 112233445566\n", "line 2 of"),
            ("[bank]\ndebit_account_number = 112233445566\n", "line 2 of"),
            ("database = \"postgres://hundi:112233445566@db\n", "line 1 of"),
            ("database = postgres://hundi:112233445566@db\n", "line 1 of"),
        ] {
            let path =
                std::env::temp_dir().join(format!("hundi-mistake-{}.toml", std::process::id()));
            std::fs::write(&path, text).unwrap();
            let fault = read(&[], Flags { config: Some(path.clone()), ..Flags::default() }).err();
            std::fs::remove_file(path).unwrap();
            let fault = fault.unwrap();
            assert!(fault.starts_with(wanted) && !fault.contains("112233445566"), "{fault}");
        }
    }

    #[test]
    fn a_console_without_tls_is_only_for_this_machine() {
        for (listen, url, is_allowed) in [
            ("127.0.0.1:8081", None, true),
            ("127.0.0.1:8081", Some("http://localhost:8081"), true),
            ("127.0.0.1:8081", Some("https://console.example"), true),
            ("0.0.0.0:8081", Some("https://console.example"), true),
            ("0.0.0.0:8081", None, false),
            ("0.0.0.0:8081", Some("http://localhost:8081"), false),
            ("127.0.0.1:8081", Some("http://console.example"), false),
        ] {
            let url = url.map(|url| ("HUNDI_CONSOLE_URL", url));
            let variables: Vec<_> =
                [("HUNDI_CONSOLE_LISTEN", listen)].into_iter().chain(url).collect();
            let config = read(&variables, Flags::default());
            assert_eq!(config.is_ok(), is_allowed, "{listen} {url:?}: {:?}", config.err());
        }
    }

    #[test]
    fn flags_win_over_the_environment_and_ranges_hold() {
        let config = read(
            &[("HUNDI_LISTEN", "0.0.0.0:1"), ("HUNDI_RATE_LIMIT_READS", "0")],
            Flags::default(),
        )
        .unwrap();
        assert_eq!(
            (config.listen.as_str(), config.rate_limits.reads, config.rate_limits.writes),
            ("0.0.0.0:1", 0, 1_000)
        );
        assert!(
            !config.settings.loopback_webhooks_allowed,
            "a public listener must not reach loopback by default"
        );
        let flags = Flags { listen: Some("127.0.0.1:2".into()), ..Flags::default() };
        let config = read(&[("HUNDI_LISTEN", "0.0.0.0:1")], flags).unwrap();
        assert!(config.listen == "127.0.0.1:2" && config.settings.loopback_webhooks_allowed);
        assert_eq!(with_host("18080".into()), "127.0.0.1:18080");
        for (public_url, is_allowed) in [
            ("https://pay.example.com", false),
            ("http://192.168.1.5:8080", false),
            ("http://127.0.0.1:9000", true),
            ("http://[::1]:9000", true),
            ("http://localhost", true),
        ] {
            let environment = [("HUNDI_LISTEN", "127.0.0.1:1"), ("HUNDI_PUBLIC_URL", public_url)];
            let settings = read(&environment, Flags::default()).unwrap().settings;
            assert_eq!(settings.loopback_webhooks_allowed, is_allowed, "{public_url}");
            let flags = Flags { allow_loopback_webhooks: Some(true), ..Flags::default() };
            assert!(read(&environment, flags).unwrap().settings.loopback_webhooks_allowed);
        }
        for (name, value) in [
            ("HUNDI_QUOTE_LOCK_SECONDS", "29"),
            ("HUNDI_QUOTE_LOCK_SECONDS", "x"),
            ("HUNDI_FUNDING_SECONDS", "86401"),
            ("HUNDI_FEE", "10.00"),
            ("HUNDI_DATABASE", "postgres://x"),
            ("HUNDI_DATABASE", "mysql://x/y"),
            ("HUNDI_DATABASE_CONNECTIONS", "3"),
            ("HUNDI_ROLE", "nobody"),
            ("HUNDI_ROLE", "work"),
            ("HUNDI_TEST_USDT_USD", "0"),
            ("HUNDI_PURPOSE_CODE", "P9999"),
            ("HUNDI_SENDER_DAY_INR_MAX", "0.00"),
            ("HUNDI_ACCOUNT_MONTH_INR_MAX", "five lakh"),
            ("HUNDI_ISSUER_NAME", " "),
            ("HUNDI_SPONSOR_BANK_NAME", "a\nb"),
        ] {
            assert!(read(&[(name, value)], Flags::default()).is_err(), "{name}={value}");
        }
    }
}
