//! The payment advice as a PDF: one A4 page, as PDF/A-2a and PDF/UA-1, with embedded fonts. Its QR
//! code leads to the web page where anybody can verify the advice. The same advice gives the same
//! bytes.

use std::num::NonZeroU16;

use krilla::action::{Action, LinkAction};
use krilla::annotation::{Annotation, LinkAnnotation, Target};
use krilla::configure::{Accessibility, Archival, ConfigurationBuilder};
use krilla::destination::XyzDestination;
use krilla::geom::{Point, Rect, Size};
use krilla::metadata::{DateTime, Metadata};
use krilla::outline::{Outline, OutlineNode};
use krilla::page::PageSettings;
use krilla::tagging::{ContentTag, Identifier, Node, TableHeaderScope, Tag, TagGroup, TagTree};
use krilla::{Document, SerializeSettings};
use qrcodegen::{QrCode, QrCodeEcc};

use super::content::{amounts, headline, notes, sections, with_currency};
use super::layout::{LABEL_WIDTH, TableLayout};
use super::pen::{
    ALERT, GOOD, GREY, INK, LINK, MARGIN, PAGE_HEIGHT, PAGE_WIDTH, Pen, RULE, SHADE, WIDTH,
    code_path, fill, fonts_fault,
};
use super::text::{self, ShapedLine, Weight};
use super::{Advice, indian_date};
use crate::kernel::StoreError;
use crate::kernel::rupees::grouped;
use crate::kernel::state::Status;
use crate::payouts::state::PayoutStatus;

/// The width of the QR code, in points like every length here.
const CODE_WIDTH: f32 = 88.0;
/// The width of the issuer's lines, which are left of the title, if there is no logo.
const ISSUER_WIDTH: f32 = WIDTH * 0.55;
/// The largest size of the issuer's logo, and the space between the logo and the issuer's lines on
/// its right.
const LOGO_WIDTH_MAX: f32 = 110.0;
const LOGO_HEIGHT_MAX: f32 = 44.0;
const LOGO_SPACE: f32 = 12.0;
/// How much further to the right the issuer's lines may reach if there is a logo.
const LOGO_ROOM: f32 = 50.0;
/// The font size of the verification URL: small enough that a usual URL fits on one line.
const URL_SIZE: f32 = 7.2;

fn heading(level: u16, title: &str, id: Identifier) -> TagGroup {
    let level = NonZeroU16::new(level).unwrap_or(NonZeroU16::MIN);
    TagGroup::with_children(Tag::Hn(level, Some(title.to_owned())), vec![Node::Leaf(id)])
}

fn paragraph(ids: Vec<Identifier>) -> TagGroup {
    TagGroup::with_children(Tag::P, ids.into_iter().map(Node::Leaf).collect())
}

/// The tag of an image; `alternative` is what a screen reader says instead.
fn image_tag(alternative: String, id: Identifier) -> TagGroup {
    let tag =
        Tag::Figure(Some(alternative)).with_placement(Some(krilla::tagging::Placement::Block));
    TagGroup::with_children(tag, vec![Node::Leaf(id)])
}

/// Writes the page as a PDF. An error of the PDF library, or a font that does not load, is
/// [`StoreError::Broken`].
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
        pen.watermark("TEST")?;
    }

    // Head: title, number and date at the right, the issuer at the left.
    let title = "Payment advice";
    let right = MARGIN + WIDTH;
    let top = 58.0;
    let id = pen.text_to(title, Weight::Bold, right, top, 17.0, INK)?;
    tree.push(heading(1, title, id));
    let date = advice.issued_at.map(indian_date).unwrap_or_default();
    let mut ids = Vec::new();
    for (line, shown) in [format!("No. {}", advice.advice_number), date].iter().enumerate() {
        let y = top + 15.0 + line as f32 * 12.0;
        ids.push(pen.text_to(shown, Weight::Regular, right, y, 9.0, GREY)?);
    }
    tree.push(paragraph(ids));
    let issuer = [
        (Some(&advice.issuer), Weight::Bold, 12.0, INK),
        (advice.issuer_address.as_ref(), Weight::Regular, 8.5, GREY),
        (advice.issuer_licence.as_ref(), Weight::Regular, 8.5, GREY),
    ];
    let (mut y, mut ids) = (top - 2.0, Vec::new());
    let (mut issuer_left, mut issuer_right) = (MARGIN, MARGIN + ISSUER_WIDTH);
    if let Some(logo) = &advice.logo {
        let (width, height) = logo.fitted(LOGO_WIDTH_MAX, LOGO_HEIGHT_MAX);
        let id = pen.image(&logo.png, (MARGIN, y - 12.0), (width, height))?;
        tree.push(image_tag(format!("Logo of {}", advice.issuer), id));
        issuer_left += width + LOGO_SPACE;
        issuer_right += LOGO_ROOM;
    }
    let issuer_width = issuer_right - issuer_left;
    let mut has_replacements = false;
    for (shown, weight, size, color) in issuer {
        let Some(shown) = shown else { continue };
        for line in text::wrap(shown, weight, issuer_width / size, 2).ok_or_else(fonts_fault)? {
            ids.push(pen.line(&line, issuer_left, y, size, color));
            has_replacements |= line.has_replacements;
            y += size * 1.4;
        }
    }
    tree.push(paragraph(ids));
    y = y.max(top + 39.0) - 4.0;
    let brand = advice.colour.map_or(INK, |colour| (colour.red, colour.green, colour.blue));
    pen.bar(MARGIN, y, WIDTH, 1.6, brand);
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

    // What happened, and the two main figures.
    y += 24.0;
    let color = if is_returned { ALERT } else { GOOD };
    let said = headline(advice);
    let id = pen.text(said, Weight::Bold, MARGIN, y, 15.0, color)?;
    tree.push(heading(2, said, id));
    y += 10.0;
    let words = advice.amount_in_words.clone().unwrap_or_default();
    let words =
        text::wrap(&words, Weight::Regular, (WIDTH - 20.0) / 9.0, 2).ok_or_else(fonts_fault)?;
    let rows = amounts(advice);
    let height = 54.0 + rows.len() as f32 * 13.0 + words.len() as f32 * 12.5;
    pen.bar(MARGIN, y, WIDTH, height, if advice.livemode { SHADE } else { (246, 240, 240) });
    let (left, edge) = (MARGIN + 10.0, right - 10.0);
    let sent = with_currency(advice.amount_sent);
    tree.push(paragraph(vec![
        pen.text("You sent", Weight::Regular, left, y + 15.0, 9.0, GREY)?,
        pen.text(&sent, Weight::Bold, left, y + 35.0, 16.0, INK)?,
    ]));
    let paid = format!("₹ {}", grouped(advice.amount));
    tree.push(paragraph(vec![
        pen.text_to("Paid to the beneficiary", Weight::Regular, edge, y + 15.0, 9.0, GREY)?,
        pen.text_to(&paid, Weight::Bold, edge, y + 35.0, 18.0, color)?,
    ]));
    let mut baseline = y + 53.0;
    let mut table = TagGroup::new(Tag::Table);
    for row in &rows {
        let label = pen.text(&row.label, Weight::Regular, left, baseline, 9.0, GREY)?;
        let figure = pen.text_to(&row.figure, Weight::Regular, edge, baseline, 9.0, INK)?;
        let label =
            TagGroup::with_children(Tag::TH(TableHeaderScope::Row), vec![Node::Leaf(label)]);
        let figure = TagGroup::with_children(Tag::TD, vec![Node::Leaf(figure)]);
        table.push(TagGroup::with_children(Tag::TR, vec![label.into(), figure.into()]));
        baseline += 13.0;
    }
    tree.push(table);
    let mut ids = Vec::new();
    for words in &words {
        ids.push(pen.line(words, left, baseline + 1.0, 9.0, INK));
        baseline += 12.5;
    }
    if !ids.is_empty() {
        tree.push(paragraph(ids));
    }
    y += height;

    // The foot is measured before the table, which gets the remaining room.
    let code = QrCode::encode_text(&advice.verification_url, QrCodeEcc::Medium).ok();
    let notes_width = if code.is_some() { WIDTH - CODE_WIDTH - 22.0 } else { WIDTH };
    let table = sections(advice);
    let mut notes = notes(advice);
    has_replacements |= table.iter().flat_map(|section| &section.rows).any(|row| {
        text::shape(&row.value, Weight::Regular).is_some_and(|line| line.has_replacements)
    });
    if has_replacements {
        notes.push(format!(
            "{} stands for a character that this page's fonts do not have; the \
         JSON document shows it.",
            text::REPLACEMENT
        ));
    }
    let mut note_lines = Vec::new();
    for note in &notes {
        note_lines
            .push(text::wrap(note, Weight::Regular, notes_width / 7.6, 4).ok_or_else(fonts_fault)?);
    }
    let url_lines =
        text::wrap(&advice.verification_url, Weight::Regular, notes_width / URL_SIZE, 4)
            .ok_or_else(fonts_fault)?;
    let notes_height = |lines: &[Vec<ShapedLine>]| {
        lines.iter().map(|lines| lines.len() as f32 * 10.2 + 3.5).sum::<f32>()
    };
    let foot_height = (notes_height(&note_lines) + 24.0 + url_lines.len() as f32 * 10.2)
        .max(CODE_WIDTH + 6.0)
        + 12.0;
    let foot = PAGE_HEIGHT - 34.0 - foot_height;

    // The table.
    let layout = TableLayout::fitting(&table, foot - y - 4.0).ok_or_else(fonts_fault)?;
    debug_assert!(
        y + layout.height <= foot,
        "the table ends at {} and the foot begins at {foot}",
        y + layout.height
    );
    let mut drawn = Vec::new();
    for (section, (title, rows)) in table.iter().zip(&layout.sections) {
        y += layout.title_height();
        let id =
            pen.text(title, Weight::Bold, MARGIN, y - layout.size * 0.62, layout.size + 0.5, INK)?;
        pen.bar(MARGIN, y - layout.size * 0.2, WIDTH, 0.5, RULE);
        let mut tagged = Vec::new();
        for (row, (label, lines)) in section.rows.iter().zip(rows) {
            let (top, baseline) = (y, y + layout.size * 1.12);
            let color = if row.link.is_some() { LINK } else { INK };
            let label = pen.line(label, MARGIN, baseline, layout.size, GREY);
            let draw = |(index, line): (usize, &ShapedLine)| {
                let y = baseline + index as f32 * layout.line_height();
                pen.line(line, MARGIN + LABEL_WIDTH, y, layout.size, color)
            };
            let values: Vec<Identifier> = lines.iter().enumerate().map(draw).collect();
            y += layout.row_height(lines.len());
            let place = Rect::from_ltrb(MARGIN + LABEL_WIDTH, top, right, y);
            tagged.push((label, values, row.link.clone().zip(place)));
        }
        drawn.push((heading(2, title, id), tagged));
    }

    // The foot: what the page is and is not, and how to verify it.
    pen.bar(MARGIN, foot, WIDTH, 0.8, INK);
    let mut y = foot + 15.0;
    let mut foot_tags = Vec::new();
    for lines in &note_lines {
        let mut ids = Vec::new();
        for line in lines {
            ids.push(pen.line(line, MARGIN, y, 7.6, INK));
            y += 10.2;
        }
        foot_tags.push(paragraph(ids));
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
    foot_tags.push(paragraph(vec![id]));
    let top = y + 3.0;
    let mut ids = Vec::new();
    for line in &url_lines {
        y += 10.2;
        ids.push(pen.line(line, MARGIN, y, URL_SIZE, LINK));
    }
    let url_bottom = y + 3.0;
    if let Some(code) = &code {
        let (x, y) = (MARGIN + WIDTH - CODE_WIDTH, foot + 9.0);
        // The QR code is on white, because a reader needs the contrast, also over the watermark.
        pen.bar(x - 6.0, y - 6.0, CODE_WIDTH + 12.0, CODE_WIDTH + 12.0, (255, 255, 255));
        if let Some(path) = code_path(code, x, y, CODE_WIDTH) {
            let id = pen.surface.start_tagged(ContentTag::Other);
            pen.surface.set_fill(fill((0, 0, 0)));
            pen.surface.draw_path(&path);
            pen.surface.end_tagged();
            let alternative = format!("QR code that leads to {}", advice.verification_url);
            foot_tags.push(image_tag(alternative, id));
        }
    }
    surface.finish();
    let mut link = |place: Rect, address: String, said: String, ids: Vec<Identifier>| {
        let action = Target::Action(Action::Link(LinkAction::new(address)));
        let annotation = Annotation::new_link(LinkAnnotation::new(place, action), Some(said));
        let link = page.add_tagged_annotation(annotation);
        let mut group = TagGroup::with_children(Tag::Link, vec![Node::Leaf(link)]);
        ids.into_iter().for_each(|id| group.push(Node::Leaf(id)));
        group
    };
    for (title, rows) in drawn {
        tree.push(title);
        let mut table = TagGroup::new(Tag::Table);
        for (label, values, linked) in rows {
            let label =
                TagGroup::with_children(Tag::TH(TableHeaderScope::Row), vec![Node::Leaf(label)]);
            let values = match linked {
                None => values.into_iter().map(Node::Leaf).collect(),
                Some((address, place)) => {
                    vec![link(place, address, "The transaction on chain".into(), values).into()]
                }
            };
            let value = TagGroup::with_children(Tag::TD, values);
            table.push(TagGroup::with_children(Tag::TR, vec![label.into(), value.into()]));
        }
        tree.push(table);
    }
    foot_tags.into_iter().for_each(|group| tree.push(group));
    if let Some(rect) = Rect::from_ltrb(MARGIN, top, MARGIN + notes_width, url_bottom) {
        let address = advice.verification_url.clone();
        let group = link(rect, address, "Verify this payment advice".into(), ids);
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
    // The library's error may contain a value of the document, such as a name. So only the error's
    // kind is reported.
    document.finish().map_err(|error| broken(fault_kind(&error)))
}

/// The name of an error without its contents.
fn fault_kind(error: &krilla::error::KrillaError) -> String {
    let shown = format!("{error:?}");
    shown.chars().take_while(|letter| letter.is_alphanumeric()).collect()
}

fn metadata(advice: &Advice) -> Metadata {
    let prefix = if advice.livemode { "" } else { "TEST - " };
    let metadata = Metadata::new()
        .title(format!("{prefix}Payment advice {} (not a FIRC/FIRA)", advice.advice_number))
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
    // The time is the advice's, not the request's, so that the bytes stay the same.
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
#[path = "page_test.rs"]
mod tests;
