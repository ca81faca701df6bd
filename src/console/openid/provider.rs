//! The requests to an OpenID Connect provider: for its description, its keys, and the token for a
//! code. Every answer has a limit of size and time, and no redirect is followed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use jsonwebtoken::jwk::Jwk;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::flow::SignInFlow;
use super::settings::{OidcSettings, SECRET_VARIABLE};
use super::token::{Expected, ProviderPerson, TokenFault, verify};
use crate::outbound::{Client, OutboundEndpoint};

/// How long the provider may take for one answer.
pub const ANSWER_MILLISECONDS_MAX: u64 = 5_000;
pub const METADATA_BYTES_MAX: usize = 64 * 1024;
pub const KEYS_BYTES_MAX: usize = 256 * 1024;
pub const TOKEN_BYTES_MAX: usize = 64 * 1024;
/// How long the provider's description and keys are used before they are read again, in seconds.
pub const KNOWN_SECONDS_MAX: i64 = 600;
/// A token with an unknown key makes the service ask for the keys again, but not more often than
/// once in this many seconds.
pub const KEYS_AGAIN_SECONDS_MIN: i64 = 30;
/// If the description or the keys could not be read, they are asked for again only after this many
/// seconds.
pub const FAILED_SECONDS: i64 = 5;
/// How many sign-ins may exchange their codes at the same time.
const EXCHANGES_MAX: usize = 4;
/// The most characters of an error's name that are logged.
const ERROR_CHARACTERS_MAX: usize = 64;

/// Why nobody is signed in.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The provider does not answer, or answers something else than a provider should.
    #[error("{0}")]
    Unavailable(String),
    /// The provider answered, but signed nobody in, or its token is not accepted.
    #[error("{0}")]
    Refused(String),
}

use ProviderError::{Refused, Unavailable};

/// What the provider says of itself (OpenID Connect Discovery, 3).
#[derive(Deserialize)]
struct ProviderMetadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    /// RFC 9207.
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

#[derive(Deserialize)]
struct ProviderKeys {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: Option<String>,
}

#[derive(Deserialize)]
struct TokenError {
    error: String,
}

/// What was read of the provider at one time (`read_at`, Unix seconds): its description and keys.
struct KnownProvider {
    metadata: ProviderMetadata,
    token_endpoint: OutboundEndpoint,
    keys_endpoint: OutboundEndpoint,
    keys: Vec<Jwk>,
    read_at: i64,
}

#[derive(Default)]
struct Memory {
    known: Option<Arc<KnownProvider>>,
    /// When the keys were last read again because of an unknown key.
    keys_again_at: Option<i64>,
    /// When the description or the keys could not be read; `None` once they were read.
    failed_at: Option<i64>,
}

/// One provider.
pub struct OpenId {
    pub settings: OidcSettings,
    secret: Option<SecretString>,
    client: Client,
    memory: Mutex<Memory>,
    /// Held while the description and the keys are read, so that many who sign in read them once.
    asking: tokio::sync::Mutex<()>,
    exchanges: Semaphore,
}

impl OpenId {
    /// `environment` answers the client's secret from `HUNDI_CONSOLE_OIDC_SECRET`, or from the file
    /// that `HUNDI_CONSOLE_OIDC_SECRET_FILE` names. Without a secret the client is a public one.
    pub fn new(
        settings: OidcSettings,
        environment: &dyn Fn(&str) -> Option<String>,
        client: Client,
    ) -> OpenId {
        let secret = environment(SECRET_VARIABLE).filter(|text| !text.is_empty());
        OpenId {
            settings,
            secret: secret.map(SecretString::from),
            client,
            memory: Mutex::default(),
            asking: tokio::sync::Mutex::new(()),
            exchanges: Semaphore::new(EXCHANGES_MAX),
        }
    }

    fn with_memory<T>(&self, change: impl FnOnce(&mut Memory) -> T) -> T {
        change(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The provider's URL at which a person signs in.
    pub(super) async fn address(
        &self,
        flow: &SignInFlow,
        redirect_uri: &str,
        instant: i64,
    ) -> Result<String, ProviderError> {
        let known = self.known(instant).await?;
        let mut url = Url::parse(&known.metadata.authorization_endpoint)
            .map_err(|_| Unavailable("the provider's address cannot be read".into()))?;
        let scope = if self.settings.link_by_email { "openid email" } else { "openid" };
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("scope", scope)
            .append_pair("state", &flow.state)
            .append_pair("nonce", &flow.nonce)
            .append_pair("code_challenge", &flow.challenge())
            .append_pair("code_challenge_method", "S256");
        if let Some(acr) = &self.settings.acr {
            url.query_pairs_mut().append_pair("acr_values", acr);
        }
        Ok(url.into())
    }

    /// Exchanges the code that a browser brought back; answers the person whom the provider signed
    /// in. `issuer` is the parameter `iss` that the browser brought (RFC 9207), or "".
    pub(super) async fn redeem(
        &self,
        flow: &SignInFlow,
        code: &str,
        issuer: &str,
        redirect_uri: &str,
        instant: i64,
    ) -> Result<ProviderPerson, ProviderError> {
        let stopping = |_| Unavailable("the service stops".to_owned());
        let _permit = self.exchanges.acquire().await.map_err(stopping)?;
        let known = self.known(instant).await?;
        let must_say = known.metadata.authorization_response_iss_parameter_supported;
        if (must_say || !issuer.is_empty()) && issuer != self.settings.issuer {
            return Err(Refused("the answer came from another provider".into()));
        }
        if code.is_empty() {
            return Err(Refused("the answer has no code".into()));
        }
        let token = self.exchange(&known, flow, code, redirect_uri).await?;
        let expected = Expected {
            issuer: &self.settings.issuer,
            client_id: &self.settings.client_id,
            nonce: &flow.nonce,
            acr: self.settings.acr.as_deref(),
        };
        let judged = match verify(&token, &known.keys, &expected, instant) {
            Err(TokenFault::UnknownKey) => {
                let again = self.known_again(instant).await?;
                verify(&token, &again.keys, &expected, instant)
            }
            judged => judged,
        };
        judged.map_err(|fault| match fault {
            TokenFault::UnknownKey => Refused("the token is signed with an unknown key".into()),
            TokenFault::Refused(why) => Refused(why.into()),
        })
    }

    /// What is sent for a code: the form, and the header `Authorization` or "".
    fn request(
        &self,
        known: &KnownProvider,
        flow: &SignInFlow,
        code: &str,
        redirect_uri: &str,
    ) -> (String, String) {
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("code_verifier", &flow.verifier);
        let client_id = &self.settings.client_id;
        let methods = known.metadata.token_endpoint_auth_methods_supported.as_deref();
        // A provider that names no method supports client_secret_basic (OpenID Connect Discovery,
        // 3).
        let is_basic = methods.is_none_or(|all| all.iter().any(|one| one == "client_secret_basic"));
        let mut authorization = String::new();
        match &self.secret {
            Some(secret) if is_basic => {
                let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", encode(client_id), encode(secret.expose_secret()));
                authorization = format!("Basic {}", STANDARD.encode(pair));
            }
            Some(secret) => {
                form.append_pair("client_id", client_id);
                form.append_pair("client_secret", secret.expose_secret());
            }
            None => {
                form.append_pair("client_id", client_id);
            }
        }
        (form.finish(), authorization)
    }

    async fn exchange(
        &self,
        known: &KnownProvider,
        flow: &SignInFlow,
        code: &str,
        redirect_uri: &str,
    ) -> Result<String, ProviderError> {
        let (form, authorization) = self.request(known, flow, code, redirect_uri);
        let mut headers = vec![("content-type", "application/x-www-form-urlencoded")];
        if !authorization.is_empty() {
            headers.push(("authorization", authorization.as_str()));
        }
        let deadline = Duration::from_millis(ANSWER_MILLISECONDS_MAX);
        let asked = self.client.send(
            Method::POST,
            &known.token_endpoint,
            &headers,
            form,
            deadline,
            TOKEN_BYTES_MAX,
        );
        let answer =
            asked.await.map_err(|error| Unavailable(format!("its token endpoint: {error}")))?;
        match answer.http_status {
            200 => {
                let tokens: Tokens = serde_json::from_slice(&answer.body)
                    .map_err(|_| Unavailable("its answer with the token cannot be read".into()))?;
                tokens.id_token.ok_or_else(|| Refused("its answer has no ID token".into()))
            }
            status @ (400 | 401) => {
                // The code was used or is too old, or the provider does not know the client.
                let error = serde_json::from_slice::<TokenError>(&answer.body);
                let error = error.map_or_else(|_| String::new(), |found| found.error);
                let is_usual = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
                let error: String =
                    error.chars().filter(is_usual).take(ERROR_CHARACTERS_MAX).collect();
                Err(Refused(format!("it does not exchange the code: {status} {error}")))
            }
            status => Err(Unavailable(format!("its token endpoint: it answered {status}"))),
        }
    }

    /// The provider as it was read in the last [`KNOWN_SECONDS_MAX`] seconds, otherwise as it is
    /// read now.
    async fn known(&self, instant: i64) -> Result<Arc<KnownProvider>, ProviderError> {
        let remembered = || {
            self.with_memory(|memory| {
                let is_young = |known: &&Arc<KnownProvider>| {
                    (0..KNOWN_SECONDS_MAX).contains(&(instant - known.read_at))
                };
                memory.known.as_ref().filter(is_young).cloned()
            })
        };
        if let Some(known) = remembered() {
            return Ok(known);
        }
        let _asking = self.asking.lock().await;
        if let Some(known) = remembered() {
            return Ok(known);
        }
        self.ask(instant).await
    }

    /// Reads the provider again because of an unknown key. If it was already read again for this
    /// cause within the last [`KEYS_AGAIN_SECONDS_MIN`] seconds, answers what is known.
    async fn known_again(&self, instant: i64) -> Result<Arc<KnownProvider>, ProviderError> {
        let _asking = self.asking.lock().await;
        let known = self.with_memory(|memory| {
            let again_at = memory.keys_again_at;
            let is_late =
                again_at.is_none_or(|at| !(0..KEYS_AGAIN_SECONDS_MIN).contains(&(instant - at)));
            if is_late {
                memory.keys_again_at = Some(instant);
                return None;
            }
            memory.known.clone()
        });
        if let Some(known) = known {
            return Ok(known);
        }
        self.ask(instant).await
    }

    /// Reads the provider, and remembers what it said or when it failed. For [`FAILED_SECONDS`]
    /// after a failure the provider is not asked. Called only while `asking` is held.
    async fn ask(&self, instant: i64) -> Result<Arc<KnownProvider>, ProviderError> {
        let failed_at = self.with_memory(|memory| memory.failed_at);
        if failed_at.is_some_and(|at| (0..FAILED_SECONDS).contains(&(instant - at))) {
            return Err(Unavailable("it failed seconds ago and is not asked again yet".into()));
        }
        let read = self.read(instant).await;
        self.with_memory(|memory| match &read {
            Ok(known) => (memory.known, memory.failed_at) = (Some(known.clone()), None),
            Err(_) => memory.failed_at = Some(instant),
        });
        read
    }

    async fn read(&self, instant: i64) -> Result<Arc<KnownProvider>, ProviderError> {
        let issuer = &self.settings.issuer;
        let address = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let address = endpoint("issuer", &address)?;
        let metadata: ProviderMetadata =
            self.json("its description", &address, METADATA_BYTES_MAX).await?;
        if metadata.issuer != *issuer {
            return Err(Unavailable(
                "its \"issuer\" differs from console.oidc.issuer: copy it into that setting \
                 exactly as the provider writes it"
                    .into(),
            ));
        }
        endpoint("authorization_endpoint", &metadata.authorization_endpoint)?;
        let challenges = metadata.code_challenge_methods_supported.as_deref();
        if challenges.is_some_and(|all| !all.iter().any(|one| one == "S256")) {
            return Err(Unavailable("it does not know PKCE with S256".into()));
        }
        let token_endpoint = endpoint("token_endpoint", &metadata.token_endpoint)?;
        let keys_endpoint = endpoint("jwks_uri", &metadata.jwks_uri)?;
        let found: ProviderKeys = self.json("its keys", &keys_endpoint, KEYS_BYTES_MAX).await?;
        // Keys of unknown kinds are ignored.
        let keys = found.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
        let keys = keys.collect();
        Ok(Arc::new(KnownProvider {
            metadata,
            token_endpoint,
            keys_endpoint,
            keys,
            read_at: instant,
        }))
    }

    async fn json<T: DeserializeOwned>(
        &self,
        what: &str,
        endpoint: &OutboundEndpoint,
        bytes_max: usize,
    ) -> Result<T, ProviderError> {
        let deadline = Duration::from_millis(ANSWER_MILLISECONDS_MAX);
        let answer = self.client.get(endpoint, deadline, bytes_max).await;
        let answer = answer.map_err(|error| Unavailable(format!("{what}: {error}")))?;
        if answer.http_status != 200 {
            return Err(Unavailable(format!("{what}: it answered {}", answer.http_status)));
        }
        serde_json::from_slice(&answer.body)
            .map_err(|_| Unavailable(format!("{what}: the answer cannot be read")))
    }

    /// Says in words, for `hundi doctor`, whether the provider shows its description and keys.
    pub async fn check(&self, instant: i64) -> Result<String, ProviderError> {
        let known = self.known(instant).await?;
        let keys = known.keys.len();
        if keys == 0 {
            return Err(Unavailable("it publishes no key that the console can read".into()));
        }
        let client = match &self.secret {
            Some(_) => "with a client secret",
            None => "as a public client, without a client secret",
        };
        let (issuer, place) = (&self.settings.issuer, known.keys_endpoint.label());
        Ok(format!("{issuer} answers, keys at {place}: {keys}; {client}"))
    }
}

/// Reads an address of the provider. `Err` unless it is https, or http on this machine, because
/// secrets are sent to some of them.
fn endpoint(name: &str, address: &str) -> Result<OutboundEndpoint, ProviderError> {
    let endpoint =
        OutboundEndpoint::new(address, None).ok().filter(OutboundEndpoint::keeps_secrets);
    endpoint.ok_or_else(|| Unavailable(format!("its {name} is no https:// address")))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rustls::RootCertStore;

    use super::*;

    /// A provider that closes every connection at once, and how many connections it has had.
    fn broken() -> (OpenId, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
                drop(connection);
            }
        });
        let settings = OidcSettings {
            issuer,
            client_id: "hundi".into(),
            name: None,
            second_factor: None,
            acr: None,
            link_by_email: false,
        };
        let client = Client::new(RootCertStore::empty()).unwrap();
        (OpenId::new(settings, &|_| None, client), count)
    }

    /// After `known` or `known_again` has failed, neither of them asks the provider for a while.
    #[tokio::test]
    async fn a_provider_that_failed_is_left_alone_for_a_while() {
        let (provider, count) = broken();
        let mut asked = 0;
        for (instant, is_again) in [(1_000, true), (2_000, false)] {
            let first = match is_again {
                true => provider.known_again(instant).await,
                false => provider.known(instant).await,
            };
            assert!(first.is_err());
            assert!(count.load(Ordering::SeqCst) > asked, "{instant}");
            asked = count.load(Ordering::SeqCst);
            let soon = instant + FAILED_SECONDS - 1;
            assert!(provider.known(soon).await.is_err());
            assert!(provider.known_again(soon).await.is_err());
            assert_eq!(count.load(Ordering::SeqCst), asked, "{instant}");
        }
        // The control: once that time is over, the provider is asked.
        assert!(provider.known(2_000 + FAILED_SECONDS).await.is_err());
        assert!(count.load(Ordering::SeqCst) > asked);
    }
}
