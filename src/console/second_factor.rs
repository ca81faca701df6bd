//! Setting up the second factor: an authenticator app, and recovery codes for when it is lost.

use askama::Template;

use super::cookies::Cookie;
use super::frame::{Frame, draw};
use super::visit::{Failure, PageOutcome, Visit};
use crate::audit::{self, Action, Fact};
use crate::kernel::StoreError;
use crate::pages::payer::qr::{self, QrSvg};
use crate::staff::sign_in::{self, CodeCheck, Place};
use crate::staff::{Operator, rows, sessions, totp};
use crate::store::Cost;

const PATH: &str = "/console/account/second_factor";

#[derive(Template)]
#[template(path = "console/second_factor.html")]
struct SecondFactorPage<'a> {
    frame: Frame<'a>,
    is_confirmed: bool,
    is_required: bool,
    codes_left: String,
    /// The new secret, until its first code confirms it.
    setup: Option<Setup>,
}

struct Setup {
    qr: QrSvg,
    /// In base 32 and groups of four, for somebody who cannot scan the QR code.
    secret: String,
}

#[derive(Template)]
#[template(path = "console/recovery_codes.html")]
struct RecoveryCodesPage<'a> {
    frame: Frame<'a>,
    codes: Vec<String>,
}

/// The operator who is signed in, and how many recovery codes are left.
async fn own(visit: &Visit) -> Result<(Operator, i64), Failure> {
    let number = visit.operator().number;
    let read = visit.app.store.read(Cost::Point, move |tx| {
        Ok((rows::find(tx, number)?, rows::recovery_codes_count(tx, number)?))
    });
    let (operator, count) = read.await?;
    Ok((operator.ok_or(Failure::Forbidden)?, count))
}

pub async fn page(visit: Visit) -> PageOutcome {
    let (operator, codes_left) = own(&visit).await?;
    let count = codes_left.to_string();
    let codes_left = visit.words.with("second_factor.codes_left", [("count", count.as_str())]);
    let secret = totp::next_secret(visit.services(), &operator, visit.instant())?;
    let setup = secret.map(|secret| {
        let issuer = &visit.services().settings.issuers.default.name;
        let text = totp::base32(&secret);
        let groups: Vec<&str> =
            (0..text.len()).step_by(4).filter_map(|at| text.get(at..at + 4)).collect();
        let qr = qr::draw(&totp::uri(issuer, &operator.identity.name, &secret))?;
        Ok::<_, StoreError>(Setup { qr, secret: groups.join(" ") })
    });
    draw(&SecondFactorPage {
        frame: visit.frame("account"),
        is_confirmed: operator.is_totp_confirmed,
        is_required: visit.console.requires_second_factor,
        codes_left,
        setup: setup.transpose()?,
    })
}

/// Makes a new secret. An operator who already has a second factor has to give a code of it, or a
/// recovery code, so that a stolen session is not enough to replace it.
pub async fn begin(visit: Visit) -> PageOutcome {
    let (number, code) = (visit.operator().number, visit.field("code").to_owned());
    let (services, place) = (visit.app.services.clone(), place(&visit));
    let begun = visit.app.store.write(move |tx, now| {
        let Some(operator) = rows::find(tx, number)? else { return Ok(CodeCheck::Wrong) };
        if operator.is_totp_confirmed {
            let name = operator.identity.name.as_str();
            let taken = sign_in::check_code(tx, now, &services, name, &place, |tx, now| {
                Ok(totp::take(tx, now, &services, &operator, &code)?.then_some(()))
            })?;
            let CodeCheck::Right(()) = taken else { return Ok(taken) };
        }
        totp::begin(tx, now, &services, number)?;
        Ok(CodeCheck::Right(()))
    });
    right(&visit, begun.await?)?;
    visit.go_to(PATH)
}

fn place(visit: &Visit) -> Place {
    Place { address: visit.address.clone(), browser: visit.session.browser.clone() }
}

/// The result of a right code. `Err` tells the person that the code is wrong, or for how long no
/// code is accepted.
fn right<T>(visit: &Visit, check: CodeCheck<T>) -> Result<T, Failure> {
    match check {
        CodeCheck::Right(result) => Ok(result),
        CodeCheck::Wrong => Err(Failure::told(visit.words.get("second_factor.wrong"))),
        CodeCheck::Locked { seconds } => Err(Failure::Told(visit.words.locked(seconds))),
    }
}

/// Confirms the new secret by its first code. Every session of the operator ends, and this browser
/// gets a new one.
pub async fn confirm(mut visit: Visit) -> PageOutcome {
    let (number, code) = (visit.operator().number, visit.field("code").to_owned());
    let (services, place) = (visit.app.services.clone(), place(&visit));
    let by = visit.decided_by("")?;
    let confirmed = visit.app.store.write(move |tx, now| {
        sign_in::check_code(tx, now, &services, by.actor(), &place, |tx, now| {
            let Some(codes) = totp::confirm(tx, now, &services, number, &code)? else {
                return Ok(None);
            };
            rows::end_sessions_of(tx, number)?;
            let token = sessions::begin(tx, now, number, &place, false)?;
            audit::append(tx, now, &Fact::by(&by, Action::SecondFactor, by.actor(), &[]))?;
            Ok(Some((codes, token)))
        })
    });
    let (codes, token) = right(&visit, confirmed.await?)?;
    visit.asked.cookie = token.as_str().to_owned();
    let mut reply = draw(&RecoveryCodesPage { frame: visit.frame("account"), codes })?;
    visit.set_cookie(&mut reply, Cookie::Session, token.as_str());
    Ok(reply)
}
