//! For tests: a server in place of a node or its gateway, which answers what the test says.

use std::io::ErrorKind;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::outbound::{Client, OutboundEndpoint};

/// Answers a request's body with a status, further header lines, and a body.
pub type GatewayScript = fn(&str) -> (u16, &'static str, String);

/// Starts a gateway, which ends with the test.
pub async fn start(script: GatewayScript) -> OutboundEndpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, script));
        }
    });
    OutboundEndpoint::new(&format!("http://{address}"), None).unwrap()
}

pub fn client() -> Client {
    Client::new(rustls::RootCertStore::empty()).unwrap()
}

/// Answers the requests of one connection.
async fn serve(mut stream: TcpStream, script: GatewayScript) -> std::io::Result<()> {
    let mut read = Vec::new();
    loop {
        let Some((head, body_from, length)) = request(&read) else {
            if stream.read_buf(&mut read).await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            continue;
        };
        debug_assert!(head.starts_with("POST"));
        let body = String::from_utf8_lossy(&read[body_from..body_from + length]).into_owned();
        read.drain(..body_from + length);
        let (status, lines, body) = script(&body);
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} As scripted\r\ncontent-length: {length}\r\n{lines}\r\n{body}"
        );
        stream.write_all(answer.as_bytes()).await?;
    }
}

/// The head of a request that was read whole, where its body begins, and the body's length.
fn request(read: &[u8]) -> Option<(String, usize, usize)> {
    let text = String::from_utf8_lossy(read).to_lowercase();
    let body_from = text.find("\r\n\r\n")? + 4;
    let (_, after) = text[..body_from].split_once("content-length:")?;
    let length: usize = after.lines().next()?.trim().parse().ok()?;
    let head = String::from_utf8_lossy(&read[..body_from]).into_owned();
    (read.len() >= body_from + length).then_some((head, body_from, length))
}
