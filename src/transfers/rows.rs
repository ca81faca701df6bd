//! The rows of transfers.

use std::collections::{BTreeMap, BTreeSet};

use super::state::{HoldPolicy, OverpaidPolicy, StatusReason, TransferStatus};
use super::{Policy, PurposeCode, Transfer};
use crate::chains::address::{AddressBytes, ChainAddress};
use crate::deposits::rows::stored_address;
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::state::Status;
use crate::kernel::{Currency, History, Id, Metadata, Money, Rate, Scope, StoreError};
use crate::quote_locks::gst::Gst;
use crate::resource::BookRule;
use crate::store::list::{self, Listing};
use crate::store::{Row, Tx};
use crate::values;

crate::stored! {
    "transfers" as Transfer, written from transfer, read from row;
    fixed {
        scope: transfer.scope => row.scope()?;
        id: transfer.id => row.id()?;
        version: transfer.version => row.int()?;
        chain: &transfer.chain => row.text()?;
        sender_id: transfer.sender_id => row.id()?;
        beneficiary_id: transfer.beneficiary_id => row.id()?;
        sell_currency: transfer.amount.currency => row.word(Currency::parse)?;
        payout_currency: transfer.payout_amount.currency => row.word(Currency::parse)?;
        purpose_code: transfer.purpose_code.as_str() => row.word(PurposeCode::parse)?;
        asset: &transfer.asset => row.text()?;
        token_contract: transfer.token_contract.bytes() => read_address(row, &chain)?;
        deposit_address: transfer.deposit_address.bytes() => read_address(row, &chain)?;
        account_fingerprint: i64::from(transfer.account_fingerprint) => read_fingerprint(row)?;
        derivation_index: transfer.derivation_index => row.int()?;
        expires_at: transfer.expires_at => row.int()?;
        policy: &policy_to_text(transfer.policy) => row.word(policy_from_text)?;
        reference: &transfer.reference => row.text_or_null()?;
        payer_sets_refund_address: transfer.payer_sets_refund_address => row.bool()?;
        return_url: &transfer.return_url => row.text_or_null()?;
        metadata: &transfer.metadata.to_text() => row.word(Metadata::from_text)?;
        created: transfer.created => row.int()?;
    }
    changing from TransferStatus {
        status: transfer.status.as_str() => row.word(TransferStatus::parse)?;
        status_reason: transfer.status_reason.map(StatusReason::as_str)
            => row.word_or_null(StatusReason::parse)?;
        quote_lock_id: transfer.quote_lock_id => row.id()?;
        sell_units: transfer.amount.units => row.int()?;
        payout_units: transfer.payout_amount.units => row.int()?;
        rate: transfer.rate => Rate(row.int()?);
        fee_units: transfer.fee.units => row.int()?;
        gst_taxable_units: transfer.gst.map(|gst| gst.taxable.units) => row.int_or_null()?;
        gst_units: transfer.gst.map(|gst| gst.amount.units) => row.int_or_null()?;
        expected_units: transfer.expected.units => row.int()?;
        received_units: transfer.received.units => row.int()?;
        excess_units: transfer.excess.units => row.int()?;
        unsettled_count: transfer.unsettled_count => row.int()?;
        hold_until: transfer.hold_until => row.int_or_null()?;
        refund_address: transfer.refund_address.as_ref().map(ChainAddress::bytes)
            => read_address_or_null(row, &chain)?;
        payout_id: transfer.payout_id => row.id_or_null()?;
        refund_id: transfer.refund_id => row.id_or_null()?;
        status_history: &transfer.status_history.to_text() => History::from_text(&row.text()?)?;
    }
    into Transfer {
        scope,
        id,
        version,
        status,
        status_reason,
        sender_id,
        beneficiary_id,
        quote_lock_id,
        amount: Money::new(sell_units, sell_currency),
        payout_amount: Money::new(payout_units, payout_currency),
        rate,
        fee: Money::new(fee_units, sell_currency),
        gst: Gst::of_units(gst_taxable_units, gst_units),
        purpose_code,
        asset,
        chain,
        token_contract,
        deposit_address,
        account_fingerprint,
        derivation_index,
        expected: Money::new(expected_units, Currency::Usdt),
        received: Money::new(received_units, Currency::Usdt),
        excess: Money::new(excess_units, Currency::Usdt),
        unsettled_count,
        expires_at,
        hold_until,
        refund_address,
        payer_sets_refund_address,
        policy,
        return_url,
        reference,
        payout_id,
        refund_id,
        status_history,
        metadata,
        created,
    }
}

const FIND_BY_CALLER_REFERENCE: &str =
    "SELECT id FROM transfers WHERE scope = ?1 AND reference = ?2";

fn read_address(row: &mut Row, chain: &str) -> Result<ChainAddress, StoreError> {
    Ok(ChainAddress::of_chain(chain, stored_address(row.bytes()?)?))
}

fn read_address_or_null(row: &mut Row, chain: &str) -> Result<Option<ChainAddress>, StoreError> {
    let bytes = row.bytes_or_null()?.map(stored_address).transpose()?;
    Ok(bytes.map(|bytes| ChainAddress::of_chain(chain, bytes)))
}

fn policy_to_text(policy: Policy) -> String {
    format!("{},{},{}", policy.underpaid.as_str(), policy.overpaid.as_str(), policy.late.as_str())
}

fn policy_from_text(text: &str) -> Option<Policy> {
    let mut parts = text.split(',');
    Some(Policy {
        underpaid: HoldPolicy::parse(parts.next()?)?,
        overpaid: OverpaidPolicy::parse(parts.next()?)?,
        late: HoldPolicy::parse(parts.next()?)?,
    })
}

/// Reads the BIP-32 fingerprint of an account key.
fn read_fingerprint(row: &mut Row) -> Result<u32, StoreError> {
    u32::try_from(row.int()?).map_err(|_| {
        StoreError::Broken("the fingerprint of an account key lies outside its range".into())
    })
}

/// The transfer of an account and mode that has this reference of the caller's.
pub fn find_by_caller_reference(
    tx: &mut dyn Tx,
    scope: Scope,
    reference: &str,
) -> Result<Option<Id<kind::Transfer>>, StoreError> {
    tx.row(FIND_BY_CALLER_REFERENCE, values![scope, reference])?.map(|mut row| row.id()).transpose()
}

/// Prefetches the query of [`find_by_caller_reference`].
pub fn prefetch_by_caller_reference(
    tx: &mut dyn Tx,
    scope: Scope,
    reference: &str,
) -> Result<(), StoreError> {
    tx.prefetch(FIND_BY_CALLER_REFERENCE, values![scope, reference])
}

pub fn list(tx: &mut dyn Tx, scope: Scope, page: &Page) -> Result<(Vec<Row>, bool), StoreError> {
    list::read(
        tx,
        &Listing { table: "transfers", columns: COLUMNS, key: ("scope", scope.into()) },
        page,
    )
}

/// What arrived at a deposit address, and what left it, in tokens of one contract, by the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressLine {
    pub transfer_id: Id<kind::Transfer>,
    pub chain: String,
    pub asset: String,
    pub token_contract: ChainAddress,
    pub address: ChainAddress,
    /// BIP-32 fingerprint of the account key that the address is derived from.
    pub account_fingerprint: u32,
    pub derivation_index: i64,
    /// Completed deposits of every classification, and what came from other deposit addresses on a
    /// real chain.
    pub received: Money,
    /// What left the address on a real chain.
    pub swept: Money,
}

/// Deposit addresses of one account and mode, in the order in which they were handed out, beginning
/// after the transfer `after`. Each address has one line for its transfer's token contract, and one
/// for every other contract in which something arrived or left.
pub fn addresses(
    tx: &mut dyn Tx,
    scope: Scope,
    after: Option<Id<kind::Transfer>>,
    transfers_max: i64,
) -> Result<Vec<AddressLine>, StoreError> {
    let after = after.map_or([0; 16], Id::to_bytes);
    let rows = tx.rows(
        "SELECT id, chain, asset, token_contract, deposit_address, account_fingerprint, \
         derivation_index FROM transfers WHERE scope = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
        values![scope, &after, transfers_max],
    )?;
    let zero = Money::zero(Currency::Usdt);
    let read_line = |mut row: Row| {
        let (transfer_id, chain) = (row.id()?, row.text()?);
        Ok(AddressLine {
            transfer_id,
            asset: row.text()?,
            token_contract: ChainAddress::of_chain(&chain, stored_address(row.bytes()?)?),
            address: ChainAddress::of_chain(&chain, stored_address(row.bytes()?)?),
            chain,
            account_fingerprint: read_fingerprint(&mut row)?,
            derivation_index: row.int()?,
            received: zero,
            swept: zero,
        })
    };
    let lines: Vec<AddressLine> =
        rows.into_iter().map(read_line).collect::<Result<_, StoreError>>()?;
    let Some(last) = lines.last().map(|line| line.transfer_id) else { return Ok(lines) };
    let (mut received, mut swept) = (UnitsByContract::new(), UnitsByContract::new());
    for (sql, is_received) in [
        (
            "SELECT transfer_id, contract, CAST(SUM(units) AS BIGINT) FROM deposits WHERE scope = \
             ?1 AND transfer_id > ?2 AND transfer_id <= ?3 AND status = 'completed' GROUP BY \
             transfer_id, contract",
            true,
        ),
        (
            "SELECT t.id, s.contract, CAST(SUM(s.units) AS BIGINT) FROM transfers t JOIN \
             chain_sweeps s ON s.to_address = t.deposit_address AND s.chain = t.chain WHERE \
             t.scope = ?1 AND t.id > ?2 AND t.id <= ?3 GROUP BY t.id, s.contract",
            true,
        ),
        (
            "SELECT t.id, s.contract, CAST(SUM(s.units) AS BIGINT) FROM transfers t JOIN \
             chain_sweeps s ON s.from_address = t.deposit_address AND s.chain = t.chain WHERE \
             t.scope = ?1 AND t.id > ?2 AND t.id <= ?3 GROUP BY t.id, s.contract",
            false,
        ),
    ] {
        let moved = if is_received { &mut received } else { &mut swept };
        for mut row in tx.rows(sql, values![scope, &after, last])? {
            let transfer_id = row.id()?;
            let contract = row.bytes_or_null()?.map(stored_address).transpose()?;
            let units: &mut i64 =
                moved.entry(transfer_id).or_default().entry(contract).or_default();
            *units = units.checked_add(row.int()?).ok_or_else(|| {
                StoreError::Broken("more came to an address than there can be".into())
            })?;
        }
    }
    Ok(lines.into_iter().flat_map(|line| by_contract(line, &received, &swept)).collect())
}

/// Millionths of USDT by transfer and contract; `None` is the transfer's token contract.
type UnitsByContract = BTreeMap<Id<kind::Transfer>, BTreeMap<Option<AddressBytes>, i64>>;

fn by_contract(
    line: AddressLine,
    received: &UnitsByContract,
    swept: &UnitsByContract,
) -> Vec<AddressLine> {
    let (received, swept) = (received.get(&line.transfer_id), swept.get(&line.transfer_id));
    let own_contract = *line.token_contract.bytes();
    let sum = |moved: Option<&BTreeMap<Option<AddressBytes>, i64>>, contract: AddressBytes| {
        let is_meant = |known: &Option<AddressBytes>| known.unwrap_or(own_contract) == contract;
        let units = moved.into_iter().flatten().filter(|(known, _)| is_meant(known));
        Money::new(units.map(|(_, units)| units).sum(), Currency::Usdt)
    };
    let others: BTreeSet<AddressBytes> = received
        .into_iter()
        .chain(swept)
        .flat_map(|moved| moved.keys().flatten().copied())
        .filter(|contract| *contract != own_contract)
        .collect();
    [own_contract]
        .into_iter()
        .chain(others)
        .map(|contract| AddressLine {
            token_contract: ChainAddress::of_chain(&line.chain, contract),
            received: sum(received, contract),
            swept: sum(swept, contract),
            ..line.clone()
        })
        .collect()
}

/// The token contract of the transfer that a deposit address belongs to; `None` for an address that
/// was never handed out.
pub fn token_contract_of_address(
    tx: &mut dyn Tx,
    deposit_address: &AddressBytes,
) -> Result<Option<AddressBytes>, StoreError> {
    let sql = "SELECT t.token_contract FROM deposit_addresses a JOIN transfers t ON t.scope = \
     a.scope AND t.id = a.transfer_id WHERE a.address = ?1";
    tx.row(sql, values![deposit_address])?.map(|mut row| stored_address(row.bytes()?)).transpose()
}

/// A transfer of any account, for a link whose mark was checked. Accounts are few, so each is
/// searched.
pub fn find_anywhere(
    tx: &mut dyn Tx,
    id: Id<kind::Transfer>,
) -> Result<Option<Transfer>, StoreError> {
    for scope in crate::keys::rows::scopes(tx)? {
        if let Some(transfer) = find(tx, scope, id)? {
            return Ok(Some(transfer));
        }
    }
    Ok(None)
}

/// Queries that find errors in these rows, for `hundi check`. They guard against rows that somebody
/// changed outside the service.
pub const BOOK_RULES: &[BookRule] = &[
    BookRule {
        meaning: "a transfer's deposits differ from what was credited for it",
        sql: "SELECT 'transfer', d.transfer_id FROM ( \
                SELECT scope, transfer_id, SUM(units) AS units FROM deposits WHERE status = \
                'completed' GROUP BY scope, transfer_id) d \
              LEFT JOIN (SELECT scope, transfer_id, SUM(units) AS units FROM ledger_postings \
              WHERE credit_account = 'custody' GROUP BY scope, transfer_id) p \
              ON p.scope = d.scope AND p.transfer_id = d.transfer_id WHERE p.units IS NULL OR \
              p.units <> d.units LIMIT ?1",
    },
    BookRule {
        meaning: "a transfer's amount received differs from its deposits",
        sql: "SELECT 'transfer', t.id FROM transfers t WHERE t.received_units <> ( \
                SELECT COALESCE(SUM(d.units), 0) FROM deposits d WHERE d.scope = t.scope AND \
                d.transfer_id = t.id AND d.status = 'completed' \
                AND d.classification <> 'unmatched') LIMIT ?1",
    },
    BookRule {
        meaning: "a quote lock names a transfer that does not exist",
        sql: "SELECT 'quote_lock', l.id FROM quote_locks l LEFT JOIN transfers t ON t.scope = \
         l.scope AND t.id = l.transfer_id \
              WHERE l.transfer_id IS NOT NULL AND t.id IS NULL LIMIT ?1",
    },
    BookRule {
        meaning: "two transfers share a quote lock",
        sql: "SELECT 'quote_lock', quote_lock_id FROM transfers GROUP BY scope, quote_lock_id \
         HAVING COUNT(*) > 1 LIMIT ?1",
    },
    BookRule {
        meaning: "two transfers share a deposit address",
        sql: "SELECT 'address', deposit_address FROM transfers GROUP BY deposit_address HAVING \
         COUNT(*) > 1 LIMIT ?1",
    },
    BookRule {
        meaning: "a transfer and its payout disagree",
        sql: "SELECT 'transfer', t.id FROM transfers t JOIN payouts p ON p.scope = t.scope AND \
         p.id = t.payout_id \
              WHERE (t.status = 'payout_processing') <> (p.status = 'processing') OR (t.status = \
              'payout_settled') <> (p.status = 'settled') LIMIT ?1",
    },
];
