//! Asks the nodes what one transaction did, for the diagnosis of a payment. Nothing is credited
//! here, so a single node is believed.

use std::time::Duration;

use super::address_bytes::AddressBytes;
use super::blocks::{Hash, Log, Receipt, millionths};
use super::port::{ChainNode, NodeError};
use super::rows::TokenContract;
use super::settings::ChainSettings;

/// The most movements of one transaction that are shown; those to the address asked about come
/// first.
pub const MOVEMENTS_COUNT_MAX: usize = 100;
/// The most foreign contracts of one transaction that are asked for their symbols.
pub const FOREIGN_TOKENS_COUNT_MAX: usize = 5;

/// The block of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenBlock {
    pub number: i64,
    /// Unix seconds.
    pub time: i64,
    pub confirmations: i64,
    /// Whether it is in the chain's final view.
    pub is_final: bool,
}

/// Which token moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenToken {
    /// The one that transfers are funded with.
    Ours,
    /// Another contract, with its symbol, if that was asked for and is plain text.
    Other { symbol: Option<String> },
    /// Another contract whose symbol is our token's, or looks like it.
    LookAlike,
}

/// A token movement of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenMovement {
    pub log_index: i64,
    pub token: SeenToken,
    /// `None` on a simulated chain.
    pub contract: Option<AddressBytes>,
    pub to_address: AddressBytes,
    /// In the contract's own smallest unit. `u128::MAX` stands for itself and every larger number.
    pub value: u128,
    /// Millionths of the token; `None` if its decimals were not asked for or are not given, or if
    /// the amount is too large for the book.
    pub units: Option<i64>,
}

/// A transaction that the chain knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenTransaction {
    /// `None` if it is in no block, or if the node does not show its block, perhaps because that
    /// was just replaced.
    pub block: Option<SeenBlock>,
    pub has_succeeded: bool,
    pub movements: Vec<SeenMovement>,
}

/// Asks one node after another that passed its check, until one knows the transaction. `tokens` are
/// the contracts in which the address can be paid. `Ok(None)` means that at least one node answered
/// and none knows it. All nodes together take at most `deadline`.
pub async fn inspect(
    nodes: &[Box<dyn ChainNode>],
    settings: &ChainSettings,
    tokens: &[TokenContract],
    hash: &Hash,
    address: &AddressBytes,
    deadline: Duration,
) -> Result<Option<SeenTransaction>, NodeError> {
    let share = deadline / u32::try_from(nodes.len().max(1)).unwrap_or(1);
    let mut answer = Err(NodeError::Unreachable("there is no node".into()));
    for node in nodes.iter().filter(|node| node.fits()) {
        let asked =
            tokio::time::timeout(share, ask(node.as_ref(), settings, tokens, hash, address)).await;
        match asked.unwrap_or_else(|_| Err(NodeError::Unreachable("no answer in time".into()))) {
            Ok(None) => answer = Ok(None),
            Ok(Some(seen)) => return Ok(Some(seen)),
            Err(fault) => {
                let node = node.label();
                tracing::warn!(node, %fault, "a node could not be asked about a transaction");
                answer = answer.or(Err(fault));
            }
        }
    }
    answer
}

async fn ask(
    node: &dyn ChainNode,
    settings: &ChainSettings,
    tokens: &[TokenContract],
    hash: &Hash,
    address: &AddressBytes,
) -> Result<Option<SeenTransaction>, NodeError> {
    let Some(receipt) = node.receipt(hash).await? else { return Ok(None) };
    let header = node
        .header(receipt.block_number.0)
        .await?
        .filter(|header| header.hash == receipt.block_hash);
    let block = match header {
        None => None,
        Some(header) => {
            let (number, head, last_final) =
                (header.number.0, node.head().await?, node.final_block().await?);
            let confirmations = (head.number.0 - number + 1).max(1);
            Some(SeenBlock {
                number,
                time: header.timestamp.0,
                confirmations,
                is_final: number <= last_final.number,
            })
        }
    };
    let mut movements = movements(&receipt, tokens, address);
    name_foreign(node, settings, address, &mut movements).await?;
    Ok(Some(SeenTransaction { block, has_succeeded: receipt.has_succeeded(), movements }))
}

/// The movements of a receipt, those to the address first, at most [`MOVEMENTS_COUNT_MAX`].
/// `name_foreign` names foreign tokens afterwards.
fn movements(
    receipt: &Receipt,
    tokens: &[TokenContract],
    address: &AddressBytes,
) -> Vec<SeenMovement> {
    let read = |log: &Log| {
        let movement = log.movement()?;
        let ours = tokens.iter().find(|token| token.contract == log.contract);
        Some(SeenMovement {
            log_index: log.log_index.0,
            token: if ours.is_some() { SeenToken::Ours } else { SeenToken::Other { symbol: None } },
            contract: Some(log.contract),
            to_address: movement.to,
            value: movement.value,
            units: ours.and_then(|token| millionths(movement.value, token.decimals)),
        })
    };
    let mut movements: Vec<SeenMovement> = receipt.logs.iter().filter_map(read).collect();
    movements.sort_by_key(|movement| {
        (movement.to_address != *address, movement.token != SeenToken::Ours, movement.log_index)
    });
    movements.truncate(MOVEMENTS_COUNT_MAX);
    movements
}

/// Asks foreign contracts that moved something to the address for their symbols and decimals: at
/// most [`FOREIGN_TOKENS_COUNT_MAX`]. The symbol of a configured token is known.
async fn name_foreign(
    node: &dyn ChainNode,
    settings: &ChainSettings,
    address: &AddressBytes,
    movements: &mut [SeenMovement],
) -> Result<(), NodeError> {
    let mut named: Vec<(AddressBytes, SeenToken, Option<u8>)> = Vec::new();
    for movement in movements
        .iter_mut()
        .filter(|movement| movement.to_address == *address && movement.token != SeenToken::Ours)
    {
        let Some(contract) = movement.contract else { continue };
        if !named.iter().any(|(known, ..)| *known == contract) {
            if named.len() >= FOREIGN_TOKENS_COUNT_MAX {
                continue;
            }
            let configured =
                settings.other_tokens.iter().find(|(_, other)| *other.bytes() == contract);
            let token = match configured {
                Some((symbol, _)) => SeenToken::Other { symbol: Some(symbol.clone()) },
                None => named_token(none_if_refused(node.token_symbol(&contract).await)?.flatten()),
            };
            let decimals = none_if_refused(node.token_decimals(&contract).await)?.flatten();
            named.push((
                contract,
                token,
                decimals.and_then(|decimals| u8::try_from(decimals).ok()),
            ));
        }
        if let Some((_, token, decimals)) = named.iter().find(|(known, ..)| *known == contract) {
            movement.token = token.clone();
            movement.units = decimals.and_then(|decimals| millionths(movement.value, decimals));
        }
    }
    Ok(())
}

/// `None` for a contract that lacks the function or fails in it.
fn none_if_refused<T>(answer: Result<T, NodeError>) -> Result<Option<T>, NodeError> {
    match answer {
        Ok(told) => Ok(Some(told)),
        Err(NodeError::Refused(_) | NodeError::MethodMissing(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// What a foreign token with this symbol is.
fn named_token(symbol: Option<String>) -> SeenToken {
    const OURS: &str = "USDT";
    match symbol {
        Some(symbol) if skeleton(&symbol) == OURS => SeenToken::LookAlike,
        // Only a plain symbol is repeated, because others may be made to deceive.
        symbol => SeenToken::Other {
            symbol: symbol.filter(|symbol| symbol.bytes().all(|byte| byte.is_ascii_alphanumeric())),
        },
    }
}

/// A symbol in capital letters and digits: look-alikes of the letters in `USDT` (such as the digit
/// `5`) become these letters, and everything else that is no ASCII letter or digit is removed.
fn skeleton(symbol: &str) -> String {
    // Full-width letters, digits and signs have the code points of ASCII plus 0xFEE0.
    let narrow = |letter: char| match letter {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(letter) - 0xFEE0).unwrap_or(letter),
        other => other,
    };
    let plain = |letter: char| match narrow(letter) {
        'Т' | 'т' | 'Τ' | 'τ' | '₮' | 'Ŧ' | 'ŧ' | 'Ť' | 'ť' | 'Ţ' | 'ţ' | 'ᴛ' => 'T',
        'Ѕ' | 'ѕ' | 'Տ' | '$' | '5' | 'Ś' | 'ś' | 'Š' | 'š' | 'Ş' | 'ş' | 'ꜱ' => 'S',
        'Ս' | 'ս' | 'υ' | 'Ц' | 'Ù' | 'Ú' | 'Û' | 'Ü' | 'ù' | 'ú' | 'û' | 'ü' | 'Ū' | 'ū' | 'ᴜ' => {
            'U'
        }
        'Đ' | 'đ' | 'Ð' | 'Ď' | 'ď' | 'Ꭰ' | 'ԁ' | 'ᴅ' => 'D',
        other => other,
    };
    symbol
        .chars()
        .map(plain)
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_uppercase())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_told_apart() {
        let named = |symbol: &str| named_token(Some(symbol.to_owned()));
        for look_alike in [
            "USDT",
            "usdt",
            "U S D T",
            "USDT ",
            "USD\u{200B}T",
            "UЅDТ",
            "USD₮",
            "ＵＳＤＴ",
            "Ｕ５ＤＴ",
            "Ｕ＄ＤＴ",
            "U5DT",
            "U$DT",
            "USDT.",
        ] {
            assert_eq!(named(look_alike), SeenToken::LookAlike, "{look_alike:?}");
        }
        for other in ["USDC", "USDT0", "USDTE", "TRX", "JST", "DAI"] {
            assert_eq!(named(other), SeenToken::Other { symbol: Some(other.into()) }, "{other}");
        }
        for hidden in ["visit evil.example", "a\nb", "Ω"] {
            assert_eq!(named(hidden), SeenToken::Other { symbol: None }, "{hidden:?}");
        }
    }
}
