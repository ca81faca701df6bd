//! The operator's console: who gets in, who may ask what, and what no other site can do.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hundi::console::route::Method as Verb;
use hundi::console::routes::routes;
use hundi::kernel::DecidedBy;
use hundi::staff::{self, Role, passwords, totp};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::support::{Server, is_on_postgres};

pub const PASSWORD: &str = "correct horse battery staple";

/// An answer of the console.
#[derive(Debug)]
pub struct Page {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl Page {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
    fn set_cookies(&self) -> Vec<&str> {
        self.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap()).collect()
    }
    /// The body without the places at which a code may break.
    pub fn whole(&self) -> String {
        self.body.replace("<wbr>", "")
    }
    /// The token of the page's forms.
    pub fn token(&self) -> String {
        self.between("name=\"token\" value=\"", "\"")
    }
    pub fn between(&self, start: &str, end: &str) -> String {
        let at = self.body.find(start).unwrap_or_else(|| panic!("no {start} in {}", self.body));
        self.body[at + start.len()..].split(end).next().unwrap().to_owned()
    }
}

/// Sends one request to the console; a header `host` given here replaces the usual one.
async fn send(
    server: &Server,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Page {
    send_to(console_of(server), method, path, headers, body).await
}

fn console_of(server: &Server) -> &str {
    server.console.as_deref().expect("a server with a console")
}

async fn send_to(
    address: &str,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Page {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", address);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Full::new(Bytes::from(body.to_owned()));
    let response = sender.send_request(request.body(body).unwrap()).await.unwrap();
    let (head, body) = response.into_parts();
    let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    Page { status: head.status.as_u16(), headers: head.headers, body }
}

pub fn form(fields: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

const FORM: &str = "application/x-www-form-urlencoded";

/// A browser: it keeps cookies, and names the origin of what it posts.
pub struct Browser<'a> {
    address: &'a str,
    pub cookies: BTreeMap<String, String>,
    origin: String,
    host: String,
    /// The header `X-Forwarded-For`, if it is not empty.
    forwarded: String,
}

impl<'a> Browser<'a> {
    pub fn new(server: &'a Server) -> Browser<'a> {
        Browser::at(console_of(server))
    }

    /// One that looks at a console which listens at this address.
    pub fn at(address: &'a str) -> Browser<'a> {
        let (host, origin) = (address.to_owned(), format!("http://{address}"));
        Browser { address, cookies: BTreeMap::new(), origin, host, forwarded: String::new() }
    }

    /// One whose console is behind a proxy at an https address.
    fn encrypted(server: &'a Server, host: &str) -> Browser<'a> {
        let origin = format!("https://{host}");
        Browser { origin, host: host.into(), ..Browser::at(console_of(server)) }
    }

    fn cookie(&self) -> String {
        let pairs: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("; ")
    }

    async fn ask(&mut self, method: Method, path: &str, more: &[(&str, &str)], body: &str) -> Page {
        let (cookie, host, forwarded) = (self.cookie(), self.host.clone(), self.forwarded.clone());
        let mut headers = vec![("cookie", cookie.as_str()), ("host", host.as_str())];
        if !forwarded.is_empty() {
            headers.push(("x-forwarded-for", forwarded.as_str()));
        }
        headers.extend(more);
        let page = send_to(self.address, method, path, &headers, body).await;
        for set in page.set_cookies() {
            let (name, value) = set.split(';').next().unwrap().split_once('=').unwrap();
            match value {
                "" => drop(self.cookies.remove(name)),
                _ => drop(self.cookies.insert(name.into(), value.into())),
            }
        }
        page
    }

    pub async fn get(&mut self, path: &str) -> Page {
        self.ask(Method::GET, path, &[], "").await
    }

    /// Posts fields as a form of the console's own page does.
    pub async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Page {
        let origin = self.origin.clone();
        let headers = [
            ("origin", origin.as_str()),
            ("sec-fetch-site", "same-origin"),
            ("content-type", FORM),
        ];
        self.ask(Method::POST, path, &headers, &form(fields)).await
    }

    /// Opens a page and posts its form.
    pub async fn submit(&mut self, page: &str, path: &str, fields: &[(&str, &str)]) -> Page {
        let token = self.get(page).await.token();
        let all: Vec<_> = [("token", token.as_str())].iter().chain(fields).copied().collect();
        self.post(path, &all).await
    }

    pub async fn try_sign_in(&mut self, name: &str, password: &str, code: &str) -> Page {
        let fields = [("name", name), ("password", password), ("code", code), ("next", "")];
        self.submit("/console/sign_in", "/console/sign_in", &fields).await
    }
}

/// Makes an operator of each role, named as the role.
pub async fn make_operators(server: &Server) {
    let hash = passwords::hash(PASSWORD, [7; 16]).unwrap();
    let made = server.app.state.store.write(move |tx, now| {
        for role in Role::ALL {
            staff::create(tx, now, role.as_str(), *role, &hash, &DecidedBy::default())?;
        }
        Ok(())
    });
    made.await.unwrap();
}

pub const LISTEN: (&str, &str) = ("HUNDI_CONSOLE_LISTEN", "127.0.0.1:0");

/// A server with the console, and an operator of each role.
pub async fn console_with(variables: &[(&str, &str)]) -> Server {
    let server = Server::start_with(&[&[LISTEN], variables].concat()).await;
    make_operators(&server).await;
    server
}

async fn manual_console(variables: &[(&str, &str)]) -> Server {
    let server = Server::start_manual(&[&[LISTEN], variables].concat()).await;
    make_operators(&server).await;
    server
}

/// A browser in which an operator is signed in.
pub async fn signed_in<'a>(server: &'a Server, name: &str) -> Browser<'a> {
    let mut browser = Browser::new(server);
    let done = browser.try_sign_in(name, PASSWORD, "").await;
    assert_eq!((done.status, done.header("location")), (303, "/console"), "{}", done.body);
    browser
}

#[tokio::test]
async fn only_who_knows_the_password_gets_in() {
    let server = console_with(&[]).await;
    let mut browser = Browser::new(&server);
    let outside = browser.get("/console").await;
    assert_eq!(outside.status, 303);
    assert_eq!(outside.header("location"), "/console/sign_in?next=%2Fconsole");
    assert_eq!(browser.get("/console/no/such/page").await.status, 303, "not told what there is");
    for (name, password) in [("viewer", "wrong password"), ("nobody", PASSWORD), ("", "")] {
        let refused = browser.try_sign_in(name, password, "").await;
        assert_eq!(refused.status, 401, "{name}");
        assert!(!browser.cookies.contains_key("hundi_session"));
        assert!(refused.body.contains("is wrong"), "{}", refused.body);
    }
    let mut browser = signed_in(&server, "viewer").await;
    let inside = browser.get("/console").await;
    assert_eq!(inside.status, 200);
    assert!(inside.body.contains("viewer"), "{}", inside.body);
    assert_eq!(browser.get("/console/no/such/page").await.status, 404);
    // Signing out ends the session in the store, not only in the browser.
    let kept = browser.cookies.clone();
    assert_eq!(browser.submit("/console", "/console/sign_out", &[]).await.status, 303);
    browser.cookies = kept;
    assert_eq!(browser.get("/console").await.status, 303, "the cookie opens nothing any more");
}

#[tokio::test]
async fn too_many_failures_lock_a_name_and_an_address_for_a_while() {
    let server = manual_console(&[]).await;
    let mut browser = Browser::new(&server);
    for _ in 0..staff::sign_in::NAME_FAILURES_MAX {
        assert_eq!(browser.try_sign_in("admin", "a wrong password", "").await.status, 401);
    }
    let locked = browser.try_sign_in("Admin ", PASSWORD, "").await;
    assert_eq!(locked.status, 429, "also with the right password");
    assert!(locked.body.contains("15 minutes"), "{}", locked.body);
    signed_in(&server, "viewer").await;
    // Names that nobody has count for the address.
    let left = staff::sign_in::ADDRESS_FAILURES_MAX - staff::sign_in::NAME_FAILURES_MAX;
    for number in 0..left {
        let name = format!("nobody{number}");
        assert_eq!(browser.try_sign_in(&name, "x", "").await.status, 401, "{number}");
    }
    assert_eq!(browser.try_sign_in("viewer", PASSWORD, "").await.status, 429);
    server.advance_seconds(staff::sign_in::FAILURES_SECONDS);
    signed_in(&server, "viewer").await;
    signed_in(&server, "admin").await;
}

/// Behind a proxy that the settings name, attempts are counted by the address that the proxy was
/// asked from, and what the caller wrote into the header changes nothing. Behind any other proxy,
/// everybody has the proxy's address.
#[tokio::test]
async fn attempts_behind_a_proxy_count_for_who_made_them() {
    let address_max = staff::sign_in::ADDRESS_FAILURES_MAX as usize;
    for (proxies, others_status) in [("127.0.0.0/8, 10.0.0.1", 401), ("10.0.0.1", 429), ("", 429)] {
        let more =
            [("HUNDI_CONSOLE_URL", "https://console.example"), ("HUNDI_CONSOLE_PROXIES", proxies)];
        let server = manual_console(&more).await;
        let attempt = async |name: &str, forwarded: &str| {
            let mut browser = Browser::encrypted(&server, "console.example");
            browser.forwarded = forwarded.to_owned();
            browser.try_sign_in(name, "a wrong password", "").await.status
        };
        for number in 0..address_max {
            // Each time with another made-up address on the left, and through a second proxy.
            let forwarded = format!("10.9.9.{number}, 192.0.2.7, 10.0.0.1");
            assert_eq!(attempt(&format!("nobody{number}"), &forwarded).await, 401, "{proxies}");
        }
        assert_eq!(attempt("one-more", "10.9.9.250, 192.0.2.7").await, 429, "{proxies}");
        assert_eq!(attempt("another", "192.0.2.8").await, others_status, "{proxies}");
        let logged = server.app.state.store.write(|tx, _| {
            Ok(hundi::audit::rows::newest_of(tx, "sign_in_refused")?.expect("a refused attempt"))
        });
        let address = logged.await.unwrap().detail("address").unwrap();
        assert_eq!(address, if others_status == 401 { "192.0.2.8" } else { "127.0.0.1" });
    }
}

/// Whoever has one IPv6 address has its network of 64 bits, so attempts are counted by that.
#[tokio::test]
async fn attempts_from_one_ipv6_network_count_together() {
    let more = [
        ("HUNDI_CONSOLE_URL", "https://console.example"),
        ("HUNDI_CONSOLE_PROXIES", "127.0.0.0/8, ::1"),
    ];
    let server = manual_console(&more).await;
    let attempt = async |name: &str, forwarded: &str| {
        let mut browser = Browser::encrypted(&server, "console.example");
        browser.forwarded = forwarded.to_owned();
        browser.try_sign_in(name, "a wrong password", "").await.status
    };
    for number in 0..staff::sign_in::ADDRESS_FAILURES_MAX {
        let from = format!("2001:db8:0:7:{number:x}::1");
        assert_eq!(attempt(&format!("nobody{number}"), &from).await, 401, "{number}");
    }
    assert_eq!(attempt("one-more", "2001:db8:0:7:ffff:ffff:ffff:ffff").await, 429);
    assert_eq!(attempt("another", "2001:db8:0:8::1").await, 401, "another network");
    // The log has the address itself.
    let logged = server.app.state.store.write(|tx, _| {
        Ok(hundi::audit::rows::newest_of(tx, "sign_in_refused")?.expect("a refused attempt"))
    });
    assert_eq!(logged.await.unwrap().detail("address").as_deref(), Some("2001:db8:0:8::1"));
}

/// How many of many attempts that come together are answered with a status.
async fn at_once(server: &Server, attempts: Vec<[String; 3]>) -> BTreeMap<u16, usize> {
    let attempts = attempts.into_iter().map(|[name, password, code]| async move {
        Browser::new(server).try_sign_in(&name, &password, &code).await.status
    });
    let mut counts = BTreeMap::new();
    for status in futures_util::future::join_all(attempts).await {
        *counts.entry(status).or_default() += 1;
    }
    counts
}

#[tokio::test]
async fn attempts_that_come_together_are_limited_as_those_one_by_one() {
    let server = manual_console(&[]).await;
    let max = staff::sign_in::NAME_FAILURES_MAX as usize;
    let wrong = |number: usize| ["admin".into(), format!("wrong password {number}"), String::new()];
    let counts = at_once(&server, (0..40).map(wrong).collect()).await;
    assert_eq!(counts, BTreeMap::from([(401, max), (429, 40 - max)]));
    // As many of any names, from one address.
    server.advance_seconds(staff::sign_in::FAILURES_SECONDS);
    let other = |number: usize| [format!("nobody{number}"), "wrong".into(), String::new()];
    let counts = at_once(&server, (0..60).map(other).collect()).await;
    let max = staff::sign_in::ADDRESS_FAILURES_MAX as usize;
    assert_eq!(counts, BTreeMap::from([(401, max), (429, 60 - max)]));
    // An attempt that is right leaves no failure behind.
    server.advance_seconds(staff::sign_in::FAILURES_SECONDS);
    for _ in 0..=max {
        signed_in(&server, "viewer").await;
    }
}

#[tokio::test]
async fn codes_that_come_together_are_limited_too() {
    let server = manual_console(&[]).await;
    let mut browser = signed_in(&server, "admin").await;
    let secret = with_second_factor(&server, &mut browser).await;
    let instant = server.clock.load(std::sync::atomic::Ordering::SeqCst) / 1000;
    let right: Vec<String> =
        (-2..=2).map(|step| totp::code(&secret, instant + 30 * step)).collect();
    let wrong = (0..1_000_000).map(|code| format!("{code:06}"));
    let wrong = wrong.filter(|code| !right.contains(code)).take(40);
    let attempts = wrong.map(|code| ["admin".to_owned(), PASSWORD.to_owned(), code]).collect();
    let counts = at_once(&server, attempts).await;
    let max = staff::sign_in::NAME_FAILURES_MAX as usize;
    assert_eq!(counts, BTreeMap::from([(401, max), (429, 40 - max)]));
}

/// Sets up the second factor of who is signed in, and answers its secret.
async fn with_second_factor(server: &Server, browser: &mut Browser<'_>) -> Vec<u8> {
    browser.submit(SECOND_FACTOR, BEGIN, &[]).await;
    let page = browser.get(SECOND_FACTOR).await;
    let secret = from_base32(&page.between("<code id=\"secret\">", "<"));
    let instant = server.clock.load(std::sync::atomic::Ordering::SeqCst) / 1000;
    let code = totp::code(&secret, instant);
    assert_eq!(browser.submit(SECOND_FACTOR, CONFIRM, &[("code", &code)]).await.status, 200);
    server.advance_seconds(30);
    secret
}

/// A wrong code counts wherever it is asked for: at the sign-in beside a right password, which
/// resets nothing, and in an open session, also one that a provider's sign-in began.
#[tokio::test]
async fn wrong_codes_count_like_wrong_passwords() {
    use hundi::staff::provider_links::{self, OutsideSignIn, Vouched};
    let max = staff::sign_in::NAME_FAILURES_MAX;
    let server = manual_console(&[]).await;
    let instant = || server.clock.load(std::sync::atomic::Ordering::SeqCst) / 1000;
    let mut browser = signed_in(&server, "admin").await;
    let secret = with_second_factor(&server, &mut browser).await;
    let right = || totp::code(&secret, instant());
    let try_with = async |password: &str, code: &str| {
        Browser::new(&server).try_sign_in("admin", password, code).await.status
    };
    // Codes of the app, recovery codes and passwords count together.
    let wrong = ["abcdefgh", "aaaaa-aaaaa", "", "12345"];
    for at in 0..max as usize {
        let password = if at % 3 == 2 { "a wrong password" } else { PASSWORD };
        assert_eq!(try_with(password, wrong[at % wrong.len()]).await, 401, "{at}");
    }
    assert_eq!(try_with(PASSWORD, &right()).await, 429);
    // In an open session, such attempts end at the same lock, in both directions.
    let change = async |browser: &mut Browser<'_>, code: &str| {
        browser.submit(SECOND_FACTOR, BEGIN, &[("code", code)]).await
    };
    let locked = change(&mut browser, &right()).await;
    assert_eq!(locked.status, 409);
    assert!(locked.body.contains("15 minutes"), "{}", locked.body);
    server.advance_seconds(staff::sign_in::FAILURES_SECONDS);
    // A provider's sign-in begins the session; the provider asked for its own second factor.
    let services = server.app.state.services.clone();
    let begun = server.app.state.store.write(move |tx, now| {
        let number = staff::rows::find_by_name(tx, "admin")?.unwrap().identity.number;
        staff::rows::insert_link(tx, number, "https://id.example", "a-1", now.instant())?;
        let vouched = Vouched {
            issuer: "https://id.example".into(),
            subject: "a-1".into(),
            email: None,
            has_second_factor: true,
        };
        let place = staff::sign_in::Place { address: "::1".into(), browser: String::new() };
        match provider_links::sign_in(tx, now, &services, &vouched, &place)? {
            OutsideSignIn::Done { token, .. } => Ok(token.as_str().to_owned()),
            _ => panic!("nobody is signed in"),
        }
    });
    let mut outside = Browser::new(&server);
    outside.cookies.insert("hundi_session".into(), begun.await.unwrap());
    for at in 0..max as usize {
        // A right code of the sign-in before would reset nothing of these.
        let told = change(&mut outside, wrong[at % wrong.len()]).await;
        assert_eq!(told.status, 409, "{at}");
        assert!(told.body.contains("wrong or has expired"), "{}", told.body);
    }
    let locked = change(&mut outside, &right()).await;
    assert!(locked.body.contains("15 minutes"), "{}", locked.body);
    assert_eq!(try_with(PASSWORD, &right()).await, 429, "the name is locked at the sign-in too");
    // From other addresses too: the name alone is locked. Other names sign in from here.
    signed_in(&server, "viewer").await;
    let refused = server.app.state.store.write(|tx, _| {
        Ok(hundi::audit::rows::newest_of(tx, "sign_in_refused")?.expect("a refused attempt"))
    });
    let refused = refused.await.unwrap();
    assert_eq!(
        (refused.actor.as_str(), refused.detail("of").as_deref()),
        ("admin", Some("second_factor"))
    );
    // A right code leaves no failure behind, and takes back no other one.
    server.advance_seconds(staff::sign_in::FAILURES_SECONDS);
    let mut own = Browser::new(&server);
    assert_eq!(own.try_sign_in("admin", PASSWORD, &right()).await.status, 303);
    for _ in 1..max {
        assert_eq!(change(&mut own, "000").await.status, 409);
    }
    server.advance_seconds(30);
    assert_eq!(change(&mut own, &right()).await.status, 303);
    server.advance_seconds(30);
    assert_eq!(change(&mut own, "000").await.status, 409);
    let locked = change(&mut own, &right()).await;
    assert!(locked.body.contains("minutes"), "{}", locked.body);
}

#[tokio::test]
async fn a_link_that_a_sign_in_makes_says_who_and_why() {
    use hundi::staff::provider_links::{self, OutsideSignIn, Vouched};
    let server = manual_console(&[]).await;
    let services = server.app.state.services.clone();
    let signed = server.app.state.store.write(move |tx, now| {
        let hash = passwords::hash(PASSWORD, [7; 16]).unwrap();
        let by = DecidedBy::default();
        staff::create(tx, now, "asha@example.com", Role::Viewer, &hash, &by)?;
        let vouched = Vouched {
            issuer: "https://id.example".into(),
            subject: "a-1".into(),
            email: Some("Asha@example.com".into()),
            has_second_factor: true,
        };
        let place = staff::sign_in::Place { address: "::1".into(), browser: String::new() };
        provider_links::sign_in(tx, now, &services, &vouched, &place)
    });
    assert!(matches!(signed.await.unwrap(), OutsideSignIn::Done { .. }));
    let newest =
        server.app.state.store.write(|tx, _| {
            Ok(hundi::audit::rows::newest_of(tx, "operator_linked")?.expect("a link"))
        });
    let linked = newest.await.unwrap();
    assert_eq!((linked.actor.as_str(), linked.via.as_str()), ("asha@example.com", "console"));
    let reason = "the provider verified the e-mail address that is the operator's name";
    assert_eq!(linked.detail("reason").as_deref(), Some(reason));
}

#[tokio::test]
async fn a_session_ends_by_itself_and_by_its_owner() {
    use hundi::staff::sessions::{IDLE_SECONDS_MAX, SESSION_SECONDS_MAX};
    let server = manual_console(&[]).await;
    let mut idle = signed_in(&server, "viewer").await;
    server.advance_seconds(IDLE_SECONDS_MAX - 1);
    assert_eq!(idle.get("/console").await.status, 200);
    server.advance_seconds(IDLE_SECONDS_MAX - 1);
    assert_eq!(idle.get("/console").await.status, 200, "it was used in between");
    server.advance_seconds(IDLE_SECONDS_MAX);
    assert_eq!(idle.get("/console").await.status, 303);
    // The longest time counts from the sign-in, however much it is used.
    let mut long = signed_in(&server, "viewer").await;
    for _ in 0..SESSION_SECONDS_MAX / 1_200 - 1 {
        server.advance_seconds(1_200);
        assert_eq!(long.get("/console").await.status, 200);
    }
    server.advance_seconds(1_200);
    assert_eq!(long.get("/console").await.status, 303);
    // One's own sessions can be seen and ended, and nobody else's.
    let mut here = signed_in(&server, "operator").await;
    let mut there = signed_in(&server, "operator").await;
    let mut other = signed_in(&server, "viewer").await;
    let page = there.get("/console/account").await;
    let reference = page.between("name=\"session\" value=\"", "\"");
    let path = "/console/account/sessions/end";
    let refused = other.submit("/console/account", path, &[("session", &reference)]).await;
    assert_eq!(refused.status, 404);
    let ended = here.submit("/console/account", path, &[("session", &reference)]).await;
    assert_eq!(ended.status, 303);
    let left = [here.get("/console").await.status, there.get("/console").await.status];
    assert_eq!(left.iter().filter(|status| **status == 200).count(), 1, "{left:?}");
    // An operator who is disabled is out at once.
    let disabled = server
        .app
        .state
        .store
        .write(|tx, now| staff::disable(tx, now, "viewer", &DecidedBy::default()));
    disabled.await.unwrap();
    assert_eq!(other.get("/console").await.status, 303);
    assert_eq!(other.try_sign_in("viewer", PASSWORD, "").await.status, 401);
}

/// Base 32 as an app reads it.
fn from_base32(text: &str) -> Vec<u8> {
    let (mut bits, mut count, mut out) = (0_u32, 0, Vec::new());
    for letter in text.chars().filter(|letter| !letter.is_whitespace()) {
        let value = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".find(letter).unwrap() as u32;
        (bits, count) = (bits << 5 | value, count + 5);
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    out
}

const SECOND_FACTOR: &str = "/console/account/second_factor";
const BEGIN: &str = "/console/account/second_factor/begin";
const CONFIRM: &str = "/console/account/second_factor/confirm";

#[tokio::test]
async fn a_second_factor_is_set_up_asked_for_and_replaced() {
    let server = manual_console(&[("HUNDI_CONSOLE_SECOND_FACTOR", "true")]).await;
    let instant = || server.clock.load(std::sync::atomic::Ordering::SeqCst) / 1000;
    let mut browser = signed_in(&server, "admin").await;
    let mut elsewhere = signed_in(&server, "admin").await;
    assert_eq!(browser.get("/console").await.header("location"), SECOND_FACTOR);
    assert_eq!(browser.submit(SECOND_FACTOR, BEGIN, &[]).await.status, 303);
    let page = browser.get(SECOND_FACTOR).await;
    assert!(page.body.contains("<svg") && !page.body.contains("style="), "{}", page.body);
    let secret = from_base32(&page.between("<code id=\"secret\">", "<"));
    assert_eq!(secret.len(), totp::SECRET_BYTES);
    let wrong = browser.submit(SECOND_FACTOR, CONFIRM, &[("code", "000000")]).await;
    assert_eq!(wrong.status, 409);
    let before = browser.cookies.clone();
    let code = totp::code(&secret, instant());
    let shown = browser.submit(SECOND_FACTOR, CONFIRM, &[("code", &code)]).await;
    assert_eq!(shown.status, 200, "{}", shown.body);
    let codes: Vec<&str> = shown
        .body
        .split("<li><code>")
        .skip(1)
        .map(|rest| rest.split('<').next().unwrap())
        .collect();
    assert_eq!(codes.len(), totp::RECOVERY_CODES);
    assert_eq!(browser.get("/console").await.status, 200);
    // The session has a new token, and every other one ended.
    assert_ne!(browser.cookies, before);
    let after = std::mem::replace(&mut browser.cookies, before);
    assert_eq!(browser.get("/console").await.status, 303);
    assert_eq!(elsewhere.get("/console").await.status, 303);
    browser.cookies = after;
    // The password alone is no longer enough, and no code works twice.
    let mut fresh = Browser::new(&server);
    for given in ["", "000000", &code, "aaaaa-aaaaa"] {
        assert_eq!(fresh.try_sign_in("admin", PASSWORD, given).await.status, 401, "{given}");
    }
    server.advance_seconds(30);
    let code = totp::code(&secret, instant());
    assert_eq!(fresh.try_sign_in("admin", "wrong password", &code).await.status, 401);
    assert_eq!(fresh.try_sign_in("admin", PASSWORD, &code).await.status, 303);
    assert_eq!(Browser::new(&server).try_sign_in("admin", PASSWORD, &code).await.status, 401);
    let recovery = codes[3].to_uppercase();
    assert_eq!(Browser::new(&server).try_sign_in("admin", PASSWORD, &recovery).await.status, 303);
    assert_eq!(Browser::new(&server).try_sign_in("admin", PASSWORD, &recovery).await.status, 401);
    // A stolen session does not replace it; a code of it does, by another secret.
    assert_eq!(browser.submit(SECOND_FACTOR, BEGIN, &[]).await.status, 409);
    server.advance_seconds(30);
    let code = totp::code(&secret, instant());
    assert_eq!(browser.submit(SECOND_FACTOR, BEGIN, &[("code", &code)]).await.status, 303);
    let page = browser.get(SECOND_FACTOR).await;
    let next = from_base32(&page.between("<code id=\"secret\">", "<"));
    assert_ne!(next, secret);
    // Until the new one is confirmed, the confirmed one counts, and its recovery codes.
    let try_with =
        async |code: &str| Browser::new(&server).try_sign_in("admin", PASSWORD, code).await.status;
    assert_eq!(try_with("").await, 401);
    server.advance_seconds(30);
    assert_eq!(try_with(&totp::code(&next, instant())).await, 401);
    assert_eq!(try_with(&totp::code(&secret, instant())).await, 303);
    assert_eq!(try_with(codes[4]).await, 303);
    // A code of the earlier one confirms nothing.
    server.advance_seconds(30);
    let code = totp::code(&secret, instant());
    assert_eq!(browser.submit(SECOND_FACTOR, CONFIRM, &[("code", &code)]).await.status, 409);
    let code = totp::code(&next, instant());
    assert_eq!(browser.submit(SECOND_FACTOR, CONFIRM, &[("code", &code)]).await.status, 200);
    server.advance_seconds(30);
    assert_eq!(try_with(&totp::code(&secret, instant())).await, 401);
    assert_eq!(try_with(codes[5]).await, 401);
    assert_eq!(try_with(&totp::code(&next, instant())).await, 303);
    // One that is not confirmed in time is shown and taken no more.
    server.advance_seconds(30);
    let code = totp::code(&next, instant());
    assert_eq!(browser.submit(SECOND_FACTOR, BEGIN, &[("code", &code)]).await.status, 303);
    let page = browser.get(SECOND_FACTOR).await;
    let late = from_base32(&page.between("<code id=\"secret\">", "<"));
    server.advance_seconds(totp::SETUP_SECONDS_MAX);
    let page = browser.get(SECOND_FACTOR).await;
    assert!(page.body.contains(BEGIN) && !page.body.contains("<svg"), "{}", page.body);
    let code = totp::code(&late, instant());
    let fields = [("token", page.token()), ("code", code)];
    let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(browser.post(CONFIRM, &fields).await.status, 409);
    assert_eq!(try_with(&totp::code(&next, instant())).await, 303);
    // Neither the secret nor the codes stand anywhere in the store.
    for (place, bytes) in server.stored_bytes() {
        for plain in [secret.as_slice(), &next, codes[3].as_bytes(), PASSWORD.as_bytes()] {
            assert!(!bytes.windows(plain.len()).any(|part| part == plain), "{place}");
        }
    }
}

/// Which theme the viewer has, as the store has it.
async fn theme(server: &Server) -> &'static str {
    let read = server.app.state.store.read(hundi::store::Cost::Point, |tx| {
        Ok(staff::rows::find_by_name(tx, "viewer")?.unwrap().theme.as_str())
    });
    read.await.unwrap()
}

const PREFERENCES: &str = "/console/account/preferences";

/// Origin x method x content type: nothing but a form of the console's own page changes anything,
/// and no answer lets another site read it.
#[tokio::test]
async fn no_other_site_changes_or_reads_anything() {
    let server = console_with(&[]).await;
    let mut browser = signed_in(&server, "viewer").await;
    let token = browser.get("/console/account").await.token();
    let own = browser.origin.clone();
    let port = own.rsplit(':').next().unwrap().to_owned();
    let other_port = "http://127.0.0.1:1".to_owned();
    let encrypted = own.replace("http:", "https:");
    let like = format!("http://127.0.0.1.evil.example:{port}");
    let origins: Vec<(Option<&str>, Option<&str>)> = vec![
        (Some(&own), Some("same-origin")),
        (Some(&own), None),
        (Some(&own), Some("same-site")),
        (Some(&own), Some("cross-site")),
        (Some(&own), Some("none")),
        (Some("https://evil.example"), Some("cross-site")),
        (Some("https://evil.example"), Some("same-origin")),
        (Some(&other_port), Some("same-site")),
        (Some(&encrypted), None),
        (Some(&like), None),
        (Some("null"), None),
        (Some(""), None),
        (None, Some("same-origin")),
        (None, None),
    ];
    let types = [
        Some(FORM),
        Some("text/plain"),
        Some("multipart/form-data; boundary=x"),
        Some("application/json"),
        None,
    ];
    let (mut changes, mut tried) = (0, 0);
    for (origin, site) in &origins {
        for content_type in types {
            for method in [
                Method::POST,
                Method::PUT,
                Method::PATCH,
                Method::DELETE,
                Method::GET,
                Method::HEAD,
                Method::OPTIONS,
            ] {
                let before = theme(&server).await;
                let wanted = if before == "dark" { "light" } else { "dark" };
                let fields = form(&[("token", &token), ("language", "en"), ("theme", wanted)]);
                let mut headers = Vec::new();
                headers.extend(origin.map(|origin| ("origin", origin)));
                headers.extend(site.map(|site| ("sec-fetch-site", site)));
                headers.extend(content_type.map(|kind| ("content-type", kind)));
                headers.push(("access-control-request-method", "POST"));
                let path = format!("{PREFERENCES}?{fields}");
                let answer = browser.ask(method.clone(), &path, &headers, &fields).await;
                let may = method == Method::POST
                    && content_type == Some(FORM)
                    && *origin == Some(own.as_str())
                    && site.is_none_or(|site| site == "same-origin");
                let has_changed = theme(&server).await != before;
                let what = format!("{method} {origin:?} {site:?} {content_type:?}");
                assert_eq!(has_changed, may, "{what}: {}", answer.status);
                let shares =
                    answer.headers.keys().any(|name| name.as_str().starts_with("access-control-"));
                assert!(!shares, "{what}");
                changes += usize::from(has_changed);
                tried += 1;
            }
        }
    }
    assert_eq!((changes, tried), (2, origins.len() * types.len() * 7));
    // The origin alone is not enough either: the token has to be this session's.
    let mut other = signed_in(&server, "viewer").await;
    let others = other.get("/console/account").await.token();
    let visits = Browser::new(&server).get("/console/sign_in").await.token();
    for wrong in ["", "x", &others, &visits, &token.to_uppercase()] {
        let before = theme(&server).await;
        let fields = [("token", wrong), ("language", "en"), ("theme", "auto")];
        assert_eq!(browser.post(PREFERENCES, &fields).await.status, 403, "{wrong}");
        assert_eq!(theme(&server).await, before);
    }
}

/// Every change that the router knows, the sign-in among them, from other sites: with a session,
/// its token and whatever else is right. No site signs anybody in either, as somebody else, say.
#[tokio::test]
async fn no_route_takes_a_change_from_another_site() {
    let server = console_with(&[]).await;
    let mut browser = signed_in(&server, "admin").await;
    let (token, own) = (browser.get("/console/account").await.token(), browser.origin.clone());
    let changes: Vec<String> = routes()
        .iter()
        .filter(|route| route.method == Verb::Post)
        .map(|route| route.path.replace("{id}", "1").replace("{number}", "1"))
        .collect();
    assert!(changes.len() > 12, "{changes:?}");
    for path in &changes {
        for (origin, site) in [
            ("https://evil.example", "cross-site"),
            ("null", "cross-site"),
            ("", "same-origin"),
            (own.as_str(), "cross-site"),
        ] {
            let before = browser.cookies.clone();
            let headers = [("origin", origin), ("sec-fetch-site", site), ("content-type", FORM)];
            let fields = form(&[("token", &token), ("name", "viewer"), ("password", PASSWORD)]);
            let answer = browser.ask(Method::POST, path, &headers, &fields).await;
            assert_eq!(answer.status, 403, "{path} from {origin} {site}");
            assert_eq!(
                answer.body.trim(),
                "This change was not asked for by a page of the console."
            );
            assert_eq!(browser.cookies, before, "{path}: no cookie was set or removed");
        }
    }
    assert_eq!(browser.get("/console").await.status, 200, "nobody was signed out");
    // In the language that the browser asks for, as there is no session's yet.
    let headers = [("origin", "null"), ("content-type", FORM), ("accept-language", "hi")];
    let answer = browser.ask(Method::POST, "/console/sign_out", &headers, "").await;
    assert!(answer.status == 403 && answer.body.contains("कंसोल"), "{}", answer.body);
}

/// A decision leads back to where its form was, and to no other site.
#[tokio::test]
async fn a_decision_leads_back_to_the_console_alone() {
    let server = console_with(&[]).await;
    let sender = crate::support::id(&server.client().await.sender().await);
    let mut browser = signed_in(&server, "operator").await;
    let page = format!("/console/senders/{sender}");
    for (decision, back, location) in [
        ("refuse", page.as_str(), format!("{page}?notice=notice.decided")),
        ("approve", "https://evil.example/", "/console?notice=notice.decided".into()),
        ("refuse", "//evil.example", "/console?notice=notice.decided".into()),
        ("approve", "javascript:alert(1)", "/console?notice=notice.decided".into()),
        ("refuse", "/console/\\evil.example", "/console?notice=notice.decided".into()),
    ] {
        let fields = [
            ("object", sender.as_str()),
            ("decision", decision),
            ("reason", "a test"),
            ("back", back),
        ];
        let done = browser.submit(&page, "/console/decide", &fields).await;
        assert_eq!((done.status, done.header("location")), (303, location.as_str()), "{back}");
    }
}

#[tokio::test]
async fn a_host_that_is_not_the_consoles_is_refused() {
    let server = console_with(&[]).await;
    let mut browser = signed_in(&server, "viewer").await;
    browser.host = "rebound.example".into();
    assert_eq!(browser.get("/console").await.status, 421);
    browser.origin = "http://rebound.example".into();
    assert_eq!(browser.post("/console/sign_out", &[]).await.status, 421);
}

#[tokio::test]
async fn a_session_is_not_planted_and_not_taken_over() {
    let server = console_with(&[]).await;
    // A cookie that an attacker planted before the sign-in is not the session's afterwards.
    let planted = "A".repeat(43);
    let mut browser = Browser::new(&server);
    browser.cookies.insert("hundi_session".into(), planted.clone());
    let done = browser.try_sign_in("viewer", PASSWORD, "").await;
    assert_eq!(done.status, 303, "{}", done.body);
    assert_ne!(browser.cookies["hundi_session"], planted);
    let mut attacker = Browser::new(&server);
    attacker.cookies.insert("hundi_session".into(), planted.clone());
    assert_eq!(attacker.get("/console").await.status, 303);
    // Neither is the visit's, and a second sign-in has a second token.
    let first = browser.cookies["hundi_session"].clone();
    attacker.get("/console/sign_in").await;
    let visit = attacker.cookies["hundi_visit"].clone();
    attacker.cookies.insert("hundi_session".into(), visit);
    assert_eq!(attacker.get("/console").await.status, 303);
    browser.cookies.clear();
    browser.try_sign_in("viewer", PASSWORD, "").await;
    assert_ne!(browser.cookies["hundi_session"], first);
    // A second cookie of the name, as another path can set one, leaves none.
    let own = browser.cookie();
    for doubled in [
        format!("{own}; hundi_session={planted}"),
        format!("hundi_session={planted}; {own}"),
        format!("{own}; {own}"),
    ] {
        let answer = send(&server, Method::GET, "/console", &[("cookie", &doubled)], "").await;
        assert_eq!(answer.status, 303, "{doubled}");
    }
    // What the store has of a session is no token.
    for (place, bytes) in server.stored_bytes() {
        let token = browser.cookies["hundi_session"].as_bytes();
        assert!(!bytes.windows(token.len()).any(|part| part == token), "{place}");
    }
}

#[tokio::test]
async fn cookies_belong_to_this_host_alone() {
    let server = console_with(&[]).await;
    let mut browser = signed_in(&server, "viewer").await;
    let plain = browser.submit("/console", "/console/sign_out", &[]).await;
    assert!(plain.set_cookies()[0].contains("; Path=/; HttpOnly; SameSite=Lax"), "{plain:?}");
    // Behind a proxy that encrypts, browsers themselves keep others from setting them.
    let server = console_with(&[("HUNDI_CONSOLE_URL", "https://console.example")]).await;
    let mut browser = Browser::encrypted(&server, "console.example");
    let done = browser.try_sign_in("viewer", PASSWORD, "").await;
    assert_eq!(done.status, 303, "{}", done.body);
    for set in done.set_cookies() {
        let lower = set.to_lowercase();
        assert!(set.starts_with("__Host-") && lower.contains("; secure"), "{set}");
        assert!(lower.contains("; path=/;") && lower.contains("; httponly"), "{set}");
        assert!(lower.contains("; samesite=lax") && !lower.contains("domain"), "{set}");
    }
    assert_eq!(browser.get("/console").await.status, 200);
    assert!(!browser.get("/console").await.header("strict-transport-security").is_empty());
    // The name that another path or another host of the domain can set counts for nothing.
    let token = browser.cookies.remove("__Host-hundi_session").unwrap();
    browser.cookies.insert("hundi_session".into(), token);
    assert_eq!(browser.get("/console").await.status, 303);
}

#[tokio::test]
async fn nobody_is_sent_to_another_site() {
    let server = console_with(&[]).await;
    for (next, location) in [
        ("/console/account", "/console/account"),
        ("", "/console"),
        ("https://evil.example", "/console"),
        ("//evil.example", "/console"),
        ("/\\evil.example", "/console"),
        ("/console//evil.example", "/console"),
        ("/console/../../evil", "/console"),
        ("javascript:alert(1)", "/console"),
        ("/consoles", "/console"),
        ("/console\r\nset-cookie: a=b", "/console"),
    ] {
        let mut browser = Browser::new(&server);
        let page = browser.get(&format!("/console/sign_in?{}", form(&[("next", next)]))).await;
        if location == "/console" && !next.is_empty() {
            assert!(!page.body.contains("evil") && !page.body.contains("alert"), "{next}");
        }
        let fields = [
            ("token", page.token()),
            ("name", "viewer".into()),
            ("password", PASSWORD.into()),
            ("next", next.into()),
        ];
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let done = browser.post("/console/sign_in", &fields).await;
        assert_eq!((done.status, done.header("location")), (303, location), "{next:?}");
    }
}

#[tokio::test]
async fn every_answer_forbids_frames_scripts_and_caches() {
    let server = console_with(&[]).await;
    let mut browser = signed_in(&server, "admin").await;
    let home = browser.get("/console").await;
    let script = home.between("<script src=\"", "\"");
    let css = home.between("<link rel=\"stylesheet\" href=\"", "\"");
    let mut answers = vec![
        ("/console", home),
        ("/console/none", browser.get("/console/none").await),
        ("/", browser.get("/").await),
        ("sign-in", Browser::new(&server).get("/console/sign_in").await),
        ("outside", Browser::new(&server).get("/console").await),
        ("cross", send(&server, Method::POST, "/console/sign_out", &[], "").await),
    ];
    let refused = send(&server, Method::GET, "/console/decide", &[], "").await;
    assert_eq!((refused.status, refused.header("allow")), (405, "POST"));
    for (path, kept) in [(script, "immutable"), (css, "immutable")] {
        let file = Browser::new(&server).get(&path).await;
        assert_eq!(file.status, 200, "{path}");
        assert!(file.header("cache-control").contains(kept), "{path}");
        let asked = send(&server, Method::HEAD, &path, &[], "").await;
        assert_eq!((asked.status, asked.body.as_str()), (200, ""), "{path}");
        assert_eq!(asked.header("etag"), file.header("etag"), "{path}");
        let other = path.replace("/static/", "/static/0");
        assert_eq!(Browser::new(&server).get(&other).await.status, 303, "{other}");
        answers.push(("file", file));
    }
    for (what, answer) in answers {
        let policy = answer.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(part), "{what}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{what}");
        assert_eq!(answer.header("x-frame-options"), "DENY", "{what}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{what}");
        assert_eq!(answer.header("referrer-policy"), "same-origin", "{what}");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin", "{what}");
        if what != "file" {
            assert_eq!(answer.header("cache-control"), "no-store", "{what}");
            for forbidden in ["<style", " style=", " onclick=", "<script>", "http://", "https://"] {
                assert!(!answer.body.contains(forbidden), "{what}: {forbidden}");
            }
        }
    }
}

/// The log tells who signed in, and an export shows what is missing from it later.
#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_is_written_exported_and_verified() {
    let server = console_with(&[]).await;
    server.client().await;
    Browser::new(&server).try_sign_in("viewer", "a wrong password", "").await;
    Browser::new(&server).try_sign_in("a password in the wrong field", "x", "").await;
    signed_in(&server, "viewer").await;
    let run = |arguments: &[&str]| {
        let all = [arguments, &["--database", &server.database_url]].concat();
        server.binary(&all).output().unwrap()
    };
    let exported = run(&["audit", "export"]);
    assert!(exported.status.success(), "{exported:?}");
    let text = String::from_utf8(exported.stdout).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let actions: Vec<&str> = lines.iter().map(|line| line["action"].as_str().unwrap()).collect();
    let expected = [
        "settings",
        "operator_created",
        "operator_created",
        "operator_created",
        "operator_created",
        "key_created",
        "sign_in_refused",
        "sign_in_refused",
        "sign_in",
    ];
    assert_eq!(actions, expected);
    assert_eq!(lines[6]["actor"], "viewer");
    assert_eq!(lines[7]["actor"], "", "what is nobody's name is not kept");
    assert!(!text.contains("wrong field"));
    server.assert_book();
    let file = server.folder.join("audit.jsonl");
    let verify = |text: &str| {
        std::fs::write(&file, text).unwrap();
        run(&["audit", "verify", file.to_str().unwrap()])
    };
    assert!(verify(&text).status.success());
    // What the database no longer has as it was, an earlier export shows.
    for other in [
        text.replace("\"actor\":\"viewer\"", "\"actor\":\"admin\""),
        text.lines().skip(1).map(|line| format!("{line}\n")).collect(),
        format!("{text}{{}}\n"),
    ] {
        assert_ne!(other, text);
        assert!(!verify(&other).status.success());
    }
    if !is_on_postgres() {
        // The end taken away together with its count: only the export knows.
        let connection = rusqlite::Connection::open(server.folder.join("test.db")).unwrap();
        connection
            .execute_batch(
                "DELETE FROM audit_log WHERE number = 9; UPDATE audit_tail SET \
            number = 8, hash = (SELECT hash FROM audit_log WHERE number = 8)",
            )
            .unwrap();
        server.assert_book();
        let found = verify(&text);
        assert!(!found.status.success());
        assert!(String::from_utf8_lossy(&found.stdout).contains("entry 9 is gone"), "{found:?}");
    }
}
