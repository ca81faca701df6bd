//! Checks whether the nodes of a followed chain belong to that chain, know its token, and answer
//! the questions of the follower.

use std::sync::PoisonError;

use futures_util::future::join_all;

use super::followed::FollowedChain;
use super::port::{ChainNode, NodeError};
use super::settings::ChainSettings;

impl FollowedChain {
    /// Checks the nodes that have not passed yet and do not rest. `Ok` says whether any node has
    /// passed by now. `Err` names the mismatch of each node that was found not to fit, even if
    /// others have passed. Only nodes that passed are believed.
    pub async fn check(&self) -> Result<bool, String> {
        let unchecked =
            self.nodes.iter().filter(|node| !node.fits() && node.resting_for().is_none());
        let checks = join_all(
            unchecked.map(|node| async move { (node, self.check_node(node.as_ref()).await) }),
        )
        .await;
        let mut mismatches = Vec::new();
        for (node, checked) in checks {
            match checked {
                Ok(Ok(())) => node.note_fit(true),
                Ok(Err(mismatch)) => {
                    node.note_fit(false);
                    mismatches.push(mismatch);
                }
                Err(fault) => {
                    tracing::warn!(node = node.label(), %fault, "a node could not be checked; it \
                     is tried again")
                }
            }
        }
        if mismatches.is_empty() {
            Ok(self.nodes.iter().any(|node| node.fits()))
        } else {
            Err(mismatches.join("; "))
        }
    }

    /// Asks a node whether it belongs to this chain, and whether the contract is the token and not
    /// deprecated. Then asks it the questions of the follower. Also keeps the decimals of the other
    /// tokens. The inner `Err` names the mismatch; the outer one says why the node could not be
    /// checked.
    async fn check_node(&self, node: &dyn ChainNode) -> Result<Result<(), String>, NodeError> {
        let settings = &self.settings;
        let chain_id = node.chain_id().await?;
        if chain_id != settings.chain_id {
            return Ok(Err(format!(
                "{} belongs to chain {chain_id} and not to chain {}",
                node.label(),
                settings.chain_id
            )));
        }
        let decimals = match node.token_decimals(settings.token_contract.bytes()).await {
            Ok(decimals) => decimals,
            Err(NodeError::Refused(words) | NodeError::MethodMissing(words)) => {
                return Ok(Err(call_refused(node, settings, &words)));
            }
            Err(fault) => return Err(fault),
        };
        if decimals != Some(u128::from(settings.decimals)) {
            let found = decimals.map_or_else(|| "none".to_owned(), |decimals| decimals.to_string());
            return Ok(Err(format!(
                "the contract {} has {found} decimals at {} and not {}: it is not the token",
                settings.token_contract,
                node.label(),
                settings.decimals
            )));
        }
        if node.token_is_deprecated(settings.token_contract.bytes()).await? == Some(true) {
            return Ok(Err(format!(
                "the token contract {} is deprecated: configure its successor",
                settings.token_contract
            )));
        }
        for contract in settings.other_tokens.values().map(|address| *address.bytes()) {
            let decimals = match node.token_decimals(&contract).await {
                Ok(decimals) => decimals.and_then(|decimals| u8::try_from(decimals).ok()),
                Err(NodeError::Refused(_) | NodeError::MethodMissing(_)) => None,
                Err(fault) => return Err(fault),
            };
            let mut known = self.other_decimals.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(decimals) = decimals {
                known.entry(contract).or_insert(decimals);
            } else if !known.contains_key(&contract) {
                tracing::warn!(
                    node = node.label(),
                    token = self.symbol(&contract),
                    "a node does not give the decimals of another token; until one does, failed \
                     deposits of it are shown in its smallest units"
                );
            }
        }
        self.check_questions(node).await
    }

    /// Asks a node the questions of the follower: the header and the logs of its last final block,
    /// and all receipts of that block. The inner `Err` names the question that it does not answer.
    async fn check_questions(&self, node: &dyn ChainNode) -> Result<Result<(), String>, NodeError> {
        let last = node.final_block().await?.number;
        match node.range(&self.contracts(), last, last, None).await {
            Ok(_) => {}
            Err(NodeError::MethodMissing(words)) => {
                return Ok(Err(format!(
                    "{} does not show blocks or logs (eth_getBlockByNumber, eth_getLogs): {words}",
                    node.label()
                )));
            }
            Err(fault) => return Err(fault),
        }
        if let Some(header) = node.header(last).await?
            && !header.transactions.is_empty()
        {
            match node.receipts_in(&header).await {
                Ok(_) | Err(NodeError::TooMuch(_)) => {}
                Err(NodeError::MethodMissing(words)) => {
                    return Ok(Err(format!(
                        "{} does not show receipts (eth_getTransactionReceipt): {words}",
                        node.label()
                    )));
                }
                Err(fault) => return Err(fault),
            }
        }
        let lacks = node.lacks();
        if !lacks.is_empty() {
            tracing::info!(
                node = node.label(),
                lacks = lacks.join(", "),
                "a node lacks methods; its blocks are read with other methods, in more requests"
            );
        }
        Ok(Ok(()))
    }
}

/// The message about a node that refused to call the token's contract.
fn call_refused(node: &dyn ChainNode, settings: &ChainSettings, words: &str) -> String {
    let label = node.label();
    if words.contains("does not support constant") {
        return format!(
            "{label} does not call contracts (eth_call: {words}). On a java-tron of your own set \
             vm.supportConstant = true in its configuration and restart it"
        );
    }
    format!(
        "{label} refused to call decimals() of the contract {} (eth_call: {words}): the contract \
         is not the token, or the node does not call contracts",
        settings.token_contract
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::rpc::scripted_gateway;
    use super::super::settings::{ApiKeys, ChainSources};
    use super::*;
    use crate::kernel::Mode;

    const OTHER: &str = "0x1111111111111111111111111111111111111111";

    /// Answers as a node of the configured chain, but not to calls of `OTHER`, which its gateway
    /// refuses with a status of HTTP.
    fn all_but_the_other_token(body: &str) -> (u16, &'static str, String) {
        let asked: Value = serde_json::from_str(body).unwrap();
        let header = json!({ "number": "0x7", "hash": format!("0x{:064x}", 7),
            "parentHash": format!("0x{:064x}", 6), "timestamp": "0x6ab13c00", "transactions": [] });
        let result = |one: &Value| match one["method"].as_str().unwrap() {
            "eth_chainId" => json!("0x1"),
            "eth_getBlockByNumber" => header.clone(),
            "eth_getLogs" => json!([]),
            "eth_call" if one["params"][0]["data"] == "0x313ce567" => {
                json!(format!("0x{:064x}", 6))
            }
            "eth_call" => json!("0x"),
            other => panic!("{other}"),
        };
        let answer =
            |one: &Value| json!({ "jsonrpc": "2.0", "id": one["id"], "result": result(one) });
        if asked["params"][0]["to"] == OTHER {
            return (400, "", r#"{"message":"bad request"}"#.into());
        }
        let answered = match asked.as_array() {
            Some(several) => several.iter().map(answer).collect(),
            None => answer(&asked),
        };
        (200, "", answered.to_string())
    }

    #[tokio::test]
    async fn a_node_that_does_not_call_another_tokens_contract_fits_all_the_same() {
        let endpoint = scripted_gateway::start(all_but_the_other_token).await;
        let sources: ChainSources = toml::from_str(&format!(
            "name = 'ethereum'\nchain_id = 1\nendpoints = ['{}']\n\
             token_contract = '0xdac17f958d2ee523a2206206994597c13d831ec7'\n\
             account_key = '{}'\n[other_tokens]\nUSDC = '{OTHER}'\n",
            endpoint.label(),
            crate::chains::derivation::AccountXpub::generate_for_test_mode(&[7; 64]),
        ))
        .unwrap();
        let settings = sources.read("live_chain", &ApiKeys::default()).unwrap().unwrap();
        let chain = FollowedChain::new(Mode::Live, settings, &scripted_gateway::client());
        assert_eq!(chain.check().await, Ok(true));
        let other = chain.contracts()[1];
        assert_eq!((chain.symbol(&other), chain.decimals(&other)), (Some("USDC"), 0));
    }
}
