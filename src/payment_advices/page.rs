//! The payment advice as a page: one A4 sheet of PDF/A-2a and PDF/UA-1, with embedded fonts and a
//! code that leads to the page where anybody can verify it. The same advice gives the same bytes.

use std::num::NonZeroU16;

use krilla::action::{Action, LinkAction};
use krilla::annotation::{Annotation, LinkAnnotation, Target};
use krilla::color::rgb;
use krilla::configure::{Accessibility, Archival, ConfigurationBuilder};
use krilla::destination::XyzDestination;
use krilla::geom::{Path, PathBuilder, Point, Rect, Size, Transform};
use krilla::metadata::{DateTime, Metadata};
use krilla::num::NormalizedF32;
use krilla::outline::{Outline, OutlineNode};
use krilla::page::PageSettings;
use krilla::paint::Fill;
use krilla::surface::Surface;
use krilla::tagging::{
    Artifact, ArtifactType, ContentTag, Identifier, Node, SpanTag, TableHeaderScope, Tag, TagGroup,
    TagTree,
};
use krilla::{Document, SerializeSettings};
use qrcodegen::{QrCode, QrCodeEcc};

use super::text::{self, Line, Weight};
use super::{Advice, indian_date, indian_time};
use crate::kernel::rupees::grouped;
use crate::kernel::state::Status;
use crate::kernel::{Money, StoreError};
use crate::payouts::state::PayoutStatus;

/// A4 in points.
const PAGE_WIDTH: f32 = 595.28;
const PAGE_HEIGHT: f32 = 841.89;
const MARGIN: f32 = 46.0;
const WIDTH: f32 = PAGE_WIDTH - 2.0 * MARGIN;
const LABEL_WIDTH: f32 = 132.0;
const CODE_WIDTH: f32 = 88.0;
/// Small enough that the address of a usual server stands on one line.
const URL_SIZE: f32 = 7.2;

/// Sizes that the table is tried in until it fits the page, with the lines that one value can have;
/// more end in an ellipsis. The last one always fits. The JSON document has every value whole.
const TRIALS: [(f32, usize); 6] = [(9.0, 6), (8.5, 6), (8.0, 6), (7.5, 4), (7.0, 3), (7.0, 2)];
/// Deposits that the page names.
const DEPOSITS_SHOWN_MAX: usize = 2;

const INK: (u8, u8, u8) = (24, 28, 36);
const GREY: (u8, u8, u8) = (92, 100, 112);
const RULE: (u8, u8, u8) = (196, 202, 210);
const SHADE: (u8, u8, u8) = (243, 245, 248);
const MARK: (u8, u8, u8) = (243, 233, 233);
const ALERT: (u8, u8, u8) = (166, 28, 28);

fn fonts() -> StoreError {
    StoreError::Broken("the fonts of the payment advice do not load".into())
}

fn fill(color: (u8, u8, u8)) -> Option<Fill> {
    Some(Fill {
        paint: rgb::Color::new(color.0, color.1, color.2).into(),
        opacity: NormalizedF32::ONE,
        rule: Default::default(),
    })
}

/// A row of the table.
struct Row {
    label: &'static str,
    value: String,
    is_strong: bool,
}

struct Section {
    title: &'static str,
    rows: Vec<Row>,
}

fn row(label: &'static str, value: impl Into<String>) -> Row {
    Row { label, value: value.into(), is_strong: false }
}

fn with_currency(amount: Money) -> String {
    format!("{} {}", amount.currency.as_str(), grouped(amount))
}

fn sections(advice: &Advice) -> Vec<Section> {
    let unknown = || "not known".to_owned();
    let mut payment = vec![
        row("Reference (UTR)", advice.unique_transaction_reference.clone().unwrap_or_else(unknown)),
        row("Paid by", advice.method.as_str().to_uppercase()),
        row("Value date and time", advice.settled_at.map_or_else(unknown, indian_time)),
    ];
    if advice.status == PayoutStatus::Returned {
        let at = advice.returned_at.map_or_else(unknown, indian_time);
        payment.push(Row {
            label: "Returned",
            value: format!("sent back by the beneficiary's bank on {at}"),
            is_strong: true,
        });
    }
    payment.push(row("Purpose", format!("{} - {}", advice.purpose_code, advice.purpose)));
    let account =
        advice.debited_account_last4.as_ref().map(|last4| format!("account ending in {last4}"));
    let paid_through: Vec<String> = advice.sponsor_bank.iter().cloned().chain(account).collect();
    if !paid_through.is_empty() {
        payment.push(row("Paid through", paid_through.join(", ")));
    }

    let mut remitter = vec![row("Name", advice.sender.name.clone())];
    if let Some(address) = &advice.sender.address {
        let parts = [
            Some(&address.line1),
            Some(&address.city),
            address.state.as_ref(),
            address.postal_code.as_ref(),
            Some(&address.country),
        ];
        remitter.push(row(
            "Address",
            parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(", "),
        ));
    }
    remitter.push(row("Country", advice.sender.country.clone()));

    let beneficiary = &advice.beneficiary;
    let mut receiver = vec![
        row("Name", beneficiary.name.clone()),
        row("Account", format!("NRE account ending in {}", beneficiary.account_number_last4)),
        row("IFSC", beneficiary.ifsc.clone()),
    ];
    let bank = [beneficiary.bank_name.as_deref(), beneficiary.branch_name.as_deref()];
    let bank: Vec<&str> = bank.into_iter().flatten().collect();
    if !bank.is_empty() {
        receiver.push(row("Bank and branch", bank.join(", ")));
    }

    let locked = advice
        .rate_locked_at
        .map(|at| format!(", locked on {}", indian_date(at)))
        .unwrap_or_default();
    let mut amounts = vec![
        row("Amount sent", with_currency(advice.amount_sent)),
        row(
            "Exchange rate",
            format!("{} INR for 1 {}{locked}", advice.rate, advice.amount_sent_currency.as_str()),
        ),
        row("Gross amount", with_currency(advice.amount_gross)),
    ];
    if advice.fee.is_zero() {
        amounts.push(row("Fee", "none"));
    } else {
        amounts.push(row(
            "Fee",
            format!("{} (= {})", with_currency(advice.amount_fee), with_currency(advice.fee)),
        ));
    }
    if let Some(gst) = &advice.gst {
        let basis = format!("{} % of {}", gst.rate_percent, with_currency(gst.taxable_value));
        amounts.push(row("GST", format!("{} ({basis})", with_currency(gst.amount))));
    }
    amounts.push(Row { label: "Net amount", value: with_currency(advice.amount), is_strong: true });
    if let Some(words) = &advice.amount_in_words {
        amounts.push(row("In words", words.clone()));
    }

    let mut origin = vec![
        row("Transfer", advice.transfer_id.to_string()),
        row("Payout", advice.payout_id.to_string()),
    ];
    for deposit in advice.deposits.iter().take(DEPOSITS_SHOWN_MAX) {
        let amount = format!("{} {}", grouped(deposit.amount), deposit.asset);
        origin.push(row(
            "Funded by",
            format!(
                "{amount} on {}, transaction {}",
                deposit.chain.to_uppercase(),
                deposit.transaction_hash
            ),
        ));
    }
    let more = advice.deposits_count - i64::try_from(DEPOSITS_SHOWN_MAX).unwrap_or(i64::MAX);
    if more > 0 {
        origin.push(row(
            "Funded by",
            format!("{more} more; the JSON document lists them (up to 20)"),
        ));
    }
    vec![
        Section { title: "Payment", rows: payment },
        Section { title: "Remitter", rows: remitter },
        Section { title: "Beneficiary", rows: receiver },
        Section { title: "Amounts", rows: amounts },
        Section { title: "Origin of the funds", rows: origin },
    ]
}

fn notes(advice: &Advice) -> Vec<String> {
    let mut notes = vec![advice.statement.to_owned()];
    let asked = advice.sponsor_bank.as_deref().map_or(String::new(), |bank| format!(" or {bank}"));
    notes.push(format!(
        "For a FIRC or FIRA ask the beneficiary's bank{asked}, and give the reference (UTR) above."
    ));
    notes
}

/// The table at one size, measured.
struct Layout {
    size: f32,
    sections: Vec<(&'static str, Vec<(Line, Vec<Line>)>)>,
    height: f32,
}

impl Layout {
    fn line_height(&self) -> f32 {
        self.size * 1.38
    }
    fn row_height(&self, lines: usize) -> f32 {
        lines.max(1) as f32 * self.line_height() + self.size * 0.32
    }
    fn title_height(&self) -> f32 {
        self.size * 2.75
    }

    fn measured(sections: &[Section], size: f32, lines_max: usize) -> Option<Layout> {
        let mut layout = Layout { size, sections: Vec::new(), height: 0.0 };
        let width = (WIDTH - LABEL_WIDTH) / size;
        for section in sections {
            layout.height += layout.title_height();
            let mut rows = Vec::new();
            for row in &section.rows {
                let weight = if row.is_strong { Weight::Bold } else { Weight::Regular };
                let lines = text::wrap(&row.value, weight, width, lines_max)?;
                layout.height += layout.row_height(lines.len());
                rows.push((text::shape(row.label, Weight::Regular)?, lines));
            }
            layout.sections.push((section.title, rows));
        }
        Some(layout)
    }

    /// The table in the largest size that fits `height`.
    fn fitting(sections: &[Section], height: f32) -> Option<Layout> {
        let mut smallest = None;
        for (size, lines_max) in TRIALS {
            let layout = Layout::measured(sections, size, lines_max)?;
            if layout.height <= height {
                return Some(layout);
            }
            smallest = Some(layout);
        }
        smallest
    }
}

/// Draws and tags at once, so that what is seen is also read aloud, in the same order.
struct Pen<'a, 'b> {
    surface: &'a mut Surface<'b>,
}

impl Pen<'_, '_> {
    fn line(&mut self, line: &Line, x: f32, y: f32, size: f32, color: (u8, u8, u8)) -> Identifier {
        self.surface.set_fill(fill(color));
        let id = self.surface.start_tagged(ContentTag::Span(SpanTag::empty()));
        line.draw(self.surface, x, y, size, false);
        self.surface.end_tagged();
        id
    }

    fn text(
        &mut self,
        shown: &str,
        weight: Weight,
        x: f32,
        y: f32,
        size: f32,
        color: (u8, u8, u8),
    ) -> Result<Identifier, StoreError> {
        let line = text::shape(shown, weight).ok_or_else(fonts)?;
        Ok(self.line(&line, x, y, size, color))
    }

    /// The same, ending at `right`.
    fn text_to(
        &mut self,
        shown: &str,
        weight: Weight,
        right: f32,
        y: f32,
        size: f32,
        color: (u8, u8, u8),
    ) -> Result<Identifier, StoreError> {
        let line = text::shape(shown, weight).ok_or_else(fonts)?;
        Ok(self.line(&line, right - line.width * size, y, size, color))
    }

    /// What only decorates.
    fn shape(&mut self, kind: ArtifactType, path: Option<Path>, color: (u8, u8, u8)) {
        let Some(path) = path else { return };
        self.surface.start_tagged(ContentTag::Artifact(Artifact::with_kind(kind)));
        self.surface.set_fill(fill(color));
        self.surface.draw_path(&path);
        self.surface.end_tagged();
    }

    fn bar(&mut self, x: f32, y: f32, width: f32, height: f32, color: (u8, u8, u8)) {
        self.shape(ArtifactType::Layout, rectangle(x, y, width, height), color);
    }

    fn mark(&mut self, shown: &str) -> Result<(), StoreError> {
        let line = text::shape(shown, Weight::Bold).ok_or_else(fonts)?;
        let size = 560.0 / line.width.max(1.0);
        self.surface
            .start_tagged(ContentTag::Artifact(Artifact::with_kind(ArtifactType::Watermark)));
        self.surface.set_fill(fill(MARK));
        self.surface.push_transform(&Transform::from_rotate_at(
            -52.0,
            PAGE_WIDTH / 2.0,
            PAGE_HEIGHT / 2.0,
        ));
        // As outlines, so that the mark is no part of the text.
        line.draw(
            self.surface,
            (PAGE_WIDTH - line.width * size) / 2.0,
            PAGE_HEIGHT / 2.0 + size * 0.36,
            size,
            true,
        );
        self.surface.pop();
        self.surface.end_tagged();
        Ok(())
    }
}

fn rectangle(x: f32, y: f32, width: f32, height: f32) -> Option<Path> {
    let mut path = PathBuilder::new();
    path.push_rect(Rect::from_xywh(x, y, width, height)?);
    path.finish()
}

/// The dark modules of a code, as one path.
fn code_path(code: &QrCode, x: f32, y: f32, width: f32) -> Option<Path> {
    let module = width / code.size() as f32;
    let mut path = PathBuilder::new();
    for row in 0..code.size() {
        let mut column = 0;
        while column < code.size() {
            let start = column;
            while column < code.size() && code.get_module(column, row) {
                column += 1;
            }
            if column > start {
                let (left, length) = (x + start as f32 * module, (column - start) as f32 * module);
                path.push_rect(Rect::from_xywh(left, y + row as f32 * module, length, module)?);
            }
            column += 1;
        }
    }
    path.finish()
}

fn heading(level: u16, title: &str, id: Identifier) -> TagGroup {
    let level = NonZeroU16::new(level).unwrap_or(NonZeroU16::MIN);
    TagGroup::with_children(Tag::Hn(level, Some(title.to_owned())), vec![Node::Leaf(id)])
}

fn paragraph(ids: Vec<Identifier>) -> TagGroup {
    TagGroup::with_children(Tag::P, ids.into_iter().map(Node::Leaf).collect())
}

/// Writes the page.
pub fn write(advice: &Advice) -> Result<Vec<u8>, StoreError> {
    let broken =
        |what: String| StoreError::Broken(format!("a payment advice cannot be written: {what}"));
    let configuration = ConfigurationBuilder::new()
        .with_archival_validator(Archival::A2_A)
        .with_accessibility_validator(Accessibility::UA1)
        .finish()
        .map_err(|error| broken(format!("{error:?}")))?;
    let mut document =
        Document::new_with(SerializeSettings { configuration, ..SerializeSettings::default() });
    let settings = PageSettings::new(
        Size::from_wh(PAGE_WIDTH, PAGE_HEIGHT).ok_or_else(|| broken("size".into()))?,
    );
    let mut page = document.start_page_with(settings);
    let mut surface = page.surface();
    let mut tree = TagTree::new().with_lang(Some("en-IN".into()));
    let mut pen = Pen { surface: &mut surface };
    let is_returned = advice.status == PayoutStatus::Returned;
    if !advice.livemode {
        pen.mark("TEST")?;
    }

    // Head.
    let title = "Payment advice";
    let right = MARGIN + WIDTH;
    let mut y = 58.0;
    let id = pen.text("Payment advice - not a FIRC/FIRA", Weight::Bold, MARGIN, y, 17.0, INK)?;
    tree.push(heading(1, title, id));
    y += 17.0;
    let date = advice.issued_at.map(|at| format!(" of {}", indian_date(at))).unwrap_or_default();
    for shown in
        [format!("Issued by {}", advice.issuer), format!("No. {}{date}", advice.advice_number)]
    {
        for line in text::wrap(&shown, Weight::Regular, WIDTH / 9.0, 2).ok_or_else(fonts)? {
            tree.push(paragraph(vec![pen.line(&line, MARGIN, y, 9.0, GREY)]));
            y += 12.0;
        }
    }
    y -= 4.0;
    pen.bar(MARGIN, y, WIDTH, 1.2, INK);
    if !advice.livemode {
        pen.bar(MARGIN, y + 8.0, WIDTH, 19.0, ALERT);
        let notice =
            "TEST - made in test mode. No money moved; this page is no evidence of a payment.";
        tree.push(paragraph(vec![pen.text(
            notice,
            Weight::Bold,
            MARGIN + 9.0,
            y + 20.8,
            9.0,
            (255, 255, 255),
        )?]));
        y += 27.0;
    }

    // The one figure that everybody looks for.
    y += 8.0;
    let words = advice.amount_in_words.clone().unwrap_or_default();
    let words = text::wrap(&words, Weight::Regular, (WIDTH - 20.0) / 9.0, 2).ok_or_else(fonts)?;
    let height = 49.0 + words.len() as f32 * 12.5;
    pen.bar(MARGIN, y, WIDTH, height, if advice.livemode { SHADE } else { (246, 240, 240) });
    let caption = if is_returned {
        "Paid, and sent back by the beneficiary's bank"
    } else {
        "Net amount credited"
    };
    let color = if is_returned { ALERT } else { INK };
    let mut ids = vec![pen.text(
        caption,
        Weight::Regular,
        MARGIN + 10.0,
        y + 15.0,
        9.0,
        if is_returned { ALERT } else { GREY },
    )?];
    ids.push(pen.text(
        &format!("₹ {}", grouped(advice.amount)),
        Weight::Bold,
        MARGIN + 10.0,
        y + 35.0,
        18.0,
        color,
    )?);
    for (index, line) in words.iter().enumerate() {
        ids.push(pen.line(line, MARGIN + 10.0, y + 55.5 + index as f32 * 12.5, 9.0, INK));
    }
    tree.push(paragraph(ids));
    let reference = advice.unique_transaction_reference.clone().unwrap_or_default();
    let reference =
        text::wrap(&reference, Weight::Bold, WIDTH * 0.5 / 10.0, 1).ok_or_else(fonts)?;
    let mut ids =
        vec![pen.text_to("Reference (UTR)", Weight::Regular, right - 10.0, y + 15.0, 9.0, GREY)?];
    ids.extend(
        reference
            .iter()
            .map(|line| pen.line(line, right - 10.0 - line.width * 10.0, y + 30.0, 10.0, INK)),
    );
    if let Some(at) = advice.settled_at {
        ids.push(pen.text_to(
            &indian_date(at),
            Weight::Regular,
            right - 10.0,
            y + 42.0,
            9.0,
            INK,
        )?);
    }
    tree.push(paragraph(ids));
    y += height;

    // The foot is measured before the table, which gets what is left.
    let code = QrCode::encode_text(&advice.verification_url, QrCodeEcc::Medium).ok();
    let notes_width = if code.is_some() { WIDTH - CODE_WIDTH - 22.0 } else { WIDTH };
    let table = sections(advice);
    let mut notes = notes(advice);
    if table.iter().flat_map(|section| &section.rows).any(|row| {
        text::shape(&row.value, Weight::Regular).is_some_and(|line| line.has_replacements)
    }) {
        notes.push(format!(
            "{} stands for a character that this page's fonts do not have; the \
         JSON document shows it.",
            text::REPLACEMENT
        ));
    }
    let mut note_lines = Vec::new();
    for note in &notes {
        note_lines.push(text::wrap(note, Weight::Regular, notes_width / 7.6, 4).ok_or_else(fonts)?);
    }
    let url_lines =
        text::wrap(&advice.verification_url, Weight::Regular, notes_width / URL_SIZE, 4)
            .ok_or_else(fonts)?;
    let notes_height = |lines: &[Vec<Line>]| {
        lines.iter().map(|lines| lines.len() as f32 * 10.2 + 3.5).sum::<f32>()
    };
    let foot_height = (notes_height(&note_lines) + 24.0 + url_lines.len() as f32 * 10.2)
        .max(CODE_WIDTH + 6.0)
        + 12.0;
    let foot = PAGE_HEIGHT - 34.0 - foot_height;

    // The table.
    let layout = Layout::fitting(&table, foot - y - 4.0).ok_or_else(fonts)?;
    debug_assert!(
        y + layout.height <= foot,
        "the table ends at {} and the foot begins at {foot}",
        y + layout.height
    );
    for (title, rows) in &layout.sections {
        y += layout.title_height();
        let id =
            pen.text(title, Weight::Bold, MARGIN, y - layout.size * 0.62, layout.size + 0.5, INK)?;
        tree.push(heading(2, title, id));
        pen.bar(MARGIN, y - layout.size * 0.2, WIDTH, 0.5, RULE);
        let mut table = TagGroup::new(Tag::Table);
        for (label, lines) in rows {
            let baseline = y + layout.size * 1.12;
            let label = pen.line(label, MARGIN, baseline, layout.size, GREY);
            let label =
                TagGroup::with_children(Tag::TH(TableHeaderScope::Row), vec![Node::Leaf(label)]);
            let draw = |(index, line): (usize, &Line)| {
                Node::Leaf(pen.line(
                    line,
                    MARGIN + LABEL_WIDTH,
                    baseline + index as f32 * layout.line_height(),
                    layout.size,
                    INK,
                ))
            };
            let values: Vec<Node> = lines.iter().enumerate().map(draw).collect();
            let value = TagGroup::with_children(Tag::TD, values);
            table.push(TagGroup::with_children(Tag::TR, vec![label.into(), value.into()]));
            y += layout.row_height(lines.len());
        }
        tree.push(table);
    }

    // The foot: what the page is and is not, and how to verify it.
    pen.bar(MARGIN, foot, WIDTH, 0.8, INK);
    let mut y = foot + 15.0;
    for lines in &note_lines {
        let mut ids = Vec::new();
        for line in lines {
            ids.push(pen.line(line, MARGIN, y, 7.6, INK));
            y += 10.2;
        }
        tree.push(paragraph(ids));
        y += 3.5;
    }
    let id = pen.text(
        "Verify amount, date, reference and account digits with the issuer:",
        Weight::Bold,
        MARGIN,
        y,
        7.6,
        INK,
    )?;
    tree.push(paragraph(vec![id]));
    let top = y + 3.0;
    let mut ids = Vec::new();
    for line in &url_lines {
        y += 10.2;
        ids.push(pen.line(line, MARGIN, y, URL_SIZE, (20, 70, 140)));
    }
    let url_bottom = y + 3.0;
    if let Some(code) = &code {
        let (x, y) = (MARGIN + WIDTH - CODE_WIDTH, foot + 9.0);
        // White below it: a code is read by its contrast, also over the mark of test mode.
        pen.bar(x - 6.0, y - 6.0, CODE_WIDTH + 12.0, CODE_WIDTH + 12.0, (255, 255, 255));
        if let Some(path) = code_path(code, x, y, CODE_WIDTH) {
            let id = pen.surface.start_tagged(ContentTag::Other);
            pen.surface.set_fill(fill((0, 0, 0)));
            pen.surface.draw_path(&path);
            pen.surface.end_tagged();
            let alternative = format!("QR code that leads to {}", advice.verification_url);
            let figure = Tag::Figure(Some(alternative))
                .with_placement(Some(krilla::tagging::Placement::Block));
            tree.push(TagGroup::with_children(figure, vec![Node::Leaf(id)]));
        }
    }
    surface.finish();
    if let Some(rect) = Rect::from_ltrb(MARGIN, top, MARGIN + notes_width, url_bottom) {
        let action = Target::Action(Action::Link(LinkAction::new(advice.verification_url.clone())));
        let annotation = Annotation::new_link(
            LinkAnnotation::new(rect, action),
            Some("Verify this payment advice".into()),
        );
        let link = page.add_tagged_annotation(annotation);
        let mut group = TagGroup::with_children(Tag::Link, vec![Node::Leaf(link)]);
        ids.into_iter().for_each(|id| group.push(Node::Leaf(id)));
        tree.push(TagGroup::with_children(Tag::P, vec![group.into()]));
    }
    page.finish();

    document.set_metadata(metadata(advice));
    let mut outline = Outline::new();
    outline.push_child(OutlineNode::new(
        title.into(),
        XyzDestination::new(0, Point::from_xy(0.0, 0.0)),
    ));
    document.set_outline(outline);
    document.set_tag_tree(tree);
    // What the library would name is of its own making, but it could hold a value; only the kind of
    // fault is told.
    document.finish().map_err(|error| broken(fault_kind(&error)))
}

/// The name of an error without what it carries.
fn fault_kind(error: &krilla::error::KrillaError) -> String {
    let told = format!("{error:?}");
    told.chars().take_while(|letter| letter.is_alphanumeric()).collect()
}

fn metadata(advice: &Advice) -> Metadata {
    let mark = if advice.livemode { "" } else { "TEST - " };
    let metadata = Metadata::new()
        .title(format!("{mark}Payment advice {} (not a FIRC/FIRA)", advice.advice_number))
        .description(format!(
            "Advice of a payment of {} ({})",
            with_currency(advice.amount),
            advice.status.as_str()
        ))
        .authors(vec![advice.issuer.clone()])
        .creator("hundi".into())
        .producer("hundi".into())
        .language("en-IN".into())
        .document_id(advice.advice_number.clone());
    // The advice's own time, not that of the request, so that the bytes stay the same.
    let time = advice
        .issued_at
        .and_then(|at| jiff::Timestamp::from_second(at).ok())
        .map(|time| time.to_zoned(jiff::tz::TimeZone::UTC));
    match time {
        None => metadata,
        Some(time) => {
            let part = |value: i8| u8::try_from(value).unwrap_or(0);
            let date = DateTime::new(u16::try_from(time.year()).unwrap_or(0))
                .month(part(time.month()))
                .day(part(time.day()));
            let date = date
                .hour(part(time.hour()))
                .minute(part(time.minute()))
                .second(part(time.second()));
            metadata.creation_date(date.utc_offset_hour(0).utc_offset_minute(0))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::signing::AdviceSignature;
    use super::super::{
        AdviceBeneficiary, AdviceDeposit, AdviceSender, AdviceWord, STATEMENT, STATEMENT_RETURNED,
    };
    use super::*;
    use crate::kernel::{Currency, Id, Rate, rupees};
    use crate::rails::Method;
    use crate::senders::Address;

    fn sample() -> Advice {
        let amount = Money::new(8_763_547, Currency::Inr);
        Advice {
            object: AdviceWord::PaymentAdvice,
            advice_number: "PA-01JDK3Y5M8Q2X7N4V6T9R0ABCD".into(),
            issuer: "Example Payments Ltd".into(),
            issued_at: Some(1_790_000_200),
            payout_id: Id::from_u128(7),
            transfer_id: Id::from_u128(9),
            status: PayoutStatus::Settled,
            unique_transaction_reference: Some("HDFCR52026092112345678".into()),
            method: Method::Rtgs,
            settled_at: Some(1_790_000_000),
            returned_at: None,
            sender: AdviceSender {
                name: "Ravi Rao".into(),
                country: "AE".into(),
                address: Some(Address {
                    line1: "Flat 1203, Marina Heights Tower, Al Marsa Street".into(),
                    city: "Dubai".into(),
                    state: None,
                    postal_code: Some("00000".into()),
                    country: "AE".into(),
                }),
            },
            beneficiary: AdviceBeneficiary {
                name: "श्रीमती आशा क्षेत्रपाल राव".into(),
                account_number_last4: "5678".into(),
                account_type: "nre",
                ifsc: "HDFC0000001".into(),
                bank_name: Some("HDFC Bank".into()),
                branch_name: Some("Tulsiani Chambers, Nariman Point, Mumbai".into()),
            },
            purpose_code: "P1301".into(),
            purpose: super::super::purpose_text(crate::transfers::PurposeCode::P1301),
            amount_sent: Money::new(100_000, Currency::Usd),
            amount_sent_currency: Currency::Usd,
            fee: Money::new(879, Currency::Usd),
            rate: Rate(88_412_500),
            rate_locked_at: Some(1_789_999_000),
            amount_gross: Money::new(8_841_250, Currency::Inr),
            amount_fee: Money::new(8_841_250 - 8_763_547, Currency::Inr),
            gst: None,
            amount,
            currency: Currency::Inr,
            amount_in_words: rupees::in_words(amount),
            deposits: vec![AdviceDeposit {
                transaction_hash: "5f1c".repeat(16),
                chain: "tron".into(),
                asset: "USDT".into(),
                amount: Money::new(1_000_000_000, Currency::Usdt),
            }],
            deposits_count: 1,
            sponsor_bank: Some("Example Bank, Mumbai".into()),
            debited_account_last4: None,
            statement: STATEMENT,
            verification_url: format!(
                "https://pay.example.com/verify/{}.{}",
                Id::<crate::kernel::id::kind::Payout>::from_u128(7),
                "ab".repeat(16)
            ),
            key_set_url: "https://pay.example.com/.well-known/hundi-advice-keys.json".into(),
            livemode: true,
            signature: AdviceSignature::default(),
        }
    }

    /// Everything at its longest: what the forms take, in the script with the widest letters.
    fn longest() -> Advice {
        let mut advice = sample();
        advice.issuer = "W".repeat(100);
        advice.sponsor_bank = Some("W".repeat(100));
        advice.sender.name = "W".repeat(140);
        advice.sender.address = Some(Address {
            line1: "ശ്രീ".repeat(50),
            city: "W".repeat(100),
            state: Some("W ".repeat(50)),
            postal_code: Some("W".repeat(20)),
            country: "AE".into(),
        });
        advice.beneficiary.name = "ക്ഷ്ര ".repeat(23);
        advice.beneficiary.bank_name = Some("W".repeat(200));
        advice.beneficiary.branch_name = Some("മ".repeat(300));
        advice.amount = Money::new(99_999_999_999_999, Currency::Inr);
        advice.amount_in_words = rupees::in_words(advice.amount);
        advice.deposits = vec![advice.deposits[0].clone(); 20];
        advice.deposits_count = 4_000;
        advice.status = PayoutStatus::Returned;
        advice.returned_at = Some(1_790_009_000);
        advice.statement = STATEMENT_RETURNED;
        advice.livemode = false;
        advice
    }

    fn pages(pdf: &[u8]) -> usize {
        let text = String::from_utf8_lossy(pdf);
        text.matches("/Type/Page/").count() + text.matches("/Type /Page\n").count()
    }

    #[test]
    fn the_same_advice_gives_the_same_page() {
        for (name, advice) in [("sample", sample()), ("longest", longest())] {
            let pdf = advice.to_pdf().unwrap();
            assert!(pdf.starts_with(b"%PDF-1.7") && pdf.trim_ascii_end().ends_with(b"%%EOF"));
            assert_eq!(advice.to_pdf().unwrap(), pdf, "{name}");
            assert_eq!(pages(&pdf), 1, "{name}");
            assert!(pdf.len() < 96 * 1024, "{name} has {} bytes", pdf.len());
            if let Ok(folder) = std::env::var("HUNDI_TEST_PAGES") {
                std::fs::write(format!("{folder}/{name}.pdf"), &pdf).unwrap();
            }
        }
        let mut other = sample();
        other.amount.units += 1;
        assert_ne!(other.to_pdf().unwrap(), sample().to_pdf().unwrap());
    }

    #[test]
    fn long_values_make_the_table_smaller_and_then_lose_lines() {
        // That the page itself has the room is asserted where it is written.
        let space = 480.0;
        let long = Layout::fitting(&sections(&longest()), space).unwrap();
        assert!(
            long.height <= space && long.size < TRIALS[0].0,
            "{} at {}",
            long.height,
            long.size
        );
        assert_eq!(Layout::fitting(&sections(&sample()), space).unwrap().size, TRIALS[0].0);
    }

    /// Pixels of the page that a person sees as red.
    fn red_pixels(pdf: &[u8]) -> usize {
        use std::io::Write;
        let mut command = std::process::Command::new("pdftoppm");
        command
            .args(["-r", "40", "-"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null());
        let mut child = command.spawn().expect("pdftoppm of poppler-utils");
        let mut input = child.stdin.take().unwrap();
        input.write_all(pdf).unwrap();
        drop(input);
        let image = child.wait_with_output().unwrap().stdout;
        assert!(image.starts_with(b"P6"), "a colour image");
        image
            .rchunks_exact(3)
            .filter(|pixel| pixel[0] > 140 && pixel[1] < 70 && pixel[2] < 70)
            .count()
    }

    #[test]
    fn only_test_mode_is_marked_in_red() {
        let mut advice = sample();
        assert_eq!(
            red_pixels(&advice.to_pdf().unwrap()),
            0,
            "the control: a live page has no mark"
        );
        advice.livemode = false;
        let marked = red_pixels(&advice.to_pdf().unwrap());
        assert!(marked > 1_500, "{marked} pixels of the notice");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_names_give_a_page(name in "\\PC{1,60}", address in "\\PC{1,80}", reference in "[ \
         -~]{0,80}", is_returned in any::<bool>()) {
            let mut advice = sample();
            advice.beneficiary.name = name.clone();
            advice.sender.name = address;
            advice.unique_transaction_reference = Some(reference);
            advice.issuer = name;
            advice.status = if is_returned { PayoutStatus::Returned } else {
                PayoutStatus::Settled };
            prop_assert_eq!(pages(&advice.to_pdf().unwrap()), 1);
        }
    }
}
