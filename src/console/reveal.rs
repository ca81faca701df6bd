//! A beneficiary's full account number. It is shown only to an operator who gives a reason, and the
//! audit log records who saw it and why.

use askama::Template;
use secrecy::ExposeSecret;

use super::frame::{Frame, draw};
use super::visit::{Failure, PageOutcome, Visit};
use crate::kernel::AnyId;
use crate::operator;

#[derive(Template)]
#[template(path = "console/account_number.html")]
struct AccountNumberPage<'a> {
    frame: Frame<'a>,
    id: String,
    account_number: &'a str,
}

#[derive(Template)]
#[template(path = "console/account_number_part.html")]
struct AccountNumberPart<'a> {
    account_number: &'a str,
}

pub async fn account_number(visit: Visit) -> PageOutcome {
    let id = AnyId::parse(visit.path(0)).ok_or(Failure::NotFound)?;
    let by = visit.decided_by(visit.field("reason"))?;
    if by.reason().is_empty() {
        return Err(Failure::told(visit.words.get("account_number.needs_reason")));
    }
    let services = visit.app.services.clone();
    // The number is shown only after the entry of the audit log is on the disk.
    let seen = visit
        .app
        .store
        .write(move |tx, now| operator::see_account_number(tx, now, &services, id, &by));
    let number = seen.await?.ok_or(Failure::NotFound)?;
    let account_number = number.expose_secret();
    match visit.wants_part() {
        true => draw(&AccountNumberPart { account_number }),
        false => draw(&AccountNumberPage {
            frame: visit.frame("beneficiaries"),
            id: id.to_string(),
            account_number,
        }),
    }
}
