//! Reads the answer of `/wallet/gettransactioninfobyblocknum`, of TRON's own HTTP interface: all
//! transactions of a block with their logs. It serves for nodes without `eth_getBlockReceipts`.
//!
//! The answer has no block hash. The receipts get the header's hash, and the caller checks that all
//! transactions of the header are among them. Logs are numbered through the block in the order of
//! its transactions, as the JSON-RPC numbers them.

use serde::Deserialize;

use crate::chains::blocks::{AddressOf20, Data, Hash, Header, Log, LogContent, Quantity, Receipt};
use crate::kernel::hex;

pub(super) const PATH: &str = "/wallet/gettransactioninfobyblocknum";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TransactionInfo {
    id: Hash,
    #[serde(default)]
    block_number: i64,
    /// `FAILED`, or absent.
    result: Option<String>,
    #[serde(default)]
    receipt: ResourceReceipt,
    #[serde(default)]
    log: Vec<InfoLog>,
}

#[derive(Default, Deserialize)]
struct ResourceReceipt {
    /// The result of the contract, such as `SUCCESS` or `OUT_OF_ENERGY`; absent if none ran.
    result: Option<String>,
}

#[derive(Deserialize)]
struct InfoLog {
    address: AddressOf20,
    #[serde(default)]
    topics: Vec<Hash>,
    #[serde(default)]
    data: String,
}

/// The receipts of a block; `None` if the answer is not of this block or cannot be read.
pub(super) fn receipts(body: &[u8], block: &Header) -> Option<Vec<Receipt>> {
    let infos: Vec<TransactionInfo> = serde_json::from_slice(body).ok()?;
    let mut log_index = 0;
    let mut receipts = Vec::with_capacity(infos.len());
    for info in infos {
        if info.block_number != block.number.0 {
            return None;
        }
        let is_failed = info.result.as_deref() == Some("FAILED")
            || info.receipt.result.as_deref().is_some_and(|result| result != "SUCCESS");
        let mut logs = Vec::with_capacity(info.log.len());
        for log in info.log {
            logs.push(Log {
                contract: log.address.0,
                content: LogContent::Evm {
                    topics: log.topics,
                    data: Data(hex::decode(&log.data)?),
                },
                block_number: block.number,
                block_hash: block.hash,
                transaction_hash: info.id,
                log_index: Quantity(log_index),
                removed: false,
            });
            log_index += 1;
        }
        receipts.push(Receipt {
            transaction_hash: info.id,
            block_hash: block.hash,
            block_number: block.number,
            status: Quantity(i64::from(!is_failed)),
            logs,
        });
    }
    Some(receipts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chains::blocks::samples::header;

    #[test]
    fn a_block_reads_with_its_logs_numbered_through() {
        let id = |digit: char| digit.to_string().repeat(64);
        let log = serde_json::json!({
            "address": "a614f803b6fd780986a42c78ec9c7f77e6ded13c",
            "topics": [
                "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
                format!("{:0>64}", "11".repeat(20)),
                format!("{:0>64}", "22".repeat(20)),
            ],
            "data": format!("{:064x}", 1_000_000),
        });
        let body = serde_json::json!([
            {"id": id('1'), "fee": 345_000, "blockNumber": 12, "blockTimeStamp": 36_000,
             "contractResult": ["01"], "receipt": {"energy_usage": 1, "result": "SUCCESS"},
             "log": [log]},
            {"id": id('2'), "blockNumber": 12, "contractResult": [""], "receipt": {"net_fee": 1}},
            {"id": id('3'), "blockNumber": 12, "result": "FAILED",
             "receipt": {"result": "OUT_OF_ENERGY"}},
            {"id": id('4'), "blockNumber": 12, "receipt": {"result": "SUCCESS"},
             "log": [{"address": log["address"]}]},
        ]);
        let body = body.to_string();
        let body = body.as_bytes();
        let receipts = receipts(body, &header(12)).unwrap();
        let statuses: Vec<bool> = receipts.iter().map(Receipt::has_succeeded).collect();
        assert_eq!(statuses, [true, true, false, true]);
        assert_eq!(receipts[0].logs[0].movement().map(|transfer| transfer.value), Some(1_000_000));
        assert_eq!(receipts[3].logs[0].log_index, Quantity(1));
        assert!(receipts.iter().all(|receipt| receipt.block_hash == header(12).hash));
    }

    #[test]
    fn an_answer_that_is_not_of_the_block_is_not_read() {
        for body in ["{}", "[{\"id\":\"01\"}]", "{\"Error\":\"x\"}", ""] {
            assert_eq!(receipts(body.as_bytes(), &header(12)), None, "{body}");
        }
        assert_eq!(receipts(b"[]", &header(12)), Some(Vec::new()), "an empty block");
    }
}
