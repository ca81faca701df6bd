//! Somebody who looks at the console before a service that a test put together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hundi::app_state::AppState;
use hundi::console::{self, Console};
use hundi::http::connections::CONNECTIONS_MAX;
use hundi::http::server;
use hundi::kernel::DecidedBy;
use hundi::staff::sign_in::Place;
use hundi::staff::{self, Role, sessions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// How long a page may take to show what has happened.
const PATIENCE: Duration = Duration::from_secs(60);

/// The console, and the cookie of somebody who is signed in.
pub struct Viewer {
    host: String,
    cookie: String,
    _stop: watch::Sender<bool>,
}

impl Viewer {
    pub async fn of(state: Arc<AppState>) -> Viewer {
        let (listener, address) = server::bind("127.0.0.1:0").await.expect("a port");
        let metrics = state.metrics.clone();
        let made = Console::new(state.clone(), &format!("http://{address}"), false);
        let made = Arc::new(made.expect("a console"));
        let (stop, stopping) = watch::channel(false);
        let (answering, refusing) = (made.clone(), made);
        let answer = move |request| console::answer(answering.clone(), request);
        let refuse = Arc::new(move |refusal| console::refuse(&refusing, refusal));
        tokio::spawn(server::serve(listener, CONNECTIONS_MAX, stopping, metrics, answer, refuse));
        let begun = state.store.write(|tx, now| {
            let by = DecidedBy::default();
            let made = staff::create(tx, now, "asha", Role::Viewer, "no password", &by)?;
            let place = Place { address: "127.0.0.1".into(), browser: "a test".into() };
            Ok(sessions::begin(tx, now, made.number, &place, false)?.as_str().to_owned())
        });
        let token = begun.await.expect("a session");
        Viewer { host: address.to_string(), cookie: format!("hundi_session={token}"), _stop: stop }
    }

    pub async fn page(&self, path: &str) -> String {
        let Viewer { host, cookie, .. } = self;
        let mut stream = TcpStream::connect(host).await.expect("the console");
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    }

    /// A page once it shows a text: the overview's figures are read again after seconds.
    #[allow(dead_code, reason = "tests/iso20022 asks")]
    pub async fn page_with(&self, path: &str, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let page = self.page(path).await;
            if page.contains(text) {
                return page;
            }
            assert!(Instant::now() < end, "no {text} in {page}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The moments of the story on a page.
    #[allow(dead_code, reason = "tests/iso20022 asks")]
    pub async fn story(&self, path: &str) -> Vec<String> {
        let page = self.page(path).await;
        let list = page.split("class=\"story\"").nth(1).expect("a story");
        let list = list.split("</ol>").next().unwrap();
        list.split("<li").skip(1).map(str::to_owned).collect()
    }
}
