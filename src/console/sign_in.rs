//! Signing in and out.

use std::sync::Arc;

use askama::Template;
use http::StatusCode;
use http::header::USER_AGENT;

use super::cookies::Cookie;
use super::frame::{Frame, draw};
use super::visit::{ConsoleRequest, Failure, PageOutcome, Visit, is_own_path};
use crate::app_state::AppState;
use crate::audit::{self, Action, Fact};
use crate::kernel::{Now, OperationError, StoreError, system_random};
use crate::staff::comparisons::AttemptTurn;
use crate::staff::sessions::Token;
use crate::staff::sign_in::{self, Attempt, Place, SignIn};
use crate::staff::{self, rows};
use crate::store::{Cost, Tx};

#[derive(Template)]
#[template(path = "console/sign_in.html")]
struct SignInPage<'a> {
    frame: Frame<'a>,
    /// Where to go afterwards.
    next: &'a str,
    name: &'a str,
    problem: Option<String>,
    /// Whether there is no operator who may sign in.
    is_nobody: bool,
    provider: Option<Provider>,
}

/// The button that leads to an OpenID Connect provider.
struct Provider {
    text: String,
    path: String,
}

/// The form. A browser without the cookie from which the form's token is made gets one.
pub async fn page(asked: ConsoleRequest) -> PageOutcome {
    shown(asked, StatusCode::OK, None).await
}

/// The form, with `problem` above it if something went wrong before.
pub(super) async fn shown(
    mut asked: ConsoleRequest,
    status: StatusCode,
    problem: Option<String>,
) -> PageOutcome {
    let keeps_cookie = !asked.cookie.is_empty()
        && Cookie::Session.read(&asked.console.origins, &asked.headers).is_none();
    let fresh = match keeps_cookie {
        true => None,
        false => Some(Token::make(system_random().map_err(StoreError::Broken)?)),
    };
    if let Some(token) = &fresh {
        asked.cookie = token.as_str().to_owned();
    }
    let mut reply = drawn(&asked, asked.query("next"), problem).await?;
    *reply.status_mut() = status;
    if let Some(token) = &fresh {
        asked.set_cookie(&mut reply, Cookie::Visit, token.as_str());
    }
    Ok(reply)
}

async fn drawn(asked: &ConsoleRequest, next: &str, problem: Option<String>) -> PageOutcome {
    let is_anybody =
        asked.app.store.read(Cost::Point, |tx| Ok(staff::has_enabled_operator(tx)?)).await?;
    let next = if is_own_path(next) { next } else { "" };
    let provider = asked.console.openid.as_ref().map(|openid| {
        let name = openid.settings.shown_name();
        let query: String = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
        Provider {
            text: asked.words.with("sign_in.elsewhere", [("provider", name.as_str())]),
            path: format!("/console/sign_in/oidc?next={query}"),
        }
    });
    draw(&SignInPage {
        frame: Frame::of(asked, None, ""),
        next,
        name: asked.field("name"),
        problem,
        is_nobody: !is_anybody,
        provider,
    })
}

/// Checks the name, password and code. If one is wrong, the answer does not say which.
pub async fn submit(asked: ConsoleRequest) -> PageOutcome {
    let attempt = Attempt {
        name: asked.field("name").to_owned(),
        password: asked.field("password").to_owned(),
        code: asked.field("code").to_owned(),
        place: place(&asked),
    };
    let (token, operator) = match attempted(&asked, attempt).await? {
        SignIn::Done { token, operator } => (token, operator),
        SignIn::Wrong => {
            let text = asked.words.get("sign_in.wrong").to_owned();
            return refused(&asked, StatusCode::UNAUTHORIZED, text).await;
        }
        SignIn::Locked { seconds } => {
            let text = asked.words.locked(seconds);
            return refused(&asked, StatusCode::TOO_MANY_REQUESTS, text).await;
        }
    };
    tracing::info!(operator = operator.name, "an operator signed in");
    let mut reply = asked.go_to(asked.field("next"))?;
    // A session always begins with a new token, so that nobody can plant one beforehand.
    asked.set_cookie(&mut reply, Cookie::Session, token.as_str());
    asked.remove_cookie(&mut reply, Cookie::Visit);
    Ok(reply)
}

/// The address and the browser from which somebody signs in.
pub(super) fn place(asked: &ConsoleRequest) -> Place {
    let browser = asked.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
    Place { address: asked.address.clone(), browser: browser.unwrap_or("").to_owned() }
}

async fn refused(asked: &ConsoleRequest, status: StatusCode, text: String) -> PageOutcome {
    let mut reply = drawn(asked, asked.field("next"), Some(text)).await?;
    *reply.status_mut() = status;
    Ok(reply)
}

async fn attempted(asked: &ConsoleRequest, attempt: Attempt) -> Result<SignIn, Failure> {
    let app = asked.app.clone();
    let instant = asked.instant();
    let (services, looked_for) = (app.services.clone(), attempt.clone());
    let look = app.store.read(Cost::Point, move |tx| {
        Ok(sign_in::attempt_locked_seconds(tx, &services, &looked_for, instant)?)
    });
    if let Some(seconds) = look.await? {
        return Ok(SignIn::Locked { seconds });
    }
    let turn = asked.console.comparisons.turn(&attempt.place.network()).await?;
    // In a task of its own, so that a counted attempt is concluded even if the browser disconnects.
    let ended = tokio::spawn(judged(app, turn, attempt)).await;
    Ok(ended.map_err(|_| StoreError::Broken("a sign-in did not come to its end".into()))??)
}

/// Counts an attempt, compares the password, and concludes. Until then the next attempt from the
/// same [`Place::network`] waits, because this one holds the turn.
async fn judged(
    app: Arc<AppState>,
    turn: AttemptTurn,
    attempt: Attempt,
) -> Result<SignIn, OperationError> {
    let (services, asked) = (app.services.clone(), attempt.clone());
    let count = move |tx: &mut dyn Tx, now: &mut Now| {
        Ok(sign_in::count(tx, now, &services, &asked.name, &asked.place)?)
    };
    let counted = match app.store.write(count).await? {
        Err(seconds) => return Ok(SignIn::Locked { seconds }),
        Ok(counted) => counted,
    };
    let compared = turn.compare(counted, attempt.password.clone()).await?;
    let services = app.services.clone();
    let conclude = move |tx: &mut dyn Tx, now: &mut Now| {
        sign_in::conclude(tx, now, &services, &attempt, &compared)
    };
    app.store.write(conclude).await
}

/// Ends this session, in the store and in the browser.
pub async fn sign_out(visit: Visit) -> PageOutcome {
    let (number, hash) = (visit.operator().number, visit.session.token_hash);
    let by = visit.decided_by("")?;
    let ended = visit.app.store.write(move |tx, now| {
        rows::end_session(tx, number, &hash)?;
        Ok(audit::append(tx, now, &Fact::by(&by, Action::SignOut, by.actor(), &[]))?)
    });
    ended.await?;
    let mut reply = visit.go_to("/console/sign_in")?;
    visit.remove_cookie(&mut reply, Cookie::Session);
    Ok(reply)
}
