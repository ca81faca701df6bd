//! The body of a delivery: whole, or in parts with pauses for a drill of slow deliveries.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// In how many parts, at most, a slow body is sent.
const SLOW_PARTS_COUNT: usize = 4;
/// The pause before each part of a slow body, in milliseconds.
const SLOW_PAUSE_MILLISECONDS: u64 = 700;

/// The body of a request to a receiver.
pub enum PacedBody {
    /// The whole body at once; `None` once it was sent.
    Whole(Option<Bytes>),
    /// The body in parts, one after another. Only a drill sends one. It is boxed so that the type
    /// stays small for deliveries.
    Slow(Box<SlowBody>),
}

/// The parts of a slow body that are not sent yet.
pub struct SlowBody {
    parts: VecDeque<Bytes>,
    /// The pause before the next part, if it has begun.
    pause: Option<Pin<Box<Sleep>>>,
}

impl PacedBody {
    pub fn whole(body: Bytes) -> PacedBody {
        PacedBody::Whole(Some(body))
    }

    /// A body that is sent in a few parts, with a pause before each.
    pub fn slow(mut body: Bytes) -> PacedBody {
        let part_bytes = body.len().div_ceil(SLOW_PARTS_COUNT).max(1);
        let mut parts = VecDeque::new();
        while body.len() > part_bytes {
            parts.push_back(body.split_to(part_bytes));
        }
        parts.push_back(body);
        PacedBody::Slow(Box::new(SlowBody { parts, pause: None }))
    }
}

impl SlowBody {
    fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.parts.is_empty() {
            let pause = Duration::from_millis(SLOW_PAUSE_MILLISECONDS);
            let sleeping = self.pause.get_or_insert_with(|| Box::pin(sleep(pause)));
            if sleeping.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.pause = None;
        }
        Poll::Ready(self.parts.pop_front())
    }
}

impl Body for PacedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = match &mut *self {
            PacedBody::Whole(body) => Poll::Ready(body.take()),
            PacedBody::Slow(body) => body.poll_part(context),
        };
        part.map(|part| part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            PacedBody::Whole(body) => body.is_none(),
            PacedBody::Slow(body) => body.parts.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            PacedBody::Whole(body) => body.as_ref().map_or(0, |body| body.len() as u64),
            PacedBody::Slow(body) => body.parts.iter().map(|part| part.len() as u64).sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_slow_body_is_the_same_in_more_time() {
        for length in [0, 5] {
            let bytes = Bytes::from(vec![7; length]);
            let slow = PacedBody::slow(bytes.clone());
            let PacedBody::Slow(body) = &slow else { panic!("it is whole") };
            let pauses = Duration::from_millis(SLOW_PAUSE_MILLISECONDS * body.parts.len() as u64);
            assert_eq!(slow.size_hint().exact(), Some(length as u64));
            let started = tokio::time::Instant::now();
            assert_eq!(slow.collect().await.unwrap().to_bytes(), bytes);
            assert!(started.elapsed() >= pauses, "{length}");

            let whole = PacedBody::whole(bytes.clone());
            assert_eq!(whole.size_hint().exact(), Some(length as u64));
            assert_eq!(whole.collect().await.unwrap().to_bytes(), bytes);
        }
    }
}
