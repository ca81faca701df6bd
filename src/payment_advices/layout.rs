//! Finds the largest font size in which the advice's table fits the page.

use super::content::TableSection;
use super::pen::WIDTH;
use super::text::{self, ShapedLine, Weight};

/// The width of the labels' column, in points like every length here.
pub(super) const LABEL_WIDTH: f32 = 132.0;
/// Font sizes to try until the table fits the page, and how many lines one value may take at each
/// size. A longer value ends in an ellipsis; the JSON document has the whole value. With the
/// last pair the table fits however long the values are.
pub(super) const TRIALS: [(f32, usize); 7] =
    [(9.0, 6), (8.5, 6), (8.0, 6), (7.5, 4), (7.0, 3), (7.0, 2), (6.5, 1)];

/// The table at one font size, shaped and measured.
pub(super) struct TableLayout {
    pub(super) size: f32,
    /// The title of each section, and its rows: a label, and the lines of the value.
    pub(super) sections: Vec<(&'static str, Vec<(ShapedLine, Vec<ShapedLine>)>)>,
    pub(super) height: f32,
}

impl TableLayout {
    pub(super) fn line_height(&self) -> f32 {
        self.size * 1.38
    }
    pub(super) fn row_height(&self, lines: usize) -> f32 {
        lines.max(1) as f32 * self.line_height() + self.size * 0.32
    }
    pub(super) fn title_height(&self) -> f32 {
        self.size * 2.75
    }

    pub(super) fn measured(
        sections: &[TableSection],
        size: f32,
        lines_max: usize,
    ) -> Option<TableLayout> {
        let mut layout = TableLayout { size, sections: Vec::new(), height: 0.0 };
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

    /// The table in the first of [`TRIALS`] that fits `height`, or in the last. `None` only if the
    /// fonts inside the binary do not load.
    pub(super) fn fitting(sections: &[TableSection], height: f32) -> Option<TableLayout> {
        let mut smallest = None;
        for (size, lines_max) in TRIALS {
            let layout = TableLayout::measured(sections, size, lines_max)?;
            if layout.height <= height {
                return Some(layout);
            }
            smallest = Some(layout);
        }
        smallest
    }
}
