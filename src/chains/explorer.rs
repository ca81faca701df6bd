//! The pages on which known chains show their transactions.

/// A block explorer: the address of a transaction's page is this with the hash behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Explorer {
    before_hash: &'static str,
    has_prefix: bool,
}

/// By chain id. TRON writes hashes without `0x`.
const EXPLORERS: [(u64, Explorer); 8] = [
    (728_126_428, tron("https://tronscan.org/#/transaction/")),
    (3_448_148_188, tron("https://nile.tronscan.org/#/transaction/")),
    (2_494_104_990, tron("https://shasta.tronscan.org/#/transaction/")),
    (1, evm("https://etherscan.io/tx/")),
    (137, evm("https://polygonscan.com/tx/")),
    (8_453, evm("https://basescan.org/tx/")),
    (42_161, evm("https://arbiscan.io/tx/")),
    (11_155_111, evm("https://sepolia.etherscan.io/tx/")),
];

const fn tron(before_hash: &'static str) -> Explorer {
    Explorer { before_hash, has_prefix: false }
}

const fn evm(before_hash: &'static str) -> Explorer {
    Explorer { before_hash, has_prefix: true }
}

impl Explorer {
    pub fn of_chain(chain_id: u64) -> Option<Explorer> {
        EXPLORERS.iter().find(|(known, _)| *known == chain_id).map(|(_, explorer)| *explorer)
    }
    pub fn of_transaction(self, hash: &str) -> String {
        let digits = hash.trim_start_matches("0x");
        let prefix = if self.has_prefix { "0x" } else { "" };
        format!("{}{prefix}{digits}", self.before_hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_has_a_page_on_a_known_chain() {
        let tron = Explorer::of_chain(728_126_428).unwrap();
        assert_eq!(tron.of_transaction("ab12"), "https://tronscan.org/#/transaction/ab12");
        let base = Explorer::of_chain(8_453).unwrap();
        assert_eq!(base.of_transaction("0xab12"), "https://basescan.org/tx/0xab12");
        assert_eq!(Explorer::of_chain(31_337), None);
    }
}
