//! Answers: their headers, and the shape in which a refusal goes out.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};

use crate::kernel::{OperationError, Refusal, StoreError};
use crate::store::idempotency;

pub type Reply = Response<ReplyBody>;

/// Marks an answer that the caller must not get: the connection closes instead.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the answer is kept back")]
pub struct NoAnswer;

/// The body of an answer: all of it at once, or parts as they come.
pub enum ReplyBody {
    Whole(Full<Bytes>),
    Parts(tokio::sync::mpsc::Receiver<Bytes>),
}

impl ReplyBody {
    pub fn whole(bytes: impl Into<Bytes>) -> ReplyBody {
        ReplyBody::Whole(Full::new(bytes.into()))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            ReplyBody::Whole(body) => Pin::new(body).poll_frame(context),
            ReplyBody::Parts(parts) => {
                parts.poll_recv(context).map(|part| part.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }
    fn is_end_stream(&self) -> bool {
        match self {
            ReplyBody::Whole(body) => body.is_end_stream(),
            ReplyBody::Parts(_) => false,
        }
    }
    fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::Whole(body) => body.size_hint(),
            ReplyBody::Parts(_) => SizeHint::default(),
        }
    }
}

/// Sets a header. A value that no header can hold is left out.
pub fn set_header(reply: &mut Reply, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        reply.headers_mut().insert(name, value);
    }
}

/// The answer to a request that was refused or failed. Logs a failure.
pub fn refuse(request_id: &str, failure: OperationError) -> Reply {
    let refusal = match failure {
        OperationError::Refused(refusal) => refusal,
        OperationError::Store(StoreError::Unavailable(reason)) => {
            tracing::error!(request_id, reason, "the store cannot take the request; answered 503");
            Refusal::unavailable()
        }
        OperationError::Store(StoreError::Conflict(what)) => {
            tracing::error!(
                request_id,
                what,
                "a transaction met a conflict and was given up; answered 503"
            );
            Refusal::unavailable()
        }
        OperationError::Store(StoreError::Locked) => {
            tracing::error!(request_id, "a row stayed locked by another transaction; answered 503");
            Refusal::unavailable()
        }
        OperationError::Declined(reason)
        | OperationError::Store(StoreError::Broken(reason) | StoreError::Unfit(reason)) => {
            tracing::error!(request_id, reason, "the request failed; answered 500");
            Refusal::internal()
        }
    };
    let mut reply = reply(refusal.http_status(), idempotency::JSON, refusal.body());
    if reply.status() == StatusCode::UNAUTHORIZED {
        set_header(&mut reply, WWW_AUTHENTICATE, "Bearer");
    }
    if let Some(seconds) = refusal.retry_after_seconds {
        set_header(&mut reply, RETRY_AFTER, &seconds.to_string());
    }
    reply
}

/// A refusal outside `/v1`, in the error shape.
pub fn refusal_reply(request_id: &str, refusal: Refusal) -> Reply {
    refuse(request_id, refusal.into())
}

/// An answer of this status with a body.
pub fn reply(status: u16, content_type: &'static str, body: Vec<u8>) -> Reply {
    let mut reply = Response::new(ReplyBody::whole(body));
    *reply.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    // No cache may store balances and account holders.
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}
