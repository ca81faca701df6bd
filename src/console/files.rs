//! The style sheet and the scripts, from the binary. Their addresses name their content, so that
//! browsers keep them and never mix those of two versions.

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
    mark: String,
}

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let file = |name, content_type, body: &'static str| {
        let digest = Sha256::digest(body.as_bytes());
        File { name, content_type, body, mark: hex::encode(&digest[..8]) }
    };
    vec![
        file("console.css", CSS, include_str!("console.css")),
        // htmx 2.0.11 as published (npm htmx.org, dist/htmx.min.js); its licence stands beside it.
        file("htmx.js", JS, include_str!("assets/htmx.min.js")),
        file("console.js", JS, include_str!("console.js")),
    ]
});

const FOLDER: &str = "/console/static/";

/// Where a file is, for pages.
pub fn path(name: &str) -> String {
    let mark = FILES.iter().find(|file| file.name == name).map_or("", |file| &file.mark);
    format!("{FOLDER}{mark}/{name}")
}

/// The file of a path; `None` where there is none of this content.
pub fn find(path: &str) -> Option<Reply> {
    let (mark, name) = path.strip_prefix(FOLDER)?.split_once('/')?;
    let file = FILES.iter().find(|file| file.name == name && file.mark == mark)?;
    Some(kept(file.content_type, file.body.as_bytes(), &file.mark))
}

/// A file from the binary, which a browser may keep under the address that names its content.
fn kept(content_type: &'static str, body: &'static [u8], mark: &str) -> Reply {
    let mut reply = reply::reply(200, content_type, body.to_vec());
    reply::set_header(&mut reply, ETAG, &format!("\"{mark}\""));
    reply
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    reply
}
