//! Two rates, and the bounds that they must keep: how many evasions are caught, and how many Indian
//! names that no list has are stopped. An evasion is a name of a public list, written in another
//! way.
//!
//! `HUNDI_NAMES_FULL=1 cargo test --release --lib screening::names_test -- --nocapture` prints the
//! table that is kept in `bench/names.md`; an ordinary run makes fewer cases. A generator with a
//! fixed seed makes every case from the files in `tests/fixtures/names`. With the variable `SHOW`,
//! the tests also print the evasions that come out clear, and the pairs that are judged wrongly.
//! With `SHOW=muslim` or `SHOW=other`, `evasions_are_caught_and_ordinary_names_pass` also prints
//! the stopped names of that community.

use std::collections::HashSet;
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
/// Indian names from another collection, without those of `INDIAN`. No rule was made with them.
const HELD_OUT: &str = include_str!("../../tests/fixtures/names/held_out.csv");
/// Pairs of names that another project labelled.
const PAIRS: &str = include_str!("../../tests/fixtures/names/pairs.csv");

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
fn listed() -> Vec<Arc<ListEntry>> {
    let mut reader = csv::Reader::from_reader(LISTED.as_bytes());
    reader
        .records()
        .map(|record| {
            let record = record.unwrap();
            let list = ListName::parse(&record[0]).unwrap();
            let mut entry = ListEntry::new(list, &record[1], EntryKind::Individual);
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

/// The Indian names of one community, each as often as the fixture's last column says.
struct Indian {
    first_names: Vec<&'static str>,
    surnames: Vec<&'static str>,
}

impl Indian {
    fn of(community: &str) -> Indian {
        Indian::from(INDIAN, community)
    }

    fn from(file: &'static str, community: &str) -> Indian {
        let (mut first_names, mut surnames) = (Vec::new(), Vec::new());
        for line in file.lines().skip(1) {
            let mut fields = line.split(',');
            let [Some(owner), Some(role), Some(name), Some(lists)] =
                std::array::from_fn(|_| fields.next())
            else {
                panic!("{line}");
            };
            if owner == community {
                let names = if role == "surname" { &mut surnames } else { &mut first_names };
                names.extend(std::iter::repeat_n(name, lists.parse().unwrap()));
            }
        }
        Indian { first_names, surnames }
    }

    /// A name in one of the usual forms.
    fn name(&self, random: &mut Random, is_muslim: bool) -> String {
        let (given, surname) = (*random.pick(&self.first_names), *random.pick(&self.surnames));
        let other = *random.pick(&self.first_names);
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

impl Indian {
    /// A name as the south of India writes it, with initials.
    fn name_with_initials(&self, random: &mut Random) -> String {
        let (given, surname) = (*random.pick(&self.first_names), *random.pick(&self.surnames));
        let letters = ["A", "K", "M", "P", "S", "T", "V", "N", "R"];
        let (first, second) = (*random.pick(&letters), *random.pick(&letters));
        match random.below(5) {
            0 => format!("{first}. {given}"),
            1 => format!("{first} {second} {given}"),
            2 => format!("{given} {first}"),
            3 => format!("{given} {first}{second}"),
            _ => format!("{first} {given} {surname}"),
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
        let added = [*random.pick(&other.first_names), *random.pick(&other.first_names)];
        format!("{first} {} {} {rest}", added[0], added[1])
    }),
    ("one middle name and a surname", |name, other, random| {
        let (first, rest) = name.split_once(' ').unwrap_or((name, ""));
        format!(
            "{first} {} {rest} {}",
            random.pick(&other.first_names),
            random.pick(&other.surnames)
        )
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

/// Every evasion of some primary names of the UN's list, and of as many of OFAC's. The names have
/// two to five words.
fn evasions(entries: &[Arc<ListEntry>]) -> Vec<Case> {
    evasions_sized(entries, sizes().0)
}

/// Like [`evasions`], with `each` names of each list.
fn evasions_sized(entries: &[Arc<ListEntry>], each: usize) -> Vec<Case> {
    let is_usable = |entry: &&Arc<ListEntry>| {
        let name = &entry.names[0];
        let words = name.text.split_whitespace().count();
        !name.is_weak && (2..=5).contains(&words) && name.text.is_ascii()
    };
    let other = Indian::of("other");
    let mut random = Random(11);
    let mut cases = Vec::new();
    for list in [ListName::Un, ListName::Ofac] {
        let usable: Vec<&Arc<ListEntry>> =
            entries.iter().filter(|entry| entry.list == list).filter(is_usable).collect();
        for _ in 0..each {
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

/// From how many names of each list evasions are made, and how many Indian names of each community
/// are screened. Both numbers are smaller unless `HUNDI_NAMES_FULL` is set.
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
    // The search by similarity alone is the method from before labels and alignment. `before` says
    // whether it finds nothing. To save time, only a full run asks it.
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
            let is_readable = finding.hits.iter().all(|hit| hit.list != UNREADABLE);
            assert!(is_readable, "{name} was not compared, or not in full");
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
    // The bounds; `bench/names.md` has the measured rates.
    assert!(clear_rate <= 2.0, "{clear_rate:.1} % of the evasions are clear");
    for (rate, most) in alarms.into_iter().zip([8.0, 3.0, 1.0, 1.0]) {
        assert!(rate <= most, "{rate:.1} % of ordinary names are stopped, {most} are allowed");
    }
}

/// Forms that the rules were not made with.
const HELD_OUT_FORMS: &[Evasion] = &[
    ("& ORS after it", |name, _, _| format!("{name} & ORS")),
    ("guardian before it", |name, other, random| {
        format!("{} U/G {name}", other.name(random, false))
    }),
    ("points between words", |name, _, _| name.replace(' ', ".")),
    ("surname first, with a comma", |name, _, _| match name.rsplit_once(' ') {
        Some((given, surname)) => format!("{surname}, {given}"),
        None => name.to_owned(),
    }),
    ("Ji after it", |name, _, _| format!("{name} Ji")),
    ("a letter doubled", |name, _, random| {
        let letters: Vec<char> = name.chars().collect();
        let places: Vec<usize> =
            (1..letters.len()).filter(|place| letters[*place].is_alphabetic()).collect();
        let place = *random.pick(&places);
        let (left, right) = letters.split_at(place);
        left.iter().chain(&letters[place..=place]).chain(right).collect()
    }),
    ("initial of the first word", |name, _, _| match name.split_once(' ') {
        Some((first, rest)) if rest.contains(' ') => format!("{}. {rest}", &first[..1]),
        _ => name.to_owned(),
    }),
    ("Late before it, account after it", |name, _, _| format!("LATE {name} NRE SB A/C 001")),
];

/// More ways in which banks, forms and people write a name.
const MORE_FORMS: &[Evasion] = &[
    ("S/o without spaces", |name, other, random| {
        let relation = random.pick(&[" S/o", " S/O-", "(S/o ", " s/o:", " SO ", " S/0 ", " S\\O "]);
        format!("{name}{relation}{}", other.name(random, false))
    }),
    ("relative in words", |name, other, random| {
        let relation =
            random.pick(&["son-of", "Daughter Of", "wife  of", "husband of", "bin", "beti"]);
        format!("{name} {relation} {}", other.name(random, false))
    }),
    ("C/o before it", |name, other, random| {
        let relation = random.pick(&["C/O", "c/o.", "Care of", "S/O", "W/o", "F/o"]);
        format!("{} {relation} {name}", other.name(random, false))
    }),
    ("other joint marks", |name, other, random| {
        let mark = random.pick(&[
            " + ",
            ",",
            "; ",
            " | ",
            "/",
            "&",
            " AND/OR ",
            " WITH ",
            "\n",
            " \u{2022} ",
        ]);
        format!("{name}{mark}{}", other.name(random, false))
    }),
    ("joint holders with titles", |name, other, random| {
        format!("MRS {} AND MR {name}", other.name(random, false))
    }),
    ("numbered holders", |name, other, random| {
        format!("1. {} 2. {name}", other.name(random, false))
    }),
    ("three holders", |name, other, random| {
        format!("{} & {name} & {}", other.name(random, false), other.name(random, false))
    }),
    ("survivor clause", |name, other, random| {
        let clause = random.pick(&["E OR S", "EITHER OR SURVIVOR", "(E/S)", "JOINTLY", "F OR S"]);
        format!("{name} OR {} {clause}", other.name(random, false))
    }),
    ("more titles", |name, _, random| {
        let title = random.pick(&[
            "Shri",
            "Sri.",
            "SMT",
            "Hazrat Maulana",
            "Qari",
            "Alhaj",
            "Er.",
            "Adv.",
            "CA",
            "Janab",
            "Hafiz Mohd",
            "Sayyid",
            "Dr.(Prof.)",
            "M/s",
            "Mr/Mrs",
            "Ustad",
            "Moulvi",
            "Mufti",
            "Khwaja",
            "Baba",
            "Amir",
            "Commander",
            "Col (Retd)",
            "Late Shri",
        ]);
        format!("{title} {name}")
    }),
    ("words of respect after it", |name, _, random| {
        let word =
            random.pick(&["Ji", "Saab", "Sahib", "Bhai", "Sahab", "Sb", "Esq", "(Deceased)"]);
        format!("{name} {word}")
    }),
    ("business around it", |name, _, random| {
        let word = random.pick(&["PROPRIETOR", "(PROP)", "HUF", "KARTA", "MINOR", "NOMINEE"]);
        format!("{name} {word}")
    }),
    ("account around it", |name, _, random| match random.below(4) {
        0 => format!("NRE-{name}-00123"),
        1 => format!("{name}*NRE SAVINGS ACCOUNT*"),
        2 => format!("A/C {name}"),
        _ => format!("{name} [50100012345678] INR"),
    }),
    ("marks for spaces", |name, _, random| {
        name.replace(
            ' ',
            random.pick::<&str>(&["_", "-", ".", "\u{a0}", "\u{2003}", "*", "--", "'", "\t"]),
        )
    }),
    ("cut at 20 characters", |name, _, _| {
        name.chars().take(20.max(name.find(' ').unwrap_or(0) + 4)).collect()
    }),
    ("doubled spelling", |name, _, random| {
        let name = name.to_lowercase();
        let changes = [
            ("oo", "u"),
            ("u", "oo"),
            ("ee", "i"),
            ("i", "ee"),
            ("f", "ph"),
            ("q", "k"),
            ("kh", "k"),
            ("z", "j"),
            ("w", "v"),
            ("v", "w"),
            ("y", "i"),
            ("sh", "s"),
            ("dh", "d"),
            ("ou", "u"),
            ("al ", "ul "),
            ("aa", "a"),
            ("j", "dj"),
            ("k", "q"),
            ("ll", "l"),
            ("e", "i"),
            ("o", "u"),
        ];
        let fitting: Vec<_> = changes.iter().filter(|(from, _)| name.contains(from)).collect();
        match fitting.is_empty() {
            true => name,
            false => {
                let (from, to) = random.pick(&fitting);
                name.replace(from, to)
            }
        }
    }),
    ("spelling of Mohammed", |name, _, random| {
        let short = random.pick(&["Md", "Mohd.", "Mohammed", "Muhammed", "M.", "Mohamad"]);
        format!("{short} {name}")
    }),
    ("one word as an initial", |name, _, random| {
        let mut words: Vec<String> = name.split_whitespace().map(str::to_owned).collect();
        let place = random.below(words.len());
        words[place].truncate(1);
        words.join(" ")
    }),
    ("last word as an initial", |name, _, _| match name.rsplit_once(' ') {
        Some((rest, last)) => format!("{rest} {}.", &last[..1]),
        None => name.to_owned(),
    }),
    ("initials added", |name, _, random| {
        let letter = random.pick(&["A", "K", "M", "P", "S"]);
        format!("{letter}. {letter}. {name}")
    }),
    ("another order and joined", |name, _, _| {
        name.split_whitespace().rev().collect::<Vec<_>>().concat()
    }),
    ("capital letters for spaces", |name, _, _| {
        let word = |word: &str| format!("{}{}", word[..1].to_uppercase(), word[1..].to_lowercase());
        name.split_whitespace().map(word).collect()
    }),
    ("digits for letters", |name, _, _| {
        name.to_lowercase().replace('o', "0").replace('i', "1").replace('e', "3")
    }),
    ("full width and marks", |name, _, random| match random.below(2) {
        0 => name
            .chars()
            .map(|letter| match letter {
                'A'..='z' => char::from_u32(letter as u32 + 0xfee0).unwrap(),
                other => other,
            })
            .collect(),
        _ => name.chars().flat_map(|letter| [letter, '\u{301}']).collect(),
    }),
    ("letters of other alphabets", |name, _, _| {
        name.to_lowercase().replace('a', "\u{430}").replace('o', "\u{43e}")
    }),
    ("shown in reverse", |name, _, _| {
        format!("\u{202e}{}\u{202c}", name.chars().rev().collect::<String>())
    }),
    ("spaced with marks", |name, _, random| {
        let mark = random.pick(&[".", "-", ". ", "_", "*"]);
        let spaced = |word: &str| word.chars().map(String::from).collect::<Vec<_>>().join(mark);
        name.split_whitespace().map(spaced).collect::<Vec<_>>().join("  ")
    }),
    ("S/o, middle name and account", |name, other, random| {
        let (first, rest) = name.split_once(' ').unwrap_or((name, ""));
        format!(
            "Shri {first} {} {rest} S/o {} NRE",
            random.pick(&other.first_names),
            other.name(random, false)
        )
    }),
    ("two surnames of India after it", |name, other, random| {
        format!("{name} {} {}", random.pick(&other.surnames), random.pick(&other.surnames))
    }),
    ("Kumar between", |name, _, random| {
        let (first, rest) = name.split_once(' ').unwrap_or((name, ""));
        format!(
            "{first} {} {rest}",
            random.pick(&["Kumar", "Singh", "Ahmed", "Ali", "Khan", "Mohd"])
        )
    }),
];

/// Cases in these forms, made from strong aliases. Entries whose identifiers are in `tuned` are
/// left out: the rules were made with them, or they were drawn before.
fn held_out_evasions(
    entries: &[Arc<ListEntry>],
    tuned: &HashSet<String>,
    seed: u64,
    forms: &[Evasion],
    each: usize,
) -> Vec<Case> {
    let other = Indian::from(HELD_OUT, "other");
    let mut random = Random(seed);
    let mut cases = Vec::new();
    for list in [ListName::Un, ListName::Ofac] {
        let usable: Vec<(&Arc<ListEntry>, &str)> = entries
            .iter()
            .filter(|entry| entry.list == list && !tuned.contains(&entry.id))
            .flat_map(|entry| {
                let aliases = entry.names.iter().skip(1).filter(|name| !name.is_weak);
                aliases.map(move |name| (entry, name.text.as_str()))
            })
            .filter(|(_, name)| {
                (2..=5).contains(&name.split_whitespace().count()) && name.is_ascii()
            })
            .collect();
        assert!(usable.len() > 100, "{list:?} has {} aliases", usable.len());
        for _ in 0..each {
            let (entry, name) = random.pick(&usable);
            let name = written(name);
            for (kind, make) in forms {
                let name = make(&name, &other, &mut random);
                cases.push(Case { kind, name, entry_id: entry.id.clone() });
            }
        }
    }
    cases
}

/// Adds a line for each form to the table. Answers the share of all cases that came out clear, in
/// per cent.
fn percent_clear(
    matcher: &EntryMatcher,
    cases: &[Case],
    forms: &[Evasion],
    table: &mut String,
) -> f64 {
    let mut clear = 0;
    for (kind, _) in forms {
        let (mut kind_clear, mut kind_missed, mut count) = (0, 0, 0);
        for case in cases.iter().filter(|case| case.kind == *kind) {
            let finding = matcher.screen(&ScreeningQuestion::person(&case.name));
            count += 1;
            kind_clear += usize::from(finding.screening == Screening::Clear);
            let is_missed = !finding.hits.iter().any(|hit| hit.entry_id == case.entry_id);
            if finding.screening == Screening::Clear && std::env::var("SHOW").is_ok() {
                eprintln!("clear: {kind}: {}", case.name);
            }
            kind_missed += usize::from(is_missed);
        }
        let (clear_rate, missed_rate) = (percent(kind_clear, count), percent(kind_missed, count));
        writeln!(table, "| {kind} | {count} | {clear_rate:.1} % | {missed_rate:.1} % |").unwrap();
        clear += kind_clear;
    }
    let rate = percent(clear, cases.len());
    writeln!(table, "| **all** | {} | **{rate:.1} %** | |", cases.len()).unwrap();
    rate
}

/// The seed of the first held-out names, and of others that nobody has looked at.
const SEED_HELD_OUT: u64 = 2_026;
const SEED_FRESH: u64 = 31_337;

#[test]
fn held_out_names_keep_the_bounds() {
    let entries = listed();
    let matcher = EntryMatcher::new(entries.clone(), Thresholds::default());
    let is_full = sizes().0 > 100;
    let (evasions_each, names_each) = if is_full { (150, 2_000) } else { (2, 100) };
    let mut table = String::new();
    let ids = |cases: &[Case]| cases.iter().map(|case| case.entry_id.clone()).collect::<Vec<_>>();
    let mut tuned: HashSet<String> = ids(&evasions_sized(&entries, 150)).into_iter().collect();
    let drawings = [("held out", SEED_HELD_OUT), ("fresh", SEED_FRESH)];
    for (what, seed) in drawings.into_iter().take(if is_full { 2 } else { 1 }) {
        let mut drawn = Vec::new();
        for (which, (forms, most)) in
            [EVASIONS, HELD_OUT_FORMS, MORE_FORMS].into_iter().zip(HELD_OUT_CLEAR_MAX).enumerate()
        {
            writeln!(table, "{what}, forms {which}").unwrap();
            let cases = held_out_evasions(&entries, &tuned, seed, forms, evasions_each);
            let rate = percent_clear(&matcher, &cases, forms, &mut table);
            // A short run has so few names that one more is about a per cent.
            let most = if is_full { most } else { most + 6.0 };
            assert!(rate <= most, "{table}{rate:.1} % of the evasions are clear");
            drawn.extend(ids(&cases));
        }
        tuned.extend(drawn);
    }
    let mut alarms = Vec::new();
    let ways = ["name alone", "with a date of birth and country", "with initials"];
    for community in ["muslim", "other"] {
        let names = Indian::from(HELD_OUT, community);
        for (which, way) in ways.into_iter().enumerate() {
            let mut random = Random(if which == 2 { 78 } else { 77 });
            let mut alarmed = 0;
            for _ in 0..names_each {
                let name = match which {
                    2 => names.name_with_initials(&mut random),
                    _ => names.name(&mut random, community == "muslim"),
                };
                let mut question = ScreeningQuestion::person(&name);
                let date = birth_date(&mut random);
                if which == 1 {
                    question.date_of_birth = Some(date);
                    question.countries.push("IN".into());
                }
                alarmed += usize::from(matcher.screen(&question).screening != Screening::Clear);
            }
            let rate = percent(alarmed, names_each);
            writeln!(table, "| {community}, {way} | {names_each} | {rate:.1} % |").unwrap();
            alarms.push(rate);
        }
    }
    println!("{table}");
    for (rate, most) in alarms.into_iter().zip(HELD_OUT_ALARMS_MAX) {
        let most = if is_full { most } else { most + 2.0 };
        assert!(rate <= most, "{rate:.1} % of ordinary names are stopped, {most} are allowed");
    }
}

/// The most evasions of each set of forms that may be clear, and the most ordinary names that may
/// be stopped, in per cent. The last set has forms that say little: initials, and words that were
/// turned around and joined.
const HELD_OUT_CLEAR_MAX: [f64; 3] = [2.0, 2.0, 5.0];
const HELD_OUT_ALARMS_MAX: [f64; 6] = [8.0, 3.0, 2.5, 1.0, 1.0, 1.5];

/// Precision and recall on pairs of names that another project labelled.
#[test]
fn labelled_pairs_of_another_project() {
    let mut reader = csv::Reader::from_reader(PAIRS.as_bytes());
    let (mut counts, mut table) = ([[0_usize; 4]; 2], String::new());
    let is_full = sizes().0 > 100;
    for (number, record) in reader.records().enumerate() {
        if !is_full && number % 5 != 0 {
            continue;
        }
        let record = record.unwrap();
        let is_person = &record[1] == "Person";
        let kind = if is_person { EntryKind::Individual } else { EntryKind::Business };
        let mut entry = ListEntry::new(ListName::Own, "1", kind);
        entry.add_name(&record[3], false);
        let matcher = EntryMatcher::new(vec![Arc::new(entry)], Thresholds::default());
        let subject = if is_person { ScreenedAs::Person } else { ScreenedAs::Business };
        let question = ScreeningQuestion { kind: subject, ..ScreeningQuestion::person(&record[2]) };
        let found = matcher.screen(&question);
        // A hit that only says that a name was not compared, or not in full, is no match.
        let is_hit = found.hits.iter().any(|hit| hit.entry_id == "1");
        let is_match = &record[4] == "true";
        counts[usize::from(!is_person)][match (is_hit, is_match) {
            (true, true) => 0,
            (true, false) => 1,
            (false, true) => 2,
            (false, false) => 3,
        }] += 1;
        if is_hit != is_match && std::env::var("SHOW").is_ok() {
            eprintln!(
                "{}: {} | {}",
                if is_hit { "alarm" } else { "missed" },
                &record[2],
                &record[3]
            );
        }
    }
    let mut rates = Vec::new();
    for (kind, [hits, alarms, missed, passed]) in ["persons", "businesses"].iter().zip(counts) {
        let (precision, recall) = (percent(hits, hits + alarms), percent(hits, hits + missed));
        writeln!(
            table,
            "| {kind} | {} | {precision:.1} % | {recall:.1} % |",
            hits + alarms + missed + passed
        )
        .unwrap();
        rates.push((precision, recall));
    }
    println!("{table}");
    for ((precision, recall), (precision_min, recall_min)) in rates.into_iter().zip(PAIRS_MIN) {
        assert!(precision >= precision_min, "precision {precision:.1} %");
        assert!(recall >= recall_min, "recall {recall:.1} %");
    }
}

/// The least precision and recall on labelled pairs, a little below what was measured: of persons,
/// and of businesses.
const PAIRS_MIN: [(f64, f64); 2] = [(55.0, 80.0), (65.0, 70.0)];
