//! What the operator's console shows of a real chain: how far it is followed, with a small history,
//! and where anybody can look a transaction up.

use crate::anvil::Options;
use crate::callers::id;
use crate::refunds;
use crate::service::{Setup, Stage, address, eventually};
use crate::viewer::Viewer;
use crate::wire::nobody;

/// TRON's Nile test net, which has an explorer.
const NILE: u64 = 3_448_148_188;

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
    let viewer = Viewer::of(stage.app.state.clone()).await;
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
    // The payer's page leads there, too, and so does what it asks for while it is open.
    let link = transfer["funding"]["instructions_url"].as_str().unwrap();
    let path = &link[link.find("/pay/").unwrap()..];
    let state = stage.client.get(&format!("{path}/state")).await.ok();
    let explorer_url = format!("https://nile.tronscan.org/#/transaction/{hash}");
    assert_eq!(state["payments"][0]["explorer_url"], explorer_url);
    let payers_page = async |path: &str| {
        let accept = [("accept", "text/html"), ("authorization", "")];
        let page = stage.client.send(http::Method::GET, path, &accept, bytes::Bytes::new()).await;
        String::from_utf8(page.body.to_vec()).unwrap()
    };
    let page = payers_page(path).await;
    assert!(page.contains(&format!("href=\"{explorer_url}\" rel=\"noreferrer")), "{page}");

    // Where money went back, too.
    let to = nobody(77);
    let owed = refunds::excesses(&stage, &to.to_string(), 1).await.remove(0);
    let sent = stage.token.transfer(to, 5_000_000).await;
    refunds::mark_sent(&stage, &owed, &sent.plain()).await.unwrap();
    stage.settle().await;
    refunds::awaits(&stage, &owed, "completed").await;
    let of_refund = owed["transfer_id"].as_str().expect("a transfer");
    let page = viewer.page(&format!("/console/transfers/{of_refund}")).await;
    let link = format!("href=\"https://nile.tronscan.org/#/transaction/{}\"", sent.plain());
    assert!(page.contains(&link), "no {link} in {page}");
    let shown = stage.client.get(&format!("/v1/transfers/{of_refund}")).await.ok();
    let url = shown["funding"]["instructions_url"].as_str().unwrap();
    let path = &url[url.find("/pay/").unwrap()..];
    let page = payers_page(path).await;
    assert!(page.contains(&format!("{link} rel=\"noreferrer")), "no {link} in {page}");
    let state = stage.client.get(&format!("{path}/state")).await.ok();
    assert_eq!(state["refunds"][0]["text"], "5.00 USDT", "{state}");

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
