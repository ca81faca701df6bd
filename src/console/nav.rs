//! The lines of the navigation, and which roles see them.

use crate::staff::Role;

pub struct MenuLine {
    /// The section that a page gives to `visit.frame(…)`; its line is then marked as the current
    /// one.
    pub section: &'static str,
    pub path: &'static str,
    /// The key of the line's text.
    pub text: &'static str,
    /// The lowest role that sees the line.
    pub least: Role,
}

const fn viewed(section: &'static str, path: &'static str, text: &'static str) -> MenuLine {
    MenuLine { section, path, text, least: Role::Viewer }
}

pub const LINES: &[MenuLine] = &[
    viewed("home", "/console", "nav.home"),
    viewed("queues", "/console/queues/holds", "nav.queues"),
    viewed("transfers", "/console/transfers", "nav.transfers"),
    viewed("accounts", "/console/accounts", "nav.accounts"),
    viewed("webhooks", "/console/webhooks", "nav.webhooks"),
    viewed("reports", "/console/reports", "nav.reports"),
    viewed("pauses", "/console/pauses", "nav.pauses"),
    viewed("decisions", "/console/decisions", "nav.decisions"),
    viewed("audit", "/console/audit", "nav.audit"),
    viewed("limits", "/console/limits", "nav.limits"),
    viewed("work", "/console/work", "nav.work"),
    viewed("settings", "/console/settings", "nav.settings"),
    viewed("approvals", "/console/approvals", "nav.approvals"),
];

/// The lines that an operator sees.
pub fn lines(role: Role) -> Vec<&'static MenuLine> {
    LINES.iter().filter(|line| role.includes(line.least)).collect()
}
