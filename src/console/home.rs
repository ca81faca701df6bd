//! The first page.

use askama::Template;

use super::frame::{Frame, draw};
use super::visit::{Outcome, Visit};

#[derive(Template)]
#[template(path = "console/home.html")]
struct Home<'a> {
    frame: Frame<'a>,
}

pub async fn page(visit: Visit) -> Outcome {
    draw(&Home { frame: visit.frame("home") })
}
