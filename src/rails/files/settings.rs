//! The operator's settings of a bank that exchanges files, checked when the configuration is read.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::format::{FileError, PaymentOrder};
use super::profile::{BankProfile, MASK_CHARACTERS, ProfileTable};
use super::reports::Incoming;
use super::values::{AccountNumber, MessageId};
use crate::ifsc::is_ifsc;
use crate::kernel::{Currency, Money, StoreError, within};
use crate::rails::port::BANK_CODE_LENGTH;

/// The default and the highest value of `batch_instructions_maximum`.
const BATCH_INSTRUCTIONS_DEFAULT: u32 = 100;
const BATCH_INSTRUCTIONS_MAX: u32 = 1_000;
/// The default of `batch_amount_maximum`: INR 100 million (10 crore).
const BATCH_AMOUNT_DEFAULT: Money = Money::new(10_000_000_000, Currency::Inr);
const POLL_SECONDS_DEFAULT: u64 = 30;
const UNANSWERED_HOURS_DEFAULT: i64 = 24;

/// A file format: it writes payments for a bank, and reads the bank's files.
pub trait FileFormat: Send + Sync {
    /// The name in `[bank] format`.
    fn name(&self) -> &'static str;
    /// The beginning and the end of a payment file's name, with the file's identity between them,
    /// unless `[bank.profile] file_name` gives another pattern.
    fn file_name_parts(&self) -> (&'static str, &'static str);
    /// A whole payment file. The same arguments give the same bytes. `created` is in Unix seconds;
    /// the bank is to make the payments on the Indian day of `created`.
    fn write(
        &self,
        settings: &BankSettings,
        message_id: MessageId,
        created: i64,
        orders: &[PaymentOrder],
    ) -> Result<Vec<u8>, StoreError>;
    /// Reads a file from the bank. `Err` refuses the whole file. A part that cannot be read is
    /// listed in the answer, and the rest counts.
    fn read(&self, settings: &BankSettings, bytes: &[u8]) -> Result<Incoming, FileError>;
    /// Reads a sample file, whatever account it is about. Errors as for [`FileFormat::read`].
    fn read_sample(&self, bytes: &[u8]) -> Result<Incoming, FileError>;
}

/// A format as the settings hold it. `Debug` shows its name.
#[derive(Clone, Copy)]
pub struct FileFormatRef(pub &'static dyn FileFormat);

impl std::fmt::Debug for FileFormatRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

/// The table `[bank]` of the configuration file, as it is written there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BankTable {
    pub folder: PathBuf,
    pub debit_account_name: String,
    pub debit_account_number: AccountNumber,
    pub debit_account_ifsc: String,
    pub debit_account_town: Option<String>,
    pub debit_account_country: Option<String>,
    pub initiating_party: Option<String>,
    pub supports_nre: Option<bool>,
    pub batch_instructions_maximum: Option<u32>,
    pub batch_amount_maximum: Option<String>,
    pub poll_seconds: Option<u64>,
    pub unanswered_hours: Option<i64>,
    pub format: Option<String>,
    pub profile: Option<ProfileTable>,
    pub profile_file: Option<PathBuf>,
}

/// The settings after the check, with each value in its range. `Debug` does not show the account
/// number.
#[derive(Clone, Debug)]
pub struct BankSettings {
    /// Holds `outbox`, `inbox`, `archive`, `refused` and `staging`, on one file system.
    pub folder: PathBuf,
    /// The debit account as the sponsor bank holds it: its owner's name, 1 to 140 characters.
    pub debit_account_name: String,
    /// 5 to 20 letters and digits.
    debit_account_number: AccountNumber,
    pub debit_account_ifsc: String,
    /// The town of the account's owner, and the country by ISO 3166-1 alpha-2.
    pub debit_account_place: Option<(String, String)>,
    /// Who sends the files, 1 to 140 characters. By default this is the account's owner.
    pub initiating_party: String,
    /// Whether the sponsor bank has marked the debit account for foreign inward remittance. Without
    /// the mark, a beneficiary's bank sends back what is paid into an NRE account, so transfers are
    /// refused.
    pub supports_nre: bool,
    /// The most instructions in one file: 1 to 1 000.
    pub batch_instructions_max: usize,
    /// The highest total of one file in INR. A larger payment gets a file of its own.
    pub batch_amount_max: Money,
    /// How long to wait before the folders are looked at again: 1 to 3 600 s.
    pub poll: Duration,
    /// Hours without a final report of the bank after which the operator has to decide about a
    /// payment: 1 to 720.
    pub unanswered_hours_max: i64,
    /// How files are written and read.
    pub format: FileFormatRef,
    pub profile: BankProfile,
}

fn name(what: &str, text: &str) -> Result<String, String> {
    let text = text.trim();
    let is_plain = (1..=140).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    if is_plain {
        Ok(text.to_owned())
    } else {
        Err(format!("[bank] {what} must be a text of 1 to 140 characters"))
    }
}

impl BankSettings {
    /// Reads the table; `formats` are the ones that `format` can name, the default first.
    pub fn read(
        table: BankTable,
        formats: &'static [&'static dyn FileFormat],
    ) -> Result<BankSettings, String> {
        let is_wanted = |format: &&&'static dyn FileFormat| {
            table.format.as_deref().is_none_or(|name| name == format.name())
        };
        let profile = match (table.profile, &table.profile_file) {
            (Some(_), Some(_)) => {
                return Err("[bank] takes profile_file or a table [bank.profile], not both".into());
            }
            (None, Some(path)) => BankProfile::read_file(path)?,
            (profile, None) => profile.unwrap_or_default(),
        };
        let format =
            formats.iter().find(is_wanted).copied().map(FileFormatRef).ok_or_else(|| {
                let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
                format!("[bank] format must be one of {}", names.join(", "))
            })?;
        let debit_account_name = name("debit_account_name", &table.debit_account_name)?;
        let number = table.debit_account_number.text();
        if !(5..=20).contains(&number.len())
            || !number.bytes().all(|byte| byte.is_ascii_alphanumeric())
        {
            return Err("[bank] debit_account_number must have 5 to 20 letters or digits".into());
        }
        let debit_account_ifsc = table.debit_account_ifsc.trim().to_uppercase();
        if !is_ifsc(&debit_account_ifsc) {
            return Err(
                "[bank] debit_account_ifsc must be 4 letters, a zero, then 6 letters or digits"
                    .into(),
            );
        }
        // A value in [bank] replaces the profile's, even if it is higher.
        let batch_amount = table.batch_amount_maximum.or(profile.batch_amount_maximum.clone());
        let batch_amount_max = match &batch_amount {
            None => BATCH_AMOUNT_DEFAULT,
            Some(text) => {
                Money::parse(text, Currency::Inr).filter(|amount| amount.units > 0).ok_or(
                    "[bank] batch_amount_maximum must be an amount in INR such as 10000000.00",
                )?
            }
        };
        let batch = table.batch_instructions_maximum.or(profile.batch_instructions_maximum);
        let batch = batch.unwrap_or(BATCH_INSTRUCTIONS_DEFAULT);
        let party = table.initiating_party.as_ref().or(profile.initiating_party.as_ref());
        let initiating_party = match party {
            Some(text) => name("initiating_party", text)?,
            None => debit_account_name.clone(),
        };
        let is_country =
            |text: &String| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase());
        let debit_account_place = match (table.debit_account_town, table.debit_account_country) {
            (None, None) => None,
            (Some(town), Some(country)) if is_country(&country) => {
                Some((name("debit_account_town", &town)?, country))
            }
            _ => {
                return Err(
                    "[bank] debit_account_town and debit_account_country belong together; \
                            the country has two capital letters"
                        .into(),
                );
            }
        };
        if table.folder.as_os_str().is_empty() {
            return Err(
                "[bank] folder must name a folder for the files to and from the bank".into()
            );
        }
        Ok(BankSettings {
            format,
            profile: profile.try_into()?,
            folder: table.folder,
            initiating_party,
            debit_account_name,
            debit_account_place,
            debit_account_number: table.debit_account_number,
            debit_account_ifsc,
            supports_nre: table.supports_nre.unwrap_or(false),
            batch_instructions_max: within(
                "[bank] batch_instructions_maximum",
                batch,
                1,
                BATCH_INSTRUCTIONS_MAX,
            )? as usize,
            batch_amount_max,
            poll: Duration::from_secs(within(
                "[bank] poll_seconds",
                table.poll_seconds.unwrap_or(POLL_SECONDS_DEFAULT),
                1,
                3_600,
            )?),
            unanswered_hours_max: within(
                "[bank] unanswered_hours",
                table.unanswered_hours.unwrap_or(UNANSWERED_HOURS_DEFAULT),
                1,
                720,
            )?,
        })
    }
}

impl BankSettings {
    /// Whether a number in a file is the debit account's: it equals the configured number, or fits
    /// a mask of the profile. The comparison with the configured number ignores leading zeros, and
    /// all characters other than letters and digits.
    pub fn is_debit_account(&self, number: &str) -> bool {
        let plain = |text: &str| -> String {
            let text: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
            text.trim_start_matches('0').to_owned()
        };
        let own = plain(self.debit_account_number());
        if !own.is_empty() && plain(number) == own {
            return true;
        }
        self.profile.debit_account_masks.iter().any(|mask| {
            let mask: Vec<char> = mask.text().chars().collect();
            let number: Vec<char> = number.chars().collect();
            mask.len() == number.len()
                && mask
                    .iter()
                    .zip(&number)
                    .all(|(mask, found)| mask == found || MASK_CHARACTERS.contains(mask))
        })
    }
    /// The four letters that the IFSCs of the sponsor bank's branches begin with.
    pub fn bank_code(&self) -> &str {
        self.debit_account_ifsc.get(..BANK_CODE_LENGTH).unwrap_or_default()
    }
    /// The name of a payment file; `number` is its number in the series of
    /// [`BankProfile::file_number_series`].
    pub fn file_name(&self, id: MessageId, number: i64) -> String {
        self.profile.file_name(id, number, self.format.0.file_name_parts())
    }
    /// Turns a payment file from UTF-8 into the encoding that the bank reads. A character that the
    /// encoding lacks is [`StoreError::Broken`]. Names and texts have no such characters, because
    /// `characters` replaced them before.
    pub fn encoded(&self, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
        let encoded =
            std::str::from_utf8(bytes).ok().and_then(|text| self.profile.encoding.bytes(text));
        encoded.ok_or_else(|| {
            StoreError::Broken("the payment file has a character that its encoding lacks".into())
        })
    }
    /// A name as it is written into a payment file.
    pub fn written_name(&self, name: &str) -> String {
        self.profile.characters.write_short(name, self.profile.name_characters_max)
    }
    /// [`BankProfile::message_id`] of a payment file's name.
    pub fn message_id(&self, file_name: &str) -> Option<MessageId> {
        self.profile.message_id(file_name, self.format.0.file_name_parts())
    }
    pub fn debit_account_last4(&self) -> &str {
        let number = self.debit_account_number();
        number.get(number.len().saturating_sub(4)..).unwrap_or_default()
    }
    /// Use the number only in files for the bank, and to compare it with what comes from the bank.
    pub fn debit_account_number(&self) -> &str {
        self.debit_account_number.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rails::files::profile::Pain001;
    use crate::rails::files::references::ReferenceElement;

    const PLAIN: &str = "folder = 'bank'\ndebit_account_name = 'Hundi \
     Payments'\ndebit_account_number = '00112233445566'\ndebit_account_ifsc = 'hdfc0000240'\n";

    fn read(text: &str) -> Result<BankSettings, String> {
        toml::from_str::<BankTable>(text).map_err(|error| error.to_string())?.try_into()
    }

    #[test]
    fn missing_settings_have_defaults_and_nre_is_not_supported() {
        let settings = read(PLAIN).unwrap();
        assert!(!settings.supports_nre);
        assert_eq!(
            (settings.initiating_party.as_str(), settings.debit_account_ifsc.as_str()),
            ("Hundi Payments", "HDFC0000240")
        );
        assert_eq!(
            (
                settings.batch_instructions_max,
                settings.poll.as_secs(),
                settings.unanswered_hours_max
            ),
            (100, 30, 24)
        );
        assert_eq!(settings.batch_amount_max.to_string(), "100000000.00");
        assert!(
            !format!("{settings:?}").contains("00112233445566"),
            "the account number is not shown"
        );
    }

    #[test]
    fn the_debit_account_is_recognised_as_banks_write_it() {
        let more = "[profile]\ndebit_account_masks = ['XXXXXXXXXX5566', '**5566']\n";
        let settings = read(&format!("{PLAIN}{more}")).unwrap();
        for number in [
            "00112233445566",
            "112233445566",
            "0000112233445566",
            "0011-2233 445566",
            "XXXXXXXXXX5566",
            "99999999995566",
            "**5566",
        ] {
            assert!(settings.is_debit_account(number), "{number}");
        }
        for number in ["00112233445567", "5566", "", "000", "XXXXXXXXXX5567"] {
            assert!(!settings.is_debit_account(number), "{number}");
        }
        assert!(!read(PLAIN).unwrap().is_debit_account("XXXXXXXXXX5566"));
    }

    #[test]
    fn a_profile_says_how_the_banks_files_differ() {
        let settings = read(PLAIN).unwrap();
        assert_eq!(
            (settings.format.0.name(), settings.profile.pain_001),
            ("iso20022", Pain001::V09)
        );
        let more = "format = 'csv_bulk'\n[profile]\npain_001 = 'pain.001.001.03'\n\
                    reference_elements = ['AcctSvcrRef', 'AddtlNtryInf']\n";
        let settings = read(&format!("{PLAIN}{more}")).unwrap();
        assert_eq!(
            (settings.format.0.name(), settings.profile.pain_001),
            ("csv_bulk", Pain001::V03)
        );
        assert_eq!(
            settings.profile.reference_elements,
            [ReferenceElement::AcctSvcrRef, ReferenceElement::AddtlNtryInf]
        );
        for (line, field) in [
            ("format = 'mt103'", "format"),
            ("[profile]\npain_001 = 'pain.001.001.02'", "pain_001"),
            ("[profile]\nreference_elements = ['Nm']", "reference_elements"),
            ("[profile]\ndebit_account_masks = ['XXXX66']", "debit_account_masks"),
            ("[profile]\nsurprise = 1", "surprise"),
        ] {
            let refused = read(&format!("{PLAIN}{line}\n")).expect_err(line);
            assert!(refused.contains(field), "{line}: {refused}");
        }
    }

    #[test]
    fn values_outside_their_range_and_unknown_keys_are_refused() {
        for line in [
            "batch_instructions_maximum = 0",
            "batch_instructions_maximum = 1001",
            "batch_amount_maximum = '0'",
            "batch_amount_maximum = '1.001'",
            "poll_seconds = 0",
            "poll_seconds = 3601",
            "unanswered_hours = 0",
            "unanswered_hours = 721",
            "initiating_party = ''",
            "surprise = 1",
        ] {
            let refused = read(&format!("{PLAIN}{line}\n")).expect_err(line);
            assert!(refused.contains(line.split(' ').next().unwrap()), "{line}: {refused}");
        }
        for (from, to, field) in [
            ("00112233445566", "0011-2233", "debit_account_number"),
            ("00112233445566", "1234", "debit_account_number"),
            ("hdfc0000240", "HDFC1000240", "debit_account_ifsc"),
            ("hdfc0000240", "HDFÉ000240", "debit_account_ifsc"),
            ("Hundi Payments", " ", "debit_account_name"),
            ("folder = 'bank'", "folder = ''", "folder"),
        ] {
            let refused = read(&PLAIN.replace(from, to)).expect_err(to);
            assert!(refused.contains(field), "{to}: {refused}");
        }
    }
}
