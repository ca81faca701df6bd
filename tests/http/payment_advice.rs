//! The payment advice as others get it: the page as text and pixels, the signature, its
//! verification offline, and the public pages.

use std::io::Write;
use std::process::{Command, Stdio};

use http::Method;
use hundi::kernel::Mode;
use hundi::payment_advices::signing;
use hundi::test_helpers::clock::LAST_MOMENT;
use serde_json::{Value, json};

use crate::stage::{self, Actor, DAY, STEP};
use crate::support::{Answer, LaneHold, Server, id};

/// Runs a tool of poppler-utils over a PDF and answers what it writes.
fn tool(name: &str, arguments: &[&str], pdf: &[u8]) -> Vec<u8> {
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child =
        command.spawn().unwrap_or_else(|error| panic!("{name} of poppler-utils: {error}"));
    let mut input = child.stdin.take().unwrap();
    input.write_all(pdf).unwrap();
    drop(input);
    child.wait_with_output().unwrap().stdout
}

/// The text of a page, its white space as single spaces.
fn text_of(pdf: &[u8]) -> String {
    let text = String::from_utf8(tool("pdftotext", &["-enc", "UTF-8", "-", "-"], pdf)).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A settled payout between these two.
async fn settled(actor: &Actor, beneficiary: Value, sender: Value) -> Value {
    let created = actor.client.post("/v1/beneficiaries", beneficiary).await.ok();
    actor.advance(STEP).await;
    let mut body = actor.transfer_body(&id(&created), "1000.00", json!({})).await;
    let sender = actor.client.post("/v1/senders", sender).await.ok();
    body["sender_id"] = json!(id(&sender));
    let transfer = actor.client.post("/v1/transfers", body).await.ok();
    actor.pay(&transfer, "400.00").await;
    actor.pay(&transfer, "600.00").await;
    actor.advance(10 * STEP).await;
    let payout = actor.payout_of(&transfer).await;
    assert_eq!(payout["payment_advice"]["status"], "available");
    payout
}

fn beneficiary(name: &str) -> Value {
    json!({ "name": name, "account_number": "50100012345678", "ifsc": "HDFC0000001",
        "account_type": "nre" })
}

fn sender(name: &str) -> Value {
    let address = json!({ "line1": "Flat 1203, Marina Heights", "city": "Dubai",
        "postal_code": "00000", "country": "AE" });
    json!({ "name": name, "type": "individual", "country": "AE", "address": address })
}

async fn pdf_of(actor: &Actor, payout: &Value) -> Answer {
    let path = format!("/v1/payouts/{}/payment_advice", id(payout));
    let answer = actor
        .client
        .send(Method::GET, &path, &[("accept", "application/pdf")], bytes::Bytes::new())
        .await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/pdf")));
    answer
}

async fn json_of(actor: &Actor, payout: &Value) -> Answer {
    actor.client.get(&format!("/v1/payouts/{}/payment_advice", id(payout))).await
}

/// The path of an address on the server.
fn path_of(url: &Value) -> String {
    url.as_str().unwrap().splitn(4, '/').nth(3).map(|rest| format!("/{rest}")).unwrap()
}

async fn server() -> Server {
    stage::server_with(&[
        ("HUNDI_FEE", "9.00"),
        ("HUNDI_ISSUER_NAME", "Example Payments Ltd"),
        ("HUNDI_ISSUER_ADDRESS", "1 Example Street, Mumbai"),
        ("HUNDI_ISSUER_LICENCE", "Licence no. 12345"),
        ("HUNDI_SPONSOR_BANK_NAME", "Example Bank, Mumbai"),
        ("HUNDI_PUBLIC_URL", "https://pay.example.com"),
    ])
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_every_fact() {
    let server = server().await;
    let actor = Actor::new(&server, "default").await;
    let name = "श्रीमती आशा क्षेत्रपाल राव";
    let payout = settled(&actor, beneficiary(name), sender("Ravi O'Neill-Müller")).await;
    let document = json_of(&actor, &payout).await.ok();
    let answer = pdf_of(&actor, &payout).await;
    let text = text_of(&answer.body);
    let shown = |value: &Value| value.as_str().unwrap().to_owned();
    let mut facts = vec![
        "Payment advice".to_owned(),
        "Payment completed".into(),
        "not a FIRC or FIRA".into(),
        "TEST".into(),
        "Example Payments Ltd".into(),
        "1 Example Street, Mumbai".into(),
        "Licence no. 12345".into(),
        "You sent".into(),
        "Rate locked 21 September 2026".into(),
        "Funds received 21 September 2026".into(),
        "Sent to the bank 21 September 2026".into(),
        "Settled (value date) 21 September 2026".into(),
        "Paid through Example Bank, Mumbai".into(),
        "ask the beneficiary's bank or Example Bank, Mumbai".into(),
        shown(&document["advice_number"]),
        shown(&payout["unique_transaction_reference"]),
        "NEFT".into(),
        "IST".into(),
        "P1301 - Inward remittance from Indian non-residents towards family maintenance and \
         savings"
            .into(),
        "Ravi O'Neill-Müller".into(),
        "Flat 1203, Marina Heights, Dubai, 00000, United Arab Emirates".into(),
        name.into(),
        "NRE account ending in 5678".into(),
        "HDFC0000001".into(),
        "USD 1,000.00".into(),
        "88.412500 INR for 1 USD".into(),
        "INR 88,412.50".into(),
        "Fee (= USD 9.00)".into(),
        "– INR 795.72".into(),
        "₹ 87,616.78".into(),
        "Rupees Eighty-Seven Thousand Six Hundred Sixteen and Paise Seventy-Eight Only".into(),
        shown(&payout["transfer_id"]),
        id(&payout),
    ];
    let deposits = document["deposits"].as_array().unwrap();
    assert_eq!((deposits.len(), document["deposits_count"].as_i64()), (2, Some(2)));
    facts.extend(deposits.iter().map(|deposit| shown(&deposit["transaction_hash"])));
    for fact in facts {
        assert!(text.contains(&fact), "{fact:?} is not in {text}");
    }
    // Nothing stands there twice.
    let reference = shown(&payout["unique_transaction_reference"]);
    for once in ["87,616.78", "1,000.00", "88,412.50", "88.412500", "795.72", &reference, name] {
        assert_eq!(text.matches(once).count(), 1, "{once} in {text}");
    }
    // The address breaks between lines; nothing else does.
    assert!(text.replace(' ', "").contains(&shown(&document["verification_url"])), "{text}");
    assert!(!text.contains("50100012345678") && !text.contains('\u{FFFD}'), "{text}");
    for (name, value) in [
        ("status", json!("settled")),
        ("amount", json!("87616.78")),
        ("amount_gross", json!("88412.50")),
        ("amount_fee", json!("795.72")),
        ("fee", json!("9.00")),
        ("returned_at", Value::Null),
        ("issued_at", payout["payment_advice"]["available_at"].clone()),
        ("sponsor_bank", json!("Example Bank, Mumbai")),
        ("debited_account_last4", Value::Null),
    ] {
        assert_eq!(document[name], value, "{name}");
    }

    // The same payout gives the same bytes, in both forms.
    assert_eq!(pdf_of(&actor, &payout).await.body, answer.body);
    assert_eq!(json_of(&actor, &payout).await.ok(), document);

    // One page with ink on it, and white around it.
    let info = String::from_utf8(tool("pdfinfo", &["-"], &answer.body)).unwrap();
    for line in ["Pages:           1", "Tagged:          yes", "A4"] {
        assert!(info.contains(line), "{line:?} is not in {info}");
    }
    let fonts = String::from_utf8(tool("pdffonts", &["-"], &answer.body)).unwrap();
    let embedded: Vec<&str> = fonts.lines().skip(2).collect();
    assert!(
        embedded.len() == 3 && embedded.iter().all(|font| font.contains("yes yes yes")),
        "{fonts}"
    );
    let image = tool("pdftoppm", &["-r", "40", "-gray", "-"], &answer.body);
    let pixels = &image[image.len() - 331 * 468..];
    let dark = pixels.iter().filter(|pixel| **pixel < 128).count();
    assert!((2_000..40_000).contains(&dark), "{dark} dark pixels");
    assert!(pixels[..331 * 10].iter().all(|pixel| *pixel == 255), "the upper edge is white");
    // The rendered page, for whoever wants to look at it.
    if let Ok(folder) = std::env::var("HUNDI_TEST_PAGES") {
        std::fs::write(format!("{folder}/served.pdf"), &answer.body).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_any_script_and_of_any_length_give_a_page() {
    let server = server().await;
    let actor = Actor::new(&server, "default").await;
    let long = "Wilhelmina ".repeat(12);
    for (name, from, wanted, is_replaced) in [
        ("محمد علي", "Ravi 😀 Rao", vec!["Ravi \u{FFFD} Rao", "\u{FFFD}\u{FFFD}\u{FFFD}"], true),
        ("王小明", "தமிழ் செல்வி", vec!["தமிழ்"], true),
        ("సత్యనారాయణ", "Nguyễn Thị Đặng", vec!["Nguyễn Thị Đặng"], false),
        (long.trim(), &"x".repeat(140), vec!["Wilhelmina Wilhelmina"], false),
    ] {
        let mut remitter = sender(from);
        remitter["address"]["line1"] = json!("क्षि".repeat(50));
        let payout = settled(&actor, beneficiary(name), remitter).await;
        let answer = pdf_of(&actor, &payout).await;
        let text = text_of(&answer.body);
        for fact in wanted {
            assert!(text.contains(fact), "{fact:?} is not in {text}");
        }
        assert_eq!(text.contains("stands for a character"), is_replaced, "{text}");
        assert!(
            tool("pdfinfo", &["-"], &answer.body)
                .windows(18)
                .any(|part| part == b"Pages:           1")
        );
        let document = json_of(&actor, &payout).await.ok();
        assert_eq!(
            (document["beneficiary"]["name"].as_str(), document["sender"]["name"].as_str()),
            (Some(name), Some(from)),
            "JSON has it whole"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_signature_is_verified_offline_also_after_a_rotation() {
    let server = server().await;
    let actor = Actor::new(&server, "default").await;
    let payout = settled(&actor, beneficiary("Asha Rao"), sender("Ravi Rao")).await;
    let first = json_of(&actor, &payout).await;
    let set = actor.client.get("/.well-known/hundi-advice-keys.json").await;
    assert_eq!(set.header("content-type"), Some("application/jwk-set+json"));
    let keys = signing::read_key_set(&set.body).unwrap();
    assert_eq!(keys.iter().map(|key| key.mode).collect::<Vec<_>>(), [Mode::Test, Mode::Live]);
    assert_eq!(signing::verify(&first.json(), &keys).unwrap(), &keys[0]);
    assert!(
        set.json()["keys"].as_array().unwrap().iter().all(|key| key.get("d").is_none()),
        "no private key"
    );

    let file = |name: &str, bytes: &[u8]| {
        let path = server.folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let hundi = |arguments: &[&str]| {
        let output = server.binary(arguments).output().unwrap();
        let told = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        (output.status.code(), told)
    };
    let document = file("advice.json", &first.body);
    let saved = file("keys.json", &set.body);
    let (code, told) = hundi(&["advice", "verify", &document, "--keys", &saved]);
    assert!(code == Some(0) && told.starts_with("valid: PA-") && told.contains("TEST"), "{told}");

    let database = &server.database_url;
    let rotate = ["advice", "rotate-key", "--mode", "test", "--database", database];
    let by = ["--actor", "asha", "--reason", "the yearly change"];
    let (code, told) = hundi(&[&rotate[..], &by].concat());
    assert_eq!(code, Some(0), "{told}");
    let kept = server.app.state.store.write(|tx, _| {
        let subject = "advice key of test mode";
        Ok((
            hundi::decisions::rows::of_subject(tx, subject, 10)?,
            hundi::audit::rows::of_subject(tx, subject, 10)?,
        ))
    });
    let (decided, logged) = kept.await.unwrap();
    assert_eq!((decided.len(), logged.len()), (1, 1));
    assert_eq!(decided[0].decision, "rotate_advice_key");
    assert_eq!((decided[0].by.actor(), decided[0].by.reason()), ("asha", "the yearly change"));
    assert_eq!(logged[0].actor, "asha");
    let second = json_of(&actor, &payout).await;
    let (before, after) = (first.json(), second.json());
    assert_ne!(
        before["signature"]["key_id"], after["signature"]["key_id"],
        "the running server signs with the new key"
    );
    assert!(told.contains(after["signature"]["key_id"].as_str().unwrap()), "{told}");
    let set = actor.client.get("/.well-known/hundi-advice-keys.json").await;
    let all = signing::read_key_set(&set.body).unwrap();
    assert_eq!(all.len(), 3);
    assert!(
        signing::verify(&before, &all).is_ok() && signing::verify(&after, &all).is_ok(),
        "what the old key signed stays valid"
    );

    let renewed = file("renewed.json", &second.body);
    for (arguments, wanted) in [
        (vec!["advice", "verify", &document, "--database", database], 0),
        (vec!["advice", "verify", &renewed, "--database", database], 0),
        (vec!["advice", "verify", &renewed, "--keys", &saved], 1),
        (vec!["advice", "verify", &document, "--keys", &document], 1),
        (vec!["advice", "verify", "missing.json", "--keys", &saved], 1),
        (vec!["advice", "verify", &document, "--database", "sqlite:missing.db"], 1),
        (vec!["advice", "rotate-key", "--mode", "test", "--database", "sqlite:missing.db"], 1),
    ] {
        let (code, told) = hundi(&arguments);
        assert_eq!(code, Some(wanted), "{arguments:?}: {told}");
    }
    assert!(!server.folder.join("missing.db").exists());

    let text = String::from_utf8(first.body.to_vec()).unwrap();
    let pdf = pdf_of(&actor, &payout).await;
    for (altered, why) in [
        (text.replace("87616.78", "97616.78").into_bytes(), "altered"),
        (text.replace("\"Ed25519\"", "\"HS256\"").into_bytes(), "algorithm"),
        (text.replacen('{', "{\"amount\":\"1.00\",", 1).into_bytes(), "twice"),
        (text.replace("\"livemode\":false", "\"livemode\":true").into_bytes(), "other mode"),
        (
            text.replace(before["signature"]["key_id"].as_str().unwrap(), "unknown").into_bytes(),
            "not in the key set",
        ),
        (pdf.body.to_vec(), "PDF"),
        (b"no".to_vec(), "cannot be read"),
    ] {
        let (code, told) =
            hundi(&["advice", "verify", &file("altered.json", &altered), "--keys", &saved]);
        assert!(code == Some(1) && told.contains("invalid") && told.contains(why), "{why}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_kept_up_to_their_limit_and_stay_readable_as_one_file() {
    let server = server().await;
    let actor = Actor::new(&server, "default").await;
    let rotated = async |mode: Mode| {
        let services = server.app.state.services.clone();
        server
            .app
            .state
            .store
            .write(move |tx, now| Ok(signing::rotate(tx, now, &services.sealer, mode)?))
            .await
    };
    for mode in [Mode::Test, Mode::Live] {
        for _ in 1..signing::KEYS_COUNT_MAX {
            rotated(mode).await.unwrap();
        }
        assert!(format!("{:?}", rotated(mode).await.unwrap_err()).contains("64 keys"));
    }
    let set = actor.client.get("/.well-known/hundi-advice-keys.json").await;
    let keys = signing::read_key_set(&set.body).unwrap();
    assert_eq!(keys.len(), 2 * signing::KEYS_COUNT_MAX);
    assert!(set.body.len() < 64 * 1024, "{} bytes, and the command reads 64 KiB", set.body.len());
    let distinct: std::collections::BTreeSet<String> =
        keys.iter().map(|key| key.key_id()).collect();
    assert_eq!(distinct.len(), keys.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_advice_names_twenty_deposits_and_counts_the_rest() {
    let server = server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = actor.transfer(stage::SETTLES, json!({})).await;
    for _ in 0..21 {
        actor.pay(&transfer, "1.00").await;
    }
    actor.pay(&transfer, "979.00").await;
    actor.advance(10 * STEP).await;
    let payout = actor.payout_of(&transfer).await;
    // What arrives later belongs to no advice.
    actor.pay(&transfer, "5.00").await;
    actor.finalise().await;
    let document = json_of(&actor, &payout).await.ok();
    assert_eq!(
        (document["deposits"].as_array().unwrap().len(), document["deposits_count"].as_i64()),
        (20, Some(22))
    );
    let text = text_of(&pdf_of(&actor, &payout).await.body);
    assert!(text.contains("20 more; the JSON document lists them"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_verification_page_certifies_four_facts_and_nothing_more() {
    let server = server().await;
    let actor = Actor::new(&server, "default").await;
    let payout = settled(&actor, beneficiary("Asha Rao"), sender("Ravi Rao")).await;
    let document = json_of(&actor, &payout).await.ok();
    let path = path_of(&document["verification_url"]);
    let get = async |path: &str| {
        actor.client.send(Method::GET, path, &[("authorization", "")], bytes::Bytes::new()).await
    };
    let page = get(&path).await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    for fact in [
        "INR 87,616.78",
        "IST",
        payout["unique_transaction_reference"].as_str().unwrap(),
        "5678",
        "TEST",
    ] {
        assert!(text.contains(fact), "{fact:?} is not in {text}");
    }
    for more in [
        "Asha",
        "Ravi",
        "HDFC",
        "Dubai",
        &id(&payout),
        payout["transfer_id"].as_str().unwrap(),
        "50100012345678",
    ] {
        assert!(!text.contains(more), "{more:?} is in {text}");
    }
    let (id_part, mark) = path.rsplit_once('.').unwrap();
    let turned: String = mark.chars().rev().collect();
    for wrong in [
        format!("{id_part}.{turned}"),
        id_part.to_owned(),
        format!("{path}0"),
        "/verify/".into(),
        path.replace("payout_", "transfer_"),
    ] {
        assert_eq!(get(&wrong).await.error(404), "object_not_found", "{wrong}");
    }
    assert_eq!(actor.client.post(&path, json!({})).await.error(405), "request_method_invalid");
    assert!(text.contains(">Genuine</h1>"), "{text}");
    // A browser gets a page for a wrong link too, and neither page loads anything.
    let headers = [("authorization", ""), ("accept", "text/html,*/*;q=0.8")];
    let browse = async |path: &str| {
        actor.client.send(Method::GET, path, &headers, bytes::Bytes::new()).await
    };
    for (path, status, said) in
        [(path.clone(), 200, "Genuine"), (format!("{path}0"), 404, "do not rely on the document")]
    {
        let page = browse(&path).await;
        assert_eq!(
            (page.status, page.header("content-type")),
            (status, Some("text/html; charset=utf-8"))
        );
        let text = String::from_utf8(page.body.to_vec()).unwrap();
        assert!(text.contains(said) && !text.contains("object_not_found"), "{text}");
        assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
        assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    }

    // What came back is told, on the page and in both forms.
    actor
        .client
        .post(&format!("/v1/test_helpers/payouts/{}/return", id(&payout)), json!({}))
        .await
        .ok();
    let text = String::from_utf8(get(&path).await.body.to_vec()).unwrap();
    assert!(text.contains("sent the payment back"), "{text}");
    let document = json_of(&actor, &payout).await.ok();
    assert_eq!(
        (document["status"].as_str(), document["returned_at"].as_i64()),
        (Some("returned"), Some(actor.now()))
    );
    let text = text_of(&pdf_of(&actor, &payout).await.body);
    assert!(
        text.contains("Paid, and sent back by the beneficiary's bank")
            && text.contains("Sent back ")
            && !text.contains("Payment completed"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_written_beside_the_write_lane() {
    let server = server().await;
    let actor = Actor::new(&server, "default").await;
    let payout = settled(&actor, beneficiary("Asha Rao"), sender("Ravi Rao")).await;
    let hold = LaneHold::of(&server, &actor.client).await;
    let written =
        tokio::time::timeout(std::time::Duration::from_secs(10), pdf_of(&actor, &payout)).await;
    assert!(written.is_ok(), "the page waited for the lane");
    // The control: a write does wait.
    let blocked = tokio::time::timeout(
        std::time::Duration::from_millis(300),
        actor.client.twin().post("/v1/senders", sender("Ravi Rao")),
    )
    .await;
    assert!(blocked.is_err(), "the lane was not held");
    hold.let_go();
}

/// The test clock ends before the years that no document can write.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_day_of_a_test_clock_has_documents() {
    let server = server().await;
    let actor = Actor::new(&server, "default").await;
    actor.jump_to(&server, 1, LAST_MOMENT - DAY).await;
    let payout = settled(&actor, beneficiary("Asha Rao"), sender("Asha Rao")).await;
    assert!(text_of(&pdf_of(&actor, &payout).await.body).contains("9997"));
    json_of(&actor, &payout).await.ok();
    let beyond = json!({ "advance_seconds": DAY });
    assert_eq!(
        actor.client.post("/v1/test_helpers/clock", beyond).await.error(400),
        "parameter_range_invalid"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_with_a_letter_that_no_font_has_gets_the_note_too() {
    for (variable, value) in [
        ("HUNDI_ISSUER_NAME", "王 Payments"),
        ("HUNDI_ISSUER_ADDRESS", "1 王 Street"),
        ("HUNDI_ISSUER_LICENCE", "Licence 王"),
    ] {
        let server = stage::server_with(&[(variable, value)]).await;
        let actor = Actor::new(&server, "default").await;
        let payout = settled(&actor, beneficiary("Asha Rao"), sender("Ravi Rao")).await;
        let text = text_of(&pdf_of(&actor, &payout).await.body);
        assert!(text.contains('\u{FFFD}') && !text.contains('王'), "{text}");
        assert!(text.contains("stands for a character"), "{variable}: {text}");
    }
}
