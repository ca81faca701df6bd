//! What to do about an alarm: its part of docs/run.md, which is in the binary.

use askama::Template;

use super::alarms::{self, AlarmShownBy};
use super::blocks::{ConsolePage, PageBlock, PageCell, Section, Table, TableLine, Tone};
use super::frame::{Frame, draw};
use super::visit::{Failure, PageOutcome, Visit};
use crate::guides::markdown;

const RUN: &str = include_str!("../../docs/run.md");

/// The path of an alarm's runbook in the console.
pub fn path_of(alarm: &str) -> String {
    format!("/console/runbooks/{alarm}")
}

/// A link to an alarm's runbook.
pub fn link(alarm: &str) -> PageCell {
    PageCell::link(path_of(alarm), format!("docs/run.md#{}", alarm.to_lowercase()))
}

/// The page of all alarms: where each is shown, and its runbook.
pub async fn list(visit: Visit) -> PageOutcome {
    let words = visit.words;
    let mut page = ConsolePage::new("home", words.get("runbooks.title"));
    let columns = ["col.alarm", "col.teller"];
    let mut table = Table::new(words, words.get("runbooks.title"), &columns, "search.nothing");
    for (name, shown_by) in alarms::ALARMS {
        let shown_by = match shown_by {
            AlarmShownBy::Overview => "runbooks.overview",
            AlarmShownBy::Prometheus => "runbooks.prometheus",
        };
        let line = TableLine::new(vec![
            PageCell::link(path_of(name), alarms::title(words, name)),
            PageCell::muted(words.get(shown_by)),
        ]);
        table.lines.push(line.to(path_of(name)));
    }
    let note = PageBlock::Note { tone: Tone::Plain, text: words.get("runbooks.help").to_owned() };
    page.still.push(Section::wide("", vec![note, PageBlock::Table(table)]));
    page.draw(&visit)
}

/// The text below the heading with an alarm's name, up to the next heading of level 2 or 3.
fn text_of(alarm: &str) -> Option<&'static str> {
    let is_name = !alarm.is_empty() && alarm.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let heading = format!("\n### {alarm}\n");
    let (_, text) = RUN.split_once(&heading).filter(|_| is_name)?;
    Some(
        ["\n### ", "\n## "].iter().fold(text, |text, next| text.split(next).next().unwrap_or(text)),
    )
}

#[derive(Template)]
#[template(path = "console/runbook.html")]
struct RunbookPage<'a> {
    frame: Frame<'a>,
    alarm: &'a str,
    html: String,
}

pub async fn page(visit: Visit) -> PageOutcome {
    let alarm = visit.path(0);
    let text = text_of(alarm).ok_or(Failure::NotFound)?;
    let html = markdown::render(text).html;
    draw(&RunbookPage { frame: visit.frame("home"), alarm, html })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alarm_has_its_runbook() {
        let texts: toml::Table = include_str!("texts/en.toml").parse().unwrap();
        let alarms = texts["alarm"].as_table().unwrap();
        assert!(alarms.len() > 5);
        for alarm in alarms.keys() {
            let text = text_of(alarm).unwrap_or_else(|| panic!("{alarm} has no runbook"));
            assert!(text.trim().len() > 50 && !text.contains("\n#"), "{alarm}: {text}");
        }
        for none in ["", "Hundi", "HundiNone", "../run", "HundiDown\n"] {
            assert_eq!(text_of(none), None, "{none}");
        }
    }
}
