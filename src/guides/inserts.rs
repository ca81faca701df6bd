//! The parts of guides that come from the code, such as status graphs, error codes and event types,
//! or from CHANGELOG.md: the version, and what changed for callers.

use std::fmt::Write;

use serde_json::Value;

use super::diagram;
use crate::beneficiaries::state::{BeneficiaryStatus, PayoutsDisabledReason};
use crate::deposits::state::DepositStatus;
use crate::kernel::Code;
use crate::kernel::state::Status;
use crate::payouts::state::PayoutStatus;
use crate::rails::FailureCode;
use crate::rate_limits::EXPENSIVE_TOKENS;
use crate::refunds::state::RefundStatus;
use crate::transfers::diagnosis::DiagnosisCode;
use crate::transfers::state::TransferStatus;

/// What the text becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// A page for browsers, with graphs as pictures.
    Page,
    /// Markdown, with graphs as tables.
    Text,
}

const START: &str = "<!-- insert ";
const END: &str = " -->";

/// Replaces every `<!-- insert NAME -->` whose name is known. An unknown name stays, and a test
/// finds it.
pub fn fill(text: &str, document: &Value, output: Output) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(START) {
        filled.push_str(before);
        let Some((name, behind)) = after.split_once(END) else { break };
        match insert(name, document, output) {
            Some(insert) => filled.push_str(&insert),
            None => filled.push_str(&format!("{START}{name}{END}")),
        }
        rest = behind;
    }
    filled.push_str(rest);
    filled
}

fn insert(name: &str, document: &Value, output: Output) -> Option<String> {
    Some(match name {
        "transfer statuses" => graph::<TransferStatus>(output),
        "beneficiary statuses" => graph::<BeneficiaryStatus>(output),
        "payout statuses" => graph::<PayoutStatus>(output),
        "refund statuses" => graph::<RefundStatus>(output),
        "deposit statuses" => graph::<DepositStatus>(output),
        "error codes" => error_codes(),
        "failure codes" => failure_codes(),
        "event types" => event_types(document),
        "expensive tokens" => EXPENSIVE_TOKENS.to_string(),
        "version" => version(include_str!("../../CHANGELOG.md"), env!("CARGO_PKG_VERSION")),
        "diagnosis codes" => diagnosis_codes(),
        "disabled reasons" => disabled_reasons(),
        "changes" => changes(include_str!("../../CHANGELOG.md")),
        _ => return None,
    })
}

fn graph<S: Status>(output: Output) -> String {
    if output == Output::Page {
        return diagram::draw::<S>();
    }
    let mut table = String::from("| From | To |\n|---|---|\n");
    for status in S::ALL {
        let next: Vec<String> = S::ARROWS
            .iter()
            .filter(|(from, _)| from == status)
            .map(|(_, to)| format!("`{}`", to.as_str()))
            .collect();
        let next = if next.is_empty() { "the end".to_owned() } else { next.join(", ") };
        // Writing to a text cannot fail.
        let _ = writeln!(table, "| `{}` | {next} |", status.as_str());
    }
    table
}

/// A section for each code, with its HTTP status; `action_unauthorized` has two statuses and one
/// section.
fn error_codes() -> String {
    let mut text = String::new();
    let mut seen: Vec<&str> = Vec::new();
    for code in Code::ALL {
        if seen.contains(&code.as_str()) {
            continue;
        }
        seen.push(code.as_str());
        let same: Vec<&Code> =
            Code::ALL.iter().filter(|other| other.as_str() == code.as_str()).collect();
        let _ = writeln!(text, "### {}\n", code.as_str());
        for code in same {
            let _ = writeln!(
                text,
                "**{}.** {} {}{}\n",
                code.http_status(),
                code.meaning(),
                code.remedy(),
                // Only a GET is told that an advice is not ready, and a GET has no key.
                if code.new_key_required() && *code != Code::PaymentAdviceNotReady {
                    " A POST then needs a new idempotency key: the old one gets this answer again."
                } else {
                    ""
                }
            );
        }
    }
    text
}

/// A table of why payouts fail or come back.
fn failure_codes() -> String {
    let mut table = String::from("| `failure.code` | Cause | What you do |\n|---|---|---|\n");
    for code in FailureCode::ALL {
        // Writing to a text cannot fail.
        let _ = writeln!(table, "| `{}` | {} | {} |", code.as_str(), code.message(), code.remedy());
    }
    table
}

/// A table of what the diagnosis of a payment can say.
fn diagnosis_codes() -> String {
    let mut table = String::from("| `code` | What became of it | What you do |\n|---|---|---|\n");
    for code in DiagnosisCode::ALL {
        // Writing to a text cannot fail.
        let _ = writeln!(table, "| `{}` | {} | {} |", code.as_str(), code.meaning(), code.remedy());
    }
    table
}

/// A table of why a beneficiary cannot be paid.
fn disabled_reasons() -> String {
    let mut table =
        String::from("| `payouts_disabled_reason` | Cause | What you do |\n|---|---|---|\n");
    for reason in PayoutsDisabledReason::ALL {
        let (word, cause, remedy) = (reason.as_str(), reason.meaning(), reason.remedy());
        // Writing to a text cannot fail.
        let _ = writeln!(table, "| `{word}` | {cause} | {remedy} |");
    }
    table
}

/// The name of a version in CHANGELOG.md. The name says if the version is not released yet.
fn version(changelog: &str, version: &str) -> String {
    let names = changelog.lines().filter_map(|line| line.strip_prefix("## "));
    let is_it = |name: &&str| name.split(' ').next() == Some(version);
    names.into_iter().find(is_it).unwrap_or(version).to_owned()
}

/// What each release changed for callers, newest first.
fn changes(changelog: &str) -> String {
    let mut text = String::new();
    for release in changelog.split("\n## ").skip(1) {
        let (name, parts) = release.split_once('\n').unwrap_or((release, ""));
        let callers = parts.split("### ").find_map(|part| part.strip_prefix("For callers\n"));
        if let Some(callers) = callers {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "### {name}\n\n{}\n", callers.trim());
        }
    }
    text
}

fn event_types(document: &Value) -> String {
    let types = document["webhooks"].as_object().map(|types| types.keys()).into_iter().flatten();
    let mut text = String::new();
    for event_type in types {
        let _ = writeln!(text, "- `{event_type}`");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words for people who build the project, or who read the guide of one language.
    const BUILDERS_WORDS: [&str; 8] = [
        "npx tsx",
        "cargo add",
        "Perl program",
        "With Express",
        "receive_express",
        "docs/guides/",
        "src/",
        ".rs",
    ];

    #[test]
    fn a_release_is_called_as_the_changes_call_it() {
        let log = "# Changes\n\n## 2.0 (new)\n\n## 1.0\n";
        assert_eq!(version(log, "2.0"), "2.0 (new)");
        assert_eq!(version(log, "1.0"), "1.0");
        assert_eq!(version(log, "3.0"), "3.0");
    }

    #[test]
    fn callers_read_their_part_of_the_changes_and_no_other() {
        let log = "# Changes\n\n## 2 (new)\n\n### For callers\n\n- One.\n\n### For operators\n\n\
                   - Two.\n\n## 1\n\n### For callers\n\n- Three.\n\n## 0\n\nFirst.\n";
        assert_eq!(changes(log), "### 2 (new)\n\n- One.\n\n### 1\n\n- Three.\n\n");
        let served = insert("changes", &Value::Null, Output::Text).unwrap();
        assert!(served.contains("### 0.2.0") && served.lines().count() > 20, "{served}");
        for word in BUILDERS_WORDS {
            assert!(!served.contains(word), "the changes for callers say {word:?}");
        }
    }
}
