//! The operator's settings of a real chain. TRON and its test nets have presets. For any other
//! chain of [`ChainName`] the operator sets name, chain id and token contract.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::SecretString;
use serde::Deserialize;

use super::ChainName;
use super::address::ChainAddress;
use super::budget::{
    REQUESTS_PER_DAY_DEFAULT, REQUESTS_PER_DAY_MAX, REQUESTS_PER_SECOND_DEFAULT,
    REQUESTS_PER_SECOND_MAX, RequestLimits,
};
use super::derivation::AccountXpub;
use super::port::SYMBOL_LENGTH_MAX;
use super::timer::Timer;
use crate::kernel::within;
use crate::outbound::OutboundEndpoint;

/// The most nodes that one chain is read from.
pub const ENDPOINTS_COUNT_MAX: usize = 4;
/// The most tokens that `other_tokens` may name.
pub const OTHER_TOKENS_COUNT_MAX: usize = 20;
/// The header in which TRON's public gateways expect a key. A gateway is a service, such as
/// TronGrid, that stands in front of nodes, asks for an API key and limits requests.
const API_KEY_HEADER_DEFAULT: &str = "TRON-PRO-API-KEY";

/// The table `[live_chain]` of the configuration file, or `[test_chain]`, which gives test mode a
/// test net in place of the simulated chain. Each key but
/// `other_tokens` can also be set by a variable, such as `HUNDI_LIVE_CHAIN_ENDPOINTS`; in a list,
/// commas separate the values. The table has no API keys: see [`ApiKeys`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainSources {
    pub preset: Option<String>,
    pub name: Option<String>,
    pub endpoints: Option<Vec<String>>,
    pub api_key_header: Option<String>,
    pub chain_id: Option<u64>,
    pub token_contract: Option<String>,
    pub decimals: Option<u8>,
    pub account_key: Option<String>,
    pub poll_milliseconds: Option<u64>,
    pub blocks_at_once: Option<u64>,
    pub lag_alarm_seconds: Option<i64>,
    pub requests_per_second: Option<PerEndpoint>,
    pub requests_per_day: Option<PerEndpoint>,
    /// Contracts of other tokens by their symbols. A movement of such a token is shown as a failed
    /// deposit.
    pub other_tokens: Option<BTreeMap<String, String>>,
}

/// One figure for all endpoints, or one for each.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum PerEndpoint {
    All(u32),
    Each(Vec<u32>),
}

impl PerEndpoint {
    fn parse(name: &str, text: &str) -> Result<PerEndpoint, String> {
        let figures: Result<Vec<u32>, _> =
            text.split(',').map(|part| part.trim().parse()).collect();
        match figures.map_err(|_| format!("{name} must be whole numbers with commas between"))? {
            one if one.len() == 1 => Ok(PerEndpoint::All(one[0])),
            several => Ok(PerEndpoint::Each(several)),
        }
    }

    /// The figure of each endpoint. By default endpoints on this machine have 0, which means no
    /// limit, and the others have `default`.
    fn of_each(
        figures: Option<&PerEndpoint>,
        table: &str,
        key: &str,
        endpoints: &[OutboundEndpoint],
        default: u32,
        max: u32,
    ) -> Result<Vec<u32>, String> {
        let figures = match figures {
            None => endpoints
                .iter()
                .map(|endpoint| if endpoint.is_loopback() { 0 } else { default })
                .collect(),
            Some(PerEndpoint::All(figure)) => vec![*figure; endpoints.len()],
            Some(PerEndpoint::Each(figures)) if figures.len() == endpoints.len() => figures.clone(),
            Some(PerEndpoint::Each(figures)) => {
                return Err(format!(
                    "{table}.{key} has {} figures for {} endpoints: give one for all, or one for \
                     each",
                    figures.len(),
                    endpoints.len()
                ));
            }
        };
        let name = format!("{table}.{key}");
        figures.into_iter().map(|figure| within(&name, figure, 0, max)).collect()
    }
}

/// The keys of the nodes' gateways. They are read only from the environment.
#[derive(Clone, Debug, Default)]
pub struct ApiKeys {
    /// The variable `HUNDI_LIVE_CHAIN_API_KEY`: the key of every endpoint, if all have the same
    /// scheme, host and port.
    pub of_all: Option<SecretString>,
    /// `HUNDI_LIVE_CHAIN_API_KEY_1` to `…_4`: the key of the endpoint in that place of `endpoints`.
    pub by_place: [Option<SecretString>; ENDPOINTS_COUNT_MAX],
}

impl ApiKeys {
    /// Reads the keys for a table, `live_chain` or `test_chain`.
    pub fn read(table: &str, environment: &dyn Fn(&str) -> Option<String>) -> ApiKeys {
        let table = table.to_uppercase();
        let secret = |name: String| {
            environment(&name).filter(|text| !text.is_empty()).map(SecretString::from)
        };
        ApiKeys {
            of_all: secret(format!("HUNDI_{table}_API_KEY")),
            by_place: std::array::from_fn(|index| {
                secret(format!("HUNDI_{table}_API_KEY_{}", index + 1))
            }),
        }
    }

    /// The endpoints with their keys. Refuses a key for all endpoints if they have several hosts,
    /// and a key that would leave this machine unencrypted.
    fn endpoints(
        &self,
        table: &str,
        addresses: &[String],
        header: &str,
    ) -> Result<Vec<OutboundEndpoint>, String> {
        let variable = format!("HUNDI_{}_API_KEY", table.to_uppercase());
        let read = |address: &String, key: Option<&SecretString>| {
            OutboundEndpoint::new(address, key.map(|key| (header, key.clone())))
                .map_err(|fault| format!("{table}.endpoints: {fault}"))
        };
        let plain =
            addresses.iter().map(|address| read(address, None)).collect::<Result<Vec<_>, _>>()?;
        if let Some(index) =
            (addresses.len()..ENDPOINTS_COUNT_MAX).find(|index| self.by_place[*index].is_some())
        {
            return Err(format!(
                "{variable}_{} is the key of an endpoint that {table}.endpoints does not have",
                index + 1
            ));
        }
        if self.of_all.is_some() && self.by_place.iter().any(Option::is_some) {
            return Err(format!(
                "give {variable} or the numbered keys such as {variable}_1, not both"
            ));
        }
        let hosts: BTreeSet<String> = plain.iter().map(OutboundEndpoint::label).collect();
        if self.of_all.is_some() && hosts.len() > 1 {
            return Err(format!(
                "{variable} would go to several hosts ({}): set a key for each endpoint instead, \
                 {variable}_1 for the first of {table}.endpoints, {variable}_2 for the second",
                hosts.into_iter().collect::<Vec<_>>().join(", ")
            ));
        }
        let keys = self.by_place.iter().map(|key| key.as_ref().or(self.of_all.as_ref()));
        addresses
            .iter()
            .zip(keys)
            .map(|(address, key)| {
                let endpoint = read(address, key)?;
                if key.is_some() && !endpoint.keeps_secrets() {
                    return Err(format!(
                        "{table}.endpoints: {} would be sent its key in the clear: \
                     write it with https",
                        endpoint.label()
                    ));
                }
                Ok(endpoint)
            })
            .collect()
    }
}

/// What is known of a network.
struct Preset {
    word: &'static str,
    chain_id: u64,
    token_contract: &'static str,
}

/// TRON's networks and USDT on them. The test nets have several tokens of that name; these are the
/// best documented ones.
const PRESETS: [Preset; 3] = [
    Preset {
        word: "tron",
        chain_id: 728_126_428,
        token_contract: "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
    },
    Preset {
        word: "nile",
        chain_id: 3_448_148_188,
        token_contract: "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf",
    },
    Preset {
        word: "shasta",
        chain_id: 2_494_104_990,
        token_contract: "TG3XXyExBkPp9nzdajDZsozEu4BkaSJozs",
    },
];

/// A chain that is followed. Every value lies in its range.
#[derive(Clone, Debug)]
pub struct ChainSettings {
    pub name: ChainName,
    pub endpoints: Vec<OutboundEndpoint>,
    pub chain_id: u64,
    pub token_contract: ChainAddress,
    /// Decimals of the token: 0 to 30.
    pub decimals: u8,
    pub account_key: AccountXpub,
    /// Least pause between two polls for new blocks, in milliseconds: 100 to 60 000.
    pub poll_milliseconds: u64,
    /// Blocks that one request covers at most: 1 to 1000.
    pub blocks_at_once: u64,
    /// How far the last final block that was read may lie behind the clock before that is an alarm:
    /// 60 to 86 400.
    pub lag_alarm_seconds: i64,
    /// What the gateway of each endpoint allows, in the order of the endpoints.
    pub request_limits: Vec<RequestLimits>,
    pub other_tokens: BTreeMap<String, ChainAddress>,
    /// The clock that paces requests; a test may move it.
    pub timer: Timer,
}

impl ChainSettings {
    /// A text for each endpoint whose daily limit leaves too little for anything but polls.
    pub fn limit_notes(&self) -> Vec<String> {
        let notes = (1..).zip(&self.request_limits).filter_map(|(number, limits)| {
            let note = limits.routine_note()?;
            Some(format!("endpoint {number} allows {note}"))
        });
        notes.collect()
    }
}

impl ChainSources {
    /// Overrides the file's table with variables of the environment; `table` is `live_chain` or
    /// `test_chain`.
    pub fn over(
        mut self,
        table: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ChainSources, String> {
        let variable = |key: &str| format!("HUNDI_{}_{}", table.to_uppercase(), key.to_uppercase());
        let text = |key: &str| environment(&variable(key)).filter(|text| !text.is_empty());
        fn number<T: std::str::FromStr>(
            name: String,
            text: Option<String>,
        ) -> Result<Option<T>, String> {
            text.map(|text| text.parse().map_err(|_| format!("{name} must be a whole number")))
                .transpose()
        }
        self.preset = text("preset").or(self.preset);
        self.name = text("name").or(self.name);
        self.endpoints = text("endpoints")
            .map(|list| list.split(',').map(|part| part.trim().to_owned()).collect())
            .or(self.endpoints);
        self.api_key_header = text("api_key_header").or(self.api_key_header);
        self.chain_id = number(variable("chain_id"), text("chain_id"))?.or(self.chain_id);
        self.token_contract = text("token_contract").or(self.token_contract);
        self.decimals = number(variable("decimals"), text("decimals"))?.or(self.decimals);
        self.account_key = text("account_key").or(self.account_key);
        self.poll_milliseconds = number(variable("poll_milliseconds"), text("poll_milliseconds"))?
            .or(self.poll_milliseconds);
        self.blocks_at_once =
            number(variable("blocks_at_once"), text("blocks_at_once"))?.or(self.blocks_at_once);
        self.lag_alarm_seconds = number(variable("lag_alarm_seconds"), text("lag_alarm_seconds"))?
            .or(self.lag_alarm_seconds);
        let per_endpoint =
            |key: &str| text(key).map(|text| PerEndpoint::parse(&variable(key), &text)).transpose();
        self.requests_per_second =
            per_endpoint("requests_per_second")?.or(self.requests_per_second);
        self.requests_per_day = per_endpoint("requests_per_day")?.or(self.requests_per_day);
        Ok(self)
    }

    /// Checks the table, fills in what the preset gives, and joins the API keys to their endpoints.
    /// `None` if the table is empty. `Err` names the key that is wrong or missing.
    pub fn read(self, table: &str, api_keys: &ApiKeys) -> Result<Option<ChainSettings>, String> {
        let Some(endpoints) = &self.endpoints else {
            return if self == ChainSources::default() {
                Ok(None)
            } else {
                Err(format!(
                    "{table}.endpoints is missing: name 1 to {ENDPOINTS_COUNT_MAX} nodes with a \
                     JSON-RPC"
                ))
            };
        };
        if endpoints.is_empty() || endpoints.len() > ENDPOINTS_COUNT_MAX {
            return Err(format!("{table}.endpoints takes 1 to {ENDPOINTS_COUNT_MAX} addresses"));
        }
        let preset = match &self.preset {
            None => None,
            Some(word) => {
                Some(PRESETS.iter().find(|preset| preset.word == word).ok_or_else(|| {
                    format!(
                        "{table}.preset is {word:?} and must be tron, nile or shasta; for another \
                         chain, leave it out and set name, chain_id and token_contract"
                    )
                })?)
            }
        };
        let missing =
            |key: &str| format!("{table}.{key} is missing: set it, or set {table}.preset");
        let name = self
            .name
            .clone()
            .or(preset.map(|_| "tron".to_owned()))
            .ok_or_else(|| missing("name"))?;
        let name = ChainName::parse(&name).ok_or_else(|| {
            format!("{table}.name must be one of: {}", ChainName::WORDS.join(", "))
        })?;
        let token_contract = self
            .token_contract
            .clone()
            .or(preset.map(|preset| preset.token_contract.to_owned()))
            .ok_or_else(|| missing("token_contract"))?;
        let contract = |key: &str, text: &str| match ChainAddress::parse(text) {
            Ok(address) if address.is_on(name.as_str()) => Ok(address),
            Ok(_) => {
                Err(format!("{table}.{key} is not in the form of addresses on {}", name.as_str()))
            }
            Err(fault) => Err(format!("{table}.{key}: {fault}")),
        };
        let token_contract = contract("token_contract", &token_contract)?;
        let other_tokens = self.other_tokens.clone().unwrap_or_default();
        if other_tokens.len() > OTHER_TOKENS_COUNT_MAX {
            return Err(format!(
                "{table}.other_tokens takes at most {OTHER_TOKENS_COUNT_MAX} tokens"
            ));
        }
        let mut others = BTreeMap::new();
        for (symbol, text) in &other_tokens {
            let is_symbol = (1..=SYMBOL_LENGTH_MAX).contains(&symbol.len())
                && symbol.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if !is_symbol || symbol == "USDT" {
                return Err(format!(
                    "{table}.other_tokens has {symbol:?}: a symbol has 1 to {SYMBOL_LENGTH_MAX} \
                     letters and digits, and is not USDT"
                ));
            }
            let address = contract("other_tokens", text)?;
            if address == token_contract {
                return Err(format!("{table}.other_tokens names the token itself"));
            }
            if let Some((first, _)) = others.iter().find(|(_, known)| **known == address) {
                return Err(format!(
                    "{table}.other_tokens names one contract twice, as {first} and as {symbol}"
                ));
            }
            others.insert(symbol.clone(), address);
        }
        let account_key = self.account_key.as_ref().ok_or_else(|| {
            format!(
                "{table}.account_key is missing: the account's extended public key \
             (m/44'/195'/0' on TRON, m/44'/60'/0' on Ethereum), never a private one"
            )
        })?;
        let header = self.api_key_header.as_deref().unwrap_or(API_KEY_HEADER_DEFAULT);
        let endpoints = api_keys.endpoints(table, endpoints, header)?;
        for (place, one) in endpoints.iter().enumerate() {
            if endpoints[..place].iter().any(|other| other.is_same_place(one)) {
                return Err(format!(
                    "{table}.endpoints names {} twice: an endpoint cannot check itself",
                    one.label()
                ));
            }
        }
        let per_second = PerEndpoint::of_each(
            self.requests_per_second.as_ref(),
            table,
            "requests_per_second",
            &endpoints,
            REQUESTS_PER_SECOND_DEFAULT,
            REQUESTS_PER_SECOND_MAX,
        )?;
        let per_day = PerEndpoint::of_each(
            self.requests_per_day.as_ref(),
            table,
            "requests_per_day",
            &endpoints,
            REQUESTS_PER_DAY_DEFAULT,
            REQUESTS_PER_DAY_MAX,
        )?;
        let limits = per_second.into_iter().zip(per_day);
        Ok(Some(ChainSettings {
            name,
            endpoints,
            chain_id: within(
                &format!("{table}.chain_id"),
                self.chain_id
                    .or(preset.map(|preset| preset.chain_id))
                    .ok_or_else(|| missing("chain_id"))?,
                1,
                i64::MAX.unsigned_abs(),
            )?,
            token_contract,
            decimals: within(&format!("{table}.decimals"), self.decimals.unwrap_or(6), 0, 30)?,
            account_key: AccountXpub::parse(account_key)
                .map_err(|fault| format!("{table}.account_key: {fault}"))?,
            poll_milliseconds: within(
                &format!("{table}.poll_milliseconds"),
                self.poll_milliseconds.unwrap_or(3_000),
                100,
                60_000,
            )?,
            blocks_at_once: within(
                &format!("{table}.blocks_at_once"),
                self.blocks_at_once.unwrap_or(50),
                1,
                1_000,
            )?,
            lag_alarm_seconds: within(
                &format!("{table}.lag_alarm_seconds"),
                self.lag_alarm_seconds.unwrap_or(300),
                60,
                86_400,
            )?,
            request_limits: limits
                .map(|(per_second, per_day)| RequestLimits { per_second, per_day })
                .collect(),
            other_tokens: others,
            timer: Timer::default(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd";

    fn read(variables: &[(&str, &str)]) -> Result<Option<ChainSettings>, String> {
        let variables: Vec<(String, String)> = variables
            .iter()
            .map(|(key, value)| (format!("HUNDI_LIVE_CHAIN_{key}"), (*value).to_owned()))
            .collect();
        let find = move |name: &str| {
            variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        ChainSources::default()
            .over("live_chain", &find)?
            .read("live_chain", &ApiKeys::read("live_chain", &find))
    }

    #[test]
    fn presets_have_the_documented_chain_ids() {
        // The last four bytes of the hash of each network's first block, as TRON's reference of
        // `eth_chainId` lists them.
        for (word, chain_id) in
            [("tron", 0x2b66_53dc), ("nile", 0xcd86_90dc), ("shasta", 0x94a9_059e)]
        {
            let settings = read(&[
                ("PRESET", word),
                ("ENDPOINTS", "http://127.0.0.1:8545"),
                ("ACCOUNT_KEY", KEY),
            ])
            .unwrap()
            .unwrap();
            assert_eq!(settings.chain_id, chain_id, "{word}");
        }
    }

    #[test]
    fn the_document_of_chains_and_the_example_name_every_key() {
        let told = toml::from_str::<ChainSources>("no_such_key = 1").unwrap_err().to_string();
        let keys: Vec<&str> = told.split('`').skip(3).step_by(2).collect();
        assert!(keys.len() == 14 && keys.contains(&"lag_alarm_seconds"), "{told}");
        let read = |name: &str| {
            std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name))
                .unwrap()
        };
        let (document, example) = (read("docs/chains.md"), read("hundi.example.toml"));
        for key in keys {
            assert!(
                document.contains(&format!("| `{key}` |"))
                    && example.contains(&format!("# {key} = ")),
                "{key}"
            );
        }
        // The keys that the example shows as comments can be read.
        let table = example.split("# [live_chain]\n").nth(1).unwrap();
        let table: String = table
            .lines()
            .take_while(|line| !line.is_empty())
            .map(|line| line.trim_start_matches("# ").to_owned() + "\n")
            .collect();
        let sources: ChainSources = toml::from_str(&table.replace("xpub…", KEY)).unwrap();
        assert!(sources.read("live_chain", &ApiKeys::default()).unwrap().is_some());
    }

    #[test]
    fn other_tokens_are_contracts_that_differ() {
        const USDT: &str = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t";
        const USDC: &str = "TEkxiTehnzSmSe2XqrBj4w32RUN966rdz8";
        for (tokens, fault) in [
            (format!("USDC = \"{USDC}\""), None),
            (format!("USDC = \"{USDC}\", Coin = \"{USDC}\""), Some("twice, as Coin and as USDC")),
            (format!("Coin = \"{USDT}\""), Some("names the token itself")),
            (format!("USDT = \"{USDC}\""), Some("is not USDT")),
        ] {
            let table = format!(
                "preset = \"tron\"\nendpoints = [\"http://127.0.0.1:8545\"]\n\
                 account_key = \"{KEY}\"\nother_tokens = {{ {tokens} }}"
            );
            let sources: ChainSources = toml::from_str(&table).unwrap();
            let read = sources.read("live_chain", &ApiKeys::default()).map(|_| ());
            match fault {
                Some(words) => assert!(read.clone().unwrap_err().contains(words), "{read:?}"),
                None => assert_eq!(read, Ok(())),
            }
        }
    }

    #[test]
    fn an_api_key_goes_only_to_the_endpoints_it_is_for() {
        const TWO: &str = "https://a.example/jsonrpc,https://b.example/jsonrpc";
        const ONE_TWICE: &str = "https://a.example/jsonrpc,https://a.example/other";
        // Endpoints, variables of keys, and what each endpoint is sent or the words of the refusal.
        type Row = (
            &'static str,
            &'static [(&'static str, &'static str)],
            Result<&'static [Option<&'static str>], &'static str>,
        );
        let table: [Row; 13] = [
            (TWO, &[], Ok(&[None, None])),
            (TWO, &[("API_KEY_1", "secret-1")], Ok(&[Some("secret-1"), None])),
            (TWO, &[("API_KEY_2", "secret-2")], Ok(&[None, Some("secret-2")])),
            (
                TWO,
                &[("API_KEY_1", "secret-1"), ("API_KEY_2", "secret-2")],
                Ok(&[Some("secret-1"), Some("secret-2")]),
            ),
            (TWO, &[("API_KEY", "secret-0")], Err("HUNDI_LIVE_CHAIN_API_KEY_1 for the first")),
            (
                TWO,
                &[("API_KEY", "secret-0"), ("API_KEY_2", "secret-2")],
                Err("HUNDI_LIVE_CHAIN_API_KEY or the numbered keys"),
            ),
            (
                ONE_TWICE,
                &[("API_KEY", "secret-0"), ("API_KEY_2", "secret-2")],
                Err("HUNDI_LIVE_CHAIN_API_KEY or the numbered keys"),
            ),
            (TWO, &[("API_KEY_3", "secret-3")], Err("does not have")),
            (ONE_TWICE, &[("API_KEY", "secret-0")], Ok(&[Some("secret-0"), Some("secret-0")])),
            (
                "https://a.example,http://a.example",
                &[("API_KEY", "secret-0")],
                Err("several hosts"),
            ),
            ("http://a.example/jsonrpc", &[("API_KEY", "secret-0")], Err("in the clear")),
            (
                "https://a.example,http://b.example",
                &[("API_KEY_1", "secret-1")],
                Ok(&[Some("secret-1"), None]),
            ),
            (
                "http://127.0.0.1:8545,http://localhost:8545,http://[::1]:8545",
                &[("API_KEY_3", "secret-3")],
                Ok(&[None, None, Some("secret-3")]),
            ),
        ];
        for (endpoints, keys, expected) in table {
            let mut variables =
                vec![("PRESET", "tron"), ("ENDPOINTS", endpoints), ("ACCOUNT_KEY", KEY)];
            variables.extend_from_slice(keys);
            let outcome = read(&variables);
            let shown = format!("{outcome:?}");
            assert!(!shown.contains("secret-"), "{shown}");
            match (outcome, expected) {
                (Ok(settings), Ok(sent)) => {
                    let settings = settings.unwrap();
                    let told: Vec<_> =
                        settings.endpoints.iter().map(OutboundEndpoint::secret_for_test).collect();
                    let sent: Vec<_> = sent
                        .iter()
                        .map(|secret| {
                            secret.map(|secret| ("tron-pro-api-key".to_owned(), secret.to_owned()))
                        })
                        .collect();
                    assert_eq!(told, sent, "{endpoints} {keys:?}");
                }
                (Err(told), Err(words)) => assert!(told.contains(words), "{told}"),
                (outcome, _) => panic!("{endpoints} {keys:?}: {outcome:?}"),
            }
        }
    }

    #[test]
    fn presets_can_be_read_and_a_wrong_or_missing_key_is_refused() {
        assert!(read(&[]).unwrap().is_none(), "no settings, no chain");
        for key in [
            ("API_KEY_HEADER", "X-Key"),
            ("TOKEN_CONTRACT", "0xdac17f958d2ee523a2206206994597c13d831ec7"),
            ("DECIMALS", "6"),
            ("POLL_MILLISECONDS", "3000"),
            ("BLOCKS_AT_ONCE", "50"),
            ("LAG_ALARM_SECONDS", "300"),
            ("REQUESTS_PER_SECOND", "5"),
            ("REQUESTS_PER_DAY", "5"),
            ("PRESET", "tron"),
            ("NAME", "tron"),
            ("CHAIN_ID", "1"),
            ("ACCOUNT_KEY", KEY),
        ] {
            let told = read(&[key]).map(|settings| settings.is_some());
            assert!(told.is_err_and(|told| told.contains("name 1 to 4 nodes")), "{key:?}");
        }
        let others = ChainSources {
            other_tokens: Some(BTreeMap::from([("USDC".to_owned(), "x".to_owned())])),
            ..ChainSources::default()
        };
        assert!(others.read("live_chain", &ApiKeys::default()).is_err());
        let preset = [
            ("PRESET", "tron"),
            ("ENDPOINTS", "https://a.example/jsonrpc, http://127.0.0.1:8545"),
            ("ACCOUNT_KEY", KEY),
        ];
        let tron = read(&preset).unwrap().unwrap();
        assert_eq!(
            (tron.chain_id, tron.decimals, tron.endpoints.len(), tron.blocks_at_once),
            (728_126_428, 6, 2, 50)
        );
        assert_eq!(tron.token_contract.to_string(), "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t");
        let other = [
            ("NAME", "ethereum"),
            ("ENDPOINTS", "http://127.0.0.1:8545"),
            ("ACCOUNT_KEY", KEY),
            ("CHAIN_ID", "1"),
            ("TOKEN_CONTRACT", "0xdac17f958d2ee523a2206206994597c13d831ec7"),
        ];
        assert!(read(&other).unwrap().unwrap().token_contract.is_on("ethereum"));
        for (key, value) in [
            ("PRESET", "mars"),
            ("ENDPOINTS", "ftp://x"),
            ("ENDPOINTS", "http://a,http://a,http://a,http://a,http://a"),
            (
                "ACCOUNT_KEY",
                "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi",
            ),
            ("CHAIN_ID", "x"),
            ("DECIMALS", "31"),
            ("POLL_MILLISECONDS", "99"),
            ("BLOCKS_AT_ONCE", "0"),
            ("LAG_ALARM_SECONDS", "59"),
            ("NAME", "mars"),
            ("TOKEN_CONTRACT", "0xdac17f958d2ee523a2206206994597c13d831ec7"),
        ] {
            let mut variables: Vec<(&str, &str)> =
                preset.iter().copied().filter(|(known, _)| *known != key).collect();
            variables.push((key, value));
            assert!(read(&variables).is_err(), "{key}={value}");
        }
        for missing in ["ENDPOINTS", "ACCOUNT_KEY"] {
            let rest: Vec<(&str, &str)> =
                preset.iter().copied().filter(|(known, _)| *known != missing).collect();
            assert!(
                read(&rest).err().is_some_and(|message| message.contains(&missing.to_lowercase())),
                "{missing}"
            );
        }
    }

    #[test]
    fn each_endpoint_has_its_limits_and_is_named_once() {
        let limits = |endpoints: &str, more: &[(&str, &str)]| {
            let mut variables =
                vec![("PRESET", "tron"), ("ENDPOINTS", endpoints), ("ACCOUNT_KEY", KEY)];
            variables.extend_from_slice(more);
            read(&variables).map(|settings| {
                let limits = settings.unwrap().request_limits;
                limits.iter().map(|one| (one.per_second, one.per_day)).collect::<Vec<_>>()
            })
        };
        const TWO: &str = "http://127.0.0.1:8545,https://b.example/jsonrpc";
        assert_eq!(limits(TWO, &[]), Ok(vec![(0, 0), (5, 100_000)]));
        assert_eq!(
            limits(TWO, &[("REQUESTS_PER_SECOND", "3"), ("REQUESTS_PER_DAY", "0, 5000")]),
            Ok(vec![(3, 0), (3, 5_000)])
        );
        for more in [
            ("REQUESTS_PER_SECOND", "1,2,3"),
            ("REQUESTS_PER_SECOND", "x"),
            ("REQUESTS_PER_SECOND", "1001"),
            ("REQUESTS_PER_DAY", "100000001"),
            ("REQUESTS_PER_DAY", "-1"),
        ] {
            assert!(limits(TWO, &[more]).is_err(), "{more:?}");
        }
        for twice in [
            "https://a.example/jsonrpc,https://a.example/jsonrpc",
            "https://a.example/jsonrpc,https://A.example:443/jsonrpc/",
            "http://127.0.0.1:80/,http://b.example,http://127.0.0.1",
        ] {
            let refused = limits(twice, &[]).unwrap_err();
            assert!(refused.contains("twice"), "{refused}");
        }
        for apart in [
            "https://a.example/one,https://a.example/two",
            "http://a.example,https://a.example",
            "https://a.example/?key=1,https://a.example/?key=2",
        ] {
            assert!(limits(apart, &[]).is_ok(), "{apart}");
        }
    }
}
