//! Moments of a story as pages show them: what happened to an object, what was decided about it,
//! and what its caller was told.

use super::super::blocks::{
    PageBlock, PageCell, Section, StoryStep, Tone, more_note, path_of, short, word,
};
use super::super::visit::Visit;
use super::fact;
use crate::decisions::Decision;
use crate::kernel::AnyId;
use crate::oversight::story::{Announced, Delivered};
use crate::screening::hit::{HitDecision, HitRow};

/// The most moments of a story that a page shows.
pub const STEPS_MAX: usize = 100;
/// The most of the newest moments that a page can leave out to show older ones. A request also
/// reads the moments that it leaves out, so this limits its work. The oldest moments that any page
/// can show are the [`STEPS_MAX`] before these.
const SKIPPED_MAX: usize = 10_000;

/// Which part of a story a page shows.
#[derive(Clone, Copy)]
pub struct StoryPart {
    /// How many of the newest moments are left out.
    skipped_count: usize,
}

impl StoryPart {
    /// The part that the page's address asks for; by default the newest.
    pub fn asked(visit: &Visit) -> StoryPart {
        StoryPart::after(visit.query("skip").parse().unwrap_or(0))
    }

    /// The part that leaves out this many of the newest moments.
    fn after(skipped_count: usize) -> StoryPart {
        StoryPart { skipped_count: skipped_count.min(SKIPPED_MAX) }
    }

    /// The part with the next older moments. `count` is how many moments this part shows. `None` if
    /// the older part would have to leave out more than [`SKIPPED_MAX`] moments.
    fn older(self, count: usize) -> Option<StoryPart> {
        let skipped_count = self.skipped_count + count;
        (skipped_count <= SKIPPED_MAX).then_some(StoryPart { skipped_count })
    }

    /// How many of the newest moments of each kind have to be read, to know which ones this part
    /// shows and whether there are older ones.
    pub fn rows_max(self) -> i64 {
        (self.skipped_count + STEPS_MAX + 1) as i64
    }

    /// The section of the story, in order of time. If there are older moments, a note says so. A
    /// link leads to them, unless they are too far back to be shown. `path` is the page's.
    pub fn section(self, visit: &Visit, path: &str, mut moments: Vec<(i64, StoryStep)>) -> Section {
        let words = visit.words;
        moments.sort_by_key(|(at, _)| *at);
        moments.truncate(moments.len().saturating_sub(self.skipped_count));
        let first = moments.len().saturating_sub(STEPS_MAX);
        let steps: Vec<StoryStep> = moments.drain(first..).map(|(_, step)| step).collect();
        let mut blocks = Vec::new();
        if first > 0 {
            let note = |text| PageBlock::Note { tone: Tone::Attention, text };
            match self.older(steps.len()) {
                Some(older) => {
                    blocks.push(note(more_note(words, true, steps.len())));
                    let older = format!("{path}?skip={}", older.skipped_count);
                    let text = words.get("page.older").to_owned();
                    blocks.push(PageBlock::Links(vec![(older, text)]));
                }
                None => {
                    let count = (self.skipped_count + steps.len()).to_string();
                    let text = words.with("page.story_cut", [("count", count.as_str())]);
                    blocks.push(note(text));
                }
            }
        }
        blocks.push(PageBlock::Story(steps));
        Section::wide(words.get("transfer.story"), blocks)
    }
}

/// A moment. `theme` is the key of a text, and `what` is a word of the service.
pub fn step(visit: &Visit, at: i64, theme: &str, what: &str) -> StoryStep {
    StoryStep {
        at: PageCell::time(at),
        theme: visit.words.get(theme).to_owned(),
        title: word(visit.words, what),
        tone: Tone::of(what),
        amount: None,
        facts: Vec::new(),
        is_quiet: false,
    }
}

/// A decision as a moment of a story. Decisions are stored with the instant. A story shows the
/// account's business time, which is `ahead_seconds` later than the instant.
pub fn decided(visit: &Visit, decision: &Decision, ahead_seconds: i64) -> (i64, StoryStep) {
    let at = decision.decided_at + ahead_seconds;
    let what = format!("decided_{}", decision.decision);
    let mut made = step(visit, at, "theme.decision", &what);
    made.tone = Tone::Attention;
    made.facts = vec![
        fact(visit, "fact.by", PageCell::text(decision.by.actor())),
        fact(visit, "fact.why", PageCell::text(decision.by.reason())),
    ];
    let second = decision.by.approved_by();
    if !second.is_empty() {
        made.facts.insert(1, fact(visit, "fact.approved_by", PageCell::text(second)));
    }
    (at, made)
}

/// Like [`decided`], with the object that the decision was about.
pub fn decided_about(visit: &Visit, decision: &Decision, ahead_seconds: i64) -> (i64, StoryStep) {
    let (at, mut made) = decided(visit, decision, ahead_seconds);
    if let Some(id) = AnyId::parse(&decision.subject) {
        made.facts.insert(0, fact(visit, "fact.about", PageCell::id(id)));
    }
    (at, made)
}

/// A hit as a moment, and what was decided about it as another.
pub fn found(visit: &Visit, hit: &HitRow) -> Vec<(i64, StoryStep)> {
    let about = |mut made: StoryStep| {
        let (list, evidence) =
            (visit.words.listed(&hit.list, &hit.entry_id), visit.words.evidence(&hit.evidence));
        made.facts = vec![
            fact(visit, "fact.list", PageCell::Text(list)),
            fact(visit, "fact.evidence", PageCell::Text(evidence)),
        ];
        made
    };
    let mut steps = vec![(hit.created, about(step(visit, hit.created, "theme.check", "hit")))];
    if let (Some(decision), Some(at)) = (hit.decision, hit.decided_at) {
        let mut made = about(step(visit, at, "theme.check", decision.as_str()));
        let by = hit.decided_by.as_deref().map(|by| decided_by(visit, decision.as_str(), by));
        made.facts.extend(by.map(|by| fact(visit, "fact.decided_by", PageCell::Text(by))));
        steps.push((at, made));
    }
    steps
}

/// Who decided about a hit: a person's name, or for a withdrawn hit a word of the service.
pub fn decided_by(visit: &Visit, decision: &str, by: &str) -> String {
    match HitDecision::parse(decision) {
        Some(HitDecision::Withdrawn) => word(visit.words, by),
        _ => by.to_owned(),
    }
}

/// An event, and how it was delivered.
pub fn announced(visit: &Visit, announced: &Announced) -> (i64, StoryStep) {
    let event = &announced.event;
    let mut made = step(visit, event.created, "theme.event", "announced");
    made.is_quiet = true;
    made.facts = vec![
        fact(visit, "col.event", PageCell::Code(event.event_type.clone())),
        fact(visit, "col.id", PageCell::Code(short(&event.id.to_string()))),
    ];
    made.facts.extend(announced.deliveries.iter().map(|found| delivered(visit, found)));
    (event.created, made)
}

/// What became of a delivery: its status, how often it was tried, and what the last attempts were
/// answered.
fn delivered(visit: &Visit, found: &Delivered) -> (String, PageCell) {
    let Delivered { delivery, attempts } = found;
    let words = visit.words;
    let count = delivery.attempts_count.to_string();
    let text = words.with("transfer.attempts", [("count", count.as_str())]);
    let mut cells = vec![
        PageCell::chip(words, delivery.status.as_str()),
        PageCell::link(path_of(delivery.endpoint_id.any()), text),
    ];
    cells.extend(attempts.iter().map(|attempt| {
        let answer = match (attempt.http_status, &attempt.error) {
            (Some(status), _) => status.to_string(),
            (None, Some(error)) => word(words, error),
            (None, None) => "–".to_owned(),
        };
        PageCell::Muted(format!("{answer}\u{a0}·\u{a0}{}\u{a0}ms", attempt.duration_milliseconds))
    }));
    fact(visit, "fact.delivery", PageCell::Several(cells))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_has_an_oldest_part() {
        let (mut part, mut parts_count) = (StoryPart::after(0), 1);
        while let Some(older) = part.older(STEPS_MAX) {
            (part, parts_count) = (older, parts_count + 1);
        }
        assert_eq!(parts_count, 1 + SKIPPED_MAX / STEPS_MAX);
        let rows_max = (SKIPPED_MAX + STEPS_MAX + 1) as i64;
        for asked in [SKIPPED_MAX, SKIPPED_MAX + 1, i64::MAX as usize, usize::MAX] {
            assert_eq!(StoryPart::after(asked).rows_max(), rows_max, "{asked}");
        }
    }
}
