//! A server on loopback that answers paths as it is told and keeps what it was asked: rate sources
//! and look-ups.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long a test waits for something that is to happen at once.
const WAIT: std::time::Duration = std::time::Duration::from_secs(20);

/// How a path is answered.
#[derive(Clone, Debug)]
pub enum Reply {
    Json(u16, String),
    /// The connection stays open and nothing comes.
    Silence,
    /// The connection is closed without an answer.
    Closed,
}

#[derive(Default)]
struct State {
    replies: HashMap<String, Reply>,
    asked: Vec<(String, String)>,
}

pub struct Feed {
    pub address: String,
    state: Arc<Mutex<State>>,
    told: Arc<tokio::sync::Notify>,
}

impl Feed {
    pub async fn start() -> Feed {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (state, told) =
            (Arc::new(Mutex::new(State::default())), Arc::new(tokio::sync::Notify::new()));
        let feed = Feed { address, state: state.clone(), told: told.clone() };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, state.clone(), told.clone()));
            }
        });
        feed
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }
    pub fn answer(&self, path: &str, reply: Reply) {
        self.state.lock().unwrap().replies.insert(path.into(), reply);
    }
    /// Answers 200 with this body from now on.
    pub fn say(&self, path: &str, json: impl ToString) {
        self.answer(path, Reply::Json(200, json.to_string()));
    }
    /// The bodies that a path was asked with.
    pub fn asked(&self, path: &str) -> Vec<String> {
        self.state
            .lock()
            .unwrap()
            .asked
            .iter()
            .filter(|(asked, _)| asked == path)
            .map(|(_, body)| body.clone())
            .collect()
    }
    /// Waits until a path was asked so often.
    pub async fn until_asked(&self, path: &str, times: usize) {
        let waiting = async {
            loop {
                let told = self.told.notified();
                if self.asked(path).len() >= times {
                    return;
                }
                told.await;
            }
        };
        tokio::time::timeout(WAIT, waiting)
            .await
            .unwrap_or_else(|_| panic!("{path} was not asked {times} times"));
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>, told: Arc<tokio::sync::Notify>) {
    let mut bytes = Vec::new();
    let (head, length) = loop {
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(&part[..count]),
            _ => return,
        }
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
            .unwrap_or(0_usize);
        if bytes.len() >= end + 4 + length {
            break (end, length);
        }
    };
    let path = String::from_utf8_lossy(&bytes[..head]).split(' ').nth(1).unwrap_or("").to_owned();
    let body = String::from_utf8_lossy(&bytes[head + 4..head + 4 + length]).into_owned();
    let reply = {
        let mut state = state.lock().unwrap();
        state.asked.push((path.clone(), body));
        state.replies.get(&path).cloned()
    };
    told.notify_waiters();
    match reply.unwrap_or(Reply::Json(404, "{}".into())) {
        Reply::Json(status, body) => {
            let head = format!(
                "HTTP/1.1 {status} x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
        Reply::Silence => std::future::pending().await,
        Reply::Closed => {}
    }
}
