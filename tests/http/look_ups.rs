//! Look-ups of accounts over HTTP: asked by a worker, applied once, never lost; and what only a
//! person decides.

use std::sync::Arc;
use std::time::Instant;

use hundi::account_verification::http::{HttpVerifier, HttpVerifierSettings};
use hundi::account_verification::manual::ManualVerifier;
use hundi::account_verification::{AccountAnswer, LookedUp, NameMatch};
use hundi::beneficiaries::look_ups;
use hundi::beneficiaries::state::{BeneficiaryStatus, PayoutsDisabledReason};
use hundi::beneficiaries::{self, Beneficiary, BeneficiaryChange, KycChange, VerificationDecision};
use hundi::kernel::id::kind;
use hundi::kernel::{Id, MetadataPatch, Patch};
use hundi::metrics::Reasons;
use hundi::operator::{self, OperatorDecision};
use hundi::workers::account_look_ups;
use secrecy::ExposeSecret;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::desk::{Desk, LIVE, TEST, client};
use crate::feed::{Feed, Reply};
use crate::support::{WAIT, by};

const IFSC: &str = "HDFC0000001";

struct Office {
    feed: Feed,
    desk: Arc<Desk>,
    metrics: Reasons,
}

impl Office {
    async fn start() -> Office {
        let feed = Feed::start().await;
        let settings = HttpVerifierSettings {
            url: feed.url("/look_up"),
            header_name: None,
            deadline_milliseconds: Some(2_000),
            name_score_match: None,
            name_score_partial: None,
        };
        let desk = Arc::new(
            Desk::with_verifier(Box::new(HttpVerifier::new(&settings, None, client()).unwrap()))
                .await,
        );
        Office { feed, desk, metrics: Reasons::default() }
    }

    fn work(&self) -> (JoinHandle<()>, watch::Sender<bool>) {
        let (stop, stopping) = watch::channel(false);
        (
            tokio::spawn(account_look_ups::run(
                self.desk.store.clone(),
                self.desk.services.clone(),
                self.metrics.clone(),
                stopping,
            )),
            stop,
        )
    }

    /// A beneficiary whose account is to be looked up.
    async fn waiting(&self) -> Id<kind::Beneficiary> {
        let id = self.desk.beneficiary(TEST, "50100012345678", IFSC).await;
        self.desk.run_tasks().await;
        id
    }

    async fn until(
        &self,
        id: Id<kind::Beneficiary>,
        wanted: impl Fn(&Beneficiary) -> bool,
    ) -> Beneficiary {
        let started = Instant::now();
        loop {
            let found = self.desk.find(TEST, id).await;
            if wanted(&found) {
                return found;
            }
            assert!(started.elapsed() < WAIT, "still {:?}", found.status);
            tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_answer_moves_the_beneficiary_and_the_service_is_asked_as_documented() {
    let office = Office::start().await;
    let (worker, stop) = office.work();
    let mut asked = 0;
    for (answer, status, reason, name_match) in [
        (
            json!({"status": "found", "account_holder_name": "ASHA  RAO"}),
            BeneficiaryStatus::Active,
            None,
            Some(NameMatch::Match),
        ),
        (
            json!({"status": "found", "account_holder_name": "Ravi Rao"}),
            BeneficiaryStatus::InputRequired,
            Some(PayoutsDisabledReason::NameMismatch),
            Some(NameMatch::Mismatch),
        ),
        (
            json!({"status": "not_found"}),
            BeneficiaryStatus::Rejected,
            Some(PayoutsDisabledReason::AccountInvalid),
            None,
        ),
        (
            json!({"status": "closed"}),
            BeneficiaryStatus::Rejected,
            Some(PayoutsDisabledReason::AccountInvalid),
            None,
        ),
        (
            json!({"status": "not_nre"}),
            BeneficiaryStatus::Rejected,
            Some(PayoutsDisabledReason::AccountNotNre),
            None,
        ),
        (
            json!({"status": "found"}),
            BeneficiaryStatus::Verifying,
            Some(PayoutsDisabledReason::VerificationPending),
            Some(NameMatch::Unavailable),
        ),
        (
            json!({"status": "unknown"}),
            BeneficiaryStatus::Verifying,
            Some(PayoutsDisabledReason::VerificationPending),
            None,
        ),
    ] {
        office.feed.say("/look_up", &answer);
        let id = office.waiting().await;
        let found = office.until(id, |found| found.checked_at.is_some()).await;
        asked += 1;
        office.feed.until_asked("/look_up", asked).await;
        assert_eq!(
            (found.status, found.payouts_disabled_reason, found.name_match),
            (status, reason, name_match),
            "{answer}"
        );
    }
    let body: serde_json::Value = serde_json::from_str(&office.feed.asked("/look_up")[0]).unwrap();
    assert_eq!(body, json!({"account_number": "50100012345678", "ifsc": IFSC, "name": "Asha Rao"}));
    // What the service cannot say is asked again an hour later.
    office.feed.say("/look_up", json!({"status": "found", "account_holder_name": "Asha Rao"}));
    office.desk.advance_seconds(3_599);
    office.desk.run_tasks().await;
    office.feed.until_asked("/look_up", asked + 1).await;
    stop.send(true).unwrap();
    worker.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_an_answer_is_asked_again_until_it_has_one() {
    let office = Office::start().await;
    let (worker, stop) = office.work();
    office.feed.answer("/look_up", Reply::Json(500, "{}".into()));
    let id = office.waiting().await;
    office.feed.until_asked("/look_up", 1).await;
    for (reply, pause_seconds, times) in [
        (Reply::Closed, 2, 2),
        (Reply::Json(200, "soon".into()), 4, 3),
        (Reply::Json(200, "{\"status\":\"ok\"}".into()), 8, 4),
    ] {
        office.feed.answer("/look_up", reply);
        // The pause was written down before the clock moves past it.
        let written = office.metrics.clone();
        let started = Instant::now();
        while written.counted("http_status")
            + written.counted("connection")
            + written.counted("answer_not_understood")
            < times - 1
        {
            assert!(started.elapsed() < WAIT);
            tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        }
        office.desk.write(|_, _, _| Ok(())).await.unwrap();
        office.desk.advance_seconds(pause_seconds + 1);
        office.feed.until_asked("/look_up", times as usize).await;
        assert_eq!(office.desk.find(TEST, id).await.status, BeneficiaryStatus::Verifying);
    }
    office.feed.say("/look_up", json!({"status": "found", "account_holder_name": "Asha Rao"}));
    while office.desk.find(TEST, id).await.status != BeneficiaryStatus::Active {
        office.desk.advance_seconds(20);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(
        (office.metrics.counted("answered"), office.metrics.counted("answer_not_understood")),
        (1, 2)
    );
    stop.send(true).unwrap();
    worker.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_the_middle_of_a_question_loses_nothing() {
    let office = Office::start().await;
    office.feed.answer("/look_up", Reply::Silence);
    let id = office.waiting().await;
    let (worker, _stop) = office.work();
    office.feed.until_asked("/look_up", 1).await;
    worker.abort();
    assert!(worker.await.unwrap_err().is_cancelled());
    // The control: without another run nothing happens, however much time passes.
    office.desk.advance_seconds(60);
    assert_eq!(office.desk.find(TEST, id).await.status, BeneficiaryStatus::Verifying);
    office.feed.say("/look_up", json!({"status": "found", "account_holder_name": "Asha Rao"}));
    let (worker, stop) = office.work();
    office.until(id, |found| found.status == BeneficiaryStatus::Active).await;
    stop.send(true).unwrap();
    worker.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_applied_once_and_only_to_its_own_question() {
    let office = Office::start().await;
    let id = office.waiting().await;
    let claim =
        || office.desk.write(|tx, now, services| Ok(look_ups::claim(tx, now, services, 10)?));
    let finish = |look_up, answer| {
        office.desk.write(move |tx, now, services| {
            Ok(look_ups::finish(tx, now, services, &look_up, &LookedUp::Answered(answer))?)
        })
    };
    let first = claim().await.unwrap();
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].question.account_number.expose_secret(), "50100012345678");
    assert!(!format!("{first:?}").contains("50100012345678"));
    assert!(claim().await.unwrap().is_empty(), "a lease keeps others off");
    // Meanwhile the operator asks for input, and the caller changes the account: a new question.
    office
        .desk
        .write(move |tx, now, services| {
            let mut found = beneficiaries::rows::find(tx, TEST, id)?.unwrap();
            assert!(beneficiaries::decide(
                tx,
                now,
                &mut found,
                VerificationDecision::RequireInput
            )?);
            let kyc = KycChange {
                pan: Patch::Keep,
                passport_number: Patch::Keep,
                date_of_birth: Patch::Keep,
                nationality: Patch::Keep,
                relationship: Patch::Keep,
            };
            let change = BeneficiaryChange {
                name: None,
                account_number: Some("60100012345678".into()),
                ifsc: None,
                email: Patch::Keep,
                phone: Patch::Keep,
                kyc,
                metadata: MetadataPatch::default(),
                submit: None,
            };
            beneficiaries::update(tx, now, services, found, change)
        })
        .await
        .unwrap();
    assert!(
        !finish(first[0].look_up, AccountAnswer::Passed).await.unwrap(),
        "the old account's answer is dropped before the next check"
    );
    assert_eq!(office.desk.find(TEST, id).await.status, BeneficiaryStatus::Verifying);
    office.desk.run_tasks().await;
    assert!(!finish(first[0].look_up, AccountAnswer::Passed).await.unwrap(), "and after it");
    assert_eq!(office.desk.find(TEST, id).await.status, BeneficiaryStatus::Verifying);
    let second = claim().await.unwrap();
    assert_eq!(second[0].question.account_number.expose_secret(), "60100012345678");
    assert!(finish(second[0].look_up, AccountAnswer::Passed).await.unwrap());
    assert!(
        !finish(second[0].look_up, AccountAnswer::AccountInvalid).await.unwrap(),
        "twice changes nothing"
    );
    assert_eq!(office.desk.find(TEST, id).await.status, BeneficiaryStatus::Active);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beneficiary_that_cannot_be_read_does_not_stop_the_others() {
    let office = Office::start().await;
    let broken = office.waiting().await;
    let other = office.waiting().await;
    let claimed = office
        .desk
        .write(move |tx, now, services| {
            let sql = "UPDATE beneficiaries SET status_history = 'x' WHERE scope = ?1 AND id = ?2";
            tx.execute_one(sql, hundi::values![TEST, broken])?;
            Ok(look_ups::claim(tx, now, services, 10)?)
        })
        .await
        .unwrap();
    let claimed: Vec<_> = claimed.iter().map(|claimed| claimed.look_up.beneficiary_id).collect();
    assert_eq!(claimed, [other]);
}

#[tokio::test(flavor = "multi_thread")]
async fn by_hand_a_beneficiary_waits_for_the_operators_finding() {
    let desk = Desk::with_verifier(Box::new(ManualVerifier)).await;
    for (answer, status) in [
        (AccountAnswer::Passed, BeneficiaryStatus::Active),
        (AccountAnswer::Name(NameMatch::Partial), BeneficiaryStatus::InputRequired),
        (AccountAnswer::Name(NameMatch::Mismatch), BeneficiaryStatus::InputRequired),
        (AccountAnswer::AccountNotNre, BeneficiaryStatus::Rejected),
        (AccountAnswer::AccountInvalid, BeneficiaryStatus::Rejected),
    ] {
        let id = desk.beneficiary(TEST, "50100012345678", IFSC).await;
        desk.run_tasks().await;
        desk.advance_seconds(86_400);
        desk.run_tasks().await;
        assert_eq!(desk.find(TEST, id).await.status, BeneficiaryStatus::Verifying);
        desk.write(move |tx, now, services| {
            operator::decide(tx, now, services, id.any(), &OperatorDecision::Check(answer), &by())
        })
        .await
        .unwrap();
        assert_eq!(desk.find(TEST, id).await.status, status, "{answer:?}");
        let again = desk
            .write(move |tx, now, services| {
                operator::decide(
                    tx,
                    now,
                    services,
                    id.any(),
                    &OperatorDecision::Check(answer),
                    &by(),
                )
            })
            .await;
        assert!(
            again.unwrap_err().to_string().contains("does not take"),
            "a finding is given once"
        );
    }
    // A right account does not end what screening holds.
    let id = desk.beneficiary(TEST, "50100012345678", IFSC).await;
    desk.write(move |tx, now, _| {
        let mut found = beneficiaries::rows::find(tx, TEST, id)?.unwrap();
        Ok(beneficiaries::apply_check(tx, now, &mut found, AccountAnswer::PossiblySanctioned)?)
    })
    .await
    .unwrap();
    let refused = desk
        .write(move |tx, now, services| {
            operator::decide(
                tx,
                now,
                services,
                id.any(),
                &OperatorDecision::Check(AccountAnswer::Passed),
                &by(),
            )
        })
        .await;
    assert!(refused.unwrap_err().to_string().contains("screening"));
}

/// A refusal by the operator says nothing about the account, and a finding does.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_beneficiary_is_not_said_to_have_no_account() {
    let desk = Desk::with_verifier(Box::new(ManualVerifier)).await;
    let finding = OperatorDecision::Check(AccountAnswer::AccountInvalid);
    for (decision, reason) in [
        (OperatorDecision::Refuse, PayoutsDisabledReason::ComplianceHold),
        (finding, PayoutsDisabledReason::AccountInvalid),
    ] {
        let id = desk.beneficiary(TEST, "50100012345678", IFSC).await;
        desk.run_tasks().await;
        let decided = desk.write(move |tx, now, services| {
            operator::decide(tx, now, services, id.any(), &decision, &by())
        });
        assert_eq!(decided.await.unwrap(), format!("{id} is rejected"));
        let found = desk.find(TEST, id).await;
        assert_eq!(
            (found.status, found.payouts_disabled_reason),
            (BeneficiaryStatus::Rejected, Some(reason))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_meets_another_hit_says_how_many_it_cleared() {
    const LIST: &str = "1,Zebulon Quackenbush,,,,,\n2,Asha Rao,,,,,\n";
    let desk = Desk::with_verifier(Box::new(ManualVerifier)).await;
    let id = desk.beneficiary(TEST, "50100012345678", IFSC).await;
    desk.run_tasks().await;
    desk.write_list(LIST);
    // A hit is kept, and the account still waits for its check.
    let kept = desk.write(move |tx, now, services| {
        let found = beneficiaries::rows::find(tx, TEST, id)?.unwrap();
        Ok(beneficiaries::screening_answer(tx, now, services, &found)?.is_some())
    });
    assert!(kept.await.unwrap());
    desk.write_list(&format!("{LIST}3,Asha Rao,,,IN,,\n"));
    let decided = desk.write(move |tx, now, services| {
        operator::decide(tx, now, services, id.any(), &OperatorDecision::Approve, &by())
    });
    assert_eq!(
        decided.await.unwrap(),
        format!("{id} is verifying; screening holds it; screening hits cleared: 1")
    );
}

/// While an account is looked up, by a service or by a person, the lists may change: whom they name
/// now does not become payable.
#[tokio::test(flavor = "multi_thread")]
async fn a_beneficiary_is_screened_with_the_lists_of_the_moment_it_becomes_active() {
    for by_hand in [
        Some(OperatorDecision::Check(AccountAnswer::Passed)),
        Some(OperatorDecision::Approve),
        None,
    ] {
        let office = Office::start().await;
        let id = office.waiting().await;
        office.desk.write_list("1,Zebulon Quackenbush,,,,,\n2,Asha Rao,,,,,\n");
        let answer = || async {
            match by_hand.clone() {
                Some(decision) => {
                    let decided = office.desk.write(move |tx, now, services| {
                        operator::decide(tx, now, services, id.any(), &decision, &by())
                    });
                    decided.await.map_err(|error| error.to_string())
                }
                None => {
                    let claimed = office
                        .desk
                        .write(|tx, now, services| Ok(look_ups::claim(tx, now, services, 10)?))
                        .await
                        .unwrap();
                    let finish = office.desk.write(move |tx, now, services| {
                        Ok(look_ups::finish(
                            tx,
                            now,
                            services,
                            &claimed[0].look_up,
                            &LookedUp::Answered(AccountAnswer::Passed),
                        )?)
                    });
                    finish
                        .await
                        .map(|is_applied| is_applied.to_string())
                        .map_err(|failure| format!("{failure:?}"))
                }
            }
        };
        answer().await.unwrap();
        let held = office.desk.find(TEST, id).await;
        assert_eq!(
            (held.status, held.payouts_disabled_reason),
            (BeneficiaryStatus::Verifying, Some(PayoutsDisabledReason::ComplianceHold)),
            "{by_hand:?}"
        );
        // Cleared by the operator its account is checked again, and then nothing keeps it.
        office
            .desk
            .write(move |tx, now, services| {
                operator::decide(tx, now, services, id.any(), &OperatorDecision::Approve, &by())
            })
            .await
            .unwrap();
        office.desk.run_tasks().await;
        answer().await.unwrap();
        assert_eq!(
            office.desk.find(TEST, id).await.status,
            BeneficiaryStatus::Active,
            "{by_hand:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn live_mode_asks_for_another_code_and_test_mode_carries_on() {
    let mut desk = Desk::with_verifier(Box::new(ManualVerifier)).await;
    desk.configure_live();
    for code in ["HDFC0ZZZZZZ", "CORP0000001"] {
        let id = desk.beneficiary(LIVE, "50100012345678", code).await;
        desk.run_tasks().await;
        let found = desk.find(LIVE, id).await;
        assert_eq!(
            (found.status, found.payouts_disabled_reason),
            (BeneficiaryStatus::InputRequired, Some(PayoutsDisabledReason::IfscUnknown)),
            "{code}"
        );
        assert_eq!(
            (found.requirements[0].field_name.as_str(), found.requirements[0].code.as_str()),
            ("ifsc", "ifsc_unknown")
        );
        let id = desk.beneficiary(TEST, "50100012345678", code).await;
        desk.run_tasks().await;
        assert_eq!(
            desk.find(TEST, id).await.status,
            BeneficiaryStatus::Verifying,
            "test mode goes on to its own check"
        );
    }
    assert_eq!(
        desk.find(TEST, desk.beneficiary(TEST, "50100012345678", "HDFC0ZZZZZZ").await)
            .await
            .bank_name,
        None
    );
    let known = desk.find(LIVE, desk.beneficiary(LIVE, "50100012345678", IFSC).await).await;
    assert_eq!(known.bank_name.as_deref(), Some("HDFC Bank"));
}

/// The holder that the bank names is screened, each of several, also where the name matches.
#[tokio::test(flavor = "multi_thread")]
async fn the_holder_names_that_the_bank_answers_are_screened() {
    for (holder, is_held) in [
        ("Asha Rao", false),
        ("Asha Rao OR Ravi Menon", false),
        ("Asha Rao OR Zebulon Quackenbush", true),
        ("ASHA RAO S/O ZEBULON QUACKENBUSH NRE", true),
        ("Zebulon Quackenbush", true),
    ] {
        let office = Office::start().await;
        let (worker, stop) = office.work();
        office.feed.say("/look_up", json!({"status": "found", "account_holder_name": holder}));
        let id = office.waiting().await;
        let found = office.until(id, |found| found.checked_at.is_some()).await;
        let wanted = if is_held {
            (BeneficiaryStatus::Verifying, Some(PayoutsDisabledReason::ComplianceHold))
        } else {
            (BeneficiaryStatus::Active, None)
        };
        assert_eq!((found.status, found.payouts_disabled_reason), wanted, "{holder}");
        stop.send(true).unwrap();
        worker.await.unwrap();
    }
}
