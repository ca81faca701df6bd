//! How alike two names are, from 0 to 1: Jaro-Winkler over the best pairs of tokens, with the
//! constants of moov-io/watchman.
//!
//! Lengths are in bytes, as in watchman. Two tokens are compared only if their first letters sound
//! alike.

use super::text::TOKEN_BYTES_MAX;

/// Above this Jaro similarity a common prefix counts.
const BOOST_THRESHOLD: f64 = 0.7;
/// Bytes of a common prefix that count.
pub const PREFIX_MAX: usize = 4;
const PREFIX_WEIGHT: f64 = 0.1;
/// A pair of tokens loses part of its similarity, by `LENGTH_WEIGHT`, if the shorter one has less
/// than this share of the longer one's length.
const LENGTH_RATIO_MIN: f64 = 0.9;
const LENGTH_WEIGHT: f64 = 0.3;
/// How much the unmatched part of the listed name costs.
const UNMATCHED_WEIGHT: f64 = 0.15;
/// Tokens of at most this many bytes are also tried joined to a neighbour.
const SHORT_BYTES_MAX: usize = 3;

/// `1 - (1 - metric) * weight`: how much of a score is kept.
fn kept(metric: f64, weight: f64) -> f64 {
    1.0 - (1.0 - metric) * weight
}

/// The class of a token's first letter: letters of one class sound alike at the beginning of a
/// name.
pub fn first_sound(token: &str) -> Option<char> {
    let first = token.chars().next()?;
    let upper = first.to_uppercase().next().unwrap_or(first);
    Some(match upper {
        'A' | 'E' | 'I' | 'O' | 'U' | 'Y' => 'A',
        'B' | 'F' | 'P' | 'V' => 'B',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => 'C',
        'D' | 'T' => 'D',
        'M' | 'N' => 'M',
        'H' | 'W' => 'H',
        other => other,
    })
}

/// Jaro similarity of two byte strings of at most `TOKEN_BYTES_MAX` bytes; longer ones are compared
/// by their beginnings.
fn jaro(a: &[u8], b: &[u8]) -> f64 {
    let a = a.get(..TOKEN_BYTES_MAX).unwrap_or(a);
    let b = b.get(..TOKEN_BYTES_MAX).unwrap_or(b);
    if a.is_empty() || b.is_empty() {
        return if a.len() == b.len() { 1.0 } else { 0.0 };
    }
    let range = (a.len().max(b.len()) / 2).saturating_sub(1);
    // Which bytes of each are matched, one bit a byte.
    let (mut matched_a, mut matched_b) = (0_u128, 0_u128);
    for (i, byte) in a.iter().enumerate() {
        let from = i.saturating_sub(range);
        let to = b.len().min(i + range + 1);
        for (j, other) in b.iter().enumerate().take(to).skip(from) {
            if byte == other && matched_b & (1 << j) == 0 {
                matched_a |= 1 << i;
                matched_b |= 1 << j;
                break;
            }
        }
    }
    let matches = matched_a.count_ones();
    if matches == 0 {
        return 0.0;
    }
    let of_a = a.iter().enumerate().filter(|(i, _)| matched_a & (1 << i) != 0);
    let of_b = b.iter().enumerate().filter(|(j, _)| matched_b & (1 << j) != 0);
    let out_of_order = of_a.zip(of_b).filter(|((_, left), (_, right))| left != right).count();
    let matches = f64::from(matches);
    let transpositions = (out_of_order / 2) as f64;
    (matches / a.len() as f64 + matches / b.len() as f64 + (matches - transpositions) / matches)
        / 3.0
}

fn winkler(jaro: f64, prefix: usize) -> f64 {
    if jaro <= BOOST_THRESHOLD { jaro } else { jaro + PREFIX_WEIGHT * prefix as f64 * (1.0 - jaro) }
}

fn length_kept(a: usize, b: usize) -> f64 {
    let ratio = a.min(b) as f64 / a.max(b) as f64;
    if ratio < LENGTH_RATIO_MIN { kept(ratio, LENGTH_WEIGHT) } else { 1.0 }
}

/// Similarity of two tokens: Jaro-Winkler, less where their lengths differ much.
pub fn token_similarity(a: &[u8], b: &[u8]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    let prefix = a.iter().zip(b).take(PREFIX_MAX).take_while(|(left, right)| left == right).count();
    winkler(jaro(a, b), prefix) * length_kept(a.len(), b.len())
}

/// A searched token, prepared for many comparisons: the places of each byte in it, as bits.
pub struct Pattern<'a> {
    token: &'a [u8],
    places: Box<[u64; 256]>,
}

/// Longer tokens are compared without a table of places.
pub const PATTERN_BYTES_MAX: usize = 64;

/// The state of a comparison with a listed token. It depends only on the bytes compared so far and
/// on the token's length, so tokens of one length with the same beginning share it.
#[derive(Clone, Copy)]
pub struct PartialMatch {
    /// The searched token's places that have no partner yet.
    free: u64,
    /// Bytes that found a partner.
    pub matches: usize,
    /// Bytes that both tokens begin with, at most `PREFIX_MAX`.
    pub prefix: usize,
}

impl PartialMatch {
    pub const BEGIN: PartialMatch = PartialMatch { free: u64::MAX, matches: 0, prefix: 0 };
}

/// The listed bytes that found a partner, in their order.
pub type Matched = [u8; PATTERN_BYTES_MAX];

impl<'a> Pattern<'a> {
    pub fn new(token: &'a str) -> Pattern<'a> {
        let mut places = Box::new([0_u64; 256]);
        for (place, byte) in token.bytes().take(PATTERN_BYTES_MAX).enumerate() {
            if let Some(bits) = places.get_mut(usize::from(byte)) {
                *bits |= 1 << place;
            }
        }
        Pattern { token: token.as_bytes(), places }
    }

    /// Length of the searched token.
    pub const fn bytes(&self) -> usize {
        self.token.len()
    }

    /// Whether `step` and `end` compare with listed tokens of this length.
    pub const fn takes(&self, listed_bytes: usize) -> bool {
        0 < listed_bytes
            && listed_bytes <= PATTERN_BYTES_MAX
            && !self.token.is_empty()
            && self.token.len() <= PATTERN_BYTES_MAX
    }

    /// Goes on with the byte at `place` of a listed token of `listed_bytes` bytes. A byte that
    /// finds a partner is added to `matched`.
    pub fn step(
        &self,
        mut progress: PartialMatch,
        listed_bytes: usize,
        place: usize,
        byte: u8,
        matched: &mut Matched,
    ) -> PartialMatch {
        let range = (listed_bytes.max(self.token.len()) / 2).saturating_sub(1);
        let from = place.saturating_sub(range);
        if from < self.token.len() {
            // Places from `from` to `place + range`.
            let window = (u64::MAX << from)
                & (u64::MAX >> (PATTERN_BYTES_MAX - 1).saturating_sub(place + range));
            let found =
                self.places.get(usize::from(byte)).copied().unwrap_or(0) & window & progress.free;
            if found != 0 {
                progress.free &= !(found & found.wrapping_neg());
                if let Some(slot) = matched.get_mut(progress.matches) {
                    *slot = byte;
                }
                progress.matches += 1;
            }
        }
        if progress.prefix == place && place < PREFIX_MAX && self.token.get(place) == Some(&byte) {
            progress.prefix += 1;
        }
        progress
    }

    /// The similarity, after the last byte.
    pub fn end(&self, progress: PartialMatch, listed_bytes: usize, matched: &Matched) -> f64 {
        if progress.matches == 0 {
            return 0.0;
        }
        let (mut places, mut out_of_order) = (!progress.free, 0_usize);
        for byte in matched.iter().take(progress.matches) {
            let place = places.trailing_zeros() as usize;
            out_of_order += usize::from(self.token.get(place) != Some(byte));
            places &= places.wrapping_sub(1);
        }
        let matches = progress.matches as f64;
        let transpositions = (out_of_order / 2) as f64;
        let jaro = (matches / listed_bytes as f64
            + matches / self.token.len() as f64
            + (matches - transpositions) / matches)
            / 3.0;
        winkler(jaro, progress.prefix) * length_kept(listed_bytes, self.token.len())
    }

    /// The same as `token_similarity(listed, token)`; several times faster if both have at most
    /// `PATTERN_BYTES_MAX` bytes.
    pub fn similarity(&self, listed: &[u8]) -> f64 {
        if !self.takes(listed.len()) {
            return token_similarity(listed, self.token);
        }
        let (mut progress, mut matched) = (PartialMatch::BEGIN, [0; PATTERN_BYTES_MAX]);
        for (place, byte) in listed.iter().enumerate() {
            progress = self.step(progress, listed.len(), place, *byte, &mut matched);
        }
        self.end(progress, listed.len(), &matched)
    }
}

/// An upper bound of `token_similarity` for tokens of these lengths that have at most `common`
/// bytes in common, and at most `prefix` at their beginning.
pub fn similarity_bound(a: usize, b: usize, common: usize, prefix: usize) -> f64 {
    if a == 0 || b == 0 || common == 0 {
        return 0.0;
    }
    let (counted_a, counted_b) = (a.min(TOKEN_BYTES_MAX), b.min(TOKEN_BYTES_MAX));
    let common = common.min(counted_a).min(counted_b) as f64;
    let jaro = (common / counted_a as f64 + common / counted_b as f64 + 1.0) / 3.0;
    winkler(jaro, prefix.min(PREFIX_MAX).min(a).min(b)) * length_kept(a, b)
}

/// Similarity of a name that is looked for and a listed name, as tokens. Each token finds its best
/// free partner. Tokens weigh by their length. The part of the listed name that finds no partner
/// costs a little.
pub fn paired_similarity<S: AsRef<str>, I: AsRef<str>>(searched: &[S], listed: &[I]) -> f64 {
    let mut pairs: Vec<(f64, usize, usize)> = Vec::with_capacity(searched.len() + listed.len());
    for (i, token) in searched.iter().enumerate() {
        let sound = first_sound(token.as_ref());
        for (j, other) in listed.iter().enumerate() {
            if sound.is_some() && sound == first_sound(other.as_ref()) {
                pairs.push((
                    token_similarity(other.as_ref().as_bytes(), token.as_ref().as_bytes()),
                    i,
                    j,
                ));
            }
        }
    }
    pairs.sort_by(|left, right| right.0.total_cmp(&left.0));
    let mut searched_free = vec![true; searched.len()];
    let mut listed_free = vec![true; listed.len()];
    let (mut weighted, mut matched_bytes) = (0.0, 0_usize);
    for (score, i, j) in pairs {
        if let (Some(searched_free @ true), Some(listed_free @ true)) =
            (searched_free.get_mut(i), listed_free.get_mut(j))
        {
            let listed_bytes = listed.get(j).map_or(0, |token| token.as_ref().len());
            weighted += score
                * (searched.get(i).map_or(0, |token| token.as_ref().len()) + listed_bytes) as f64;
            matched_bytes += listed_bytes;
            (*searched_free, *listed_free) = (false, false);
        }
    }
    let searched_bytes: usize = searched.iter().map(|token| token.as_ref().len()).sum();
    let listed_bytes: usize = listed.iter().map(|token| token.as_ref().len()).sum();
    if searched_bytes + matched_bytes == 0 || listed_bytes == 0 {
        return 0.0;
    }
    weighted / (searched_bytes + matched_bytes) as f64
        * kept(matched_bytes as f64 / listed_bytes as f64, UNMATCHED_WEIGHT)
}

/// The tokens as they are, and with short ones joined to the next or to the one before ("al qaeda",
/// "alqaeda").
pub fn variations(tokens: &[String]) -> Vec<Vec<String>> {
    let mut found = vec![tokens.to_vec()];
    let mut forward: Vec<String> = Vec::with_capacity(tokens.len());
    let mut rest = tokens.iter().peekable();
    while let Some(token) = rest.next() {
        match rest.peek() {
            Some(next) if token.len() <= SHORT_BYTES_MAX => {
                forward.push(format!("{token}{next}"));
                rest.next();
            }
            _ => forward.push(token.clone()),
        }
    }
    if forward.len() == tokens.len() {
        return found;
    }
    let mut backward: Vec<String> = Vec::with_capacity(tokens.len());
    for (i, token) in tokens.iter().enumerate() {
        match backward.last_mut() {
            Some(last) if i > 0 && token.len() <= SHORT_BYTES_MAX => last.push_str(token),
            _ => backward.push(token.clone()),
        }
    }
    let is_new = backward.len() < tokens.len() && backward != forward;
    found.push(forward);
    if is_new {
        found.push(backward);
    }
    found
}

/// Similarity of two names as the index scores it: short words are also joined to their neighbours.
#[cfg(test)]
fn name_similarity(searched: &[String], listed: &[String]) -> f64 {
    let listed = variations(listed);
    variations(searched)
        .iter()
        .flat_map(|left| listed.iter().map(move |right| paired_similarity(left, right)))
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::screening::text::normalise;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// watchman's published pairs (listed, searched, score). A `~` before a text asks for
    /// normalisation first.
    const PUBLISHED: &[(&str, &str, f64)] = &[
        ("wei, zhao", "wei, Zhao", 0.917),
        ("WEI, Zhao", "WEI, Zhao", 1.0),
        ("wei zhao", "~WEI, Zhao", 1.0),
        ("jane doe", "jan lahore", 0.439),
        ("jan lahore", "jane doe", 0.549),
        ("john doe", "paul john", 0.624),
        ("john doe", "john othername", 0.440),
        ("tai me", "taim", 0.819),
        ("elvin", "elvis", 0.920),
        ("jane doe", "jane doe2", 0.940),
        ("kalamity linden", "kala limited", 0.687),
        ("kala limited", "kalamity linden", 0.687),
        ("nicolas", "nicolas", 1.0),
        ("nicolas moros maduro", "nicolas maduro", 0.958),
        ("nicolas maduro", "nicolas moros maduro", 0.839),
        ("ian", "ian mckinley", 0.429),
        ("iap", "ian mckinley", 0.352),
        ("ian mckinley", "ian", 0.891),
        ("ian mckinley", "iap", 0.733),
        ("ian mckinley", "tian xiang 7", 0.000),
        ("bindaree food group pty", "~independent insurance group ltd", 0.269),
        ("bindaree food group pty ltd", "independent insurance group ltd", 0.401),
        ("p.c.c. (singapore) private limited", "culver max entertainment private limited", 0.514),
        ("zincum llc", "easy verification inc.", 0.000),
        ("transpetrochart co ltd", "jx metals trading co.", 0.431),
        ("technolab", "moomoo technologies inc", 0.565),
        (
            "sewa security services",
            "sesa - safety & environmental services australia pty ltd",
            0.480,
        ),
        (
            "bueno",
            "20/f rykadan capital twr135 hoi bun rd, kwun tong 135 hoi bun rd., kwun tong",
            0.094,
        ),
        ("nicolas maduro", "nicolás maduro", 0.937),
        ("nicolas maduro", "~nicolás maduro", 1.0),
        ("nic maduro", "nicolas maduro", 0.872),
        ("nick maduro", "nicolas maduro", 0.859),
        ("nicolas maduroo", "nicolas maduro", 0.966),
        ("nicolas maduro", "nicolas maduro", 1.0),
        ("maduro moros, nicolas", "maduro moros, nicolas", 1.0),
        ("maduro moros, nicolas", "nicolas maduro", 0.953),
        ("nicolas maduro moros", "maduro", 0.900),
        ("nicolas maduro moros", "nicolás maduro", 0.898),
        ("nicolas, maduro moros", "maduro", 0.897),
        ("nicolas, maduro moros", "nicolas maduro", 0.928),
        ("nicolas, maduro moros", "nicolás", 0.822),
        ("nicolas, maduro moros", "nicolás maduro", 0.906),
        ("africada financial services bureau change", "skylight", 0.441),
        ("africada financial services bureau change", "skylight financial inc", 0.670),
        ("africada financial services bureau change", "skylight services inc", 0.625),
        ("africada financial services bureau change", "skylight financial services", 0.778),
        ("africada financial services bureau change", "skylight financial services inc", 0.749),
        ("the group for the preservation of the holy sites", "the bridgespan group", 0.715),
        ("group preservation holy sites", "bridgespan group", 0.692),
        ("the group for the preservation of the holy sites", "the logan group", 0.670),
        ("group preservation holy sites", "logan group", 0.586),
        ("the group for the preservation of the holy sites", "the anything group", 0.546),
        ("group preservation holy sites", "anything group", 0.488),
        ("the group for the preservation of the holy sites", "the hello world group", 0.637),
        ("group preservation holy sites", "hello world group", 0.577),
        ("the group for the preservation of the holy sites", "the group", 0.880),
        ("group preservation holy sites", "group", 0.879),
        (
            "the group for the preservation of the holy sites",
            "The flibbity jibbity flobbity jobbity grobbity zobbity group",
            0.363,
        ),
        (
            "the group for the preservation of the holy sites",
            "~the flibbity jibbity flobbity jobbity grobbity zobbity group",
            0.379,
        ),
        (
            "group preservation holy sites",
            "flibbity jibbity flobbity jobbity grobbity zobbity group",
            0.277,
        ),
        ("i c sogo kenkyusho", "~A.I.C. SOGO KENKYUSHO", 0.968),
        ("~A.I.C. SOGO KENKYUSHO", "sogo kenkyusho", 0.972),
        ("~11,420.2-1 CORP.", "11 420 2 1 corp", 1.000),
        ("~11,420.2-1 CORP.", "11 420 21 corp", 0.947),
        ("~11,420.2-1 CORP.", "11420 2 1 corp", 0.849),
        ("~11,420.2-1 CORP.", "11420 21 corp", 0.787),
        ("~11,420.2-1 CORP.", "114202 1 corp", 0.802),
        ("~11,420.2-1 CORP.", "1142021 corp", 0.752),
        ("JSCARGUMENT", "JSC ARGUMENT", 0.413),
        ("ARGUMENTJSC", "JSC ARGUMENT", 0.750),
        ("ivan", "john", 0.01),
        ("john smith", "john smythe", 0.893),
        ("sean", "shawn", 0.757),
        ("mohamed", "muhammed", 0.849),
        ("a", "a", 1.0),
        ("a", "b", 0.0),
        ("", "hello", 0.0),
        ("hello", "", 0.0),
        ("café", "cafe", 0.8),
        ("123", "123", 1.0),
        ("123", "456", 0.0),
        (
            "very long string with many words",
            "another very long string with different words",
            0.725,
        ),
        ("αβγ", "αβγ", 1.0),
        ("αβγ", "abc", 0.0),
        // From watchman's page on the OFAC portal.
        ("~GADDAFI, Khamis", "khamis al", 0.784),
        ("~GHADAFFI, Khamis", "khamis al", 0.780),
        ("~NAJJAR, Khamis", "khamis al", 0.788),
    ];
    /// Published pairs, compared with short words joined to a neighbour too (`name_similarity`).
    const PUBLISHED_JOINED: &[(&str, &str, f64)] = &[
        ("i c sogo kenkyusho", "~A.I.C. SOGO KENKYUSHO", 0.968),
        ("~A.I.C. SOGO KENKYUSHO", "sogo kenkyusho", 0.972),
        ("~11,420.2-1 CORP.", "11 420 2 1 corp", 1.0),
        ("~11,420.2-1 CORP.", "11 420 21 corp", 1.0),
        ("~11,420.2-1 CORP.", "11420 2 1 corp", 1.0),
        ("~11,420.2-1 CORP.", "11420 21 corp", 1.0),
        ("~11,420.2-1 CORP.", "114202 1 corp", 1.0),
        ("~11,420.2-1 CORP.", "1142021 corp", 1.0),
        ("JSCARGUMENT", "JSC ARGUMENT", 1.0),
        ("ARGUMENTJSC", "JSC ARGUMENT", 0.750),
    ];

    fn prepared(text: &str) -> Vec<String> {
        text.strip_prefix('~').map_or_else(|| words(text), |raw| words(&normalise(raw)))
    }

    fn differences(
        table: &[(&str, &str, f64)],
        score: impl Fn(&[String], &[String]) -> f64,
    ) -> Vec<String> {
        let compared = table.iter().map(|(listed, searched, wanted)| {
            (listed, searched, wanted, score(&prepared(searched), &prepared(listed)))
        });
        // A hundredth, plus the rounding of the third decimal.
        let wrong = compared.filter(|(_, _, wanted, found)| (*wanted - found).abs() > 0.010_5);
        wrong
            .map(|(listed, searched, wanted, found)| {
                format!("{listed:?} / {searched:?}: {found:.3}, published {wanted}")
            })
            .collect()
    }

    #[test]
    fn the_published_scores_are_reached() {
        assert_eq!(differences(PUBLISHED, paired_similarity), Vec::<String>::new());
        assert_eq!(differences(PUBLISHED_JOINED, name_similarity), Vec::<String>::new());
        // The test can fail: without joined words, six pairs of the second table differ.
        assert_eq!(differences(PUBLISHED_JOINED, paired_similarity).len(), 6);
    }

    #[test]
    fn words_are_joined_as_published() {
        assert_eq!(
            variations(&words("JSC ARGUMENT")),
            [vec!["JSC", "ARGUMENT"], vec!["JSCARGUMENT"]]
        );
        let all = variations(&words("11 420 2 1 corp"));
        assert_eq!(
            all,
            [
                vec!["11", "420", "2", "1", "corp"],
                vec!["11420", "21", "corp"],
                vec!["1142021", "corp"]
            ]
        );
        assert_eq!(variations(&words("john")).len(), 1);
        assert!(variations(&[]).iter().all(Vec::is_empty));
    }

    proptest! {
        #[test]
        fn similarity_is_bounded_and_full_for_equals(a in ".{0,40}", b in ".{0,40}") {
            let (a, b) = (words(&normalise(&a)), words(&normalise(&b)));
            let score = name_similarity(&a, &b);
            prop_assert!((0.0..=1.0 + 1e-9).contains(&score));
            prop_assert!(a.is_empty() || (name_similarity(&a, &a) - 1.0).abs() < 1e-9);
        }

        #[test]
        fn a_pattern_gives_the_same(a in "[a-d]{0,12}|[a-cé]{0,80}",
            b in "[a-d]{0,12}|[a-cé]{0,80}") {
            prop_assert_eq!(Pattern::new(&b).similarity(a.as_bytes()),
                token_similarity(a.as_bytes(), b.as_bytes()));
        }

        #[test]
        fn the_bound_is_never_below(a in "[a-f]{1,12}", b in "[a-f]{1,12}") {
            let common = ('a'..='z').map(|letter| {
                let count = |text: &str| text.chars().filter(|other| *other == letter).count();
                count(&a).min(count(&b))
            }).sum();
            let prefix = a.bytes().zip(b.bytes()).take_while(|(left, right)| left == right).count();
            prop_assert!(token_similarity(a.as_bytes(), b.as_bytes()) <= similarity_bound(a.len(),
                b.len(), common, prefix) + 1e-12);
        }
    }
}
