//! What a payment advice says of the issuer and the bank. These texts are stored when the payout is
//! instructed, so that a later change of the settings does not change them in the document.

use sha2::{Digest, Sha256};

use crate::kernel::{Scope, StoreError};
use crate::services::Services;
use crate::store::Tx;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdviceTexts {
    /// The operator's name, as the account's documents show it.
    pub issuer: String,
    /// The operator's postal address, in one line.
    pub issuer_address: Option<String>,
    /// The licence that the operator works under.
    pub issuer_licence: Option<String>,
    /// The bank that sends the INR.
    pub sponsor_bank: Option<String>,
    /// The last four characters of the number of the debited account at that bank, in live mode.
    pub debited_account_last4: Option<String>,
}

impl AdviceTexts {
    /// The texts of the settings that are in force now.
    pub fn of_settings(
        tx: &mut dyn Tx,
        services: &Services,
        scope: Scope,
    ) -> Result<AdviceTexts, StoreError> {
        let settings = &services.settings;
        let issuer = settings.issuers.of_scope(tx, scope)?;
        let debited = settings.debit_account_last4.clone();
        Ok(AdviceTexts {
            issuer: issuer.name.clone(),
            issuer_address: issuer.address.clone(),
            issuer_licence: issuer.licence.clone(),
            sponsor_bank: settings.sponsor_bank_name.clone(),
            debited_account_last4: debited.filter(|_| scope.mode().is_live()),
        })
    }

    /// The key of these texts in the store: 64 bits of a hash, so equal texts have one key.
    pub fn number(&self) -> i64 {
        let mut hasher = Sha256::new();
        for text in [
            Some(&self.issuer),
            self.issuer_address.as_ref(),
            self.issuer_licence.as_ref(),
            self.sponsor_bank.as_ref(),
            self.debited_account_last4.as_ref(),
        ] {
            // A text that is absent differs from an empty one.
            let length = text.map_or(-1, |text| text.len() as i64);
            hasher.update(length.to_be_bytes());
            hasher.update(text.map_or("", String::as_str));
        }
        let mut first = [0; 8];
        first.copy_from_slice(&hasher.finalize()[..8]);
        i64::from_be_bytes(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_depends_on_each_text_and_its_field() {
        let texts = |issuer: &str, address: Option<&str>, licence: Option<&str>| AdviceTexts {
            issuer: issuer.into(),
            issuer_address: address.map(str::to_owned),
            issuer_licence: licence.map(str::to_owned),
            sponsor_bank: None,
            debited_account_last4: None,
        };
        let mut numbers = [
            texts("a", None, None),
            texts("a", Some("b"), None),
            texts("a", None, Some("b")),
            texts("ab", None, None),
            texts("a", Some(""), None),
        ]
        .map(|texts| texts.number());
        assert_eq!(texts("a", None, None).number(), numbers[0]);
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
