//! How many evasions of public lists are caught, and how many Indian names that no list has are
//! stopped: a table of rates, and bounds that they must keep.
//!
//! `HUNDI_NAMES_FULL=1 cargo test --release --lib screening::names_test -- --nocapture` prints the
//! table that is kept in `bench/names.md`; an ordinary run makes fewer cases. Every case is made by
//! a generator with a fixed seed from the files in
//! `tests/fixtures/names`.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::civil::Date;

use super::birth::Birth;
use super::countries::CountryCode;
use super::index::IndexBuilder;
use super::judge::Thresholds;
use super::matcher::EntryMatcher;
use super::*;

const LISTED: &str = include_str!("../../tests/fixtures/names/listed.csv");
const INDIAN: &str = include_str!("../../tests/fixtures/names/indian.csv");

/// A small generator, so that every run makes the same cases.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end
    }
    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// The persons of OFAC's and the UN's list, as `write_the_listed_persons` wrote them.
fn listed() -> Vec<Arc<Entry>> {
    let mut reader = csv::Reader::from_reader(LISTED.as_bytes());
    reader
        .records()
        .map(|record| {
            let record = record.unwrap();
            let list = ListName::parse(&record[0]).unwrap();
            let mut entry = Entry::new(list, &record[1], EntryKind::Individual);
            for name in record[2].split('|') {
                match name.strip_prefix('~') {
                    Some(weak) => entry.add_name(weak, true),
                    None => entry.add_name(name, false),
                }
            }
            for birth in record[3].split('|').filter(|text| !text.is_empty()) {
                entry.births.push(match birth.split_once("..") {
                    Some((first, last)) => Birth::Years {
                        first: first.parse().unwrap(),
                        last: last.trim_end_matches('c').parse().unwrap(),
                        is_guess: last.ends_with('c'),
                    },
                    None => Birth::Day(birth.parse().unwrap()),
                });
            }
            entry.countries.extend(record[4].split('|').filter_map(CountryCode::parse));
            Arc::new(entry)
        })
        .collect()
}

/// Writes `listed.csv` from the published files in the folder `HUNDI_LISTS`.
#[test]
#[ignore = "run by hand with HUNDI_LISTS=FOLDER to make the fixture anew"]
fn write_the_listed_persons() {
    let folder = std::path::PathBuf::from(std::env::var("HUNDI_LISTS").unwrap());
    let file = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let (sdn, alt, add, comments) =
        (file("sdn.csv"), file("alt.csv"), file("add.csv"), file("sdn_comments.csv"));
    let files = ofac::Files { sdn: &sdn, alt: &alt, add: &add, comments: &comments };
    let lists = [ofac::read(files).unwrap(), un::read(&file("consolidated.xml")).unwrap()];
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(["list", "id", "names", "births", "countries"]).unwrap();
    for entry in lists.iter().flat_map(|list| &list.entries) {
        if entry.kind != EntryKind::Individual || entry.names.is_empty() {
            continue;
        }
        let names = entry.names.iter().map(|name| match name.is_weak {
            true => format!("~{}", name.text),
            false => name.text.clone(),
        });
        let births = entry.births.iter().map(|birth| match birth {
            Birth::Day(day) => day.to_string(),
            Birth::Years { first, last, is_guess } => {
                format!("{first}..{last}{}", if *is_guess { "c" } else { "" })
            }
        });
        let countries = entry.countries.iter().map(|country| country.as_str().to_owned());
        let joined =
            |parts: &mut dyn Iterator<Item = String>| parts.collect::<Vec<String>>().join("|");
        let (mut names, mut births, mut countries) = (names, births, countries);
        out.write_record([
            entry.list.as_str(),
            &entry.id,
            &joined(&mut names),
            &joined(&mut births),
            &joined(&mut countries),
        ])
        .unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/names/listed.csv");
    std::fs::write(path, out.into_inner().unwrap()).unwrap();
}

/// Indian names by community and role, each as often as lists name it.
struct Indian {
    given: Vec<&'static str>,
    surnames: Vec<&'static str>,
}

impl Indian {
    fn of(community: &str) -> Indian {
        let (mut given, mut surnames) = (Vec::new(), Vec::new());
        for line in INDIAN.lines().skip(1) {
            let mut fields = line.split(',');
            let [Some(owner), Some(role), Some(name), Some(lists)] =
                std::array::from_fn(|_| fields.next())
            else {
                panic!("{line}");
            };
            if owner == community {
                let names = if role == "surname" { &mut surnames } else { &mut given };
                names.extend(std::iter::repeat_n(name, lists.parse().unwrap()));
            }
        }
        Indian { given, surnames }
    }

    /// A name in one of the usual forms.
    fn name(&self, random: &mut Random, is_muslim: bool) -> String {
        let (given, surname) = (*random.pick(&self.given), *random.pick(&self.surnames));
        let other = *random.pick(&self.given);
        const MANY: &[&str] =
            &["Khan", "Ahmed", "Ali", "Hussain", "Shaikh", "Ansari", "Begum", "Rahman", "Siddiqui"];
        match (is_muslim, random.below(20)) {
            (true, 0..=1) => format!("Mohammed {given} {surname}"),
            (true, 2..=3) => format!("{} {given}", random.pick(&["Mohd", "Mohammed", "Md"])),
            (true, 4) => format!("Abdul {given}"),
            (true, 5..=9) => format!("{given} {}", random.pick(MANY)),
            (true, 10) => format!("Syed {given} {}", random.pick(MANY)),
            (true, 11) => format!("Shaikh {given}"),
            (true, 12..=13) => format!("{given} {other}"),
            (true, 14) => format!("{given} {other} {}", random.pick(MANY)),
            (false, 0..=1) => format!("{given} Kumar {surname}"),
            (false, 2) => format!("{given} Singh"),
            (false, 3) => format!("{given} Kumar"),
            (false, 4) => format!("{given} Devi"),
            (false, 5..=6) => format!("{given} {other} {surname}"),
            _ => format!("{given} {surname}"),
        }
    }
}

/// A listed primary name as its bearer would write it: "AZHAR, Masood" is Masood Azhar.
fn written(name: &str) -> String {
    match name.split_once(", ") {
        Some((surname, given)) => format!("{given} {surname}"),
        None => name.to_owned(),
    }
}

/// Puts a mark into the middle of every word of four letters or more.
fn inside(name: &str, mark: &str) -> String {
    let word = |word: &str| {
        let letters: Vec<char> = word.chars().collect();
        match letters.len() {
            ..=3 => word.to_owned(),
            count => {
                let (left, right) = letters.split_at(count / 2);
                format!(
                    "{}{mark}{}",
                    left.iter().collect::<String>(),
                    right.iter().collect::<String>()
                )
            }
        }
    };
    name.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

type Evasion = (&'static str, fn(&str, &Indian, &mut Random) -> String);

const EVASIONS: &[Evasion] = &[
    ("as listed", |name, _, _| name.to_owned()),
    ("S/o after it", |name, other, random| {
        let relation = random.pick(&["S/o", "s/o", "S/O.", "D/o", "W/O", "C/o", "son of"]);
        format!("{name} {relation} {}", other.name(random, false))
    }),
    ("account suffix", |name, _, random| {
        let suffix =
            random.pick(&["NRE", "NRE A/C", "- NRE SB", "SB A/C 50100012345678", "(NRE SAVINGS)"]);
        format!("{name} {suffix}")
    }),
    ("two middle names", |name, other, random| {
        let (first, rest) = name.split_once(' ').unwrap_or((name, ""));
        let added = [*random.pick(&other.given), *random.pick(&other.given)];
        format!("{first} {} {} {rest}", added[0], added[1])
    }),
    ("one middle name and a surname", |name, other, random| {
        let (first, rest) = name.split_once(' ').unwrap_or((name, ""));
        format!("{first} {} {rest} {}", random.pick(&other.given), random.pick(&other.surnames))
    }),
    ("no spaces", |name, _, _| name.split_whitespace().collect()),
    ("one space left out", |name, _, _| name.replacen(' ', "", 1)),
    ("Sheikh before it", |name, _, random| {
        format!("{} {name}", random.pick(&["Sheikh", "Shaikh", "Haji", "Maulana", "Hafiz"]))
    }),
    ("Maulana Mohd. before it", |name, _, _| format!("Maulana Mohd. {name}")),
    ("OR joint holder", |name, other, random| format!("{name} OR {}", other.name(random, false))),
    ("joint holder AND", |name, other, random| {
        format!("{} {} {name}", other.name(random, false), random.pick(&["AND", "&", "/"]))
    }),
    ("hyphens inside words", |name, _, _| inside(name, "-")),
    ("apostrophes inside words", |name, _, random| {
        inside(name, random.pick::<&str>(&["'", "’", "`", "."]))
    }),
    ("spaced letters", |name, _, random| {
        let space = *random.pick(&["  ", " "]);
        let spaced = |word: &str| word.chars().map(String::from).collect::<Vec<_>>().join(" ");
        name.split_whitespace().map(spaced).collect::<Vec<_>>().join(space)
    }),
    ("characters that show nothing", |name, _, random| {
        let mark = *random.pick(&[
            "\u{2066}",
            "\u{2069}",
            "\u{200d}",
            "\u{ad}",
            "\u{34f}",
            "\u{61c}",
            "\u{fe0f}",
            "\u{115f}",
            "\u{3164}",
            "\u{180e}",
            "\u{e0061}",
            "\u{206a}",
            "\u{17b4}",
            "\u{1d173}",
        ]);
        inside(name, mark)
    }),
    ("S/o and account suffix", |name, other, random| {
        format!("MR {name} S/O {} NRE A/C", other.name(random, false))
    }),
    ("words in another order", |name, _, _| {
        let mut words: Vec<&str> = name.split_whitespace().collect();
        words.rotate_left(1);
        words.join(" ")
    }),
    ("one word left out", |name, _, random| {
        let mut words: Vec<&str> = name.split_whitespace().collect();
        if words.len() > 2 {
            words.remove(random.below(words.len()));
        }
        words.join(" ")
    }),
    ("one letter wrong", |name, _, random| {
        let mut letters: Vec<char> = name.chars().collect();
        let places: Vec<usize> =
            (1..letters.len()).filter(|place| letters[*place].is_alphabetic()).collect();
        letters[*random.pick(&places)] = *random.pick(&['a', 'e', 'i', 'o', 'u', 'h', 'r', 'n']);
        letters.into_iter().collect()
    }),
];

struct Case {
    kind: &'static str,
    name: String,
    entry_id: String,
}

/// Primary names of two to five words of the UN's list, and as many of OFAC's.
fn evasions(entries: &[Arc<Entry>]) -> Vec<Case> {
    let is_usable = |entry: &&Arc<Entry>| {
        let name = &entry.names[0];
        let words = name.text.split_whitespace().count();
        !name.is_weak && (2..=5).contains(&words) && name.text.is_ascii()
    };
    let other = Indian::of("other");
    let mut random = Random(11);
    let mut cases = Vec::new();
    for list in [ListName::Un, ListName::Ofac] {
        let usable: Vec<&Arc<Entry>> =
            entries.iter().filter(|entry| entry.list == list).filter(is_usable).collect();
        for _ in 0..sizes().0 {
            let entry = random.pick(&usable);
            let name = written(&entry.names[0].text);
            for (kind, make) in EVASIONS {
                let name = make(&name, &other, &mut random);
                cases.push(Case { kind, name, entry_id: entry.id.clone() });
            }
        }
    }
    cases
}

/// Names of each list that evasions are made from, and Indian names of each community: as many as
/// an ordinary run has time for, or all where `HUNDI_NAMES_FULL` is set.
fn sizes() -> (usize, usize) {
    if std::env::var_os("HUNDI_NAMES_FULL").is_some() { (150, 2_000) } else { (12, 250) }
}

fn percent(part: usize, whole: usize) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

fn birth_date(random: &mut Random) -> Date {
    Date::new(
        1950 + random.below(56) as i16,
        1 + random.below(12) as i8,
        1 + random.below(28) as i8,
    )
    .unwrap()
}

#[test]
fn evasions_are_caught_and_ordinary_names_pass() {
    let entries = listed();
    let matcher = EntryMatcher::new(entries.clone(), Thresholds::default());
    let indian_each = sizes().1;
    let mut table = String::new();
    let mut plain = IndexBuilder::default();
    for name in entries.iter().flat_map(|entry| &entry.names) {
        plain.add(&text::tokens(&name.text, EntryKind::Individual));
    }
    let plain = plain.build(Thresholds::default().score_possible);
    // Only the whole table is compared with the search by similarity alone, to save time.
    let is_full = sizes().0 > 100;
    let before =
        |name: &str| is_full && plain.search(&text::tokens(name, EntryKind::Individual)).is_empty();
    let cases = evasions(&entries);
    let (mut missed, mut clear) = (0, 0);
    let started = Instant::now();
    for (kind, _) in EVASIONS {
        let (mut kind_clear, mut kind_missed, mut kind_before, mut count) = (0, 0, 0, 0);
        for case in cases.iter().filter(|case| case.kind == *kind) {
            let finding = matcher.screen(&ScreeningQuestion::person(&case.name));
            let is_clear = finding.screening == Screening::Clear;
            let is_missed = !finding.hits.iter().any(|hit| hit.entry_id == case.entry_id);
            if is_clear && std::env::var("SHOW").is_ok() {
                eprintln!("clear: {kind}: {}", case.name);
            }
            count += 1;
            kind_clear += usize::from(is_clear);
            kind_before += usize::from(before(&case.name));
            kind_missed += usize::from(is_missed);
        }
        let (clear_rate, missed_rate) = (percent(kind_clear, count), percent(kind_missed, count));
        let before_rate = percent(kind_before, count);
        writeln!(
            table,
            "| {kind} | {count} | {before_rate:.1} % | {clear_rate:.1} % | {missed_rate:.1} % |"
        )
        .unwrap();
        clear += kind_clear;
        missed += kind_missed;
    }
    let (count, time) = (cases.len(), started.elapsed());
    let (clear_rate, missed_rate) = (percent(clear, count), percent(missed, count));
    writeln!(table, "| all evasions | {count} | {clear_rate:.1} % | {missed_rate:.1} % |").unwrap();
    writeln!(table, "mean {:.0} µs", time.as_secs_f64() * 1e6 / count as f64).unwrap();
    let (mut plain_time, mut whole_time) = (Duration::ZERO, Duration::ZERO);
    let mut alarms = Vec::new();
    for (community, has_birth) in
        [("muslim", false), ("muslim", true), ("other", false), ("other", true)]
    {
        let (names, mut random) = (Indian::of(community), Random(5));
        let (mut alarmed, mut alarmed_before, mut time) = (0, 0, Duration::ZERO);
        for _ in 0..indian_each {
            let name = names.name(&mut random, community == "muslim");
            let mut question = ScreeningQuestion::person(&name);
            let date = birth_date(&mut random);
            if has_birth {
                question.date_of_birth = Some(date);
                question.countries.push("IN".into());
            }
            let started = Instant::now();
            let finding = matcher.screen(&question);
            time += started.elapsed();
            if !has_birth {
                let started = Instant::now();
                alarmed_before += usize::from(!before(&name));
                plain_time += started.elapsed();
            }
            if finding.screening != Screening::Clear {
                alarmed += 1;
                if std::env::var("SHOW").is_ok_and(|show| show == community) && !has_birth {
                    eprintln!("alarm: {name}: {}", finding.hits[0].evidence);
                }
            }
        }
        if !has_birth {
            whole_time += time;
        }
        let rate = percent(alarmed, indian_each);
        let with = if has_birth { "with a date of birth and country" } else { "name alone" };
        let mean = time.as_secs_f64() * 1e6 / indian_each as f64;
        writeln!(
            table,
            "| {community}, {with} | {indian_each} | {:.1} % | {rate:.1} % | {mean:.0} µs |",
            percent(alarmed_before, indian_each)
        )
        .unwrap();
        alarms.push(rate);
    }
    if is_full {
        let slower = whole_time.as_secs_f64() / plain_time.as_secs_f64();
        writeln!(table, "{slower:.2} times as long as the search by similarity alone").unwrap();
    }
    println!("{table}");
    // The bounds leave a little room below what is wanted: 2 %, and 8, 3, 1 and 1 %.
    assert!(clear_rate <= 2.0, "{clear_rate:.1} % of the evasions are clear");
    for (rate, most) in alarms.into_iter().zip([8.0, 3.0, 1.0, 1.0]) {
        assert!(rate <= most, "{rate:.1} % of ordinary names are stopped, {most} are allowed");
    }
}
