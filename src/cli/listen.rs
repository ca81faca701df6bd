//! `hundi listen`: follows the events of a key's account from anywhere, and forwards them to a
//! receiver, signed as a delivery is.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use hmac::{Hmac, KeyInit, Mac};
use http::Method;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::caller::{ApiCaller, CallError, CallerArgs};
use super::print;
use crate::kernel::{Clock, Code, hex};
use crate::outbound::{OutboundEndpoint, OutboundError};
use crate::webhooks::sending::attempt::USER_AGENT_TEXT;
use crate::webhooks::sending::sign;
use crate::webhooks::{self, EventFilters};

/// How long one request waits for an event, in seconds.
const WAIT_SECONDS: i64 = 25;
/// How long a receiver may take to answer, in seconds; the same as for a delivery.
const FORWARD_SECONDS_MAX: u64 = 15;
const FORWARD_BYTES_MAX: usize = 16 * 1024;
/// Pauses in seconds before an event is forwarded again. The last one repeats.
const RETRY_SECONDS: [i64; 7] = [1, 5, 15, 30, 60, 120, 300];
/// For how long an event that the receiver does not take is sent again, in seconds; the same as for
/// a delivery.
const RETRIED_SECONDS_MAX: i64 = 24 * 3_600;
/// While this many events or more wait to be forwarded again, no more are fetched. The service
/// keeps them.
const UNDELIVERED_MAX: usize = 1_000;
/// Longest pause while the service cannot be reached, in seconds.
const RECONNECT_SECONDS_MAX: u64 = 30;

/// Show events as they happen, and forward them to a receiver
///
/// Works from anywhere with an API key. Without --forward-to, prints each event as a line, read
/// from the API with that key. With it, forwards events in order, signed with the secret that is
/// printed at the start. An event that the receiver does not answer with 2xx is sent again for at
/// most 24 hours; newer events do not wait for it. The position is kept in a file, so that the next
/// start continues there.
#[derive(Args)]
pub struct Listen {
    /// Receiver of the events, such as localhost:3000/webhooks
    #[arg(long, short, value_name = "URL")]
    forward_to: Option<String>,
    /// Print each event as a line of JSON, and nothing else, for a program that reads the lines
    #[arg(long, conflicts_with = "forward_to")]
    json: bool,
    /// Only these events, separated by commas: full names, or prefixes such as transfer.status.*
    #[arg(long, short, value_name = "EVENTS", value_delimiter = ',')]
    events: Vec<String>,
    /// The file that keeps the position [default: a file for this key, address and receiver below
    /// $XDG_STATE_HOME/hundi or ~/.local/state/hundi]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// If no position is known, begin with the oldest event that is kept, and not with the next new
    /// one
    #[arg(long)]
    from_oldest: bool,
    /// Print the signing secret and end
    #[arg(long)]
    print_secret: bool,
    #[command(flatten)]
    caller: CallerArgs,
}

/// An event with its seven fields, in the order in which deliveries have them.
#[derive(Clone, Serialize, Deserialize)]
struct Event {
    object: String,
    id: String,
    r#type: String,
    linked_id: String,
    linked_object: String,
    created: i64,
    livemode: bool,
}

/// An event that is still to be forwarded or printed. `first_at` is when it was fetched, `due_at`
/// when it is next sent, both in Unix seconds.
#[derive(Serialize, Deserialize)]
struct Undelivered {
    event: Event,
    attempts_count: usize,
    first_at: i64,
    due_at: i64,
}

/// What the file holds: the last event that was fetched, and what is still to be forwarded or
/// printed.
#[derive(Default, Serialize, Deserialize)]
struct ListenState {
    cursor: Option<String>,
    undelivered: Vec<Undelivered>,
}

impl Listen {
    pub async fn run(self) -> Result<(), String> {
        let caller = ApiCaller::new(&self.caller)?;
        let secret = secret_of(caller.key());
        if self.print_secret {
            return print(&secret);
        }
        let forward_to = self.forward_to.as_deref().map(with_scheme);
        let receiver = forward_to
            .as_deref()
            .map(|url| {
                OutboundEndpoint::new(url, None).map_err(|error| format!("--forward-to: {error}"))
            })
            .transpose()?;
        let filters = filters(&self.events)?;
        // Each combination of these has a default file of its own.
        let parts = [caller.base_url.as_str(), caller.key(), forward_to.as_deref().unwrap_or("")];
        let path = self.state.map_or_else(|| default_path(&parts), Ok)?;
        let (state, lock) = open_state(&path)?;
        let is_json = self.json;
        let mut listener =
            Listener { caller, secret, receiver, forward_to, is_json, filters, path, state };
        let listened = tokio::select! {
            listened = listener.listen(self.from_oldest) => listened,
            _ = tokio::signal::ctrl_c() => Ok(()),
        };
        drop(lock);
        listened
    }
}

/// The filters of `--events`. `Err` names the first that no event can match.
fn filters(events: &[String]) -> Result<EventFilters, String> {
    if events.is_empty() {
        return Ok(EventFilters::all());
    }
    let catalogue = webhooks::event_types();
    match events.iter().find(|event| !webhooks::is_filter(event, &catalogue)) {
        None => Ok(EventFilters::from_list(events)),
        Some(wrong) => Err(format!(
            "--events: {wrong:?} is no event, and no beginning of one such as transfer.status.*; \
             the page \"Webhooks\" of the guides lists every event"
        )),
    }
}

/// The signing secret that belongs to an API key. It is the same at every start with the same key,
/// so the receiver can keep it in its settings.
fn secret_of(key: &str) -> String {
    let mut digest = [0; sign::SECRET_BYTES];
    // HMAC takes keys of any length, so this cannot fail.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.as_bytes()) {
        mac.update(b"hundi listen");
        digest.copy_from_slice(&mac.finalize().into_bytes());
    }
    sign::secret_text(digest)
}

fn with_scheme(url: &str) -> String {
    if url.contains("://") { url.to_owned() } else { format!("http://{url}") }
}

fn default_path(parts: &[&str]) -> Result<PathBuf, String> {
    let folder = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state")))
        .ok_or("there is no home directory: name a file with --state")?
        .join("hundi");
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let digest = Sha256::digest(parts.join("\n").as_bytes());
    Ok(folder.join(format!("listen-{}.json", hex::encode(&digest[..8]))))
}

/// Reads the state. While the returned lock lives, no other `hundi listen` opens the same file.
fn open_state(path: &Path) -> Result<(ListenState, File), String> {
    let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let lock = File::create(beside(path, "lock")).map_err(|error| fault(&error))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(fault(&"another hundi listen uses this file; name another with --state"));
        }
        Err(TryLockError::Error(error)) => return Err(fault(&error)),
    }
    let state = match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| fault(&error))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => ListenState::default(),
        Err(error) => return Err(fault(&error)),
    };
    Ok((state, lock))
}

fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

struct Listener {
    caller: ApiCaller,
    secret: String,
    receiver: Option<OutboundEndpoint>,
    forward_to: Option<String>,
    is_json: bool,
    filters: EventFilters,
    path: PathBuf,
    state: ListenState,
}

impl Listener {
    async fn listen(&mut self, from_oldest: bool) -> Result<(), String> {
        let is_new = !self.path.exists();
        if is_new && !from_oldest {
            self.state.cursor = self.newest().await?;
        }
        self.save()?;
        self.greet(is_new)?;
        let mut pause_seconds = 1;
        loop {
            self.forward_due().await?;
            let due_in_seconds = self.due_in_seconds();
            if self.state.undelivered.len() >= UNDELIVERED_MAX {
                let seconds = due_in_seconds.max(1).unsigned_abs();
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                continue;
            }
            match self.fetch(due_in_seconds.clamp(0, WAIT_SECONDS).unsigned_abs()).await {
                Ok(()) => pause_seconds = 1,
                Err(CallError::Transient { message, retry_after_seconds }) => {
                    let seconds = retry_after_seconds.unwrap_or(pause_seconds);
                    let seconds = seconds.min(RECONNECT_SECONDS_MAX);
                    eprintln!("{message}; trying again in {seconds} s");
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    pause_seconds = (pause_seconds * 2).min(RECONNECT_SECONDS_MAX);
                }
                // The service has removed the event that the cursor names.
                Err(CallError::Refused { code, field_name, message })
                    if self.state.cursor.is_some()
                        && code == Code::RequestQueryParameterInvalid.as_str()
                        && field_name == "starting_after" =>
                {
                    eprintln!("{message}");
                    eprintln!("Continuing with the oldest event that is kept.");
                    self.state.cursor = None;
                }
                Err(refused) => return Err(refused.message()),
            }
        }
    }

    fn greet(&self, is_new: bool) -> Result<(), String> {
        let Some(url) = &self.forward_to else {
            // These lines go to standard error, because a program may read the output.
            if !is_new {
                eprintln!("Continuing where the last start stopped.");
            }
            eprintln!("Ready. Each event is shown as it happens (Ctrl-C ends).");
            return Ok(());
        };
        print(&format!("Forwarding to {url}"))?;
        print(&format!("Ready. The signing secret is {} (Ctrl-C ends)", self.secret))?;
        if is_new {
            return Ok(());
        }
        print("Continuing where the last start stopped.")?;
        print(&format!("Events to forward again: {}.", self.state.undelivered.len()))
    }

    async fn newest(&self) -> Result<Option<String>, String> {
        let page = self.caller.get("/v1/events?order=desc&limit=1", 0).await;
        let page = page.map_err(CallError::message)?;
        Ok(page["data"][0]["id"].as_str().map(str::to_owned))
    }

    /// Fetches the next page, and saves its events together with the cursor after them.
    async fn fetch(&mut self, wait_seconds: u64) -> Result<(), CallError> {
        let after = self.state.cursor.as_ref();
        let after = after.map_or(String::new(), |cursor| format!("&starting_after={cursor}"));
        let path = format!("/v1/events?limit=100&wait={wait_seconds}{after}");
        let mut page = self.caller.get(&path, wait_seconds).await?;
        let transient = |message| CallError::Transient { message, retry_after_seconds: None };
        let events: Vec<Event> = serde_json::from_value(page["data"].take())
            .map_err(|error| transient(format!("the page of events cannot be read: {error}")))?;
        let Some(last) = events.last() else { return Ok(()) };
        self.state.cursor = Some(last.id.clone());
        let now = now_seconds();
        let wanted = events.into_iter().filter(|event| self.filters.matches(&event.r#type));
        self.state.undelivered.extend(wanted.map(|event| Undelivered {
            event,
            attempts_count: 0,
            first_at: now,
            due_at: now,
        }));
        self.save().map_err(transient)
    }

    /// Seconds until the next undelivered event is due: 0 or less if one is due now, and
    /// [`WAIT_SECONDS`] if there is none.
    fn due_in_seconds(&self) -> i64 {
        let next = self.state.undelivered.iter().map(|undelivered| undelivered.due_at).min();
        next.map_or(WAIT_SECONDS, |due_at| due_at - now_seconds())
    }

    /// Forwards or prints everything that is due, in order.
    async fn forward_due(&mut self) -> Result<(), String> {
        let mut index = 0;
        while index < self.state.undelivered.len() {
            let now = now_seconds();
            let Undelivered { event, attempts_count, first_at, due_at } =
                &self.state.undelivered[index];
            // Without the second condition, a clock that was set back could keep an event waiting
            // for longer than a day.
            if *due_at > now && *due_at <= now + RETRIED_SECONDS_MAX {
                index += 1;
                continue;
            }
            let line =
                format!("{}  {:<38} {}  {}", clock(now), event.r#type, event.id, event.linked_id);
            let Some(receiver) = &self.receiver else {
                let json = self.is_json.then(|| serde_json::to_string(event).unwrap_or_default());
                // If the output is closed, the event stays in the file for the next start.
                writeln!(std::io::stdout(), "{}", json.unwrap_or(line))
                    .map_err(|error| format!("the output: {error}"))?;
                self.state.undelivered.remove(index);
                self.save()?;
                continue;
            };
            let started = Instant::now();
            let answered = self.forward(receiver, event, now).await;
            let milliseconds = started.elapsed().as_millis();
            let (is_taken, outcome) = match answered {
                Ok(status) => {
                    ((200..300).contains(&status), format!("[{status}] {milliseconds} ms"))
                }
                Err(error) => (false, format!("[{error}]")),
            };
            let pause_seconds = RETRY_SECONDS[(*attempts_count).min(RETRY_SECONDS.len() - 1)];
            if is_taken {
                print(&format!("{line}  {outcome}"))?;
                self.state.undelivered.remove(index);
            } else if now + pause_seconds - first_at > RETRIED_SECONDS_MAX {
                print(&format!("{line}  {outcome} given up after 24 hours"))?;
                self.state.undelivered.remove(index);
            } else {
                print(&format!("{line}  {outcome} again in {pause_seconds} s"))?;
                let undelivered = &mut self.state.undelivered[index];
                undelivered.attempts_count += 1;
                undelivered.due_at = now_seconds() + pause_seconds;
                index += 1;
            }
            self.save()?;
        }
        Ok(())
    }

    async fn forward(
        &self,
        receiver: &OutboundEndpoint,
        event: &Event,
        now: i64,
    ) -> Result<u16, OutboundError> {
        let body = serde_json::to_vec(event).unwrap_or_default();
        let signature = sign::signature_header(&[&self.secret], &event.id, now, &body);
        let timestamp = now.to_string();
        let headers = [
            ("content-type", "application/json"),
            ("user-agent", USER_AGENT_TEXT),
            ("webhook-id", event.id.as_str()),
            ("webhook-timestamp", timestamp.as_str()),
            ("webhook-signature", signature.as_str()),
        ];
        let deadline = Duration::from_secs(FORWARD_SECONDS_MAX);
        let client = &self.caller.client;
        let sent =
            client.send(Method::POST, receiver, &headers, body, deadline, FORWARD_BYTES_MAX).await;
        Ok(sent?.http_status)
    }

    /// Writes the state beside its file and renames it, so that a kill never leaves half of it.
    fn save(&self) -> Result<(), String> {
        let fault = |error: std::io::Error| format!("{}: {error}", self.path.display());
        let bytes = serde_json::to_vec(&self.state).map_err(|error| error.to_string())?;
        let fresh = beside(&self.path, "new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&fresh).map_err(fault)?;
        file.write_all(&bytes).map_err(fault)?;
        // The content has to be on the disk before the rename. Then a crash of the machine leaves
        // the old file or the new one.
        file.sync_data().map_err(fault)?;
        std::fs::rename(&fresh, &self.path).map_err(fault)
    }
}

fn now_seconds() -> i64 {
    Clock::System.milliseconds() / 1000
}

/// The time of day in UTC.
fn clock(seconds: i64) -> String {
    let of_day = seconds.rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", of_day / 3_600, of_day / 60 % 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_of_a_key_is_its_own_and_stays() {
        let (one, other) = (secret_of("sk_test_one"), secret_of("sk_test_other"));
        assert_eq!(one, secret_of("sk_test_one"));
        assert!(one != other && one.starts_with("whsec_") && !one.contains("sk_test"));
    }

    #[test]
    fn an_event_is_written_as_a_delivery_writes_it() {
        let body = concat!(
            r#"{"object":"event","id":"event_1","type":"a.b","linked_id":"a_1","#,
            r#""linked_object":"a","created":7,"livemode":false}"#
        );
        let event: Event = serde_json::from_str(body).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), body);
    }

    #[test]
    fn a_line_begins_with_the_time_and_a_url_gets_a_scheme() {
        assert_eq!(clock(86_399), "23:59:59");
        assert_eq!(with_scheme("localhost:3000/x"), "http://localhost:3000/x");
    }
}
