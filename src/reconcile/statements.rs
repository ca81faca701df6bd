//! Checks the bank's statements: the opening balance and the movements of each must add up to its
//! closing balance, and the next statement must begin with that balance.

use std::collections::HashMap;

use super::rows::{self, StatementPage};
use super::{Difference, DifferenceKind, Findings, inr};
use crate::kernel::StoreError;
use crate::store::Tx;

/// The most statement IDs that are compared, those with the newest days. Banks reuse IDs, so one ID
/// can stand for several statements; all of them are compared.
const STATEMENT_IDS_MAX: i64 = 20_000;
/// The most missing pages that are named; the others are only counted.
const PAGES_NAMED_MAX: usize = 5;

/// A statement with its pages, in the order of their arrival.
struct PagedStatement {
    pages: Vec<StatementPage>,
}

impl PagedStatement {
    /// The day of the closing balance, or else of the opening balance. `None` if there are only
    /// inner pages, which have neither.
    fn day(&self) -> Option<&str> {
        let closing = self.pages.iter().filter_map(|page| page.closing_day.as_deref()).max();
        closing.or_else(|| self.pages.iter().filter_map(|page| page.opening_day.as_deref()).max())
    }
    /// The opening balance; banks write it on the first page or on all.
    fn opening_units(&self) -> Option<i64> {
        let with_balance = self.pages.iter().filter(|page| page.opening_units.is_some());
        with_balance.min_by_key(|page| page.page)?.opening_units
    }
    /// The closing balance; banks write it on the last page or on all.
    fn closing_units(&self) -> Option<i64> {
        let with_balance = self.pages.iter().filter(|page| page.closing_units.is_some());
        with_balance.max_by_key(|page| page.page)?.closing_units
    }
    /// Whether a page with this statement's ID can belong to it: no other page has the page's
    /// number, and none has a closing balance of another day. The ID alone is not enough, because
    /// banks reuse IDs, after years or even every day.
    fn takes(&self, page: &StatementPage) -> bool {
        self.pages.iter().all(|other| {
            let days = other.closing_day.as_ref().zip(page.closing_day.as_ref());
            other.page != page.page && days.is_none_or(|(day, other_day)| day == other_day)
        })
    }
    /// Which pages are missing between the lowest and the highest that came.
    fn missing(&self) -> Option<String> {
        let mut numbers: Vec<i64> = self.pages.iter().map(|page| page.page).collect();
        numbers.sort_unstable();
        let missing = || {
            numbers.windows(2).flat_map(|pair| match pair {
                [one, next] => one + 1..*next,
                _ => 0..0,
            })
        };
        let named: Vec<String> =
            missing().take(PAGES_NAMED_MAX).map(|number| number.to_string()).collect();
        match (named.as_slice(), missing().count()) {
            ([], _) => None,
            ([one], _) => Some(format!("page {one} is missing")),
            (_, count) if count > PAGES_NAMED_MAX => {
                let more = count - PAGES_NAMED_MAX;
                Some(format!("pages {} and {more} more are missing", named.join(", ")))
            }
            _ => Some(format!("pages {} are missing", named.join(", "))),
        }
    }
}

/// Joins pages to statements, and sorts the statements by their days.
fn join_pages(pages: Vec<StatementPage>) -> Vec<PagedStatement> {
    let mut found: Vec<PagedStatement> = Vec::new();
    let mut latest: HashMap<(String, Option<i64>), usize> = HashMap::new();
    for page in pages {
        let name = (page.statement_id.clone(), page.sequence);
        match latest.get(&name).and_then(|at| found.get_mut(*at)) {
            Some(statement) if statement.takes(&page) => statement.pages.push(page),
            _ => {
                latest.insert(name, found.len());
                found.push(PagedStatement { pages: vec![page] });
            }
        }
    }
    // A statement of which only inner pages came has no balance, and so no place in the order.
    found.retain(|statement| statement.day().is_some());
    found.sort_by_cached_key(|statement| {
        let first = statement.pages.first();
        let order = first
            .map(|page| (page.sequence.unwrap_or(0), page.received_at, page.statement_id.clone()));
        (statement.day().map(str::to_owned), order)
    });
    found
}

/// Adds a difference for each statement whose sum is wrong, and for each gap between two
/// statements.
pub fn compare(tx: &mut dyn Tx, findings: &mut Findings) -> Result<(), StoreError> {
    let statements = join_pages(rows::statement_pages(tx, STATEMENT_IDS_MAX)?);
    let mut closing_before: Option<i64> = None;
    for statement in &statements {
        let what = || statement.pages.first().map_or(String::new(), |p| p.statement_id.clone());
        let (opening, closing) = (statement.opening_units(), statement.closing_units());
        if let (Some(opening), Some(closing)) = (opening, closing) {
            let mut off = inr(opening).minus(inr(closing))?;
            for page in &statement.pages {
                off = off.plus(inr(page.moved_units))?;
            }
            if !off.is_zero() {
                findings.add(Difference {
                    kind: DifferenceKind::StatementSum,
                    what: what(),
                    amount: off,
                    detail: statement.missing(),
                });
            }
        }
        if let (Some(before), Some(opening)) = (closing_before, opening)
            && before != opening
        {
            findings.add(Difference {
                kind: DifferenceKind::StatementGap,
                what: what(),
                amount: inr(opening).minus(inr(before))?,
                detail: None,
            });
        }
        closing_before = closing.or(closing_before);
    }
    findings.tell(format!("{} statements", statements.len()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(id: &str, page: i64, opening: Option<&str>, closing: Option<&str>) -> StatementPage {
        StatementPage {
            statement_id: id.into(),
            sequence: None,
            page,
            opening_units: opening.map(|_| page),
            opening_day: opening.map(str::to_owned),
            closing_units: closing.map(|_| page),
            closing_day: closing.map(str::to_owned),
            moved_units: 0,
            received_at: 0,
        }
    }

    #[test]
    fn pages_join_their_statement_in_any_order() {
        let (first, second) = ("2026-11-20", "2026-11-21");
        let together = join_pages(vec![
            // The pages of the second day come first, and out of order. The bank gives each day's
            // statement the ID "1".
            page("1", 2, None, Some(second)),
            page("1", 1, Some(second), None),
            page("1", 3, None, Some(first)),
            page("1", 1, Some(first), None),
            page("1", 2, None, None),
            page("2", 7, None, None),
        ]);
        let shown: Vec<(Option<&str>, Option<i64>, Option<i64>, usize)> = together
            .iter()
            .map(|s| (s.day(), s.opening_units(), s.closing_units(), s.pages.len()))
            .collect();
        assert_eq!(
            shown,
            [(Some(first), Some(1), Some(3), 3), (Some(second), Some(1), Some(2), 2)]
        );
    }

    #[test]
    fn missing_pages_are_named() {
        for (numbers, expected) in [
            (vec![1], None),
            (vec![2, 3], None),
            (vec![3, 1], Some("page 2 is missing")),
            (vec![1, 3, 5], Some("pages 2, 4 are missing")),
            (vec![1, 99_999], Some("pages 2, 3, 4, 5, 6 and 99992 more are missing")),
        ] {
            let pages = numbers.into_iter().map(|number| page("1", number, None, None)).collect();
            assert_eq!(PagedStatement { pages }.missing().as_deref(), expected);
        }
    }
}
