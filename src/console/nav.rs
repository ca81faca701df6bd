//! The navigation: one line for each place of the console.

use crate::staff::Role;

pub struct Line {
    /// As `visit.frame(…)` names it.
    pub section: &'static str,
    pub path: &'static str,
    /// The key of its text.
    pub text: &'static str,
    /// Who sees it.
    pub least: Role,
}

pub const LINES: &[Line] =
    &[Line { section: "home", path: "/console", text: "nav.home", least: Role::Viewer }];

/// The lines that an operator sees.
pub fn lines(role: Role) -> Vec<&'static Line> {
    LINES.iter().filter(|line| role.includes(line.least)).collect()
}
