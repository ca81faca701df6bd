//! Reads a request: its API key, `Accept`, `Idempotency-Key` and body.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;

use super::body::{self, BODY_BYTES_MAX, Node};
use super::connections::Activity;
use super::route::Route;
use crate::kernel::{Code, OperationError, Refusal};
use crate::keys::Presented;
use crate::store::idempotency;

/// How long a body may take to arrive.
pub const BODY_SECONDS_MAX: u64 = 10;
/// The length of an `Idempotency-Key`, in characters.
pub const IDEMPOTENCY_KEY_LENGTH_MIN: usize = 16;
pub const IDEMPOTENCY_KEY_LENGTH_MAX: usize = 64;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The value of a header that was sent exactly once.
pub fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then_some(first)
}

/// Headers in which other services take their keys.
const OTHER_KEY_HEADERS: [&str; 3] = ["X-Api-Key", "Api-Key", "Apikey"];

/// How a request presents its key.
pub fn presented(headers: &HeaderMap) -> Presented<'_> {
    if let Some(value) = single(headers, &AUTHORIZATION) {
        return Presented::Authorization(value.as_bytes());
    }
    if headers.contains_key(AUTHORIZATION) {
        return Presented::Several;
    }
    let other = OTHER_KEY_HEADERS.into_iter().find(|name| headers.contains_key(*name));
    other.map_or(Presented::Nothing, Presented::OtherHeader)
}

/// Whether the answer is a PDF: if `Accept` names PDF and prefers it to JSON, the default.
pub fn accepts_pdf(headers: &HeaderMap) -> bool {
    let (pdf, json) = qualities(headers, idempotency::PDF, idempotency::JSON);
    pdf.is_some_and(|pdf| pdf > json.unwrap_or(0.0))
}

/// Whether the answer is Markdown: if `Accept` names Markdown, unless it prefers HTML, the default.
/// No browser names Markdown.
pub fn accepts_markdown(headers: &HeaderMap) -> bool {
    let (markdown, page) = qualities(headers, "text/markdown", "text/html");
    markdown.is_some_and(|markdown| markdown > 0.0 && markdown >= page.unwrap_or(0.0))
}

/// The weight (RFC 9110, 12.5.1) of each of two types, if `Accept` names it.
fn qualities(headers: &HeaderMap, one: &str, other: &str) -> (Option<f32>, Option<f32>) {
    let accept: String = headers
        .get_all(http::header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect::<Vec<_>>()
        .join(",");
    let quality = |wanted: &str| {
        accept.split(',').find_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next()?;
            let quality = parts
                .find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")))
                .map_or(Some(1.0), |q| q.parse::<f32>().ok())?;
            name.eq_ignore_ascii_case(wanted).then_some(quality)
        })
    };
    (quality(one), quality(other))
}

/// Reads `Idempotency-Key`. One pair of quotes is taken off, so that the structured form of the
/// IETF draft works too.
pub fn idempotency_key(headers: &HeaderMap) -> Result<String, Refusal> {
    const NAME: &str = "Idempotency-Key";
    let refused = |code, message: String| Err(Refusal::field(code, NAME, message));
    let missing = || {
        format!(
            "The header {NAME} is required on every POST. Send {IDEMPOTENCY_KEY_LENGTH_MIN} to \
             {IDEMPOTENCY_KEY_LENGTH_MAX} characters that no other operation has, such as a new \
             UUID, and the same ones when you retry it."
        )
    };
    let mut values = headers.get_all(&IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else {
        return refused(Code::ParameterEmpty, missing());
    };
    if values.next().is_some() {
        return refused(
            Code::ParameterValueInvalid,
            format!("The header {NAME} is given more than once."),
        );
    }
    let bytes = value.as_bytes().trim_ascii();
    if !bytes.iter().all(|byte| (0x20..0x7F).contains(byte)) {
        return refused(
            Code::ParameterValueInvalid,
            format!("The header {NAME} must consist of printable ASCII characters."),
        );
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&text);
    match text.len() {
        0 => refused(Code::ParameterEmpty, missing()),
        length if length < IDEMPOTENCY_KEY_LENGTH_MIN => refused(
            Code::ParameterMinLengthInvalid,
            format!(
                "The header {NAME} must have at least {IDEMPOTENCY_KEY_LENGTH_MIN} characters."
            ),
        ),
        length if length > IDEMPOTENCY_KEY_LENGTH_MAX => refused(
            Code::ParameterMaxLengthInvalid,
            format!("The header {NAME} must have at most {IDEMPOTENCY_KEY_LENGTH_MAX} characters."),
        ),
        _ => Ok(text.to_owned()),
    }
}

/// Reads a body within its limits. A body that is too large, too slow or cut off ends the
/// connection, and its refusal is not stored. While the body is awaited, the connection counts as
/// idle and may be closed to make room for another: otherwise slow bodies would keep every place.
pub async fn read_body<B>(head: &Parts, incoming: B) -> Result<Bytes, OperationError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let too_large = || {
        Refusal::new(
            Code::RequestBodyInvalid,
            format!("The body is larger than {BODY_BYTES_MAX} bytes."),
        )
    };
    let declared = head
        .headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok())
        .and_then(|length| length.parse::<u64>().ok());
    if declared.is_some_and(|length| length > BODY_BYTES_MAX as u64) {
        return Err(too_large().into());
    }
    let activity = head.extensions.get::<Activity>();
    activity.inspect(|activity| activity.end());
    let collected = tokio::time::timeout(
        Duration::from_secs(BODY_SECONDS_MAX),
        Limited::new(incoming, BODY_BYTES_MAX).collect(),
    )
    .await;
    activity.inspect(|activity| activity.begin());
    match collected {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large().into()),
        Ok(Err(_)) => {
            Err(Refusal::new(Code::RequestBodyInvalid, "The body did not arrive whole.").into())
        }
        Err(_) => Err(Refusal::new(
            Code::RequestBodyInvalid,
            format!("The body did not arrive within {BODY_SECONDS_MAX} s."),
        )
        .into()),
    }
}

/// The body as a tree. An empty body counts as `{}` if the form takes one; its content type then
/// does not matter.
pub fn parse_body(route: &Route, headers: &HeaderMap, bytes: &[u8]) -> Result<Node, Refusal> {
    if bytes.is_empty() && route.body.as_ref().is_some_and(|body| !body.is_required) {
        return Ok(Node::Object(Vec::new()));
    }
    let content_type =
        single(headers, &CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let media_type = content_type.split(';').next().unwrap_or("").trim();
    if !media_type.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::new(
            Code::RequestBodyInvalid,
            "Send the body as JSON, with Content-Type: application/json.",
        ));
    }
    body::parse(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_counts_in_either_case() {
        let accepting = |text: &'static str| {
            HeaderMap::from_iter([(http::header::ACCEPT, http::HeaderValue::from_static(text))])
        };
        for (accept, is_pdf) in [
            ("application/pdf;q=0.1, application/json", false),
            ("application/pdf; Q=0.1, application/json;q=0.5", false),
            ("application/pdf;q=0.9,application/json;Q=0.2", true),
            ("Application/PDF", true),
        ] {
            assert_eq!(accepts_pdf(&accepting(accept)), is_pdf, "{accept}");
        }
    }
}
