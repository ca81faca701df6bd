//! Quote locks: a rate that holds for minutes and is used once.

pub mod api;
pub mod gst;
pub mod rows;

use crate::kernel::id::kind;
use crate::kernel::{
    Code, Currency, Id, Metadata, Money, Now, OperationError, Rate, Refusal, RefusalEntry, Scope,
};
use crate::pauses;
use crate::rates;
use crate::resource::Resource;
use crate::services::{Services, Settings};
use crate::store::Tx;
use gst::Gst;

pub const RESOURCE: Resource = Resource::new(api::routes);

crate::string_enum!(
    /// Where a lock stands. `expired` is a matter of time, so it is computed and never stored.
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

#[derive(Clone)]
pub struct QuoteLock {
    pub scope: Scope,
    pub id: Id<kind::QuoteLock>,
    pub sell: Money,
    pub buy: Money,
    pub rate: Rate,
    pub mid_market_rate: Rate,
    pub fee: Money,
    /// What was deducted from the rupees; `None` where none is charged.
    pub gst: Option<Gst>,
    pub expires_at: i64,
    pub transfer_id: Option<Id<kind::Transfer>>,
    pub metadata: Metadata,
    pub created: i64,
}

impl QuoteLock {
    /// The lock's status at a business time: it is active up to, and not at, `expires_at`.
    pub fn status(&self, business: i64) -> QuoteLockStatus {
        if self.transfer_id.is_some() {
            QuoteLockStatus::Used
        } else if business >= self.expires_at {
            QuoteLockStatus::Expired
        } else {
            QuoteLockStatus::Active
        }
    }

    /// Refuses a lock that cannot be used at a business time.
    pub fn usable(&self, business: i64) -> Option<RefusalEntry> {
        match self.status(business) {
            QuoteLockStatus::Active => None,
            QuoteLockStatus::Used => Some(RefusalEntry::field(
                Code::QuoteLockAlreadyUsed,
                "quote_lock_id",
                "This quote lock belongs to another transfer. Create a new one.",
            )),
            QuoteLockStatus::Expired => Some(RefusalEntry::field(
                Code::QuoteLockExpired,
                "quote_lock_id",
                "This quote lock has expired. Create a new one.",
            )),
        }
    }
}

/// What `sell` buys: (amount less fee) at the rate, rounded down to the paisa.
pub fn bought(sell: Money, fee: Money, rate: Rate) -> Result<Money, crate::kernel::StoreError> {
    sell.minus(fee)?.exchanged(rate, Currency::Inr)
}

/// The refusal of an amount of which the smallest tax leaves nothing.
fn eaten_by_gst(settings: &Settings, fee: Money, rate: Rate) -> RefusalEntry {
    let cents = (i128::from(gst::GST_UNITS_MIN + 1) * 1_000_000 + i128::from(rate.0) - 1)
        / i128::from(rate.0.max(1));
    let minimum = Money::new(
        fee.units.saturating_add(i64::try_from(cents).unwrap_or(i64::MAX)),
        fee.currency,
    );
    RefusalEntry::field(
        Code::ParameterRangeInvalid,
        "amount",
        format!("After the fee and GST nothing is left. Send at least {minimum}."),
    )
    .with("minimum", minimum.to_string())
    .with("maximum", settings.amount_max.to_string())
}

pub fn create(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    sell: Money,
    metadata: Metadata,
) -> Result<QuoteLock, OperationError> {
    pauses::refuse_paused(tx, scope, pauses::Operation::Quotes)?;
    let settings = &services.settings;
    if sell.units < settings.amount_min.units || sell.units > settings.amount_max.units {
        let message = format!(
            "amount must be between {} and {} {}.",
            settings.amount_min,
            settings.amount_max,
            sell.currency.as_str()
        );
        return Err(RefusalEntry::field(Code::ParameterRangeInvalid, "amount", message)
            .with("minimum", settings.amount_min.to_string())
            .with("maximum", settings.amount_max.to_string())
            .into());
    }
    let current = services.ports(scope.mode())?.rates.current(now.instant());
    let market =
        rates::trusted(current, now.instant(), &settings.rate_bounds).ok_or_else(|| {
            Refusal::new(
                Code::QuoteUnavailable,
                "No trustworthy exchange rate at the moment. Try \
         again shortly with the same idempotency key.",
            )
        })?;
    let rate = market.mid.less_spread(settings.spread_basis_points);
    let fee = settings.fee;
    let gross = bought(sell, fee, rate)?;
    let gst = if settings.is_gst_charged { Some(Gst::on(gross)?) } else { None };
    let buy = gst.map_or(Ok(gross), |gst| gross.minus(gst.amount))?;
    if gst.is_some() && buy.units <= 0 {
        return Err(eaten_by_gst(settings, fee, rate).into());
    }
    let lock = QuoteLock {
        scope,
        id: now.mint(),
        sell,
        buy,
        rate,
        mid_market_rate: market.mid,
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
