//! Pictures of status graphs, drawn from the arrows in the code.
//!
//! A status is as many rows below the top as the longest path to it has arrows; arrows that lead
//! back do not count. An arrow that skips rows passes through a free place in each of these rows.
//! An arrow that leads back runs along the right side.

use std::collections::HashMap;

use super::markdown::escape;
use crate::kernel::state::Status;

const ROW_HEIGHT: i32 = 72;
const COLUMN_WIDTH: i32 = 176;
const BOX_HEIGHT: i32 = 34;
const BOX_WIDTH: i32 = 152;
const MARGIN: i32 = 12;

/// A place in a row: a status, or where an arrow passes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowPlace {
    Status(usize),
    Pass { arrow: usize },
}

/// An SVG of a status graph.
pub fn draw<S: Status>() -> String {
    let names: Vec<&str> = S::ALL.iter().map(|status| status.as_str()).collect();
    let index = |status: &S| S::ALL.iter().position(|other| other == status).unwrap_or_default();
    let arrows: Vec<(usize, usize)> =
        S::ARROWS.iter().map(|(from, to)| (index(from), index(to))).collect();
    draw_graph(S::OBJECT, &names, &arrows)
}

fn draw_graph(object: &str, names: &[&str], arrows: &[(usize, usize)]) -> String {
    let is_back = back_arrows(names.len(), arrows);
    let forward: Vec<(usize, (usize, usize))> = arrows
        .iter()
        .copied()
        .enumerate()
        .filter(|(arrow, (from, to))| !is_back[*arrow] && from != to)
        .collect();
    let row_of = rows_of_statuses(names.len(), &forward);
    let rows = rows(names.len(), &row_of, &forward);
    let columns = rows.iter().map(Vec::len).max().unwrap_or(1) as i32;
    let has_back =
        arrows.iter().enumerate().any(|(arrow, (from, to))| is_back[arrow] || from == to);
    let width = columns * COLUMN_WIDTH + 2 * MARGIN + if has_back { 40 } else { 0 };
    let height = rows.len() as i32 * ROW_HEIGHT - (ROW_HEIGHT - BOX_HEIGHT) + 2 * MARGIN;
    let mut passes: HashMap<(usize, usize), (i32, i32)> = HashMap::new();
    let mut of_status = vec![(0, 0); names.len()];
    for (row, places) in rows.iter().enumerate() {
        let indent = (columns - places.len() as i32) * COLUMN_WIDTH / 2;
        for (column, place) in places.iter().enumerate() {
            let x = MARGIN + indent + column as i32 * COLUMN_WIDTH + COLUMN_WIDTH / 2;
            let y = MARGIN + row as i32 * ROW_HEIGHT + BOX_HEIGHT / 2;
            match place {
                RowPlace::Status(status) => of_status[*status] = (x, y),
                RowPlace::Pass { arrow } => {
                    passes.insert((row, *arrow), (x, y));
                }
            }
        }
    }
    let mut svg = format!(
        "<figure class=\"diagram\"><svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" \
         role=\"img\" aria-label=\"The statuses of a {object} and the changes between them\">\
         <defs><marker id=\"tip-{object}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" \
          markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" \
          class=\"tip\"/></marker></defs>"
    );
    for (arrow, (from, to)) in arrows.iter().enumerate() {
        let path = if is_back[arrow] || from == to {
            let ((from_x, from_y), (to_x, to_y)) = (of_status[*from], of_status[*to]);
            let (from_y, to_y) = if from == to { (from_y + 8, to_y - 8) } else { (from_y, to_y) };
            let side = from_x.max(to_x) + BOX_WIDTH / 2 + 36;
            format!(
                "M{} {from_y} C{side} {from_y} {side} {to_y} {} {to_y}",
                from_x + BOX_WIDTH / 2,
                to_x + BOX_WIDTH / 2 + 3
            )
        } else {
            let mut points = vec![bottom(of_status[*from])];
            for row in row_of[*from] + 1..row_of[*to] {
                if let Some(point) = passes.get(&(row, arrow)) {
                    points.push(*point);
                }
            }
            points.push(top(of_status[*to]));
            curve(&points)
        };
        svg.push_str(&format!(
            "<path class=\"arrow\" d=\"{path}\" marker-end=\"url(#tip-{object})\"/>"
        ));
    }
    for (status, name) in names.iter().enumerate() {
        let (x, y) = of_status[status];
        let is_end = arrows.iter().all(|(from, _)| *from != status);
        let class = if is_end { "status end" } else { "status" };
        svg.push_str(&format!(
            "<g class=\"{class}\"><rect x=\"{}\" y=\"{}\" width=\"{BOX_WIDTH}\" \
             height=\"{BOX_HEIGHT}\" rx=\"6\"/>\
             <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}</text></g>",
            x - BOX_WIDTH / 2,
            y - BOX_HEIGHT / 2,
            y + 5,
            escape(name)
        ));
    }
    svg.push_str("</svg></figure>\n");
    svg
}

fn bottom((x, y): (i32, i32)) -> (i32, i32) {
    (x, y + BOX_HEIGHT / 2)
}

fn top((x, y): (i32, i32)) -> (i32, i32) {
    (x, y - BOX_HEIGHT / 2)
}

/// A line through points from top to bottom, upright at each of them.
fn curve(points: &[(i32, i32)]) -> String {
    let mut path = String::new();
    for pair in points.windows(2) {
        let ((x, y), (next_x, next_y)) = (pair[0], pair[1]);
        if path.is_empty() {
            path.push_str(&format!("M{x} {y}"));
        }
        let middle = i32::midpoint(y, next_y);
        path.push_str(&format!(" C{x} {middle} {next_x} {middle} {next_x} {next_y}"));
    }
    path
}

/// Which arrows lead back. A depth-first search finds them: they lead to a status whose visit has
/// begun and not ended.
fn back_arrows(count: usize, arrows: &[(usize, usize)]) -> Vec<bool> {
    /// `state` is 0 for a status before its visit, 1 during it, and 2 after it.
    fn visit(status: usize, arrows: &[(usize, usize)], state: &mut [u8], is_back: &mut [bool]) {
        state[status] = 1;
        for (arrow, (_, to)) in arrows.iter().enumerate().filter(|(_, (from, _))| *from == status) {
            match state[*to] {
                0 => visit(*to, arrows, state, is_back),
                1 => is_back[arrow] = true,
                _ => {}
            }
        }
        state[status] = 2;
    }
    let mut is_back = vec![false; arrows.len()];
    let mut state = vec![0; count];
    for status in 0..count {
        if state[status] == 0 {
            visit(status, arrows, &mut state, &mut is_back);
        }
    }
    is_back
}

/// The row of each status: one below the lowest status that leads to it.
fn rows_of_statuses(count: usize, forward: &[(usize, (usize, usize))]) -> Vec<usize> {
    let mut row_of = vec![0; count];
    for _ in 0..count {
        for (_, (from, to)) in forward {
            row_of[*to] = row_of[*to].max(row_of[*from] + 1);
        }
    }
    row_of
}

/// Rows of places, each ordered by where its arrows come from and lead to.
fn rows(count: usize, row_of: &[usize], forward: &[(usize, (usize, usize))]) -> Vec<Vec<RowPlace>> {
    let last = row_of.iter().copied().max().unwrap_or(0);
    let mut rows: Vec<Vec<RowPlace>> = vec![Vec::new(); last + 1];
    for status in 0..count {
        rows[row_of[status]].push(RowPlace::Status(status));
    }
    // The row of the lower place, the upper place, and the lower place.
    let mut links: Vec<(usize, RowPlace, RowPlace)> = Vec::new();
    for (arrow, (from, to)) in forward {
        let mut above = RowPlace::Status(*from);
        let between = rows.iter_mut().enumerate().take(row_of[*to]).skip(row_of[*from] + 1);
        for (row, places) in between {
            let pass = RowPlace::Pass { arrow: *arrow };
            places.push(pass);
            links.push((row, above, pass));
            above = pass;
        }
        links.push((row_of[*to], above, RowPlace::Status(*to)));
    }
    for _ in 0..8 {
        for row in 1..=last {
            sort_by_neighbours(&mut rows, row, row - 1, &links);
        }
        for row in (0..last).rev() {
            sort_by_neighbours(&mut rows, row, row + 1, &links);
        }
    }
    rows
}

/// Orders the places of a row by the mean position of their neighbours in another row.
fn sort_by_neighbours(
    rows: &mut [Vec<RowPlace>],
    row: usize,
    other: usize,
    links: &[(usize, RowPlace, RowPlace)],
) {
    // Places are centred, so a place counts from the middle of its row.
    let offset = |places: &[RowPlace], index: usize| 2 * index as i64 - (places.len() as i64 - 1);
    let middle = |place: RowPlace, own: usize| -> i64 {
        let neighbours: Vec<i64> = links
            .iter()
            .filter_map(|(lower, from, to)| {
                let (near, far) = if *lower == row { (*to, *from) } else { (*from, *to) };
                let is_linked = near == place && (*lower == row || *lower == other);
                let found = rows[other].iter().position(|candidate| *candidate == far);
                found.filter(|_| is_linked).map(|index| offset(&rows[other], index))
            })
            .collect();
        match neighbours.len() as i64 {
            0 => offset(&rows[row], own) * 1000,
            count => neighbours.iter().sum::<i64>() * 1000 / count,
        }
    };
    let mut keyed: Vec<(i64, usize, RowPlace)> = rows[row]
        .iter()
        .enumerate()
        .map(|(own, place)| (middle(*place, own), own, *place))
        .collect();
    keyed.sort_by_key(|(key, own, _)| (*key, *own));
    rows[row] = keyed.into_iter().map(|(_, _, place)| place).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beneficiaries::state::BeneficiaryStatus;
    use crate::transfers::state::TransferStatus;

    #[test]
    fn every_status_and_arrow_is_drawn() {
        for (svg, statuses, arrows) in [
            (draw::<TransferStatus>(), TransferStatus::ALL.len(), TransferStatus::ARROWS.len()),
            (
                draw::<BeneficiaryStatus>(),
                BeneficiaryStatus::ALL.len(),
                BeneficiaryStatus::ARROWS.len(),
            ),
        ] {
            assert_eq!(svg.matches("<rect ").count(), statuses);
            assert_eq!(svg.matches("class=\"arrow\"").count(), arrows);
        }
    }
}
