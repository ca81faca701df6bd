//! The pages on which known chains show their transactions.

/// A block explorer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Explorer {
    url: &'static str,
    /// The part of a URL before a transaction's hash.
    transaction_path: &'static str,
    /// Whether hashes begin with `0x`.
    has_prefix: bool,
}

/// By chain id. TRON writes hashes without `0x`.
const EXPLORERS: [(u64, Explorer); 9] = [
    (728_126_428, tron("https://tronscan.org/#")),
    (3_448_148_188, tron("https://nile.tronscan.org/#")),
    (2_494_104_990, tron("https://shasta.tronscan.org/#")),
    (1, evm("https://etherscan.io")),
    (56, evm("https://bscscan.com")),
    (137, evm("https://polygonscan.com")),
    (8_453, evm("https://basescan.org")),
    (42_161, evm("https://arbiscan.io")),
    (11_155_111, evm("https://sepolia.etherscan.io")),
];

const fn tron(url: &'static str) -> Explorer {
    Explorer { url, transaction_path: "transaction", has_prefix: false }
}

const fn evm(url: &'static str) -> Explorer {
    Explorer { url, transaction_path: "tx", has_prefix: true }
}

impl Explorer {
    pub fn of_chain(chain_id: u64) -> Option<Explorer> {
        EXPLORERS.iter().find(|(known, _)| *known == chain_id).map(|(_, explorer)| *explorer)
    }
    /// The page of a transaction.
    pub fn of_transaction(self, hash: &str) -> String {
        let digits = hash.trim_start_matches("0x");
        let prefix = if self.has_prefix { "0x" } else { "" };
        format!("{}/{}/{prefix}{digits}", self.url, self.transaction_path)
    }
    /// The page of an address, which is given as the chain writes it.
    pub fn of_address(self, address: &str) -> String {
        format!("{}/address/{address}", self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_has_a_page_on_a_known_chain() {
        let tron = Explorer::of_chain(728_126_428).unwrap();
        assert_eq!(tron.of_transaction("ab12"), "https://tronscan.org/#/transaction/ab12");
        assert_eq!(tron.of_address("TMVQ"), "https://tronscan.org/#/address/TMVQ");
        let base = Explorer::of_chain(8_453).unwrap();
        assert_eq!(base.of_address("0x5aAe"), "https://basescan.org/address/0x5aAe");
        assert_eq!(base.of_transaction("0xab12"), "https://basescan.org/tx/0xab12");
        assert_eq!(Explorer::of_chain(31_337), None);
    }
}
