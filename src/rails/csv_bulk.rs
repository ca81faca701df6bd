//! Banks whose portal takes bulk files. The operator uploads a CSV of payments to the portal, and
//! puts the bank's CSV of results into the inbox. Without a file of results, the operator records
//! what became of a payment with `hundi decide PAYOUT settle` or `fail`.
//!
//! A payment file has the columns of [`COLUMNS`]; in the portal, the operator maps them to the
//! portal's own. A file of results has a header that names its columns in any order:
//! `payment_reference`, `status` (`paid`, `failed`, `processing`), and, if the bank gives them,
//! `amount`, `utr`, `reason`. None of these may occur twice. Unknown columns are ignored. Portals
//! and spreadsheets write such files in UTF-8, UTF-16 or Windows-1252, with a comma, a semicolon, a
//! tab or a vertical bar between columns.

use sha2::{Digest, Sha256};

use crate::kernel::{StoreError, hex};
use crate::rails::files::encoding;
use crate::rails::files::format::{FileError, PaymentOrder};
use crate::rails::files::references::{ReferenceElement, References};
use crate::rails::files::reports::{
    Content, Incoming, PaymentStatus, REPORTS_MAX, Reason, ReportKind, ReportedStatus,
    StatusMeaning, StatusReport, Unread,
};
use crate::rails::files::settings::{BankSettings, FileFormat};
use crate::rails::files::values::{Day, EndToEndId, MessageId, inr};

/// The columns of a payment file, in their order.
pub const COLUMNS: &[&str] = &[
    "payment_reference",
    "method",
    "amount",
    "currency",
    "execution_date",
    "debit_account_number",
    "beneficiary_name",
    "beneficiary_account_number",
    "beneficiary_account_type",
    "beneficiary_ifsc",
    "purpose_code",
    "remitter_name",
    "remitter_town",
    "remitter_country",
    "remarks",
];
/// The most bytes of a file of results, once it is unpacked and in UTF-8.
const RESULTS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The possible separators between the columns of a file of results.
const DELIMITERS: &[u8] = b",;\t|";
/// Characters with which a spreadsheet begins a formula.
const FORMULA_STARTS: &[char] = &['=', '+', '-', '@', '\t', '\r'];

/// The format `csv_bulk`.
pub struct CsvBulk;

impl FileFormat for CsvBulk {
    fn name(&self) -> &'static str {
        "csv_bulk"
    }
    fn file_name_parts(&self) -> (&'static str, &'static str) {
        ("payments-", ".csv")
    }

    fn write(
        &self,
        settings: &BankSettings,
        _: MessageId,
        created: i64,
        orders: &[PaymentOrder],
    ) -> Result<Vec<u8>, StoreError> {
        let day = Day::at(created)
            .ok_or_else(|| StoreError::Broken("the time is out of the calendar's range".into()))?
            .to_string();
        let failed = |error: csv::Error| StoreError::Broken(format!("the payment file: {error}"));
        let mut writer =
            csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
        writer.write_record(COLUMNS).map_err(failed)?;
        for order in orders {
            let record = [
                order.end_to_end_id.to_string(),
                order.method.as_str().to_uppercase(),
                order.amount.to_string(),
                order.amount.currency.as_str().to_owned(),
                day.clone(),
                settings.debit_account_number().to_owned(),
                plain(&settings.written_name(&order.beneficiary_name)),
                order.account_number.clone(),
                "NRE".to_owned(),
                order.ifsc.clone(),
                order.purpose_code.clone(),
                plain(&settings.written_name(&order.sender.name)),
                plain(&settings.written_name(order.sender.town.as_deref().unwrap_or_default())),
                order.sender.country.clone(),
                plain(&settings.profile.remittance_text),
            ];
            writer.write_record(&record).map_err(failed)?;
        }
        let bytes = writer
            .into_inner()
            .map_err(|error| StoreError::Broken(format!("the payment file: {error}")))?;
        settings.encoded(&bytes)
    }

    fn read(&self, _: &BankSettings, bytes: &[u8]) -> Result<Incoming, FileError> {
        self.read_sample(bytes)
    }

    fn read_sample(&self, bytes: &[u8]) -> Result<Incoming, FileError> {
        let text = encoding::text_of_table(bytes)?;
        if text.len() > RESULTS_BYTES_MAX {
            return Err(FileError::new(format!(
                "the file is larger than {RESULTS_BYTES_MAX} bytes: have it split"
            )));
        }
        // A file without a final line break may be incomplete.
        if !text.ends_with('\n') {
            return Err(FileError::truncated());
        }
        read_results(&text, bytes)
    }
}

/// Rewrites a text so that it has no line breaks and no spreadsheet takes it for a formula.
fn plain(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    text.trim_start_matches(FORMULA_STARTS).to_owned()
}

/// The positions of the known columns.
struct Columns {
    payment_reference: usize,
    status: usize,
    amount: Option<usize>,
    utr: Option<usize>,
    reason: Option<usize>,
}

/// The separator of the columns: the one of `DELIMITERS` that occurs most often in the first line.
fn delimiter(text: &str) -> u8 {
    let head = text.lines().next().unwrap_or_default();
    let count = |delimiter: &u8| head.bytes().filter(|byte| byte == delimiter).count();
    DELIMITERS.iter().rev().max_by_key(|delimiter| count(delimiter)).copied().unwrap_or(b',')
}

fn read_results(text: &str, bytes: &[u8]) -> Result<Incoming, FileError> {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .trim(csv::Trim::All)
        .delimiter(delimiter(text))
        .from_reader(text.as_bytes());
    let head = reader.headers().map_err(|_| FileError::new("the file is no CSV"))?.clone();
    // Nobody can tell which of two columns the bank means.
    let index_of = |name: &str| {
        let is_named = |column: &(usize, &str)| column.1.eq_ignore_ascii_case(name);
        let mut indexes = head.iter().enumerate().filter(is_named).map(|(index, _)| index);
        match (indexes.next(), indexes.next()) {
            (index, None) => Ok(index),
            _ => Err(FileError::new(format!("the file has the column {name} twice"))),
        }
    };
    let required = |name: &str| {
        index_of(name)?.ok_or_else(|| FileError::new(format!("the file has no column {name}")))
    };
    let columns = Columns {
        payment_reference: required("payment_reference")?,
        status: required("status")?,
        amount: index_of("amount")?,
        utr: index_of("utr")?,
        reason: index_of("reason")?,
    };
    let mut report = StatusReport::default();
    let mut unread = Unread::default();
    let mut line = reader.position().line();
    for record in reader.records() {
        let at = match &record {
            Ok(record) => record.position(),
            Err(error) => error.position(),
        };
        line = at.map_or(line + 1, csv::Position::line);
        let place = format!("line {line}");
        if report.payments.len() + unread.count >= REPORTS_MAX {
            return Err(FileError::new(format!(
                "the file holds more than {REPORTS_MAX} lines: have it split"
            )));
        }
        let read = match record {
            Ok(record) => read_result(&record, &columns, &place),
            Err(_) => Err(FileError::new("it is no line of a CSV")),
        };
        match read {
            Ok(payment) => report.payments.push(payment),
            Err(refused) => unread.push(place, refused.reason),
        }
    }
    Ok(Incoming {
        kind: ReportKind::Status,
        // The file has no identity of its own, so the hash of its contents is used.
        message_id: hex::encode(&Sha256::digest(bytes)[..16]),
        page: 1,
        is_copy: false,
        content: Content::Statuses(report),
        unread,
    })
}

fn read_result(
    record: &csv::StringRecord,
    columns: &Columns,
    place: &str,
) -> Result<PaymentStatus, FileError> {
    let cell = |at: Option<usize>| at.and_then(|at| record.get(at)).filter(|text| !text.is_empty());
    let meaning = match cell(Some(columns.status)).unwrap_or_default().to_lowercase().as_str() {
        "paid" => StatusMeaning::Paid,
        "failed" => StatusMeaning::Refused,
        "processing" => StatusMeaning::Processing,
        _ => return Err(FileError::new("status is not paid, failed or processing")),
    };
    let end_to_end_id = cell(Some(columns.payment_reference)).and_then(EndToEndId::parse);
    let amount = match cell(columns.amount) {
        None => None,
        Some(text) => {
            Some(inr(text).ok_or_else(|| FileError::new("amount is not an amount in INR"))?)
        }
    };
    let mut references = References::new();
    if let Some(utr) = cell(columns.utr) {
        references.add(ReferenceElement::Utr, utr);
    }
    // A text of at most four bytes counts as a code; anything else is text for the operator.
    let mut reason = Reason::default();
    match cell(columns.reason) {
        Some(code) if code.len() <= 4 => reason.code = Some(code.to_owned()),
        Some(text) => reason.set_text(text),
        None => {}
    }
    let status = ReportedStatus { meaning: Some(meaning), reason };
    Ok(PaymentStatus { end_to_end_id, status, amount, references, place: place.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Currency, Id, Money};
    use crate::rails::files::format::Remitter;
    use crate::rails::port::PaymentMethod;

    fn settings() -> BankSettings {
        let text = "folder = 'bank'\nformat = 'csv_bulk'\ndebit_account_name = 'Hundi'\n\
                    debit_account_number = '00112233445566'\ndebit_account_ifsc = 'HDFC0000240'\n\
                    [profile]\nremittance_text = '+91 FOREIGN INWARD REMITTANCE'\n";
        toml::from_str::<crate::rails::files::settings::BankTable>(text)
            .unwrap()
            .try_into()
            .unwrap()
    }

    fn read(text: &str) -> Result<Incoming, FileError> {
        CsvBulk.read(&settings(), text.as_bytes())
    }

    #[test]
    fn a_payment_file_holds_what_the_portal_needs_and_no_formula() {
        let order = PaymentOrder {
            end_to_end_id: EndToEndId::of(Id::from_u128(7)),
            amount: Money::new(884_125, Currency::Inr),
            method: PaymentMethod::Neft,
            purpose_code: "P1301".into(),
            sender: Remitter {
                name: "=cmd|' /C calc'!A0".into(),
                country: "AE".into(),
                street: None,
                postal_code: None,
                town: Some("Dubai".into()),
                region: None,
                date_of_birth: None,
                identification: None,
            },
            beneficiary_name: "Rao, \"Asha\"\n".into(),
            account_number: "50100012345678".into(),
            ifsc: "HDFC0000001".into(),
        };
        let bytes = CsvBulk
            .write(&settings(), MessageId(Id::from_u128(1)), 1_795_285_799, &[order])
            .unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(lines[0], COLUMNS.join(","));
        assert_eq!(
            lines[1],
            "00000000000000000000000007,NEFT,8841.25,INR,2026-11-21,00112233445566,\"Rao, \
             Asha\",50100012345678,NRE,HDFC0000001,P1301,cmd ' /C calc' A0,Dubai,AE,91 \
             FOREIGN INWARD REMITTANCE"
        );
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn results_are_read_line_by_line() {
        let found = read(
            "\u{FEFF}Status,payment_reference,Branch,amount,UTR,reason\n\
             paid,00000000000000000000000007,x,8841.25,SBIN126166441955,\n\
             failed,00000000000000000000000008,x,,,AC04\n\
             FAILED,00000000000000000000000009,x,,,Account is dormant\n\
             maybe,0000000000000000000000000A,x,,,\n\
             paid,0000000000000000000000000B,x,1.001,,\n\
             processing,somebody else's,x,,,\n",
        )
        .unwrap();
        let Content::Statuses(report) = found.content else { panic!() };
        assert_eq!((report.payments.len(), found.unread.count), (4, 2));
        assert_eq!(found.unread.shown[0].0, "line 5");
        let [paid, failed, dormant, other] = &report.payments[..] else { panic!() };
        assert_eq!(paid.status.meaning, Some(StatusMeaning::Paid));
        assert_eq!(paid.amount.unwrap().units, 884_125);
        assert_eq!(paid.references.shown(), Some("SBIN126166441955"));
        assert_eq!(failed.status.reason.code.as_deref(), Some("AC04"));
        assert_eq!(dormant.status.reason.text.as_deref(), Some("Account is dormant"));
        assert_eq!(other.end_to_end_id, None);
    }

    #[test]
    fn an_unreadable_line_is_named_by_its_number_in_an_editor() {
        let found = read(
            "payment_reference,status,reason\n\
             00000000000000000000000007,failed,\"Account\nis dormant\"\n\
             00000000000000000000000008,perhaps,\n",
        )
        .unwrap();
        assert_eq!(found.unread.shown[0].0, "line 4");
    }

    #[test]
    fn results_are_read_as_portals_and_spreadsheets_write_them() {
        let text = "payment_reference,status,utr,reason\r\n\
                    00000000000000000000000007,paid,SBIN126166441955,José’s bank\r\n";
        let units = |text: &str| -> Vec<u16> { text.encode_utf16().collect() };
        let tabs = format!("\u{feff}{}", text.replace(',', "\t"));
        let windows = "Jos\u{e9}\u{92}s".chars().map(|letter| letter as u8).collect::<Vec<u8>>();
        let [before, after] = text.split("José’s").collect::<Vec<_>>()[..] else { panic!() };
        for bytes in [
            text.as_bytes().to_vec(),
            format!("\u{feff}{text}").into_bytes(),
            text.replace(',', ";").into_bytes(),
            text.replace(',', "|").into_bytes(),
            // What a spreadsheet calls "Unicode text".
            units(&tabs).iter().flat_map(|unit| unit.to_le_bytes()).collect(),
            units(text).iter().flat_map(|unit| unit.to_be_bytes()).collect(),
            [before.as_bytes(), &windows, after.as_bytes()].concat(),
        ] {
            let found = CsvBulk.read(&settings(), &bytes).unwrap();
            let Content::Statuses(report) = found.content else { panic!() };
            let [paid] = &report.payments[..] else { panic!() };
            assert_eq!(paid.references.shown(), Some("SBIN126166441955"));
            assert_eq!(paid.status.reason.text.as_deref(), Some("José’s bank"));
        }
    }

    #[test]
    fn a_file_with_a_column_twice_is_refused() {
        const ID: &str = "00000000000000000000000007";
        for (head, line) in [
            ("payment_reference,status,status", "paid,failed"),
            ("payment_reference,status,Status", "paid,failed"),
            ("payment_reference,status,UTR,utr", "paid,SBIN126166441955,SBIN126166441956"),
            ("payment_reference,status,amount,AMOUNT", "paid,1.00,2.00"),
        ] {
            let name = head.rsplit(',').next().unwrap();
            let refused = read(&format!("{head}\n{ID},{line}\n")).expect_err(head).reason;
            assert!(
                refused.contains(&name.to_lowercase()) && refused.contains("twice"),
                "{refused}"
            );
        }
        // Unknown columns may occur any number of times.
        let passed = format!("payment_reference,status,,,Branch,Branch\n{ID},paid,,,x,y\n");
        assert!(read(&passed).is_ok());
    }

    #[test]
    fn an_incomplete_or_too_large_file_is_refused() {
        assert!(read("status\npaid\n").unwrap_err().reason.contains("payment_reference"));
        assert!(read("payment_reference\nx\n").unwrap_err().reason.contains("status"));
        assert!(read("payment_reference,status\nx,pa").unwrap_err().is_truncated);
        assert!(CsvBulk.read(&settings(), b"\xFF\n").is_err());
        let long = format!("payment_reference,status\n{}", "x,paid\n".repeat(REPORTS_MAX + 1));
        assert!(read(&long).unwrap_err().reason.contains("split"));
        let large = format!("payment_reference,status\n{}\n", "x".repeat(RESULTS_BYTES_MAX));
        assert!(read(&large).unwrap_err().reason.contains("split"));
        let packed = encoding::packed(large.as_bytes(), 0, &[]);
        assert!(packed.len() < 100_000);
        assert!(CsvBulk.read(&settings(), &packed).unwrap_err().reason.contains("split"));
    }
}
