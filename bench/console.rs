//! The operator's console over a large database, in which nearly all transfers were paid out: how
//! long pages take, and what ten people who keep the overview open cost callers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::Scale;
use crate::load::{self, Connection, Until};
use crate::server::{self, Api, CONNECTIONS_COUNT, Folder, Parties, Server};
use crate::table::{Table, median};
use crate::{growth, machine, postgres, rows, settled};

/// People who look at the same time, and how often a page that follows asks.
const PEOPLE: usize = 10;
const FOLLOW_SECONDS: u64 = 5;
/// Rounds beyond the usual ones: a small difference is looked for.
const ROUNDS_MORE: usize = 2;
const PASSWORD: &str = "correct horse battery staple";
/// What 99 of a hundred pages have to stay below.
const MILLISECONDS_MAX: f64 = 100.0;
/// The share of creations a second that may be lost.
const LOST_MAX: f64 = 0.05;

/// What makes the service serve a console.
pub const LISTEN: (&str, &str) = ("HUNDI_CONSOLE_LISTEN", "127.0.0.1:0");

pub fn run(runtime: &Runtime, scale: &Scale, table: &mut Table) {
    let size = scale.growth.last().copied().unwrap_or(1_000);
    let folder = Folder::new("console");
    let database = folder.database("filled");
    let server = Server::start(&database);
    let key = server::make_key(&database, "default");
    let parties = runtime.block_on(async {
        let mut api = Api::new(server.address, &key).await;
        let parties = api.parties().await;
        let creation = api.creations(&parties, 1).await;
        load::closed(server.address, 1, creation, Until::AllSent, load::ignore()).await;
        parties
    });
    server.stop();
    server::stored_bytes(&database);
    eprintln!("  filling {size} …");
    let answer_bytes = server::newest_answer_bytes(&database);
    let filled = rows::fill(&database, &growth::template(&parties, answer_bytes), &[], size);
    let server = Server::start(&database);
    runtime.block_on(async { settled::pay_one(&mut Api::new(server.address, &key).await).await });
    server.stop();
    settled::settle(&database, size);
    let step = (filled.transfers.len() / 500).max(1);
    let ids = filled.transfers.iter().step_by(step).map(ToString::to_string).collect();
    let url = format!("sqlite:{}", database.display());
    let mut server = Server::start_with(&database, &[LISTEN]);
    let of = Of { store: "SQLite", size, url, key, parties, ids };
    of.measure(runtime, scale, table, &mut server);
    server.stop();
    postgres::with_filled(runtime, table, size, |of, mut server, table| {
        of.measure(runtime, scale, table, &mut server);
        server.stop();
    });
}

/// What one round of creations reached.
struct Creations {
    rate: f64,
    /// Of the server, for each of them.
    cpu_microseconds: f64,
}

/// A filled database.
pub struct Of {
    pub store: &'static str,
    pub size: usize,
    pub url: String,
    pub key: String,
    pub parties: Parties,
    /// Transfers from all of it.
    pub ids: Vec<String>,
}

impl Of {
    pub fn measure(
        &self,
        runtime: &Runtime,
        scale: &Scale,
        table: &mut Table,
        server: &mut Server,
    ) {
        server::make_operator_on(&self.url, "bench", PASSWORD);
        let console = server.console();
        let cookie = sign_in(console);
        let get = |path: &str| {
            format!("GET {path} HTTP/1.1\r\nhost: {console}\r\ncookie: {cookie}\r\n\r\n")
                .into_bytes()
        };
        let count = (scale.growth_creations / 16).max(200);
        let overview = vec![get("/console/overview/live?mode=test"); count];
        let searches = (0..count).map(|index| match index % 4 {
            0 => get(&format!("/console/search?q={}", self.ids[index % self.ids.len()])),
            1 => get("/console/search?q=ravi"),
            2 => get(&format!("/console/search?q={}", "ab".repeat(32))),
            _ => get("/console/search?q=HDFCN52026112200000001"),
        });
        let searches = searches.collect::<Vec<_>>();
        let pages = (0..count)
            .map(|index| get(&format!("/console/transfers/{}", self.ids[index % self.ids.len()])));
        let pages = pages.collect::<Vec<_>>();
        let (store, size) = (self.store, self.size);
        // A first look counts the day; it is told apart.
        let first = runtime.block_on(async {
            let mut connection = Connection::open(console).await;
            let started = std::time::Instant::now();
            let (status, _) = connection.ask(&get("/console?mode=test")).await;
            assert_eq!(status, 200, "the overview");
            started.elapsed().as_secs_f64() * 1e3
        });
        let what = format!("console on {store}, {size} transfers");
        table.add(
            &format!("{what}: the first overview after a start"),
            format!("{first:.0} ms"),
            "",
        );
        let queues = vec![get("/console/queues/holds/live?mode=test"); count];
        for (page, requests) in [
            ("overview", overview),
            ("search", searches),
            ("a transfer's page", pages),
            ("a queue", queues),
        ] {
            let measured = runtime.block_on(async {
                let requests = Arc::new(requests);
                load::closed(console, PEOPLE, requests, Until::AllSent, load::ignore()).await
            });
            let note = format!(" ms at p99, {}, {PEOPLE} at once", measured.percentiles());
            let p99 = measured.milliseconds(99.0);
            table.at_most(&format!("{what}: {page}"), p99, MILLISECONDS_MAX, &note);
        }
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for round in 0..=scale.rounds + ROUNDS_MORE {
            // Each begins in turn, because the database grows and the machine changes.
            let order = if round % 2 == 0 { [false, true] } else { [true, false] };
            for is_watched in order {
                let made = runtime.block_on(self.create(server, console, scale, &get, is_watched));
                // The first round only warms up.
                if round > 0 {
                    if is_watched { with.push(made) } else { without.push(made) }
                }
            }
        }
        let of = |made: &[Creations], what: fn(&Creations) -> f64| median(made.iter().map(what));
        let (alone, watched) = (of(&without, |made| made.rate), of(&with, |made| made.rate));
        let cpu = [&without, &with].map(|made| of(made, |made| made.cpu_microseconds));
        let note = format!(
            " ({alone:.0}/s without, {watched:.0}/s with; CPU {:.0} and {:.0} µs each)",
            cpu[0], cpu[1]
        );
        // What a round lost against the other one of its turn.
        let pairs = without.iter().zip(&with);
        let lost = median(pairs.map(|(without, with)| 1.0 - with.rate / without.rate.max(1e-9)));
        let lost = lost.max(0.0);
        let what = format!("{what}: creations lost while {PEOPLE} keep the overview open");
        table.at_most(&what, lost, LOST_MAX, &note);
    }

    /// Creations a second, with or without people who keep the overview open.
    async fn create(
        &self,
        server: &Server,
        console: SocketAddr,
        scale: &Scale,
        get: &impl Fn(&str) -> Vec<u8>,
        is_watched: bool,
    ) -> Creations {
        let is_over = Arc::new(AtomicBool::new(false));
        let api = Api::new(server.address, &self.key).await;
        // Long enough that everybody looks more than once.
        let creations = api.creations(&self.parties, scale.creations * 2).await;
        server.calm().await;
        let mut people = Vec::new();
        for person in 0..if is_watched { PEOPLE } else { 0 } {
            let (is_over, request) = (is_over.clone(), get("/console/overview/live?mode=test"));
            let apart = Duration::from_secs(FOLLOW_SECONDS) * person as u32 / PEOPLE as u32;
            people.push(tokio::spawn(async move {
                let mut connection = Connection::open(console).await;
                tokio::time::sleep(apart).await;
                while !is_over.load(Ordering::Relaxed) {
                    connection.ask(&request).await;
                    tokio::time::sleep(Duration::from_secs(FOLLOW_SECONDS)).await;
                }
            }));
        }
        let (address, ignore) = (server.address, load::ignore());
        let all = Until::AllSent;
        let cpu_before = machine::cpu_seconds(server.process_id());
        let made = load::closed(address, CONNECTIONS_COUNT, creations, all, ignore).await;
        let cpu = machine::cpu_seconds(server.process_id()) - cpu_before;
        is_over.store(true, Ordering::Relaxed);
        people.into_iter().for_each(|person| person.abort());
        let cpu_microseconds = cpu * 1e6 / made.count().max(1) as f64;
        Creations { rate: made.rate(), cpu_microseconds }
    }
}

/// Signs in as a browser does; answers the cookie.
fn sign_in(console: SocketAddr) -> String {
    let ask = |request: String| {
        let mut stream = TcpStream::connect(console).expect("the console");
        stream.write_all(request.as_bytes()).expect("a request is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    let cookie = |answer: &str| {
        let line = answer.lines().filter(|line| line.starts_with("set-cookie: "));
        let mut value = line.filter_map(|line| line["set-cookie: ".len()..].split(';').next());
        value.next_back().filter(|pair| !pair.ends_with('=')).expect("a cookie").to_owned()
    };
    let head = format!("host: {console}\r\nconnection: close");
    let page = ask(format!("GET /console/sign_in HTTP/1.1\r\n{head}\r\n\r\n"));
    let visit = cookie(&page);
    let token =
        page.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("token", token.expect("a form")), ("name", "bench"), ("next", "")])
        .extend_pairs([("password", PASSWORD), ("code", "")])
        .finish();
    let done = ask(format!(
        "POST /console/sign_in HTTP/1.1\r\n{head}\r\norigin: http://{console}\r\ncookie: \
         {visit}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: \
         {}\r\n\r\n{body}",
        body.len()
    ));
    assert!(done.starts_with("HTTP/1.1 303"), "the sign-in was answered {done}");
    let line = done.lines().find(|line| line.starts_with("set-cookie: ") && !line.contains("=;"));
    let line = line.and_then(|line| line["set-cookie: ".len()..].split(';').next());
    line.expect("a session").to_owned()
}
