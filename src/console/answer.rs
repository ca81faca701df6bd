//! The order in which a request to the console is judged.

use std::sync::Arc;

use http::header::{
    ACCEPT_LANGUAGE, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderName, HeaderValue, Request, StatusCode};
use hyper::body::Incoming;

use super::cookies::Cookie;
use super::form::Fields;
use super::frame::{Frame, draw};
use super::route::{ConsoleRoute, Handler, RouteAccess};
use super::routes::RouteFound;
use super::texts::{self, Words};
use super::visit::{ConsoleRequest, Failure, Visit};
use super::{Console, files};
use crate::http::incoming::read_body;
use crate::http::reply::{self, Reply};
use crate::http::server::Peer;
use crate::kernel::id::kind;
use crate::kernel::{Id, OperationError, Refusal, StoreError, system_random};
use crate::staff::sessions::{self, Session};
use crate::store::Cost;

/// The Content-Security-Policy. Scripts and styles come only from files of this server, requests go
/// only to it, and no frame may show the page. Images may be `data:` URLs, because the empty icon
/// is one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' \
    data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Answers any request of the console's listener.
pub async fn answer(console: Arc<Console>, request: Request<Incoming>) -> Reply {
    let request_id = new_request_id(&console);
    let wish = request.headers().get(ACCEPT_LANGUAGE).and_then(|wish| wish.to_str().ok());
    let words = texts::wished(wish.unwrap_or(""));
    let mut reply = match judge(&console, words, request).await {
        Ok(reply) => reply,
        // As plain text: a page needs the session, which was not read before the refusal.
        Err((status, key)) => reply::reply(
            status.as_u16(),
            "text/plain; charset=utf-8",
            format!("{}\n", words.get(key)).into_bytes(),
        ),
    };
    if reply.status().is_server_error() {
        tracing::error!(request_id, status = reply.status().as_u16(), "a console page failed");
    }
    protect(&console, &mut reply);
    reply::set_header(&mut reply, HeaderName::from_static("request-id"), &request_id);
    reply
}

/// The answer to a request that reaches no route, such as one whose head is not HTTP/1.1.
pub fn refuse(console: &Console, refusal: Refusal) -> Reply {
    let request_id = new_request_id(console);
    let mut reply = reply::refusal_reply(&request_id, refusal);
    protect(console, &mut reply);
    reply::set_header(&mut reply, HeaderName::from_static("request-id"), &request_id);
    reply
}

fn new_request_id(console: &Console) -> String {
    let random = system_random().unwrap_or_default();
    let instant = console.app.store.clock.milliseconds();
    let id: Id<kind::Request> = console.request_ids.mint(instant, u128::from_be_bytes(random));
    id.to_string()
}

/// Adds the headers that every answer has.
fn protect(console: &Console, reply: &mut Reply) {
    let is_secure = console.origins.is_secure();
    let headers = reply.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(CONTENT_SECURITY_POLICY, POLICY);
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(X_FRAME_OPTIONS, "DENY");
    // With "no-referrer" a form's POST would come with the origin "null", and be refused.
    set(REFERRER_POLICY, "same-origin");
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()");
    set(HeaderName::from_static("x-robots-tag"), "noindex, nofollow");
    set(VARY, "cookie, accept-language, hx-request");
    if is_secure {
        set(STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// An answer without a page: a status and the key of its text.
type Bare = (StatusCode, &'static str);

async fn judge(
    console: &Arc<Console>,
    words: &'static Words,
    request: Request<Incoming>,
) -> Result<Reply, Bare> {
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
    let (head, incoming) = request.into_parts();
    if console.origins.host(&head.headers).is_none() {
        return Err((StatusCode::MISDIRECTED_REQUEST, "problem.other_host"));
    }
    let path = head.uri.path();
    let is_change = head.method != http::Method::GET && head.method != http::Method::HEAD;
    if let Some(file) = files::find(path).filter(|_| !is_change) {
        return Ok(file);
    }
    if path == "/" || path == "/console/" {
        let mut reply = reply::reply(302, "text/plain; charset=utf-8", Vec::new());
        reply.headers_mut().insert(LOCATION, HeaderValue::from_static("/console"));
        return Ok(reply);
    }
    if is_change && !console.origins.is_own_change(&head.headers) {
        return Err((StatusCode::FORBIDDEN, "problem.not_own_page"));
    }
    let form = if is_change {
        let body = read_body(&head, incoming).await;
        let body = body.map_err(|_| (StatusCode::BAD_REQUEST, "problem.form_cut"))?;
        Fields::read(&body)
    } else {
        Some(Fields::default())
    };
    let query = Fields::read(head.uri.query().unwrap_or("").as_bytes());
    let (Some(form), Some(query)) = (form, query) else {
        return Err((StatusCode::BAD_REQUEST, "problem.too_many_fields"));
    };
    let mut asked = ConsoleRequest {
        console: console.clone(),
        app: console.app.clone(),
        words,
        address: peer.map_or_else(
            || "unknown".into(),
            |peer| console.proxies.client(peer, &head.headers).to_string(),
        ),
        path_and_query: head
            .uri
            .path_and_query()
            .map_or("/console", |path| path.as_str())
            .to_owned(),
        headers: head.headers,
        parts: Vec::new(),
        query,
        form,
        cookie: String::new(),
    };
    let session = match session_of(&asked).await {
        Ok(session) => session,
        Err(error) => return Ok(failed(&asked, None, error.into())),
    };
    if let Some(session) = &session {
        asked.words = texts::of(&session.language).unwrap_or(asked.words);
    }
    asked.cookie = match &session {
        Some(_) => Cookie::Session.read(&console.origins, &asked.headers),
        None => Cookie::Visit.read(&console.origins, &asked.headers),
    }
    .unwrap_or_default();
    let path = head.uri.path();
    match console.table.find(&head.method, path) {
        RouteFound::Route(route, parts) => {
            asked.parts = parts;
            Ok(run(route, asked, session, is_change).await)
        }
        RouteFound::OtherMethod(allowed) => {
            let mut reply = page(&asked, session.as_ref(), StatusCode::METHOD_NOT_ALLOWED, None);
            reply::set_header(&mut reply, ALLOW, &allowed);
            Ok(reply)
        }
        // Most pages that exist also send somebody without a session to sign in. So this answer
        // does not show that there is no such page.
        RouteFound::Nothing if session.is_none() => Ok(to_sign_in(&asked, is_change)),
        RouteFound::Nothing => Ok(failed(&asked, session.as_ref(), Failure::NotFound)),
    }
}

async fn session_of(asked: &ConsoleRequest) -> Result<Option<Session>, OperationError> {
    let Some(token) = Cookie::Session.read(&asked.console.origins, &asked.headers) else {
        return Ok(None);
    };
    let instant = asked.instant();
    asked.app.store.read(Cost::Point, move |tx| Ok(sessions::find(tx, &token, instant)?)).await
}

/// Checks who asks, and runs the handler.
async fn run(
    route: &ConsoleRoute,
    asked: ConsoleRequest,
    session: Option<Session>,
    is_change: bool,
) -> Reply {
    if let Some(refused) = refused(route, &asked, session.as_ref(), is_change) {
        return refused;
    }
    if let Some(session) =
        session.as_ref().filter(|session| !route.is_polled && session.is_use_old(asked.instant()))
    {
        let hash = session.token_hash;
        let touched = asked.app.store.write(move |tx, now| sessions::touch(tx, now, &hash)).await;
        // If this fails, the session only ends earlier than it could.
        if let Err(error) = touched {
            tracing::warn!(%error, "the use of a session could not be written down");
        }
    }
    let (again, session_again) = (asked.twin(), session.clone());
    let outcome = match (&route.handler, session) {
        (Handler::Open(handler), _) => handler(asked).await,
        (Handler::SignedIn(handler), Some(session)) => handler(Visit::new(asked, session)).await,
        (Handler::SignedIn(_), None) => Err(Failure::Forbidden),
    };
    outcome.unwrap_or_else(|failure| failed(&again, session_again.as_ref(), failure))
}

/// The answer to a request that its handler must not get, because nobody is signed in, the role is
/// too low, a required second factor is missing, or the form is not of this session. `None` if the
/// handler may get it.
fn refused(
    route: &ConsoleRoute,
    asked: &ConsoleRequest,
    session: Option<&Session>,
    is_change: bool,
) -> Option<Reply> {
    let least = match (route.access, session) {
        (RouteAccess::Anybody, _) => None,
        (_, None) => return Some(to_sign_in(asked, is_change)),
        (RouteAccess::SignedIn, Some(_)) => None,
        (RouteAccess::Role(least), Some(session)) => Some((least, session)),
    };
    if least.is_some_and(|(least, session)| !session.operator.role.includes(least)) {
        return Some(failed(asked, session, Failure::Forbidden));
    }
    let lacks_factor = |session: &Session| !session.has_second_factor;
    if least.is_some() && asked.console.requires_second_factor && session.is_some_and(lacks_factor)
    {
        let reply = asked.go_to("/console/account/second_factor");
        return Some(reply.unwrap_or_else(|failure| failed(asked, session, failure)));
    }
    if is_change && (asked.cookie.is_empty() || !asked.has_token()) {
        let text = asked.words.get("problem.form_expired");
        return Some(page(asked, session, StatusCode::FORBIDDEN, Some(text)));
    }
    None
}

/// Sends somebody to sign in. They come back to this path afterwards, unless htmx asked for it. A
/// change is answered with a page that says that they are not signed in (401).
fn to_sign_in(asked: &ConsoleRequest, is_change: bool) -> Reply {
    if is_change {
        let text = asked.words.get("problem.signed_out");
        return page(asked, None, StatusCode::UNAUTHORIZED, Some(text));
    }
    let next: String =
        url::form_urlencoded::byte_serialize(asked.path_and_query.as_bytes()).collect();
    let path = match asked.wants_part() {
        true => "/console/sign_in".to_owned(),
        false => format!("/console/sign_in?next={next}"),
    };
    asked.go_to(&path).unwrap_or_else(|failure| failed(asked, None, failure))
}

fn failed(asked: &ConsoleRequest, session: Option<&Session>, failure: Failure) -> Reply {
    let (status, text) = match &failure {
        Failure::NotFound => (StatusCode::NOT_FOUND, None),
        Failure::Forbidden => (StatusCode::FORBIDDEN, None),
        Failure::Told(text) => (StatusCode::CONFLICT, Some(asked.words.refusal(text))),
        Failure::Broken(error) => {
            tracing::error!(%error, "a console page failed");
            let status = match error {
                OperationError::Store(StoreError::Broken(_) | StoreError::Unfit(_)) => {
                    StatusCode::INTERNAL_SERVER_ERROR
                }
                _ => StatusCode::SERVICE_UNAVAILABLE,
            };
            (status, None)
        }
    };
    page(asked, session, status, text.as_deref())
}

/// The page that is shown instead of the one asked for: what is wrong, and what to do.
#[derive(askama::Template)]
#[template(path = "console/problem.html")]
struct Problem<'a> {
    frame: Frame<'a>,
    title: &'a str,
    text: &'a str,
}

#[derive(askama::Template)]
#[template(path = "console/problem_part.html")]
struct ProblemPart<'a> {
    title: &'a str,
    text: &'a str,
}

fn page(
    asked: &ConsoleRequest,
    session: Option<&Session>,
    status: StatusCode,
    text: Option<&str>,
) -> Reply {
    let t = asked.words;
    let (title, usual) = match status {
        StatusCode::NOT_FOUND => ("problem.not_found", "problem.not_found_text"),
        StatusCode::FORBIDDEN => ("problem.forbidden", "problem.forbidden_text"),
        StatusCode::UNAUTHORIZED => ("problem.signed_out_title", "problem.signed_out"),
        StatusCode::CONFLICT => ("problem.not_done", "problem.not_done_text"),
        StatusCode::METHOD_NOT_ALLOWED => ("problem.method", "problem.method_text"),
        _ => ("problem.broken", "problem.broken_text"),
    };
    let (title, text) = (t.get(title), text.unwrap_or_else(|| t.get(usual)));
    let drawn = match asked.wants_part() {
        true => draw(&ProblemPart { title, text }),
        false => draw(&Problem { frame: Frame::of(asked, session, ""), title, text }),
    };
    let mut reply = drawn.unwrap_or_else(|_| {
        reply::reply(500, "text/plain; charset=utf-8", text.as_bytes().to_vec())
    });
    *reply.status_mut() = status;
    reply
}
