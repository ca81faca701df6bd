//! The style sheets and the scripts, which are in the binary. Each file's path has a digest of its
//! content, so that browsers can keep it and do not mix the files of two versions.

use std::sync::LazyLock;

use http::HeaderValue;
use http::header::{CACHE_CONTROL, ETAG};
use sha2::{Digest, Sha256};

use crate::http::reply::{self, Reply};
use crate::kernel::hex;

struct File {
    name: &'static str,
    content_type: &'static str,
    body: &'static str,
    digest: String,
}

/// The style sheet. The pages for payers share the first two parts.
const STYLE_SHEET: &str = concat!(
    include_str!("../../assets/tokens.css"),
    include_str!("../../assets/parts.css"),
    include_str!("console.css")
);

const CSS_TYPE: &str = "text/css; charset=utf-8";
const JS_TYPE: &str = "text/javascript; charset=utf-8";

static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let file = |name, content_type, body: &'static str| {
        let digest = Sha256::digest(body.as_bytes());
        File { name, content_type, body, digest: hex::encode(&digest[..8]) }
    };
    vec![
        file("console.css", CSS_TYPE, STYLE_SHEET),
        file("dark.css", CSS_TYPE, include_str!("../../assets/dark.css")),
        // htmx 2.0.11 as published (npm htmx.org, dist/htmx.min.js); its licence stands beside it.
        file("htmx.js", JS_TYPE, include_str!("assets/htmx.min.js")),
        file("console.js", JS_TYPE, include_str!("console.js")),
    ]
});

const FOLDER: &str = "/console/static/";

/// The path of a file, for the pages that load it.
pub fn path(name: &str) -> String {
    let digest = FILES.iter().find(|file| file.name == name).map_or("", |file| &file.digest);
    format!("{FOLDER}{digest}/{name}")
}

/// The file at a path; `None` if there is none, or the digest is of another version.
pub fn find(path: &str) -> Option<Reply> {
    let (digest, name) = path.strip_prefix(FOLDER)?.split_once('/')?;
    let file = FILES.iter().find(|file| file.name == name && file.digest == digest)?;
    Some(kept(file.content_type, file.body.as_bytes(), &file.digest))
}

/// A file as an answer that a browser may keep for a year.
fn kept(content_type: &'static str, body: &'static [u8], digest: &str) -> Reply {
    let mut reply = reply::reply(200, content_type, body.to_vec());
    reply::set_header(&mut reply, ETAG, &format!("\"{digest}\""));
    reply
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    reply
}
