//! The parts of the index in `index.rs`: records, which hold listed names, each token as its
//! number; postings, which say in which records a token is; and sets of records.

/// Listed names in every variation of their tokens, one record after the other. A record is the
/// name's number, the count of its tokens, and their numbers. All are adjacent, because a search
/// reads many records in random order. A record's place is the index of its first number.
#[derive(Default)]
pub(super) struct Records(Vec<u32>);

impl Records {
    /// Every place is less than this.
    pub(super) fn places_end(&self) -> usize {
        self.0.len()
    }
    pub(super) fn add(&mut self, name: u32, tokens: &[u32]) {
        self.0.extend([name, tokens.len() as u32]);
        self.0.extend(tokens);
    }
    /// The name and the tokens of the record at a place.
    pub(super) fn get(&self, place: u32) -> Option<(u32, &[u32])> {
        let (head, rest) = self.0.get(place as usize..)?.split_at_checked(2)?;
        let [name, count] = head else { return None };
        Some((*name, rest.get(..*count as usize)?))
    }
    /// Every record's place, name and tokens.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32, &[u32])> {
        let mut place = 0;
        std::iter::from_fn(move || {
            let (name, tokens) = self.get(place)?;
            let found = (place, name, tokens);
            place += 2 + tokens.len() as u32;
            Some(found)
        })
    }
}

/// A record that holds a token.
#[derive(Clone, Copy)]
pub(super) struct TokenPosting {
    pub(super) place: u32,
    /// The first sounds of all tokens of the record, as bits. They alone rule out most records.
    pub(super) sounds: u32,
}

/// The bit of a first sound; some rare sounds share a bit.
pub(super) fn sound_bit(sound: Option<char>) -> u32 {
    sound.map_or(0, |sound| 1 << (u32::from(sound) % 32))
}

/// A set of small numbers, as bits.
#[derive(Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// Makes room for numbers up to this one.
    pub(super) fn resize(&mut self, number_max: usize) {
        self.0.resize(number_max / 64 + 1, 0);
    }
    /// Adds a number; answers whether it is new. A number without room is not added.
    pub(super) fn add(&mut self, number: u32) -> bool {
        let (Some(word), bit) = (self.0.get_mut(number as usize / 64), 1 << (number % 64)) else {
            return false;
        };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
    pub(super) fn remove(&mut self, number: u32) {
        if let Some(word) = self.0.get_mut(number as usize / 64) {
            *word &= !(1 << (number % 64));
        }
    }
}
