//! The accept loop: deadlines for heads and bodies, limits on connections and sizes, and a stop
//! that lets running requests finish.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_io_timeout::TimeoutStream;

use super::dispatch::Reply;
use crate::metrics::Metrics;

/// Connections at the same time; more wait in the operating system's queue.
pub const CONNECTIONS_MAX: usize = 4_096;
/// How long a request's head may take, counted from the connection's or the previous answer's end:
/// it also ends connections that are kept open without being used.
pub const HEAD_SECONDS_MAX: u64 = 30;
/// Headers of a request, and bytes of its head.
pub const HEADERS_MAX: usize = 64;
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How long an answer may stand still on its way out.
pub const WRITE_SECONDS_MAX: u64 = 30;
/// How long running requests get at a stop.
pub const STOP_SECONDS_MAX: u64 = 20;

/// Serves until `stop`; answers when the last request is done or its time is up.
pub async fn serve<F>(
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
    metrics: Arc<Metrics>,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) where
    F: Future<Output = Reply> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    loop {
        let permit = tokio::select! {
            permit = permits.clone().acquire_owned() => permit,
            _ = stop.changed() => break,
        };
        let Ok(permit) = permit else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: others must end first.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Answers are small and leave whole; waiting to merge them only adds delay.
        let _ = stream.set_nodelay(true);
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(HEAD_SECONDS_MAX))
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .keep_alive(true);
        let answer = answer.clone();
        let service = service_fn(move |request| {
            let answered = answer(request);
            async move { Ok::<_, std::convert::Infallible>(answered.await) }
        });
        // A client that does not read its answers must not hold a connection for ever.
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(Duration::from_secs(WRITE_SECONDS_MAX)));
        let connection =
            graceful.watch(builder.serve_connection(TokioIo::new(Box::pin(stream)), service));
        let metrics = metrics.clone();
        tokio::spawn(async move {
            metrics.connections(1);
            // Faults of a connection (resets, broken framing, deadlines) end that connection and
            // nobody else's.
            let _ = connection.await;
            metrics.connections(-1);
            drop(permit);
        });
    }
    drop(listener);
    let drained =
        tokio::time::timeout(Duration::from_secs(STOP_SECONDS_MAX), graceful.shutdown()).await;
    if drained.is_err() {
        tracing::warn!("some requests were still running when the time for a stop was up");
    }
}

/// Binds the address, with an error that says what to do.
pub async fn bind(address: &str) -> Result<(TcpListener, SocketAddr), String> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        format!(
            "cannot listen on {address}: {error}. Choose another address with --listen, or \
         stop the server that uses it."
        )
    })?;
    let local = listener.local_addr().map_err(|error| error.to_string())?;
    Ok((listener, local))
}
