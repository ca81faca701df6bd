//! The book against the chain, once more than the follower: what agrees, and every planted
//! difference by its name.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hundi::chain_following::audit::{self, AuditError, AuditExtent, AuditSummary};
use hundi::chain_following::credit::{self, CreditError, Credited};
use hundi::chains::followed::FollowedChain;
use hundi::chains::rows::{AuditMark, audit_mark};
use hundi::kernel::id::kind;
use hundi::kernel::{Id, Mode, Scope};
use hundi::reconcile::DifferenceKind::{
    self, AddressBalance, MovementAddress, MovementAmount, MovementBlock, MovementNotInBook,
    MovementNotOnChain, MovementToken,
};
use hundi::reconcile::chain::{self as book};
use hundi::refunds;
use hundi::store::Cost;
use serde_json::{Value, json};

use crate::anvil::FINALITY_BLOCKS;
use crate::proxy::Blocks;
use crate::service::{Process, Setup, Stage, address, chain_with_token, eventually};
use crate::wire::{Hash, nobody};

const DAY_SECONDS: i64 = 86_400;

impl Stage {
    async fn audit(&self) -> Result<AuditSummary, AuditError> {
        audit::run_once(&self.app.state.store, self.followed_chain(), AuditExtent::default()).await
    }
    /// Everything that was ever followed, once more.
    async fn audit_again(&self) -> AuditSummary {
        let blocks = Some((1, self.height()));
        audit::run_once(
            &self.app.state.store,
            self.followed_chain(),
            AuditExtent { blocks, ..AuditExtent::default() },
        )
        .await
        .expect("a comparison")
    }
    async fn mark(&self) -> AuditMark {
        let name = self.followed_chain().settings.name;
        self.app
            .state
            .store
            .read(Cost::Point, move |tx| Ok(audit_mark(tx, Mode::Test, name)?))
            .await
            .unwrap()
            .expect("a mark")
    }
    /// The open differences: kind, amount, and what they are of.
    async fn differences(&self) -> Vec<(DifferenceKind, i64, String)> {
        let name = self.followed_chain().settings.name;
        let (open, count) = self
            .app
            .state
            .store
            .read(Cost::Scan, move |tx| Ok(book::open(tx, Mode::Test, name)?))
            .await
            .unwrap();
        assert_eq!(open.len() as i64, count);
        let told =
            open.into_iter().map(|open| (open.kind, open.amount.units, open.detail.unwrap()));
        let mut told: Vec<_> = told.collect();
        told.sort_by_key(|(kind, units, what)| (kind.as_str(), *units, what.clone()));
        told
    }
    async fn kinds(&self) -> Vec<(DifferenceKind, i64)> {
        self.differences().await.into_iter().map(|(kind, units, _)| (kind, units)).collect()
    }
    async fn sql(&self, sql: &str) -> u64 {
        let text = sql.to_owned();
        self.app
            .state
            .store
            .write(move |tx, _| Ok(tx.execute(&text, &[])?))
            .await
            .unwrap_or_else(|fault| panic!("{sql}: {fault:?}"))
    }
    async fn complete(&self, refund: &Value, hash: Hash) {
        let id: Id<kind::Refund> = Id::parse(refund["id"].as_str().unwrap()).unwrap();
        let work = move |tx: &mut dyn hundi::store::Tx, _: &mut hundi::kernel::Now| {
            let mut refund =
                refunds::rows::find(tx, Scope::new(1, Mode::Test), id)?.expect("a refund");
            refunds::mark_sent(tx, &mut refund, &hash.to_string())
        };
        self.app.state.store.write(work).await.unwrap();
        self.mine(1 + FINALITY_BLOCKS).await;
        eventually("the refund to be confirmed", async || {
            let shown = self
                .client
                .get(&format!("/v1/refunds/{}", refund["id"].as_str().unwrap()))
                .await
                .ok();
            (shown["status"] == "completed").then_some(())
        })
        .await;
        self.followed().await;
    }
}

/// Two paid transfers, the second with 5.00 too much that is given back, and a sweep of the first.
/// Answers both.
async fn settled(stage: &Stage) -> [Value; 2] {
    let to = nobody(77);
    let one = stage.transfer("100.00").await;
    let two = stage.caller.transfer_with("100.00", json!({"refund_address": to.to_string()})).await;
    stage
        .token
        .transfer_many(&[
            (address(&one), 100_000_000),
            (nobody(5), 9),
            (address(&two), 105_000_000),
        ])
        .await;
    stage.settle().await;
    for transfer in [&one, &two] {
        stage.awaits(transfer, "payout_settled").await;
    }
    stage.token.transfer_from(address(&one), stage.chain.account(5), 90_000_000).await;
    let sent = stage.token.transfer(to, 5_000_000).await;
    let refund = stage.refunds(&two).await.remove(0);
    stage.complete(&refund, sent).await;
    [one, two]
}

#[tokio::test]
async fn a_book_that_is_right_agrees_however_the_money_moved() {
    let stage = Stage::set_with(Setup { others: 1, ..Setup::default() }).await;
    let begin = stage.mark().await;
    let [one, two] = settled(&stage).await;
    // What is no deposit: from ours to ours, nothing, dust of other tokens, failed transactions,
    // other people's money.
    stage.token.transfer_from(address(&one), address(&two), 10_000_000).await;
    stage.token.transfer_from(address(&two), address(&two), 1).await;
    stage
        .token
        .transfer_nothing_as_stranger(stage.chain.account(3), address(&one), address(&two))
        .await;
    stage.token.transfer_reverted(address(&two), 5).await;
    stage.others[0].1.transfer(address(&two), 7_000_000).await;
    stage.token.noise(5).await;
    stage.settle().await;
    // Unmatched, and above the final view: one that comes and one that goes.
    stage.token.transfer(address(&two), 3_000_000).await;
    stage.settle().await;
    let three = stage.transfer("50.00").await;
    stage.token.transfer(address(&three), 50_000_000).await;
    stage.token.transfer_from(address(&two), nobody(6), 2_000_000).await;
    stage.mine(2).await;
    stage.followed().await;
    let compared = stage.audit().await.unwrap();
    assert_eq!(stage.differences().await, []);
    // Deposits, the refund's movement is of no address of ours, sweeps.
    let expected = AuditSummary {
        blocks: Some((begin.anchor.height + 1, stage.height())),
        movements_count: 6,
        refunds_count: 1,
        addresses_count: 3,
        expected: hundi::kernel::Money::new(166_000_000, hundi::kernel::Currency::Usdt),
        balance: hundi::kernel::Money::new(166_000_000, hundi::kernel::Currency::Usdt),
    };
    assert_eq!(compared, expected);
    let end = stage.mark().await;
    assert!(
        end.anchor.height == stage.height()
            && end.completed_milliseconds >= begin.completed_milliseconds
    );
    assert_eq!(stage.audit().await.unwrap().blocks, None, "what was compared is not read again");
    assert_eq!(stage.audit_again().await.movements_count, 6);
    assert_eq!(stage.differences().await, []);
    stage.verify().await;
}

#[tokio::test]
async fn every_planted_difference_of_the_book_is_named() {
    let stage = Stage::set_with(Setup { others: 1, ..Setup::default() }).await;
    let [one, two] = settled(&stage).await;
    let fake = stage.others[0].1.transfer(address(&two), 105_000_000).await;
    stage.settle().await;
    stage.audit().await.unwrap();
    assert_eq!(stage.differences().await, []);
    for table in ["deposits", "chain_sweeps", "refunds"] {
        stage.sql(&format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}")).await;
    }
    let hundred = "units = 100000000";
    let other_address = format!("x'{}'", hex(address(&two).as_evm()));
    let invented = "cd".repeat(32);
    let columns = "scope, version, transfer_id, status, asset, chain, from_address, to_address, \
     block_number, block_time, confirmations, \
                   unseen_since, classification, reason_code, completed_at, status_history, \
                   created";
    let copy = |units: i64, hash: &str, place: i64| {
        format!(
            "INSERT INTO deposits ({columns}, id, units, transaction_hash, log_index) \
             SELECT {columns}, x'{}', {units}, '{hash}', {place} FROM deposits WHERE {hundred}",
            "0e".repeat(16)
        )
    };
    const HUNDRED: i64 = 100_000_000;
    let table: Vec<(&str, String, Vec<(DifferenceKind, i64)>)> = vec![
        (
            "a deposit that is missing",
            format!("DELETE FROM deposits WHERE {hundred}"),
            vec![(MovementNotInBook, HUNDRED)],
        ),
        (
            "a deposit that failed",
            format!("UPDATE deposits SET status = 'failed' WHERE {hundred}"),
            vec![(MovementNotInBook, HUNDRED)],
        ),
        (
            "too much",
            format!("UPDATE deposits SET units = units + 1 WHERE {hundred}"),
            vec![(MovementAmount, -1)],
        ),
        (
            "too little",
            format!("UPDATE deposits SET units = units - 1 WHERE {hundred}"),
            vec![(MovementAmount, 1)],
        ),
        (
            "another recipient",
            format!("UPDATE deposits SET to_address = {other_address} WHERE {hundred}"),
            vec![(MovementAddress, HUNDRED)],
        ),
        (
            "another payer",
            format!("UPDATE deposits SET from_address = {other_address} WHERE {hundred}"),
            vec![(MovementAddress, HUNDRED)],
        ),
        (
            "another transfer",
            format!(
                "UPDATE deposits SET transfer_id = (SELECT transfer_id FROM deposits WHERE units \
                 = 105000000) WHERE {hundred}"
            ),
            vec![(MovementAddress, HUNDRED)],
        ),
        (
            "another block",
            format!("UPDATE deposits SET block_number = block_number - 1 WHERE {hundred}"),
            vec![(MovementBlock, HUNDRED)],
        ),
        (
            "a block far away",
            format!("UPDATE deposits SET block_number = 900000 WHERE {hundred}"),
            vec![(MovementBlock, HUNDRED)],
        ),
        (
            "another time",
            format!("UPDATE deposits SET block_time = block_time + 1 WHERE {hundred}"),
            vec![(MovementBlock, HUNDRED)],
        ),
        (
            "another place",
            format!("UPDATE deposits SET log_index = 50 WHERE {hundred}"),
            vec![(MovementNotInBook, HUNDRED), (MovementNotOnChain, HUNDRED)],
        ),
        ("an invented deposit", copy(7, &invented, 0), vec![(MovementNotOnChain, 7)]),
        ("a hash that is none", copy(7, "no hash", 0), vec![(MovementNotOnChain, 7)]),
        (
            "another token's movement",
            format!(
                "INSERT INTO deposits ({columns}, id, units, transaction_hash, log_index) SELECT \
                 {columns}, x'{}', units, '{}', 0 \
                 FROM deposits WHERE units = 105000000 AND status = 'completed'",
                "0e".repeat(16),
                fake.plain()
            ),
            vec![(MovementToken, 105_000_000)],
        ),
        (
            "a sweep that is missing",
            "DELETE FROM chain_sweeps".into(),
            vec![(MovementNotInBook, 90_000_000)],
        ),
        (
            "a sweep of less",
            "UPDATE chain_sweeps SET units = units - 3".into(),
            vec![(MovementAmount, 3)],
        ),
        (
            "a sweep elsewhere",
            format!("UPDATE chain_sweeps SET to_address = {other_address}"),
            vec![(MovementAddress, 90_000_000)],
        ),
        (
            "an invented sweep",
            format!(
                "INSERT INTO chain_sweeps SELECT chain, '{invented}', 5, from_address, \
                 to_address, 4, block_number, block_time, contract FROM chain_sweeps"
            ),
            vec![(MovementNotOnChain, 4)],
        ),
        (
            "a refund of more",
            "UPDATE refunds SET units = units + 2".into(),
            vec![(MovementAmount, -2)],
        ),
        (
            "a refund elsewhere",
            format!("UPDATE refunds SET to_address = {other_address}"),
            vec![(MovementAddress, 5_000_000)],
        ),
        (
            "an invented refund",
            format!("UPDATE refunds SET transaction_hash = '{invented}'"),
            vec![(MovementNotOnChain, 5_000_000)],
        ),
    ];
    for (what, plant, expected) in table {
        assert_eq!(stage.sql(&plant).await, 1, "{what}");
        stage.audit_again().await;
        assert_eq!(stage.kinds().await, expected, "{what}");
        if what.starts_with("an invented") {
            stage.audit_again().await;
            assert_eq!(stage.kinds().await, expected, "{what}, and once more is not twice");
        }
        for table in ["deposits", "chain_sweeps", "refunds"] {
            stage.sql(&format!("DELETE FROM {table}")).await;
            stage.sql(&format!("INSERT INTO {table} SELECT * FROM kept_{table}")).await;
        }
        stage.audit_again().await;
        assert_eq!(stage.kinds().await, [], "{what}, put right again");
    }

    // What a simulated chain of the same name had shown, before test mode got a real one, is no
    // affair of the real one's.
    let simulated = format!(
        "INSERT INTO simulated_transactions (scope, transaction_hash, block_number, block_time, \
         from_address, to_address, asset, units, sent_milliseconds) \
         SELECT scope, '{invented}', block_number, block_time, from_address, to_address, asset, \
         7, 0 FROM deposits WHERE {hundred}"
    );
    assert_eq!((stage.sql(&simulated).await, stage.sql(&copy(7, &invented, 0)).await), (1, 1));
    stage.audit_again().await;
    stage.audit().await.unwrap();
    assert_eq!(stage.kinds().await, []);
    stage.sql("DELETE FROM simulated_transactions").await;
    stage.audit_again().await;
    stage.audit().await.unwrap();
    assert_eq!(stage.kinds().await, [(AddressBalance, -7), (MovementNotOnChain, 7)]);
    stage.sql("DELETE FROM deposits").await;
    stage.sql("INSERT INTO deposits SELECT * FROM kept_deposits").await;
    stage.audit_again().await;
    stage.audit().await.unwrap();
    assert_eq!(stage.kinds().await, []);

    // What the addresses hold says the same without any log.
    stage.sql(&format!("UPDATE deposits SET units = units - 1 WHERE {hundred}")).await;
    let compared = stage.audit().await.unwrap();
    assert_eq!((compared.blocks, compared.balance.units - compared.expected.units), (None, 1));
    let name = address(&one).to_string();
    assert_eq!(stage.differences().await, [(AddressBalance, 1, name)]);
    // The operator explains it, and it stays explained until it changes.
    let open = stage
        .app
        .state
        .store
        .read(Cost::Scan, |tx| {
            Ok(book::rows::open(tx, Mode::Test, hundi::chains::ChainName::Tron, 9)?)
        })
        .await
        .unwrap();
    let id = open[0].0;
    assert!(
        stage
            .app
            .state
            .store
            .write(move |tx, now| Ok(book::rows::explain(tx, now, id)?))
            .await
            .unwrap()
    );
    assert!(
        !stage
            .app
            .state
            .store
            .write(move |tx, now| Ok(book::rows::explain(tx, now, id)?))
            .await
            .unwrap(),
        "once"
    );
    stage.audit().await.unwrap();
    assert_eq!(stage.differences().await, []);
    stage
        .sql(&format!(
            "UPDATE deposits SET units = units - 1 WHERE to_address = x'{}'",
            hex(address(&one).as_evm())
        ))
        .await;
    stage.audit().await.unwrap();
    assert_eq!(stage.kinds().await, [(AddressBalance, 2)]);
    // It is looked at again although the address is neither new nor holds anything by the book.
    stage.sql("DELETE FROM deposits").await;
    stage.sql("INSERT INTO deposits SELECT * FROM kept_deposits").await;
    stage.audit().await.unwrap();
    assert_eq!(stage.differences().await, []);
}

/// A node that hides a log from the follower, in a block that is neither ours otherwise nor in the
/// sample: the follower misses it.
async fn missed(stage: &Stage, transfer: &Value, hidden_at: usize) -> Hash {
    let paid = stage.token.transfer(address(transfer), 100_000_000).await;
    stage.token.noise(5).await;
    assert!(!(stage.chain.head().await + 1).is_multiple_of(100), "not in the follower's sample");
    stage.proxies[hidden_at].change(|faults| faults.short = [(paid, 0)].into());
    stage.settle().await;
    let (_, faults) = stage.oracle().oracle().faults().await;
    assert!(faults.len() == 1 && faults[0].starts_with("a deposit is missing"), "{faults:?}");
    paid
}

#[tokio::test]
async fn a_log_that_was_hidden_from_the_follower_is_found() {
    let stage = Stage::set().await;
    let transfer = stage.transfer("100.00").await;
    let paid = missed(&stage, &transfer, 0).await;
    stage.proxy().heal();
    stage.audit().await.unwrap();
    let told = stage.differences().await;
    let [balance, movement] = &told[..] else { panic!("{told:?}") };
    assert_eq!(
        (balance.0, balance.1, &balance.2),
        (AddressBalance, 100_000_000, &address(&transfer).to_string())
    );
    assert_eq!((movement.0, movement.1), (MovementNotInBook, 100_000_000));
    assert!(
        movement.2.starts_with(&format!("deposit {}:0 {}", paid.plain(), address(&transfer))),
        "{}",
        movement.2
    );
    assert_eq!(stage.deposits(&transfer).await.len(), 0, "nothing is put right by itself");
}

/// What the follower missed is taken over once the operator names it, as the follower would have:
/// the book then agrees with the chain.
#[tokio::test]
async fn a_missed_deposit_is_taken_over_once() {
    let stage = Stage::set().await;
    let transfer = stage.transfer("100.00").await;
    let paid = missed(&stage, &transfer, 0).await;
    let credit = async |hash: Hash| {
        credit::credit(&stage.app.state, Mode::Test, hundi::chains::blocks::Hash(hash.0)).await
    };
    let counts = |credited: &Credited| {
        (credited.deposits.len(), credited.known_count, credited.sweeps_count)
    };
    stage.proxy().change(|faults| faults.failed = [paid].into());
    assert_eq!(credit(paid).await.err(), Some(CreditError::Failed));
    stage.proxy().heal();
    let credited = credit(paid).await.unwrap();
    assert_eq!(counts(&credited), (1, 0, 0));
    stage.awaits(&transfer, "payout_settled").await;
    assert_eq!(counts(&credit(paid).await.unwrap()), (1, 1, 0), "once");
    assert_eq!(stage.deposits(&transfer).await.len(), 1);
    let (_, faults) = stage.oracle().oracle().faults().await;
    assert_eq!(faults, Vec::<String>::new());
    stage.audit().await.unwrap();
    assert_eq!(stage.differences().await, []);
    assert_eq!(stage.audit_again().await.movements_count, 1);
    assert_eq!(stage.differences().await, []);

    let unknown = credit(Hash([7; 32])).await.err();
    assert!(matches!(unknown, Some(CreditError::NotShown(_))), "{unknown:?}");
    let stranger = stage.token.transfer(nobody(9), 1_000_000).await;
    stage.mine(1).await;
    let ahead = credit(stranger).await.err();
    assert!(
        matches!(ahead, Some(CreditError::Ahead(number, height)) if number > height),
        "{ahead:?}"
    );
    stage.settle().await;
    assert_eq!(credit(stranger).await.err(), Some(CreditError::NothingOfOurs));
}

/// Of two endpoints both have to show it, and to show the same.
#[tokio::test]
async fn what_one_endpoint_does_not_show_is_not_taken_over() {
    let stage = Stage::set_with(Setup { proxies: 2, ..Setup::default() }).await;
    let transfer = stage.transfer("100.00").await;
    let paid = stage.token.transfer(address(&transfer), 100_000_000).await;
    stage.settle().await;
    stage.awaits(&transfer, "payout_settled").await;
    let credit = async || {
        credit::credit(&stage.app.state, Mode::Test, hundi::chains::blocks::Hash(paid.0)).await
    };
    assert_eq!(credit().await.unwrap().known_count, 1);
    type Trouble = (fn(&mut crate::proxy::Faults, Hash), fn(&CreditError) -> bool);
    let troubles: [Trouble; 3] = [
        (
            |faults, paid| faults.failed = [paid].into(),
            |told| matches!(told, CreditError::ShownDifferently(_)),
        ),
        (
            |faults, _| faults.behind_blocks = 2 * FINALITY_BLOCKS,
            |told| matches!(told, CreditError::NotShown(_)),
        ),
        (
            |faults, _| faults.is_dropping_connections = true,
            |told| matches!(told, CreditError::Node { .. }),
        ),
    ];
    for (trouble, is_told) in troubles {
        stage.proxies[1].heal();
        stage.proxies[1].change(|faults| trouble(faults, paid));
        let told = credit().await.err();
        assert!(told.as_ref().is_some_and(is_told), "{told:?}");
    }
}

#[tokio::test]
async fn a_log_that_no_node_ever_shows_is_found_by_the_balance() {
    let stage = Stage::set().await;
    let transfer = stage.transfer("100.00").await;
    missed(&stage, &transfer, 0).await;
    stage.audit().await.unwrap();
    assert_eq!(stage.kinds().await, [(AddressBalance, 100_000_000)]);
    // An address that is old and holds nothing by the book is only looked at when somebody asks for
    // all.
    stage.sql("DELETE FROM chain_differences").await;
    stage
        .sql(&format!(
            "UPDATE chain_audits SET completed_milliseconds = completed_milliseconds + {}",
            3 * DAY_SECONDS * 1000
        ))
        .await;
    assert_eq!(stage.audit().await.unwrap().addresses_count, 0);
    assert_eq!(stage.kinds().await, []);
    stage
        .sql(&format!(
            "UPDATE chain_audits SET completed_milliseconds = completed_milliseconds + {}",
            3 * DAY_SECONDS * 1000
        ))
        .await;
    let all = AuditExtent { all_addresses: true, ..AuditExtent::default() };
    assert_eq!(
        audit::run_once(&stage.app.state.store, stage.followed_chain(), all)
            .await
            .unwrap()
            .addresses_count,
        1
    );
    assert_eq!(stage.kinds().await, [(AddressBalance, 100_000_000)]);
}

#[tokio::test]
async fn the_other_endpoint_is_read() {
    let stage = Stage::set_with(Setup { proxies: 2, ..Setup::default() }).await;
    let transfer = stage.transfer("100.00").await;
    // The second node is away while the first one hides a log, so nobody contradicts it.
    stage.proxies[1].change(|faults| faults.is_dropping_connections = true);
    missed(&stage, &transfer, 0).await;
    stage.proxies[1].heal();
    let second = &stage.followed_chain().nodes[1];
    eventually("the second node's rest to end", async || {
        (second.resting_for().is_none()).then_some(())
    })
    .await;
    stage.followed_chain().stats.lead.store(0, Ordering::Relaxed);
    stage.audit().await.unwrap();
    assert_eq!(
        stage.kinds().await,
        [(AddressBalance, 100_000_000), (MovementNotInBook, 100_000_000)]
    );
    // Asked alone, the first one still hides it.
    let client = hundi::outbound::Client::new(rustls::RootCertStore::empty()).unwrap();
    let mut settings = stage.followed_chain().settings.clone();
    settings.endpoints.truncate(1);
    let alone = Arc::new(FollowedChain::new(Mode::Test, settings, &client));
    audit::run_once(
        &stage.app.state.store,
        &alone,
        AuditExtent { blocks: Some((1, stage.height())), ..AuditExtent::default() },
    )
    .await
    .unwrap();
    assert_eq!(stage.kinds().await, [(AddressBalance, 100_000_000)]);
}

/// What one endpoint does not show is asked of the other one before it is a difference.
#[tokio::test]
async fn one_endpoint_alone_accuses_nobody() {
    let stage = Stage::set_with(Setup { proxies: 2, ..Setup::default() }).await;
    let before = stage.height();
    settled(&stage).await;
    let paid = stage.token.transfers(before as u64, stage.height() as u64).await;
    let (fresh, bad) = (stage.followed_chain(), &stage.proxies[1]);
    // The follower stands still while its second node is not what it was.
    let client = hundi::outbound::Client::new(rustls::RootCertStore::empty()).unwrap();
    let chain = |places: &[usize]| {
        let mut settings = fresh.settings.clone();
        settings.endpoints = places.iter().map(|place| stage.proxies[*place].endpoint()).collect();
        FollowedChain::new(Mode::Test, settings, &client)
    };
    type Plant<'a> = &'a dyn Fn(&mut crate::proxy::Faults);
    let faults: [(&str, Plant<'_>, &[DifferenceKind]); 2] = [
        (
            "failed receipts",
            &|faults| faults.failed = paid.iter().map(|log| log.transaction).collect(),
            &[MovementNotOnChain; 4],
        ),
        (
            "old balances",
            &|faults| {
                (faults.behind_blocks, faults.behind_methods) =
                    (2 * (1 + FINALITY_BLOCKS), Some(["eth_call"].into()))
            },
            &[AddressBalance; 2],
        ),
    ];
    let audit_through = async |places: &[usize]| {
        let blocks = Some((before + 1, stage.height()));
        for scope in [
            AuditExtent { all_addresses: true, ..AuditExtent::default() },
            AuditExtent { blocks, ..AuditExtent::default() },
        ] {
            audit::run_once(&stage.app.state.store, &chain(places), scope).await.unwrap();
        }
    };
    for (what, plant, alone) in faults {
        bad.change(|faults| plant(faults));
        audit_through(&[0, 1]).await;
        assert_eq!(stage.kinds().await, [], "{what}");
        // The control: nobody contradicts it.
        audit_through(&[1]).await;
        let kinds: Vec<DifferenceKind> =
            stage.kinds().await.into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, alone, "{what}");
        bad.heal();
        audit_through(&[1]).await;
        assert_eq!(stage.kinds().await, [], "{what}");
    }
}

#[tokio::test]
async fn a_node_that_fails_marks_nothing_and_is_named() {
    let stage = Stage::set().await;
    settled(&stage).await;
    let before = stage.mark().await;
    let to = stage.height();
    // The follower stands still at another node, so that these faults meet the audit alone.
    let proxy = crate::proxy::Proxy::start(&stage.chain).await;
    let client = hundi::outbound::Client::new(rustls::RootCertStore::empty()).unwrap();
    let mut settings = stage.followed_chain().settings.clone();
    settings.endpoints = vec![proxy.endpoint()];
    let fresh = || FollowedChain::new(Mode::Test, settings.clone(), &client);
    type Plant = fn(&mut crate::proxy::Faults, i64);
    let stopped: [(&str, Plant, &str); 9] = [
        ("no answer", |faults, _| faults.is_dropping_connections = true, "could not be checked"),
        (
            "a poison block",
            |faults, to| faults.poison = Blocks::only([to as u64 - 30]),
            "illegal state",
        ),
        ("a stale node", |faults, _| faults.behind_blocks = 60, "does not have block"),
        (
            "another branch",
            |faults, _| faults.fork = Some(crate::proxy::Fork { blocks: 0..=u64::MAX, mark: 7 }),
            "does not continue",
        ),
        ("nothing in the index", |faults, _| faults.logs_hidden = Blocks::All, "did not show"),
        (
            "stale for logs",
            |faults, _| {
                (faults.behind_blocks, faults.behind_methods) = (90, Some(["eth_getLogs"].into()))
            },
            "did not show",
        ),
        (
            "stale for receipts",
            |faults, _| {
                (faults.behind_blocks, faults.behind_methods) =
                    (90, Some(["eth_getBlockReceipts", "eth_getTransactionReceipt"].into()))
            },
            "does not have block",
        ),
        ("another chain", |faults, _| faults.chain_id = Some(5), "belongs to chain 5"),
        ("overloaded", |faults, _| faults.is_overloaded = true, "could not be checked"),
    ];
    for (what, plant, expected) in stopped {
        proxy.change(|faults| plant(faults, to));
        let fault = audit::run_once(&stage.app.state.store, &fresh(), AuditExtent::default())
            .await
            .expect_err(what)
            .to_string();
        assert!(fault.contains(expected), "{what}: {fault}");
        assert_eq!((stage.mark().await, stage.differences().await), (before, vec![]), "{what}");
        proxy.heal();
    }
    // Short of a log that the book has: its receipt speaks for the book.
    let deposited = stage.token.transfers(1, to as u64).await;
    let ours = deposited.iter().find(|log| log.units == 105_000_000).unwrap();
    proxy.change(|faults| faults.short = [(ours.transaction, ours.log_index)].into());
    audit::run_once(&stage.app.state.store, &fresh(), AuditExtent::default()).await.unwrap();
    assert_eq!(stage.differences().await, []);
    assert_eq!(stage.mark().await.anchor.height, to);

    // Limits are lived with.
    proxy.heal();
    proxy.change(|faults| {
        (faults.range_blocks_max, faults.batch_calls_max, faults.results_max) =
            (Some(3), Some(2), Some(4))
    });
    let asked =
        AuditExtent { blocks: Some((before.anchor.height + 1, to)), ..AuditExtent::default() };
    assert_eq!(
        audit::run_once(&stage.app.state.store, &fresh(), asked).await.unwrap().movements_count,
        3
    );
    assert_eq!(stage.differences().await, []);

    for (from, last) in [(0, 1), (5, 4), (1, to + 1_000)] {
        let asked = AuditExtent { blocks: Some((from, last)), ..AuditExtent::default() };
        let fault = audit::run_once(&stage.app.state.store, &fresh(), asked).await.unwrap_err();
        assert!(matches!(fault, AuditError::Blocks(..)), "{fault}");
    }
}

#[tokio::test]
async fn the_mark_moves_over_what_was_read_and_no_further() {
    let stage = Stage::set().await;
    let transfer = stage.transfer("100.00").await;
    stage.token.transfer(address(&transfer), 100_000_000).await;
    stage.mine(1_200).await;
    stage.followed().await;
    let begin = stage.mark().await;
    let poison = begin.anchor.height + 1_100;
    stage.proxy().change(|faults| faults.poison = Blocks::only([poison as u64]));
    let fault = stage.audit().await.unwrap_err().to_string();
    assert!(fault.contains("illegal state"), "{fault}");
    let half = stage.mark().await;
    assert_eq!(
        (half.anchor.height, half.completed_milliseconds),
        (begin.anchor.height + 1_000, begin.completed_milliseconds)
    );
    stage.proxy().heal();
    let compared = stage.audit().await.unwrap();
    assert_eq!(compared.blocks, Some((half.anchor.height + 1, stage.height())));
    assert_eq!((compared.addresses_count, stage.differences().await), (1, vec![]));
}

/// A deposit above the cursor explains its balance, also where blocks become final after minutes
/// and hundreds of newer ones are there by then.
#[tokio::test]
async fn a_balance_is_explained_however_far_above_the_cursor_it_came() {
    const ABOVE: u64 = 600;
    let (stage, transfer) = Stage::trailing_by(ABOVE).await;
    stage.token.transfer(address(&transfer), 100_000_000).await;
    stage.token.noise(5).await;
    stage.mine(1).await;
    stage
        .awaits_deposits(&transfer, |deposits| {
            deposits.len() == 1 && deposits[0]["block_number"].is_i64()
        })
        .await;
    let compared = stage.audit().await.unwrap();
    assert_eq!(
        (compared.addresses_count, compared.expected.units, compared.balance.units),
        (1, 100_000_000, 100_000_000)
    );
    assert_eq!(stage.differences().await, vec![]);
}

#[tokio::test]
async fn the_service_compares_once_a_day_and_tells() {
    let stage = Stage::set().await;
    let transfer = stage.transfer("100.00").await;
    missed(&stage, &transfer, 0).await;
    stage.proxy().heal();
    let begin = stage.mark().await;
    stage.advance_seconds(DAY_SECONDS);
    eventually("the comparison", async || {
        (stage.mark().await.completed_milliseconds > begin.completed_milliseconds).then_some(())
    })
    .await;
    eventually("the metrics", async || {
        let page = String::from_utf8(stage.client.get("/metrics").await.body.to_vec()).unwrap();
        let has = |line: &str| page.lines().any(|told| told == line);
        let height = format!(
            "hundi_chain_audited_height{{chain=\"tron\",mode=\"test\"}} {}",
            stage.height()
        );
        (has("hundi_chain_differences{chain=\"tron\",mode=\"test\"} 2") && has(&height))
            .then_some(())
    })
    .await;
    let seen = stage.mark().await;
    assert_eq!(
        stage.kinds().await,
        [(AddressBalance, 100_000_000), (MovementNotInBook, 100_000_000)]
    );
    assert_eq!(stage.mark().await, seen);
}

/// The command of an operator, beside the running service.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_names_differences_and_takes_explanations() {
    let setup = Setup { funding_seconds: 86_400, chain: Process::chain_now(), ..Setup::default() };
    let (chain, token) = chain_with_token(setup.chain.clone()).await;
    let proxy = crate::proxy::Proxy::start(&chain).await;
    let process = Process::start(&[proxy.url()], &token, &setup, None).await;
    let transfer = process.caller.transfer("100.00").await;
    process.followed_to(chain.finalized().await as i64).await;
    let paid = token.transfer(address(&transfer), 100_000_000).await;
    token.noise(5).await;
    proxy.change(|faults| faults.short = [(paid, 0)].into());
    chain.mine(FINALITY_BLOCKS + 1).await;
    process.followed_to(chain.finalized().await as i64).await;
    proxy.heal();
    let run = |arguments: &[&str]| tokio::task::block_in_place(|| process.home.run(arguments));

    let told = run(&["reconcile"]);
    assert!(
        told.status.code() == Some(1) && told.stderr.contains("2 differences were found"),
        "{}{}",
        told.stdout,
        told.stderr
    );
    assert!(
        told.stdout.contains("1 addresses should hold 0.00 USDT and hold 100.00 USDT"),
        "{}",
        told.stdout
    );
    let ids: Vec<String> = told
        .stdout
        .lines()
        .filter(|line| {
            line.starts_with("movement_not_in_book") || line.starts_with("address_balance")
        })
        .map(|line| line.split_whitespace().nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 2, "{}", told.stdout);
    for id in &ids {
        run(&["reconcile", "--accept", id]).expect_success("an explanation");
    }
    assert!(run(&["reconcile", "--accept", &ids[0]]).status.code() == Some(1), "once");
    let told = run(&["reconcile"]).expect_success("nothing is open");
    assert!(
        told.stdout.contains("no differences") && told.stdout.contains("no new blocks"),
        "{}",
        told.stdout
    );
    let last = process.height().to_string();
    let told = run(&["reconcile", "--mode", "test", "--from-block", "1", "--to-block", &last])
        .expect_success("explained");
    assert!(told.stdout.contains(&format!("blocks 1 to {last}, 1 movements")), "{}", told.stdout);

    let hash = paid.plain();
    let told = run(&["deposits", "credit", &hash, "--mode", "test"])
        .expect_success("a deposit taken over");
    assert!(
        told.stdout.contains(
            "1 deposits and 0 sweeps were taken over; 0 deposits were in the book before"
        ),
        "{}",
        told.stdout
    );
    let path = format!("/v1/transfers/{}", transfer["id"].as_str().unwrap());
    eventually("the transfer to be settled", async || {
        (process.caller.client.get(&path).await.ok()["status"] == "payout_settled").then_some(())
    })
    .await;
    let told = run(&["deposits", "credit", &hash, "--mode", "test"]).expect_success("nothing more");
    assert!(
        told.stdout.contains(
            "0 deposits and 0 sweeps were taken over; 1 deposits were in the book before"
        ),
        "{}",
        told.stdout
    );
    process.home.check().expect_success("the check");

    proxy.change(|faults| faults.is_dropping_connections = true);
    let told = run(&["reconcile"]);
    assert!(
        told.status.code() == Some(1) && told.stderr.contains("could not be compared"),
        "{}{}",
        told.stdout,
        told.stderr
    );
    for (arguments, code) in [
        (&["reconcile", "--mode", "live"][..], Some(1)),
        (&["reconcile", "--from-block", "1", "--to-block", "2"], Some(2)),
        (&["reconcile", "--mode", "test", "--from-block", "1"], Some(2)),
        (&["deposits", "credit", &hash, "--mode", "test"], Some(1)),
        (&["deposits", "credit", &hash, "--mode", "live"], Some(1)),
        (&["deposits", "credit", "0x12", "--mode", "test"], Some(1)),
        (&["deposits", "credit", &hash], Some(2)),
    ] {
        assert_eq!(run(arguments).status.code(), code, "{arguments:?}");
    }
}

fn hex(bytes: &[u8]) -> String {
    hundi::kernel::hex::encode(bytes)
}
