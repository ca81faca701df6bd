//! Text for the payment advice's page: which font shows a character, shaping, and breaking into
//! lines.
//!
//! Latin, Greek, Cyrillic and nine scripts of India are shaped with subset Noto
//! fonts. Characters that they lack, and characters that could reverse or hide text, show as
//! U+FFFD, so that nothing is omitted silently.

use std::sync::LazyLock;

use harfrust::{Direction, FontRef, ShapeOptions, ShaperData, UnicodeBuffer};
use krilla::geom::Point;
use krilla::surface::Surface;
use krilla::text::{Font, GlyphId, KrillaGlyph};

/// Stands for a character that the page cannot show.
pub const REPLACEMENT: char = '\u{FFFD}';

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    Regular,
    Bold,
}

struct Face {
    font: Font,
    reference: FontRef<'static>,
    data: ShaperData,
}

impl Face {
    fn read(bytes: &'static [u8]) -> Option<Face> {
        let reference = FontRef::new(bytes).ok()?;
        let font = Font::new(bytes.into(), 0)?;
        Some(Face { font, data: ShaperData::new(&reference), reference })
    }
}

/// The font files: the Latin one, the bold Latin one, then one for each of [`SCRIPTS`], in order.
const FILES: [&[u8]; 2 + SCRIPTS.len()] = [
    include_bytes!("../../assets/fonts/NotoSans-Regular.ttf"),
    include_bytes!("../../assets/fonts/NotoSans-Bold.ttf"),
    include_bytes!("../../assets/fonts/NotoSansDevanagari-Regular.ttf"),
    include_bytes!("../../assets/fonts/NotoSansBengali-Regular.ttf"),
    include_bytes!("../../assets/fonts/NotoSansGurmukhi-Regular.ttf"),
    include_bytes!("../../assets/fonts/NotoSansGujarati-Regular.ttf"),
    include_bytes!("../../assets/fonts/NotoSansOriya-Regular.ttf"),
    include_bytes!("../../assets/fonts/NotoSansTamil-Regular.ttf"),
    include_bytes!("../../assets/fonts/NotoSansTelugu-Regular.ttf"),
    include_bytes!("../../assets/fonts/NotoSansKannada-Regular.ttf"),
    include_bytes!("../../assets/fonts/NotoSansMalayalam-Regular.ttf"),
];

/// The Unicode blocks of the nine scripts: Devanagari, Bengali, Gurmukhi, Gujarati, Oriya, Tamil,
/// Telugu, Kannada, Malayalam.
const SCRIPTS: [(char, char); 9] = [
    ('\u{0900}', '\u{097F}'),
    ('\u{0980}', '\u{09FF}'),
    ('\u{0A00}', '\u{0A7F}'),
    ('\u{0A80}', '\u{0AFF}'),
    ('\u{0B00}', '\u{0B7F}'),
    ('\u{0B80}', '\u{0BFF}'),
    ('\u{0C00}', '\u{0C7F}'),
    ('\u{0C80}', '\u{0CFF}'),
    ('\u{0D00}', '\u{0D7F}'),
];

/// The characters of the two Latin faces, which also have Greek and Cyrillic. Soft hyphens and
/// other invisible characters are left out.
const LATIN: [(char, char); 22] = [
    (' ', '~'),
    ('\u{00A0}', '\u{00AC}'),
    ('\u{00AE}', '\u{024F}'),
    ('\u{0259}', '\u{0259}'),
    ('\u{02BB}', '\u{02BC}'),
    ('\u{02C6}', '\u{02C6}'),
    ('\u{02DA}', '\u{02DA}'),
    ('\u{02DC}', '\u{02DC}'),
    ('\u{0300}', '\u{0304}'),
    ('\u{0306}', '\u{030C}'),
    ('\u{0323}', '\u{0323}'),
    ('\u{0327}', '\u{0328}'),
    ('\u{0370}', '\u{03FF}'),
    ('\u{0400}', '\u{045F}'),
    ('\u{0490}', '\u{0491}'),
    ('\u{1E00}', '\u{1EFF}'),
    ('\u{2010}', '\u{2027}'),
    ('\u{2030}', '\u{203A}'),
    ('\u{20A8}', '\u{20A8}'),
    ('\u{20AC}', '\u{20AC}'),
    ('\u{20B9}', '\u{20B9}'),
    ('\u{2116}', '\u{2122}'),
];

static FACES: LazyLock<Option<Vec<Face>>> =
    LazyLock::new(|| FILES.into_iter().map(Face::read).collect());

/// The face (a loaded font) that shows a character, as its index in [`FILES`]. `before` is the face
/// of the character before. `None` if the character cannot be shown.
fn face_of(letter: char, before: usize, weight: Weight) -> Option<usize> {
    let latin = usize::from(weight == Weight::Bold);
    let is_indic = before >= 2;
    let within = |blocks: &[(char, char)]| {
        blocks.iter().position(|(first, last)| (*first..=*last).contains(&letter))
    };
    match letter {
        // Characters that scripts share take the face of the script before them.
        ' ' | '\u{0964}' | '\u{0965}' if is_indic => Some(before),
        // Joiners decide how letters of India's scripts combine. Elsewhere they are invisible, so
        // they are replaced there.
        '\u{200C}' | '\u{200D}' => is_indic.then_some(before),
        REPLACEMENT => Some(latin),
        _ => within(&SCRIPTS).map(|place| place + 2).or_else(|| within(&LATIN).map(|_| latin)),
    }
}

/// A piece of text in one face.
struct GlyphRun {
    face: usize,
    text: String,
    glyphs: Vec<KrillaGlyph>,
}

/// A shaped line; lengths are in units of the font size.
pub struct ShapedLine {
    runs: Vec<GlyphRun>,
    pub width: f32,
    /// Whether a character had to be replaced.
    pub has_replacements: bool,
}

fn shape_run(face: &Face, text: &str) -> Vec<KrillaGlyph> {
    let mut buffer = UnicodeBuffer::new();
    buffer.push_str(text);
    buffer.set_direction(Direction::LeftToRight);
    buffer.guess_segment_properties();
    let output = face.data.shaper(&face.reference).build().shape(buffer, ShapeOptions::new());
    let em = face.font.units_per_em();
    let infos = output.glyph_infos();
    let mut glyphs: Vec<KrillaGlyph> = Vec::with_capacity(infos.len());
    // A cluster is a group of letters that glyphs show together. The loop begins at the end of the
    // text, because each cluster ends where the one after it begins.
    let (mut end, mut start) = (text.len(), text.len());
    for (info, position) in infos.iter().zip(output.glyph_positions()).rev() {
        if (info.cluster as usize) < start {
            (end, start) = (start, info.cluster as usize);
        }
        glyphs.push(KrillaGlyph::new(
            GlyphId::new(info.glyph_id),
            position.x_advance as f32 / em,
            position.x_offset as f32 / em,
            position.y_offset as f32 / em,
            position.y_advance as f32 / em,
            start..end,
            None,
        ));
    }
    glyphs.reverse();
    glyphs
}

/// Shapes one line. `None` only if the fonts inside the binary do not load.
pub fn shape(text: &str, weight: Weight) -> Option<ShapedLine> {
    let faces = FACES.as_ref()?;
    let mut runs: Vec<GlyphRun> = Vec::new();
    let mut has_replacements = false;
    let mut before = usize::from(weight == Weight::Bold);
    let push = |runs: &mut Vec<GlyphRun>, face: usize, letter: char| match runs.last_mut() {
        Some(run) if run.face == face => run.text.push(letter),
        _ => runs.push(GlyphRun { face, text: letter.into(), glyphs: Vec::new() }),
    };
    for letter in text.chars() {
        let found = face_of(letter, before, weight);
        has_replacements |= found.is_none() || letter == REPLACEMENT;
        before = found.unwrap_or(usize::from(weight == Weight::Bold));
        push(&mut runs, before, if found.is_some() { letter } else { REPLACEMENT });
    }
    // A face may lack some characters of its block. A second pass replaces them by U+FFFD, in the
    // Latin face.
    let mut shaped: Vec<GlyphRun> = Vec::new();
    for mut run in runs {
        let face = faces.get(run.face)?;
        run.glyphs = shape_run(face, &run.text);
        if run.glyphs.iter().all(|glyph| glyph.glyph_id.to_u32() != 0) {
            shaped.push(run);
            continue;
        }
        has_replacements = true;
        let missing: Vec<_> = run
            .glyphs
            .iter()
            .filter(|glyph| glyph.glyph_id.to_u32() == 0)
            .map(|glyph| glyph.text_range.clone())
            .collect();
        let mut pieces: Vec<GlyphRun> = Vec::new();
        for (place, letter) in run.text.char_indices() {
            let is_missing = missing.iter().any(|range| range.contains(&place));
            let face = if is_missing { usize::from(weight == Weight::Bold) } else { run.face };
            push(&mut pieces, face, if is_missing { REPLACEMENT } else { letter });
        }
        for mut piece in pieces {
            piece.glyphs = shape_run(faces.get(piece.face)?, &piece.text);
            // A face may lack a letter only in combination with others. Then the whole piece is
            // replaced, so that nothing is drawn as a blank.
            if piece.glyphs.iter().any(|glyph| glyph.glyph_id.to_u32() == 0) {
                piece.face = usize::from(weight == Weight::Bold);
                piece.text = piece.text.chars().map(|_| REPLACEMENT).collect();
                piece.glyphs = shape_run(faces.get(piece.face)?, &piece.text);
            }
            shaped.push(piece);
        }
    }
    let width = shaped.iter().flat_map(|run| &run.glyphs).map(|glyph| glyph.x_advance).sum();
    Some(ShapedLine { runs: shaped, width, has_replacements })
}

impl ShapedLine {
    /// Draws the line from `x` with its baseline at `y`, in the surface's fill colour. `size` is
    /// the font size in points. With `as_outlines`, the letters are shapes and no text for programs
    /// that read the page.
    pub fn draw(&self, surface: &mut Surface<'_>, x: f32, y: f32, size: f32, as_outlines: bool) {
        let Some(faces) = FACES.as_ref() else { return };
        let mut x = x;
        for run in &self.runs {
            let Some(face) = faces.get(run.face) else { return };
            surface.draw_glyphs(
                Point::from_xy(x, y),
                &run.glyphs,
                face.font.clone(),
                &run.text,
                size,
                as_outlines,
            );
            x += size * run.glyphs.iter().map(|glyph| glyph.x_advance).sum::<f32>();
        }
    }

    /// Where the line can be cut within `width`: for each cluster that fits, the number of letters
    /// up to its end. The first cluster counts as fitting even if it is wider.
    fn letters_within(&self, width: f32) -> Vec<usize> {
        let clusters = self.runs.iter().flat_map(|run| {
            let clusters = run.glyphs.chunk_by(|one, next| one.text_range == next.text_range);
            clusters.map(|cluster| {
                let range = cluster.first().map_or(0..0, |glyph| glyph.text_range.clone());
                (
                    run.text.get(range).unwrap_or_default().chars().count(),
                    cluster.iter().map(|glyph| glyph.x_advance).sum::<f32>(),
                )
            })
        });
        let ends = clusters.scan((0, 0.0), |(letters, used), (count, advance)| {
            *letters += count;
            *used += advance;
            Some((*letters, *used))
        });
        ends.enumerate()
            .take_while(|(place, (_, used))| *place == 0 || *used <= width)
            .map(|(_, (letters, _))| letters)
            .collect()
    }
}

/// The longest beginning of `text` that, followed by `ending`, is at most `width` wide; one cluster
/// at least.
fn beginning(text: &str, ending: &str, weight: Weight, width: f32) -> Option<String> {
    let mut ends = shape(text, weight)?.letters_within(width);
    loop {
        let letters: String = text.chars().take(ends.pop().unwrap_or_default()).collect();
        let cut = format!("{}{ending}", letters.trim_end());
        // Shaped again, because letters may be wider at the cut than beside their neighbours.
        if ends.is_empty() || shape(&cut, weight)?.width <= width {
            return Some(letters);
        }
    }
}

/// Breaks text into lines of at most `width` (in units of the font size), at spaces, and inside
/// words that are longer than a line. A cluster wider than `width` gets a line of its own. A text
/// that needs more than `lines_max` lines is cut, and the last line ends in an ellipsis.
pub fn wrap(text: &str, weight: Weight, width: f32, lines_max: usize) -> Option<Vec<ShapedLine>> {
    let mut texts: Vec<String> = Vec::new();
    let mut current = String::new();
    for word in text.split_whitespace() {
        let mut word = word.to_owned();
        let joined = if current.is_empty() { word.clone() } else { format!("{current} {word}") };
        if shape(&joined, weight)?.width <= width {
            current = joined;
            continue;
        }
        if !current.is_empty() {
            texts.push(std::mem::take(&mut current));
        }
        while shape(&word, weight)?.width > width {
            let head = beginning(&word, "", weight, width)?;
            let rest = word.split_off(head.len());
            if head.is_empty() || rest.is_empty() {
                word = head + &rest;
                break;
            }
            texts.push(head);
            word = rest;
        }
        current = word;
    }
    if !current.is_empty() {
        texts.push(current);
    }
    if texts.len() > lines_max {
        // The last line that is kept continues with the first line that is dropped, as far as that
        // fits before the ellipsis.
        let next = texts.get(lines_max).cloned().unwrap_or_default();
        texts.truncate(lines_max);
        if let Some(last) = texts.last_mut() {
            last.push(' ');
            last.push_str(&next);
            let head = beginning(last, "…", weight, width)?;
            *last = format!("{}…", head.trim_end());
        }
    }
    texts.iter().map(|text| shape(text, weight)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(line: &ShapedLine) -> String {
        line.runs.iter().map(|run| run.text.as_str()).collect()
    }

    #[test]
    fn the_nine_scripts_of_india_are_shaped_and_nothing_is_lost() {
        for text in [
            "Asha Rao, O'Neill-Müller Žižek Nguyễn ₹ 1,00,000.50 € №5 Σωκράτης Достоевский",
            "क्षेत्रपाल श्रीनिवास ज्ञानेश्वर राव",
            "সুভাষ চন্দ্র বসু",
            "ਗੁਰਪ੍ਰੀਤ ਸਿੰਘ",
            "મોહનદાસ ગાંધી ક્ષ",
            "ଓଡ଼ିଆ ଶ୍ରୀ",
            "தமிழ் செல்வி ஸ்ரீ",
            "తెలుగు శ్రీనివాస్",
            "ಕನ್ನಡ ಶ್ರೀನಿವಾಸ",
            "മലയാളം ശ്രീനിവാസൻ",
            "Asha आशा Rao राव",
        ] {
            for weight in [Weight::Regular, Weight::Bold] {
                let line = shape(text, weight).unwrap();
                assert_eq!((shown(&line).as_str(), line.has_replacements), (text, false));
                assert!(line.width > 0.0);
                assert!(
                    line.runs
                        .iter()
                        .flat_map(|run| &run.glyphs)
                        .all(|glyph| glyph.glyph_id.to_u32() != 0)
                );
            }
        }
    }

    #[test]
    fn devanagari_forms_conjuncts_and_reorders_vowels() {
        // क्षि is one conjunct, and a vowel sign that is drawn before it: two glyphs for four
        // characters.
        let line = shape("क्षि", Weight::Regular).unwrap();
        assert_eq!(line.runs[0].glyphs.len(), 2, "{:?}", line.runs[0].glyphs);
        let apart: usize = "क्षि"
            .chars()
            .map(|letter| shape(&letter.to_string(), Weight::Regular).unwrap().runs[0].glyphs.len())
            .sum();
        assert!(apart > 2, "letters alone give more glyphs");
    }

    #[test]
    fn what_cannot_be_shown_is_replaced_and_seen() {
        for (text, wanted) in [
            ("محمد", "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}"),
            ("Asha 😀 Rao", "Asha \u{FFFD} Rao"),
            ("王", "\u{FFFD}"),
            ("a\u{202E}b", "a\u{FFFD}b"),
            ("a\u{200B}b\u{AD}c\u{FEFF}d", "a\u{FFFD}b\u{FFFD}c\u{FFFD}d"),
            ("a\u{200D}b", "a\u{FFFD}b"),
            ("\u{0378}", "\u{FFFD}"),
            ("क\u{0984}", "क\u{FFFD}"),
        ] {
            let line = shape(text, Weight::Regular).unwrap();
            assert_eq!((shown(&line).as_str(), line.has_replacements), (wanted, true), "{text:?}");
        }
    }

    #[test]
    fn lines_break_at_spaces_then_inside_words_and_end_in_an_ellipsis() {
        let texts = |text: &str, width: f32, lines_max: usize| -> Vec<String> {
            wrap(text, Weight::Regular, width, lines_max).unwrap().iter().map(shown).collect()
        };
        assert_eq!(texts("", 10.0, 3), Vec::<String>::new());
        assert_eq!(texts("one two", 100.0, 3), ["one two"]);
        assert_eq!(texts("one  two three", 4.0, 9), ["one two", "three"]);
        let broken = texts(&"W".repeat(50), 10.0, 99);
        assert!(broken.len() > 3 && broken.concat() == "W".repeat(50), "{broken:?}");
        let cut = texts(&"word ".repeat(100), 10.0, 2);
        assert!(cut.len() == 2 && cut[1].ends_with('…'), "{cut:?}");
        assert!(
            texts(&"क्षि".repeat(40), 10.0, 99)
                .iter()
                .all(|line| line.chars().count().is_multiple_of(4)),
            "never inside a syllable"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_text_fits_its_lines(text in "\\PC{0,80}", indic in "[\u{0900}-\u{0D7F} \
         \u{200c}\u{200d}a.]{0,40}", width in 3.0_f32..40.0) {
            let whole = format!("{text}{indic}");
            for line in wrap(&whole, Weight::Bold, width, 5).unwrap() {
                prop_assert!(line.width <= width || shown(&line).chars().count() <= 12, "{} > \
                 {width}: {:?}", line.width, shown(&line));
                let mut glyphs = line.runs.iter().flat_map(|run| &run.glyphs);
                prop_assert!(glyphs.all(|glyph| glyph.glyph_id.to_u32() != 0));
            }
        }
    }
}
