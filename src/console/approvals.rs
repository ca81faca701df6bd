//! Requests that one person made and a second one has to approve.

use askama::Template;

use super::blocks::{moment, more_note, path_of, word};
use super::frame::{Frame, draw};
use super::visit::{Failure, PageOutcome, Visit};
use crate::operator::four_eyes::{self, ApprovalRequest, REQUEST_SECONDS_MAX, RequestStatus};
use crate::operator::submit_waiting;
use crate::oversight::cut;
use crate::staff::Role;
use crate::store::Cost;

const PATH: &str = "/console/approvals";
/// The page reads at most this many requests that wait, and at most this many of the newest.
const REQUESTS_MAX: i64 = 200;

#[derive(Template)]
#[template(path = "console/approvals.html")]
struct ApprovalsPage<'a> {
    frame: Frame<'a>,
    waiting: Vec<ApprovalRequest>,
    decided: Vec<ApprovalRequest>,
    /// The notes below lists that do not show everything; "" below one that does.
    waiting_cut: String,
    decided_cut: String,
    /// The number of the operator who asks for the page.
    own_number: i64,
    may_approve: bool,
    /// In Unix seconds; requests made until then are too old to approve.
    too_old_until: i64,
}

impl ApprovalsPage<'_> {
    /// When a request was made, as a machine-readable time and as text.
    fn asked_at(&self, request: &ApprovalRequest) -> (String, String) {
        moment(request.requested_at)
    }
    /// The requested decision, in the reader's language.
    fn act(&self, request: &ApprovalRequest) -> String {
        let key = format!("act.{}", request.word);
        self.frame.t.get(&key).to_owned()
    }
    /// What a request is about: an identifier, or a text in the reader's language.
    fn subject(&self, request: &ApprovalRequest) -> String {
        self.frame.t.subject(&request.subject)
    }
    fn status(&self, request: &ApprovalRequest) -> String {
        word(self.frame.t, request.status.as_str())
    }
    /// The path of the page of a request's object; `None` if the request is about no object.
    fn path(&self, request: &ApprovalRequest) -> Option<String> {
        request.object().map(path_of)
    }
    fn cause(&self, request: &ApprovalRequest) -> &str {
        let t = self.frame.t;
        match request.cause {
            four_eyes::Cause::Amount => t.get("approvals.cause_amount"),
            four_eyes::Cause::RefundAddress => t.get("approvals.cause_refund_address"),
            four_eyes::Cause::ConfirmedHit => t.get("approvals.cause_confirmed_hit"),
            four_eyes::Cause::Resume => t.get("approvals.cause_resume"),
        }
    }
}

pub async fn page(visit: Visit) -> PageOutcome {
    let read = visit.app.store.read(Cost::Scan, |tx| {
        Ok((
            four_eyes::rows::pending(tx, REQUESTS_MAX + 1)?,
            four_eyes::rows::newest(tx, REQUESTS_MAX + 1)?,
        ))
    });
    let (mut waiting, mut decided) = read.await?;
    let is_more = cut(&mut waiting, REQUESTS_MAX);
    let waiting_cut = more_note(visit.words, is_more, waiting.len());
    let is_more = cut(&mut decided, REQUESTS_MAX);
    decided.retain(|request| request.status != RequestStatus::Pending);
    let decided_cut = more_note(visit.words, is_more, decided.len());
    draw(&ApprovalsPage {
        frame: visit.frame("approvals"),
        waiting,
        decided,
        waiting_cut,
        decided_cut,
        own_number: visit.operator().number,
        may_approve: visit.operator().role.includes(Role::Approver),
        too_old_until: visit.instant() - REQUEST_SECONDS_MAX,
    })
}

fn number(visit: &Visit) -> Result<i64, Failure> {
    visit.path(0).parse().map_err(|_| Failure::NotFound)
}

pub async fn approve(visit: Visit) -> PageOutcome {
    let (number, person) = (number(&visit)?, visit.decided_by(visit.field("reason"))?);
    let services = visit.app.services.clone();
    let approved = visit
        .app
        .store
        .write(move |tx, now| four_eyes::approve(tx, now, &services, number, &person));
    approved.await?;
    // The approval may have ended a pause of payouts. Those that waited for its end go on now.
    submit_waiting(&visit.app.store).await?;
    visit.back_to(PATH, "notice.request_approved")
}

pub async fn reject(visit: Visit) -> PageOutcome {
    let (number, person) = (number(&visit)?, visit.decided_by(visit.field("reason"))?);
    let rejected =
        visit.app.store.write(move |tx, now| four_eyes::reject(tx, now, number, &person));
    rejected.await?;
    visit.back_to(PATH, "notice.request_rejected")
}
