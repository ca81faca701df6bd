//! One HTTP/1.1 connection to a receiver: opens it to a judged address, sends a request, and reads
//! no more of the answer than the limits allow.

use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::attempt::{
    ANSWER_BYTES_MAX, AttemptClock, AttemptPhase, BODY_BYTES_MAX, DeliveryError, EXCERPT_BYTES_MAX,
    HEAD_BYTES_MAX, HEADERS_MAX,
};
use super::paced::PacedBody;

/// The most addresses of one name that one attempt tries.
const CONNECT_CANDIDATES_MAX: usize = 3;

/// Connects to the first address that accepts. Each address gets an equal share of the time that is
/// left, so that an address that drops packets leaves time for the others.
pub(super) async fn connect(
    addresses: &[IpAddr],
    port: u16,
    phase: &AttemptPhase,
) -> Result<(TcpStream, IpAddr), DeliveryError> {
    let candidates_count = addresses.len().min(CONNECT_CANDIDATES_MAX);
    let mut error = DeliveryError::ConnectFailed;
    for (candidates_left, address) in (1..=candidates_count as u32).rev().zip(addresses) {
        let now = Instant::now();
        let share = phase.ends_at.saturating_duration_since(now) / candidates_left;
        let opening = TcpStream::connect(SocketAddr::new(*address, port));
        match timeout_at(now + share, opening).await {
            Ok(Ok(stream)) => {
                check_peer(&stream, *address)?;
                // Nagle's algorithm (RFC 896) would delay small writes such as a request.
                stream.set_nodelay(true).map_err(|_| DeliveryError::ConnectFailed)?;
                return Ok((stream, *address));
            }
            Ok(Err(_)) => error = DeliveryError::ConnectFailed,
            Err(_) => error = phase.error,
        }
    }
    Err(error)
}

/// Refuses a connection whose peer is not the address that was judged.
fn check_peer(stream: &TcpStream, judged: IpAddr) -> Result<(), DeliveryError> {
    match stream.peer_addr() {
        Ok(peer) if peer.ip().to_canonical() == judged => Ok(()),
        Ok(_) => Err(DeliveryError::AddressRefused),
        Err(_) => Err(DeliveryError::ConnectFailed),
    }
}

/// An HTTP/1.1 connection. No task runs it: it reads and writes only while an attempt waits for it.
/// So dropping an attempt that uses it drops the socket too.
pub(super) struct Connection {
    requests: http1::SendRequest<PacedBody>,
    pub(super) driver: ConnectionDriver,
    pub(super) peer: IpAddr,
    bytes_read: Arc<AtomicUsize>,
}

/// Why a request on a [`Connection`] got no answer.
pub(super) struct RequestError {
    pub(super) error: DeliveryError,
    /// The connection ended before the request was written, or before any byte of an answer came.
    /// Receivers close idle connections, so on a kept connection this is no failure yet.
    pub(super) unanswered: bool,
}

impl Connection {
    pub(super) async fn open<S>(stream: S, peer: IpAddr) -> Result<Connection, DeliveryError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let bytes_read = Arc::new(AtomicUsize::new(0));
        let stream = LimitedStream { stream, bytes_read: bytes_read.clone() };
        let (requests, connection) = http1::Builder::new()
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .title_case_headers(true)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|_| DeliveryError::ConnectFailed)?;
        Ok(Connection {
            requests,
            driver: ConnectionDriver { connection: Some(Box::pin(connection)) },
            peer,
            bytes_read,
        })
    }

    /// Sends the request and waits for the head of the answer.
    pub(super) async fn send_request(
        &mut self,
        request: Request<PacedBody>,
        clock: &AttemptClock,
    ) -> Result<Response<Incoming>, RequestError> {
        self.bytes_read.store(0, Ordering::Relaxed);
        let phase = clock.phase(clock.deadlines.head, DeliveryError::HeadTimeout);
        let response = pin!(self.requests.send_request(request));
        let error = match phase.limit(self.driver.drive(response)).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => error,
            Err(error) => {
                return Err(RequestError { error, unanswered: false });
            }
        };
        let bytes_read = self.bytes_read.load(Ordering::Relaxed);
        // A request that hyper cancels was never written. If bytes came all the same, the receiver
        // spoke first, which is not HTTP.
        let invalid = error.is_parse()
            || bytes_read >= ANSWER_BYTES_MAX
            || (error.is_canceled() && bytes_read > 0);
        Err(RequestError {
            error: if invalid {
                DeliveryError::AnswerInvalid
            } else {
                DeliveryError::ConnectionReset
            },
            unanswered: error.is_canceled() || bytes_read == 0,
        })
    }

    /// Whether the connection is open and can take a request, as far as the socket tells.
    pub(super) async fn is_idle(&mut self) -> bool {
        self.driver.drive(pin!(async {})).await;
        self.driver.connection.is_some() && self.requests.is_ready()
    }
}

/// The part of a connection that reads and writes.
pub(super) struct ConnectionDriver {
    /// `None` once the connection has ended.
    connection: Option<Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>>,
}

impl ConnectionDriver {
    /// Runs the connection until `work` is done, and answers its result. The caller pins `work`: if
    /// `drive` took it by value, the returned future would have room for it twice.
    pub(super) fn drive<T>(
        &mut self,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> impl Future<Output = T> {
        poll_fn(move |context| {
            // An error of the connection also reaches `work`, through the request or the body.
            if let Some(connection) = &mut self.connection
                && connection.as_mut().poll(context).is_ready()
            {
                self.connection = None;
            }
            work.as_mut().poll(context)
        })
    }
}

/// A stream that counts the bytes that are read for one answer, and fails to read on after
/// [`ANSWER_BYTES_MAX`] of them.
struct LimitedStream<S> {
    stream: S,
    bytes_read: Arc<AtomicUsize>,
}

impl<S: AsyncRead + Unpin> AsyncRead for LimitedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.bytes_read.load(Ordering::Relaxed) >= ANSWER_BYTES_MAX {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        let filled_before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        let bytes_new = buffer.filled().len().saturating_sub(filled_before);
        self.bytes_read.fetch_add(bytes_new, Ordering::Relaxed);
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for LimitedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Reads the body, and keeps its first [`EXCERPT_BYTES_MAX`] bytes in `kept`. Answers whether the
/// body ended without an error, within [`BODY_BYTES_MAX`] bytes.
pub(super) async fn read_body(mut body: Incoming, kept: &mut Vec<u8>) -> bool {
    let mut bytes_read = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return false;
        };
        if let Some(data) = frame.data_ref() {
            let room = EXCERPT_BYTES_MAX.saturating_sub(kept.len());
            kept.extend_from_slice(&data[..data.len().min(room)]);
            bytes_read += data.len();
            if bytes_read > BODY_BYTES_MAX {
                return false;
            }
        }
    }
    true
}
