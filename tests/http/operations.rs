//! What an operator relies on: probes, pages, limits on connections, an orderly stop, and logs
//! without secrets.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use hundi::background::leader::run_as_leader;
use hundi::http::server;
use hundi::kernel::id::kind;
use hundi::kernel::{Id, Mode, Now, Scope};
use hundi::routes::routes;
use hundi::store::{Cost, Tx};
use hundi::tasks::{self, TaskKind};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::console;
use crate::idempotency::running_and_locked;
use crate::rates::Lines;
use crate::receiver::{Receiver, Reply};
use crate::stage::{SETTLES, faults};
use crate::support::{Answer, Client, LaneHold, Server, WAIT, id};
use crate::wire;

async fn open_page(server: &Server, path: &str) -> Answer {
    wire::exchange(&server.address, &wire::request("GET", path, &[], b"")).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_and_metrics_answer_without_a_key() {
    let server = Server::start().await;
    let client = server.client().await;
    for (path, body) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let answer = open_page(&server, path).await;
        assert_eq!((answer.status, &answer.body[..]), (200, body.as_bytes()), "{path}");
    }
    client.get("/v1/senders").await.ok();
    client.get("/v1/senders/x").await.error(404);
    let answer = open_page(&server, "/metrics").await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    for line in [
        r#"hundi_http_requests_total{method="GET",route="/v1/senders",status="200"} 1"#,
        r#"hundi_http_requests_total{method="GET",route="/v1/senders/{id}",status="404"} 1"#,
        "hundi_http_connections ",
        "hundi_store_commits_total ",
        "hundi_store_groups_again_total ",
        "hundi_webhook_in_flight 0",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    // A path that a caller makes up is no label.
    client.get("/v1/made-up-by-a-caller").await.error(404);
    let text = String::from_utf8(open_page(&server, "/metrics").await.body.to_vec()).unwrap();
    assert!(!text.contains("made-up"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_openapi_document_lists_every_route() {
    let server = Server::start().await;
    let answer = open_page(&server, "/openapi.json").await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let document = answer.ok();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let listed: BTreeSet<String> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, operations)| {
            operations
                .as_object()
                .unwrap()
                .keys()
                .map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    let served: BTreeSet<String> =
        routes().iter().map(|route| format!("{} {}", route.verb.as_str(), route.path)).collect();
    assert_eq!(listed, served);
    // Every reference within the document leads somewhere.
    fn check(document: &Value, part: &Value) {
        match part {
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    let pointer = reference
                        .strip_prefix('#')
                        .unwrap_or_else(|| panic!("{reference} leads out of the document"));
                    assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
                }
                members.values().for_each(|member| check(document, member));
            }
            Value::Array(items) => items.iter().for_each(|item| check(document, item)),
            _ => {}
        }
    }
    check(&document, &document);
}

/// The values of `src` and `href` in a page.
fn links(html: &str) -> Vec<String> {
    ["src=\"", "href=\""]
        .iter()
        .flat_map(|start| {
            html.split(start).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documentation_comes_whole_from_this_server() {
    let server = Server::start().await;
    for path in ["/", "/docs"] {
        let answer = open_page(&server, path).await;
        assert_eq!((answer.status, answer.header("location")), (302, Some("/docs/")));
    }
    let page = open_page(&server, "/docs/").await;
    assert_eq!(page.status, 200);
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("default-src 'none'; script-src 'self'")
            && !policy.contains("http")
            && !policy.contains('*'),
        "{policy}"
    );
    let html = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(!html.contains("://"), "the page names another host");
    // What the policy forbids would not run: scripts within the page.
    assert!(!html.contains("<script>"), "an inline script");
    let links = links(&html);
    assert!(
        links.iter().any(|link| link.ends_with(".js"))
            && links.iter().any(|link| link.ends_with(".css")),
        "{links:?}"
    );
    for link in links {
        assert!(!link.starts_with("//"), "{link}");
        // A link within the page, or the empty icon.
        let path = link.split('#').next().unwrap();
        if path.is_empty() || path == "data:," {
            continue;
        }
        let answer = open_page(&server, path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.body.len() > 100, "{path}");
    }
    for path in
        ["/docs/nothing", "/docs/../Cargo.toml", "/docs/%2e%2e/Cargo.toml", "/docs//etc/passwd"]
    {
        assert_eq!(open_page(&server, path).await.error(404), "object_not_found", "{path}");
    }
}

/// The type of what a page of the documentation answers to an `Accept`, and its text.
async fn accepted(server: &Server, path: &str, accept: &str) -> (Answer, String) {
    let headers: &[(&str, &[u8])] = &[("accept", accept.as_bytes())];
    let request = wire::request("GET", path, headers, b"");
    let answer = wire::exchange(&server.address, &request).await.unwrap();
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    (answer, text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_markdown_for_whoever_asks_for_that() {
    let server = Server::start().await;
    let pages = [
        ("/docs/", "/docs/index.md"),
        ("/docs/webhooks", "/docs/webhooks.md"),
        ("/docs/webhooks/", "/docs/webhooks.md"),
        ("/docs/webhooks?lang=rust", "/docs/webhooks.md?lang=rust"),
        ("/docs/api/transfers", "/docs/api/transfers.md"),
    ];
    for (path, at) in pages {
        let (_, markdown) = accepted(&server, at, "*/*").await;
        assert!(markdown.starts_with("# "), "{at}");
        let rows = [
            ("text/markdown", true),
            ("Text/Markdown; charset=utf-8", true),
            ("text/markdown, text/html, */*", true),
            ("text/markdown, text/html;q=0.9", true),
            ("text/html;q=0.5, text/markdown;q=0.4", false),
            ("text/markdown;q=0", false),
            ("text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8", false),
            ("text/*", false),
            ("*/*", false),
            ("", false),
        ];
        for (accept, is_markdown) in rows {
            let (answer, text) = accepted(&server, path, accept).await;
            let said = answer.header("content-type").unwrap_or_default();
            let wanted = if is_markdown { "text/markdown" } else { "text/html" };
            assert!(said.starts_with(wanted), "{path} for {accept:?} is {said}");
            assert_eq!(text == markdown, is_markdown, "{path} for {accept:?}");
            // A cache keeps both.
            assert_eq!(answer.header("vary"), Some("accept"), "{path} for {accept:?}");
        }
    }
    // What has one form is answered in that, whatever is asked for.
    for path in ["/docs/guides.css", "/docs/webhooks.md", "/llms.txt"] {
        let (answer, _) = accepted(&server, path, "text/markdown").await;
        assert_eq!((answer.status, answer.header("vary")), (200, None), "{path}");
    }
    assert_eq!(accepted(&server, "/docs/nothing", "text/markdown").await.0.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_carries_a_request_id_of_its_own() {
    let server = Server::start().await;
    let client = server.client().await;
    let authorization = format!("Bearer {}", client.key);
    let key: &[(&str, &[u8])] = &[("authorization", authorization.as_bytes())];
    let rows: [(&str, &str, &[(&str, &[u8])], u16); 12] = [
        ("GET", "/v1/senders", key, 200),
        ("GET", "/v1/senders", &[], 401),
        ("GET", "/v1/nothing", &[], 401),
        ("GET", "/v1", key, 404),
        ("GET", "/v1/senders/x", key, 404),
        ("GET", "/v1/senders?x", key, 400),
        ("POST", "/v1/senders", key, 400),
        ("PATCH", "/v1/senders", key, 405),
        ("GET", "/healthz", &[], 200),
        ("GET", "/docs/", &[], 200),
        ("GET", "/nothing", &[], 404),
        ("POST", "/healthz", &[], 405),
    ];
    let mut last = String::new();
    for (method, path, headers, status) in rows {
        let answer = wire::exchange(&server.address, &wire::request(method, path, headers, b""))
            .await
            .unwrap();
        assert_eq!(answer.status, status, "{method} {path}");
        let request_id = answer
            .header("request-id")
            .unwrap_or_else(|| panic!("{method} {path} has no Request-Id"))
            .to_owned();
        let ulid = request_id.strip_prefix("request_").unwrap();
        assert!(
            ulid.len() == 26
                && ulid.bytes().all(|byte| b"0123456789ABCDEFGHJKMNPQRSTVWXYZ".contains(&byte)),
            "{request_id}"
        );
        // They rise, also within a millisecond, so that a log sorted by them tells the order.
        assert!(request_id > last, "{last}, then {request_id}");
        last = request_id;
        if status >= 400 {
            answer.errors(status);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_are_refused_with_those_that_are_allowed() {
    let server = Server::start().await;
    let client = server.client().await;
    let rows: [(&str, &[&str]); 5] = [
        ("/v1/senders", &["GET", "HEAD", "POST"]),
        ("/v1/senders/x", &["GET", "HEAD"]),
        ("/v1/webhook_endpoints/x", &["DELETE", "GET", "HEAD", "POST"]),
        ("/v1/transfers/x/cancel", &["POST"]),
        ("/v1/test_helpers/clock", &["POST"]),
    ];
    for (path, allowed) in rows {
        for method in [
            Method::GET,
            Method::POST,
            Method::DELETE,
            Method::HEAD,
            Method::OPTIONS,
            Method::PUT,
            Method::PATCH,
            Method::TRACE,
        ] {
            if allowed.contains(&method.as_str()) {
                continue;
            }
            let what = format!("{method} {path}");
            let answer = client.send(method.clone(), path, &[], Bytes::new()).await;
            let mut allow: Vec<_> = answer
                .header("allow")
                .unwrap_or_else(|| panic!("{what}: no Allow"))
                .split(", ")
                .collect();
            allow.sort_unstable();
            assert_eq!(allow, allowed, "{what}");
            if method == Method::HEAD {
                assert_eq!((answer.status, answer.body.len()), (405, 0), "{what}");
            } else {
                assert_eq!(answer.error(405), "request_method_invalid", "{what}");
            }
            let unknown = client
                .send(method.clone(), path, &[("authorization", "Bearer nobody")], Bytes::new())
                .await;
            assert_eq!(
                (unknown.status, unknown.header("allow")),
                (401, None),
                "{what}: nothing answers without a key"
            );
        }
    }
    let head = client.send(Method::HEAD, "/healthz", &[], Bytes::new()).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    // The connection is still in step after answers without a body.
    assert_eq!(client.get("/v1/senders").await.ok()["object"], "list");
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_beyond_the_limits_are_refused() {
    let server = Server::start().await;
    let client = server.client().await;
    let authorization = format!("Bearer {}", client.key);
    let head = |lines: &str| {
        format!(
            "GET /v1/senders HTTP/1.1\r\nhost: test\r\nauthorization: \
         {authorization}\r\n{lines}\r\n"
        )
        .into_bytes()
    };
    let many: String =
        (0..server::HEADERS_MAX).map(|number| format!("x-{number}: a\r\n")).collect();
    let some: String =
        (0..server::HEADERS_MAX - 2).map(|number| format!("x-{number}: a\r\n")).collect();
    let long = "a".repeat(server::HEAD_BYTES_MAX);
    let longer = "a".repeat(3 * server::HEAD_BYTES_MAX);
    let (max, value) = ("parameter_max_length_invalid", "parameter_value_invalid");
    let target = |query: &str| format!("GET /v1/senders?{query} HTTP/1.1\r\nhost: test\r\n\r\n");
    let bare = |lines: &str| format!("GET /healthz HTTP/1.1\r\n{lines}\r\n").into_bytes();
    let rows: [(&str, Vec<u8>, Option<(&str, &str)>); 17] = [
        ("too many headers", head(&many), Some((max, "headers"))),
        ("far too many", head(&many.repeat(3)), Some((max, "headers"))),
        ("a large header", head(&format!("x-long: {long}\r\n")), Some((max, "x-long"))),
        ("a huge header", head(&format!("x-long: {longer}\r\n")), Some((max, "x-long"))),
        ("a large target", target(&long).into_bytes(), Some((max, "query"))),
        ("a huge target", target(&longer).into_bytes(), Some((max, "query"))),
        ("an endless line", vec![b'a'; 1 << 20], None),
        (
            "two lengths",
            head("content-length: 1\r\ncontent-length: 2\r\n"),
            Some((value, "Content-Length")),
        ),
        ("a negative length", head("content-length: -1\r\n"), Some((value, "Content-Length"))),
        ("a space before the colon", head("x : a\r\n"), Some((value, ""))),
        ("a control character", head("x: a\u{0}b\r\n"), Some((value, ""))),
        ("no HTTP", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(), None),
        (
            "a coding that nobody decodes",
            head("transfer-encoding: gzip, chunked\r\n"),
            Some((value, "Transfer-Encoding")),
        ),
        ("no host", bare(""), Some(("parameter_empty", "Host"))),
        ("two hosts", bare("host: a\r\nhost: a\r\n"), Some((value, "Host"))),
        ("a host with a name", bare("host: me@a\r\n"), Some((value, "Host"))),
        ("a host that is none", bare("host: a b\r\n"), Some((value, "Host"))),
    ];
    let document = open_page(&server, "/openapi.json").await.ok();
    let listed = &document["paths"]["/v1/senders"]["get"]["responses"]["400"]["description"];
    for (what, bytes, wanted) in rows {
        let answer = wire::exchange(&server.address, &bytes).await;
        let Some((code, field)) = wanted else {
            // What is no HTTP gets a bare 400 at most.
            assert!(answer.is_none_or(|answer| (400..500).contains(&answer.status)), "{what}");
            continue;
        };
        let answer = answer.unwrap_or_else(|| panic!("{what}: no answer"));
        assert_eq!(answer.errors(400), faults(&[(code, field)]), "{what}");
        assert!(listed.as_str().unwrap().contains(&format!("`{code}`")), "{what}: {listed}");
        assert!(answer.header("request-id").is_some_and(|id| id.starts_with("request_")), "{what}");
        assert_eq!(answer.header("connection"), Some("close"), "{what}");
    }
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    stream.write_all(b"HEAD /healthz HTTP/1.1\r\nhost: a\r\nx : a\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let read = tokio::time::timeout(WAIT, stream.read_to_string(&mut answer));
    read.await.expect("the connection ends").unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("\r\n\r\n"), "{answer}");
    assert!(!answer.contains("content-length: 0"), "it says how long the body would be: {answer}");
    // The head of a second request that arrives with the first one.
    let far_too_many = many.repeat(3);
    for (what, lines, code) in [
        ("a space before the colon", "x : a\r\n", value),
        ("far too many headers", far_too_many.as_str(), max),
    ] {
        let both = [bare("host: a\r\n"), bare(&format!("host: a\r\n{lines}"))].concat();
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        stream.write_all(&both).await.unwrap();
        let mut answers = String::new();
        let read = tokio::time::timeout(WAIT, stream.read_to_string(&mut answers));
        read.await.expect("the connection ends").unwrap();
        let refused = answers.split("HTTP/1.1 ").nth(2).expect("two answers");
        assert!(refused.starts_with("400 "), "{what}: {answers}");
        assert!(refused.contains("request-id: request_"), "{what}: {answers}");
        assert!(refused.contains(&format!("\"{code}\"")), "{what}: {answers}");
    }
    let http10 = wire::exchange(&server.address, b"GET /healthz HTTP/1.0\r\n\r\n").await.unwrap();
    assert_eq!(http10.status, 200, "HTTP/1.0 has no Host");
    let within = wire::exchange(&server.address, &head(&some)).await.unwrap();
    assert_eq!(within.status, 200, "as many headers as are allowed");
    client.get("/v1/senders").await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_ends_its_side_gets_its_answer() {
    let server = Server::start().await;
    let client = server.client().await;
    let body = r#"{"name":"Ravi Rao","type":"individual","country":"AE"}"#;
    let key = client.fresh_key();
    let authorization = format!("Bearer {}", client.key);
    let headers: [(&str, &[u8]); 3] = [
        ("authorization", authorization.as_bytes()),
        ("idempotency-key", key.as_bytes()),
        ("content-type", b"application/json"),
    ];
    let request = wire::request("POST", "/v1/senders", &headers, body.as_bytes());
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    stream.write_all(&request).await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(wire::read_answer(&mut stream).await.unwrap().status, 200);
    // One that ended in the middle gets none, and has no effect.
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    stream.write_all(&request[..request.len() - 5]).await.unwrap();
    stream.shutdown().await.unwrap();
    let answer = wire::read_answer(&mut stream).await;
    assert!(answer.is_none_or(|answer| answer.status == 400));
    assert_eq!(client.get("/v1/senders").await.ok()["data"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_say_little_keep_nobody_waiting() {
    const SLOW: usize = 300;
    let server = Server::start().await;
    let client = server.client().await;
    let mut slow = Vec::new();
    for _ in 0..SLOW {
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        stream.write_all(b"POST /v1/senders HTTP/1.1\r\nhost: te").await.unwrap();
        slow.push(stream);
    }
    let started = Instant::now();
    while !String::from_utf8_lossy(&open_page(&server, "/metrics").await.body).lines().any(|line| {
        line.strip_prefix("hundi_http_connections ")
            .is_some_and(|count| count.parse::<usize>().is_ok_and(|count| count >= SLOW))
    }) {
        assert!(started.elapsed() < WAIT, "the connections were not all taken");
    }
    client.sender().await;
    assert_eq!(open_page(&server, "/readyz").await.status, 200);
}

/// Measures the deadlines themselves, which takes as long as they are.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute"]
async fn dripping_requests_are_cut_off_at_their_deadlines() {
    let server = Server::start().await;
    let client = server.client().await;
    let drip = async |begin: Vec<u8>, deadline_seconds: u64| {
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        stream.write_all(&begin).await.unwrap();
        let started = Instant::now();
        let limit = Duration::from_secs(deadline_seconds + 10);
        // One byte a second; a peer that has closed lets a write fail soon after.
        while started.elapsed() < limit && stream.write_all(b"a").await.is_ok() {
            if wire::closed_after(&mut stream, Duration::from_secs(1)).await.is_some() {
                break;
            }
        }
        let taken = started.elapsed().as_secs();
        assert!(
            (deadline_seconds - 2..=deadline_seconds + 5).contains(&taken),
            "closed after {taken} s, not {deadline_seconds} s"
        );
    };
    let head = b"GET /v1/senders HTTP/1.1\r\nhost: test\r\nx: ".to_vec();
    let body = format!(
        "POST /v1/senders HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\nidempotency-key: \
         {}\r\ncontent-length: 60000\r\n\r\n",
        client.key,
        client.fresh_key()
    );
    let bodies = drip(body.into_bytes(), hundi::http::incoming::BODY_SECONDS_MAX);
    tokio::join!(
        drip(head, server::HEAD_SECONDS_MAX),
        drip(Vec::new(), server::HEAD_SECONDS_MAX),
        bodies
    );
}

/// The test above measures these at leisure; nobody makes them longer unnoticed.
const _: () = assert!(
    server::HEAD_SECONDS_MAX <= 30
        && hundi::http::incoming::BODY_SECONDS_MAX <= 30
        && server::STOP_SECONDS_MAX <= 30
);

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_running_requests_finish() {
    let server = Server::start().await;
    let client = server.client().await;
    let idle = server.client().await;
    idle.get("/v1/senders").await.ok();
    let hold = LaneHold::of(&server, &client).await;
    let mut running = Vec::new();
    for _ in 0..5 {
        running.push(running_and_locked(&client, &client.fresh_key()).await.0);
    }
    server.stop();
    // The port closes: new connections are refused, while the five are still awaited.
    let started = Instant::now();
    while TcpStream::connect(&server.address).await.is_ok() {
        assert!(started.elapsed() < WAIT, "the server still listens");
        tokio::task::yield_now().await;
    }
    assert!(running.iter().all(|request| !request.is_finished()));
    hold.let_go();
    for request in running {
        request.await.unwrap().expect("an answer").ok();
    }
}

/// The program itself, on a database of its own, with its output in files.
struct Program {
    process: std::process::Child,
    folder: std::path::PathBuf,
    address: String,
}

impl Program {
    fn command(folder: &std::path::Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hundi"));
        command
            .args(arguments)
            .arg("--database")
            .arg(format!("sqlite:{}", folder.join("test.db").display()));
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HUNDI_"))
        {
            command.env_remove(name);
        }
        command
            .env("HUNDI_LOG", "debug")
            .env("HUNDI_SIMULATION_STEP_MILLISECONDS", "5")
            .env(console::LISTEN.0, console::LISTEN.1)
            .stdin(Stdio::null());
        command
    }

    /// On a new folder, and a test key.
    async fn with_key() -> (Program, String) {
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).unwrap();
        let folder =
            std::env::temp_dir().join(format!("hundi-test-{:016x}", u64::from_be_bytes(random)));
        std::fs::create_dir(&folder).unwrap();
        let made =
            Program::command(&folder, &["keys", "create", "--mode", "test"]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        (Program::start(folder).await, key)
    }

    /// What it wrote to its standard output so far.
    fn told(&self) -> String {
        std::fs::read_to_string(self.folder.join("stdout")).unwrap()
    }

    async fn start(folder: std::path::PathBuf) -> Program {
        let file = |name: &str| std::fs::File::create(folder.join(name)).unwrap();
        let process = Program::command(&folder, &["serve", "--listen", "127.0.0.1:0"])
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .unwrap();
        let started = Instant::now();
        let address = loop {
            let text = std::fs::read_to_string(folder.join("stdout")).unwrap();
            if let Some(address) = text
                .split_once('\n')
                .and_then(|(line, _)| line.strip_prefix("listening on http://"))
            {
                break address.to_owned();
            }
            assert!(started.elapsed() < WAIT, "the program does not listen: {text}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        Program { process, folder, address }
    }

    /// Ends it with a signal; answers what it wrote.
    async fn stop(mut self) -> String {
        assert!(
            Command::new("kill").arg(self.process.id().to_string()).status().unwrap().success()
        );
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < WAIT, "the program does not stop");
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert!(status.success(), "{status}");
        ["stdout", "stderr"]
            .map(|name| std::fs::read_to_string(self.folder.join(name)).unwrap())
            .concat()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_hold_no_secret_and_no_personal_number() {
    let (program, key) = Program::with_key().await;
    let client = Client::of(&program.address, &key);

    let receiver = Receiver::start(Reply::status(500)).await;
    let healthy = Receiver::start(Reply::status(200)).await;
    let endpoint = client
        .post(
            "/v1/webhook_endpoints",
            json!({ "url": format!("{}?token=hooktokenhooktoken", receiver.url) }),
        )
        .await
        .ok();
    let other = client.post("/v1/webhook_endpoints", json!({ "url": healthy.url })).await.ok();
    let rotated = client
        .post(&format!("/v1/webhook_endpoints/{}/rotate_secret", id(&endpoint)), json!({}))
        .await
        .ok();
    let mut personal = json!({
        "name": "Recognisable Holder", "account_number": "71829364550001", "ifsc": "HDFC0000001",
            "account_type": "nre", "email": "recognisable@example.com",
        "phone": "+919812345670", "pan": "QWXYZ4821K", "passport_number": "Z81736455",
            "date_of_birth": "1971-03-09",
    });
    let beneficiary = client.post("/v1/beneficiaries", personal.clone()).await.ok();
    client.wait_status(&format!("/v1/beneficiaries/{}", id(&beneficiary)), "active").await;
    let sender = json!({ "name": "Recognisable Payer", "type": "individual", "country": "AE",
        "identification": { "type": "passport", "number": "X61736455" } });
    let sender = client.post("/v1/senders", sender).await.ok();
    let lock = client.quote_lock("100.00").await;
    let body = json!({
        "sender_id": id(&sender), "beneficiary_id": id(&beneficiary), "quote_lock_id": id(&lock),
            "amount": "100.00", "currency": "USD", "payout_currency": "INR",
        "funding": { "rail": "stablecoin", "asset": "USDT", "chain": "tron" },
    });
    let transfer = client.post("/v1/transfers", body).await.ok();
    client.deposit(&transfer, json!({})).await;
    let transfer =
        client.wait_status(&format!("/v1/transfers/{}", id(&transfer)), "payout_settled").await;
    client
        .get(&format!("/v1/payouts/{}/payment_advice", transfer["payout"]["id"].as_str().unwrap()))
        .await;
    receiver.wait_count(1).await;
    healthy.wait_count(5).await;
    // What a caller gets wrong holds the same data, in every place.
    personal["account_number"] = json!("71829364550001-too-long-for-one");
    client.post("/v1/beneficiaries", personal.clone()).await.errors(400);
    personal["71829364550001"] = json!("QWXYZ4821K");
    client.post("/v1/beneficiaries", personal.clone()).await.errors(400);
    client
        .post_raw("/v1/beneficiaries", &client.fresh_key(), personal.to_string().replace('}', ""))
        .await
        .errors(400);
    client
        .get("/v1/beneficiaries?account_number=71829364550001&71829364550001=1")
        .await
        .errors(400);
    client.get("/v1/beneficiaries/71829364550001").await.error(404);
    client.get("/v1/71829364550001/QWXYZ4821K").await.error(404);
    client.get("/docs/71829364550001").await.error(404);
    client.post_with("/v1/senders", "71829364550001-as-a-key", json!({})).await.errors(400);
    let wrong = [("authorization", "Bearer sk_test_wrongwrongwrongwrongwrongwrongwrong123456")];
    client.send(Method::GET, "/v1/senders", &wrong, Bytes::new()).await.error(401);
    let _ = wire::exchange(
        &program.address,
        b"GET /v1/senders HTTP/1.1\r\nx-71829364550001 : QWXYZ4821K\r\n\r\n",
    )
    .await;
    let traced = client.get("/v1/senders").await;
    let request_id = traced.header("request-id").unwrap().to_owned();

    let secrets: Vec<String> = [&endpoint, &other, &rotated]
        .iter()
        .map(|endpoint| endpoint["secret"].as_str().unwrap().to_owned())
        .collect();
    let log = program.stop().await;
    assert!(log.contains(&request_id), "the log is at its debug level and names requests:\n{log}");
    // The log is JSON where nobody looks at a terminal, and has a line of what operators follow.
    let is_logged = |line: &&str| line.starts_with('{');
    let lines: Vec<Value> = log
        .lines()
        .filter(is_logged)
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    let told = |message: &str| {
        lines.iter().find(|line| line["message"] == message && line["level"] == "INFO")
    };
    let changed = told("a transfer changed its status").expect("a line for a transfer");
    assert_eq!(changed["transfer"], transfer["id"]);
    let failed = told("an attempt of a delivery failed").expect("a line for an attempt");
    assert_eq!((&failed["endpoint"], &failed["http_status"]), (&endpoint["id"], &json!(500)));
    let mut wanted = vec![
        "718293645500",
        "QWXYZ4821K",
        "Z81736455",
        "X61736455",
        "1971-03-09",
        "9812345670",
        "recognisable@example.com",
        "Recognisable",
        "whsec_",
        "sk_test_",
        "hooktokenhooktoken",
        "wrongwrongwrong",
    ];
    wanted.push(&key["sk_test_".len()..]);
    wanted.extend(secrets.iter().map(|secret| &secret["whsec_".len()..]));
    for wanted in wanted {
        let line = log.lines().find(|line| line.contains(wanted));
        assert_eq!(line, None, "{wanted} stands in the log");
    }
}

/// Who decided and why stands with the decision; the log has no name and no words of theirs.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_in_the_console_is_one_line_of_identifiers() {
    let (program, key) = Program::with_key().await;
    let client = Client::of(&program.address, &key);
    let sender = json!({ "name": "Test Possibly Sanctioned", "type": "individual",
        "country": "AE" });
    let sender = id(&client.post("/v1/senders", sender).await.ok());
    let words = ["operators", "create", "asha", "--role", "operator", "--password-stdin"];
    let mut command = Program::command(&program.folder, &words);
    let mut made = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let password = console::PASSWORD.as_bytes();
    std::io::Write::write_all(&mut made.stdin.take().unwrap(), password).unwrap();
    assert!(made.wait().unwrap().success());
    let told = program.told();
    let address = told.lines().find_map(|line| line.strip_prefix("console at http://"));
    let address = address.and_then(|rest| rest.strip_suffix("/console")).expect(&told).to_owned();
    let mut browser = console::Browser::at(&address);
    assert_eq!(browser.try_sign_in("asha", console::PASSWORD, "").await.status, 303);
    let reason = ("reason", "Recognisable words");
    for (decision, status) in [("approve", 303), ("refuse", 303), ("nonsense", 409)] {
        let fields = [("object", sender.as_str()), ("decision", decision), reason];
        let answer = browser.submit("/console/account", "/console/decide", &fields).await;
        assert_eq!(answer.status, status, "{decision}: {}", answer.body);
    }
    let log = program.stop().await;
    let lines: Vec<Value> = log
        .lines()
        .filter(|line| line.starts_with('{') && line.contains(&sender))
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["level"] == "INFO")
        .collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    for line in &lines {
        assert_eq!(line["message"], "the operator decided", "{line}");
        assert_eq!(line["object"], sender.as_str(), "{line}");
        assert!(line["decision"].is_string() && line.as_object().unwrap().len() == 5, "{line}");
    }
    assert!(!log.contains("Recognisable"), "the reason stands in the log");
}

/// A fault in a worker costs what it was doing, and not the worker.
#[tokio::test]
async fn a_worker_that_panics_is_started_again_until_the_stop() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = Server::start().await;
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let starts = std::sync::atomic::AtomicUsize::new(0);
    let work = move |mut stop: tokio::sync::watch::Receiver<bool>, _| {
        let (tell, start) =
            (tell.clone(), starts.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
        async move {
            tell.send(start).unwrap();
            assert!(start == 2, "planted");
            stop.wait_for(|is_over| *is_over).await.unwrap();
        }
    };
    let worker = tokio::spawn(run_as_leader(server.app.state.clone(), "planted", stopping, work));
    for start in 0..=2 {
        let begun =
            tokio::time::timeout(WAIT, told.recv()).await.expect("the worker is started again");
        assert_eq!(begun, Some(start));
    }
    // The operator is told at once, and not at the stop.
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert_eq!(
        text.lines().filter(|line| line.contains("a worker panicked; ")).count(),
        2,
        "{text}"
    );
    stop.send(true).unwrap();
    worker.await.unwrap();
    assert_eq!(told.recv().await, None, "it ends with the service");
}

/// A task that only a newer version knows, and a task of live mode that is not configured, are kept
/// and stop no other.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_cannot_run_are_kept_and_stop_no_other() {
    let server = Server::start().await;
    let plant = |tx: &mut dyn Tx, now: &mut Now| {
        now.enter_account(0);
        let due = now.business_milliseconds() - 60_000;
        let (test, live) = (Scope::new(1, Mode::Test), Scope::new(1, Mode::Live));
        let nothing: Id<kind::Payout> = Id::from_u128(7);
        tasks::schedule(tx, now, test, TaskKind::AdviceIssue, nothing, due)?;
        tx.execute("UPDATE tasks SET kind = 'of_a_newer_version'", &[])?;
        tasks::schedule(tx, now, live, TaskKind::AdviceIssue, nothing, due)?;
        now.leave_account();
        Ok(())
    };
    server.app.state.store.write(plant).await.unwrap();
    let client = server.client().await;
    let beneficiary = client.beneficiary(SETTLES).await;
    client.wait_status(&format!("/v1/beneficiaries/{}", id(&beneficiary)), "active").await;
    let kinds = server.app.state.store.read(Cost::Point, |tx| {
        let rows = tx.rows("SELECT kind FROM tasks ORDER BY kind", &[])?;
        Ok(rows.into_iter().map(|mut row| row.text()).collect::<Result<Vec<_>, _>>()?)
    });
    assert_eq!(kinds.await.unwrap(), ["advice_issue", "of_a_newer_version"]);
}
