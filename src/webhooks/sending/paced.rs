//! The body of a delivery: whole, or in parts with pauses for a drill of slow deliveries.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// Number of parts in which a slow body is sent.
const SLOW_PARTS_COUNT: usize = 4;
/// The pause before each of them, in milliseconds.
const SLOW_PAUSE_MILLISECONDS: u64 = 700;

/// A body whose parts are sent one after another.
pub struct PacedBody {
    parts: VecDeque<Bytes>,
    pause: Option<Duration>,
    sleeping: Option<Pin<Box<Sleep>>>,
}

impl PacedBody {
    pub fn whole(body: Bytes) -> PacedBody {
        PacedBody { parts: VecDeque::from([body]), pause: None, sleeping: None }
    }

    /// In a few parts, with a pause before each.
    pub fn slow(mut body: Bytes) -> PacedBody {
        let part_bytes = body.len().div_ceil(SLOW_PARTS_COUNT).max(1);
        let mut parts = VecDeque::new();
        while body.len() > part_bytes {
            parts.push_back(body.split_to(part_bytes));
        }
        parts.push_back(body);
        let pause = Some(Duration::from_millis(SLOW_PAUSE_MILLISECONDS));
        PacedBody { parts, pause, sleeping: None }
    }
}

impl Clone for PacedBody {
    /// Clones what is not sent yet.
    fn clone(&self) -> Self {
        PacedBody { parts: self.parts.clone(), pause: self.pause, sleeping: None }
    }
}

impl Body for PacedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let (Some(pause), false) = (self.pause, self.parts.is_empty()) {
            let sleeping = self.sleeping.get_or_insert_with(|| Box::pin(sleep(pause)));
            if sleeping.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.sleeping = None;
        }
        Poll::Ready(self.parts.pop_front().map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.parts.iter().map(|part| part.len() as u64).sum())
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
            assert_eq!(slow.size_hint().exact(), Some(length as u64));
            let started = tokio::time::Instant::now();
            assert_eq!(slow.clone().collect().await.unwrap().to_bytes(), bytes);
            let parts_count = slow.parts.len() as u64;
            let pauses = Duration::from_millis(SLOW_PAUSE_MILLISECONDS * parts_count);
            assert!(started.elapsed() >= pauses, "{length}");
            assert_eq!(PacedBody::whole(bytes.clone()).collect().await.unwrap().to_bytes(), bytes);
        }
    }
}
