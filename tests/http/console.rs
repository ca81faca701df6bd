//! The operator's console: who gets in, and who may ask what.

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hundi::console::route::{Least, Method as Verb};
use hundi::console::routes::routes;
use hundi::staff::{self, Role, passwords};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::support::Server;

const PASSWORD: &str = "correct horse battery staple";

/// An answer of the console.
#[derive(Debug)]
struct Page {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Page {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
    /// The cookie that an answer sets, as a browser sends it back.
    fn cookie(&self, name: &str) -> Option<String> {
        let mut all = self.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap());
        let found = all.rfind(|text| text.starts_with(&format!("{name}=")))?;
        let pair = found.split(';').next().unwrap();
        (!pair.ends_with('=')).then(|| pair.to_owned())
    }
    /// The token of the page's forms.
    fn token(&self) -> String {
        let mark = "name=\"token\" value=\"";
        let start = self.body.find(mark).expect("a form") + mark.len();
        self.body[start..].split('"').next().unwrap().to_owned()
    }
}

/// Sends one request to the console; a header given here replaces the usual one.
async fn send(
    server: &Server,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Page {
    let address = server.console.as_ref().expect("a server with a console");
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

/// What a browser sends with a form of the console's own page.
fn form_headers<'a>(origin: &'a str, cookie: &'a str) -> Vec<(&'static str, &'a str)> {
    vec![
        ("origin", origin),
        ("sec-fetch-site", "same-origin"),
        ("content-type", "application/x-www-form-urlencoded"),
        ("cookie", cookie),
    ]
}

/// A server with the console, and an operator of each role, named as the role.
async fn console() -> Server {
    let server = Server::start_with(&[("HUNDI_CONSOLE_LISTEN", "127.0.0.1:0")]).await;
    let hash = passwords::hash(PASSWORD, [7; 16]).unwrap();
    let made = server.app.state.store.write(move |tx, now| {
        for role in Role::ALL {
            staff::create(tx, now, role.as_str(), *role, &hash)?;
        }
        Ok(())
    });
    made.await.unwrap();
    server
}

/// Fills the form as a browser does; answers what came of it.
async fn try_sign_in(server: &Server, name: &str, password: &str) -> Page {
    let page = send(server, Method::GET, "/console/sign_in", &[], "").await;
    let origin = format!("http://{}", server.console.as_ref().unwrap());
    let cookie = page.cookie("hundi_visit").expect("a cookie of the visit");
    let body = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("token", &page.token())
        .append_pair("name", name)
        .append_pair("password", password)
        .append_pair("code", "")
        .append_pair("next", "")
        .finish();
    send(server, Method::POST, "/console/sign_in", &form_headers(&origin, &cookie), &body).await
}

/// Signs in; answers the session's cookie.
async fn sign_in(server: &Server, name: &str) -> String {
    let done = try_sign_in(server, name, PASSWORD).await;
    assert_eq!((done.status, done.header("location")), (303, "/console"), "{}", done.body);
    done.cookie("hundi_session").expect("a session")
}

#[tokio::test]
async fn only_who_knows_the_password_gets_in() {
    let server = console().await;
    let outside = send(&server, Method::GET, "/console", &[], "").await;
    assert_eq!(outside.status, 303);
    assert_eq!(outside.header("location"), "/console/sign_in?next=%2Fconsole");
    for (name, password) in [("viewer", "wrong password"), ("nobody", PASSWORD), ("", "")] {
        let refused = try_sign_in(&server, name, password).await;
        assert_eq!(refused.status, 401, "{name}");
        assert!(refused.cookie("hundi_session").is_none());
        assert!(refused.body.contains("is wrong"), "{}", refused.body);
    }
    let cookie = sign_in(&server, "viewer").await;
    let inside = send(&server, Method::GET, "/console", &[("cookie", &cookie)], "").await;
    assert_eq!(inside.status, 200);
    assert!(inside.body.contains("viewer"), "{}", inside.body);
    // Signing out ends the session in the store, not only in the browser.
    let origin = format!("http://{}", server.console.as_ref().unwrap());
    let body = format!("token={}", inside.token());
    let headers = form_headers(&origin, &cookie);
    let out = send(&server, Method::POST, "/console/sign_out", &headers, &body).await;
    assert_eq!(out.status, 303);
    let after = send(&server, Method::GET, "/console", &[("cookie", &cookie)], "").await;
    assert_eq!(after.status, 303, "the cookie opens nothing any more");
}

/// Every route with every role: below its least role it answers 403, without a session it leads
/// to the sign-in or answers 401, and otherwise something else.
#[tokio::test]
async fn every_route_asks_for_its_role() {
    let server = console().await;
    let origin = format!("http://{}", server.console.as_ref().unwrap());
    let ask = async |verb: Verb, path: &str, cookie: &str, token: &str| {
        let (method, body) = match verb {
            Verb::Get => (Method::GET, String::new()),
            Verb::Post => (Method::POST, format!("token={token}")),
        };
        send(&server, method, path, &form_headers(&origin, cookie), &body).await
    };
    for route in routes() {
        // What varies in a path is nothing that there is.
        let path: String = route
            .path
            .split('/')
            .map(|part| match part.starts_with('{') {
                true => "/none".to_owned(),
                false => format!("/{part}"),
            })
            .collect();
        let path = path.trim_start_matches('/');
        let path = format!("/{path}");
        let outside = ask(route.method, &path, "", "").await;
        match (route.least, route.method) {
            (Least::Anybody, _) => assert_ne!(outside.status, 401, "{path}"),
            (_, Verb::Get) => assert_eq!(outside.status, 303, "{path}"),
            (_, Verb::Post) => assert_eq!(outside.status, 401, "{path}"),
        }
        let Least::Role(least) = route.least else { continue };
        for role in Role::ALL {
            let cookie = sign_in(&server, role.as_str()).await;
            let with_cookie = [("cookie", cookie.as_str())];
            let own = send(&server, Method::GET, "/console/account", &with_cookie, "").await;
            let token = own.token();
            let answer = ask(route.method, &path, &cookie, &token).await;
            let what =
                format!("{} {path} as {}: {}", route.method.as_str(), role.as_str(), answer.status);
            assert_eq!(answer.status == 403, !role.includes(least), "{what}");
            assert!(answer.status < 500, "{what}: {}", answer.body);
        }
    }
}
