//! What a payment advice has said of the issuer and the bank stays said, whatever the settings
//! become.

use super::support::steps::{PATIENCE, six_steps};
use super::support::{Client, Home, until};
use serde_json::Value;

const SETTINGS: [(&str, &str, &str); 4] = [
    ("issuer", "HUNDI_ISSUER_NAME", "Example Payments Ltd"),
    ("issuer_address", "HUNDI_ISSUER_ADDRESS", "1 Example Street, Mumbai"),
    ("issuer_licence", "HUNDI_ISSUER_LICENCE", "Licence no. 12345"),
    ("sponsor_bank", "HUNDI_SPONSOR_BANK_NAME", "Example Bank, Mumbai"),
];

/// Pays, and answers the path of the advice with the document.
fn paid(client: &mut Client) -> (String, Value) {
    let settled = six_steps(client, "1000.00").settled;
    let payout = format!("/v1/payouts/{}", settled["payout_id"].as_str().expect("a payout"));
    until("the payment advice", PATIENCE, || {
        let seen = client.get(&payout).expect_success("the payout");
        (seen["payment_advice"]["status"] == "available").then_some(())
    });
    let path = format!("{payout}/payment_advice");
    let document = client.get(&path).expect_success("the payment advice");
    (path, document)
}

#[test]
fn advice_says_what_the_settings_were_when_it_was_paid() {
    // The address stays the same, because an advice says where it can be verified.
    let mut home = Home::new("cli-advices").with("HUNDI_PUBLIC_URL", "https://pay.example.com");
    for (_, variable, text) in SETTINGS {
        home.set(variable, text);
    }
    let server = home.start();
    let key = home.key();
    let (path, first) = paid(&mut server.client(&key));
    for (field, _, text) in SETTINGS {
        assert_eq!(first[field], text);
    }
    assert!(server.stop().success());

    for (_, variable, text) in SETTINGS {
        home.set(variable, &format!("Other {text}"));
    }
    let server = home.start();
    let mut client = server.client(&key);
    let again = client.get(&path).expect_success("the payment advice");
    assert_eq!(again, first, "a signed document of the past does not change");
    // The control: what is paid now has the new texts.
    let (_, second) = paid(&mut client);
    for (field, _, text) in SETTINGS {
        assert_eq!(second[field], format!("Other {text}"));
    }
    assert!(server.stop().success());
    home.check().expect_success("the check of the book");
}
