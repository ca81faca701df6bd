//! Screening: names a second against lists of two sizes, by the index and by comparing every name,
//! side by side.

use std::time::Instant;

use hundi::screening::index::{IndexBuilder, NameIndex};
use tokio::runtime::Runtime;

use crate::Scale;
use crate::table::Table;

/// Entries of the two lists: about what OFAC publishes, and five times that.
const SIZES: [usize; 2] = [20_000, 100_000];
/// The possible-match threshold of the settings.
const THRESHOLD: f64 = 0.85;

/// A generator of its own, so that every run compares the same names.
struct Names(u64);

impl Names {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end
    }

    /// A word of two to four syllables; low numbers come often, as common given names and surnames
    /// do.
    fn word(&mut self) -> String {
        const SYLLABLES: [&str; 40] = [
            "ra", "ka", "mo", "ha", "me", "al", "kh", "an", "ju", "na", "si", "ng", "ab", "du",
            "la", "ri", "ya", "so", "vi", "ch", "en", "ko", "pa", "te", "li", "sh", "ar", "ma",
            "za", "di", "fa", "is", "to", "us", "bi", "go", "ro", "wa", "yu", "ed",
        ];
        let common = self.below(3) == 0;
        (0..2 + self.below(3))
            .map(|_| SYLLABLES[if common { self.below(8) } else { self.below(40) }])
            .collect()
    }

    fn name(&mut self) -> Vec<String> {
        (0..2 + self.below(3)).map(|_| self.word()).collect()
    }
}

fn per_second(
    names: &[Vec<String>],
    mut search: impl FnMut(&[String]) -> usize,
) -> (f64, usize, f64) {
    let mut found = 0;
    let mut times: Vec<f64> = Vec::with_capacity(names.len());
    let start = Instant::now();
    for name in names {
        let begun = Instant::now();
        found += search(name);
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    let total = start.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    (names.len() as f64 / total, found, times.get(times.len() * 99 / 100).copied().unwrap_or(0.0))
}

fn list(size: usize, names: &mut Names) -> (NameIndex, Vec<Vec<String>>) {
    let mut builder = IndexBuilder::default();
    let mut listed = Vec::with_capacity(size);
    for _ in 0..size {
        let name = names.name();
        builder.add(&name);
        listed.push(name);
    }
    (builder.build(THRESHOLD), listed)
}

pub fn run(_: &Runtime, scale: &Scale, table: &mut Table) {
    for size in SIZES {
        let mut names = Names(7);
        let (index, listed) = list(size, &mut names);
        // Half of those who are screened bear a listed name with one word more, half bear a fresh
        // one.
        let count = (scale.seconds * 1_000.0) as usize;
        let searched: Vec<Vec<String>> = (0..count)
            .map(|i| {
                if i % 2 == 0 {
                    names.name()
                } else {
                    [listed[names.below(size)].clone(), vec![names.word()]].concat()
                }
            })
            .collect();
        let (indexed, found, slow) = per_second(&searched, |name| index.search(name).len());
        let few = &searched[..searched.len().min(20)];
        let (exhaustive, found_all, _) = per_second(few, |name| index.exhaustive(name).len());
        let (_, found_few, _) = per_second(few, |name| index.search(name).len());
        assert_eq!(found_few, found_all, "the index finds what comparing every name finds");
        let note = format!(
            "mean {:.0} µs, p99 {slow:.0} µs, {found} names found for {count}",
            1e6 / indexed
        );
        table.add(
            &format!("names screened against {size} entries, indexed"),
            format!("{indexed:.0}/s"),
            &note,
        );
        let note = format!("{:.0} times slower", indexed / exhaustive);
        table.add(
            &format!("names screened against {size} entries, every name compared"),
            format!("{exhaustive:.1}/s"),
            &note,
        );
    }
}
