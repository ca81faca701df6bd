//! The accept loop: deadlines for heads and for sending answers, limits on connections and heads,
//! and a stop that lets running requests finish.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, HeaderValue};
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_io_timeout::TimeoutStream;

use super::connections::{
    Admitted, CONNECTIONS_MAX, Connections, connections_for, descriptors_max,
};
use super::framing::{
    ErrorShapeStream, HEAD_BYTES_PARSED_MAX, HEADERS_PARSED_MAX, Refuse, judge_head,
};
pub use super::framing::{HEAD_BYTES_MAX, HEADERS_MAX};
use super::reply::{NoAnswer, Reply};
use crate::metrics::Metrics;

/// How long a request's head may take, from the start of the connection or the end of the last
/// answer. This also closes connections that are idle for this long.
pub const HEAD_SECONDS_MAX: u64 = 30;
/// How long sending an answer may stall.
pub const WRITE_SECONDS_MAX: u64 = 30;
/// How long running requests may continue after a stop.
pub const STOP_SECONDS_MAX: u64 = 20;
/// For this long after the stop begins, connections without a running request stay open, so that
/// finished answers can still be sent.
const ANSWER_SENT_SECONDS: u64 = 2;

/// The IP address that a request's connection comes from. It is in the request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub std::net::IpAddr);

/// Serves until `stop`, at most `connections_max` connections at a time. Returns when the last
/// request is done or its time is up. `refuse` makes the answer to a request that reaches no route
/// because its head is refused.
pub async fn serve<F>(
    listener: TcpListener,
    connections_max: usize,
    mut stop: watch::Receiver<bool>,
    metrics: Arc<Metrics>,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    refuse: Refuse,
) where
    F: Future<Output = Reply> + Send + 'static,
{
    let connections = Connections::new(connections_max);
    let graceful = GracefulShutdown::new();
    loop {
        tokio::select! {
            () = connections.make_room() => {}
            _ = stop.changed() => break,
        }
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Probably out of file descriptors: other connections must end first.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Some(admitted) = connections.admit(peer.ip()) else {
            tracing::debug!(
                "a peer uses its full share of connections and all are busy; a new one was closed"
            );
            continue;
        };
        // Answers are small and sent whole, so waiting to merge them only adds delay.
        let _ = stream.set_nodelay(true);
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(HEAD_SECONDS_MAX))
            .max_headers(HEADERS_PARSED_MAX)
            .max_buf_size(HEAD_BYTES_PARSED_MAX)
            // A client that closes its side after a whole request still gets its answer.
            .half_close(true)
            .keep_alive(true);
        let (answer, refuse_head) = (answer.clone(), refuse.clone());
        let activity = admitted.activity();
        let service = service_fn(move |mut request: Request<Incoming>| {
            activity.begin();
            request.extensions_mut().insert(Peer(peer.ip()));
            request.extensions_mut().insert(activity.clone());
            let activity = activity.clone();
            let answered = judge_head(&request).map(|()| answer(request));
            let refuse_head = refuse_head.clone();
            async move {
                let reply = match answered {
                    Ok(answered) => answered.await,
                    Err(refusal) => {
                        let mut reply = refuse_head(refusal);
                        reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                        reply
                    }
                };
                activity.end();
                // An error closes the connection.
                match reply.extensions().get::<NoAnswer>() {
                    Some(no_answer) => Err(*no_answer),
                    None => Ok(reply),
                }
            }
        });
        // A client that does not read its answers must not hold a connection for ever.
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(Duration::from_secs(WRITE_SECONDS_MAX)));
        let stream = ErrorShapeStream::new(Box::pin(stream), refuse.clone());
        let connection = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(run(connection, admitted, metrics.clone()));
    }
    drop(listener);
    let mut drained = pin!(graceful.shutdown());
    let for_answers = Duration::from_secs(ANSWER_SENT_SECONDS);
    if tokio::time::timeout(for_answers, &mut drained).await.is_ok() {
        return;
    }
    // A connection without a running request must not delay the stop any longer: its client may
    // have begun a head that it never ends.
    connections.close_idle();
    let left = Duration::from_secs(STOP_SECONDS_MAX).saturating_sub(for_answers);
    if tokio::time::timeout(left, drained).await.is_err() {
        tracing::warn!("the time for a stop ran out while requests were still running");
    }
}

/// Runs a connection until it ends or has to close.
async fn run(connection: impl Future, admitted: Admitted, metrics: Arc<Metrics>) {
    metrics.connections(1);
    let connection = pin!(connection);
    tokio::select! {
        // An error of a connection (reset, broken framing, deadline) ends only that connection.
        _ = connection => {}
        // An idle connection closes to make room or at a stop. A connection counts as idle once its
        // answer has been made, even if it is still being sent: a client that has not read all of
        // it loses the rest, and a page that follows a stream connects again.
        () = admitted.closing() => {}
    }
    metrics.connections(-1);
}

/// How many connections there is room for, by the process's limit on open files.
pub fn connections_max() -> usize {
    let count = descriptors_max().map_or(CONNECTIONS_MAX, connections_for);
    if count < CONNECTIONS_MAX {
        tracing::warn!(
            connections = count,
            "the limit on open files leaves room for few connections; raise it (ulimit -n, or \
             LimitNOFILE= of systemd) for up to {CONNECTIONS_MAX}"
        );
    }
    count
}

/// Binds the address. The error says what to do.
pub async fn bind(address: &str) -> Result<(TcpListener, SocketAddr), String> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let advice = match error.kind() {
            std::io::ErrorKind::InvalidInput => {
                "Write an address and a port, such as 127.0.0.1:8080."
            }
            std::io::ErrorKind::PermissionDenied => {
                "Use a port from 1024 on, or give the binary CAP_NET_BIND_SERVICE."
            }
            std::io::ErrorKind::AddrNotAvailable => {
                "This machine does not have that address: name one of its own, or 127.0.0.1."
            }
            std::io::ErrorKind::AddrInUse => {
                "Stop the server that uses it, or choose another address with --listen (the \
                 console's with console_listen)."
            }
            _ => "Choose another address with --listen (the console's with console_listen).",
        };
        format!("cannot listen on {address}: {error}. {advice}")
    })?;
    let local = listener.local_addr().map_err(|error| error.to_string())?;
    Ok((listener, local))
}
