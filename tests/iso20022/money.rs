//! Reports that contradict each other: no money moves by itself, and the operator is told at once.

use std::fs;

use hundi::backlog;
use hundi::kernel::id::kind;
use hundi::kernel::{Id, Mode, Money, Now, OperationError};
use hundi::operator::{self, OperatorDecision, decide};
use hundi::oversight::AccountNames;
use hundi::oversight::queues::{self, QueueKind};
use hundi::payouts::state::PayoutStatus;
use hundi::rails::files::rows::{self, Attention};
use hundi::rails::files::values::EndToEndId;
use hundi::rails::{FailureCode, FailureSource};
use hundi::reconcile::{self, DifferenceKind, explaining};
use hundi::store::Tx;
use hundi::workers::bank::TurnReport;
use serde_json::{Value, json};

use crate::bank::{PAID, Scene};
use crate::support::{by, id};

/// The parts of an entry that tests vary.
pub struct Entry<'a> {
    pub amount: Money,
    pub sign: &'a str,
    /// Elements after the dates, such as a transaction's details.
    pub more: String,
    pub head: &'a str,
}

pub fn refs(payout_id: Id<kind::Payout>, more: &str) -> String {
    let name = EndToEndId::of(payout_id);
    format!(
        "<NtryDtls><TxDtls><Refs><EndToEndId>{name}</EndToEndId>{more}</Refs></TxDtls></NtryDtls>"
    )
}

pub fn debit(amount: Money, more: String) -> Entry<'static> {
    Entry { amount, sign: "DBIT", more, head: "" }
}
pub fn credit(amount: Money, more: String) -> Entry<'static> {
    Entry { amount, sign: "CRDT", more, head: "" }
}

pub fn entry(entry: &Entry) -> String {
    let Entry { amount, sign, more, head } = entry;
    format!(
        "<Ntry><Amt Ccy=\"INR\">{amount}</Amt><CdtDbtInd>{sign}</CdtDbtInd>{head}<Sts><Cd>BOOK</Cd></Sts>\
         <BookgDt><Dt>2026-11-21</Dt></BookgDt><BkTxCd/>{more}</Ntry>"
    )
}

pub fn notification(message: &str, entries: &[Entry]) -> String {
    let entries: String = entries.iter().map(entry).collect();
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.054.001.08\">\
         <BkToCstmrDbtCdtNtfctn><GrpHdr><MsgId>{message}</MsgId><CreDtTm>2026-11-21T10:00:00</CreDtTm>\
         </GrpHdr><Ntfctn><Id>1</Id><Acct><Id><Othr><Id>00112233445566</Id></Othr></Id></Acct>\
         {entries}</Ntfctn></BkToCstmrDbtCdtNtfctn></Document>"
    )
}

/// A statement from nothing to what its entries leave, in paise.
pub fn statement(message: &str, id: &str, head: &str, closing: i64, entries: &[Entry]) -> String {
    let entries: String = entries.iter().map(entry).collect();
    let sign = if closing < 0 { "DBIT" } else { "CRDT" };
    let closing = Money::new(closing.abs(), hundi::kernel::Currency::Inr);
    let balance = |kind: &str, amount: &str, sign: &str| {
        format!(
            "<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp><Amt Ccy=\"INR\">{amount}</Amt>\
             <CdtDbtInd>{sign}</CdtDbtInd><Dt><Dt>2026-11-21</Dt></Dt></Bal>"
        )
    };
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.08\"><BkToCstmrStmt>\
         <GrpHdr><MsgId>{message}</MsgId><CreDtTm>2026-11-21T10:00:00</CreDtTm></GrpHdr><Stmt>\
         <Id>{id}</Id><ElctrncSeqNb>1</ElctrncSeqNb>{head}\
         <Acct><Id><Othr><Id>00112233445566</Id></Othr></Id></Acct>{}{}{entries}</Stmt>\
         </BkToCstmrStmt></Document>",
        balance("OPBD", "0.00", "CRDT"),
        balance("CLBD", &closing.to_string(), sign)
    )
}

pub fn status(message: &str, original: &str, group: &str, payments: &str) -> String {
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pain.002.001.10\"><CstmrPmtStsRpt>\
         <GrpHdr><MsgId>{message}</MsgId><CreDtTm>2026-11-21T10:00:00</CreDtTm></GrpHdr>\
         <OrgnlGrpInfAndSts><OrgnlMsgId>{original}</OrgnlMsgId><OrgnlMsgNmId>pain.001</OrgnlMsgNmId>\
         {group}</OrgnlGrpInfAndSts><OrgnlPmtInfAndSts><OrgnlPmtInfId>{original}-NEFT</OrgnlPmtInfId>\
         {payments}</OrgnlPmtInfAndSts></CstmrPmtStsRpt></Document>"
    )
}

pub fn refusal(payout_id: Id<kind::Payout>, reason: &str) -> String {
    let name = EndToEndId::of(payout_id);
    format!(
        "<TxInfAndSts><OrgnlEndToEndId>{name}</OrgnlEndToEndId><TxSts>RJCT</TxSts>{reason}</TxInfAndSts>"
    )
}

pub fn reason(code: &str, text: &str) -> String {
    format!("<StsRsnInf><Rsn><Cd>{code}</Cd></Rsn><AddtlInf>{text}</AddtlInf></StsRsnInf>")
}

impl Scene {
    /// Puts files into the inbox, and lets the worker read them.
    pub async fn hear(&mut self, files: &[String]) -> TurnReport {
        for (index, text) in files.iter().enumerate() {
            self.put(&format!("{index}-{}.xml", files.len()), text.as_bytes());
        }
        self.turn().await;
        self.turn().await
    }

    /// A payout that the agent has taken to the bank, and the file that it is in.
    pub async fn sent(&mut self, amount: &str) -> (Value, Id<kind::Payout>, String) {
        let (transfer, payout_id) = self.payout(PAID, amount).await;
        self.turn().await;
        let file = self.taken().pop().unwrap();
        let message_id = file.split("<MsgId>").nth(1).unwrap().split('<').next().unwrap();
        (transfer, payout_id, message_id.to_owned())
    }

    pub async fn journalled(&self, payout_id: Id<kind::Payout>) -> rows::Journalled {
        let find = move |tx: &mut dyn Tx, _: &mut Now| Ok(rows::find(tx, payout_id)?);
        self.server.app.state.store.write(find).await.unwrap().unwrap()
    }

    pub async fn attention(&self, payout_id: Id<kind::Payout>) -> Option<Attention> {
        self.journalled(payout_id).await.attention
    }

    pub async fn decide(
        &self,
        payout_id: Id<kind::Payout>,
        decision: OperatorDecision,
    ) -> Result<String, OperationError> {
        let services = self.server.app.state.services.clone();
        let decide = move |tx: &mut dyn Tx, now: &mut Now| {
            decide(tx, now, &services, payout_id.any(), &decision, &by())
        };
        self.server.app.state.store.write(decide).await
    }

    async fn refund(&self, transfer: &Value) -> Value {
        let transfer = self.client.get(&format!("/v1/transfers/{}", id(transfer))).await.ok();
        let path = format!("/v1/refunds/{}", transfer["refund"]["id"].as_str().unwrap());
        self.client.get(&path).await.ok()
    }
}

pub const UTR: &str = "<ClrSysRef>SBIN126166441955</ClrSysRef>";

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_after_a_refusal_stops_the_refund_and_waits_for_the_operator() {
    let mut scene = Scene::new(Vec::new()).await;
    let (transfer, payout_id, message) = scene.sent("100.00").await;
    let amount = scene.find(payout_id).await.amount;
    let refused = refusal(payout_id, &reason("AC04", "ACCOUNT CLOSED"));
    let turn = scene.hear(&[status("S1", &message, "", &refused)]).await;
    assert_eq!((turn.counts.applied, turn.alarms_count), (1, 0));
    assert_eq!(scene.find(payout_id).await.status, PayoutStatus::Failed);
    assert_eq!(scene.refund(&transfer).await["status"], "requires_address");

    let paid = refs(payout_id, &format!("<AcctSvcrRef>E1</AcctSvcrRef>{UTR}"));
    let turn = scene.hear(&[notification("N1", &[debit(amount, paid.clone())])]).await;
    assert_eq!(turn.alarms_count, 1, "it is an alarm, and nothing that is ignored");
    assert_eq!(scene.attention(payout_id).await, Some(Attention::PaidAfterFailed));
    assert_eq!(scene.server.app.state.metrics.bank_alarms.counted("paid_after_failed"), 1);
    assert!(scene.differences().await.contains(&DifferenceKind::PaidAfterFailed));
    assert_eq!(scene.find(payout_id).await.status, PayoutStatus::Failed);

    // The address comes, and the refund does not go.
    let refund = scene.refund(&transfer).await;
    let path = format!("/v1/refunds/{}", id(&refund));
    let body = json!({ "to_address": "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC" });
    assert_eq!(scene.client.post(&path, body).await.ok()["status"], "processing");
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert_eq!(scene.refund(&transfer).await["status"], "processing", "it is held");
    let complete = format!("/v1/test_helpers/refunds/{}/complete", id(&refund));
    assert_eq!(scene.client.post(&complete, json!({})).await.status, 400);

    // The same payment again, on the day's statement, is no second alarm.
    let closing = -amount.units;
    let day = statement("D1", "D1", "", closing, &[debit(amount, paid)]);
    assert_eq!(scene.hear(&[day]).await.alarms_count, 0);

    // The operator has the money back, explains it, and lets the refund go.
    // What `hundi doctor`, the console and the metrics count.
    let waiting = async |scene: &Scene| {
        let counts = |tx: &mut dyn Tx, now: &mut Now| {
            let doctor = rows::awaiting_operator(tx, usize::MAX)?.len();
            let accounts = AccountNames::read(tx)?;
            let queue = queues::read(tx, QueueKind::Payouts, &accounts, Mode::Test, &["tron"])?;
            let waiting = backlog::rows::waiting(tx, now.instant_milliseconds())?;
            let for_operator = waiting.iter().filter(|count| count.of == "payouts_for_operator");
            Ok((doctor, queue.items.len(), for_operator.map(|count| count.count).sum::<i64>()))
        };
        scene.server.app.state.store.write(counts).await.unwrap()
    };
    assert_eq!(waiting(&scene).await, (1, 1, 1));
    let subject = payout_id.to_string();
    let refund_id: Id<kind::Refund> = Id::parse(&id(&refund)).unwrap();
    let services = scene.server.app.state.services.clone();
    let release = move |tx: &mut dyn Tx, now: &mut Now| {
        for kind in ["paid_after_failed", "line_without_settlement"] {
            let closed = explaining::explain_by_subject(
                tx,
                now,
                &subject,
                Some(kind),
                "the bank paid it back",
            )?;
            assert_eq!(closed.len(), 1, "{kind}");
        }
        operator::release_refund(tx, now, &services, refund_id, &by())
    };
    scene.server.app.state.store.write(release).await.unwrap();
    assert_eq!(scene.differences().await, Vec::new());
    assert_eq!(waiting(&scene).await, (0, 0, 0), "it no longer waits for the operator");
    scene.client.wait_status(&path, "completed").await;
    scene.assert_book();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_return_before_the_payment_is_confirmed_is_held_and_never_failed_by_itself() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, payout_id, message) = scene.sent("100.00").await;
    let amount = scene.find(payout_id).await.amount;
    let back = notification("N1", &[credit(amount, refs(payout_id, ""))]);
    assert_eq!(scene.hear(&[back]).await.alarms_count, 1);
    let payout = scene.find(payout_id).await;
    assert_eq!(payout.status, PayoutStatus::Processing);
    assert_eq!(payout.failure.unwrap().code, FailureCode::OutcomeUnknown);
    assert_eq!(scene.attention(payout_id).await, Some(Attention::ReturnedWhileProcessing));
    // What comes late settles it as little as it fails it.
    let late = [
        notification("N2", &[debit(amount, refs(payout_id, UTR))]),
        status("S1", &message, "", &refusal(payout_id, &reason("AC04", ""))),
    ];
    assert_eq!(scene.hear(&late).await.alarms_count, 0);
    assert_eq!(scene.find(payout_id).await.status, PayoutStatus::Processing);
    assert_eq!(scene.differences().await, [DifferenceKind::OutcomeUnknown]);

    scene.decide(payout_id, OperatorDecision::Fail).await.unwrap();
    // The statement shows both legs, and neither is news.
    let lines = [debit(amount, refs(payout_id, UTR)), credit(amount, refs(payout_id, ""))];
    let day = statement("D1", "D1", "", 0, &lines);
    assert_eq!(scene.hear(&[day]).await.alarms_count, 0);
    assert_eq!(scene.differences().await, Vec::new());
    scene.assert_book();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reversal_and_a_second_booking_wait_for_the_operator() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, settled, _) = scene.sent("100.00").await;
    let (_, processing, _) = scene.sent("110.00").await;
    let undone = |amount, payout_id| Entry {
        head: "<RvslInd>true</RvslInd>",
        ..credit(amount, refs(payout_id, ""))
    };
    let first = scene.find(settled).await.amount;
    let second = scene.find(processing).await.amount;
    let paid = refs(settled, &format!("<AcctSvcrRef>E1</AcctSvcrRef>{UTR}"));
    let again = refs(settled, &format!("<AcctSvcrRef>E3</AcctSvcrRef>{UTR}"));
    scene.hear(&[notification("N1", &[debit(first, paid.clone())])]).await;
    assert_eq!(scene.find(settled).await.status, PayoutStatus::Settled);
    let reversed = [undone(first, settled), undone(second, processing)];
    assert_eq!(scene.hear(&[notification("N2", &reversed)]).await.alarms_count, 2);
    assert_eq!(scene.find(settled).await.status, PayoutStatus::Settled, "it is no return");
    assert_eq!(scene.find(processing).await.status, PayoutStatus::Processing);
    assert_eq!(
        scene.differences().await,
        [DifferenceKind::HeldForDecision, DifferenceKind::OutcomeUnknown]
    );
    let lines = [debit(first, paid), undone(first, settled), debit(first, again)];
    let day = statement("D1", "D1", "", -first.units, &lines);
    assert_eq!(scene.hear(&[day]).await.alarms_count, 0);
    // Paid once in the end: the statement agrees, and only the decisions are open.
    assert_eq!(
        scene.differences().await,
        [DifferenceKind::HeldForDecision, DifferenceKind::OutcomeUnknown]
    );
    scene.decide(settled, OperatorDecision::Settle("SBIN126166441955".into())).await.unwrap();
    scene.decide(processing, OperatorDecision::Fail).await.unwrap();
    assert_eq!(scene.differences().await, Vec::new());
    scene.assert_book();

    // A return that the bank marks as a reversal is one all the same.
    let (_, returned, _) = scene.sent("120.00").await;
    let third = scene.find(returned).await.amount;
    let utr = "<ClrSysRef>AXISP00494478733</ClrSysRef>";
    scene.hear(&[notification("N3", &[debit(third, refs(returned, utr))])]).await;
    let more = format!(
        "{}<AddtlNtryInf>x</AddtlNtryInf>",
        refs(returned, "").replace("</Refs>", "</Refs><RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>")
    );
    let back = Entry { head: "<RvslInd>true</RvslInd>", ..credit(third, more) };
    assert_eq!(scene.hear(&[notification("N4", &[back])]).await.alarms_count, 0);
    assert_eq!(scene.find(returned).await.status, PayoutStatus::Returned);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strangers_credit_that_names_a_reference_is_no_return() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, payout_id, _) = scene.sent("100.00").await;
    let amount = scene.find(payout_id).await.amount;
    let paid = refs(payout_id, &format!("<AcctSvcrRef>ENTRY-77</AcctSvcrRef>{UTR}"));
    scene.hear(&[notification("N1", &[debit(amount, paid)])]).await;
    let text = "<AddtlNtryInf>NEFT RETURN SBIN126166441955</AddtlNtryInf>".to_owned();
    let name = EndToEndId::of(payout_id);
    let remittance = format!(
        "<NtryDtls><TxDtls><RmtInf><Ustrd>{name} SBIN126166441955</Ustrd></RmtInf></TxDtls>\
         </NtryDtls>"
    );
    let strangers = [credit(amount, text.clone()), credit(amount, remittance)];
    let day = statement("D1", "D1", "", 2 * amount.units, &strangers);
    let turn = scene.hear(&[day]).await;
    assert_eq!((turn.counts.applied, turn.counts.unknown), (0, 2));
    assert_eq!(scene.find(payout_id).await.status, PayoutStatus::Settled);
    let unmatched = |tx: &mut dyn Tx, _: &mut Now| Ok(rows::unmatched(tx, 10)?);
    for line in scene.server.app.state.store.write(unmatched).await.unwrap() {
        assert_eq!(line.matching, rows::Matching::ReferenceInText);
    }
    // The bank's own reference of the entry names the payment that comes back.
    let own = "<AcctSvcrRef>ENTRY-77</AcctSvcrRef>".to_owned();
    let turn = scene.hear(&[notification("N2", &[credit(amount, own)])]).await;
    assert_eq!(turn.counts.applied, 1);
    assert_eq!(scene.find(payout_id).await.status, PayoutStatus::Returned);
    scene.assert_book();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_for_us_is_held_and_sent_again_under_the_same_identity() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, funds, first) = scene.sent("100.00").await;
    let (_, whole, second) = scene.sent("110.00").await;
    let (_, closed, third) = scene.sent("120.00").await;
    let files = [
        status("S1", &first, "", &refusal(funds, &reason("AM04", "INSUFFICIENT BALANCE"))),
        status("S2", &second, "<GrpSts>RJCT</GrpSts>", ""),
        // Within a refused file, a reason that lies with the beneficiary still counts.
        status("S3", &third, "<GrpSts>RJCT</GrpSts>", &refusal(closed, &reason("AC04", ""))),
    ];
    assert_eq!(scene.hear(&files).await.alarms_count, 2);
    assert_eq!(scene.attention(funds).await, Some(Attention::RefusedForUs));
    assert_eq!(scene.attention(whole).await, Some(Attention::FileRefused));
    assert_eq!(scene.find(closed).await.status, PayoutStatus::Failed);
    for payout_id in [funds, whole] {
        let payout = scene.find(payout_id).await;
        assert_eq!(payout.status, PayoutStatus::Processing);
        assert_eq!(payout.failure.unwrap().code, FailureCode::OutcomeUnknown);
    }
    let report = scene.server.app.state.store.write(|tx, _| Ok(reconcile::run(tx)?)).await.unwrap();
    let told: Vec<String> =
        report.differences.iter().map(|difference| difference.to_string()).collect();
    assert!(told.iter().any(|line| line.contains("AM04") && line.contains("INSUFFICIENT")));
    assert_eq!(scene.turn().await.published_count, 0, "nothing is sent again by itself");
    assert!(scene.decide(closed, OperatorDecision::Resend).await.is_err());

    scene.decide(funds, OperatorDecision::Resend).await.unwrap();
    assert_eq!(scene.turn().await.published_count, 1);
    let file = scene.taken().pop().unwrap();
    assert!(file.contains(&EndToEndId::of(funds).to_string()) && !file.contains(&first));
    // The first file's refusal, said once more, is not the new one's.
    let late = status("S4", &first, "", &refusal(funds, &reason("AC04", "")));
    assert_eq!(scene.hear(&[late]).await.counts.applied, 0);
    let amount = scene.find(funds).await.amount;
    scene.hear(&[notification("N1", &[debit(amount, refs(funds, UTR))])]).await;
    let payout = scene.find(funds).await;
    assert_eq!((payout.status, payout.failure), (PayoutStatus::Settled, None));
    assert_eq!(scene.attention(funds).await, None);

    // Queued again, and paid from the first file after all: it does not go out a second time.
    scene.decide(whole, OperatorDecision::Resend).await.unwrap();
    let amount = scene.find(whole).await.amount;
    let utr = "<ClrSysRef>AXISP00494478733</ClrSysRef>";
    let paid = notification("N2", &[debit(amount, refs(whole, utr))]);
    scene.put("paid.xml", paid.as_bytes());
    let look = scene.bank.receive_only(&scene.server.app.state).await.unwrap();
    assert_eq!(look.counts.applied, 0, "the first look only sees the file");
    assert_eq!(scene.bank.receive_only(&scene.server.app.state).await.unwrap().counts.applied, 1);
    assert_eq!(scene.find(whole).await.status, PayoutStatus::Settled);
    assert_eq!(scene.turn().await.published_count, 0);
    scene.assert_book();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_refused_says_nothing_of_the_payments_beside_it() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, neft) = scene.payout(PAID, "100.00").await;
    let (_, within) = scene.payout(PAID, "110.00").await;
    let (_, rtgs) = scene.payout(PAID, "3000.00").await;
    let (_, funds) = scene.payout(PAID, "3100.00").await;
    assert_eq!(scene.turn().await.published_count, 4, "in one file");
    let file = scene.taken().pop().unwrap();
    let message = file.split("<MsgId>").nth(1).unwrap().split('<').next().unwrap();
    let refused = refusal(within, &reason("FRAD", ""));
    let refused = format!("<PmtInfSts>RJCT</PmtInfSts>{refused}");
    let beside = [refusal(rtgs, &reason("FRAD", "")), refusal(funds, &reason("AM04", ""))].concat();
    let beside = format!(
        "</OrgnlPmtInfAndSts><OrgnlPmtInfAndSts><OrgnlPmtInfId>{message}-RTGS</OrgnlPmtInfId>\
         {beside}"
    );
    let report = status("S1", message, "", &(refused + &beside));
    assert_eq!(scene.hear(&[report]).await.alarms_count, 3);
    assert_eq!(scene.attention(neft).await, Some(Attention::FileRefused));
    assert_eq!(scene.attention(within).await, Some(Attention::FileRefused));
    assert_eq!(scene.attention(funds).await, Some(Attention::RefusedForUs));
    let failed = scene.find(rtgs).await;
    assert_eq!(failed.status, PayoutStatus::Failed);
    assert_eq!(failed.failure.unwrap().code, FailureCode::ComplianceRejected);
    scene.assert_book();
}

/// The first payment may have been made if the bank calls the file a duplicate.
#[tokio::test(flavor = "multi_thread")]
async fn no_payment_of_a_file_that_is_refused_as_a_duplicate_is_sent_again() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, of_file, first) = scene.sent("100.00").await;
    let (_, of_batch, second) = scene.sent("110.00").await;
    let (_, of_both, third) = scene.sent("120.00").await;
    let (_, of_own, fourth) = scene.sent("130.00").await;
    let (_, control, fifth) = scene.sent("140.00").await;
    let whole = |code: &str| format!("<GrpSts>RJCT</GrpSts>{}", reason(code, ""));
    let batch = |code: &str, payment: String| {
        format!("<PmtInfSts>RJCT</PmtInfSts>{}{payment}", reason(code, ""))
    };
    let text = "<StsRsnInf><AddtlInf>SEE THE FILE</AddtlInf></StsRsnInf>";
    let files = [
        status("S1", &first, &whole("DU01"), &refusal(of_file, "")),
        status("S2", &second, "", &batch("DUPL", refusal(of_batch, text))),
        status("S3", &third, "<GrpSts>RJCT</GrpSts>", &batch("AM05", refusal(of_both, ""))),
        status("S4", &fourth, &whole("DUPL"), &refusal(of_own, &reason("NARR", ""))),
        status("S5", &fifth, &whole("FF01"), &refusal(control, "")),
    ];
    scene.hear(&files).await;
    for payout_id in [of_file, of_batch, of_both, of_own] {
        let refused = scene.decide(payout_id, OperatorDecision::Resend).await;
        assert!(refused.is_err(), "{refused:?}");
        let payout = scene.find(payout_id).await;
        assert_eq!(payout.status, PayoutStatus::Processing);
        assert_eq!(payout.failure.unwrap().code, FailureCode::OutcomeUnknown);
    }
    scene.decide(control, OperatorDecision::Resend).await.unwrap();
    assert_eq!(scene.turn().await.published_count, 1);
    let told = scene.journalled(of_batch).await.reason;
    assert_eq!((told.code.as_deref(), told.text.as_deref()), (Some("DUPL"), Some("SEE THE FILE")));
    scene.assert_book();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_as_a_duplicate_is_an_alarm_until_the_payment_is_found() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, payout_id, message) = scene.sent("100.00").await;
    let refused = |name: &str| status(name, &message, "", &refusal(payout_id, &reason("DUPL", "")));
    assert_eq!(scene.hear(&[refused("S1")]).await.alarms_count, 1);
    let attention = async |scene: &Scene| scene.attention(payout_id).await.map(|it| it.as_str());
    assert_eq!(attention(&scene).await, Some("refused_as_duplicate"));
    assert_eq!(scene.differences().await, [DifferenceKind::OutcomeUnknown]);
    assert_eq!(scene.hear(&[refused("S2")]).await.alarms_count, 0, "it is told once");
    assert!(scene.decide(payout_id, OperatorDecision::Resend).await.is_err());
    let amount = scene.find(payout_id).await.amount;
    scene.hear(&[notification("N1", &[debit(amount, refs(payout_id, UTR))])]).await;
    assert_eq!(scene.find(payout_id).await.status, PayoutStatus::Settled);
    assert_eq!(scene.attention(payout_id).await, None);
    scene.assert_book();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_reference_settles_one_payout() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, first, _) = scene.sent("100.00").await;
    let (_, second, _) = scene.sent("110.00").await;
    let (_, third, _) = scene.sent("120.00").await;
    let amounts = [scene.find(first).await.amount, scene.find(second).await.amount];
    let lines = [debit(amounts[0], refs(first, UTR)), debit(amounts[1], refs(second, UTR))];
    assert_eq!(scene.hear(&[notification("N1", &lines)]).await.alarms_count, 1);
    assert_eq!(scene.find(first).await.status, PayoutStatus::Settled);
    assert_eq!(scene.find(second).await.status, PayoutStatus::Processing);
    assert_eq!(scene.attention(second).await, Some(Attention::ReferenceTaken));
    let by_hand = |text: &str| OperatorDecision::Settle(text.into());
    for payout_id in [second, third] {
        let refused = scene.decide(payout_id, by_hand("SBIN126166441955")).await.unwrap_err();
        assert!(refused.to_string().contains("another payout"), "{refused}");
    }
    scene.decide(second, by_hand("SBIN126166441956")).await.unwrap();
    assert_eq!(scene.find(second).await.status, PayoutStatus::Settled);
    assert_eq!(scene.attention(second).await, None);

    // Two references in one line leave it open which is the payment's.
    let amount = scene.find(third).await.amount;
    let more = refs(third, "")
        .replace("</Refs>", "</Refs><AddtlTxInf>AXISP00494478733 YESAP61641609940</AddtlTxInf>");
    assert_eq!(scene.hear(&[notification("N2", &[debit(amount, more)])]).await.alarms_count, 1);
    assert_eq!(scene.attention(third).await, Some(Attention::ReferenceUnclear));
    scene.decide(third, by_hand("AXISP00494478733")).await.unwrap();
    scene.assert_book();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_comes_again_makes_no_difference() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, payout_id, _) = scene.sent("100.00").await;
    let amount = scene.find(payout_id).await.amount;
    let lines = || [debit(amount, refs(payout_id, UTR))];
    let closing = -amount.units;
    let day = statement("D1", "DAY-1", "", closing, &lines());
    let copies = [
        // The same identity in a message of its own, marked as a copy and not; the same message
        // with another time.
        statement("D2", "DAY-1", "<CpyDplctInd>DUPL</CpyDplctInd>", closing, &lines()),
        statement("D3", "DAY-1", "", closing, &lines()),
        day.replace("10:00:00", "11:00:00"),
    ];
    assert_eq!(scene.hear(&[day]).await.counts.applied, 1);
    let turn = scene.hear(&copies).await;
    assert_eq!((turn.counts.applied, turn.refused_count), (0, 0));
    assert_eq!(scene.differences().await, Vec::new());
    assert_eq!(fs::read_dir(&scene.bank.folders().refused).unwrap().count(), 0);
    // The control: another statement with the same line is a second payment.
    let other = statement("D4", "DAY-2", "", closing, &lines()).replace("0.00<", "0.00 <");
    scene.hear(&[other]).await;
    assert!(scene.differences().await.contains(&DifferenceKind::PaidTwice));
    // Every difference can be closed with a note, and comes back if it grows.
    let subject = payout_id.to_string();
    let close = move |tx: &mut dyn Tx, now: &mut Now| {
        let found =
            explaining::explain_by_subject(tx, now, &subject, Some("paid_twice"), "explained")?;
        assert_eq!(found, [DifferenceKind::PaidTwice]);
        let found = explaining::explain_by_subject(tx, now, "DAY-2", None, "the bank's test")?;
        assert_eq!(found, [DifferenceKind::StatementGap]);
        Ok(())
    };
    scene.server.app.state.store.write(close).await.unwrap();
    assert_eq!(scene.differences().await, Vec::new());
    let third = statement("D5", "DAY-3", "", closing, &lines());
    scene.hear(&[third]).await;
    assert!(scene.differences().await.contains(&DifferenceKind::PaidTwice));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_a_statement_share_its_identity() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, first, _) = scene.sent("100.00").await;
    let (_, second, _) = scene.sent("110.00").await;
    let page = |number: usize, payout_id, utr: &str, amount: Money| {
        let line = debit(amount, refs(payout_id, &format!("<ClrSysRef>{utr}</ClrSysRef>")));
        let text = statement("D1", "DAY-1", "", -amount.units, &[line]);
        text.replace(
            "</CreDtTm></GrpHdr>",
            &format!("</CreDtTm><MsgPgntn><PgNb>{number}</PgNb></MsgPgntn></GrpHdr>"),
        )
    };
    let (one, two) = (scene.find(first).await.amount, scene.find(second).await.amount);
    let pages = [page(1, first, "SBIN126166441955", one), page(2, second, "SBIN126166441956", two)];
    let turn = scene.hear(&pages).await;
    assert_eq!((turn.counts.applied, turn.refused_count), (2, 0));
    assert_eq!(scene.find(first).await.status, PayoutStatus::Settled);
    assert_eq!(scene.find(second).await.status, PayoutStatus::Settled);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_debit_can_pay_several_payouts() {
    let mut scene = Scene::new(Vec::new()).await;
    let (first, second) =
        (scene.payout(PAID, "100.00").await.1, scene.payout(PAID, "110.00").await.1);
    scene.turn().await;
    let file = scene.taken().pop().unwrap();
    let message = file.split("<MsgId>").nth(1).unwrap().split('<').next().unwrap();
    let (one, two) = (scene.find(first).await.amount, scene.find(second).await.amount);
    let sum = one.plus(two).unwrap();
    let named = [first, second].map(|payout_id| {
        format!(
            "<TxDtls><Refs><EndToEndId>{}</EndToEndId></Refs></TxDtls>",
            EndToEndId::of(payout_id)
        )
    });
    // The first names its payments, the second the batch of ours, the third nothing.
    let by_name = debit(sum, format!("<NtryDtls>{}</NtryDtls>", named.concat()));
    let by_batch = debit(
        sum,
        format!("<NtryDtls><Btch><PmtInfId>{message}-NEFT</PmtInfId></Btch></NtryDtls>"),
    );
    let plain = debit(sum, String::new());
    let settle = |reference: &str| OperatorDecision::Settle(reference.into());
    for (index, line) in [by_name, by_batch, plain].into_iter().enumerate() {
        let id = format!("DAY-{index}");
        let day = statement(&id, &id, "", -sum.units, &[line]);
        let turn = scene.hear(&[day]).await;
        assert_eq!(turn.counts.unknown, i64::from(index == 2), "{index}");
        if index == 0 {
            assert_eq!(scene.find(first).await.status, PayoutStatus::Processing, "no reference");
            scene.decide(first, settle("SBIN126166441955")).await.unwrap();
            scene.decide(second, settle("SBIN126166441956")).await.unwrap();
            assert_eq!(scene.differences().await, Vec::new());
        }
    }
    // By hand: the line's amount has to be the sum.
    let share = move |tx: &mut dyn Tx, now: &mut Now| {
        let line = rows::unmatched(tx, 10)?.pop().unwrap();
        let found = [first, second].map(|id| rows::find(tx, id).unwrap().unwrap());
        assert!(!rows::match_to_payouts(tx, now, line.id, &found[..1])?);
        assert!(rows::match_to_payouts(tx, now, line.id, &found)?);
        Ok(())
    };
    scene.server.app.state.store.write(share).await.unwrap();
    let twice = scene.differences().await;
    assert_eq!(twice.iter().filter(|kind| **kind == DifferenceKind::PaidTwice).count(), 2);
    assert!(!twice.contains(&DifferenceKind::LineUnmatched));
}

/// A debit for several payouts that had failed is an alarm for each of them.
#[tokio::test(flavor = "multi_thread")]
async fn one_debit_for_several_failed_payouts_is_an_alarm_for_each() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, first, first_message) = scene.sent("100.00").await;
    let (_, second, second_message) = scene.sent("110.00").await;
    for (name, payout_id, message) in [("S1", first, first_message), ("S2", second, second_message)]
    {
        let refused = refusal(payout_id, &reason("AC04", "ACCOUNT CLOSED"));
        assert_eq!(scene.hear(&[status(name, &message, "", &refused)]).await.alarms_count, 0);
        assert_eq!(scene.find(payout_id).await.status, PayoutStatus::Failed);
    }
    let sum = scene.find(first).await.amount.plus(scene.find(second).await.amount).unwrap();
    let named = [first, second].map(|payout_id| {
        let name = EndToEndId::of(payout_id);
        format!("<TxDtls><Refs><EndToEndId>{name}</EndToEndId></Refs></TxDtls>")
    });
    let paid = [debit(sum, format!("<NtryDtls>{}</NtryDtls>", named.concat()))];
    let turn = scene.hear(&[notification("N1", &paid)]).await;
    assert_eq!((turn.alarms_count, turn.counts.applied), (2, 1), "one report about two payouts");
    let alarms = &scene.server.app.state.metrics.bank_alarms;
    assert_eq!(alarms.counted("paid_after_failed"), 2);
    for payout_id in [first, second] {
        assert_eq!(scene.attention(payout_id).await, Some(Attention::PaidAfterFailed));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_beneficiarys_bank_fails_the_payout_and_its_reason_is_kept() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, payout_id, message) = scene.sent("100.00").await;
    let text = "ACCOUNT IS CLOSED SINCE 2025";
    let file = status("S1", &message, "", &refusal(payout_id, &reason("AC04", text)));
    assert_eq!(scene.hear(&[file]).await.alarms_count, 0);
    let failure = scene.find(payout_id).await.failure.unwrap();
    assert_eq!(
        (failure.code, failure.source),
        (FailureCode::AccountClosed, FailureSource::BeneficiaryBank)
    );
    let find = move |tx: &mut dyn Tx, _: &mut Now| Ok(rows::find(tx, payout_id)?);
    let kept = scene.server.app.state.store.write(find).await.unwrap().unwrap().reason;
    assert_eq!((kept.code.as_deref(), kept.text.as_deref()), (Some("AC04"), Some(text)));
}

/// The bank corrects a statement without another identity: nothing of it counts, and the operator
/// is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_comes_again_with_other_entries_is_refused() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, first, _) = scene.sent("100.00").await;
    let (_, second, _) = scene.sent("100.00").await;
    let amount = scene.find(first).await.amount;
    let other_utr = UTR.replace("SBIN126166441955", "SBIN126166441956");
    let day =
        |message: &str, entries: &[Entry]| statement(message, "DAY-1", "", -amount.units, entries);
    let before = day("D1", &[debit(amount, refs(first, UTR))]);
    assert_eq!(scene.hear(&[before]).await.counts.applied, 1);
    let half = Money::new(amount.units / 2, amount.currency);
    let rest = amount.minus(half).unwrap();
    for (number, message) in ["D1", "D2"].into_iter().enumerate() {
        let corrections = [
            day(message, &[debit(amount, refs(second, UTR))]),
            day(message, &[debit(amount, refs(first, &other_utr))]),
            day(message, &[debit(half, String::new()), debit(rest, String::new())]),
        ];
        let turn = scene.hear(&corrections).await;
        assert_eq!((turn.refused_count, turn.counts.ignored), (3, 0), "{message}");
        let refused = fs::read_dir(&scene.bank.folders().refused).unwrap();
        let notes = refused.filter(|file| {
            file.as_ref().unwrap().file_name().to_string_lossy().ends_with(".reason.txt")
        });
        assert_eq!(notes.count(), 3 * (number + 1));
    }
    assert_eq!(scene.find(second).await.status, PayoutStatus::Processing);
}

/// Numbers of entries that begin anew do not hide a second debit.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_reference_that_the_bank_uses_again_is_another_debit() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, payout_id, message) = scene.sent("100.00").await;
    let amount = scene.find(payout_id).await.amount;
    let entry = || [debit(amount, refs(payout_id, "<AcctSvcrRef>7</AcctSvcrRef>"))];
    scene.hear(&[statement("D1", "DAY-1", "", -amount.units, &entry())]).await;
    scene.hear(&[status("S1", &message, "", &refusal(payout_id, &reason("AM04", "")))]).await;
    assert_eq!(scene.attention(payout_id).await, Some(Attention::RefusedAfterPaid));
    scene.decide(payout_id, OperatorDecision::Fail).await.unwrap();
    // The same debit again.
    assert_eq!(scene.hear(&[notification("N1", &entry())]).await.alarms_count, 0);
    let day = statement("D2", "DAY-2", "", -amount.units, &entry());
    let day = day.replace("<BookgDt><Dt>2026-11-21", "<BookgDt><Dt>2026-11-22");
    assert_eq!(scene.hear(&[day]).await.alarms_count, 1);
    assert_eq!(scene.attention(payout_id).await, Some(Attention::PaidAfterFailed));
}
