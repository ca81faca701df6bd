//! How a request under `/v1` is judged, in one order: API key, rate limit, route and method,
//! idempotency key, body read, claim, permission, object in the path, query, form, identifiers in
//! the body, rules, execution. Only a POST has an idempotency key, a claim and a body.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{ALLOW, CONNECTION};
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use hyper::body::Body;

use super::account_turns::AccountTurns;
use super::body::Node;
use super::chaos::{self, Watching};
use super::connections;
use super::incoming::{accepts_pdf, idempotency_key, parse_body, presented, read_body};
use super::preflight::{self, Asking, Permits, PreflightResult};
use super::query;
pub use super::reply::{Reply, ReplyBody, refusal_reply};
use super::reply::{refuse, reply, set_header};
use super::route::{Context, ExtraChecks, RequestWork, Route, Verb};
use super::router::{PathMatch, Router};
use crate::app_state::AppState;
use crate::kernel::id::Minter;
use crate::kernel::{Code, Mode, Now, OperationError, Refusal, StoreError};
use crate::keys::{self, Caller};
use crate::rate_limits::{self, Limiter};
use crate::store::Cost;
use crate::store::idempotency::{self, Answer, Claim, ClaimOutcome};
use crate::store::running_keys::RunningKeys;

/// How long a request may take on PostgreSQL, apart from receiving its body, from waiting for an
/// event and from what a chaos profile does to the answer. Each transaction has a limit of its own;
/// this one is for requests with several transactions.
pub const ANSWER_SECONDS_MAX: u64 = 9;
/// The longest wait for an event if the node was already stopping when the request came.
const WAIT_SECONDS_DRAINING_MAX: u64 = 1;
/// The pause of a waiting request before its third read and before each later one.
const WAIT_READ_PAUSE_MILLISECONDS: u64 = 50;
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The API as it is served: the routes, and what judging a request needs.
pub struct Api {
    pub app: Arc<AppState>,
    pub limiter: Limiter,
    pub router: Router,
    pub running_keys: Arc<RunningKeys>,
    pub preflight_permits: Arc<Permits>,
    pub expensive_turns: AccountTurns,
    /// How many requests may wait for an event at the same time.
    pub waits_max: usize,
}

impl Api {
    /// `Err` names two routes that collide.
    pub fn new(app: Arc<AppState>, limiter: Limiter, routes: Vec<Route>) -> Result<Api, String> {
        Ok(Api {
            app,
            limiter,
            router: Router::new(routes)?,
            running_keys: Arc::default(),
            preflight_permits: Arc::default(),
            expensive_turns: AccountTurns::default(),
            waits_max: connections::waits_max(),
        })
    }
}

/// What is noted while a request is judged: for the answer's headers, for the log and the metrics,
/// and for the chaos profile of the key (attacks that a caller asks for in test mode).
#[derive(Default)]
struct Trace {
    route: Option<&'static str>,
    account_number: i64,
    rate_limit: Option<rate_limits::Headers>,
    closes_connection: bool,
    watching: Watching,
}

/// Answers one request under `/v1`. If judging it panics, the answer is a 500.
pub async fn dispatch<B>(api: &Api, request_id: &str, request: Request<B>) -> Reply
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let started = Instant::now();
    let method = verb_name(request.method());
    let mut seen = Trace::default();
    seen.watching.request_id = request_id.to_owned();
    let answered = AssertUnwindSafe(judge(api, &mut seen, request)).catch_unwind().await;
    let outcome = answered.unwrap_or_else(|_| {
        tracing::error!(request_id, "a request panicked");
        Err(Refusal::internal().into())
    });
    let mut reply = match outcome {
        Ok(reply) => reply,
        Err(failure) => refuse(request_id, failure),
    };
    if let Some(headers) = seen.rate_limit {
        set_header(&mut reply, RATE_LIMIT, &headers.limit);
        set_header(&mut reply, RATE_LIMIT_POLICY, &headers.policy);
    }
    if seen.closes_connection {
        set_header(&mut reply, CONNECTION, "close");
    }
    let route = seen.route.unwrap_or("-");
    let status = reply.status().as_u16();
    // A refusal by the caller's own chaos profile is nothing for an operator to look at.
    if !seen.watching.is_refused_by_profile {
        api.app.metrics.request(method, route, status, started.elapsed().as_secs_f64());
    }
    // Never the path, the query or the body: they can hold mistyped identifiers and personal data.
    let milliseconds = started.elapsed().as_micros() as f64 / 1000.0;
    tracing::debug!(
        request_id,
        method,
        route,
        status,
        milliseconds,
        account = seen.account_number,
        "request"
    );
    reply
}

fn verb_name(method: &http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "DELETE" => "DELETE",
        _ => "OTHER",
    }
}

async fn judge<B>(api: &Api, seen: &mut Trace, request: Request<B>) -> Result<Reply, OperationError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let app = &api.app;
    let mut end = answer_end();
    let (head, incoming) = request.into_parts();
    let sent = presented(&head.headers);
    let caller = within(app, end, app.keys.caller(&app.store, sent)).await?;
    seen.account_number = caller.scope.account_number();

    // HEAD is answered as GET; the connection leaves the body out.
    let method = if head.method == http::Method::HEAD { &http::Method::GET } else { &head.method };
    let is_write = method != http::Method::GET;
    let (rate_limit, judged) =
        within(app, end, api.limiter.judge(&app.store, caller.key_id, is_write)).await?;
    seen.rate_limit = rate_limit;
    judged?;

    let (index, ids) = match api.router.find(method, head.uri.path()) {
        PathMatch::Route { index, ids } => (index, ids),
        PathMatch::Nothing => return Err(api.router.not_found(method, head.uri.path()).into()),
        PathMatch::OtherMethods(allow) => {
            let refusal = api.router.wrong_method(method, head.uri.path(), allow);
            let mut reply = refuse("", refusal.into());
            set_header(&mut reply, ALLOW, allow);
            return Ok(reply);
        }
    };
    let route = &api.router.routes[index];
    seen.route = Some(route.path);
    let asked = RoutedRequest {
        index,
        ids,
        raw_query: head.uri.query().map(str::to_owned),
        accepts_pdf: accepts_pdf(&head.headers),
        caller,
    };

    match route.verb {
        Verb::Get => {
            if route.cost == Cost::Expensive {
                within(app, end, charge(api, seen, &asked)).await?;
            }
            if chaos::is_watched(app, &asked.caller, route) {
                let target = (head.uri.path(), head.uri.query().unwrap_or(""));
                let begun =
                    chaos::begin_read(app, &asked.caller, route, target, &mut seen.watching);
                within(app, end, begun).await?;
            }
            let reply = if route.waits {
                get_waiting(api, seen, asked).await
            } else {
                within(app, end, get(api, &asked)).await.map(|(answer, _)| answered(answer))
            };
            chaos::finish(app, &mut seen.watching, reply).await
        }
        Verb::Delete => within(app, end, delete(api, asked)).await,
        Verb::Post => {
            let key = idempotency_key(&head.headers)?;
            let arriving = tokio::time::Instant::now();
            let bytes =
                read_body(&head, incoming).await.inspect_err(|_| seen.closes_connection = true)?;
            end += arriving.elapsed();
            let key_id = asked.caller.key_id;
            let target = (key.as_str(), head.uri.path());
            let work = post(api, asked, target, &head.headers, bytes, seen);
            let reply = within(app, end, work).await;
            if route.renews_caller {
                app.keys.forget(key_id);
            }
            chaos::finish(app, &mut seen.watching, reply).await
        }
    }
}

/// Takes, from the rate limit of the request's key, the tokens that an expensive request costs
/// beyond the first.
async fn charge(api: &Api, seen: &mut Trace, asked: &RoutedRequest) -> Result<(), OperationError> {
    let is_write = api.router.routes[asked.index].verb != Verb::Get;
    let key = asked.caller.key_id;
    let (headers, judged) = api.limiter.judge_expensive(&api.app.store, key, is_write).await?;
    seen.rate_limit = headers;
    Ok(judged?)
}

/// When a request that begins now must be answered. The time in which its body arrives is added
/// later.
pub fn answer_end() -> tokio::time::Instant {
    tokio::time::Instant::now() + Duration::from_secs(ANSWER_SECONDS_MAX)
}

/// Waits for a part of a request, on PostgreSQL at most until `end`. After that the caller gets a
/// 503. The work may still complete; the same POST, sent again under its idempotency key, gets its
/// result.
pub async fn within<T>(
    app: &AppState,
    end: tokio::time::Instant,
    part: impl Future<Output = Result<T, OperationError>>,
) -> Result<T, OperationError> {
    if !app.store.is_shared() || crate::store::failpoint("no_time_limit") {
        return part.await;
    }
    let late = |_| {
        StoreError::Unavailable(
            "the request took too long: the database did not answer in time".into(),
        )
    };
    tokio::time::timeout_at(end, part).await.map_err(late)?
}

/// A request whose API key, route and method are known.
#[derive(Clone)]
struct RoutedRequest {
    index: usize,
    ids: Vec<String>,
    raw_query: Option<String>,
    accepts_pdf: bool,
    caller: Arc<Caller>,
}

impl RoutedRequest {
    fn permitted(&self, route: &Route) -> Result<(), Refusal> {
        if route.is_test_helper() && self.caller.scope.mode() == Mode::Live {
            return Err(Refusal::new(
                Code::TestmodeActionOnly,
                "Test helpers take test keys only: this is a live key.",
            ));
        }
        let permission = route.permission();
        if !self.caller.permissions.permits(permission) {
            let message =
                format!("Use a key with the permission {}:{}.", permission.0, permission.1);
            return Err(Refusal::new(Code::ActionUnauthorized, message));
        }
        Ok(())
    }

    /// Runs the work at the business time of the caller's account. Also answers whether the result
    /// is an empty page.
    fn run(
        &self,
        app: &AppState,
        tx: &mut dyn crate::store::Tx,
        now: &mut Now,
        work: &mut RequestWork,
        preflight_result: Option<&PreflightResult>,
    ) -> Result<(Answer, bool), OperationError> {
        now.enter_account(keys::rows::clock_offset_seconds(tx, self.caller.scope)?);
        let mut context = Context {
            tx,
            now,
            services: &app.services,
            caller: &self.caller,
            ids: &self.ids,
            raw_query: self.raw_query.as_deref(),
            accepts_pdf: self.accepts_pdf,
            preflight_result,
            is_empty_page: false,
        };
        let answer = work(&mut context)?;
        Ok((answer, context.is_empty_page))
    }
}

fn answered(answer: Answer) -> Reply {
    reply(answer.http_status, answer.content_type, answer.body)
}

async fn get(api: &Api, asked: &RoutedRequest) -> Result<(Answer, bool), OperationError> {
    let app = &api.app;
    let route = &api.router.routes[asked.index];
    asked.permitted(route)?;
    let _turn = match route.cost {
        Cost::Expensive => Some(api.expensive_turns.take(asked.caller.scope).await?),
        Cost::Point | Cost::Scan => None,
    };
    let mut work = (route.prepare)(Ok(&Node::Null), ExtraChecks::default());
    let (shared, asking) = (app.clone(), asked.clone());
    let read = app
        .store
        .read(route.cost, move |tx| {
            let mut now = Now::new(shared.store.clock.milliseconds(), Minter::above(0), [0; 32]);
            asking.run(&shared, tx, &mut now, &mut work, None)
        })
        .await?;
    if chaos::is_watched(app, &asked.caller, route) {
        chaos::note_read(app, &asked.caller, route, &asked.ids, &read.0.body).await?;
    }
    Ok(read)
}

/// Answers a page at once if it has objects, otherwise as soon as it has some, the caller's wait is
/// over or the node begins to stop. The wait is registered before each read, so no event is missed.
async fn get_waiting(
    api: &Api,
    seen: &mut Trace,
    asked: RoutedRequest,
) -> Result<Reply, OperationError> {
    let app = &api.app;
    asked.permitted(&api.router.routes[asked.index])?;
    let mut seconds = query::wait_seconds(asked.raw_query.as_deref());
    if seconds == 0 {
        let (answer, _) = within(app, answer_end(), get(api, &asked)).await?;
        return Ok(answered(answer));
    }
    let waits = &app.store.signals.event_waits;
    let wait = waits.begin(asked.caller.scope, api.waits_max).map_err(Refusal::from)?;
    let was_closed = wait.is_closed();
    if was_closed {
        seconds = seconds.min(WAIT_SECONDS_DRAINING_MAX);
    }
    let wait_ends = tokio::time::Instant::now() + Duration::from_secs(seconds);
    let mut has_read_in_vain = false;
    loop {
        let next = wait.next();
        let (answer, is_empty) = within(app, answer_end(), get(api, &asked)).await?;
        // The caller's next connection can lead to a node that is not stopping.
        seen.closes_connection = wait.is_closed();
        if !is_empty || (wait.is_closed() && !was_closed) {
            return Ok(answered(answer));
        }
        if tokio::time::timeout_at(wait_ends, next).await.is_err() {
            return Ok(answered(answer));
        }
        // The filters may leave out all of an account's events. The pause keeps such a request from
        // reading again at each event.
        if has_read_in_vain {
            tokio::time::sleep(Duration::from_millis(WAIT_READ_PAUSE_MILLISECONDS)).await;
        }
        has_read_in_vain = true;
    }
}

async fn delete(api: &Api, asked: RoutedRequest) -> Result<Reply, OperationError> {
    let app = &api.app;
    let route = &api.router.routes[asked.index];
    asked.permitted(route)?;
    let mut work = (route.prepare)(Ok(&Node::Null), ExtraChecks::default());
    let shared = app.clone();
    let answer =
        app.store.write(move |tx, now| asked.run(&shared, tx, now, &mut work, None)).await?;
    Ok(answered(answer.0))
}

async fn post(
    api: &Api,
    asked: RoutedRequest,
    (key, path): (&str, &str),
    headers: &HeaderMap,
    bytes: Bytes,
    seen: &mut Trace,
) -> Result<Reply, OperationError> {
    let app = &api.app;
    let route = &api.router.routes[asked.index];
    let parsed = parse_body(route, headers, &bytes);
    let is_expensive = route.cost == Cost::Expensive
        && parsed.as_ref().is_ok_and(|body| (route.is_expensive)(body));
    if is_expensive {
        charge(api, seen, &asked).await?;
    }
    let watching = &mut seen.watching;
    let claim = claim(app, &asked, key, path, parsed.as_ref().ok(), &bytes);
    if chaos::is_watched(app, &asked.caller, route) {
        chaos::begin_write(app, &asked.caller, route, &claim, watching).await?;
    }
    let Some(held) = api.running_keys.hold(claim.key_hash) else {
        return Err(idempotency::still_running().into());
    };
    // The form is judged before the transaction, so that the write lane does not have to parse.
    let permitted = asked.permitted(route);
    let entries = match (route.form_check, &parsed) {
        (Some(check), Ok(body)) => check(&app.services, asked.caller.scope, body),
        _ => Vec::new(),
    };
    let timed_check = route.timed_check.zip(parsed.as_ref().ok());
    let timed_check = timed_check.and_then(|(check, body)| check(body));
    let extra = ExtraChecks { entries, timed_check };
    let mut work = (route.prepare)(parsed.as_ref().map_err(Clone::clone), extra);
    // A retry that comes while this request waits for its turn is refused with `resource_locked`.
    let _turn = match is_expensive && permitted.is_ok() {
        true => Some(api.expensive_turns.take(asked.caller.scope).await?),
        false => None,
    };
    let preflight_result = match (&route.preflight, &parsed) {
        (Some(step), Ok(body))
            if permitted.is_ok() && query::none(asked.raw_query.as_deref()).is_ok() =>
        {
            let asking = Asking {
                app: app.clone(),
                permits: api.preflight_permits.clone(),
                caller: asked.caller.clone(),
                ids: asked.ids.clone(),
            };
            preflight::run(step, asking, body, &claim).await?
        }
        _ => None,
    };
    let prefetch = match (&route.prefetch, &parsed) {
        (Some(prepare), Ok(body)) if permitted.is_ok() && app.store.is_shared() => prepare(body),
        _ => None,
    };
    let shared = app.clone();
    let held = Arc::new(held);
    let held_by_work = held.clone();
    let outcome = app
        .store
        .write_keyed(move |tx, now| {
            // If the client hangs up, the key stays held until the transaction has ended.
            let _held = &held_by_work;
            if permitted.is_ok() {
                keys::rows::prefetch_clock_offset(tx, asked.caller.scope)?;
                prefetch.as_ref().map_or(Ok(()), |prefetch| prefetch(tx, asked.caller.scope))?;
            }
            idempotency::run(tx, now, &claim, shared.services.as_ref(), &mut |tx, now| {
                permitted.clone()?;
                let ran = asked.run(&shared, tx, now, &mut work, preflight_result.as_ref())?;
                Ok(ran.0)
            })
        })
        .await;
    held.release();
    Ok(match outcome? {
        ClaimOutcome::Done(answer) => answered(answer),
        ClaimOutcome::Replayed(answer) => {
            let mut reply = answered(answer);
            reply.headers_mut().insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
            reply
        }
    })
}

/// The claim: which idempotency key of which API key, and what was asked. Both are keyed hashes, so
/// that nobody can test guessed account numbers against a stored fingerprint.
fn claim(
    app: &AppState,
    asked: &RoutedRequest,
    key: &str,
    path: &str,
    parsed: Option<&Node>,
    bytes: &[u8],
) -> Claim {
    let sealer = &app.services.sealer;
    let hash = sealer.fingerprint(&[b"key", &asked.caller.key_id.to_bytes(), key.as_bytes()]);
    let mut key_hash = [0; 16];
    key_hash.copy_from_slice(&hash[..16]);
    let query = asked.raw_query.as_deref().unwrap_or("");
    let fingerprint = match parsed {
        Some(node) => sealer.fingerprint(&[
            b"POST",
            path.as_bytes(),
            query.as_bytes(),
            b"parsed",
            &node.canonical(),
        ]),
        None => sealer.fingerprint(&[b"POST", path.as_bytes(), query.as_bytes(), b"raw", bytes]),
    };
    Claim { key_hash, fingerprint }
}
