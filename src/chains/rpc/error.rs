//! Classifies the many ways in which nodes, and the gateways in front of them, refuse a question.

use serde::Deserialize;

use crate::chains::port::NodeError;

/// Characters of a node's own words that are kept.
const WORDS_LENGTH_MAX: usize = 200;

/// A node's own words, short and on one line, for logs and messages.
pub(super) fn words(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().take(WORDS_LENGTH_MAX).map(plain).collect()
}

/// Whether a text says that there were too many requests.
pub(super) fn is_rate_limit(text: &str) -> bool {
    let lower = text.to_lowercase();
    [
        "rate limit",
        "request count",
        "too many requests",
        "computing resources",
        "frequency limit",
        "daily usage",
        "suspended for",
        "asks too often",
        "compute units per second",
        "capacity limit exceeded",
    ]
    .iter()
    .any(|known| lower.contains(known))
}

/// An error in the form of the JSON-RPC.
#[derive(Deserialize)]
pub(super) struct RpcErrorBody {
    #[serde(default)]
    pub code: i64,
    #[serde(default)]
    pub message: String,
}

impl RpcErrorBody {
    /// Whether the error is about the batch, so that each question alone may be answered.
    pub fn is_about_batch(&self) -> bool {
        self.message.to_lowercase().contains("batch")
    }

    /// The error, classified by what can be done about it: by its code, or by its words if the code
    /// says too little.
    pub fn classified(&self) -> NodeError {
        let message = words(&self.message);
        let text = format!("{} {message}", self.code);
        let lower = message.to_lowercase();
        let says = |known: &[&str]| known.iter().any(|word| lower.contains(word));
        // A tag such as `finalized`; "stage" and "advantage" only contain the letters.
        let is_about_tag =
            lower.split(|letter: char| !letter.is_alphanumeric()).any(|word| word.ends_with("tag"));
        match self.code {
            // A contract's own words, which anybody can write: they say nothing about the node.
            3 => NodeError::Refused(text),
            _ if says(&["revert"]) => NodeError::Refused(text),
            429 => NodeError::Limited(text),
            -32601 => NodeError::MethodMissing(text),
            // Checked before the codes below, because some gateways say -32005 for too many
            // requests too.
            _ if is_rate_limit(&message) => NodeError::Limited(text),
            -32005 | -32003 => NodeError::TooMuch(text),
            _ if says(&[
                "block range",
                "more than",
                "too large",
                "too big",
                "too many results",
                "response size",
                "exceeds max results",
                "exceeds limit of",
                "is limited to a",
            ]) =>
            {
                NodeError::TooMuch(text)
            }
            _ if says(&[
                "not supported",
                "does not exist/is not available",
                "method not found",
                "not whitelisted",
                "not allowed",
                "unsupported",
            ]) || is_about_tag =>
            {
                NodeError::MethodMissing(text)
            }
            _ => NodeError::Refused(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_classified() {
        let classified =
            |code: i64, message: &str| RpcErrorBody { code, message: message.into() }.classified();
        type Is = fn(&NodeError) -> bool;
        let table: [(i64, &str, Is); 26] = [
            // A contract's reason, which a stranger wrote.
            (3, "execution reverted: too many requests", |error| {
                matches!(error, NodeError::Refused(_))
            }),
            (-32000, "execution reverted: more than a block range", |error| {
                matches!(error, NodeError::Refused(_))
            }),
            (429, "Your app has exceeded its compute units per second capacity.", |error| {
                matches!(error, NodeError::Limited(_))
            }),
            (-32000, "Monthly capacity limit exceeded", |error| {
                matches!(error, NodeError::Limited(_))
            }),
            // Texts of reth, Infura and Erigon.
            (-32602, "query exceeds max results 20000, retry with the range 1-10", |error| {
                matches!(error, NodeError::TooMuch(_))
            }),
            (-32602, "range 10001 exceeds limit of 10000", |error| {
                matches!(error, NodeError::TooMuch(_))
            }),
            (-32600, "eth_getLogs is limited to a 5 range", |error| {
                matches!(error, NodeError::TooMuch(_))
            }),
            (-32602, "exceed max block range: 5000", |error| {
                matches!(error, NodeError::TooMuch(_))
            }),
            (-32005, "query returned more than 10000 results", |error| {
                matches!(error, NodeError::TooMuch(_))
            }),
            // The library that reth is built on, Alchemy, and other gateways.
            (-32008, "Response is too big", |error| matches!(error, NodeError::TooMuch(_))),
            (-32600, "You can make eth_getLogs requests with up to a 10 block range.", |error| {
                matches!(error, NodeError::TooMuch(_))
            }),
            (-32602, "query block range exceeds server limit, narrow your filter: 1000", |error| {
                matches!(error, NodeError::TooMuch(_))
            }),
            (-32003, "response too large", |error| matches!(error, NodeError::TooMuch(_))),
            (-32601, "the method eth_getBlockReceipts does not exist", |error| {
                matches!(error, NodeError::MethodMissing(_))
            }),
            (-32602, "TAG [finalized] not supported", |error| {
                matches!(error, NodeError::MethodMissing(_))
            }),
            (-32000, "unknown block tag", |error| matches!(error, NodeError::MethodMissing(_))),
            (-32000, "invalid stage 2", |error| matches!(error, NodeError::Refused(_))),
            (-32000, "an advantage of the vintage", |error| matches!(error, NodeError::Refused(_))),
            (-32052, "method eth_getBlockReceipts is not whitelisted", |error| {
                matches!(error, NodeError::MethodMissing(_))
            }),
            (-32000, "illegal state. 0", |error| matches!(error, NodeError::Refused(_))),
            (-32000, "receipts length mismatch: 0 vs 1", |error| {
                matches!(error, NodeError::Refused(_))
            }),
            (-32600, "this node does not support constant", |error| {
                matches!(error, NodeError::Refused(_))
            }),
            (-32000, "Too Many Requests", |error| matches!(error, NodeError::Limited(_))),
            (-32000, "Exceed the user daily usage", |error| matches!(error, NodeError::Limited(_))),
            (-32005, "daily request count exceeded, request rate limited", |error| {
                matches!(error, NodeError::Limited(_))
            }),
            (-32600, "Too many [\"eth_getLogs\"] methods in the batch", |error| {
                matches!(error, NodeError::Refused(_))
            }),
        ];
        for (code, message, is) in table {
            let error = classified(code, message);
            assert!(is(&error), "{code} {message}: {error:?}");
        }
    }

    #[test]
    fn a_nodes_words_are_short_and_on_one_line() {
        let text = words(&format!("one\ntwo\u{1b}[31m{}", "x".repeat(1_000)));
        assert!(text.chars().count() == WORDS_LENGTH_MAX && text.starts_with("one two [31mx"));
    }
}
