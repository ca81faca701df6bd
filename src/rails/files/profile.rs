//! The profile of a bank: how its files differ from the defaults, as data. It is the table
//! `[bank.profile]`, or a file of its own that `[bank] profile_file` names.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::characters::{Characters, Encoding};
use super::references::ReferenceElement;
use super::values::{AccountNumber, Day, MessageId};
use super::windows::{Calendar, Windows};
use crate::kernel::{Id, within};
use crate::rails::port::PaymentMethod;

crate::string_enum!(
    /// The versions of pain.001 that are written.
    Pain001 { V03 "pain.001.001.03", V09 "pain.001.001.09" }
);
crate::string_enum!(
    /// Who bears the charges: `ChrgBr`.
    ChargeBearer { Debtor "DEBT", Creditor "CRED", Shared "SHAR", ServiceLevel "SLEV" }
);

/// A value that ISO 20022 writes as a code (`Cd`) or as a text of the bank's own (`Prtry`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum CodeOrText {
    Code(String),
    Text(String),
}

impl CodeOrText {
    /// The name of the element (`Cd` or `Prtry`) and its contents.
    pub fn element(&self) -> (&'static str, &str) {
        match self {
            CodeOrText::Code(code) => ("Cd", code),
            CodeOrText::Text(text) => ("Prtry", text),
        }
    }
    fn checked(self, what: &str, code_max: usize) -> Result<CodeOrText, String> {
        let (text, max) = match &self {
            CodeOrText::Code(code) => (code, code_max),
            CodeOrText::Text(text) => (text, TEXT_MAX),
        };
        let is_plain = Characters::Neft.write(text) == *text;
        match (1..=max).contains(&text.len()) && is_plain {
            true => Ok(self),
            false => Err(format!(
                "[bank.profile] {what} must be a code of 1 to {code_max} or a text of 1 to \
                 {TEXT_MAX} characters that NEFT takes"
            )),
        }
    }
}

/// The most characters of a code of ISO 20022's lists, and of a text instead of a code.
const CODE_MAX: usize = 4;
const TEXT_MAX: usize = 35;
/// The most characters of a local instrument's code.
const INSTRUMENT_CODE_MAX: usize = 35;
/// The range of the setting `name_characters_maximum`, the most characters of a name in a payment
/// file. `NAME_MAX` also limits `remittance_text`.
const NAME_MIN: usize = 20;
const NAME_MAX: usize = 140;
/// The most characters of a payment file's name.
const FILE_NAME_MAX: usize = 120;
/// The most holidays that a profile lists.
const HOLIDAYS_MAX: usize = 1_000;

/// The placeholders that the pattern of a file's name can hold, beside a number. Days and times are
/// Indian ones.
const PLACEHOLDERS: &[&str] =
    &["{id}", "{customer_id}", "{date}", "{ddmm}", "{ddmmyy}", "{yymmdd}", "{time}"];
/// The placeholders that name the day.
const DAYS: &[&str] = &["{date}", "{ddmm}", "{ddmmyy}", "{yymmdd}"];
/// The most digits of a file's number, and the highest number.
const NUMBER_DIGITS_MAX: usize = 9;
const FILE_NUMBER_MAX: i64 = 999_999_999;

/// The running number in a file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileNumber {
    /// Whether it starts again each Indian day.
    is_daily: bool,
    digits: usize,
}

impl FileNumber {
    fn placeholder(self) -> String {
        format!("{{{}:{}}}", if self.is_daily { "daily" } else { "number" }, self.digits)
    }
    /// The highest number with this many digits.
    const fn max(self) -> i64 {
        10_i64.pow(self.digits as u32) - 1
    }
    /// The number in the pattern of a file's name; `None` if the pattern has none.
    fn of(pattern: &str) -> Option<FileNumber> {
        [true, false]
            .into_iter()
            .flat_map(|is_daily| {
                (1..=NUMBER_DIGITS_MAX).map(move |digits| FileNumber { is_daily, digits })
            })
            .find(|number| pattern.contains(&number.placeholder()))
    }
}

/// The table `[bank.profile]`, as it is written. `BankSettings` takes `initiating_party` and the
/// two `batch_…_maximum` from it; the rest becomes [`BankProfile`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileTable {
    pub pain_001: Option<String>,
    pub initiating_party: Option<String>,
    pub customer_id: Option<String>,
    pub customer_id_scheme: Option<CodeOrText>,
    pub file_name: Option<String>,
    pub file_number_first: Option<u32>,
    pub encoding: Option<String>,
    pub characters: Option<String>,
    pub name_characters_maximum: Option<usize>,
    pub account_type: Option<CodeOrText>,
    pub charge_bearer: Option<String>,
    pub batch_booking: Option<bool>,
    pub batch_instructions_maximum: Option<u32>,
    pub batch_amount_maximum: Option<String>,
    pub purposes: Option<BTreeMap<String, CodeOrText>>,
    pub regulatory_reporting: Option<bool>,
    pub remittance_text: Option<String>,
    pub reference_elements: Option<Vec<String>>,
    pub debit_account_masks: Option<Vec<AccountNumber>>,
    pub holidays: Option<Vec<String>>,
    pub closed_saturdays: Option<Vec<u8>>,
    pub neft: Option<MethodTable>,
    pub rtgs: Option<MethodTable>,
    pub internal: Option<MethodTable>,
}

/// A table such as `[bank.profile.neft]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodTable {
    pub service_level: Option<CodeOrText>,
    pub local_instrument: Option<CodeOrText>,
    pub windows: Option<Vec<String>>,
    pub open_on_holidays: Option<bool>,
}

/// How payments of one method are written, and when the bank accepts them.
#[derive(Clone, Debug)]
pub struct MethodProfile {
    pub service_level: CodeOrText,
    pub local_instrument: CodeOrText,
    pub windows: Windows,
}

/// How a bank's files differ from the defaults, with every value checked.
#[derive(Clone, Debug)]
pub struct BankProfile {
    /// The version of pain.001 that is written.
    pub pain_001: Pain001,
    /// The bank's name for its customer, in the header of a payment file.
    pub customer_id: Option<String>,
    pub customer_id_scheme: Option<CodeOrText>,
    /// The pattern of a payment file's name; `None` for the format's own.
    file_name: Option<String>,
    /// The lowest number that a file gets. If it is raised, the series goes on from there.
    pub file_number_first: i64,
    pub encoding: Encoding,
    pub characters: Characters,
    /// The most characters of a name in a payment file: 20 to 140.
    pub name_characters_max: usize,
    /// The kind of the debit account and of the beneficiary's.
    pub account_type: CodeOrText,
    pub charge_bearer: Option<ChargeBearer>,
    pub batch_booking: bool,
    /// How the bank writes purpose codes. A code that is missing here is written as a text
    /// (`Prtry`).
    purposes: BTreeMap<String, CodeOrText>,
    pub regulatory_reporting: bool,
    /// The text that tells the beneficiary's bank that the money came from abroad.
    pub remittance_text: String,
    /// The elements in which the bank writes the UTR, the most reliable first
    /// (`References::utr`).
    pub reference_elements: Vec<ReferenceElement>,
    /// Other ways in which the bank writes the debit account; `X`, `x`, `*` and `#` stand for any
    /// character.
    pub debit_account_masks: Vec<AccountNumber>,
    pub calendar: Calendar,
    neft: MethodProfile,
    rtgs: MethodProfile,
    internal: MethodProfile,
}

/// The characters of a mask that stand for any character.
pub const MASK_CHARACTERS: &[char] = &['X', 'x', '*', '#'];
/// The fewest characters that a mask has to show.
const MASK_SHOWN_MIN: usize = 3;

/// Whether a mask shows as many characters as it has to.
pub fn shows_enough(mask: &str) -> bool {
    mask.chars().filter(|character| !MASK_CHARACTERS.contains(character)).count() >= MASK_SHOWN_MIN
}

/// Reads a setting that is one word of a list, or takes `default` if it is missing. `Err` names the
/// setting and the list.
fn word<T>(
    what: &str,
    text: Option<&str>,
    default: T,
    parse: fn(&str) -> Option<T>,
    words: &[&str],
) -> Result<T, String> {
    let Some(text) = text else { return Ok(default) };
    parse(text).ok_or_else(|| format!("[bank.profile] {what} must be one of {}", words.join(", ")))
}

impl MethodProfile {
    fn read(method: PaymentMethod, table: Option<MethodTable>) -> Result<MethodProfile, String> {
        let name = method.as_str();
        let table = table.unwrap_or_default();
        // The service level says how a payment is settled: net (`URNS`), gross (`URGP`) or within
        // the bank (`BKTR`). The local instrument names the payment system.
        let (level, instrument) = match method {
            PaymentMethod::Neft => ("URNS", "NEFT"),
            PaymentMethod::Rtgs => ("URGP", "RTGS"),
            PaymentMethod::Internal => ("BKTR", "IFT"),
        };
        let level = table.service_level.unwrap_or_else(|| CodeOrText::Code(level.into()));
        let instrument =
            table.local_instrument.unwrap_or_else(|| CodeOrText::Text(instrument.into()));
        let windows = table.windows.unwrap_or_default();
        let windows = Windows::parse(&windows, table.open_on_holidays.unwrap_or(false))
            .map_err(|fault| format!("[bank.profile.{name}] windows: {fault}"))?;
        Ok(MethodProfile {
            service_level: level.checked(&format!("{name}.service_level"), CODE_MAX)?,
            local_instrument: instrument
                .checked(&format!("{name}.local_instrument"), INSTRUMENT_CODE_MAX)?,
            windows,
        })
    }
}

impl TryFrom<ProfileTable> for BankProfile {
    type Error = String;

    fn try_from(table: ProfileTable) -> Result<BankProfile, String> {
        let element = |word: &String| {
            ReferenceElement::parse(word).ok_or_else(|| {
                let words = ReferenceElement::WORDS.join(", ");
                format!("[bank.profile] reference_elements must be some of {words}")
            })
        };
        let reference_elements = table.reference_elements.unwrap_or_default();
        let masks = table.debit_account_masks.unwrap_or_default();
        if !masks.iter().all(|mask| shows_enough(mask.text())) {
            return Err(format!(
                "[bank.profile] debit_account_masks must show {MASK_SHOWN_MIN} characters or more"
            ));
        }
        let charge_bearer = match table.charge_bearer.as_deref() {
            Some("none") => None,
            text => Some(word(
                "charge_bearer",
                text,
                ChargeBearer::Debtor,
                ChargeBearer::parse,
                &["DEBT", "CRED", "SHAR", "SLEV", "none"],
            )?),
        };
        let mut purposes = BTreeMap::new();
        for (code, written) in table.purposes.unwrap_or_default() {
            let digits = code.strip_prefix(['P']).unwrap_or_default().as_bytes();
            if !matches!(digits, [b'0' | b'1', rest @ ..] if rest.len() == 3
                && rest.iter().all(u8::is_ascii_digit))
            {
                return Err(format!(
                    "[bank.profile] purposes: {code:?} is no purpose code: write one such as P1301"
                ));
            }
            purposes.insert(code, written.checked("purposes", CODE_MAX)?);
        }
        let account_type = table.account_type.unwrap_or_else(|| CodeOrText::Text("NRE".into()));
        let scheme = table.customer_id_scheme;
        let text = |what: &str, text: Option<String>| match text {
            Some(text)
                if !(1..=TEXT_MAX).contains(&text.len())
                    || Characters::Neft.write(&text) != text =>
            {
                Err(format!(
                    "[bank.profile] {what} must have 1 to {TEXT_MAX} characters that NEFT takes"
                ))
            }
            text => Ok(text),
        };
        let customer_id = text("customer_id", table.customer_id)?;
        let remittance_text = Characters::Neft
            .write(table.remittance_text.as_deref().unwrap_or("FOREIGN INWARD REMITTANCE"));
        if !(1..=NAME_MAX).contains(&remittance_text.len()) {
            return Err(format!(
                "[bank.profile] remittance_text must have 1 to {NAME_MAX} characters"
            ));
        }
        let characters = word(
            "characters",
            table.characters.as_deref(),
            Characters::Neft,
            Characters::parse,
            Characters::WORDS,
        )?;
        let encoding = word(
            "encoding",
            table.encoding.as_deref(),
            Encoding::Utf8,
            Encoding::parse,
            Encoding::WORDS,
        )?;
        if (encoding, characters) == (Encoding::Latin, Characters::Unicode) {
            return Err("[bank.profile] encoding iso-8859-1 does not have every character: set \
                        characters to \"latin\" or \"neft\""
                .into());
        }
        let file_name = table
            .file_name
            .map(|pattern| file_name_pattern(pattern, customer_id.as_deref()))
            .transpose()?;
        let number = file_name.as_deref().and_then(FileNumber::of);
        Ok(BankProfile {
            pain_001: word(
                "pain_001",
                table.pain_001.as_deref(),
                Pain001::V09,
                Pain001::parse,
                Pain001::WORDS,
            )?,
            file_name,
            file_number_first: within(
                "[bank.profile] file_number_first",
                i64::from(table.file_number_first.unwrap_or(1)),
                1,
                number.map_or(FILE_NUMBER_MAX, FileNumber::max),
            )?,
            encoding,
            customer_id,
            customer_id_scheme: scheme
                .map(|scheme| scheme.checked("customer_id_scheme", CODE_MAX))
                .transpose()?,
            characters,
            name_characters_max: within(
                "[bank.profile] name_characters_maximum",
                table.name_characters_maximum.unwrap_or(NAME_MAX),
                NAME_MIN,
                NAME_MAX,
            )?,
            account_type: account_type.checked("account_type", CODE_MAX)?,
            charge_bearer,
            batch_booking: table.batch_booking.unwrap_or(false),
            purposes,
            regulatory_reporting: table.regulatory_reporting.unwrap_or(true),
            remittance_text,
            reference_elements: reference_elements.iter().map(element).collect::<Result<_, _>>()?,
            debit_account_masks: masks,
            calendar: calendar(table.holidays, table.closed_saturdays)?,
            neft: MethodProfile::read(PaymentMethod::Neft, table.neft)?,
            rtgs: MethodProfile::read(PaymentMethod::Rtgs, table.rtgs)?,
            internal: MethodProfile::read(PaymentMethod::Internal, table.internal)?,
        })
    }
}

fn calendar(
    holidays: Option<Vec<String>>,
    closed_saturdays: Option<Vec<u8>>,
) -> Result<Calendar, String> {
    let holidays = holidays.unwrap_or_default();
    if holidays.len() > HOLIDAYS_MAX {
        return Err(format!("[bank.profile] holidays must be {HOLIDAYS_MAX} days or fewer"));
    }
    let day = |text: &String| {
        Day::parse(text).filter(|_| text.len() == 10).ok_or_else(|| {
            format!("[bank.profile] holidays: {text:?} is no day: write one such as 2027-01-26")
        })
    };
    let closed_saturdays = closed_saturdays.unwrap_or_default();
    if !closed_saturdays.iter().all(|which| (1..=5).contains(which)) {
        return Err("[bank.profile] closed_saturdays must be some of 1 to 5".into());
    }
    let holidays = holidays.iter().map(day).collect::<Result<_, _>>()?;
    Ok(Calendar { holidays, closed_saturdays })
}

/// Checks the pattern of a payment file's name. `{id}` or a running number must make each name
/// different; only a day without a year (`{ddmm}`) lets a name recur, in another year. From a name
/// with `{id}` and without a number, the file's identity can be read. A file with a number is found
/// in the journal by its name.
fn file_name_pattern(pattern: String, customer_id: Option<&str>) -> Result<String, String> {
    let mut rest = pattern.clone();
    for placeholder in PLACEHOLDERS {
        rest = rest.replace(placeholder, "");
    }
    let number = FileNumber::of(&pattern);
    if let Some(number) = number {
        rest = rest.replacen(&number.placeholder(), "", 1);
    }
    let is_unique = match (pattern.matches("{id}").count(), number) {
        (1, _) => true,
        (0, Some(number)) => !number.is_daily || DAYS.iter().any(|day| pattern.contains(day)),
        _ => false,
    };
    let is_plain = rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let customer_id = customer_id.unwrap_or_default();
    let has_customer_id = !pattern.contains("{customer_id}")
        || !customer_id.is_empty() && customer_id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    // The values of a placeholder all have the same length.
    let any_id = MessageId(Id::from_u128(0));
    let length = written_file_name(&pattern, customer_id, any_id, 0).len();
    if is_unique
        && is_plain
        && has_customer_id
        && !pattern.starts_with('.')
        && !pattern.ends_with(".part")
        && length <= FILE_NAME_MAX
    {
        return Ok(pattern);
    }
    Err(format!(
        "[bank.profile] file_name must hold {{id}} once, or one number: {{number:6}}, or \
         {{daily:3}} with a day such as {{date}}. It can also hold letters, digits, dots, dashes, \
         underscores and {}. It must not begin with a dot or end with .part. {{customer_id}} needs \
         a customer_id of letters and digits. The name has at most {FILE_NAME_MAX} characters",
        PLACEHOLDERS.join(", ")
    ))
}

/// A pattern with its placeholders replaced.
fn written_file_name(pattern: &str, customer_id: &str, id: MessageId, number: i64) -> String {
    let (date, time) = id.date_and_time();
    let part = |from, to| date.get(from..to).unwrap_or_default();
    let (year, month, day) = (part(2, 4), part(4, 6), part(6, 8));
    let mut name = pattern.to_owned();
    if let Some(kind) = FileNumber::of(pattern) {
        name = name.replace(&kind.placeholder(), &format!("{number:0width$}", width = kind.digits));
    }
    name.replace("{customer_id}", customer_id)
        .replace("{date}", &date)
        .replace("{ddmm}", &format!("{day}{month}"))
        .replace("{ddmmyy}", &format!("{day}{month}{year}"))
        .replace("{yymmdd}", &format!("{year}{month}{day}"))
        .replace("{time}", &time)
        .replace("{id}", &id.to_string())
}

impl BankProfile {
    /// Reads the file that `[bank] profile_file` names.
    pub fn read_file(path: &Path) -> Result<ProfileTable, String> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("[bank] profile_file {shown}: {error}"))?;
        toml::from_str(&text).map_err(|error| format!("[bank] profile_file {shown}: {error}"))
    }
    pub const fn method_profile(&self, method: PaymentMethod) -> &MethodProfile {
        match method {
            PaymentMethod::Neft => &self.neft,
            PaymentMethod::Rtgs => &self.rtgs,
            PaymentMethod::Internal => &self.internal,
        }
    }
    /// When the bank next accepts payments of a method; `None` if it accepts them at `instant`.
    /// Both moments are in Unix seconds.
    pub fn opens_at(&self, method: PaymentMethod, instant: i64) -> Option<i64> {
        self.method_profile(method).windows.opens_at(&self.calendar, instant)
    }
    /// How the bank writes a purpose code.
    pub fn purpose(&self, code: &str) -> CodeOrText {
        self.purposes.get(code).cloned().unwrap_or_else(|| CodeOrText::Text(code.to_owned()))
    }
    /// The series from which a file takes its number, and the highest number that the name has room
    /// for. `None` if the name has no number. The series is the Indian day of the file
    /// (`YYYYMMDD`), or "all".
    pub fn file_number_series(&self, id: MessageId) -> Option<(String, i64)> {
        let number = FileNumber::of(self.file_name.as_deref()?)?;
        let series = if number.is_daily { id.date_and_time().0 } else { "all".into() };
        Some((series, number.max()))
    }
    /// The name of a payment file. `parts` are the beginning and the end of a name for which the
    /// profile has no pattern.
    pub fn file_name(&self, id: MessageId, number: i64, parts: (&str, &str)) -> String {
        let Some(pattern) = &self.file_name else { return format!("{}{id}{}", parts.0, parts.1) };
        written_file_name(pattern, self.customer_id.as_deref().unwrap_or_default(), id, number)
    }
    /// The file's identity, from a name that [`BankProfile::file_name`] made. `None` if the name
    /// has no identity, or has a running number.
    pub fn message_id(&self, name: &str, parts: (&str, &str)) -> Option<MessageId> {
        (0..name.len()).find_map(|at| {
            let id = MessageId::parse(name.get(at..at + MessageId::LENGTH)?)?;
            (self.file_name(id, 0, parts) == name).then_some(id)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<BankProfile, String> {
        toml::from_str::<ProfileTable>(text).map_err(|error| error.to_string())?.try_into()
    }

    #[test]
    fn a_file_is_named_by_its_pattern_and_recognised_by_its_name() {
        let parts = ("pain.001-", ".xml");
        let id = MessageId(Id::from_u128(u128::from(1_795_285_800_000_u64) << 80 | 7));
        let plain = read("").unwrap();
        assert_eq!(plain.file_name(id, 7, parts), format!("pain.001-{id}.xml"));
        assert_eq!(plain.file_number_series(id), None);
        let own = read(
            "customer_id = 'HUNDI01'\nfile_name = '{customer_id}_{date}_{ddmm}{time}-{id}.txt'",
        )
        .unwrap();
        assert_eq!(own.file_name(id, 7, parts), format!("HUNDI01_20261122_2211000000-{id}.txt"));
        // As banks name them: HDFC's ENet, a bank of the Emirates, a scheme of Europe's.
        for (pattern, first, wanted) in [
            ("{customer_id}{ddmm}.{daily:3}", 1, "HUNDI012211.007"),
            ("PAY{customer_id}{ddmmyy}{time}{number:5}.xml", 1, "PAYHUNDI0122112600000000007.xml"),
            ("S203SCT{customer_id}{yymmdd}{time}{daily:3}.I", 1, "S203SCTHUNDI01261122000000007.I"),
        ] {
            let text = format!("customer_id = 'HUNDI01'\nfile_name = '{pattern}'");
            let named = read(&text).unwrap();
            assert_eq!(
                (named.file_name(id, 7, parts).as_str(), named.file_number_first),
                (wanted, first)
            );
            let (series, number_max) = named.file_number_series(id).unwrap();
            let is_daily = pattern.contains("daily");
            assert_eq!(series, if is_daily { "20261122" } else { "all" });
            assert_eq!(number_max, if is_daily { 999 } else { 99_999 });
        }
        for pattern in [
            "{daily:3}.xml",
            "{date}.xml",
            "{number}.xml",
            "{number:0}.xml",
            "{number:10}.xml",
            "{number:3}{number:3}.xml",
            "{number:3}{daily:3}{date}.xml",
            "{id}{id}.xml",
        ] {
            let fault = read(&format!("file_name = '{pattern}'")).unwrap_err();
            assert!(fault.contains("file_name"), "{pattern}: {fault}");
        }
        for profile in [&plain, &own] {
            assert_eq!(profile.message_id(&profile.file_name(id, 0, parts), parts), Some(id));
            for name in ["pain.001.xml", "é", "", &format!("x{id}.xml"), &id.to_string()] {
                assert_eq!(profile.message_id(name, parts), None, "{name}");
            }
        }
    }

    #[test]
    fn a_value_outside_its_range_is_refused() {
        for (line, field) in [
            ("file_name = 'payments.xml'", "file_name"),
            ("file_name = '{id}{id}.xml'", "file_name"),
            ("file_name = '../{id}.xml'", "file_name"),
            ("file_name = '.{id}.xml'", "file_name"),
            ("file_name = '{id}.part'", "file_name"),
            ("file_name = '{customer_id}{id}.xml'", "file_name"),
            ("file_name = '{number}{id}.xml'", "file_name"),
            ("customer_id = ''", "customer_id"),
            ("customer_id = 'é'", "customer_id"),
            ("characters = 'ascii'", "characters"),
            ("encoding = 'ebcdic'", "encoding"),
            ("encoding = 'iso-8859-1'\ncharacters = 'unicode'", "encoding"),
            ("file_number_first = 0", "file_number_first"),
            ("file_name = '{number:3}'\nfile_number_first = 1000", "file_number_first"),
            ("file_name = '{date}{daily:2}'\nfile_number_first = 100", "file_number_first"),
            ("name_characters_maximum = 19", "name_characters_maximum"),
            ("name_characters_maximum = 141", "name_characters_maximum"),
            ("account_type = { code = 'NREXX' }", "account_type"),
            ("account_type = { text = '' }", "account_type"),
            ("account_type = { word = 'NRE' }", "account_type"),
            ("charge_bearer = 'OUR'", "charge_bearer"),
            ("purposes = { P9999 = { code = 'PC01' } }", "purposes"),
            ("purposes = { P1301 = { code = 'PC001' } }", "purposes"),
            ("remittance_text = ''", "remittance_text"),
            ("holidays = ['26-01-2027']", "holidays"),
            ("closed_saturdays = [0]", "closed_saturdays"),
            ("[neft]\nwindows = ['always']", "neft"),
            ("[rtgs]\nservice_level = { code = 'URGENT' }", "service_level"),
            ("[internal]\nlocal_instrument = { text = 'é' }", "local_instrument"),
            ("[imps]\nwindows = []", "imps"),
        ] {
            let refused = read(line).expect_err(line);
            assert!(refused.contains(field), "{line}: {refused}");
        }
        let edge = read("file_name = '{number:3}'\nfile_number_first = 999").unwrap();
        assert_eq!(edge.file_number_first, 999, "the highest number of three digits");
    }

    #[test]
    fn no_file_name_is_longer_than_the_maximum() {
        let customer = "A".repeat(TEXT_MAX);
        let id = MessageId(Id::from_u128(u128::from(1_795_285_800_000_u64) << 80 | 7));
        let mut counted = [0, 0];
        for times in 0..15 {
            for dashes in 0..FILE_NAME_MAX {
                let pattern = format!(
                    "{}{}{}{{id}}",
                    "{customer_id}".repeat(times % 5),
                    "{date}".repeat(times / 5 * 6),
                    "-".repeat(dashes)
                );
                let read = read(&format!("customer_id = '{customer}'\nfile_name = '{pattern}'"));
                counted[usize::from(read.is_ok())] += 1;
                if let Ok(profile) = read {
                    let name = profile.file_name(id, 1, ("", ""));
                    assert!(name.len() <= FILE_NAME_MAX, "{pattern}: {}", name.len());
                }
            }
        }
        assert!(counted.iter().all(|count| *count > 20), "{counted:?}");
    }

    #[test]
    fn a_method_waits_for_its_own_window() {
        let profile = read(
            "closed_saturdays = [3]\n[neft]\nwindows = ['mon-sat 08:00-19:00']\n[rtgs]\n\
             open_on_holidays = true",
        )
        .unwrap();
        // 2026-11-21, a third Saturday, at noon in India.
        let noon = 1_795_242_600;
        assert_eq!(profile.opens_at(PaymentMethod::Rtgs, noon), None);
        let sunday = Day::parse("2026-11-22").unwrap();
        assert_eq!(profile.opens_at(PaymentMethod::Internal, noon), Some(sunday.begins_at()));
        let monday = sunday.plus_days(1);
        assert_eq!(
            profile.opens_at(PaymentMethod::Neft, noon),
            Some(monday.begins_at() + 8 * 3_600)
        );
    }
}
