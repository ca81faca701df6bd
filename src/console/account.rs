//! The operator's own account: language and theme, and where the operator is signed in. The handler
//! with which administrators end the sessions of others is here too.

use askama::Template;

use super::blocks::moment;
use super::frame::{Frame, draw};
use super::texts::{self, Words};
use super::visit::{Failure, PageOutcome, Visit};
use crate::audit::{self, Action, Fact};
use crate::kernel::hex;
use crate::staff::sessions::Session;
use crate::staff::{Theme, rows};
use crate::store::Cost;

#[derive(Template)]
#[template(path = "console/account.html")]
struct AccountPage<'a> {
    frame: Frame<'a>,
    sessions: Vec<Session>,
    /// The reference of the session that asks for the page.
    own_session: String,
    has_second_factor: bool,
    languages: &'static [Words],
    themes: &'static [Theme],
}

impl AccountPage<'_> {
    /// When a session was last used, as a machine-readable time and as text.
    fn used(&self, session: &Session) -> (String, String) {
        moment(session.used_at)
    }
}

pub async fn page(visit: Visit) -> PageOutcome {
    let (number, instant) = (visit.operator().number, visit.instant());
    let all = visit.app.store.read(Cost::Point, move |tx| Ok(rows::sessions_of(tx, number)?));
    let mut sessions = all.await?;
    sessions.retain(|session| !session.has_ended(instant));
    draw(&AccountPage {
        frame: visit.frame("account"),
        sessions,
        own_session: visit.session.reference(),
        has_second_factor: visit.session.has_second_factor,
        languages: texts::all(),
        themes: Theme::ALL,
    })
}

pub async fn set_preferences(visit: Visit) -> PageOutcome {
    let wrong = || Failure::told(visit.words.get("problem.form_expired"));
    let theme = Theme::parse(visit.field("theme")).ok_or_else(wrong)?;
    let language = texts::of(visit.field("language")).ok_or_else(wrong)?.code;
    let number = visit.operator().number;
    visit
        .app
        .store
        .write(move |tx, _| Ok(rows::set_preferences(tx, number, language, theme)?))
        .await?;
    visit.back_to("/console/account", "notice.saved")
}

/// Ends one of the operator's own sessions.
pub async fn end_session(visit: Visit) -> PageOutcome {
    let hash = hex::decode(visit.field("session")).ok_or(Failure::NotFound)?;
    let number = visit.operator().number;
    let by = visit.decided_by("")?;
    let ended = visit.app.store.write(move |tx, now| {
        let ended = rows::end_session(tx, number, &hash)?;
        if ended {
            audit::append(tx, now, &Fact::by(&by, Action::SessionEnded, by.actor(), &[]))?;
        }
        Ok(ended)
    });
    let ended = ended.await?;
    match ended {
        true => visit.back_to("/console/account", "notice.session_ended"),
        false => Err(Failure::NotFound),
    }
}

/// Ends every session of the operator whom the form names.
pub async fn end_sessions_of(visit: Visit) -> PageOutcome {
    let name = crate::staff::name(visit.field("name")).map_err(Failure::told)?;
    let by = super::pages::decide::decided_by(&visit)?;
    let ended = visit.app.store.write(move |tx, now| {
        let operator = crate::staff::named(tx, &name)?;
        rows::end_sessions_of(tx, operator.identity.number)?;
        let details = [("reason", by.reason())];
        Ok(audit::append(tx, now, &Fact::by(&by, Action::SessionEnded, &name, &details))?)
    });
    ended.await?;
    visit.back_to("/console/operators", "notice.session_ended")
}
