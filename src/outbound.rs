//! HTTP requests to services that the operator chose: chain nodes, rate sources, account look-ups,
//! an OpenID Connect provider. Commands such as `hundi listen` call a server with it. Not for
//! addresses that callers give: `webhooks::sending` vets those.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, RETRY_AFTER, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::RootCertStore;
use secrecy::{ExposeSecret, SecretString};

/// How long a connection may take to be made.
const CONNECT_SECONDS_MAX: u64 = 5;
/// How long an idle connection is kept.
const IDLE_SECONDS_MAX: u64 = 30;
/// The longest `Retry-After` that is honoured. A server that asks for hours is asked again after
/// five minutes, because its limit may end early.
pub const RETRY_AFTER_SECONDS_MAX: u64 = 300;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// The address is not one that can be asked.
    #[error("{0}")]
    Address(String),
    /// The name or the value of a header is not allowed in HTTP.
    #[error("{0}")]
    Header(String),
    #[error("no answer within {0} ms")]
    Deadline(u128),
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    #[error("no connection, or it broke: {0}")]
    Connection(String),
}

/// An answer, whatever its status.
#[derive(Clone, Debug)]
pub struct HttpAnswer {
    pub http_status: u16,
    /// `Retry-After` if it was a number, at most [`RETRY_AFTER_SECONDS_MAX`].
    pub retry_after_seconds: Option<u64>,
    pub body: Bytes,
}

/// Where requests go: an address, and the header that authorises, if there is one. Its `Debug`
/// shows neither the header nor the path, because providers put keys into both.
#[derive(Clone)]
pub struct OutboundEndpoint {
    uri: Uri,
    header: Option<(HeaderName, SecretString)>,
}

impl std::fmt::Debug for OutboundEndpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.label())
    }
}

impl OutboundEndpoint {
    /// Reads an http or https address; `header` is a name and its secret value.
    pub fn new(
        address: &str,
        header: Option<(&str, SecretString)>,
    ) -> Result<OutboundEndpoint, OutboundError> {
        let fault = |what: &str| OutboundError::Address(what.to_owned());
        let header_fault = |what: &str| OutboundError::Header(what.to_owned());
        const SHAPE: &str = "this is no address: write it like https://host/path";
        let uri: Uri = address.parse().map_err(|_| fault(SHAPE))?;
        if !matches!(uri.scheme_str(), Some("http" | "https"))
            || uri.host().is_none_or(str::is_empty)
        {
            return Err(fault(SHAPE));
        }
        let header = header
            .map(|(name, value)| {
                let name = HeaderName::from_bytes(name.as_bytes())
                    .map_err(|_| header_fault("the header's name is not valid"))?;
                HeaderValue::from_str(value.expose_secret()).map_err(|_| {
                    header_fault("the key has a character that a header cannot hold")
                })?;
                Ok((name, value))
            })
            .transpose()?;
        Ok(OutboundEndpoint { uri, header })
    }

    /// [`OutboundEndpoint::new`] for requests and answers that nobody on the way may read or
    /// change. Refuses http, except to this machine.
    pub fn private(
        address: &str,
        header: Option<(&str, SecretString)>,
    ) -> Result<OutboundEndpoint, OutboundError> {
        let endpoint = OutboundEndpoint::new(address, header)?;
        match endpoint.keeps_secrets() {
            true => Ok(endpoint),
            false => Err(OutboundError::Address(
                "over http anybody on the way can read and change what is sent; use https, or an \
                 address on this machine such as http://127.0.0.1:8000/path"
                    .into(),
            )),
        }
    }

    /// Whether a secret stays private on the way there: over https, or without leaving this
    /// machine.
    pub fn keeps_secrets(&self) -> bool {
        self.uri.scheme_str() == Some("https") || self.is_loopback()
    }

    /// Whether its host is this machine: `localhost`, or a loopback address.
    pub fn is_loopback(&self) -> bool {
        let host = self.uri.host().unwrap_or("").trim_matches(['[', ']']);
        host == "localhost"
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Whether requests to both go to the same place: scheme, host, port, path and query are equal.
    /// The case of scheme and host does not count, nor dots that end the host, nor slashes that end
    /// the path.
    pub fn is_same_place(&self, other: &OutboundEndpoint) -> bool {
        let place = |uri: &Uri| {
            let scheme = uri.scheme_str().unwrap_or("").to_lowercase();
            let port = uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
            let host = uri.host().unwrap_or("").trim_end_matches('.').to_lowercase();
            let path = uri.path().trim_end_matches('/').to_owned();
            (scheme, host, port, path, uri.query().unwrap_or("").to_owned())
        };
        place(&self.uri) == place(&other.uri)
    }

    /// The header that goes with each request.
    #[cfg(test)]
    pub fn secret_for_test(&self) -> Option<(String, String)> {
        self.header
            .as_ref()
            .map(|(name, value)| (name.to_string(), value.expose_secret().to_owned()))
    }

    /// Scheme, host and port: what a log may show.
    pub fn label(&self) -> String {
        format!(
            "{}://{}",
            self.uri.scheme_str().unwrap_or(""),
            self.uri.authority().map_or("", |authority| {
                authority.as_str().rsplit_once('@').map_or(authority.as_str(), |(_, host)| host)
            })
        )
    }

    /// The complete address, whose path may hold a key. Use it only for a keyed digest.
    pub fn whole_address(&self) -> SecretString {
        SecretString::from(self.uri.to_string())
    }

    /// The same host and header with another path, such as that of a node's second interface.
    pub fn with_path(&self, path: &str) -> Result<OutboundEndpoint, OutboundError> {
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query =
            Some(path.parse().map_err(|_| OutboundError::Address("the path is not valid".into()))?);
        let uri = Uri::from_parts(parts)
            .map_err(|_| OutboundError::Address("the path is not valid".into()))?;
        Ok(OutboundEndpoint { uri, header: self.header.clone() })
    }
}

/// A client with a pool of connections; clones share it.
#[derive(Clone)]
pub struct Client {
    pool: Pool<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Client {
    /// A client that trusts `roots` over https. No proxy, no redirects.
    pub fn new(roots: RootCertStore) -> Result<Client, rustls::Error> {
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(Duration::from_secs(CONNECT_SECONDS_MAX)));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let pool = Pool::builder(TokioExecutor::new())
            .pool_idle_timeout(Duration::from_secs(IDLE_SECONDS_MAX))
            .pool_timer(hyper_util::rt::TokioTimer::new())
            .build(connector);
        Ok(Client { pool })
    }

    /// Asks with GET.
    pub async fn get(
        &self,
        endpoint: &OutboundEndpoint,
        deadline: Duration,
        bytes_max: usize,
    ) -> Result<HttpAnswer, OutboundError> {
        self.send(Method::GET, endpoint, &[], Bytes::new(), deadline, bytes_max).await
    }

    /// Asks with POST and a JSON body.
    pub async fn post(
        &self,
        endpoint: &OutboundEndpoint,
        json: Vec<u8>,
        deadline: Duration,
        bytes_max: usize,
    ) -> Result<HttpAnswer, OutboundError> {
        let headers = [("content-type", "application/json")];
        self.send(Method::POST, endpoint, &headers, json, deadline, bytes_max).await
    }

    /// Sends any method and headers. `deadline` limits the whole request, from the connection to
    /// the last byte.
    pub async fn send(
        &self,
        method: Method,
        endpoint: &OutboundEndpoint,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
        deadline: Duration,
        bytes_max: usize,
    ) -> Result<HttpAnswer, OutboundError> {
        let mut request = Request::builder()
            .method(method)
            .uri(endpoint.uri.clone())
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, concat!("hundi/", env!("CARGO_PKG_VERSION")));
        if let Some((name, value)) = &endpoint.header {
            request = request.header(name, value.expose_secret());
        }
        let mut request = request
            .body(Full::new(body.into()))
            .map_err(|error| OutboundError::Address(error.to_string()))?;
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            let value = HeaderValue::from_str(value);
            let (Ok(name), Ok(value)) = (name, value) else {
                return Err(OutboundError::Header("a header is not allowed in HTTP".into()));
            };
            request.headers_mut().insert(name, value);
        }
        let answered = tokio::time::timeout(deadline, async {
            let answer = self
                .pool
                .request(request)
                .await
                .map_err(|error| OutboundError::Connection(connection_fault(&error)))?;
            let http_status = answer.status().as_u16();
            let retry_after_seconds = answer
                .headers()
                .get(RETRY_AFTER)
                .and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok())
                .map(|seconds| seconds.min(RETRY_AFTER_SECONDS_MAX));
            let body = match Limited::new(answer.into_body(), bytes_max).collect().await {
                Ok(body) => body.to_bytes(),
                Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                    return Err(OutboundError::TooLong(bytes_max));
                }
                Err(error) => return Err(OutboundError::Connection(error.to_string())),
            };
            Ok(HttpAnswer { http_status, retry_after_seconds, body })
        });
        answered.await.unwrap_or(Err(OutboundError::Deadline(deadline.as_millis())))
    }
}

/// What is wrong and what to do about it, if known. Otherwise the innermost cause, which says more
/// than the error itself. Of the address, the text shows the host at most.
fn connection_fault(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    loop {
        if let Some(sentence) = explained(cause) {
            return sentence;
        }
        match cause.source() {
            Some(source) => cause = source,
            None => return cause.to_string(),
        }
    }
}

fn explained(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(error) = cause.downcast_ref::<rustls::Error>() {
        return Some(tls_explained(error));
    }
    if cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
        let text = "what answers there does not speak HTTP: if it speaks TLS, write https://";
        return Some(text.into());
    }
    let error = cause.downcast_ref::<std::io::Error>()?;
    // An error of TLS is inside the error of the connection.
    if let Some(sentence) = error.get_ref().and_then(|inner| explained(inner)) {
        return Some(sentence);
    }
    if error.kind() == std::io::ErrorKind::ConnectionRefused {
        let text = "nothing listens there (connection refused): start it, or correct the address";
        return Some(text.into());
    }
    // The resolver's errors have no kind of their own.
    error.to_string().starts_with("failed to lookup address").then(|| {
        "the host's name is not known here: correct it, or look at this machine's DNS".into()
    })
}

fn tls_explained(error: &rustls::Error) -> String {
    use rustls::{CertificateError as Fault, Error, InvalidMessage};
    let text = match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "what answers there does not speak TLS: name its port for TLS, or write http:// if it \
             is on this machine"
        }
        Error::InvalidCertificate(Fault::UnknownIssuer) => {
            "this machine does not know the issuer of the certificate there: add the issuer to its \
             certificates, or name a file of issuers with SSL_CERT_FILE"
        }
        Error::InvalidCertificate(
            Fault::NotValidForName | Fault::NotValidForNameContext { .. },
        ) => "the certificate there is for another name: write the name that it is for",
        Error::InvalidCertificate(Fault::Expired | Fault::ExpiredContext { .. }) => {
            "the certificate there has expired: it has to be renewed, if this machine's clock is \
             right"
        }
        Error::InvalidCertificate(Fault::NotValidYet | Fault::NotValidYetContext { .. }) => {
            "the certificate there is not valid yet: look at this machine's clock"
        }
        _ => return format!("TLS failed: {error}"),
    };
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, CertifiedIssuer, Issuer, KeyPair};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn client() -> Client {
        Client::new(RootCertStore::empty()).unwrap()
    }

    /// A server that gives each connection one raw answer, and passes on what it was asked. If the
    /// answer is empty, the server stays silent.
    async fn serve(
        answer: &'static str,
    ) -> (OutboundEndpoint, tokio::sync::mpsc::UnboundedReceiver<String>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, asked) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = [0; 4096];
                let length = stream.read(&mut bytes).await.unwrap_or(0);
                let _ = tell.send(String::from_utf8_lossy(&bytes[..length]).into_owned());
                let _ = stream.write_all(answer.as_bytes()).await;
                if answer.is_empty() {
                    std::future::pending::<()>().await;
                }
            }
        });
        let endpoint = OutboundEndpoint::new(
            &format!("http://{address}/rpc?key=hidden"),
            Some(("X-Key", SecretString::from("secret"))),
        )
        .unwrap();
        (endpoint, asked)
    }

    #[tokio::test]
    async fn a_retry_after_counts_for_five_minutes_at_most() {
        for (text, seconds) in [("300", 300), ("86400", 300), ("18446744073709551615", 300)] {
            let answer: &'static str =
                format!("HTTP/1.1 429 Slow\r\nRetry-After: {text}\r\nContent-Length: 0\r\n\r\n")
                    .leak();
            let (endpoint, _asked) = serve(answer).await;
            let answer = client().post(&endpoint, Vec::new(), Duration::from_secs(5), 100).await;
            assert_eq!(answer.unwrap().retry_after_seconds, Some(seconds), "{text}");
        }
    }

    #[tokio::test]
    async fn an_answer_comes_with_its_status_and_the_secret_goes_out() {
        let (endpoint, mut asked) =
            serve("HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{}").await;
        let answer =
            client().post(&endpoint, b"[]".to_vec(), Duration::from_secs(5), 100).await.unwrap();
        assert_eq!(
            (answer.http_status, answer.retry_after_seconds, &answer.body[..]),
            (429, Some(7), &b"{}"[..])
        );
        let request = asked.recv().await.unwrap().to_lowercase();
        assert!(
            request.starts_with("post /rpc?key=hidden") && request.contains("x-key: secret"),
            "{request}"
        );
        let shown = format!("{endpoint:?}");
        assert!(!shown.contains("secret") && !shown.contains("hidden"), "{shown}");
    }

    /// A server with TLS whose certificate `issuer` issued for a name and a time.
    async fn serve_tls(issuer: &Issuer<'_, KeyPair>, name: &str, years: [i32; 2]) -> String {
        let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        parameters.not_before = rcgen::date_time_ymd(years[0], 1, 1);
        parameters.not_after = rcgen::date_time_ymd(years[1], 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, issuer).unwrap();
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client that refuses the certificate ends the handshake.
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            }
        });
        format!("localhost:{port}")
    }

    #[tokio::test]
    async fn a_connection_that_fails_says_what_to_do() {
        let issuer = |name: &str| {
            let mut parameters = CertificateParams::new(Vec::new()).unwrap();
            parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
            CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap()
        };
        let (known, unknown) = (issuer("known"), issuer("unknown"));
        let now = [2020, 2120];
        let good = serve_tls(&known, "localhost", now).await;
        let stranger = serve_tls(&unknown, "localhost", now).await;
        let other_name = serve_tls(&known, "pay.example", now).await;
        let expired = serve_tls(&known, "localhost", [2020, 2021]).await;
        let early = serve_tls(&known, "localhost", [2119, 2120]).await;
        let (plain, _asked) = serve("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        let plain = plain.label().replace("http://", "");
        let mut roots = RootCertStore::empty();
        roots.add(known.der().clone()).unwrap();
        let client = Client::new(roots).unwrap();
        let ask = async |address: String| {
            let endpoint = OutboundEndpoint::new(&address, None).unwrap();
            client.get(&endpoint, Duration::from_secs(20), 100).await
        };
        assert!(ask(format!("https://{good}/")).await.is_ok());
        for (address, wanted) in [
            (format!("https://{plain}/"), "does not speak TLS"),
            (format!("http://{good}/"), "write https://"),
            (format!("https://{stranger}/"), "does not know the issuer"),
            (format!("https://{other_name}/"), "for another name"),
            (format!("https://{expired}/"), "has expired"),
            (format!("https://{early}/"), "not valid yet"),
            ("http://127.0.0.1:1/".into(), "connection refused"),
            ("https://127.0.0.1:1/".into(), "connection refused"),
            ("http://no-such-host.invalid/".into(), "name is not known"),
        ] {
            let Err(OutboundError::Connection(reason)) = ask(address.clone()).await else {
                panic!("{address} was connected to");
            };
            assert!(reason.contains(wanted), "{address}: {reason}");
            let is_raw = reason.contains(['{', '"']) || reason.contains("::");
            assert!(!is_raw && reason.contains(": "), "{address}: {reason}");
        }
    }

    #[tokio::test]
    async fn a_late_or_long_answer_and_a_bad_address_are_errors() {
        let (silent, _asked) = serve("").await;
        let late = client().get(&silent, Duration::from_millis(50), 100).await;
        assert_eq!(late.err(), Some(OutboundError::Deadline(50)));
        let (long, _asked) =
            serve("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n01234567890").await;
        assert_eq!(
            client().get(&long, Duration::from_secs(5), 10).await.err(),
            Some(OutboundError::TooLong(10))
        );
        assert!(client().get(&long, Duration::from_secs(5), 11).await.is_ok());
        let closed = OutboundEndpoint::new("http://127.0.0.1:1/", None).unwrap();
        assert!(matches!(
            client().get(&closed, Duration::from_secs(5), 10).await,
            Err(OutboundError::Connection(_))
        ));
        for address in ["", "ftp://host/", "http://", "/path", "http://a b/"] {
            assert!(OutboundEndpoint::new(address, None).is_err(), "{address:?}");
        }
    }
}
