//! Forms for what can be decided now about objects, and the handler that carries these decisions
//! out. It calls the same functions as the commands in the shell.

use super::super::blocks::{PageBlock, PageForm, Question, Tone, path_of, short, word};
use super::super::visit::{Failure, PageOutcome, Visit, is_own_path};
use crate::account_verification::{AccountAnswer, NameMatch};
use crate::beneficiaries::Beneficiary;
use crate::beneficiaries::state::{BeneficiaryStatus, PayoutsDisabledReason};
use crate::chains::address::ChainAddress;
use crate::deposits::state::Classification;
use crate::kernel::id::kind;
use crate::kernel::{AnyId, DecidedBy, Mode, Now, ObjectKind, OperationError};
use crate::operator::{self, ExplainedDifference, OperatorDecision, four_eyes};
use crate::oversight::queues::QueueKind;
use crate::oversight::story::Story;
use crate::payouts::Payout;
use crate::payouts::state::PayoutStatus;
use crate::rails::files::rows::Attention;
use crate::refunds::Refund;
use crate::refunds::state::RefundStatus;
use crate::screening::Screening;
use crate::senders::Sender;
use crate::staff::Role;
use crate::store::Tx;
use crate::transfers::state::{StatusReason, TransferStatus};

/// The most objects that one form decides about.
const OBJECTS_MAX: usize = 100;

/// The decision that a form asks for.
#[derive(Clone)]
enum AskedDecision {
    /// One of the operator's decisions about an object.
    Decision(OperatorDecision),
    /// Where a refund goes.
    Address(ChainAddress),
    /// In which transaction a refund was sent.
    Sent(String),
    /// A refund may be sent although the bank paid.
    Release,
    /// A difference is explained.
    Explain,
}

/// Reads what a form asks for. `Err` tells the operator which field is missing or cannot be read.
fn asked(visit: &Visit) -> Result<AskedDecision, Failure> {
    let words = visit.words;
    let address = || -> Result<Option<ChainAddress>, Failure> {
        let text = visit.field("to").trim();
        if text.is_empty() {
            return Ok(None);
        }
        let parsed = ChainAddress::parse(text).map_err(|error| Failure::told(error.to_string()))?;
        Ok(Some(parsed))
    };
    let needed = |name: &str| {
        let text = visit.field(name).trim();
        match text.is_empty() {
            true => Err(Failure::told(words.get("decide.missing"))),
            false => Ok(text.to_owned()),
        }
    };
    let check = |answer| AskedDecision::Decision(OperatorDecision::Check(answer));
    Ok(match visit.field("decision") {
        "approve" => AskedDecision::Decision(OperatorDecision::Approve),
        "refuse" => AskedDecision::Decision(OperatorDecision::Refuse),
        "review" => AskedDecision::Decision(OperatorDecision::Review),
        "refund" => AskedDecision::Decision(OperatorDecision::Refund(address()?)),
        "settle" => AskedDecision::Decision(OperatorDecision::Settle(needed("reference")?)),
        "fail" => AskedDecision::Decision(OperatorDecision::Fail),
        "resend" => AskedDecision::Decision(OperatorDecision::Resend),
        "return" => AskedDecision::Decision(OperatorDecision::Return),
        "match" => check(AccountAnswer::Name(NameMatch::Match)),
        "partial" => check(AccountAnswer::Name(NameMatch::Partial)),
        "mismatch" => check(AccountAnswer::Name(NameMatch::Mismatch)),
        "not_nre" => check(AccountAnswer::AccountNotNre),
        "invalid" => check(AccountAnswer::AccountInvalid),
        "address" => match address()? {
            Some(address) => AskedDecision::Address(address),
            None => return Err(Failure::told(words.get("decide.missing"))),
        },
        "sent" => AskedDecision::Sent(needed("hash")?),
        "release" => AskedDecision::Release,
        "accept" => AskedDecision::Explain,
        _ => return Err(Failure::told(words.get("decide.unknown"))),
    })
}

/// Who decides, and why. `Err` if the form gives no reason.
pub fn decided_by(visit: &Visit) -> Result<DecidedBy, Failure> {
    let by = visit.decided_by(visit.field("reason"))?;
    match by.reason().is_empty() {
        true => Err(Failure::told(visit.words.get("decide.no_reason"))),
        false => Ok(by),
    }
}

/// The page to go back to, which the form names; the overview if it names no page of the console.
pub fn back(visit: &Visit) -> String {
    let path = visit.field("back");
    if is_own_path(path) { path.to_owned() } else { "/console".to_owned() }
}

/// Carries out what a form asks, for each object in a transaction of its own. If some objects are
/// refused, the others stay decided, and the answer says how many were decided. If the store fails
/// at one object, those before it stay decided, and those after it are not tried.
pub async fn submit(visit: Visit) -> PageOutcome {
    let by = decided_by(&visit)?;
    let asked = asked(&visit)?;
    let is_explained = matches!(asked, AskedDecision::Explain);
    let objects: Vec<&str> = visit
        .fields("object")
        .filter(|text| is_explained || AnyId::parse(text).is_some())
        .collect();
    if objects.is_empty() || objects.len() > OBJECTS_MAX {
        return Err(Failure::told(visit.words.get("decide.nothing_picked")));
    }
    let (mut refused, mut waits, mut done_count) = (Vec::new(), false, 0);
    for object in &objects {
        match carry_out(&visit, object, asked.clone(), by.clone()).await {
            Ok(outcome) => {
                waits |= four_eyes::is_waiting(&outcome);
                done_count += 1;
            }
            Err(OperationError::Store(error)) if done_count == 0 => return Err(error.into()),
            Err(OperationError::Store(error)) => {
                tracing::error!(%error, "the store failed in the middle of several decisions");
                refused.push(visit.words.with("decide.failed", [("object", *object)]));
                break;
            }
            Err(other) => refused.push(visit.words.refusal(&other.to_string())),
        }
    }
    if refused.is_empty() {
        let notice = if waits { "notice.waits_second" } else { "notice.decided" };
        return visit.back_to(&back(&visit), notice);
    }
    let done = done_count.to_string();
    let all = objects.len().to_string();
    let mut text = refused.join("; ");
    if objects.len() > 1 {
        let counts = [("done", done.as_str()), ("all", all.as_str())];
        text = format!("{} {text}", visit.words.with("decide.some", counts));
    }
    Err(Failure::told(text))
}

async fn carry_out(
    visit: &Visit,
    object: &str,
    asked: AskedDecision,
    by: DecidedBy,
) -> Result<String, OperationError> {
    let services = visit.app.services.clone();
    let object = object.to_owned();
    let decide = move |tx: &mut dyn Tx, now: &mut Now| {
        let id = || {
            let none = || OperationError::Declined(format!("{object}: there is no such object"));
            AnyId::parse(&object).ok_or_else(none)
        };
        let refund = || {
            let wrong = || OperationError::Declined(format!("{object}: this is about a refund"));
            id()?.typed::<kind::Refund>().ok_or_else(wrong)
        };
        match &asked {
            AskedDecision::Decision(decision) => {
                operator::decide(tx, now, &services, id()?, decision, &by)
            }
            AskedDecision::Address(to) => {
                operator::set_refund_address(tx, now, &services, refund()?, *to, &by)
            }
            AskedDecision::Sent(hash) => {
                operator::mark_refund_sent(tx, now, &services, refund()?, hash, false, &by)
            }
            AskedDecision::Release => operator::release_refund(tx, now, &services, refund()?, &by),
            AskedDecision::Explain => {
                // The queue names a difference by its identifier, or by its kind, a space and its
                // subject (`difference_pick` in `queues.rs`).
                let (kind, what) = object.split_once(' ').unwrap_or(("", &object));
                let asked = ExplainedDifference {
                    what: what.to_owned(),
                    payouts: Vec::new(),
                    kind: (!kind.is_empty()).then(|| kind.to_owned()),
                };
                operator::explain(tx, now, &services.settings, &asked, &by)
            }
        }
    };
    visit.app.store.write(decide).await
}

// Forms.

/// A form about one object. `asks` has each question besides the reason: its field's name, and the
/// key of its label. `buttons` has the decisions.
fn form(
    visit: &Visit,
    id: AnyId,
    title: String,
    help: &str,
    asks: &[(&'static str, &'static str)],
    buttons: &[&str],
) -> PageBlock {
    PageBlock::Form(PageForm {
        action: "/console/decide".into(),
        is_change: true,
        title,
        help: if help.is_empty() { String::new() } else { visit.words.get(help).to_owned() },
        hidden: vec![("object", id.to_string()), ("back", back_of(visit, id))],
        questions: questions(visit, asks),
        buttons: self::buttons(visit, buttons),
    })
}

/// The page to come back to: the one that shows the form.
fn back_of(visit: &Visit, id: AnyId) -> String {
    let shown = visit.path(0);
    match AnyId::parse(shown) {
        Some(shown) => path_of(shown),
        None => path_of(id),
    }
}

/// The questions of a decision: `asks`, and last the reason.
pub(super) fn questions(visit: &Visit, asks: &[(&'static str, &'static str)]) -> Vec<Question> {
    let words = visit.words;
    let question = |(name, key): &(&'static str, &'static str)| Question {
        is_required: *name == "reason",
        ..Question::new(name, words.get(key))
    };
    asks.iter().chain(&[("reason", "decide.reason")]).map(question).collect()
}

fn buttons(visit: &Visit, buttons: &[&str]) -> Vec<(String, String, bool)> {
    let button = |name: &&str| {
        let is_bad = matches!(*name, "refuse" | "fail" | "return" | "invalid" | "not_nre");
        let text = visit.words.get(&format!("act.{name}")).to_owned();
        ((*name).to_owned(), text, is_bad)
    };
    buttons.iter().map(button).collect()
}

/// The forms; or a note, if nothing can be decided or this operator may not decide.
fn or_nothing(visit: &Visit, forms: Vec<PageBlock>) -> Vec<PageBlock> {
    let note = |key: &str| {
        vec![PageBlock::Note { tone: Tone::Plain, text: visit.words.get(key).to_owned() }]
    };
    if forms.is_empty() {
        note("decide.nothing")
    } else if !visit.operator().role.includes(Role::Operator) {
        note("decide.viewer")
    } else {
        forms
    }
}

/// What can be decided about a transfer and what belongs to it.
pub fn of_story(visit: &Visit, story: &Story) -> Vec<PageBlock> {
    let words = visit.words;
    let transfer = &story.transfer;
    let mut forms = Vec::new();
    if transfer.status == TransferStatus::FundingHold {
        let title = words.get("decide.hold").to_owned();
        let id = transfer.id.any();
        forms.push(match transfer.status_reason {
            Some(StatusReason::ComplianceReview) => {
                form(visit, id, title, "decide.hold_review", &[], &["approve", "refuse"])
            }
            _ => form(visit, id, title, "decide.hold_help", &[], &["review"]),
        });
    }
    for deposit in &story.deposits {
        let is_refunded = story.refunds.iter().any(|refund| refund.deposit_id == Some(deposit.id));
        if deposit.classification == Some(Classification::Unmatched) && !is_refunded {
            let title = titled(visit, "decide.unmatched", deposit.id.any());
            let asks = [("to", "decide.to_optional")];
            let help = "decide.unmatched_help";
            forms.push(form(visit, deposit.id.any(), title, help, &asks, &["refund"]));
        }
    }
    if let Some(payout) = &story.payout {
        let attention = story.instruction.as_ref().and_then(|found| found.attention);
        forms.extend(of_payout(visit, payout, attention));
    }
    for refund in &story.refunds {
        forms.extend(of_refund(visit, refund));
    }
    or_nothing(visit, forms)
}

fn titled(visit: &Visit, key: &str, id: AnyId) -> String {
    visit.words.with(key, [("id", short(&id.to_string()).as_str())])
}

fn of_payout(visit: &Visit, payout: &Payout, attention: Option<Attention>) -> Vec<PageBlock> {
    let id = payout.id.any();
    let title = |key: &str| titled(visit, key, id);
    match payout.status {
        PayoutStatus::Processing if payout.failure.is_some() || attention.is_some() => {
            let may_resend =
                matches!(attention, Some(Attention::FileRefused | Attention::RefusedForUs));
            let buttons: &[&str] =
                if may_resend { &["settle", "resend", "fail"] } else { &["settle", "fail"] };
            let asks = [("reference", "decide.reference")];
            let help = "decide.unknown_help";
            vec![form(visit, id, title("decide.payout_unknown"), help, &asks, buttons)]
        }
        PayoutStatus::Hold => {
            let (title, help) = (title("decide.payout_hold"), "decide.payout_hold_help");
            vec![form(visit, id, title, help, &[], &["approve", "refuse"])]
        }
        PayoutStatus::Settled => {
            let (title, help) = (title("decide.payout_settled"), "decide.payout_settled_help");
            vec![form(visit, id, title, help, &[], &["return"])]
        }
        _ => Vec::new(),
    }
}

fn of_refund(visit: &Visit, refund: &Refund) -> Vec<PageBlock> {
    let id = refund.id.any();
    let title = |key: &str| titled(visit, key, id);
    let mut forms = Vec::new();
    if refund.is_held_by_screening {
        let (title, help) = (title("decide.refund_held"), "decide.refund_held_help");
        forms.push(form(visit, id, title, help, &[], &["approve", "refuse"]));
    }
    if refund.is_held_by_screening || refund.status == RefundStatus::RequiresAddress {
        let asks = [("to", "decide.to")];
        let (title, help) = (title("decide.refund_address"), "decide.refund_address_help");
        forms.push(form(visit, id, title, help, &asks, &["address"]));
    }
    if refund.bank_hold_reason.is_some() {
        let (title, help) = (title("decide.refund_bank"), "decide.refund_bank_help");
        forms.push(form(visit, id, title, help, &[], &["release"]));
    }
    let is_simulated = visit.services().simulates(refund.scope.mode(), &refund.chain);
    if refund.status == RefundStatus::Processing && !refund.is_on_hold() && !is_simulated {
        let asks = [("hash", "decide.hash")];
        let (title, help) = (title("decide.refund_sent"), "decide.refund_sent_help");
        forms.push(form(visit, id, title, help, &asks, &["sent"]));
    }
    forms
}

pub fn of_beneficiary(visit: &Visit, found: &Beneficiary) -> Vec<PageBlock> {
    let words = visit.words;
    let id = found.id.any();
    let is_held = found.payouts_disabled_reason == Some(PayoutsDisabledReason::ComplianceHold);
    let mut forms = Vec::new();
    let title = |key: &str| words.get(key).to_owned();
    match found.status {
        BeneficiaryStatus::Verifying => {
            let (heading, help) = (title("decide.verifying"), "decide.verifying_help");
            forms.push(form(visit, id, heading, help, &[], &["approve", "refuse"]));
            if !is_held {
                let (title, help) = (title("decide.by_hand"), "decide.by_hand_help");
                let buttons = ["match", "partial", "mismatch", "not_nre", "invalid"];
                forms.push(form(visit, id, title, help, &[], &buttons));
            }
        }
        BeneficiaryStatus::Active if !found.payouts_enabled => {
            let buttons: &[&str] = if is_held { &["approve", "refuse"] } else { &["approve"] };
            let (title, help) = (title("decide.disabled"), "decide.disabled_help");
            forms.push(form(visit, id, title, help, &[], buttons));
        }
        _ => {}
    }
    or_nothing(visit, forms)
}

pub fn of_sender(visit: &Visit, found: &Sender) -> Vec<PageBlock> {
    let buttons: &[&str] = match found.screening {
        Screening::Clear => &["refuse"],
        Screening::PossibleMatch => &["approve", "refuse"],
        Screening::ConfirmedMatch => &["approve"],
    };
    let title = visit.words.get("decide.sender").to_owned();
    let forms = vec![form(visit, found.id.any(), title, "decide.sender_help", &[], buttons)];
    or_nothing(visit, forms)
}

/// The form below a queue, which decides about the ticked rows together. `None` for a queue in
/// which decisions need a value for each row, such as an address or a UTR.
pub fn together(visit: &Visit, queue: QueueKind, mode: Mode) -> Option<PageForm> {
    let buttons: &[&str] = match queue {
        QueueKind::Holds => &["review", "approve", "refuse"],
        QueueKind::Reviews | QueueKind::Verifications => &["approve", "refuse"],
        QueueKind::Unmatched => &["refund"],
        QueueKind::Differences => &["accept"],
        QueueKind::Payouts | QueueKind::Refunds | QueueKind::RefundAddresses => return None,
    };
    let path = format!("/console/queues/{}?mode={}", queue.as_str(), mode.as_str());
    Some(PageForm {
        action: "/console/decide".into(),
        is_change: true,
        title: visit.words.get("decide.together").to_owned(),
        help: String::new(),
        hidden: vec![("back", path)],
        questions: questions(visit, &[]),
        buttons: self::buttons(visit, buttons),
    })
}

/// What a decision is about: a link to the object, or a text.
pub fn subject_cell(visit: &Visit, subject: &str) -> super::PageCell {
    match AnyId::parse(subject) {
        Some(id) if id.kind != ObjectKind::Request => super::PageCell::id(id),
        _ => super::PageCell::Text(visit.words.subject(subject)),
    }
}

/// A decision's word in the reader's language.
pub fn decision_word(visit: &Visit, decision: &str) -> String {
    word(visit.words, &format!("decided_{decision}"))
}
