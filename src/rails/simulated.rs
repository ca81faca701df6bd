//! The bank of test mode: the last four digits of the beneficiary's account number decide what
//! happens. It uses no files. `iso20022::simulator` is a simulated bank that exchanges files.

use super::port::{
    BankReport, FailureCode, FailureSource, Instruction, PaymentMethod, Rail, Reporting,
};
use crate::kernel::{Id, Now, StoreError, id::kind};
use crate::store::Tx;

/// How many characters the simulated bank's references have. `files::values::Utr` knows the lengths
/// that real banks use.
const fn reference_length(method: PaymentMethod) -> usize {
    match method {
        PaymentMethod::Neft => 16,
        PaymentMethod::Rtgs => 22,
        PaymentMethod::Internal => 12,
    }
}

pub struct SimulatedBank {
    /// The length of one step: the bank reports an outcome after two steps, and sends a payment
    /// back after four.
    pub step_milliseconds: i64,
}

/// The first letters of the simulated bank's IFSCs. No real bank has them, so only a beneficiary
/// with an IFSC such as `TEST0000001` gets a book transfer.
pub const BANK_CODE: &str = "TEST";

/// The reference that a simulated settlement shows: `TEST`, which is no bank's code, then the
/// lowest digits of the payout's identifier in base 36, the lowest first.
pub fn reference(payout_id: Id<kind::Payout>, method: PaymentMethod) -> String {
    let length = reference_length(method) - 4;
    const BASE36: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    // Identifiers of two payouts differ most in their lowest digits.
    let mut rest = payout_id.as_u128();
    let digits = std::iter::repeat_with(|| {
        let digit = BASE36[(rest % 36) as usize] as char;
        rest /= 36;
        digit
    });
    format!("TEST{}", digits.take(length).collect::<String>())
}

impl Rail for SimulatedBank {
    fn name(&self) -> &'static str {
        "simulated"
    }
    fn supports_nre(&self) -> bool {
        true
    }
    fn reporting(&self) -> Reporting {
        Reporting::Polled
    }
    fn bank_code(&self) -> &str {
        BANK_CODE
    }
    fn submit(
        &self,
        _: &mut dyn Tx,
        _: &mut Now,
        _: &Instruction,
    ) -> Result<BankReport, StoreError> {
        Ok(BankReport::Processing)
    }
    fn inquire(&self, instruction: &Instruction) -> BankReport {
        let settled = || BankReport::Settled {
            unique_transaction_reference: reference(instruction.payout_id, instruction.method),
        };
        let steps = instruction.age_milliseconds / self.step_milliseconds.max(1);
        match instruction.account_number_last4.as_str() {
            _ if steps < 2 => BankReport::Processing,
            "1001" => BankReport::Failed {
                code: FailureCode::AccountClosed,
                source: FailureSource::BeneficiaryBank,
            },
            // A payment that comes back is reported as paid first, however late the bank is asked.
            "1002" if steps >= 4 && instruction.is_settled => BankReport::Returned {
                code: FailureCode::ReturnedByBeneficiaryBank,
                source: FailureSource::BeneficiaryBank,
            },
            "1003" => BankReport::Unknown,
            _ => settled(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Currency, Mode, Money, Scope};

    #[test]
    fn the_account_number_decides_the_outcome() {
        let bank = SimulatedBank { step_milliseconds: 100 };
        let ask_of = |last4: &str, method, age_milliseconds, is_settled| {
            bank.inquire(&Instruction {
                scope: Scope::new(1, Mode::Test),
                payout_id: Id::from_u128(u128::MAX / 3),
                amount: Money::new(1, Currency::Inr),
                method,
                account_number_last4: last4.into(),
                ifsc: "HDFC0000001".into(),
                age_milliseconds,
                is_settled,
            })
        };
        let ask =
            |last4: &str, method, age_milliseconds| ask_of(last4, method, age_milliseconds, false);
        assert_eq!(ask("5678", PaymentMethod::Neft, 100), BankReport::Processing);
        for (method, length) in
            [(PaymentMethod::Neft, 16), (PaymentMethod::Rtgs, 22), (PaymentMethod::Internal, 12)]
        {
            let BankReport::Settled { unique_transaction_reference: reference } =
                ask("5678", method, 200)
            else {
                panic!()
            };
            assert_eq!((reference.len(), &reference[..4]), (length, "TEST"));
        }
        assert!(matches!(
            ask("1001", PaymentMethod::Neft, 200),
            BankReport::Failed { code: FailureCode::AccountClosed, .. }
        ));
        assert!(matches!(ask("1002", PaymentMethod::Neft, 200), BankReport::Settled { .. }));
        assert!(matches!(
            ask_of("1002", PaymentMethod::Neft, 300, true),
            BankReport::Settled { .. }
        ));
        assert!(matches!(
            ask_of("1002", PaymentMethod::Neft, 400, true),
            BankReport::Returned { .. }
        ));
        assert!(
            matches!(ask("1002", PaymentMethod::Neft, 9_999), BankReport::Settled { .. }),
            "it is reported as paid first, even if the bank is asked late"
        );
        assert_eq!(ask("1003", PaymentMethod::Neft, 999_999), BankReport::Unknown);
    }
}
