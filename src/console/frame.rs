//! The frame of a page: its head, navigation, notice and form token.

use askama::Template;

use super::files;
use super::nav::{self, MenuLine};
use super::texts::Words;
use super::visit::{ConsoleRequest, HTML, PageOutcome, Visit};
use crate::http::reply;
use crate::staff::OperatorIdentity;
use crate::staff::sessions::Session;

/// What every page shows around its content. Templates call it `frame`, and its texts `frame.t`.
pub struct Frame<'a> {
    pub t: &'static Words,
    pub operator: Option<&'a OperatorIdentity>,
    /// `auto`, `light` or `dark`.
    pub theme: &'static str,
    /// The section of this page. If the navigation has a line for it, that line is marked.
    pub section: &'static str,
    pub lines: Vec<&'static MenuLine>,
    pub notice: Option<&'static str>,
    pub is_live_configured: bool,
    /// The path and query of this page.
    pub path: &'a str,
    token: String,
}

impl<'a> Frame<'a> {
    pub(super) fn of(
        asked: &'a ConsoleRequest,
        session: Option<&'a Session>,
        section: &'static str,
    ) -> Frame<'a> {
        let operator = session.map(|session| &session.operator);
        let notice = asked.query("notice");
        let notice = if notice.starts_with("notice.") { asked.words.find(notice) } else { None };
        Frame {
            t: asked.words,
            operator,
            theme: session.map_or("auto", |session| session.theme.as_str()),
            section,
            lines: operator.map_or_else(Vec::new, |operator| nav::lines(operator.role)),
            notice,
            is_live_configured: asked.app.services.is_live_configured(),
            path: &asked.path_and_query,
            token: asked.token(),
        }
    }

    /// The hidden field of every form that changes something.
    pub fn token_field(&self) -> String {
        format!("<input type=\"hidden\" name=\"token\" value=\"{}\">", self.token)
    }
    pub fn css_path(&self) -> String {
        files::path("console.css")
    }
    /// The path of the dark theme's style sheet and its media query; `None` in the light theme.
    pub fn dark(&self) -> Option<(String, &'static str)> {
        let media = match self.theme {
            "light" => return None,
            "dark" => "all",
            _ => "(prefers-color-scheme: dark)",
        };
        Some((files::path("dark.css"), media))
    }
    pub fn htmx_path(&self) -> String {
        files::path("htmx.js")
    }
    pub fn js_path(&self) -> String {
        files::path("console.js")
    }
}

impl Visit {
    /// The frame of this page, which belongs to `section` of the console.
    pub fn frame(&self, section: &'static str) -> Frame<'_> {
        Frame::of(&self.asked, Some(&self.session), section)
    }
}

/// A page, or a part of one.
pub fn draw(template: &impl Template) -> PageOutcome {
    Ok(reply::reply(200, HTML, template.render()?.into_bytes()))
}
