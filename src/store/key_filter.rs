//! A blocked Bloom filter of idempotency keys. Each closed segment of the keys
//! (`key_segments.rs`) has one, so that the look-up of a new key reads hardly any closed segment.
//! `chains/watched.rs` uses it for addresses.

use crate::kernel::StoreError;

/// A key's bits are all in one block, so that a look-up touches one cache line.
const BLOCK_WORDS: usize = 8;
const BLOCK_BYTES: usize = BLOCK_WORDS * 8;
/// Sixteen bits a key. A new key is looked up in the filters of all closed segments, so their rates
/// of false positives add up. Together these segments have about a day's keys. At 0.1 % each, 100
/// segments (1.6 million keys) cost a tenth of a read.
const KEYS_PER_BLOCK: usize = BLOCK_BYTES * 8 / 16;
/// How many bits a key sets. Nine bits of the key's hash choose each of them.
const KEY_BITS: u32 = 7;
/// The first byte of a stored filter.
const FORMAT: u8 = 1;

#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct FilterBlock([u64; BLOCK_WORDS]);

/// Answers "perhaps" for every key it was made of, and "no" for nearly all other keys.
pub struct KeyFilter {
    blocks: Box<[FilterBlock]>,
}

impl KeyFilter {
    /// The filter of exactly these keys. Keys are hashes, so they are not hashed again.
    pub fn of(keys: &[[u8; 16]]) -> KeyFilter {
        let mut filter = KeyFilter::with_room(keys.len());
        keys.iter().for_each(|key| filter.insert(key));
        filter
    }

    /// An empty filter that has few false positives until it holds this many keys.
    pub fn with_room(keys_count: usize) -> KeyFilter {
        KeyFilter {
            blocks: vec![FilterBlock::default(); keys_count.div_ceil(KEYS_PER_BLOCK).max(1)]
                .into_boxed_slice(),
        }
    }

    pub fn insert(&mut self, key: &[u8; 16]) {
        let (index, bits) = self.place(key);
        if let Some(block) = self.blocks.get_mut(index) {
            bits.for_each(|(word, bit)| block.0[word] |= bit);
        }
    }

    /// Whether the key may be among those the filter was made of; `false` is certain.
    pub fn may_hold(&self, key: &[u8; 16]) -> bool {
        let (index, mut bits) = self.place(key);
        self.blocks.get(index).is_none_or(|block| bits.all(|(word, bit)| block.0[word] & bit != 0))
    }

    /// The index of a key's block, and the bits that the key sets there, each as word and mask.
    fn place(&self, key: &[u8; 16]) -> (usize, impl Iterator<Item = (usize, u64)> + use<>) {
        let halves = u128::from_be_bytes(*key);
        let (high, low) = ((halves >> 64) as u64, halves as u64);
        let index = ((u128::from(high) * self.blocks.len() as u128) >> 64) as usize;
        let position = move |number: u32| (low >> (9 * number)) as usize;
        (
            index,
            (0..KEY_BITS).map(move |number| {
                (position(number) >> 6 & (BLOCK_WORDS - 1), 1 << (position(number) & 63))
            }),
        )
    }

    /// The bytes to store, and their checksum, which also covers the segment's number. The bytes
    /// are `FORMAT`, then the blocks.
    pub fn to_bytes(&self, segment: i64) -> (Vec<u8>, i64) {
        let mut bytes = Vec::with_capacity(1 + self.blocks.len() * BLOCK_BYTES);
        bytes.push(FORMAT);
        bytes.extend(self.blocks.iter().flat_map(|block| block.0).flat_map(u64::to_le_bytes));
        let checksum = checksum(segment, &bytes);
        (bytes, checksum)
    }

    /// Reads what [`KeyFilter::to_bytes`] wrote. A damaged filter could deny a key that is there,
    /// so it is refused.
    pub fn from_bytes(
        segment: i64,
        bytes: &[u8],
        stored_checksum: i64,
    ) -> Result<KeyFilter, StoreError> {
        let damaged = || {
            StoreError::Broken(format!(
                "the filter of segment {segment} of the idempotency keys cannot be read"
            ))
        };
        let (format, words) = bytes.split_first().ok_or_else(damaged)?;
        if *format != FORMAT
            || words.is_empty()
            || words.len() % BLOCK_BYTES != 0
            || checksum(segment, bytes) != stored_checksum
        {
            return Err(damaged());
        }
        let mut words = words.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let blocks = (0..words.len() / BLOCK_WORDS)
            .map(|_| FilterBlock(std::array::from_fn(|_| words.next().unwrap_or_default())));
        Ok(KeyFilter { blocks: blocks.collect() })
    }
}

fn checksum(segment: i64, content: &[u8]) -> i64 {
    let mut hasher = crc32fast::Hasher::new_with_initial(crc32fast::hash(&segment.to_be_bytes()));
    hasher.update(content);
    i64::from(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn keys(count: usize, seed: u64) -> Vec<[u8; 16]> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut key = || {
            let mut bytes = [0; 16];
            random.fill_bytes(&mut bytes);
            bytes
        };
        (0..count).map(|_| key()).collect()
    }

    #[test]
    fn no_key_is_forgotten_and_few_others_are_perhaps_held() {
        for count in [0, 1, 33, 1_000, 16_384] {
            let inside = keys(count, 1);
            let made = KeyFilter::of(&inside);
            let (stored, checksum) = made.to_bytes(9);
            let filter = KeyFilter::from_bytes(9, &stored, checksum).unwrap();
            assert!(
                inside.iter().all(|key| made.may_hold(key) && filter.may_hold(key)),
                "{count} keys"
            );
            assert!(stored.len() <= 1 + BLOCK_BYTES + count * 2, "two bytes a key");
            let false_count = keys(50_000, 2).iter().filter(|key| filter.may_hold(key)).count();
            // 0.1 % is expected of full blocks; some blocks may be a little fuller than others.
            assert!(false_count < 100, "{false_count} of 50000 perhaps held, with {count} keys");
        }
    }

    #[test]
    fn a_damaged_or_misplaced_filter_is_refused() {
        let (stored, checksum) = KeyFilter::of(&keys(100, 3)).to_bytes(5);
        assert!(KeyFilter::from_bytes(5, &stored, checksum).is_ok());
        assert!(KeyFilter::from_bytes(6, &stored, checksum).is_err(), "another segment's");
        assert!(KeyFilter::from_bytes(5, &stored, checksum ^ 1).is_err(), "another checksum");
        for length in [0, 1, 2, 65, stored.len() - 1] {
            assert!(
                KeyFilter::from_bytes(5, &stored[..length], checksum).is_err(),
                "{length} bytes"
            );
        }
        for bit in 0..stored.len() * 8 {
            let mut damaged = stored.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(KeyFilter::from_bytes(5, &damaged, checksum).is_err(), "bit {bit}");
        }
    }
}
