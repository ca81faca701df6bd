//! The table that a run prints.

/// Three columns: what was measured, the figure, and what was wanted of it.
#[derive(Default)]
pub struct Table {
    rows: Vec<[String; 3]>,
}

impl Table {
    pub fn add(&mut self, what: &str, measured: impl Into<String>, wanted: &str) {
        let measured = measured.into();
        eprintln!("  {what}: {measured}");
        self.rows.push([what.to_owned(), measured, wanted.to_owned()]);
    }

    /// A figure that has to reach a bound.
    pub fn at_least(&mut self, what: &str, value: f64, bound: f64) {
        let wanted =
            format!("at least {bound}: {}", if value >= bound { "reached" } else { "missed" });
        self.add(what, format!("{value:.2}"), &wanted);
    }

    /// A figure that must not pass a bound.
    pub fn at_most(&mut self, what: &str, value: f64, bound: f64, note: &str) {
        let wanted =
            format!("at most {bound}: {}", if value <= bound { "reached" } else { "missed" });
        self.add(what, format!("{value:.2}{note}"), &wanted);
    }

    pub fn print(&self) {
        let headings = ["What", "Measured", "Wanted"].map(str::to_owned);
        let widths: Vec<usize> = (0..3)
            .map(|column| {
                std::iter::once(&headings)
                    .chain(&self.rows)
                    .map(|row| row[column].chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let line = |row: &[String; 3]| {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            println!("| {} |", cells.join(" | "));
        };
        line(&headings);
        line(&[0, 1, 2].map(|column| "-".repeat(widths[column])));
        self.rows.iter().for_each(line);
    }
}

/// The middle of some values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
