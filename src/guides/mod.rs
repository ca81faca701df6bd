//! The documentation that the service serves to callers: guides and the reference of the API, both
//! also as plain text for machines, and a search. Everything is in the binary, and no page loads
//! anything from elsewhere.
//!
//! The guides are the Markdown files in `docs/guides/`. Where a guide has `<!-- insert NAME -->`,
//! the page has what the code knows, such as the error codes or a status graph. To add a guide,
//! write its file and add its line to `GUIDES`.

mod diagram;
mod fields;
mod inserts;
pub mod markdown;
mod reference;

use std::collections::HashMap;
use std::sync::OnceLock;

use askama::Template;
use bytes::Bytes;
use serde_json::{Value, json};

/// The style sheet. The pages for payers and the console share its beginning.
const GUIDES_CSS: &str = concat!(
    include_str!("../../assets/tokens.css"),
    "@media (prefers-color-scheme: dark) {\n",
    include_str!("../../assets/dark.css"),
    "}\n",
    include_str!("guides.css")
);

const GUIDES: &[GuideSource] = &[
    GuideSource::new("", "Overview", include_str!("../../docs/guides/index.md")),
    GuideSource::new(
        "quick-start",
        "Quick start",
        include_str!("../../docs/guides/quick-start.md"),
    ),
    GuideSource::new(
        "transfers",
        "The life of a transfer",
        include_str!("../../docs/guides/transfers.md"),
    ),
    GuideSource::new("webhooks", "Webhooks", include_str!("../../docs/guides/webhooks.md")),
    GuideSource::new(
        "receivers",
        "Try your receiver",
        include_str!("../../docs/guides/receivers.md"),
    ),
    GuideSource::new(
        "idempotency",
        "Idempotency and retries",
        include_str!("../../docs/guides/idempotency.md"),
    ),
    GuideSource::new("errors", "Errors", include_str!("../../docs/guides/errors.md")),
    GuideSource::new("lists", "Lists", include_str!("../../docs/guides/lists.md")),
    GuideSource::new("events", "Follow events", include_str!("../../docs/guides/events.md")),
    GuideSource::new("testing", "Testing", include_str!("../../docs/guides/testing.md")),
    GuideSource::new("refunds", "Refunds and holds", include_str!("../../docs/guides/refunds.md")),
    GuideSource::new("going-live", "Going live", include_str!("../../docs/guides/going-live.md")),
    GuideSource::new(
        "changes",
        "Versions and changes",
        include_str!("../../docs/guides/changes.md"),
    ),
];

/// The server's address in the text of the guides. What is served has the server's own address
/// instead.
const EXAMPLE_URL: &str = "http://127.0.0.1:8080";

/// All guides in one file.
const FULL_TEXT_PATH: &str = "/llms-full.txt";

/// The page for unknown addresses below `/docs/`.
const MISSING_PATH: &str = "/docs/404";
const MISSING_TITLE: &str = "<h1>There is no such page</h1>";

struct GuideSource {
    /// The last part of its path; empty for the first page.
    slug: &'static str,
    title: &'static str,
    markdown: &'static str,
}

impl GuideSource {
    const fn new(slug: &'static str, title: &'static str, markdown: &'static str) -> GuideSource {
        GuideSource { slug, title, markdown }
    }
    /// The path of its Markdown.
    fn markdown_path(&self) -> String {
        if self.slug.is_empty() {
            "/docs/index.md".into()
        } else {
            format!("/docs/{}.md", self.slug)
        }
    }
}

/// A file that is served.
#[derive(Clone)]
pub struct GuideFile {
    pub content_type: &'static str,
    pub body: Bytes,
    /// Of a Markdown file, the text with the marks that say which part is for which language.
    marked: Option<String>,
}

impl GuideFile {
    fn new(content_type: &'static str, body: impl Into<Bytes>) -> GuideFile {
        GuideFile { content_type, body: body.into(), marked: None }
    }
    fn markdown(content_type: &'static str, text: &str) -> GuideFile {
        let marked = Some(text.to_owned());
        GuideFile { content_type, body: markdown::plain(text).into(), marked }
    }
}

/// A line of the navigation.
struct NavigationEntry {
    path: String,
    title: String,
    is_current: bool,
}

#[derive(Template)]
#[template(path = "guides/page.html")]
struct GuideTemplate<'a> {
    title: &'a str,
    content: &'a str,
    guides: Vec<NavigationEntry>,
    resources: Vec<NavigationEntry>,
    headings: &'a [markdown::Heading],
    markdown_path: Option<String>,
    previous: Option<NavigationEntry>,
    next: Option<NavigationEntry>,
}

/// Every page and file below `/docs/`, and the files `/llms.txt` and `/llms-full.txt`. All are
/// rendered when somebody first asks for one of them. Commands that answer no requests make a
/// `Guides` too, and never need the files.
pub struct Guides {
    document: Value,
    public_url: String,
    files: OnceLock<HashMap<String, GuideFile>>,
}

impl Guides {
    /// `document` is the OpenAPI document; `public_url` is where callers reach the service.
    pub fn new(document: Value, public_url: &str) -> Guides {
        Guides { document, public_url: public_url.to_owned(), files: OnceLock::new() }
    }

    fn files(&self) -> &HashMap<String, GuideFile> {
        self.files.get_or_init(|| Guides::render(&self.document, &self.public_url))
    }

    /// The file at a path, if there is one.
    pub fn file(&self, path: &str) -> Option<&GuideFile> {
        if path != "/llms.txt" && path != FULL_TEXT_PATH && !path.starts_with("/docs/") {
            return None;
        }
        let files = self.files();
        files.get(path).or_else(|| files.get(path.strip_suffix('/')?))
    }

    /// The path of the Markdown of the page at `path`; `None` if no page with Markdown is there.
    pub fn markdown_path(&self, path: &str) -> Option<String> {
        let name = path.strip_prefix("/docs/")?.trim_end_matches('/');
        let path = format!("/docs/{}.md", if name.is_empty() { "index" } else { name });
        self.file(&path).map(|_| path)
    }

    /// The file at a path. With the parameter `lang`, a Markdown file has code in that language
    /// only.
    pub fn file_for(&self, path: &str, query: Option<&str>) -> Option<GuideFile> {
        let file = self.file(path)?;
        let mut pairs = url::form_urlencoded::parse(query.unwrap_or("").as_bytes());
        let language = pairs.find(|(name, _)| name == "lang").map(|(_, language)| language);
        Some(match file.marked.as_deref().zip(language) {
            Some((text, language)) => {
                GuideFile::new(file.content_type, markdown::only(text, &language))
            }
            None => file.clone(),
        })
    }

    /// The path of every page, those of the guides first.
    pub fn pages(&self) -> Vec<&str> {
        let is_page = |(path, file): &(&String, &GuideFile)| {
            *path != MISSING_PATH && file.content_type.starts_with("text/html")
        };
        let pages = self.files().iter().filter(is_page);
        let mut paths: Vec<&str> = pages.map(|(path, _)| path.as_str()).collect();
        paths.sort_unstable_by_key(|path| (path.matches('/').count(), *path));
        paths
    }

    /// What a browser is shown instead of a page that does not exist; `meant` is the path of the
    /// page that was probably meant.
    pub fn missing(&self, meant: Option<&str>) -> Option<GuideFile> {
        let file = self.files().get(MISSING_PATH)?;
        let Some(meant) = meant else { return Some(file.clone()) };
        let text = std::str::from_utf8(&file.body).ok()?;
        let hint = format!("{MISSING_TITLE}\n<p>Did you mean <a href=\"{meant}\">{meant}</a>?</p>");
        Some(GuideFile::new(file.content_type, text.replacen(MISSING_TITLE, &hint, 1)))
    }

    fn render(document: &Value, public_url: &str) -> HashMap<String, GuideFile> {
        let resources = reference::resources(document);
        let mut builder =
            Builder { files: HashMap::new(), resources: &resources, search: Vec::new() };
        let mut full_text = String::new();
        for (index, source) in GUIDES.iter().enumerate() {
            let source_text = source.markdown.replace(EXAMPLE_URL, public_url);
            let text = inserts::fill(&source_text, document, inserts::Output::Text);
            let page = inserts::fill(&source_text, document, inserts::Output::Page);
            builder.guide(index, source, &text, &page);
            full_text.push_str(&text);
            full_text.push('\n');
        }
        for (index, resource) in resources.iter().enumerate() {
            builder.resource(index, resource);
        }
        builder.missing();
        let search = Value::Array(std::mem::take(&mut builder.search)).to_string();
        let mut files = builder.files;
        let plain = "text/plain; charset=utf-8";
        let script = GuideFile::new("text/javascript; charset=utf-8", include_str!("guides.js"));
        let mut add = |path: &str, file| files.insert(path.to_owned(), file);
        add("/docs/search.json", GuideFile::new("application/json", search));
        add("/docs/guides.css", GuideFile::new("text/css; charset=utf-8", GUIDES_CSS));
        add("/docs/guides.js", script);
        add("/llms.txt", GuideFile::new(plain, llms(public_url, &resources)));
        add(FULL_TEXT_PATH, GuideFile::markdown(plain, &full_text));
        files
    }
}

/// The index for machines, in the form of the llms.txt proposal: a title, a summary, and links to
/// Markdown.
fn llms(public_url: &str, resources: &[reference::ResourcePage]) -> String {
    let mut text = String::from(
        "# hundi\n\n> An API that pays Indian rupees into NRE bank accounts, funded by a deposit \
         of USDT on the chain that the operator chose: beneficiary, sender, quote lock, transfer \
         with a deposit address, INR payout with a UTR, signed webhooks.\n\nEvery page below \
         /docs/ answers `Accept: text/markdown` with Markdown. The guides have code in several \
         languages. Add `?lang=bash`, `?lang=python`, `?lang=typescript` or `?lang=rust` to an \
         address to get the code in that language only.\n\n## Guides\n\n",
    );
    for guide in GUIDES {
        text.push_str(&format!("- [{}]({public_url}{})\n", guide.title, guide.markdown_path()));
    }
    text.push_str("\n## Reference\n\n");
    for resource in resources {
        let path = resource.markdown_path();
        text.push_str(&format!("- [{}]({public_url}{path})\n", resource.title));
    }
    text.push_str(&format!(
        "- [OpenAPI 3.1 document]({public_url}/openapi.json)\n\n## Optional\n\n\
         - [All guides in one file]({public_url}{FULL_TEXT_PATH})\n"
    ));
    text
}

struct Builder<'a> {
    files: HashMap<String, GuideFile>,
    resources: &'a [reference::ResourcePage],
    search: Vec<Value>,
}

fn guide_entry(index: usize, current: Option<usize>) -> Option<NavigationEntry> {
    let guide = GUIDES.get(index)?;
    Some(NavigationEntry {
        path: format!("/docs/{}", guide.slug),
        title: guide.title.to_owned(),
        is_current: current == Some(index),
    })
}

impl Builder<'_> {
    fn page(&mut self, path: &str, page: &GuideTemplate<'_>, sections: &[markdown::SearchSection]) {
        // The template holds no expression that can fail.
        let html = page.render().unwrap_or_default();
        let file = GuideFile::new("text/html; charset=utf-8", html);
        self.files.insert(path.to_owned(), file);
        self.search.extend(sections.iter().map(|section| {
            json!({ "page": page.title, "heading": section.heading, "text": section.text,
                "path": format!("{path}#{}", section.anchor) })
        }));
    }

    /// Adds the Markdown of a page.
    fn text(&mut self, path: String, text: &str) {
        self.files.insert(path, GuideFile::markdown("text/markdown; charset=utf-8", text));
    }

    fn guides(&self, current: Option<usize>) -> Vec<NavigationEntry> {
        (0..GUIDES.len()).filter_map(|index| guide_entry(index, current)).collect()
    }

    fn resources(&self, current: Option<usize>) -> Vec<NavigationEntry> {
        let entry = |(index, resource): (usize, &reference::ResourcePage)| NavigationEntry {
            path: resource.path(),
            title: resource.title.clone(),
            is_current: current == Some(index),
        };
        self.resources.iter().enumerate().map(entry).collect()
    }

    fn guide(&mut self, index: usize, source: &GuideSource, text: &str, page: &str) {
        let rendered = markdown::render(page);
        let markdown_path = source.markdown_path();
        self.text(markdown_path.clone(), text);
        let page = GuideTemplate {
            title: source.title,
            content: &rendered.html,
            guides: self.guides(Some(index)),
            resources: self.resources(None),
            headings: &rendered.headings,
            markdown_path: Some(markdown_path),
            previous: index.checked_sub(1).and_then(|index| guide_entry(index, None)),
            next: guide_entry(index + 1, None),
        };
        let path = format!("/docs/{}", source.slug);
        self.page(&path, &page, &rendered.sections);
    }

    /// What a browser gets for a page that does not exist.
    fn missing(&mut self) {
        let content = format!(
            "{MISSING_TITLE}\n<p>Look for it in the navigation or with the search, or begin with \
             the <a href=\"/docs/\">overview</a>.</p>"
        );
        let page = GuideTemplate {
            title: "No such page",
            content: &content,
            guides: self.guides(None),
            resources: self.resources(None),
            headings: &[],
            markdown_path: None,
            previous: None,
            next: None,
        };
        self.page(MISSING_PATH, &page, &[]);
    }

    fn resource(&mut self, index: usize, resource: &reference::ResourcePage) {
        let page = GuideTemplate {
            title: &resource.title,
            content: &resource.html,
            guides: self.guides(None),
            resources: self.resources(Some(index)),
            headings: &resource.headings,
            markdown_path: Some(resource.markdown_path()),
            previous: None,
            next: None,
        };
        self.page(&resource.path(), &page, &resource.sections);
        self.text(resource.markdown_path(), &resource.markdown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::openapi;
    use crate::routes::{resource_paths, routes};

    const PAGE_BYTES_MAX: usize = 300 * 1024;

    fn guides() -> Guides {
        Guides::new(openapi::document(&routes(), &resource_paths(), "/"), "https://pay.example")
    }

    /// The values of an attribute in a page.
    fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
        let start = format!(" {attribute}=\"");
        html.split(start.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect()
    }

    #[test]
    fn every_link_leads_somewhere() {
        let guides = guides();
        let pages =
            guides.files().iter().filter(|(_, file)| file.content_type.starts_with("text/html"));
        let mut links_count = 0;
        for (path, page) in pages {
            let html = std::str::from_utf8(&page.body).unwrap();
            for link in values(html, "href").into_iter().chain(values(html, "src")) {
                let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
                if target.starts_with("https://") || matches!(target, "/openapi.json" | "data:,") {
                    continue;
                }
                let target = if target.is_empty() { path } else { target };
                let file = guides.file(target).unwrap_or_else(|| panic!("{path} links to {link}"));
                let text = std::str::from_utf8(&file.body).unwrap();
                assert!(
                    anchor.is_empty() || values(text, "id").contains(&anchor),
                    "{path} links to {link}, and there is no such heading"
                );
                links_count += 1;
            }
        }
        assert!(links_count > 300, "only {links_count} links were looked at");
    }

    #[test]
    fn pages_are_light_and_load_nothing_from_elsewhere() {
        let guides = guides();
        let size = |path: &str| guides.file(path).unwrap().body.len();
        let shared = size("/docs/guides.css") + size("/docs/guides.js") + size("/docs/search.json");
        for (path, page) in guides.files() {
            if !page.content_type.starts_with("text/html") {
                continue;
            }
            assert!(
                page.body.len() + shared <= PAGE_BYTES_MAX,
                "{path} has {} bytes",
                page.body.len()
            );
            let html = std::str::from_utf8(&page.body).unwrap();
            assert!(values(html, "src").iter().all(|source| source.starts_with('/')), "{path}");
            assert!(!html.contains("<!-- insert"), "{path} asks for an insert that is unknown");
            assert!(!html.contains(" style=\"") && !html.contains("<script>"), "{path}");
            assert!(!html.contains("<!-- "), "{path} keeps a mark");
            assert_eq!(html.matches("<div").count(), html.matches("</div>").count(), "{path}");
        }
    }

    #[test]
    fn machines_find_every_guide() {
        let guides = guides();
        let index = guides.file("/llms.txt").unwrap();
        let index = std::str::from_utf8(&index.body).unwrap();
        let overview = guides.file("/docs/index.md").unwrap();
        for text in [index, std::str::from_utf8(&overview.body).unwrap()] {
            assert!(!text.contains("TRON"), "the operator may have chosen another chain");
        }
        for guide in GUIDES {
            let path = guide.markdown_path();
            assert!(index.contains(&format!("https://pay.example{path}")), "{path}");
            let text = guides.file(&path).unwrap();
            assert!(text.body.starts_with(b"# "), "{path}");
        }
        let transfers = guides.file("/docs/api/transfers.md").unwrap();
        let text = std::str::from_utf8(&transfers.body).unwrap();
        assert!(index.contains("https://pay.example/docs/api/transfers.md"));
        assert!(
            text.contains("`POST /v1/transfers`") && text.contains("- `quote_lock_id` (string")
        );
        assert!(!text.contains("<code>") && !text.contains("&quot;"), "{text}");
    }

    #[test]
    fn machines_get_one_language_if_they_like() {
        let guides = guides();
        let text = |path: &str, query| {
            let file = guides.file_for(path, query).unwrap();
            String::from_utf8(file.body.to_vec()).unwrap()
        };
        let all = text("/docs/quick-start.md", None);
        let python = text("/docs/quick-start.md", Some("lang=python"));
        assert!(python.contains("title=quick_start.py") && python.len() * 2 < all.len());
        for other in ["quick_start.sh\n", "quick_start.ts\n", "quick_start.rs\n"] {
            assert!(!python.contains(&format!("title={other}")), "{other}");
            assert!(all.contains(&format!("title={other}")), "{other}");
        }
        // What a guide says of another language is left out together with its code.
        let sections = ["npx tsx", "cargo add", "Perl", "With Express", "receive_express"];
        for path in ["/docs/webhooks.md", FULL_TEXT_PATH] {
            let (all, python) = (text(path, None), text(path, Some("lang=python")));
            assert!(sections.iter().all(|other| all.contains(other)), "{path}");
            assert!(!sections.iter().any(|other| python.contains(other)), "{python}");
            assert!(!all.contains("<!--") && !python.contains("<!--"), "{path}");
        }
        let whole = text(FULL_TEXT_PATH, Some("lang=typescript"));
        assert!(whole.contains("receive_express.ts") && !whole.contains("cargo run"));
        assert!(whole.contains("title=retry.ts") && !whole.contains("title=retry.py"));
        // A page keeps all languages: its reader chooses with the tabs.
        let page = text("/docs/quick-start", Some("lang=python"));
        assert_eq!(page, text("/docs/quick-start", None));
    }

    #[test]
    fn the_search_knows_fields() {
        let guides = guides();
        let search = std::str::from_utf8(&guides.file("/docs/search.json").unwrap().body).unwrap();
        for word in ["ifsc", "purpose_code", "quote_lock_id", "unique_transaction_reference"] {
            assert!(search.contains(word), "{word}");
        }
    }

    #[test]
    fn code_names_the_server_that_shows_it() {
        let guides = guides();
        let page = guides.file("/docs/quick-start").unwrap();
        let html = std::str::from_utf8(&page.body).unwrap();
        assert!(html.contains("https://pay.example") && !html.contains(EXAMPLE_URL));
    }
}
