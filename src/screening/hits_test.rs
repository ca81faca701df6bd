//! What is kept of findings: how many hits, which are withdrawn, and which come up next.

use sha2::{Digest, Sha256};

use super::hit::{HitDecision, HitRow};
use super::{HITS_MAX, Screening, ScreeningFinding, ScreeningHit, hits, rows};
use crate::kernel::{AnyId, Clock, DecidedBy, Mode, Now, ObjectKind, Scope};
use crate::store::handle::no_epilogue;
use crate::store::{Store, Tx};

const SCOPE: Scope = Scope::new(1, Mode::Test);
const SENDER: AnyId = AnyId { kind: ObjectKind::Sender, value: 1 };
const TRANSFER: AnyId = AnyId { kind: ObjectKind::Transfer, value: 2 };
const REFUND: AnyId = AnyId { kind: ObjectKind::Refund, value: 3 };

struct Kept {
    store: Store,
    folder: std::path::PathBuf,
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Kept {
    fn new(name: &str) -> Kept {
        let folder = std::env::temp_dir().join(format!("hundi-hits-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = Store::open(&folder.join("hits.db"), Clock::System, no_epilogue).unwrap();
        Kept { store, folder }
    }

    async fn keep(&self, subject: AnyId, finding: ScreeningFinding) -> Screening {
        let keep = move |tx: &mut dyn Tx, now: &mut Now| {
            Ok(hits::keep(tx, now, SCOPE, subject, &finding, &basis)?)
        };
        self.store.write(keep).await.unwrap()
    }

    async fn clear(&self, subject: AnyId) {
        let clear = move |tx: &mut dyn Tx, now: &mut Now| {
            let by = DecidedBy::new("asha", "a test").unwrap();
            Ok(hits::decide(tx, now, SCOPE, subject, HitDecision::Cleared, &by)?)
        };
        self.store.write(clear).await.unwrap();
    }

    async fn rows(&self, subject: AnyId) -> Vec<HitRow> {
        let read = move |tx: &mut dyn Tx, _: &mut Now| Ok(rows::of_subject(tx, SCOPE, subject)?);
        self.store.write(read).await.unwrap()
    }

    async fn open(&self, subject: AnyId) -> Vec<String> {
        let rows = self.rows(subject).await.into_iter();
        rows.filter(|row| row.decision.is_none()).map(|row| row.entry_id).collect()
    }
}

/// Like the basis of an address: a hash of the entry's content and of what agreed.
fn basis(hit: &ScreeningHit) -> [u8; 32] {
    Sha256::new().chain_update(hit.entry_hash).chain_update(&hit.evidence).finalize().into()
}

/// A possible hit; those of a lower number have a higher score.
fn hit(list: &'static str, number: usize) -> ScreeningHit {
    ScreeningHit {
        list,
        entry_id: format!("own-{number:03}"),
        entry_hash: [7; 32],
        screening: Screening::PossibleMatch,
        score_basis_points: if list == "unreadable" { 0 } else { 10_000 - number as i64 },
        evidence: "a name agrees".to_owned(),
        listed_name: None,
    }
}

fn found(numbers: impl IntoIterator<Item = usize>) -> ScreeningFinding {
    ScreeningFinding::of(numbers.into_iter().map(|number| hit("operator", number)).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn once_hits_are_cleared_the_next_ones_are_stored() {
    let kept = Kept::new("next");
    let all = || {
        let mut hits: Vec<_> = (0..HITS_MAX + 5).map(|number| hit("operator", number)).collect();
        hits.push(hit("unreadable", 999));
        ScreeningFinding::of(hits)
    };
    assert_eq!(kept.keep(SENDER, all()).await, Screening::PossibleMatch);
    let open = kept.open(SENDER).await;
    assert_eq!(open.len(), HITS_MAX + 1, "the best, and that a name cannot be read: {open:?}");
    assert!(open.contains(&"own-999".to_owned()) && !open.contains(&"own-020".to_owned()));
    // Screened again, nothing changes.
    assert_eq!(kept.keep(SENDER, all()).await, Screening::PossibleMatch);
    assert_eq!(kept.open(SENDER).await, open);
    kept.clear(SENDER).await;
    assert_eq!(kept.keep(SENDER, all()).await, Screening::PossibleMatch);
    let next: Vec<String> = (HITS_MAX..HITS_MAX + 5).map(|at| format!("own-{at:03}")).collect();
    assert_eq!(kept.open(SENDER).await, next);
    kept.clear(SENDER).await;
    assert_eq!(kept.keep(SENDER, all()).await, Screening::Clear);
    assert_eq!(kept.open(SENDER).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_hit_is_withdrawn_when_its_entry_is_not_found_any_more() {
    let kept = Kept::new("withdrawn");
    kept.keep(SENDER, found([1, 2])).await;
    // Nothing was compared.
    kept.keep(SENDER, ScreeningFinding::not_compared()).await;
    assert_eq!(kept.open(SENDER).await, ["own-001", "own-002"]);
    assert_eq!(kept.keep(SENDER, found([2])).await, Screening::PossibleMatch);
    assert_eq!(kept.open(SENDER).await, ["own-002"]);
    // An open hit stays while it is found, though `HITS_MAX` better ones come before it.
    let better = (100..100 + HITS_MAX).chain([500]);
    kept.keep(SENDER, found([500])).await;
    assert_eq!(kept.keep(SENDER, found(better)).await, Screening::PossibleMatch);
    let open = kept.open(SENDER).await;
    assert!(open.len() == HITS_MAX + 1 && open.contains(&"own-500".to_owned()), "{open:?}");
    // A transfer is screened address by address: a finding about one says nothing of the others.
    kept.keep(TRANSFER, found([1])).await;
    kept.keep(TRANSFER, found([2])).await;
    assert_eq!(kept.open(TRANSFER).await, ["own-001", "own-002"]);
    // The operator decides about all hits of a transfer together, so all are stored.
    kept.keep(TRANSFER, found(0..HITS_MAX + 5)).await;
    assert_eq!(kept.open(TRANSFER).await.len(), HITS_MAX + 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_entry_of_two_addresses_is_cleared_by_one_decision() {
    let kept = Kept::new("addresses");
    let of = |address: u8, screening: Screening| {
        let mut hit = hit("operator", 1);
        hit.screening = screening;
        hit.evidence = format!("listed digital currency address {address}");
        ScreeningFinding::of(vec![hit])
    };
    let (first, second) = (of(1, Screening::ConfirmedMatch), of(2, Screening::PossibleMatch));
    kept.keep(TRANSFER, first.clone()).await;
    kept.keep(TRANSFER, second.clone()).await;
    let rows = kept.rows(TRANSFER).await;
    assert_eq!(rows.len(), 1);
    let both = "listed digital currency address 1; listed digital currency address 2";
    assert_eq!((rows[0].evidence.as_str(), rows[0].screening), (both, Screening::ConfirmedMatch));
    kept.clear(TRANSFER).await;
    for finding in [first.clone(), second.clone(), first.clone()] {
        assert_eq!(kept.keep(TRANSFER, finding).await, Screening::Clear);
    }
    // A third address of the entry is new, so all of them wait for a decision again.
    let third = of(3, Screening::PossibleMatch);
    assert_eq!(kept.keep(TRANSFER, third.clone()).await, Screening::PossibleMatch);
    assert_eq!(kept.keep(TRANSFER, first.clone()).await, Screening::ConfirmedMatch);
    kept.clear(TRANSFER).await;
    for finding in [third, second, first] {
        assert_eq!(kept.keep(TRANSFER, finding).await, Screening::Clear);
    }
    // An older row has the fingerprint of one address. Its clearance still holds for that address.
    let of_one = basis(&of(2, Screening::PossibleMatch).hits[0]);
    let narrow = move |tx: &mut dyn Tx, _: &mut Now| {
        let mut row = rows::of_subject(tx, SCOPE, TRANSFER)?.remove(0);
        row.basis = of_one.to_vec();
        Ok(rows::update(tx, &row)?)
    };
    kept.store.write(narrow).await.unwrap();
    let [second, first] = [2, 1].map(|address| of(address, Screening::PossibleMatch));
    assert_eq!(kept.keep(TRANSFER, second).await, Screening::Clear);
    assert_eq!(kept.keep(TRANSFER, first).await, Screening::PossibleMatch);
    // Another content of the entry ends the clearance and replaces the evidence.
    let mut changed = of(2, Screening::PossibleMatch);
    changed.hits[0].entry_hash = [8; 32];
    assert_eq!(kept.keep(TRANSFER, changed).await, Screening::PossibleMatch);
    let evidence = &kept.rows(TRANSFER).await[0].evidence;
    assert_eq!(evidence, "listed digital currency address 2");
    // For a person and for a refund, a new hit replaces the old one.
    for subject in [SENDER, REFUND] {
        kept.keep(subject, of(1, Screening::PossibleMatch)).await;
        kept.clear(subject).await;
        kept.keep(subject, of(2, Screening::PossibleMatch)).await;
        let evidence = &kept.rows(subject).await[0].evidence;
        assert_eq!(evidence, "listed digital currency address 2");
        kept.clear(subject).await;
        let again = kept.keep(subject, of(1, Screening::PossibleMatch)).await;
        assert_eq!(again, Screening::PossibleMatch);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_has_any_number_of_hits() {
    let kept = Kept::new("many");
    for number in 0..201 {
        kept.keep(SENDER, found([number])).await;
    }
    assert_eq!(kept.keep(SENDER, found([0, 200])).await, Screening::PossibleMatch);
    assert_eq!((kept.rows(SENDER).await.len(), kept.open(SENDER).await.len()), (201, 2));
}
