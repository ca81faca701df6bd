//! What the console tells of a payment at the bank: the file that it went out in, what the bank
//! answered, word for word, and the line of the statement that shows it.

use hundi::kernel::rupees;
use hundi::rails::files::values::Day;
use serde_json::json;

use crate::bank::{Scene, now};
use crate::money::{Entry, UTR, debit, reason, refs, refusal, statement, status};
use crate::support::id;
use crate::viewer::Viewer;

/// The place of the first moment with these texts.
fn place(moments: &[String], texts: &[&str]) -> usize {
    let is_it = |moment: &String| texts.iter().all(|text| moment.contains(text));
    moments.iter().position(is_it).unwrap_or_else(|| panic!("no {texts:?} in {moments:#?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_story_has_the_banks_own_words() {
    let mut scene = Scene::new(Vec::new()).await;
    let viewer = Viewer::of(scene.server.app.state.clone()).await;
    let (transfer, payout_id, message) = scene.sent("100.00").await;
    let page = format!("/console/transfers/{}", id(&transfer));
    let moments = viewer.story(&page).await;
    let file = place(&moments, &["Bank", "With the bank", &message, "Payments"]);
    assert!(place(&moments, &["Rate locked"]) < file, "{moments:#?}");

    let text = "ACCOUNT IS CLOSED SINCE 2025";
    let refused = status("S1", &message, "", &refusal(payout_id, &reason("AC04", text)));
    scene.hear(&[refused]).await;
    let path = format!("/v1/transfers/{}", id(&transfer));
    scene.client.wait_until(&path, |found| found["refund"] != json!(null)).await;
    let moments = viewer.story(&page).await;
    let said = place(&moments, &["Payout", "Failed", "Account closed", "AC04: ACCOUNT IS CLOSED"]);
    assert!(place(&moments, &["Bank", &message]) < said, "{moments:#?}");
    assert!(said < place(&moments, &["Transfer", "Payout failed"]), "{moments:#?}");
    place(&moments, &["Refund"]);
    // The file that brought the reason has its name, its kind and the bank's words.
    let told = ["Bank", "Reason given", "S1", "Status report", "AC04: ACCOUNT IS CLOSED"];
    let brought = place(&moments, &told);
    assert!(place(&moments, &["Bank", &message]) < brought && brought < said, "{moments:#?}");
    // Another file that says the same does not take its place; one that says more does.
    scene.hear(&[status("S2", &message, "", &refusal(payout_id, &reason("AC04", text)))]).await;
    place(&viewer.story(&page).await, &told);
    let closed = reason("AC07", "CLOSED BY ITS HOLDER");
    scene.hear(&[status("S3", &message, "", &refusal(payout_id, &closed))]).await;
    let moments = viewer.story(&page).await;
    place(&moments, &["Bank", "Reason given", "S3", "AC07: CLOSED BY ITS HOLDER"]);
    assert!(!moments.iter().any(|moment| moment.contains("AC04")), "{moments:#?}");

    // Another one is paid: the bank's line and references show.
    let (transfer, payout_id, _) = scene.sent("100.00").await;
    let amount = scene.find(payout_id).await.amount;
    let line = [debit(amount, refs(payout_id, UTR))];
    scene.hear(&[statement("D1", "DAY-1", "", -amount.units, &line)]).await;
    let path = format!("/v1/transfers/{}", id(&transfer));
    scene.client.wait_status(&path, "payout_settled").await;
    let moments = viewer.story(&format!("/console/transfers/{}", id(&transfer))).await;
    let utr = "SBIN126166441955";
    let settled = place(&moments, &["Payout", "Settled", utr]);
    assert!(place(&moments, &["Bank", "With the bank"]) < settled, "{moments:#?}");
    place(&moments, &["Bank", "Debited", utr, "Booked on", "DAY-1"]);
}

/// The overview shows the files both ways, and a day's closing is held against its statement.
#[tokio::test(flavor = "multi_thread")]
async fn files_and_statements_are_shown_and_compared() {
    let mut scene = Scene::new(Vec::new()).await;
    let viewer = Viewer::of(scene.server.app.state.clone()).await;
    let empty = viewer.page("/console?mode=test").await;
    assert!(!empty.contains("Applied"), "{empty}");
    let (transfer, payout_id, message) = scene.sent("100.00").await;
    let amount = scene.find(payout_id).await.amount;
    let out = viewer.page_with("/console?mode=test", &message).await;
    let shown = row_of(&out, &message);
    assert!(shown.contains(&rupees::grouped(amount)), "{shown}");

    // Its day in India, as the book has it.
    let line = [debit(amount, refs(payout_id, UTR))];
    let day = Day::at(now()).unwrap().to_string();
    let on = |id: &str, closing: i64, lines: &[Entry<'_>]| {
        statement(id, id, "", closing, lines).replace("2026-11-21<", &format!("{day}<"))
    };
    scene.hear(&[on("DAY-1", -amount.units, &line)]).await;
    let path = format!("/v1/transfers/{}", id(&transfer));
    scene.client.wait_status(&path, "payout_settled").await;
    let received = viewer.page_with("/console?mode=test", "DAY-1").await;
    let file = row_of(&received, "DAY-1");
    assert!(file.contains("Statement") && file.contains("Applied"), "{file}");
    assert!(received.contains(&day), "the closed day: {received}");

    let report = format!("/console/reports?mode=test&day={day}");
    let page = viewer.page(&report).await;
    let row = row_of(&page, "Paid out by the bank");
    let figure = format!("₹\u{a0}{}", rupees::grouped(amount));
    assert!(row.contains("Agrees") && row.matches(&figure).count() == 2, "{row}");
    // Live mode has another bank, which has said nothing.
    let live = viewer.page(&format!("/console/reports?mode=live&day={day}")).await;
    assert!(row_of(&live, "Paid out by the bank").contains("not told yet"), "{live}");
    // A second line for it: the bank has paid more than the book knows of.
    let more = [debit(amount, refs(payout_id, "<ClrSysRef>AXISP00494478999</ClrSysRef>"))];
    scene.hear(&[on("DAY-2", -amount.units, &more)]).await;
    let page = viewer.page(&report).await;
    let row = row_of(&page, "Paid out by the bank");
    let both = rupees::grouped(amount.plus(amount).unwrap());
    assert!(!row.contains("Agrees") && row.contains(&both), "{row}");
}

/// The row of a table that names something.
fn row_of(page: &str, text: &str) -> String {
    let row = page.split("<tr").find(|row| row.contains(text));
    row.unwrap_or_else(|| panic!("no {text} in {page}")).to_owned()
}
