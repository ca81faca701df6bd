//! The page of the documentation that was probably meant.

use crate::guides::Guides;
use crate::http::near;

/// The last part of a path, which names the page.
fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// For a path below `/docs/` that has no page, the path of the page that was probably meant. If no
/// whole path is similar, the last parts of the paths are compared, because readers look for pages
/// of the reference among the guides.
pub fn meant_page<'a>(guides: &'a Guides, path: &str) -> Option<&'a str> {
    let written = path.strip_prefix("/docs/")?.trim_end_matches('/');
    let written = name(written.strip_suffix(".md").unwrap_or(written));
    let pages = guides.pages();
    let by_name = || {
        let names: Vec<&str> = pages.iter().copied().map(name).collect();
        let meant = near::meant(written, &names)?;
        pages.iter().copied().find(|page| name(page) == meant)
    };
    near::meant(path, &pages).or_else(by_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::openapi;
    use crate::routes::{resource_paths, routes};

    #[test]
    fn a_path_near_a_page_leads_to_that_page() {
        let document = openapi::document(&routes(), &resource_paths(), "/");
        let guides = Guides::new(document, "https://pay.example");
        for (path, meant) in [
            ("/docs/payouts", Some("/docs/api/payouts")),
            ("/docs/payout.md", Some("/docs/api/payouts")),
            ("/docs/api/webhooks", Some("/docs/webhooks")),
            ("/docs/guides/testing", Some("/docs/testing")),
            ("/docs/idempotncy", Some("/docs/idempotency")),
            ("/docs/customers", None),
            ("/docs/405", None),
            ("/v1/payouts", None),
        ] {
            assert_eq!(meant_page(&guides, path), meant, "{path}");
        }
        let text = |meant| String::from_utf8(guides.missing(meant).unwrap().body.to_vec()).unwrap();
        let link = "<p>Did you mean <a href=\"/docs/api/payouts\">/docs/api/payouts</a>?</p>";
        assert!(text(Some("/docs/api/payouts")).contains(link));
        assert!(!text(None).contains("Did you mean"));
    }
}
