//! The parts of pages as data: sections of tables, facts, figures, moments and forms. The macros of
//! `blocks.html` draw them, so that pages look and behave alike.

mod words;

use askama::Template;

use super::frame::{Frame, draw};
use super::texts::Words;
use super::visit::{PageOutcome, Visit};
use crate::kernel::rupees;
use crate::kernel::{AnyId, Currency, Money, ObjectKind};

pub use words::{age, moment, word};

/// How something is shown: plain, good, in need of a person, or bad.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    Plain,
    Good,
    Attention,
    Bad,
}

impl Tone {
    pub const fn as_str(self) -> &'static str {
        match self {
            Tone::Plain => "plain",
            Tone::Good => "good",
            Tone::Attention => "attention",
            Tone::Bad => "bad",
        }
    }
    /// The tone of a status or a reason, by its word; `Plain` for a word that is not listed.
    pub fn of(word: &str) -> Tone {
        match word {
            "payout_settled" | "settled" | "completed" | "refunded" | "active" | "enabled"
            | "delivered" | "succeeded" | "cleared" | "yes" | "published" | "applied" | "clear"
            | "match" | "available" | "credit" | "exact" | "written" => Tone::Good,
            "funding_hold" | "hold" | "refund_processing" | "requires_address" | "verifying"
            | "input_required" | "failing" | "payout_returned" | "returned" | "underpaid"
            | "overpaid" | "late" | "compliance_review" | "possible_match" | "unknown"
            | "outcome_unknown" | "unmatched" | "partial" | "suspended" | "paused" | "hit"
            | "held_by_screening" | "held_for_bank" | "sender_limit" | "beneficiary_limit"
            | "account_limit" | "missing" => Tone::Attention,
            "payout_failed" | "failed" | "rejected" | "disabled" | "refused"
            | "confirmed_match" | "revoked" | "sent_fault" | "abandoned" | "does_not_do" => {
                Tone::Bad
            }
            _ => Tone::Plain,
        }
    }
}

/// What stands where there is no value.
const NO_VALUE: &str = "–";

/// A text without spaces that has more bytes than this may break anywhere.
const WORD_BYTES_MAX: usize = 20;

/// One value as a page shows it: in a table's cell, beside a fact or below a figure.
#[derive(Clone, Debug)]
pub enum PageCell {
    Text(String),
    Muted(String),
    Code(String),
    /// A hash or the like in full, which may break anywhere.
    LongCode(String),
    Link {
        href: String,
        text: String,
    },
    /// A link to another server.
    Outside {
        href: String,
        text: String,
    },
    Chip {
        text: String,
        tone: Tone,
    },
    Time {
        datetime: String,
        text: String,
    },
    /// A number, in digits of one width.
    Number(String),
    /// Values side by side. A `Several` among them is not drawn.
    Several(Vec<PageCell>),
}

impl PageCell {
    pub fn text(text: impl Into<String>) -> PageCell {
        PageCell::Text(text.into())
    }
    pub fn muted(text: impl Into<String>) -> PageCell {
        PageCell::Muted(text.into())
    }
    /// A text from outside the service. If it is long and has no spaces it may break, so that it
    /// does not widen its table.
    pub fn breakable(text: &str) -> PageCell {
        match text.len() > WORD_BYTES_MAX && !text.contains(' ') {
            true => PageCell::LongCode(text.to_owned()),
            false => PageCell::text(text),
        }
    }
    pub fn none() -> PageCell {
        PageCell::Muted(NO_VALUE.into())
    }
    pub fn is_none(&self) -> bool {
        matches!(self, PageCell::Muted(text) if text == NO_VALUE)
    }
    pub fn number(number: impl ToString) -> PageCell {
        PageCell::Number(number.to_string())
    }
    pub fn money(money: Money) -> PageCell {
        PageCell::Number(amount(money))
    }
    pub fn link(href: impl Into<String>, text: impl Into<String>) -> PageCell {
        PageCell::Link { href: href.into(), text: text.into() }
    }
    /// An identifier that leads to its object's page, cut in the middle.
    pub fn id(id: AnyId) -> PageCell {
        PageCell::Link { href: path_of(id), text: short(&id.to_string()) }
    }
    pub fn chip(words: &Words, key: &str) -> PageCell {
        PageCell::Chip { text: word(words, key), tone: Tone::of(key) }
    }
    pub fn time(at: i64) -> PageCell {
        let (datetime, text) = moment(at);
        PageCell::Time { datetime, text }
    }
    pub fn time_or_none(at: Option<i64>) -> PageCell {
        at.map_or(PageCell::none(), PageCell::time)
    }
}

/// An amount with its currency. Rupees are grouped as in India (1,00,000), others in thousands.
pub fn amount(money: Money) -> String {
    match money.currency {
        Currency::Inr if money.units < 0 => {
            format!("-₹\u{a0}{}", rupees::grouped(money).trim_start_matches('-'))
        }
        Currency::Inr => format!("₹\u{a0}{}", rupees::grouped(money)),
        other => format!("{}\u{a0}{}", rupees::grouped(money), other.as_str()),
    }
}

/// The path of an object's page. For an object without a page of its own, such as a payout, the
/// path redirects to the page that shows it.
pub fn path_of(id: AnyId) -> String {
    match id.kind {
        ObjectKind::Transfer => format!("/console/transfers/{id}"),
        ObjectKind::Beneficiary => format!("/console/beneficiaries/{id}"),
        ObjectKind::Sender => format!("/console/senders/{id}"),
        ObjectKind::WebhookEndpoint => format!("/console/webhooks/{id}"),
        _ => format!("/console/objects/{id}"),
    }
}

/// Shortens an identifier to its kind and its last characters, and another long text to its
/// beginning and end.
pub fn short(id: &str) -> String {
    let count = id.chars().count();
    match id.rsplit_once('_') {
        Some((kind, ulid)) if ulid.len() == 26 => format!("{kind}_…{}", &ulid[18..]),
        _ if count > 24 => {
            let begin: String = id.chars().take(10).collect();
            let end: String = id.chars().skip(count - 8).collect();
            format!("{begin}…{end}")
        }
        _ => id.to_owned(),
    }
}

/// The pieces of a code, such as `transfer.status.payout_processing`, between which a line may
/// break.
pub fn pieces(code: &str) -> impl Iterator<Item = &str> {
    code.split_inclusive(['.', '_', ':'])
}

#[derive(Clone, Debug)]
pub struct Column {
    pub text: String,
    pub is_number: bool,
}

#[derive(Clone, Debug)]
pub struct TableLine {
    pub cells: Vec<PageCell>,
    /// The identifier that the row's tick box sends as the field `object`; `None` for no tick box.
    pub pick: Option<String>,
    /// The page that the key Enter opens.
    pub href: Option<String>,
}

impl TableLine {
    pub fn new(cells: Vec<PageCell>) -> TableLine {
        TableLine { cells, pick: None, href: None }
    }
    /// What identifies the row each time that htmx reads the rows again.
    pub fn key(&self) -> Option<&str> {
        self.pick.as_deref().or(self.href.as_deref())
    }
    pub fn to(mut self, href: String) -> TableLine {
        self.href = Some(href);
        self
    }
}

/// The text below a list of `count` lines, if there are more; "" if it shows everything.
pub fn more_note(words: &Words, is_more: bool, count: usize) -> String {
    if is_more { words.with("page.cut", [("count", &count.to_string())]) } else { String::new() }
}

#[derive(Clone, Debug)]
pub struct Table {
    pub caption: String,
    pub columns: Vec<Column>,
    pub lines: Vec<TableLine>,
    /// The text for an empty table: what that means, and what to do next.
    pub empty: String,
    /// The path from which htmx reads the rows again at intervals.
    pub reload_path: Option<String>,
    /// The text below a table that does not show everything; "" if it does.
    pub cut: String,
}

impl Table {
    /// A table whose columns have the texts of these keys. `#` before a key makes its column one of
    /// numbers, aligned right. `empty` is a key, `caption` a text.
    pub fn new(words: &Words, caption: &str, columns: &[&str], empty: &str) -> Table {
        let column = |key: &&str| Column {
            text: words.get(key.trim_start_matches('#')).to_owned(),
            is_number: key.starts_with('#'),
        };
        Table {
            caption: caption.to_owned(),
            columns: columns.iter().map(column).collect(),
            lines: Vec::new(),
            empty: words.get(empty).to_owned(),
            reload_path: None,
            cut: String::new(),
        }
    }
    /// If there are more lines, says below the table that it shows only these.
    pub fn tell_more(&mut self, words: &Words, is_more: bool) {
        self.cut = more_note(words, is_more, self.lines.len());
    }
    /// Draws only the rows, for a page that shows the rest already.
    pub fn draw_rows(self) -> PageOutcome {
        draw(&Rows { table: self })
    }
    pub fn cells<'a>(
        &'a self,
        line: &'a TableLine,
    ) -> impl Iterator<Item = (&'a Column, &'a PageCell)> {
        self.columns.iter().zip(&line.cells)
    }
    pub fn has_picks(&self) -> bool {
        self.lines.iter().any(|line| line.pick.is_some())
    }
}

#[derive(Clone, Debug)]
pub struct Figure {
    pub label: String,
    pub value: String,
    pub below: Vec<PageCell>,
    pub tone: Tone,
    pub href: Option<String>,
}

/// One stage of a day's flow, from the quote to the UTR.
#[derive(Clone, Debug)]
pub struct Stage {
    pub label: String,
    pub count: String,
    pub amount: String,
    /// The count in percent of the day's quotes or transfers, whichever are more: 0 to 100 in steps
    /// of 5.
    pub share: i64,
    pub tone: Tone,
    pub href: Option<String>,
}

/// One moment of an object's story.
#[derive(Clone, Debug)]
pub struct StoryStep {
    pub at: PageCell,
    pub theme: String,
    pub title: String,
    pub tone: Tone,
    pub amount: Option<String>,
    pub facts: Vec<(String, PageCell)>,
    /// Whether it stands out less, because it only follows from a moment before it: a posting, or
    /// an event to the caller.
    pub is_quiet: bool,
}

/// One question of a form.
#[derive(Clone, Debug)]
pub struct Question {
    pub name: &'static str,
    pub label: String,
    /// Value and text of each choice; if there are any, the question is a `select`.
    pub choices: Vec<(String, String)>,
    /// Without choices, the input's type: `text`, `date` or `search`.
    pub kind: &'static str,
    pub value: String,
    pub is_required: bool,
}

impl Question {
    /// A line of text that may stay empty.
    pub fn new(name: &'static str, label: &str) -> Question {
        Question {
            name,
            label: label.to_owned(),
            choices: Vec::new(),
            kind: "text",
            value: String::new(),
            is_required: false,
        }
    }
}

/// A form that changes something, or that asks for a page.
#[derive(Clone, Debug)]
pub struct PageForm {
    pub action: String,
    pub is_change: bool,
    pub title: String,
    pub help: String,
    pub hidden: Vec<(&'static str, String)>,
    pub questions: Vec<Question>,
    /// Buttons: the value of the field `decision`, which is not sent if it is empty; the text; and
    /// whether the button is shown as a dangerous one.
    pub buttons: Vec<(String, String, bool)>,
}

impl PageForm {
    /// The HTML `id` of a question's field. It is made of the form's title and hidden fields, so
    /// that two forms of a page do not share one.
    pub fn field_id(&self, question: &Question) -> String {
        let hidden: String = self.hidden.iter().map(|(_, value)| value.as_str()).collect();
        let letters = format!("{}{hidden}-{}", self.title, question.name);
        letters.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
    }
}

#[derive(Clone, Debug)]
pub enum PageBlock {
    Note {
        tone: Tone,
        text: String,
    },
    Table(Table),
    /// A table whose rows are ticked and decided together, with the form below it.
    Picked {
        table: Table,
        form: PageForm,
    },
    Facts(Vec<(String, PageCell)>),
    Figures(Vec<Figure>),
    Flow(Vec<Stage>),
    Story(Vec<StoryStep>),
    Form(PageForm),
    Links(Vec<(String, String)>),
}

#[derive(Clone, Debug)]
pub struct Section {
    pub title: String,
    /// Whether it takes the whole width. If not, it stands beside another section.
    pub is_wide: bool,
    pub blocks: Vec<PageBlock>,
}

impl Section {
    pub fn wide(title: impl Into<String>, blocks: Vec<PageBlock>) -> Section {
        Section { title: title.into(), is_wide: true, blocks }
    }
    pub fn half(title: impl Into<String>, blocks: Vec<PageBlock>) -> Section {
        Section { title: title.into(), is_wide: false, blocks }
    }
}

/// A whole page, as data.
pub struct ConsolePage {
    pub title: String,
    /// Beside the title: the status, and the account and mode.
    pub chips: Vec<PageCell>,
    /// The full identifier, for copying.
    pub id: Option<String>,
    /// The path from which htmx loads `reloaded` again at intervals.
    pub reload_path: Option<String>,
    /// The part that is reloaded at intervals. It has no forms, because a reload could lose what
    /// somebody types into one.
    pub reloaded: Vec<Section>,
    /// The part that is not reloaded.
    pub still: Vec<Section>,
    /// The section of the console that this page belongs to (`nav.rs`), and not a [`Section`] of
    /// the page.
    pub nav_section: &'static str,
}

impl ConsolePage {
    pub fn new(nav_section: &'static str, title: impl Into<String>) -> ConsolePage {
        ConsolePage {
            title: title.into(),
            chips: Vec::new(),
            id: None,
            reload_path: None,
            reloaded: Vec::new(),
            still: Vec::new(),
            nav_section,
        }
    }

    pub fn draw(self, visit: &Visit) -> PageOutcome {
        draw(&Whole { frame: visit.frame(self.nav_section), page: self })
    }

    /// Draws only `reloaded`.
    pub fn draw_reloaded(self, visit: &Visit) -> PageOutcome {
        draw(&Part { frame: visit.frame(self.nav_section), sections: self.reloaded })
    }
}

#[derive(Template)]
#[template(path = "console/blocks/page.html")]
struct Whole<'a> {
    frame: Frame<'a>,
    page: ConsolePage,
}

#[derive(Template)]
#[template(path = "console/blocks/part.html")]
struct Part<'a> {
    frame: Frame<'a>,
    sections: Vec<Section>,
}

#[derive(Template)]
#[template(path = "console/blocks/rows.html")]
struct Rows {
    table: Table,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rupees_are_grouped_as_in_india_and_usdt_in_thousands() {
        assert_eq!(amount(Money::new(123_456_789, Currency::Inr)), "₹\u{a0}12,34,567.89");
        assert_eq!(amount(Money::new(-10_000_000, Currency::Inr)), "-₹\u{a0}1,00,000.00");
        assert_eq!(amount(Money::new(1_000_000_000, Currency::Usdt)), "1,000.00\u{a0}USDT");
    }

    #[test]
    fn a_code_may_break_after_its_points_underscores_and_colons() {
        for (code, wanted) in [
            (
                "transfer.status.payout_processing",
                vec!["transfer.", "status.", "payout_", "processing"],
            ),
            ("webhook_endpoints:read", vec!["webhook_", "endpoints:", "read"]),
            ("HDFC0000001 …5678", vec!["HDFC0000001 …5678"]),
            ("ends_", vec!["ends_"]),
        ] {
            let found: Vec<&str> = pieces(code).collect();
            assert_eq!(found, wanted);
            assert_eq!(found.concat(), code, "a copy of it is the same");
        }
    }

    #[test]
    fn an_identifier_is_cut_to_its_kind_and_its_end() {
        assert_eq!(short("transfer_01M818H34JNYTFMZS06HFQGK2K"), "transfer_…6HFQGK2K");
        assert_eq!(short("abc"), "abc");
        assert_eq!(short(&"ab".repeat(32)), "ababababab…abababab");
    }
}
