//! The statements with which the service creates a transfer, taken from PostgreSQL's own log and
//! made into a script for pgbench, so that what is compared does the same work row by row.

use std::collections::HashMap;

use serde_json::Value;

/// Bytes above which a value is no identifier or hash; it is taken as it is.
const DRAWN_BYTES_MAX: usize = 32;

/// One statement as the server had it, with its parameters as literals.
#[derive(Clone, Debug)]
pub struct Logged {
    pub sql: String,
    pub parameters: Vec<String>,
}

/// The transaction of a log (in JSON, a line each) that holds a statement with these words.
pub fn transaction(log: &str, words: &str) -> Vec<Logged> {
    let mut open: HashMap<i64, Vec<Logged>> = HashMap::new();
    for line in log.lines() {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        let (Some(process_id), Some(message)) = (entry["pid"].as_i64(), entry["message"].as_str())
        else {
            continue;
        };
        let statement = message
            .strip_prefix("statement: ")
            .or_else(|| message.strip_prefix("execute ")?.split_once(": ").map(|(_, sql)| sql));
        let Some(sql) = statement else { continue };
        let statements = open.entry(process_id).or_default();
        if sql.starts_with("BEGIN") {
            statements.clear();
        }
        let details = entry["detail"].as_str().unwrap_or_default();
        statements.push(Logged { sql: sql.to_owned(), parameters: parameters(details) });
        if sql.starts_with("COMMIT")
            && statements.iter().any(|statement| statement.sql.contains(words))
        {
            return std::mem::take(statements);
        }
    }
    panic!("no transaction of the log holds {words:?}");
}

/// `parameters: $1 = 'a', $2 = NULL` as literals.
fn parameters(details: &str) -> Vec<String> {
    let mut rest = details.split_once("arameters: ").map_or("", |(_, rest)| rest);
    let mut found = Vec::new();
    while let Some((_, value)) = rest.split_once(" = ") {
        let length = if value.starts_with('\'') {
            let bytes = value.as_bytes();
            let mut at = 1;
            // A quote within is doubled.
            while at < bytes.len() && (bytes[at] != b'\'' || bytes.get(at + 1) == Some(&b'\'')) {
                at += if bytes[at] == b'\'' { 2 } else { 1 };
            }
            at + 1
        } else {
            value.find(", $").unwrap_or(value.len())
        };
        found.push(value[..length.min(value.len())].to_owned());
        rest = &value[length.min(value.len())..];
    }
    found
}

/// What stands for a value that is another one in every transaction.
struct Drawn {
    /// Its number among such values.
    number: usize,
    bytes: Vec<u8>,
}

/// An identifier's first six bytes are milliseconds, and its first eight a number of this step.
const HIGH_STEP: u64 = 1 << 16;
/// Values that are drawn for one transaction, at most.
const LOW_STEP: u64 = 100;

/// Expressions for the two halves of a value that is drawn: the transaction, and by its number
/// which of its values.
struct Place {
    high: String,
    low: Box<dyn Fn(usize) -> String>,
}

impl Place {
    /// Within a query that counts transactions as `n`.
    fn of_rows(base: u64, client: &'static str) -> Place {
        Place {
            high: format!("({base}::bigint + n) * {HIGH_STEP}"),
            low: Box::new(move |number| format!("{client}::bigint * {LOW_STEP} + {number}")),
        }
    }
}

/// The statements of a creation, with what changes from one to the next taken out.
pub struct Creation {
    statements: Vec<Logged>,
    drawn: HashMap<String, Drawn>,
    /// Where identifiers begin, in milliseconds since 1970.
    pub base: u64,
    /// The literal of the quote lock that was used.
    pub quote_lock: String,
}

fn bytes_of(literal: &str) -> Option<Vec<u8>> {
    let hex = literal.strip_prefix("'\\x")?.strip_suffix('\'')?;
    (0..hex.len() / 2).map(|at| u8::from_str_radix(hex.get(at * 2..at * 2 + 2)?, 16).ok()).collect()
}

fn milliseconds_of(id: &[u8]) -> u64 {
    id[..6].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

impl Creation {
    /// From two transactions that did the same: what differs between them is drawn anew each time.
    /// `now` is in milliseconds since 1970.
    pub fn new(first: &[Logged], second: Vec<Logged>, now: u64) -> Creation {
        let texts = |statements: &[Logged]| {
            statements.iter().map(|statement| statement.sql.clone()).collect::<Vec<_>>()
        };
        assert_eq!(texts(first), texts(&second), "two creations have different statements");
        let mut drawn: HashMap<String, Drawn> = HashMap::new();
        let pairs = first
            .iter()
            .zip(&second)
            .flat_map(|(first, second)| first.parameters.iter().zip(&second.parameters));
        for (before, after) in pairs {
            let Some(bytes) = bytes_of(after)
                .filter(|bytes| before != after && (16..=DRAWN_BYTES_MAX).contains(&bytes.len()))
            else {
                continue;
            };
            let number = drawn.len();
            drawn.entry(after.clone()).or_insert(Drawn { number, bytes });
        }
        let base = drawn
            .values()
            .filter(|drawn| drawn.is_id(now))
            .map(|drawn| milliseconds_of(&drawn.bytes))
            .max()
            .unwrap_or(now);
        let lock = second
            .iter()
            .find(|statement| statement.sql.starts_with("UPDATE quote_locks"))
            .expect("the quote lock is taken");
        let quote_lock = lock
            .parameters
            .iter()
            .filter(|literal| drawn.contains_key(*literal))
            .min_by_key(|literal| (*literal).clone());
        // The lock is older than the transfer, and identifiers rise.
        let quote_lock = quote_lock.expect("the lock's identifier").clone();
        let mut creation = Creation { statements: second, drawn, base, quote_lock };
        for drawn in creation.drawn.values_mut().filter(|drawn| !drawn.is_id(now)) {
            // Told apart from identifiers by its first byte from here on.
            drawn.bytes[0] = 0xff;
        }
        creation
    }

    /// A literal, or the expression that stands for it.
    fn value(&self, literal: &str, place: &Place) -> String {
        let Some(drawn) = self.drawn.get(literal) else { return literal.to_owned() };
        let bytes = format!("int8send({}) || int8send({})", place.high, (place.low)(drawn.number));
        match drawn.bytes[0] {
            0xff => format!("substring(sha256({bytes}) from 1 for {})", drawn.bytes.len()),
            _ => bytes,
        }
    }

    fn filled(&self, statement: &Logged, place: &Place) -> String {
        let mut text = String::new();
        let mut rest = statement.sql.as_str();
        while let Some((before, after)) = rest.split_once('$') {
            let digits = after.len()
                - after.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
            let number: usize = after[..digits].parse().expect("a parameter's number");
            text.push_str(before);
            text.push_str(&self.value(&statement.parameters[number - 1], place));
            rest = &after[digits..];
        }
        text + rest
    }

    /// For `pgbench -D base=… -D n=0`, with a fresh quote lock for each transaction of each client.
    /// What can be worked out by pgbench is, so that the server does as little as it does for the
    /// service, which sends values.
    pub fn script(&self) -> String {
        let mut script = format!("\\set n :n + 1\n\\set high (:base + :n) * {HIGH_STEP}\n");
        for number in 0..self.drawn.len() {
            script.push_str(&format!("\\set low{number} :client_id * {LOW_STEP} + {number}\n"));
        }
        let place =
            Place { high: ":high".to_owned(), low: Box::new(|number| format!(":low{number}")) };
        for statement in &self.statements {
            script.push_str(&self.filled(statement, &place));
            script.push_str(";\n");
        }
        script
    }

    /// Quote locks that nobody has used, for `clients` clients with `count` transactions each.
    pub fn quote_locks(&self, base: u64, count: usize, clients: usize) -> String {
        let id = self.value(&self.quote_lock, &Place::of_rows(base, "client"));
        format!(
            "INSERT INTO quote_locks SELECT (jsonb_populate_record(q, jsonb_build_object('id', \
             {id}, 'transfer_id', NULL))).* \
             FROM quote_locks q, generate_series(1, {count}) n, generate_series(0, {clients} - 1) \
             client WHERE q.id = {}",
            self.quote_lock
        )
    }

    /// All rows of creations with the numbers `from` to `to`; their events as the sequencer leaves
    /// them.
    pub fn rows(&self, base: u64, from: usize, to: usize) -> Vec<String> {
        let place = Place::of_rows(base, "999");
        let mut all = Vec::new();
        for statement in
            self.statements.iter().filter(|statement| statement.sql.starts_with("INSERT INTO "))
        {
            let text =
                self.filled(statement, &place).replace("INSERT INTO outbox", "INSERT INTO events");
            let (head, tail) = text.split_once(" VALUES (").expect("an insert of values");
            let end = closing(tail);
            all.push(format!(
                "{head} SELECT {} FROM generate_series({from}, {to}) n{}",
                &tail[..end],
                &tail[end + 1..]
            ));
        }
        let id = self.value(&self.quote_lock, &place);
        all.push(format!(
            "INSERT INTO quote_locks SELECT (jsonb_populate_record(q, jsonb_build_object('id', \
             {id}))).* \
             FROM quote_locks q, generate_series({from}, {to}) n WHERE q.id = {}",
            self.quote_lock
        ));
        all
    }

    pub fn statements_count(&self) -> usize {
        self.statements.len()
    }
}

impl Drawn {
    /// An identifier begins with the time at which it was minted.
    fn is_id(&self, now: u64) -> bool {
        const HOUR: u64 = 3_600_000;
        self.bytes.len() == 16 && milliseconds_of(&self.bytes).abs_diff(now) < HOUR
    }
}

/// Where the parenthesis closes that is open at the start of a text; those within quotes do not
/// count.
fn closing(text: &str) -> usize {
    let (mut depth, mut is_quoted) = (0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted && depth == 0 => return at,
            ')' if !is_quoted => depth -= 1,
            _ => {}
        }
    }
    panic!("no closing parenthesis in {text}");
}
