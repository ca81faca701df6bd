//! Listed tokens of one length as a tree of their bytes. It finds those that are alike to a
//! searched token, without looking at all of them.
//!
//! The comparison of two tokens goes through the listed one byte by byte, so tokens that begin
//! alike share the beginning of the comparison. A branch is abandoned as soon as its tokens cannot
//! have enough bytes in common with the searched one to reach the similarity that is asked for.

use super::similarity::{
    Matched, PATTERN_BYTES_MAX, PREFIX_MAX, PartialMatch, Pattern, similarity_bound,
};

/// One byte of the tokens that begin alike.
#[derive(Clone, Copy)]
struct TrieNode {
    byte: u8,
    /// Its place in the tokens, from 0.
    place: u8,
    /// The first node after this branch: a search that abandons the branch goes on there. In the
    /// node of a last byte, this is the token's number instead.
    next: u32,
}

/// Distinct tokens of one length.
pub struct TokenTrie {
    bytes: usize,
    /// In depth-first order, the tokens sorted.
    nodes: Vec<TrieNode>,
}

impl TokenTrie {
    /// `tokens` are distinct, of one length from 1 to `PATTERN_BYTES_MAX`, and come with their
    /// numbers.
    pub fn new(mut tokens: Vec<(&[u8], u32)>) -> TokenTrie {
        tokens.sort_unstable();
        let bytes = tokens.first().map_or(0, |(token, _)| token.len());
        let mut nodes: Vec<TrieNode> = Vec::new();
        // The nodes of the previous token, without that of its last byte.
        let mut path: Vec<usize> = Vec::with_capacity(bytes);
        let mut before: &[u8] = &[];
        for (token, number) in tokens {
            let same = token.iter().zip(before).take_while(|(left, right)| left == right).count();
            let end = nodes.len() as u32;
            for ended in path.drain(same.min(path.len())..) {
                if let Some(node) = nodes.get_mut(ended) {
                    node.next = end;
                }
            }
            for (place, byte) in token.iter().enumerate().skip(same) {
                if place + 1 < bytes {
                    path.push(nodes.len());
                }
                nodes.push(TrieNode { byte: *byte, place: place as u8, next: number });
            }
            before = token;
        }
        let end = nodes.len() as u32;
        for ended in path {
            if let Some(node) = nodes.get_mut(ended) {
                node.next = end;
            }
        }
        TokenTrie { bytes, nodes }
    }

    /// Calls `found` with the similarity and the number of every token that reaches `least`.
    pub fn search(&self, pattern: &Pattern<'_>, least: f64, mut found: impl FnMut(f64, u32)) {
        let searched_bytes = pattern.bytes();
        // How many bytes in common a token needs, by the length of the common beginning.
        let matches_min: [usize; PREFIX_MAX + 1] = std::array::from_fn(|prefix| {
            let reaches = |common: &usize| {
                similarity_bound(searched_bytes, self.bytes, *common, prefix) >= least
            };
            (1..=searched_bytes.min(self.bytes)).find(reaches).unwrap_or(usize::MAX)
        });
        if matches_min.iter().all(|matches| *matches == usize::MAX) {
            return;
        }
        if !pattern.takes(self.bytes) {
            return self.compare_all(pattern, least, found);
        }
        let mut matched: Matched = [0; PATTERN_BYTES_MAX];
        // The state of the comparison before each place.
        let mut stack = [PartialMatch::BEGIN; PATTERN_BYTES_MAX + 1];
        let mut at = 0;
        while let Some(node) = self.nodes.get(at) {
            let place = usize::from(node.place);
            let before = stack.get(place).copied().unwrap_or(PartialMatch::BEGIN);
            let progress = pattern.step(before, self.bytes, place, node.byte, &mut matched);
            let after = place + 1;
            // The common beginning may still grow where it reaches up to here.
            let prefix_max = if progress.prefix == after { PREFIX_MAX } else { progress.prefix };
            let is_hopeless = progress.matches + (self.bytes - after)
                < matches_min.get(prefix_max).copied().unwrap_or(0);
            at = if after == self.bytes {
                if !is_hopeless {
                    let score = pattern.end(progress, self.bytes, &matched);
                    if score >= least {
                        found(score, node.next);
                    }
                }
                at + 1
            } else if is_hopeless {
                node.next as usize
            } else {
                if let Some(slot) = stack.get_mut(after) {
                    *slot = progress;
                }
                at + 1
            };
        }
    }

    /// Like `search`, but compares every token: for a searched token that is too long for `step`.
    fn compare_all(&self, pattern: &Pattern<'_>, least: f64, mut found: impl FnMut(f64, u32)) {
        let mut token = vec![0; self.bytes];
        for node in &self.nodes {
            if let Some(slot) = token.get_mut(usize::from(node.place)) {
                *slot = node.byte;
            }
            if usize::from(node.place) + 1 == self.bytes {
                let score = pattern.similarity(&token);
                if score >= least {
                    found(score, node.next);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::screening::similarity::token_similarity;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]
        #[test]
        fn a_trie_finds_what_comparing_all_finds(
            tokens in prop_oneof![1_usize..12, 50_usize..=64].prop_flat_map(|bytes| {
                prop::collection::btree_set(prop::collection::vec(b'a'..b'f', bytes), 0..60)
            }),
            searched in "[a-f]{1,14}|[a-f]{60,70}", least in 0.1_f64..1.0,
        ) {
            let tokens: BTreeSet<Vec<u8>> = tokens;
            let trie = TokenTrie::new(tokens.iter().enumerate().map(|(number,
                token)| (token.as_slice(), number as u32)).collect());
            let mut found = Vec::new();
            trie.search(&Pattern::new(&searched), least, |score, number| found.push((number,
                score)));
            let all = tokens.iter().enumerate().map(|(number, token)| (number as u32,
                token_similarity(token, searched.as_bytes())));
            prop_assert_eq!(found, all.filter(|(_, score)| *score >= least).collect::<Vec<_>>());
        }
    }
}
