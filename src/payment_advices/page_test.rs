use proptest::prelude::*;

use super::super::layout::TRIALS;
use super::super::signing::AdviceSignature;
use super::super::{
    AdviceBeneficiary, AdviceDeposit, AdviceGst, AdviceMilestone, AdviceSender, AdviceWord,
    Milestone, STATEMENT, STATEMENT_RETURNED,
};
use super::*;
use crate::issuers::{Logo, png_for_test};
use crate::kernel::{Currency, Id, Money, Rate, rupees};
use crate::rails::PaymentMethod;
use crate::senders::Address;

fn sample() -> Advice {
    let amount = Money::new(8_763_547, Currency::Inr);
    Advice {
        object: AdviceWord::PaymentAdvice,
        advice_number: "PA-01JDK3Y5M8Q2X7N4V6T9R0ABCD".into(),
        issuer: "Example Payments Ltd".into(),
        issuer_address: Some("1 Example Street, Mumbai 400001, India".into()),
        issuer_licence: Some("Licensed by Example Authority, no. 12345".into()),
        colour: crate::issuers::Colour::parse("#0b57d0"),
        logo: None,
        issued_at: Some(1_790_000_200),
        payout_id: Id::from_u128(7),
        transfer_id: Id::from_u128(9),
        status: PayoutStatus::Settled,
        unique_transaction_reference: Some("HDFCR52026092112345678".into()),
        method: PaymentMethod::Rtgs,
        settled_at: Some(1_790_000_000),
        returned_at: None,
        milestones: [
            (Milestone::RateLocked, 1_789_999_000),
            (Milestone::Funded, 1_789_999_700),
            (Milestone::Instructed, 1_789_999_900),
            (Milestone::Settled, 1_790_000_000),
        ]
        .map(|(milestone, at)| AdviceMilestone { milestone, at })
        .to_vec(),
        sender: AdviceSender {
            name: "Ravi Rao".into(),
            country: "AE".into(),
            address: Some(Address {
                line1: "Flat 1203, Marina Heights Tower, Al Marsa Street".into(),
                city: "Dubai".into(),
                state: None,
                postal_code: Some("00000".into()),
                country: "AE".into(),
            }),
        },
        beneficiary: AdviceBeneficiary {
            name: "श्रीमती आशा क्षेत्रपाल राव".into(),
            account_number_last4: "5678".into(),
            account_type: "nre",
            ifsc: "HDFC0000001".into(),
            bank_name: Some("HDFC Bank".into()),
            branch_name: Some("Tulsiani Chambers, Nariman Point, Mumbai".into()),
        },
        purpose_code: "P1301".into(),
        purpose: super::super::purpose_text(crate::transfers::PurposeCode::P1301),
        amount_sent: Money::new(100_000, Currency::Usd),
        amount_sent_currency: Currency::Usd,
        fee: Money::new(879, Currency::Usd),
        rate: Rate(88_412_500),
        rate_locked_at: Some(1_789_999_000),
        amount_gross: Money::new(8_841_250, Currency::Inr),
        amount_fee: Money::new(8_841_250 - 8_763_547, Currency::Inr),
        gst: None,
        amount,
        currency: Currency::Inr,
        amount_in_words: rupees::in_words(amount),
        deposits: vec![AdviceDeposit {
            transaction_hash: "5f1c".repeat(16),
            chain: "tron".into(),
            asset: "USDT".into(),
            amount: Money::new(1_000_000_000, Currency::Usdt),
            explorer_url: Some(format!("https://tronscan.org/#/transaction/{}", "5f1c".repeat(16))),
        }],
        deposits_count: 1,
        sponsor_bank: Some("Example Bank, Mumbai".into()),
        debited_account_last4: None,
        statement: STATEMENT,
        verification_url: format!(
            "https://pay.example.com/verify/{}.{}",
            Id::<crate::kernel::id::kind::Payout>::from_u128(7),
            "ab".repeat(16)
        ),
        key_set_url: "https://pay.example.com/.well-known/hundi-advice-keys.json".into(),
        livemode: true,
        signature: AdviceSignature::default(),
    }
}

/// The sample with a logo of one colour that nothing else on the page has.
fn with_logo(width: u32, height: u32) -> Advice {
    let mut advice = sample();
    advice.logo = Logo::of_png(png_for_test(width, height, [200, 0, 200, 255]));
    assert!(advice.logo.is_some());
    advice
}

/// An advice whose values have the greatest permitted length and consist of wide letters.
fn longest() -> Advice {
    let mut advice = sample();
    advice.issuer = "W".repeat(100);
    advice.logo = with_logo(1024, 1024).logo;
    advice.issuer_address = Some("W".repeat(100));
    advice.issuer_licence = Some("W ".repeat(50));
    advice.milestones.push(AdviceMilestone { milestone: Milestone::Returned, at: 1_790_009_000 });
    advice.sponsor_bank = Some("W".repeat(100));
    advice.sender.name = "W".repeat(140);
    advice.sender.address = Some(Address {
        line1: "ശ്രീ".repeat(50),
        city: "W".repeat(100),
        state: Some("W ".repeat(50)),
        postal_code: Some("W".repeat(20)),
        country: "AE".into(),
    });
    advice.beneficiary.name = "ക്ഷ്ര ".repeat(23);
    advice.beneficiary.bank_name = Some("W".repeat(200));
    advice.beneficiary.branch_name = Some("മ".repeat(300));
    advice.amount = Money::new(99_999_999_999_999, Currency::Inr);
    advice.amount_in_words = rupees::in_words(advice.amount);
    advice.deposits = vec![advice.deposits[0].clone(); 20];
    advice.deposits_count = 4_000;
    advice.status = PayoutStatus::Returned;
    advice.returned_at = Some(1_790_009_000);
    advice.statement = STATEMENT_RETURNED;
    advice.livemode = false;
    advice
}

fn pages(pdf: &[u8]) -> usize {
    let text = String::from_utf8_lossy(pdf);
    text.matches("/Type/Page/").count() + text.matches("/Type /Page\n").count()
}

#[test]
fn the_same_advice_gives_the_same_page() {
    for (name, advice) in [
        ("sample", sample()),
        ("logo", with_logo(640, 200)),
        ("square", with_logo(300, 300)),
        ("longest", longest()),
    ] {
        let pdf = advice.to_pdf().unwrap();
        assert!(pdf.starts_with(b"%PDF-1.7") && pdf.trim_ascii_end().ends_with(b"%%EOF"));
        assert_eq!(advice.to_pdf().unwrap(), pdf, "{name}");
        assert_eq!(pages(&pdf), 1, "{name}");
        assert!(pdf.len() < 96 * 1024, "{name} has {} bytes", pdf.len());
        if let Ok(folder) = std::env::var("HUNDI_TEST_PAGES") {
            std::fs::write(format!("{folder}/{name}.pdf"), &pdf).unwrap();
        }
    }
    let mut other = sample();
    other.amount.units += 1;
    assert_ne!(other.to_pdf().unwrap(), sample().to_pdf().unwrap());
}

#[test]
fn long_values_make_the_table_smaller_and_then_lose_lines() {
    // `page::write` asserts that the page itself has room for the table.
    let space = 480.0;
    let long = TableLayout::fitting(&sections(&longest()), space).unwrap();
    assert!(long.height <= space && long.size < TRIALS[0].0, "{} at {}", long.height, long.size);
    assert_eq!(TableLayout::fitting(&sections(&sample()), space).unwrap().size, TRIALS[0].0);
}

/// The output of a program of poppler-utils that reads the page.
fn made_by(program: &str, options: &[&str], pdf: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut child = std::process::Command::new(program)
        .args(options)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{program} of poppler-utils: {error}"));
    let mut input = child.stdin.take().unwrap();
    input.write_all(pdf).unwrap();
    drop(input);
    child.wait_with_output().unwrap().stdout
}

fn said_by(program: &str, options: &[&str], pdf: &[u8]) -> String {
    String::from_utf8(made_by(program, options, pdf)).unwrap()
}

/// Each word on the page with its right end in points, in the order of reading.
fn words_and_ends(pdf: &[u8]) -> Vec<(String, f32)> {
    let text = said_by("pdftotext", &["-bbox", "-", "-"], pdf);
    let word = |line: &str| {
        let (_, rest) = line.split_once("xMax=\"")?;
        let (end, rest) = rest.split_once('"')?;
        let (_, word) = rest.split_once('>')?;
        Some((word.strip_suffix("</word>")?.to_owned(), end.parse().ok()?))
    };
    text.lines().filter_map(word).collect()
}

/// Figures whose right end is more than a point away from that of the amount paid.
fn figures_out_of_line(advice: &Advice, words: &[(String, f32)]) -> Vec<String> {
    let end_of = |figure: &str| {
        let parts: Vec<&str> = figure.split(' ').collect();
        let found = words
            .windows(parts.len())
            .find(|window| window.iter().map(|(word, _)| word.as_str()).eq(parts.iter().copied()));
        found.unwrap_or_else(|| panic!("{figure} is not in {words:?}")).last().unwrap().1
    };
    let edge = end_of(&format!("₹ {}", grouped(advice.amount)));
    let figures = amounts(advice).into_iter().map(|row| row.figure);
    figures.filter(|figure| (end_of(figure) - edge).abs() > 1.0).collect()
}

#[test]
fn figures_are_aligned_to_the_right() {
    let mut taxed = sample();
    taxed.gst = Some(AdviceGst {
        taxable_value: Money::new(88_413, Currency::Inr),
        rate_percent: "18".into(),
        amount: Money::new(15_914, Currency::Inr),
    });
    for (advice, count) in [(sample(), 3), (taxed, 4), (longest(), 3)] {
        assert_eq!(amounts(&advice).len(), count);
        let mut words = words_and_ends(&advice.to_pdf().unwrap());
        assert_eq!(figures_out_of_line(&advice, &words), Vec::<String>::new());
        // A figure that ends a little further left is found.
        let gross = with_currency(advice.amount_gross);
        let last = gross.split(' ').next_back().unwrap();
        words.iter_mut().filter(|(word, _)| word == last).for_each(|(_, end)| *end -= 1.5);
        assert_eq!(figures_out_of_line(&advice, &words), [gross]);
    }
}

#[test]
fn page_leads_to_the_explorer_and_to_its_verification() {
    let links = |advice: &Advice| {
        let text = said_by("pdfinfo", &["-url", "-"], &advice.to_pdf().unwrap());
        let mut found: Vec<String> =
            text.lines().filter_map(|line| Some(line.split_once("http")?.1.to_owned())).collect();
        found.sort();
        found.into_iter().map(|rest| format!("http{rest}")).collect::<Vec<_>>()
    };
    let mut advice = sample();
    let explorer_url = advice.deposits[0].explorer_url.clone().unwrap();
    assert_eq!(links(&advice), [advice.verification_url.clone(), explorer_url]);
    // A simulated chain has no explorer.
    advice.deposits[0].explorer_url = None;
    assert_eq!(links(&advice), [advice.verification_url.clone()]);
}

/// Pixels of the page that a person sees as red.
fn red_pixels(pdf: &[u8]) -> usize {
    pixels(pdf, |pixel| pixel[0] > 140 && pixel[1] < 70 && pixel[2] < 70)
}

/// Pixels of the page as people see it, at 40 to the inch.
fn pixels(pdf: &[u8], counts: impl Fn(&[u8]) -> bool) -> usize {
    let image = made_by("pdftoppm", &["-r", "40", "-"], pdf);
    assert!(image.starts_with(b"P6"), "a colour image");
    image.rchunks_exact(3).filter(|pixel| counts(pixel)).count()
}

#[test]
fn logo_keeps_its_proportions() {
    let seen = |advice: &Advice| {
        let pdf = advice.to_pdf().unwrap();
        pixels(&pdf, |pixel| pixel[0] > 150 && pixel[1] < 60 && pixel[2] > 150)
    };
    assert_eq!(seen(&sample()), 0, "without a logo nothing has its colour");
    // 110 by 34 points, and 44 by 44.
    for (advice, width, height) in
        [(with_logo(640, 200), 110.0, 34.4), (with_logo(300, 300), 44.0, 44.0)]
    {
        let (count, wanted) = (seen(&advice) as f32, width * height * (40.0 / 72.0_f32).powi(2));
        assert!((count / wanted - 1.0).abs() < 0.15, "{count} pixels instead of {wanted}");
    }
}

#[test]
fn only_test_mode_is_marked_in_red() {
    let mut advice = sample();
    assert_eq!(red_pixels(&advice.to_pdf().unwrap()), 0, "a live page has no mark");
    advice.livemode = false;
    let marked = red_pixels(&advice.to_pdf().unwrap());
    assert!(marked > 1_500, "{marked} pixels of the notice");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_names_give_a_page(name in "\\PC{1,60}", sender in "\\PC{1,80}", reference in "[ \
     -~]{0,80}", is_returned in any::<bool>()) {
        let mut advice = sample();
        advice.beneficiary.name = name.clone();
        advice.sender.name = sender;
        advice.unique_transaction_reference = Some(reference);
        advice.issuer = name;
        advice.status = if is_returned { PayoutStatus::Returned } else {
            PayoutStatus::Settled };
        prop_assert_eq!(pages(&advice.to_pdf().unwrap()), 1);
    }
}
