//! What the API's listener answers outside the API: health, readiness, metrics, `security.txt`, the
//! OpenAPI document, the documentation, the payer's page, and the page and keys that verify payment
//! advices.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, VARY};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;

use crate::app_state::AppState;
use crate::backlog;
use crate::chains::followed::FollowedChain;
use crate::disk;
use crate::guides::{GuideFile, Guides};
use crate::http::dispatch::{self, Api, Reply, ReplyBody};
use crate::http::incoming::accepts_markdown;
use crate::kernel::id::Minter;
use crate::kernel::id::kind;
use crate::kernel::system_random;
use crate::kernel::{Code, Id, Refusal};
use crate::pauses::{self, Operation, Pause};
use crate::store::Cost;
use meant::meant_page;
use payer::forms::PayerForm;

mod frame;
mod meant;
pub mod payer;
pub mod payment_advices;
pub mod words;

const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// What the listener of the API answers from: the API, the documentation and the pages. The console
/// has a listener of its own.
pub struct Site {
    pub app: Arc<AppState>,
    pub api: Api,
    /// Makes the identifiers of requests.
    pub request_ids: Minter,
    /// False on a node whose setting `role` is `work`. It answers only health, readiness and
    /// metrics.
    pub takes_requests: bool,
    pub shows_metrics: bool,
    pub openapi: Bytes,
    pub guides: Guides,
}

/// Answers any request; every answer carries its `Request-Id`.
pub async fn answer(site: Arc<Site>, request: Request<Incoming>) -> Reply {
    let request_id = new_request_id(&site);
    let is_api = request.uri().path() == "/v1" || request.uri().path().starts_with("/v1/");
    let path = request.uri().path();
    if !site.takes_requests && !matches!(path, "/healthz" | "/readyz" | "/metrics") {
        let refusal = Refusal::new(
            Code::ObjectNotFound,
            "This node only runs workers. Send the request to another node.",
        );
        return refuse(&site, refusal);
    }
    let form = payer_form(&request).map(|(token, form)| (token.to_owned(), form));
    let mut reply = if is_api {
        dispatch::dispatch(&site.api, &request_id, request).await
    } else if let Some((token, form)) = form {
        payer::forms::answer(&site.app, &request_id, request, &token, form).await
    } else {
        page(&site, &request_id, &request).await
    };
    set_common_headers(&mut reply, &request_id);
    reply
}

/// The answer to a request that reaches no route, such as one whose head is not HTTP/1.1.
pub fn refuse(site: &Site, refusal: Refusal) -> Reply {
    let request_id = new_request_id(site);
    let mut reply = dispatch::refusal_reply(&request_id, refusal);
    set_common_headers(&mut reply, &request_id);
    reply
}

/// The page's token and the form, if a request sends a form of the payer's page.
fn payer_form<B>(request: &Request<B>) -> Option<(&str, PayerForm)> {
    let rest = request.uri().path().strip_prefix("/pay/")?;
    let (token, form) = rest.split_once('/').filter(|_| request.method() == http::Method::POST)?;
    Some((token, PayerForm::parse(form)?))
}

fn new_request_id(site: &Site) -> String {
    // Without randomness, two requests could get the same identifier. That would only make the log
    // harder to read.
    let random = system_random().unwrap_or_default();
    let instant = site.app.store.clock.milliseconds();
    let id: Id<kind::Request> = site.request_ids.mint(instant, u128::from_be_bytes(random));
    id.to_string()
}

/// Sets the headers that every answer has.
fn set_common_headers(reply: &mut Reply, request_id: &str) {
    if let Ok(value) = HeaderValue::from_str(request_id) {
        reply.headers_mut().insert(REQUEST_ID, value);
    }
    reply.headers_mut().insert(
        HeaderName::from_static("x-content-type-options"),
        HeaderValue::from_static("nosniff"),
    );
}

fn text(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(ReplyBody::whole(body));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

async fn page(site: &Site, request_id: &str, request: &Request<Incoming>) -> Reply {
    let app = &site.app;
    let path = request.uri().path();
    if request.method() != http::Method::GET && request.method() != http::Method::HEAD {
        // If the path is nearly that of a route, such as `/transfers`, the answer names the route.
        if site.api.router.near_miss(path).is_some() {
            return dispatch::refusal_reply(request_id, no_such_page(site, path));
        }
        let mut reply = dispatch::refusal_reply(
            request_id,
            Refusal::new(Code::RequestMethodInvalid, "This page takes GET and HEAD."),
        );
        reply.headers_mut().insert(http::header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return reply;
    }
    match path {
        "/healthz" => text(StatusCode::OK, "text/plain; charset=utf-8", "ok\n"),
        "/readyz" => ready(app).await,
        "/metrics" if site.shows_metrics => text(
            StatusCode::OK,
            "text/plain; version=0.0.4; charset=utf-8",
            metrics_page(app).await,
        ),
        "/.well-known/security.txt" => match security_text(app) {
            Some(body) => text(StatusCode::OK, "text/plain; charset=utf-8", body),
            None => dispatch::refusal_reply(
                request_id,
                Refusal::new(Code::ObjectNotFound, "No such page."),
            ),
        },
        "/openapi.json" => text(StatusCode::OK, "application/json", site.openapi.clone()),
        "/" | "/docs" => {
            let mut reply = text(StatusCode::FOUND, "text/plain; charset=utf-8", "");
            reply.headers_mut().insert(LOCATION, HeaderValue::from_static("/docs/"));
            reply
        }
        _ => {
            if let Some(reply) = guide_page(&site.guides, request) {
                return reply;
            }
            if let Some(rest) = path.strip_prefix("/pay/") {
                return payer::answer(app, request_id, request, rest).await;
            }
            if let Some(reply) = payment_advices::answer(app, request_id, request).await {
                return reply;
            }
            let accepts = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
            if path.starts_with("/docs/")
                && accepts.is_some_and(|types| types.contains("text/html"))
                && let Some(file) = site.guides.missing(meant_page(&site.guides, path))
            {
                let mut reply = guide(&file);
                *reply.status_mut() = StatusCode::NOT_FOUND;
                return reply;
            }
            dispatch::refusal_reply(request_id, no_such_page(site, path))
        }
    }
}

/// The refusal of a path that has no page. It names a route or a guide of a similar path, if there
/// is one.
fn no_such_page(site: &Site, path: &str) -> Refusal {
    let guide = || meant_page(&site.guides, path);
    let message = match site.api.router.near_miss(path).or_else(guide) {
        Some(meant) if path.contains("//") => {
            format!("No such page: the path has two slashes in a row. Did you mean {meant}?")
        }
        Some(meant) => format!("No such page. Did you mean {meant}?"),
        None => "No such page. The API is below /v1, its document is at /openapi.json, and its \
                 guides are at /docs/."
            .to_owned(),
    };
    Refusal::new(Code::ObjectNotFound, message)
}

/// The text at `/.well-known/security.txt` (RFC 9116), if the operator has configured a contact.
fn security_text(app: &AppState) -> Option<String> {
    const VALID_DAYS: i64 = 180;
    const DAY_SECONDS: i64 = 86_400;
    let settings = &app.services.settings;
    let contact = settings.security_contact.as_deref()?;
    // The expiry is counted from the beginning of the day (UTC), so that the text stays the same
    // all day.
    let day = app.store.clock.milliseconds() / 1000 / DAY_SECONDS;
    let expires = jiff::Timestamp::from_second((day + VALID_DAYS) * DAY_SECONDS).ok()?;
    let url = &settings.public_url;
    Some(format!(
        "Contact: {contact}\nExpires: {expires}\nPreferred-Languages: en\n\
         Canonical: {url}/.well-known/security.txt\n"
    ))
}

/// The text at `/metrics`, which Prometheus reads.
pub async fn metrics_page(app: &AppState) -> String {
    let now_milliseconds = app.store.clock.milliseconds();
    let now_seconds = now_milliseconds / 1000;
    let services = app.services.clone();
    let read = app.store.read(Cost::Point, move |tx| {
        Ok((pauses::rows::all(tx)?, backlog::waiting(tx, &services, now_milliseconds)?))
    });
    // If the store does not answer, these figures keep their last values. Other figures show the
    // fault.
    if let Ok((pauses, all_waiting)) = dispatch::within(app, dispatch::answer_end(), read).await {
        for operation in Operation::ALL {
            let count = pauses.iter().filter(|pause| pause.operation == *operation).count();
            app.metrics.paused(operation.as_str(), count as i64);
        }
        for waiting in all_waiting {
            let seconds = waiting.oldest_at.map_or(0, |at| (now_seconds - at).max(0));
            app.metrics.waiting(waiting.of, waiting.mode, waiting.count, seconds);
        }
    }
    // If a file system does not answer, its figures keep their last values.
    for (of, space) in disk::spaces(&app.watched_folders).await {
        app.metrics.disk(of, space);
    }
    let figures: Vec<_> = app.chains.iter().map(|chain| chain.figures(now_seconds)).collect();
    app.metrics.page(&app.store, &figures)
}

/// Ready means that the store answers and accepts writes, and that the node is not stopping. The
/// answer is for load balancers; `/healthz` only says that the process runs.
async fn ready(app: &AppState) -> Reply {
    let unready = |why: String| {
        text(StatusCode::SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", format!("{why}\n"))
    };
    if app.is_draining.load(std::sync::atomic::Ordering::Relaxed) {
        return unready("this node is stopping: send requests to another one".into());
    }
    if let Some(fault) = app.store.write_fault() {
        return unready(fault);
    }
    // After a failed commit only a real write shows whether the disk accepts writes again.
    let is_failing = app.store.stats.is_failing.load(std::sync::atomic::Ordering::Relaxed);
    let answers = async {
        let pauses = app.store.read(Cost::Point, |tx| Ok(pauses::rows::all(tx)?)).await?;
        let probe = move |tx: &mut dyn crate::store::Tx, now: &mut crate::kernel::Now| {
            if is_failing {
                crate::store::meta::write(tx, "probed_at", now.instant().to_string().as_bytes())?;
            }
            Ok(())
        };
        app.store.write(probe).await.map(|()| pauses)
    };
    match dispatch::within(app, dispatch::answer_end(), answers).await {
        Ok(pauses) => text(
            StatusCode::OK,
            "text/plain; charset=utf-8",
            format!("ready\n{}{}", chain_lines(app), pause_lines(&pauses)),
        ),
        Err(_) if is_failing => unready("the store takes no writes: see the log".into()),
        Err(_) => unready("the store does not answer".into()),
    }
}

/// The operator's pauses, one on each line. They do not make the node unready.
fn pause_lines(pauses: &[Pause]) -> String {
    let line = |pause: &Pause| match pause.account_number {
        None => format!("{} are paused\n", pause.operation.as_str()),
        Some(number) => format!("{} are paused for account {number}\n", pause.operation.as_str()),
    };
    pauses.iter().map(line).collect()
}

/// How far each chain is followed, one chain on each line. A node that follows a chain late can
/// still answer requests, so this does not make it unready.
fn chain_lines(app: &AppState) -> String {
    use std::sync::atomic::Ordering::Relaxed;
    let now_seconds = app.store.clock.milliseconds() / 1000;
    let line = |chain: &Arc<FollowedChain>| {
        let (mode, name) =
            (if chain.mode.is_live() { "live" } else { "test" }, chain.settings.name.as_str());
        let height = chain.stats.height.load(Relaxed);
        if !chain.stats.is_followed.load(Relaxed) {
            return format!("chain {name} ({mode}): not followed by this node\n");
        }
        if height == 0 {
            return format!("chain {name} ({mode}): not followed yet\n");
        }
        let behind = chain.behind_seconds(now_seconds);
        let trouble =
            if chain.stats.is_in_trouble.load(Relaxed) { ", in trouble: see the log" } else { "" };
        format!("chain {name} ({mode}): block {height}, {behind} s behind{trouble}\n")
    };
    app.chains.iter().map(line).collect()
}

/// The file of the documentation at the request's path; `None` if there is none. If the request
/// prefers Markdown (`Accept: text/markdown`), a page is answered as Markdown.
fn guide_page<B>(guides: &Guides, request: &Request<B>) -> Option<Reply> {
    let (path, query) = (request.uri().path(), request.uri().query());
    let Some(markdown_path) = guides.markdown_path(path) else {
        return Some(guide(&guides.file_for(path, query)?));
    };
    let wanted = if accepts_markdown(request.headers()) { markdown_path.as_str() } else { path };
    let mut reply = guide(&guides.file_for(wanted, query)?);
    reply.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    Some(reply)
}

/// A page or file of the documentation as an answer. The page's scripts and styles come from this
/// server too, so the content security policy allows no others.
fn guide(file: &GuideFile) -> Reply {
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; \
                  connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let mut reply = text(StatusCode::OK, file.content_type, file.body.clone());
    reply.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    reply
}
