//! Patterns taken apart: whether a text matches, and texts at the edges of what matches.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Texts that are made of one pattern at most.
const SAMPLES_MAX: usize = 40;
/// Ranges of characters whose ends are tried.
const RANGES_MAX: usize = 6;
/// Characters that are put where they may not belong.
const STRANGERS: [char; 12] =
    ['0', 'a', 'Z', '-', '.', ' ', '@', '/', '\u{e9}', '\u{202d}', '\u{7}', '#'];

pub struct Pattern(Hir);

impl Pattern {
    pub fn parse(pattern: &str) -> Pattern {
        Pattern(regex_syntax::parse(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}")))
    }

    /// Whether it is found in a text, as JSON Schema asks.
    pub fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        (0..=text.len()).any(|start| walk(&self.0, &text, start, &mut |_| true))
    }

    /// Texts that match, at the edges of its ranges and counts.
    pub fn samples(&self) -> Vec<String> {
        samples(&self.0)
    }
}

/// Whether the pattern matches from a place on so that `rest` accepts where it ends.
fn walk(hir: &Hir, text: &[char], at: usize, rest: &mut dyn FnMut(usize) -> bool) -> bool {
    match hir.kind() {
        HirKind::Empty => rest(at),
        HirKind::Literal(literal) => {
            let literal: Vec<char> = std::str::from_utf8(&literal.0).unwrap().chars().collect();
            text[at..].starts_with(&literal) && rest(at + literal.len())
        }
        HirKind::Class(class) => {
            text.get(at).is_some_and(|character| holds(class, *character)) && rest(at + 1)
        }
        HirKind::Look(Look::Start) => at == 0 && rest(at),
        HirKind::Look(Look::End) => at == text.len() && rest(at),
        HirKind::Look(other) => panic!("{other:?} is not known here"),
        HirKind::Capture(capture) => walk(&capture.sub, text, at, rest),
        HirKind::Alternation(ways) => ways.iter().any(|way| walk(way, text, at, rest)),
        HirKind::Concat(parts) => parts_walk(parts, text, at, rest),
        HirKind::Repetition(repetition) => {
            let (min, max) = (repetition.min, repetition.max.unwrap_or(u32::MAX));
            repeat(&repetition.sub, (min, max), text, at, rest)
        }
    }
}

fn parts_walk(
    parts: &[Hir],
    text: &[char],
    at: usize,
    rest: &mut dyn FnMut(usize) -> bool,
) -> bool {
    match parts {
        [] => rest(at),
        [first, others @ ..] => {
            walk(first, text, at, &mut |next| parts_walk(others, text, next, rest))
        }
    }
}

fn repeat(
    sub: &Hir,
    (min, max): (u32, u32),
    text: &[char],
    at: usize,
    rest: &mut dyn FnMut(usize) -> bool,
) -> bool {
    let goes_on = max > 0
        && walk(sub, text, at, &mut |next| {
            next > at && repeat(sub, (min.saturating_sub(1), max - 1), text, next, rest)
        });
    goes_on || (min == 0 && rest(at))
}

fn holds(class: &Class, character: char) -> bool {
    ranges(class).iter().any(|(first, last)| (*first..=*last).contains(&character))
}

fn ranges(class: &Class) -> Vec<(char, char)> {
    match class {
        Class::Unicode(class) => {
            class.ranges().iter().map(|range| (range.start(), range.end())).collect()
        }
        Class::Bytes(class) => class
            .ranges()
            .iter()
            .map(|range| (char::from(range.start()), char::from(range.end())))
            .collect(),
    }
}

fn samples(hir: &Hir) -> Vec<String> {
    let mut found = match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => vec![String::new()],
        HirKind::Literal(literal) => vec![String::from_utf8(literal.0.to_vec()).unwrap()],
        HirKind::Class(class) => ranges(class)
            .into_iter()
            .take(RANGES_MAX)
            .flat_map(|(first, last)| [first.to_string(), last.to_string()])
            .collect(),
        HirKind::Capture(capture) => samples(&capture.sub),
        HirKind::Alternation(ways) => ways.iter().flat_map(samples).collect(),
        HirKind::Concat(parts) => {
            let each: Vec<Vec<String>> = parts.iter().map(samples).collect();
            let base: Vec<&str> = each.iter().map(|of_part| of_part[0].as_str()).collect();
            let mut found = vec![base.concat()];
            for (place, of_part) in each.iter().enumerate() {
                found.extend(of_part[1..].iter().map(|sample| {
                    let mut parts = base.clone();
                    parts[place] = sample;
                    parts.concat()
                }));
            }
            found
        }
        HirKind::Repetition(repetition) => {
            let min = repetition.min as usize;
            let max = repetition.max.map_or(min + 1, |max| max as usize);
            let of_one = samples(&repetition.sub);
            let mut found = vec![of_one[0].repeat(min), of_one[0].repeat(max)];
            found.extend(of_one[1..].iter().map(|sample| sample.repeat(min.max(1))));
            found
        }
    };
    found.truncate(SAMPLES_MAX);
    found
}

/// The text with so many characters: the first ones, or its last one again and again.
pub fn of_length(text: &str, length: usize) -> String {
    let last = text.chars().last().unwrap_or('a');
    text.chars().chain(std::iter::repeat(last)).take(length).collect()
}

/// The text with one character left out, exchanged or added.
pub fn mutants(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let length = characters.len();
    let mut places = vec![0, 1, length / 2, length - 1];
    places.retain(|place| *place < length);
    places.dedup();
    let mut found = Vec::new();
    for place in places {
        let mut shorter = characters.clone();
        shorter.remove(place);
        found.push(shorter.iter().collect());
        for (index, stranger) in STRANGERS.into_iter().enumerate() {
            let mut changed = characters.clone();
            if index % 2 == 0 {
                changed[place] = stranger;
            } else {
                changed.insert(place, stranger);
            }
            found.push(changed.iter().collect());
        }
    }
    found.extend(STRANGERS.map(|stranger| format!("{text}{stranger}")));
    found
}
