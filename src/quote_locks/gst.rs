//! GST on the conversion of currency, by Rule 32(2)(b) of the CGST (Central GST) Rules 2017: 18 %
//! of a value that a table gives for the gross amount of rupees. Off unless the operator sets
//! `gst = true`. Only an operator that converts in India charges it.
//!
//! The tax is charged in rupees and deducted from what is bought: the rule's table is in rupees,
//! and taking the tax before the exchange would change the amount that the tax is computed from. So
//! `buy_amount` = gross - GST, where gross is (amount - fee) x rate rounded down to the paisa. A
//! quote that asks for a `buy_amount` gets exactly the amount it asked for, even if gross - GST is
//! slightly more. The API's `fee.amount` does not include the tax.

use crate::kernel::{Currency, Money, StoreError};

/// The rate of the tax in percent.
pub const GST_PERCENT: i64 = 18;
/// The least GST on any exchange, in paise: 18 % of 250 rupees, the table's least value. If the
/// gross amount is not above this tax, nothing is left to pay out.
pub const GST_PAISE_MIN: i64 = 4_500;

/// Tax on one exchange, in rupees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gst {
    /// The taxable value by the rule's table, rounded half up to the paisa. It is only shown: the
    /// tax is computed from the exact value.
    pub taxable: Money,
    pub amount: Money,
}

impl Gst {
    /// The tax from its two stored figures, in paise; `None` unless both are there.
    pub fn of_units(taxable: Option<i64>, amount: Option<i64>) -> Option<Gst> {
        let inr = |units| Money::new(units, Currency::Inr);
        taxable
            .zip(amount)
            .map(|(taxable, amount)| Gst { taxable: inr(taxable), amount: inr(amount) })
    }
    /// The tax on a gross amount of rupees. It is computed from the exact taxable value and rounded
    /// half up, once. `Err` if the amount is negative or not in rupees.
    pub fn on(gross: Money) -> Result<Gst, StoreError> {
        if gross.currency != Currency::Inr || gross.units < 0 {
            return Err(StoreError::Broken("GST is computed on an amount of rupees".into()));
        }
        let thousandths = taxable_thousandths(i128::from(gross.units));
        let inr = |units: i128| {
            let units = i64::try_from(units)
                .map_err(|_| StoreError::Broken("money arithmetic: overflow".into()))?;
            Ok::<_, StoreError>(Money::new(units, Currency::Inr))
        };
        Ok(Gst {
            taxable: inr(half_up(thousandths, 1_000))?,
            amount: inr(half_up(thousandths * i128::from(GST_PERCENT), 100_000))?,
        })
    }
}

/// The taxable value in thousandths of a paisa, for a gross amount in paise.
fn taxable_thousandths(gross: i128) -> i128 {
    /// A lakh, 100,000 rupees, in paise.
    const LAKH_PAISE: i128 = 10_000_000;
    /// A rupee in thousandths of a paisa.
    const RUPEE_THOUSANDTHS: i128 = 100_000;
    if gross <= LAKH_PAISE {
        // 1 %, at least 250 rupees.
        (gross * 10).max(250 * RUPEE_THOUSANDTHS)
    } else if gross <= 10 * LAKH_PAISE {
        // 1,000 rupees and 0.5 % of what is above one lakh.
        1_000 * RUPEE_THOUSANDTHS + (gross - LAKH_PAISE) * 5
    } else {
        // 5,500 rupees and 0.1 % of what is above ten lakh, at most 60,000 rupees.
        (5_500 * RUPEE_THOUSANDTHS + (gross - 10 * LAKH_PAISE)).min(60_000 * RUPEE_THOUSANDTHS)
    }
}

fn half_up(number: i128, divisor: i128) -> i128 {
    (number * 2 + divisor) / (divisor * 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn inr(text: &str) -> Money {
        Money::parse(text, Currency::Inr).unwrap()
    }

    #[test]
    fn the_tables_steps_meet_where_the_rule_says() {
        for (gross, taxable, amount) in [
            ("0.01", "250.00", "45.00"),
            ("10000", "250.00", "45.00"),
            ("25000", "250.00", "45.00"),
            ("25000.50", "250.01", "45.00"),
            ("50000", "500.00", "90.00"),
            ("100000", "1000.00", "180.00"),
            ("100000.01", "1000.00", "180.00"),
            ("250000", "1750.00", "315.00"),
            ("500000", "3000.00", "540.00"),
            ("843210.55", "4716.05", "848.89"),
            ("1000000", "5500.00", "990.00"),
            ("1000000.01", "5500.00", "990.00"),
            ("2000000", "6500.00", "1170.00"),
            ("55499999.99", "60000.00", "10800.00"),
            ("55500000", "60000.00", "10800.00"),
            ("900000000", "60000.00", "10800.00"),
        ] {
            let gst = Gst::on(inr(gross)).unwrap();
            assert_eq!((gst.taxable, gst.amount), (inr(taxable), inr(amount)), "{gross}");
        }
        assert!(
            Gst::on(Money::new(1, Currency::Usd)).is_err()
                && Gst::on(Money::new(-1, Currency::Inr)).is_err()
        );
    }

    proptest! {
        #[test]
        fn more_rupees_never_lower_the_tax_nor_add_more_tax_than_rupees(
            gross in 0..6_000_000_000_i64, more in 0..100_000_000_i64) {
            let gst = |units| Gst::on(Money::new(units, Currency::Inr)).unwrap().amount.units;
            prop_assert!(gst(gross) <= gst(gross + more));
            prop_assert!((GST_PAISE_MIN..=1_080_000).contains(&gst(gross)));
            prop_assert!(gst(gross + more) - gst(gross) <= more);
        }
    }
}
