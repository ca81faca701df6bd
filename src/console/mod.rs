//! The operator's console: pages below `/console`, on a listener of their own.
//!
//! The server draws the pages, and they work without scripts; htmx only replaces parts of a page.
//! No page loads anything from elsewhere or has inline styles or scripts, and the
//! Content-Security-Policy allows neither. `answer.rs` judges a request in this order: host,
//! origin and content type of a change, session, route and method, role, second factor, form token.
//!
//! # How to add a page
//!
//! 1. A row in `routes.rs`: `get("/console/transfers/{id}", Role::Viewer, transfers::one)`, or
//!    `post(…)` for a change. The role is the lowest that may use it; nobody without a session
//!    gets there. A part that htmx asks for again and again is `.polled()`: such requests do not
//!    prolong the session. A change also needs its row in the table of roles in docs/console.md.
//! 2. A handler in `pages/`: `pub async fn one(visit: Visit) -> PageOutcome`. A `Visit` has the
//!    session (`visit.operator()`), what the path and the query say (`visit.path(0)`,
//!    `visit.query("state")`), the fields of a form (`visit.field("reason")`), the texts
//!    (`visit.words`), the store (`visit.app.store`) and the services. It reads with
//!    `visit.app.store.read(Cost::Scan, move |tx| …)` and decides with
//!    `visit.app.store.write(…)`. The console has no SQL. A query belongs in the `rows.rs` of
//!    the room whose tables it reads, or in `oversight/`.
//! 3. The page as data: a `ConsolePage` of sections with tables, facts and forms (`blocks/`), and
//!    `page.draw(&visit)` at the end. All pages in `pages/` are made so, except that of a new key.
//!
//!    A page that is unlike the others has a template of its own, `src/console/NAME.html`. It
//!    begins with `{% extends "console/layout.html" %}` and fills the blocks `title` and
//!    `content`. Its struct has `frame: Frame<'a>`, from `visit.frame("section")`, and the handler
//!    ends with `draw(&template)`. A part of a page is a template that extends nothing. Every form
//!    that changes something is `<form method="post">` with `{{ frame.token_field()|safe }}` in it;
//!    links and forms name paths of this server alone. No `style=` and no `on…=`: the policy
//!    forbids them.
//! 4. Words: `{{ frame.t.get("transfers.title") }}`, or with values
//!    `{{ frame.t.with("transfer.attempts", [("count", count.as_str())]) }}`. Each key stands in
//!    `texts/en.toml` and in the files of the other languages; a test compares the files with one
//!    another and with the keys that templates and code name.
//! 5. After a change: `visit.back_to("/console/transfers", "notice.decided")` sends the browser to
//!    that page, which shows the notice. A refusal that a person should read is
//!    `Failure::told(…)`, which answers 409 with that text.
//! 6. A line in `nav.rs`, if the navigation should lead to the page.
//! 7. Tests: `tests/http/console_roles.rs` asks every route of the table with every role, so it
//!    tests a new row too. `tests/http/console_pages.rs` tests what pages show.

mod account;
mod alarms;
mod answer;
mod approvals;
mod blocks;
mod cookies;
mod files;
mod form;
mod frame;
#[cfg(test)]
mod literals;
mod nav;
pub mod openid;
mod origin;
mod pages;
pub mod proxies;
mod second_factor;
mod refusals;
mod reveal;
pub mod route;
pub mod routes;
mod runbooks;
mod service_texts;
mod sign_in;
mod templates;
pub mod texts;
mod visit;
mod watch;

use std::sync::Arc;

pub use answer::{answer, refuse};
pub use frame::{Frame, draw};
pub use visit::{ConsoleRequest, Failure, PageOutcome, Visit};

use crate::app_state::AppState;
use crate::kernel::id::Minter;
use crate::staff::comparisons::Comparisons;
use openid::OpenId;
use origin::Origins;
use proxies::TrustedProxies;
use routes::RouteTable;

/// The console as its listener serves it.
pub struct Console {
    pub app: Arc<AppState>,
    origins: Origins,
    /// The reverse proxies whose `X-Forwarded-For` is believed.
    proxies: TrustedProxies,
    table: RouteTable,
    request_ids: Minter,
    watch: watch::OverviewWatch,
    comparisons: Arc<Comparisons>,
    /// Whether an operator without a second factor gets only the routes of their own account
    /// ([`route::RouteAccess::SignedIn`]), to set one up.
    requires_second_factor: bool,
    /// The provider at which operators may sign in instead of with a password.
    openid: Option<OpenId>,
}

impl Console {
    /// `url` is the console's address as browsers see it, such as `https://console.example`. Live
    /// mode requires a second factor, whatever `requires_second_factor` says.
    pub fn new(
        app: Arc<AppState>,
        url: &str,
        requires_second_factor: bool,
    ) -> Result<Console, String> {
        let requires_second_factor = requires_second_factor || app.services.is_live_configured();
        Ok(Console {
            app,
            origins: Origins::of(url)?,
            proxies: TrustedProxies::default(),
            table: RouteTable::new(routes::routes())?,
            request_ids: Minter::above(0),
            watch: watch::OverviewWatch::default(),
            comparisons: Arc::default(),
            requires_second_factor,
            openid: None,
        })
    }

    /// Believes the `X-Forwarded-For` of these proxies.
    pub fn with_proxies(self, proxies: TrustedProxies) -> Console {
        Console { proxies, ..self }
    }

    /// Lets operators sign in at an OpenID Connect provider too. `Err` if a second factor is
    /// required and the settings do not say that the provider asks for one.
    pub fn with_openid(mut self, openid: Option<OpenId>) -> Result<Console, String> {
        let has_second_factor =
            openid.as_ref().is_none_or(|openid| openid.settings.provider_asks_second_factor());
        if self.requires_second_factor && !has_second_factor {
            return Err(openid::settings::SECOND_FACTOR_NEEDED.into());
        }
        self.openid = openid;
        Ok(self)
    }
}
