//! Quote locks: a rate that holds for minutes and is used once.

pub mod api;
pub mod gst;
pub mod rows;

use crate::kernel::id::kind;
use crate::kernel::{
    Code, Currency, Id, Metadata, Money, Now, OperationError, Rate, Refusal, RefusalEntry, Scope,
    StoreError,
};
use crate::pauses;
use crate::rates::{self, MarketKind};
use crate::resource::Resource;
use crate::services::{Services, Settings};
use crate::store::Tx;
use gst::Gst;

pub const RESOURCE: Resource = Resource::new(api::routes)
    .at("quote_locks", "Exchange rates that hold for minutes and are used once.");

crate::string_enum!(
    /// Where a lock stands. No status is stored: a lock with a transfer is `used`, and one whose
    /// `expires_at` has come is `expired`.
    QuoteLockStatus { Active "active", Used "used", Expired "expired" }
);
crate::string_enum!(
    /// What can be sold.
    SellCurrency { Usd "USD" }
);
crate::string_enum!(
    /// What can be bought.
    BuyCurrency { Inr "INR" }
);
crate::enum_fields!(SellCurrency, BuyCurrency);

/// Where a lock's rate came from. The operator sees this; callers do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateInputs {
    pub source: MarketKind,
    /// USD for one USDT. It decides whether a rate may be quoted, but is no part of the rate: 1
    /// USDT counts as 1 USD.
    pub usdt_usd: Rate,
    /// See [`rates::MarketRate::observed_at`]. No test clock moves this time.
    pub observed_at: i64,
}

#[derive(Clone)]
pub struct QuoteLock {
    pub scope: Scope,
    pub id: Id<kind::QuoteLock>,
    pub sell: Money,
    pub buy: Money,
    /// INR for one USD, after the spread.
    pub rate: Rate,
    /// INR for one USD, before the spread.
    pub mid_market_rate: Rate,
    /// `None` for locks that were made before these inputs were stored.
    pub rate_inputs: Option<RateInputs>,
    /// In the sell currency.
    pub fee: Money,
    /// The tax deducted from the rupees; `None` if none is charged.
    pub gst: Option<Gst>,
    pub expires_at: i64,
    pub transfer_id: Option<Id<kind::Transfer>>,
    pub metadata: Metadata,
    pub created: i64,
}

impl QuoteLock {
    /// The lock's status at a business time. At `expires_at` it is no longer active.
    pub fn status(&self, business_time: i64) -> QuoteLockStatus {
        if self.transfer_id.is_some() {
            QuoteLockStatus::Used
        } else if business_time >= self.expires_at {
            QuoteLockStatus::Expired
        } else {
            QuoteLockStatus::Active
        }
    }

    /// Why the lock cannot be used at a business time; `None` if it can.
    pub fn refusal_if_unusable(&self, business_time: i64) -> Option<RefusalEntry> {
        if let Some(transfer_id) = self.transfer_id {
            let message = format!(
                "This quote lock was used for {transfer_id}. If that is not the transfer you mean, \
                 create a new quote lock."
            );
            let entry = RefusalEntry::field(Code::QuoteLockAlreadyUsed, "quote_lock_id", message);
            return Some(entry.with("transfer_id", transfer_id.to_string()));
        }
        (self.status(business_time) == QuoteLockStatus::Expired).then(|| {
            RefusalEntry::field(
                Code::QuoteLockExpired,
                "quote_lock_id",
                "This quote lock has expired. Create a new one.",
            )
        })
    }
}

/// The amount that a request for a lock names: what is sold, or what is bought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuoteAmount {
    /// Sell exactly this amount.
    Sell(Money),
    /// Buy this amount, by selling the smallest amount that buys at least as much.
    Buy(Money),
}

/// The rate, fee, tax and limits of an exchange.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub rate: Rate,
    pub fee: Money,
    pub is_gst_charged: bool,
    /// The smallest and the largest amount that can be sold.
    pub sell_min: Money,
    pub sell_max: Money,
}

impl Terms {
    /// What an amount buys, and the tax that was deducted. What it buys is (amount - fee) x rate,
    /// rounded down to the paisa, minus the tax. The result may be zero or negative if GST is
    /// charged, because the tax has a minimum.
    pub fn bought(&self, sell: Money) -> Result<(Money, Option<Gst>), StoreError> {
        let gross = sell.minus(self.fee)?.exchanged(self.rate, Currency::Inr)?;
        if !self.is_gst_charged {
            return Ok((gross, None));
        }
        let gst = Gst::on(gross)?;
        Ok((gross.minus(gst.amount)?, Some(gst)))
    }

    /// The smallest amount that buys at least `buy`. Selling more never buys less, so a binary
    /// search finds it. `Err` if `buy` is zero, if even `sell_max` buys less than `buy`, or if a
    /// cent less than `sell_min` already buys it.
    pub fn smallest_sale_for(&self, buy: Money) -> Result<Money, OperationError> {
        let currency = self.sell_min.currency;
        let bought = |units: i64| -> Result<i64, StoreError> {
            let sell = Money::new(units, currency);
            let is_used_up_by_fee = sell.units <= self.fee.units;
            Ok(if is_used_up_by_fee { 0 } else { self.bought(sell)?.0.units })
        };
        let (mut too_little, mut enough) = (self.sell_min.units - 1, self.sell_max.units);
        let (most, least) = (bought(enough)?, bought(too_little)?.max(0) + 1);
        if !(least..=most).contains(&buy.units) {
            let [least, most] = [least, most].map(|units| Money::new(units, buy.currency));
            return Err(out_of_range("buy_amount", least, most).into());
        }
        while enough - too_little > 1 {
            let middle = too_little + (enough - too_little) / 2;
            if bought(middle)? >= buy.units { enough = middle } else { too_little = middle }
        }
        Ok(Money::new(enough, currency))
    }
}

fn out_of_range(field_name: &str, minimum: Money, maximum: Money) -> RefusalEntry {
    let currency = minimum.currency.as_str();
    let message = format!("{field_name} must be between {minimum} and {maximum} {currency}.");
    RefusalEntry::field(Code::ParameterRangeInvalid, field_name, message)
        .with("minimum", minimum.to_string())
        .with("maximum", maximum.to_string())
}

/// The refusal of an amount that the fee and the least GST use up. It names the smallest amount
/// that leaves something.
fn nothing_left_after_gst(settings: &Settings, fee: Money, rate: Rate) -> RefusalEntry {
    // What has to remain after the fee: the least number of cents that buys a paisa more than the
    // least GST. A cent and a paisa are both a hundredth, so the rate, which is rupees for a
    // dollar, is also paise for a cent.
    let scaled = i128::from(gst::GST_PAISE_MIN + 1) * i128::from(Rate::SCALE);
    let cents = (scaled + i128::from(rate.0) - 1) / i128::from(rate.0.max(1));
    let minimum = Money::new(
        fee.units.saturating_add(i64::try_from(cents).unwrap_or(i64::MAX)),
        fee.currency,
    );
    RefusalEntry::field(
        Code::ParameterRangeInvalid,
        "amount",
        format!(
            "After the fee and GST nothing is left. Send at least {minimum} {}.",
            minimum.currency.as_str()
        ),
    )
    .with("minimum", minimum.to_string())
    .with("maximum", settings.amount_max.to_string())
}

/// Locks the current rate for `quote_lock_seconds` of business time. Refused while quotes are
/// paused, while no trusted rate is known, for an amount outside the limits, and for one that the
/// fee and GST use up.
pub fn create(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    amount: QuoteAmount,
    metadata: Metadata,
) -> Result<QuoteLock, OperationError> {
    pauses::refuse_paused(tx, scope, pauses::Operation::Quotes)?;
    let settings = &services.settings;
    if let QuoteAmount::Sell(sell) = amount
        && !(settings.amount_min.units..=settings.amount_max.units).contains(&sell.units)
    {
        return Err(out_of_range("amount", settings.amount_min, settings.amount_max).into());
    }
    let source = &services.ports(scope.mode())?.rates;
    let current = source.current(now.instant());
    let market =
        rates::trusted(current, now.instant(), &settings.rate_bounds).ok_or_else(|| {
            Refusal::new(
                Code::QuoteUnavailable,
                "No trustworthy exchange rate is available at the moment. Try again shortly with \
                 the same idempotency key.",
            )
        })?;
    let (rate, fee) = (market.mid.less_spread(settings.spread_basis_points), settings.fee);
    let terms = Terms {
        rate,
        fee,
        is_gst_charged: settings.is_gst_charged,
        sell_min: settings.amount_min,
        sell_max: settings.amount_max,
    };
    let sell = match amount {
        QuoteAmount::Sell(sell) => sell,
        QuoteAmount::Buy(buy) => terms.smallest_sale_for(buy)?,
    };
    let (bought, gst) = terms.bought(sell)?;
    if gst.is_some() && bought.units <= 0 {
        return Err(nothing_left_after_gst(settings, fee, rate).into());
    }
    // The caller gets exactly the amount asked for. The operator keeps what the sale buys beyond
    // it.
    let buy = if let QuoteAmount::Buy(buy) = amount { buy } else { bought };
    let lock = QuoteLock {
        scope,
        id: now.mint(),
        sell,
        buy,
        rate,
        mid_market_rate: market.mid,
        rate_inputs: Some(RateInputs {
            source: source.kind(),
            usdt_usd: market.usdt_usd,
            observed_at: market.observed_at,
        }),
        fee,
        gst,
        expires_at: now.business() + settings.quote_lock_seconds,
        transfer_id: None,
        metadata,
        created: now.business(),
    };
    rows::insert(tx, &lock)?;
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms(rate: i64, fee: i64, is_gst_charged: bool) -> Terms {
        Terms {
            rate: Rate(rate),
            fee: Money::new(fee, Currency::Usd),
            is_gst_charged,
            sell_min: Money::new(1_000, Currency::Usd),
            sell_max: Money::new(5_000_000, Currency::Usd),
        }
    }

    proptest! {
        #[test]
        fn the_smallest_amount_buys_what_is_asked_and_a_cent_less_does_not(
            rate in 1_000_000_i64..200_000_000,
            fee in 0_i64..900,
            is_gst_charged: bool,
            share in 0_i64..=1_000_000,
        ) {
            let terms = terms(rate, fee, is_gst_charged);
            let bought = |units| terms.bought(Money::new(units, Currency::Usd)).unwrap().0.units;
            let (least, most) = (bought(terms.sell_min.units), bought(terms.sell_max.units));
            let asked = least.max(1) + (most - least.max(1)) / 1_000_000 * share;
            let sell = terms.smallest_sale_for(Money::new(asked, Currency::Inr)).unwrap();
            prop_assert!((terms.sell_min.units..=terms.sell_max.units).contains(&sell.units));
            prop_assert!(bought(sell.units) >= asked);
            prop_assert!(sell == terms.sell_min || bought(sell.units - 1) < asked);
        }

        #[test]
        fn the_smallest_sale_is_never_larger_than_the_amount_that_bought_it(
            rate in 1_000_000_i64..200_000_000,
            sell in 1_000_i64..=5_000_000,
        ) {
            let terms = terms(rate, 250, false);
            let buy = terms.bought(Money::new(sell, Currency::Usd)).unwrap().0;
            let smallest = terms.smallest_sale_for(buy).unwrap();
            prop_assert!(smallest.units <= sell);
            prop_assert!(terms.bought(smallest).unwrap().0 == buy);
        }
    }

    #[test]
    fn the_limits_of_what_is_bought_are_those_of_what_is_sold() {
        let terms = terms(88_412_500, 0, false);
        let smallest = |units| terms.smallest_sale_for(Money::new(units, Currency::Inr));
        // 9.99 USD buy 883.24, so 883.25 takes ten dollars; 50,000 USD buy 4,420,625.00.
        assert!(smallest(88_324).is_err() && smallest(0).is_err());
        assert_eq!(smallest(88_325).unwrap(), terms.sell_min);
        assert_eq!(smallest(442_062_500).unwrap(), terms.sell_max);
        assert!(smallest(442_062_501).is_err() && smallest(i64::MAX).is_err());
    }
}
