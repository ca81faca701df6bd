//! What a route is: a method, a path, typed input and output, and a plain function over a
//! transaction.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;

use super::body::Node;
use super::form::{Form, TimedCheck};
use super::preflight::{Asking, Preflight, PreflightFuture, PreflightResult};
use super::query::{self, Filter};
use crate::kernel::page::{FilterValue, Page};
use crate::kernel::{
    Code, Id, IdKind, Now, ObjectKind, OperationError, Refusal, RefusalEntry, Scope, StoreError,
};
use crate::keys::Caller;
use crate::services::Services;
use crate::store::Cost;
use crate::store::Tx;
use crate::store::idempotency::{self, Answer};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    Get,
    Post,
    Delete,
}

impl Verb {
    pub const fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Post => "POST",
            Verb::Delete => "DELETE",
        }
    }
}

/// Everything that a handler may use.
pub struct Context<'a> {
    pub tx: &'a mut dyn Tx,
    pub now: &'a mut Now,
    pub services: &'a Services,
    pub caller: &'a Caller,
    pub ids: &'a [String],
    pub raw_query: Option<&'a str>,
    pub accepts_pdf: bool,
    /// What the route's preflight step learnt, if there is one and it ran.
    pub preflight_result: Option<&'a PreflightResult>,
    /// The answer is a page without objects.
    pub is_empty_page: bool,
}

impl Context<'_> {
    pub const fn scope(&self) -> Scope {
        self.caller.scope
    }
    /// The identifier in the path. `Err` (404) if the text there is no identifier of this kind.
    pub fn path_id<K: IdKind>(&self) -> Result<Id<K>, Refusal> {
        query::path_id(self.ids.first().map_or("", String::as_str))
    }
}

/// One page of a list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub struct List<T> {
    pub object: ListWord,
    pub data: Vec<T>,
    pub has_next: bool,
}

crate::string_enum!(
    /// The type discriminator of lists.
    ListWord { List "list" }
);

impl<T> List<T> {
    pub const fn new(data: Vec<T>, has_next: bool) -> List<T> {
        List { object: ListWord::List, data, has_next }
    }
    /// Turns the rows of a page into views.
    pub fn map<R>(
        rows: (Vec<R>, bool),
        mut view: impl FnMut(R) -> Result<T, StoreError>,
    ) -> Result<List<T>, StoreError> {
        let data = rows.0.into_iter().map(&mut view).collect::<Result<_, _>>()?;
        Ok(List::new(data, rows.1))
    }
}

/// The work of one request. It may run more than once (see `Store::write`), so it must not consume
/// what it needs.
pub type RequestWork = Box<dyn FnMut(&mut Context<'_>) -> Result<Answer, OperationError> + Send>;
/// Makes a request's work from the body and the [`ExtraChecks`]. This happens before the
/// transaction, outside the write lane.
type Prepare = Box<dyn Fn(Result<&Node, Refusal>, ExtraChecks) -> RequestWork + Send + Sync>;

/// The checks of a body beside those of its form.
#[derive(Default)]
pub struct ExtraChecks {
    /// What [`FormCheck`] found wrong for this caller.
    pub entries: Vec<RefusalEntry>,
    /// The check that needs the account's time, which only the transaction knows.
    pub timed_check: Option<TimedCheck>,
}

/// A check of a body beside those of its form: a rule about several fields, or one that depends on
/// the settings of the caller's mode, such as which chain is accepted.
pub type FormCheck = fn(&Services, Scope, &Node) -> Vec<RefusalEntry>;

/// Announces to a transaction what the work will look up.
pub type Prefetch = Box<dyn Fn(&mut dyn Tx, Scope) -> Result<(), StoreError> + Send>;
/// Makes a [`Prefetch`] from a parsed body; `None` if the body's form is wrong.
type PreparePrefetch = Box<dyn Fn(&Node) -> Option<Prefetch> + Send + Sync>;

/// A request body's name and schema, for the OpenAPI document.
pub struct BodyDoc {
    pub name: &'static str,
    pub schema: Value,
    pub is_required: bool,
}

/// The first path segment after `/v1`, which permissions name, and what is found there.
#[derive(Clone, Copy)]
pub struct ResourcePath {
    pub name: &'static str,
    /// A sentence for the OpenAPI document.
    pub description: &'static str,
}

pub struct Route {
    pub verb: Verb,
    /// With `{id}` for the identifier.
    pub path: &'static str,
    pub summary: &'static str,
    pub prepare: Prepare,
    pub cost: Cost,
    /// For a POST with [`Cost::Expensive`]: whether this body makes the request expensive.
    pub is_expensive: fn(&Node) -> bool,
    pub body: Option<BodyDoc>,
    pub list: Option<(ObjectKind, &'static [Filter])>,
    /// Query parameters of a route that is no list.
    pub parameters: &'static [Filter],
    pub response: fn(&mut SchemaGenerator) -> Schema,
    /// Whether the answer can also be a PDF.
    pub answers_pdf: bool,
    /// Whether the answer can also be CSV.
    pub answers_csv: bool,
    /// Whether the parameter `wait` delays the answer while the page has no objects.
    pub waits: bool,
    /// Whether it changes the row of the caller's API key, so that this node must read the row
    /// again.
    pub renews_caller: bool,
    /// Error codes in addition to those that every route of its kind can answer.
    pub codes: &'static [Code],
    pub form_check: Option<FormCheck>,
    /// Makes the check of a body that depends on the account's time. The function answers `None` if
    /// nothing in the body needs one.
    pub timed_check: Option<fn(&Node) -> Option<TimedCheck>>,
    /// The slow work before the transaction opens, such as a question to the outside world.
    pub preflight: Option<Preflight>,
    /// Announces what the work looks up by identifiers in the body, so that PostgreSQL gets these
    /// queries together with the claim.
    pub prefetch: Option<PreparePrefetch>,
    /// Paths that callers POST to by mistake, and what the refusal then says.
    pub guesses: Option<Guesses>,
}

/// Requests that many callers try first, and what the refusal tells them.
#[derive(Clone, Copy)]
pub struct Guesses {
    /// Paths of POSTs, in which `{id}` stands for any part.
    pub paths: &'static [&'static str],
    /// How to do it instead, in whole sentences.
    pub way: &'static str,
}

impl Route {
    /// A route that answers a `T` and has defaults for the rest; each kind of route sets its own.
    fn answering<T: JsonSchema>(verb: Verb, path: &'static str, summary: &'static str) -> Route {
        Route {
            verb,
            path,
            summary,
            prepare: Box::new(|_, _| {
                Box::new(|_| Err(StoreError::Broken("a route without work".into()).into()))
            }),
            cost: Cost::Point,
            is_expensive: |_| true,
            body: None,
            list: None,
            parameters: &[],
            response: |generator| generator.subschema_for::<T>(),
            answers_pdf: false,
            answers_csv: false,
            waits: false,
            renews_caller: false,
            codes: &[],
            form_check: None,
            timed_check: None,
            preflight: None,
            prefetch: None,
            guesses: None,
        }
    }
    /// `<first path segment after /v1>:read|write`.
    pub fn permission(&self) -> (&'static str, &'static str) {
        let resource = self.path.trim_start_matches("/v1/").split('/').next().unwrap_or("");
        (resource, if self.verb == Verb::Get { "read" } else { "write" })
    }
    pub fn is_test_helper(&self) -> bool {
        self.path.starts_with("/v1/test_helpers/")
    }
    pub fn codes(mut self, codes: &'static [Code]) -> Route {
        self.codes = codes;
        self
    }
    /// Adds advice to the refusal of a POST to one of these paths.
    pub fn guessed(mut self, guesses: Guesses) -> Route {
        self.guesses = Some(guesses);
        self
    }
    /// Lets a caller wait until the page has an object. The list's filters must have `query::WAIT`.
    pub fn waiting(mut self) -> Route {
        self.waits = true;
        self
    }
    /// Makes this node read the row of the caller's API key again for the next request.
    pub fn renewing_caller(mut self) -> Route {
        self.renews_caller = true;
        self
    }
    /// Adds a check of the body. Its findings are told together with those of the form.
    pub fn checking_form(mut self, check: FormCheck) -> Route {
        self.form_check = Some(check);
        self
    }
    /// Adds a check of the body by the account's time. Its finding is told with the others.
    pub fn checking_form_by_time(mut self, check: fn(&Node) -> Option<TimedCheck>) -> Route {
        self.timed_check = Some(check);
        self
    }
    /// Adds a preflight step; `http::preflight` says when it runs.
    pub fn preflight<F: Form>(
        mut self,
        preflight: fn(Asking, F) -> Option<PreflightFuture>,
    ) -> Route {
        self.preflight = Some(Box::new(move |asking, body| {
            F::read_body(body, Vec::new()).ok().and_then(|form| preflight(asking, form))
        }));
        self
    }
    /// For a POST that writes much if its body says so. In each process and mode, an account runs
    /// one of these, or one report, at a time.
    pub fn one_at_a_time(mut self, is_expensive: fn(&Node) -> bool) -> Route {
        self.cost = Cost::Expensive;
        self.is_expensive = is_expensive;
        self
    }
    /// Announces what the work will look up, with [`Tx::prefetch`].
    pub fn prefetching<F: Form>(
        mut self,
        prefetch: fn(&mut dyn Tx, Scope, &F) -> Result<(), StoreError>,
    ) -> Route {
        self.prefetch = Some(Box::new(move |body| {
            let form = F::read_body(body, Vec::new()).ok()?;
            Some(Box::new(move |tx, scope| prefetch(tx, scope, &form)))
        }));
        self
    }
}

/// A view as JSON.
pub fn json<T: Serialize>(view: &T) -> Result<Vec<u8>, OperationError> {
    Ok(serde_json::to_vec(view)
        .map_err(|error| StoreError::Broken(format!("an answer does not serialise: {error}")))?)
}

fn json_answer<T: Serialize>(view: &T, holds_secret: bool) -> Result<Answer, OperationError> {
    Ok(Answer {
        http_status: 200,
        content_type: idempotency::JSON,
        body: json(view)?,
        holds_secret,
    })
}

/// Reads an object by a route without query parameters. A missing object is answered before the
/// query is judged, everything else after it.
fn without_query<T>(
    context: &mut Context<'_>,
    read: fn(&mut Context<'_>) -> Result<T, OperationError>,
) -> Result<T, OperationError> {
    let found = read(context);
    let is_missing = |failure: &OperationError| {
        matches!(failure,
        OperationError::Refused(refusal) if refusal.http_status() == 404)
    };
    if !found.as_ref().is_err_and(is_missing) {
        query::none(context.raw_query)?;
    }
    found
}

/// A GET without query parameters. An object in the path is looked up before the query is judged.
pub fn get<T: Serialize + JsonSchema + 'static>(
    path: &'static str,
    summary: &'static str,
    read: fn(&mut Context<'_>) -> Result<T, OperationError>,
) -> Route {
    Route {
        prepare: Box::new(move |_, _| {
            Box::new(move |context| json_answer(&without_query(context, read)?, false))
        }),
        ..Route::answering::<T>(Verb::Get, path, summary)
    }
}

/// A GET with parameters of its own.
pub fn get_with<T: Serialize + JsonSchema + 'static>(
    path: &'static str,
    summary: &'static str,
    parameters: &'static [Filter],
    read: fn(&mut Context<'_>, &[(&'static str, FilterValue)]) -> Result<T, OperationError>,
) -> Route {
    Route {
        prepare: Box::new(move |_, _| {
            Box::new(move |context| {
                let values = query::values(context.raw_query, parameters)?;
                json_answer(&read(context, &values)?, false)
            })
        }),
        cost: Cost::Scan,
        parameters,
        ..Route::answering::<T>(Verb::Get, path, summary)
    }
}

/// An answer that can also be sent as a PDF.
pub trait PdfAnswer: Serialize + JsonSchema + 'static {
    fn to_pdf(&self) -> Result<Vec<u8>, StoreError>;
}

/// A GET of a document as JSON, or as a PDF if the client prefers it. Making a PDF takes
/// milliseconds, so it runs on a thread that may block.
pub fn document<T: PdfAnswer>(
    path: &'static str,
    summary: &'static str,
    read: fn(&mut Context<'_>) -> Result<T, OperationError>,
) -> Route {
    Route {
        prepare: Box::new(move |_, _| {
            Box::new(move |context| {
                let document = without_query(context, read)?;
                if context.accepts_pdf {
                    return Ok(Answer {
                        http_status: 200,
                        content_type: idempotency::PDF,
                        body: document.to_pdf()?,
                        holds_secret: false,
                    });
                }
                json_answer(&document, false)
            })
        }),
        cost: Cost::Scan,
        answers_pdf: true,
        ..get::<T>(path, summary, read)
    }
}

/// A GET with parameters of its own, whose handler answers a content type and the bytes: JSON or
/// CSV.
pub fn report<T: Serialize + JsonSchema + 'static>(
    path: &'static str,
    summary: &'static str,
    parameters: &'static [Filter],
    read: fn(
        &mut Context<'_>,
        &[(&'static str, FilterValue)],
    ) -> Result<(&'static str, Vec<u8>), OperationError>,
) -> Route {
    Route {
        prepare: Box::new(move |_, _| {
            Box::new(move |context| {
                let values = query::values(context.raw_query, parameters)?;
                let (content_type, body) = read(context, &values)?;
                Ok(Answer { http_status: 200, content_type, body, holds_secret: false })
            })
        }),
        cost: Cost::Expensive,
        parameters,
        answers_csv: true,
        ..Route::answering::<T>(Verb::Get, path, summary)
    }
}

/// A GET of a page. `locate` finds the object in the path, if there is one, before the query is
/// judged.
pub fn list<L: 'static, T: Serialize + JsonSchema + 'static>(
    path: &'static str,
    summary: &'static str,
    cursor: ObjectKind,
    filters: &'static [Filter],
    locate: fn(&mut Context<'_>) -> Result<L, OperationError>,
    read: fn(&mut Context<'_>, L, Page) -> Result<List<T>, OperationError>,
) -> Route {
    Route {
        prepare: Box::new(move |_, _| {
            Box::new(move |context| {
                let located = locate(context)?;
                let page = query::page(context.raw_query, cursor, filters)?;
                let list = read(context, located, page)?;
                context.is_empty_page = list.data.is_empty();
                json_answer(&list, false)
            })
        }),
        cost: Cost::Scan,
        list: Some((cursor, filters)),
        ..Route::answering::<List<T>>(Verb::Get, path, summary)
    }
}

/// A POST. In this order: the object in the path, the query, the body's form, then the work.
pub fn post<F: Form, L: 'static, T: Serialize + JsonSchema + 'static>(
    path: &'static str,
    summary: &'static str,
    locate: fn(&mut Context<'_>) -> Result<L, OperationError>,
    act: fn(&mut Context<'_>, L, F) -> Result<T, OperationError>,
) -> Route {
    post_with_secret(path, summary, false, locate, act)
}

/// Like [`post`]. With `holds_secret`, the answer shows a secret, so the stored answer is sealed.
pub fn post_with_secret<F: Form, L: 'static, T: Serialize + JsonSchema + 'static>(
    path: &'static str,
    summary: &'static str,
    holds_secret: bool,
    locate: fn(&mut Context<'_>) -> Result<L, OperationError>,
    act: fn(&mut Context<'_>, L, F) -> Result<T, OperationError>,
) -> Route {
    Route {
        prepare: Box::new(move |body, extra| {
            let form = body.and_then(|node| F::read_body(node, extra.entries));
            Box::new(move |context| {
                let located = locate(context)?;
                query::none(context.raw_query)?;
                let timed_check = extra.timed_check.as_ref();
                let timed = timed_check.map_or(Ok(()), |check| check(context.now));
                let form = Refusal::both(form.clone(), timed)?;
                json_answer(&act(context, located, form)?, holds_secret)
            })
        }),
        body: Some(BodyDoc {
            name: F::NAME,
            schema: <F as Form>::schema(),
            is_required: !F::takes_empty_body(),
        }),
        ..Route::answering::<T>(Verb::Post, path, summary)
    }
}

/// A DELETE: idempotent by itself, so it takes no idempotency key.
pub fn delete<T: Serialize + JsonSchema + 'static>(
    path: &'static str,
    summary: &'static str,
    act: fn(&mut Context<'_>) -> Result<T, OperationError>,
) -> Route {
    Route { verb: Verb::Delete, ..get(path, summary, act) }
}

/// The `locate` of routes without an object in the path.
pub fn nothing(_: &mut Context<'_>) -> Result<(), OperationError> {
    Ok(())
}

/// The `locate` of creations that a live key may request only once live mode is configured
/// (beneficiaries, senders, quote locks, transfers).
pub fn refuse_live_key_before_setup(context: &mut Context<'_>) -> Result<(), OperationError> {
    if context.scope().livemode() && !context.services.is_live_configured() {
        let message = "Live mode is not configured on this server yet: live keys can read now, \
                       and can create once the operator has set it up.";
        return Err(Refusal::new(Code::ActionUnauthorized, message).into());
    }
    Ok(())
}
