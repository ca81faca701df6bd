//! What HTTP/1.1 demands of a request before anything else, and the error shape for refusals by the
//! connection itself.
//!
//! hyper answers a head that it cannot parse with only a status. [`ErrorShapeStream`] stands
//! between hyper and the socket, keeps what arrived since the last answer, and replaces hyper's
//! answer by one in the error shape. It does so if the head is recognisable as HTTP/1, or if an
//! earlier request on the connection was answered.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::{HOST, TRANSFER_ENCODING};
use http::{HeaderMap, Request, Version};
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::reply::Reply;
use crate::kernel::{Code, Refusal};

/// The most headers of a request, and the most bytes of its head.
pub const HEADERS_MAX: usize = 64;
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How many headers and bytes hyper parses: more than are accepted, so that a head which is not
/// much too long reaches [`judge_head`].
pub const HEADERS_PARSED_MAX: usize = 2 * HEADERS_MAX;
pub const HEAD_BYTES_PARSED_MAX: usize = 2 * HEAD_BYTES_MAX;

const MALFORMED: &str = "The request's head is not well-formed HTTP/1.1.";

/// Makes the answer to a request that is refused before it reaches a route.
pub type Refuse = Arc<dyn Fn(Refusal) -> Reply + Send + Sync>;

fn too_long(field_name: &str, message: impl Into<String>) -> Refusal {
    Refusal::field(Code::ParameterMaxLengthInvalid, field_name, message)
}

/// Judges a head that hyper parsed: its size, `Host` (RFC 9112, 3.2) and `Transfer-Encoding`, which
/// may only be `chunked` (RFC 9112, 6.1).
pub fn judge_head<B>(request: &Request<B>) -> Result<(), Refusal> {
    let headers = request.headers();
    let target_length = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let line_lengths = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    if headers.len() > HEADERS_MAX {
        let message = format!("The request has more than {HEADERS_MAX} headers.");
        return Err(too_long("headers", message));
    }
    if target_length + line_lengths.sum::<usize>() > HEAD_BYTES_MAX {
        let longest = headers.iter().max_by_key(|(_, value)| value.len());
        return Err(match longest {
            Some((name, value)) if value.len() > target_length => too_long(
                name.as_str(),
                format!("The request's head is larger than {HEAD_BYTES_MAX} bytes."),
            ),
            _ => target_too_long(request.uri().query().is_some()),
        });
    }
    judge_host(headers, request.version())?;
    let is_chunked = |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    if headers.get_all(TRANSFER_ENCODING).iter().any(|value| !is_chunked(value)) {
        let message = "Transfer-Encoding can only be chunked.";
        return Err(Refusal::field(Code::ParameterValueInvalid, "Transfer-Encoding", message));
    }
    Ok(())
}

fn target_too_long(has_query: bool) -> Refusal {
    let field_name = if has_query { "query" } else { "path" };
    let message = format!(
        "The {field_name} is too long: a request's line and headers have at most {HEAD_BYTES_MAX} \
         bytes."
    );
    too_long(field_name, message)
}

fn judge_host(headers: &HeaderMap, version: Version) -> Result<(), Refusal> {
    let refused = |code, message: &str| Err(Refusal::field(code, "Host", message));
    let mut values = headers.get_all(HOST).iter();
    let Some(value) = values.next() else {
        if version == Version::HTTP_10 {
            return Ok(());
        }
        return refused(Code::ParameterEmpty, "The header Host is required in HTTP/1.1.");
    };
    if values.next().is_some() {
        return refused(Code::ParameterValueInvalid, "The header Host is given more than once.");
    }
    let host = value.to_str().ok().and_then(|text| text.parse::<http::uri::Authority>().ok());
    match host {
        Some(host) if !host.as_str().contains('@') => Ok(()),
        _ => refused(
            Code::ParameterValueInvalid,
            "The header Host is not a valid host: send it as example.com or example.com:8080.",
        ),
    }
}

/// What is wrong with a head that hyper refused with this status; `None` if it is not HTTP/1, or
/// has no header that can be named.
fn recognise(head: &[u8], status: &[u8]) -> Option<Refusal> {
    let (line, rest) = split_line(head);
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target) = (words.next()?, words.next()?);
    let is_method = (1..=20).contains(&method.len()) && method.iter().all(u8::is_ascii_uppercase);
    let is_line_whole = rest.is_some();
    let is_http = match words.next() {
        Some(version) => version.starts_with(b"HTTP/1.") && words.next().is_none(),
        None => !is_line_whole,
    };
    if !is_method || !is_http || !(target.starts_with(b"/") || target.starts_with(b"http")) {
        return None;
    }
    if target.len() > HEAD_BYTES_MAX || (!is_line_whole && status != b"400") {
        return Some(target_too_long(target.contains(&b'?')));
    }
    let lines: Vec<(&str, &[u8])> = header_lines(rest.unwrap_or_default());
    if status == b"431" {
        if lines.len() > HEADERS_MAX {
            let message = format!("The request has more than {HEADERS_MAX} headers.");
            return Some(too_long("headers", message));
        }
        let (name, _) = lines.iter().max_by_key(|(_, value)| value.len())?;
        let message = format!("The request's head is larger than {HEAD_BYTES_MAX} bytes.");
        return Some(too_long(name, message));
    }
    let named = |wanted: &str| -> Vec<&[u8]> {
        let of_name = lines.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        of_name.map(|(_, value)| value.trim_ascii()).collect()
    };
    let lengths = named("content-length");
    let is_number = |value: &[u8]| {
        !value.is_empty() && value.len() < 19 && value.iter().all(u8::is_ascii_digit)
    };
    let is_length_broken = !lengths.iter().all(|value| is_number(value))
        || lengths.windows(2).any(|pair| pair[0] != pair[1]);
    let refused = |field_name: &str, message: &str| {
        Some(Refusal::field(Code::ParameterValueInvalid, field_name, message))
    };
    if is_length_broken {
        return refused("Content-Length", "Content-Length must be one whole number of bytes.");
    }
    if named("transfer-encoding").iter().any(|value| !value.eq_ignore_ascii_case(b"chunked")) {
        return refused("Transfer-Encoding", "Transfer-Encoding can only be chunked.");
    }
    Some(Refusal::new(Code::ParameterValueInvalid, MALFORMED))
}

/// The refusal of a head that hyper refused with this status, when the head itself is not at hand.
fn unknown_head(status: &[u8]) -> Refusal {
    match status {
        b"431" => Refusal::new(
            Code::ParameterMaxLengthInvalid,
            format!(
                "The request has more than {HEADERS_MAX} headers, or its head is larger than \
                 {HEAD_BYTES_MAX} bytes."
            ),
        ),
        _ => Refusal::new(Code::ParameterValueInvalid, MALFORMED),
    }
}

/// The first line without its end, and what follows it if it has an end.
fn split_line(bytes: &[u8]) -> (&[u8], Option<&[u8]>) {
    match bytes.iter().position(|byte| *byte == b'\n') {
        None => (bytes, None),
        Some(end) => (bytes[..end].trim_ascii_end(), Some(&bytes[end + 1..])),
    }
}

/// Names and values up to the end of the head, or of the part that arrived. Lines whose name is
/// not UTF-8 or longer than 64 bytes are left out.
fn header_lines(mut rest: &[u8]) -> Vec<(&str, &[u8])> {
    let mut lines = Vec::new();
    loop {
        let (line, after) = split_line(rest);
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        match std::str::from_utf8(name) {
            Ok(name) if !line.is_empty() && name.len() <= 64 => {
                lines.push((name, line.get(name.len() + 1..).unwrap_or_default()));
            }
            _ if line.is_empty() => return lines,
            _ => {}
        }
        match after {
            Some(after) => rest = after,
            None => return lines,
        }
    }
}

/// A stream on which hyper's own refusals are sent in the error shape.
pub struct ErrorShapeStream<S> {
    inner: S,
    refuse: Refuse,
    /// What arrived since the last answer, at most [`HEAD_BYTES_PARSED_MAX`].
    head: Vec<u8>,
    /// Whether an answer was sent already: then the peer speaks HTTP. Each answer empties `head`.
    /// So when hyper refuses a head that arrived before the last answer was sent, `head` does not
    /// have it.
    has_answered: bool,
    /// What is sent instead of hyper's bytes, and how much of it was sent.
    replacement: Option<(Vec<u8>, usize)>,
}

impl<S> ErrorShapeStream<S> {
    pub fn new(inner: S, refuse: Refuse) -> ErrorShapeStream<S> {
        ErrorShapeStream { inner, refuse, head: Vec::new(), has_answered: false, replacement: None }
    }

    /// The answer to send instead of these bytes, if they are a refusal by hyper itself: a whole
    /// head of a 4xx without a body, and without the `Request-Id` that every answer of ours has.
    fn replacement_for(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let status = bytes.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
        if status[0] != b'4' || !bytes.ends_with(b"\r\n\r\n") {
            return None;
        }
        let text = std::str::from_utf8(bytes).ok()?.to_ascii_lowercase();
        if text.contains("\r\nrequest-id:") {
            return None;
        }
        let refusal = recognise(&self.head, status)
            .or_else(|| self.has_answered.then(|| unknown_head(status)))?;
        let is_to_head = self.head.starts_with(b"HEAD ");
        Some(to_bytes((self.refuse)(refusal), is_to_head))
    }
}

/// An answer as it is sent, on a connection that ends with it. An answer to a HEAD has no body, but
/// says how long it would be (RFC 9110, 9.3.2).
fn to_bytes(reply: Reply, is_to_head: bool) -> Vec<u8> {
    let (parts, body) = reply.into_parts();
    let body = futures_util::FutureExt::now_or_never(body.collect());
    let body = body.and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
    let reason = parts.status.canonical_reason().unwrap_or("");
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", parts.status.as_u16()).into_bytes();
    for (name, value) in &parts.headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    let end = format!("connection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    bytes.extend_from_slice(end.as_bytes());
    if !is_to_head {
        bytes.extend_from_slice(&body);
    }
    bytes
}

impl<S: AsyncRead + Unpin> AsyncRead for ErrorShapeStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let room = HEAD_BYTES_PARSED_MAX.saturating_sub(self.head.len());
        let arrived = &buffer.filled()[before..];
        let kept = &arrived[..arrived.len().min(room)];
        self.head.extend_from_slice(kept);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ErrorShapeStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.replacement.is_none() {
            self.replacement = self.replacement_for(bytes).map(|replacement| (replacement, 0));
        }
        let ErrorShapeStream { inner, replacement, head, has_answered, .. } = &mut *self;
        let Some((out, sent)) = replacement else {
            head.clear();
            *has_answered = true;
            return Pin::new(inner).poll_write(context, bytes);
        };
        while *sent < out.len() {
            let count = ready!(Pin::new(&mut *inner).poll_write(context, &out[*sent..]))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *sent += count;
        }
        *replacement = None;
        head.clear();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // A refusal by hyper itself is one part.
        if let [only] = parts {
            return self.poll_write(context, only);
        }
        self.head.clear();
        self.has_answered = true;
        Pin::new(&mut self.inner).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recognised(head: &str, status: &str) -> Option<(Code, Option<String>)> {
        let refusal = recognise(head.as_bytes(), status.as_bytes())?;
        let entry = &refusal.entries()[0];
        Some((entry.code, entry.field_name.clone()))
    }

    #[test]
    fn a_head_that_hyper_refuses_is_recognised_where_it_is_http() {
        let long = "a".repeat(HEAD_BYTES_PARSED_MAX);
        let headers: String = (0..200).map(|number| format!("x-{number}: a\r\n")).collect();
        let (max, value) = (Code::ParameterMaxLengthInvalid, Code::ParameterValueInvalid);
        for (head, status, wanted) in [
            (format!("GET /v1/senders?{long}"), "431", Some((max, Some("query")))),
            (format!("GET /v1/{long}"), "431", Some((max, Some("path")))),
            (
                format!("GET / HTTP/1.1\r\nhost: a\r\nx-long: {long}"),
                "431",
                Some((max, Some("x-long"))),
            ),
            (format!("GET / HTTP/1.1\r\n{headers}\r\n"), "431", Some((max, Some("headers")))),
            (
                "POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n".into(),
                "400",
                Some((value, Some("Content-Length"))),
            ),
            (
                "POST / HTTP/1.1\r\nContent-Length: 1\r\ncontent-length: 2\r\n\r\n".into(),
                "400",
                Some((value, Some("Content-Length"))),
            ),
            (
                "POST / HTTP/1.1\r\ntransfer-encoding: chunked, gzip\r\n\r\n".into(),
                "400",
                Some((value, Some("Transfer-Encoding"))),
            ),
            ("GET / HTTP/1.1\r\nx : a\r\n\r\n".into(), "400", Some((value, None))),
            ("GET /v1/\u{1}".into(), "400", Some((value, None))),
            (
                "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\nx : a\r\n\r\n".into(),
                "400",
                Some((value, None)),
            ),
            ("GET /v1/a?b".into(), "431", Some((max, Some("query")))),
            ("\u{16}\u{3}\u{1}\r\n\r\n".into(), "400", None),
            (long.clone(), "431", None),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), "400", None),
            ("get / HTTP/1.1\r\n\r\n".into(), "400", None),
            (String::new(), "400", None),
        ] {
            let wanted = wanted.map(|(code, name)| (code, name.map(str::to_owned)));
            assert_eq!(recognised(&head, status), wanted, "{}", &head[..head.len().min(60)]);
        }
    }
}
