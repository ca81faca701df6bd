//! What the operator's console shows of a real chain: how far it is followed, with a small history,
//! and where anybody can look a transaction up.

use std::sync::Arc;

use hundi::console::{self, Console};
use hundi::http::server;
use hundi::kernel::DecidedBy;
use hundi::staff::sign_in::Place;
use hundi::staff::{self, Role, sessions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::anvil::Options;
use crate::callers::id;
use crate::service::{Setup, Stage, address, eventually};

/// TRON's Nile test net, which has an explorer.
const NILE: u64 = 3_448_148_188;

/// The console before a stage, and the cookie of somebody who is signed in.
struct Viewer {
    host: String,
    cookie: String,
    _stop: watch::Sender<bool>,
}

impl Viewer {
    async fn of(stage: &Stage) -> Viewer {
        let (listener, address) = server::bind("127.0.0.1:0").await.expect("a port");
        let state = stage.app.state.clone();
        let metrics = state.metrics.clone();
        let made = Console::new(state.clone(), &format!("http://{address}"), false);
        let made = Arc::new(made.expect("a console"));
        let (stop, stopping) = watch::channel(false);
        let (answering, refusing) = (made.clone(), made);
        let answer = move |request| console::answer(answering.clone(), request);
        let refuse = Arc::new(move |refusal| console::refuse(&refusing, refusal));
        tokio::spawn(server::serve(listener, stopping, metrics, answer, refuse));
        let begun = state.store.write(|tx, now| {
            let by = DecidedBy::default();
            let made = staff::create(tx, now, "asha", Role::Viewer, "no password", &by)?;
            let place = Place { address: "127.0.0.1".into(), browser: "a test".into() };
            Ok(sessions::begin(tx, now, made.number, &place, false)?.as_str().to_owned())
        });
        let token = begun.await.expect("a session");
        Viewer { host: address.to_string(), cookie: format!("hundi_session={token}"), _stop: stop }
    }

    async fn page(&self, path: &str) -> String {
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
}

/// The rows of the table with this caption.
fn rows_of(page: &str, caption: &str) -> Vec<String> {
    let table = page.split(&format!("aria-label=\"{caption}\"")).nth(1);
    let table = table.unwrap_or_else(|| panic!("no {caption} in {page}"));
    let body = table.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    body.split("<tr").skip(1).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_console_shows_the_chain_and_where_to_look_things_up() {
    let chain = Options { chain_id: NILE, ..Options::default() };
    let stage = Stage::set_with(Setup { chain, ..Setup::default() }).await;
    let viewer = Viewer::of(&stage).await;
    let transfer = stage.transfer("100.00").await;
    stage.token.transfer(address(&transfer), 100_000_000).await;
    stage.settle().await;
    stage.awaits(&transfer, "payout_settled").await;
    let deposits = stage.deposits(&transfer).await;
    let hash = deposits[0]["transaction_hash"].as_str().expect("a hash");
    let page = viewer.page(&format!("/console/transfers/{}", id(&transfer))).await;
    let hash = hash.trim_start_matches("0x");
    let deposit_address = address(&transfer).to_string();
    for link in [
        format!("href=\"https://nile.tronscan.org/#/transaction/{hash}\""),
        format!("href=\"https://nile.tronscan.org/#/address/{deposit_address}\""),
    ] {
        // Opened apart, and told nothing of this page.
        let found = page.split("<a ").find(|anchor| anchor.contains(&link));
        let found = found.unwrap_or_else(|| panic!("no {link} in {page}"));
        assert!(found.contains("rel=\"noreferrer noopener\""), "{found}");
    }

    // A minute or more between any two heights.
    let seen = stage.followed_chain().seen.all().len();
    for round in 1..=3 {
        stage.mine(40).await;
        stage.followed().await;
        eventually("the height to be remembered", async || {
            (stage.followed_chain().seen.all().len() >= seen + round).then_some(())
        })
        .await;
    }
    let remembered = stage.followed_chain().seen.all();
    assert!(remembered.is_sorted_by(|a, b| a.at + 60 <= b.at && a.height < b.height));
    let page = viewer.page("/console?mode=test").await;
    let now = rows_of(&page, "Chain");
    assert!(now.len() == 1 && now[0].contains(&stage.height().to_string()), "{now:?}");
    assert!(now[0].contains("tron") && now[0].contains("Followed"), "{now:?}");
    let history = rows_of(&page, "Heights of tron in the last minutes");
    assert_eq!(history.len(), remembered.len().min(6), "{history:?}");
    let newest = remembered.last().unwrap().height.to_string();
    assert!(history[0].contains(&newest), "the newest first: {history:?}");
    assert!(!page.contains("HundiChainBehind") && !page.contains("#hundichainbehind"));

    // No block comes: the lag grows, shows, and is an alarm with its runbook.
    stage.advance_seconds(700);
    let count = remembered.len();
    eventually("the lag to be remembered", async || {
        (stage.followed_chain().seen.all().len() > count).then_some(())
    })
    .await;
    let page = viewer.page("/console?mode=test").await;
    let history = rows_of(&page, "Heights of tron in the last minutes");
    let behind = stage.followed_chain().seen.all().last().unwrap().behind_seconds;
    assert!(behind > 700 && history[0].contains(&format!("{} min", behind / 60)), "{history:?}");
    assert!(page.contains("docs/run.md#hundichainbehind"), "{page}");
    assert!(page.contains("href=\"/console/runbooks/HundiChainBehind\""), "{page}");
    let runbook = viewer.page("/console/runbooks/HundiChainBehind").await;
    assert!(runbook.contains("hundi_chain_behind_seconds"), "{runbook}");
}
