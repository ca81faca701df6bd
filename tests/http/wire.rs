//! Requests as bytes on a socket, for what a well-behaved client cannot send or does not show.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Answer, WAIT};

/// The bytes of a request with a body whose length is declared.
pub fn request(method: &str, path: &str, headers: &[(&str, &[u8])], body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("{method} {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n", body.len())
            .into_bytes();
    for (name, value) in headers {
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// Sends bytes and reads one answer. A peer that closes before it answered gives `None`.
pub async fn exchange(address: &str, bytes: &[u8]) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The peer may answer and close before it has read everything.
    let _ = stream.write_all(bytes).await;
    read_answer(&mut stream).await
}

/// Reads one answer, by its `Content-Length`.
pub async fn read_answer(stream: &mut TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
            break at + 4;
        }
        if !read_some(stream, &mut bytes).await {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_str(value.trim()).unwrap(),
        );
    }
    let length: usize =
        headers.get("content-length").map_or(0, |length| length.to_str().unwrap().parse().unwrap());
    while bytes.len() < head_end + length && read_some(stream, &mut bytes).await {}
    Some(Answer { status, headers, body: Bytes::copy_from_slice(&bytes[head_end..]) })
}

async fn read_some(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> bool {
    let mut part = [0; 4_096];
    match tokio::time::timeout(WAIT, stream.read(&mut part))
        .await
        .expect("an answer or an end of the connection")
    {
        Ok(0) | Err(_) => false,
        Ok(count) => {
            bytes.extend_from_slice(&part[..count]);
            true
        }
    }
}

/// How long it takes until the peer closes; what it still sends is ignored.
pub async fn closed_after(stream: &mut TcpStream, patience: Duration) -> Option<Duration> {
    let started = std::time::Instant::now();
    let mut part = [0; 4_096];
    let ended = async { while matches!(stream.read(&mut part).await, Ok(count) if count > 0) {} };
    tokio::time::timeout(patience, ended).await.ok().map(|()| started.elapsed())
}
