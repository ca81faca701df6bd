//! What the payer's page and the verification page share: style, script, the issuer's name, logo
//! and colour, and the headers that protect a page whose address is secret.

use std::sync::LazyLock;

use base64::Engine;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, VARY};
use http::{HeaderName, HeaderValue};
use sha2::{Digest, Sha256};

use crate::http::dispatch::Reply;
use crate::issuers::{Issuer, Logo};

pub const CSS: &str = concat!(
    include_str!("../../assets/tokens.css"),
    "@media (prefers-color-scheme: dark) {\n",
    include_str!("../../assets/dark.css"),
    "}\n",
    include_str!("../../assets/parts.css"),
    include_str!("payer/page.css")
);
pub const JS: &str = include_str!("payer/page.js");

/// The top of a page: the issuer's name, logo and colour.
pub struct PageFrame {
    pub issuer_name: String,
    /// The logo as a `data:` address.
    pub logo: Option<String>,
    /// The issuer's colour, as the text of a second style sheet.
    pub colours: Option<String>,
    /// Whether the page has one narrow column.
    pub is_narrow: bool,
}

impl PageFrame {
    pub fn of(issuer: &Issuer) -> PageFrame {
        let colours = issuer
            .colour
            .map(|colour| format!(":root{{--brand:{colour};--on-brand:{}}}", colour.text_on_it()));
        let logo = issuer.logo.as_ref().map(Logo::data_url);
        PageFrame { issuer_name: issuer.name.clone(), logo, colours, is_narrow: false }
    }
    pub fn narrow(issuer: &Issuer) -> PageFrame {
        PageFrame { is_narrow: true, ..PageFrame::of(issuer) }
    }
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(digest))
}

static SCRIPT_HASH: LazyLock<String> = LazyLock::new(|| hash(JS));
static STYLE_HASH: LazyLock<String> = LazyLock::new(|| hash(CSS));

/// The Content-Security-Policy. The page loads no file; its script asks this server for the state.
/// Styles and script are in the page, and the policy allows them by their hashes. `data:` is for
/// the logo, and for the empty icon, which keeps browsers from asking for `/favicon.ico`.
fn policy(colours: Option<&str>) -> String {
    let colours = colours.map(|style| format!(" {}", hash(style))).unwrap_or_default();
    format!(
        "default-src 'none'; script-src {}; style-src {}{colours}; img-src data:; connect-src \
         'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        *SCRIPT_HASH, *STYLE_HASH
    )
}

/// Sets the headers of a page whose address is secret. They forbid copies in caches and search
/// engines, and referrers, and they set the Content-Security-Policy.
pub fn protect(reply: &mut Reply, frame: Option<&PageFrame>) {
    let headers = reply.headers_mut();
    let policy = policy(frame.and_then(|frame| frame.colours.as_deref()));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'")),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(
        HeaderName::from_static("x-robots-tag"),
        HeaderValue::from_static("noindex, nofollow"),
    );
    headers.insert(
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    );
    headers.insert(VARY, HeaderValue::from_static("accept, accept-language"));
}
