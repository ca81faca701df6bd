//! Renders guides from Markdown to HTML. Headings get anchors. Code blocks that say the same in
//! several languages become one block with a choice.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, html};

/// A heading of the second level, for the contents of a page.
pub struct Heading {
    pub anchor: String,
    pub text: String,
}

/// A part of a page as the search finds it.
pub struct SearchSection {
    pub heading: String,
    pub anchor: String,
    pub text: String,
}

pub struct Rendered {
    pub html: String,
    pub headings: Vec<Heading>,
    pub sections: Vec<SearchSection>,
}

/// Renders a guide. The text is the project's own, so HTML in it is kept.
pub fn render(text: &str) -> Rendered {
    let text = marks_to_html(text);
    let parser = Parser::new_ext(&text, Options::ENABLE_TABLES);
    let mut rendered = Rendered { html: String::new(), headings: Vec::new(), sections: Vec::new() };
    let mut pending: Vec<Event<'_>> = Vec::new();
    let mut codes: Vec<CodeBlock> = Vec::new();
    let mut events = parser.into_iter();
    while let Some(event) = events.next() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                html::push_html(&mut rendered.html, pending.drain(..));
                let text = text_until(&mut events, &TagEnd::CodeBlock);
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                let code = CodeBlock::new(&info, text);
                let choice = codes.iter().map(|code| code.language.as_str());
                if !continues_choice(choice, &code.language) {
                    push_codes(&mut rendered.html, &mut codes);
                }
                codes.push(code);
            }
            Event::Start(Tag::Heading { level, .. }) => {
                push_codes(&mut rendered.html, &mut codes);
                html::push_html(&mut rendered.html, pending.drain(..));
                let text = text_until(&mut events, &TagEnd::Heading(level));
                let anchor = anchor(&text);
                let escaped = escape(&text);
                rendered.html.push_str(&format!(
                    "<{level} id=\"{anchor}\"><a class=\"anchor\" \
                     href=\"#{anchor}\">{escaped}</a></{level}>\n"
                ));
                if level == pulldown_cmark::HeadingLevel::H2 {
                    rendered.headings.push(Heading { anchor: anchor.clone(), text: text.clone() });
                }
                rendered.sections.push(SearchSection {
                    heading: text,
                    anchor,
                    text: String::new(),
                });
            }
            event => {
                push_codes(&mut rendered.html, &mut codes);
                if let (Event::Text(text) | Event::Code(text), Some(section)) =
                    (&event, rendered.sections.last_mut())
                {
                    section.text.push_str(text);
                    section.text.push(' ');
                }
                pending.push(event);
            }
        }
    }
    push_codes(&mut rendered.html, &mut codes);
    html::push_html(&mut rendered.html, pending.into_iter());
    // A table that is wider than the screen is scrolled, by keyboard too.
    rendered.html = rendered.html.replace("<table>", "<table tabindex=\"0\">");
    rendered
}

fn text_until<'a>(events: &mut impl Iterator<Item = Event<'a>>, end: &TagEnd) -> String {
    let mut text = String::new();
    for event in events {
        match event {
            Event::End(found) if found == *end => break,
            Event::Text(part) | Event::Code(part) => text.push_str(&part),
            _ => {}
        }
    }
    text
}

struct CodeBlock {
    language: String,
    /// The name of the file that the reader saves it as.
    file: Option<String>,
    text: String,
}

impl CodeBlock {
    /// `info` is what follows the opening fence: the language, and perhaps `title=FILE`.
    fn new(info: &str, text: String) -> CodeBlock {
        let mut words = info.split_whitespace();
        let language = words.next().unwrap_or("text").to_owned();
        let file = words.find_map(|word| word.strip_prefix("title=")).map(str::to_owned);
        CodeBlock { language, file, text }
    }
    fn html(&self) -> String {
        let caption = match &self.file {
            Some(file) => format!("<figcaption>{}</figcaption>", escape(file)),
            None => String::new(),
        };
        format!(
            "<figure class=\"code\" data-language=\"{}\">{caption}<pre \
             tabindex=\"0\"><code>{}</code></pre></figure>\n",
            escape(&self.language),
            escape(&self.text)
        )
    }
}

/// Writes blocks that follow one another, and empties the list. Several blocks become a choice: the
/// reader sees one block at a time.
fn push_codes(html: &mut String, codes: &mut Vec<CodeBlock>) {
    let is_choice = codes.len() > 1;
    if is_choice {
        html.push_str("<div class=\"choice\">\n");
    }
    for code in codes.drain(..) {
        html.push_str(&code.html());
    }
    if is_choice {
        html.push_str("</div>\n");
    }
}

/// `Retry after an error` becomes `retry-after-an-error`; a code keeps its underscores.
pub fn anchor(text: &str) -> String {
    let mut anchor = String::new();
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() || letter == '_' {
            anchor.push(letter.to_ascii_lowercase());
        } else if !anchor.is_empty() && !anchor.ends_with('-') {
            anchor.push('-');
        }
    }
    anchor.trim_end_matches('-').to_owned()
}

pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// The languages of code, and how the first cell of a table's row names them.
const LANGUAGES: [(&str, &str); 4] =
    [("bash", "Shell"), ("python", "Python"), ("typescript", "TypeScript"), ("rust", "Rust")];

/// A line of its own that begins or ends a part for some languages only.
enum LanguageMark<'a> {
    /// `<!-- for python rust -->`: what follows is for these alone.
    For(&'a str),
    /// `<!-- end -->`
    End,
}

fn mark(line: &str) -> Option<LanguageMark<'_>> {
    let name = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    if name == "end" {
        Some(LanguageMark::End)
    } else {
        name.strip_prefix("for ").map(LanguageMark::For)
    }
}

/// Options that only the tests read. They stand in the line of a code block's opening fence.
const TEST_OPTIONS: [&str; 4] = [" background=", " pasted=", " answer=", " unrun="];

/// The text as readers of Markdown get it: without marks and without [`TEST_OPTIONS`].
pub fn plain(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if mark(line).is_some() {
            lines.next_if(|next| next.is_empty());
            continue;
        }
        let ends = TEST_OPTIONS.map(|option| line.find(option));
        let end = ends.into_iter().flatten().min().filter(|_| line.starts_with("```"));
        kept.push_str(end.map_or(line, |end| &line[..end]));
        kept.push('\n');
    }
    kept
}

/// The text with the marks replaced by HTML elements.
fn marks_to_html(text: &str) -> String {
    let line = |line: &str| match mark(line) {
        Some(LanguageMark::For(languages)) => format!("<div data-for=\"{languages}\">\n"),
        Some(LanguageMark::End) => "</div>\n".to_owned(),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// The text for one language. Parts that are marked for other languages only are left out. Of
/// consecutive table rows that each begin with a language's name, only the row of this language
/// stays. Of code blocks that are a choice, only the block in this language stays. If no row or
/// block is of this language, the first one stays. An unknown language counts as `bash`.
pub fn only(text: &str, language: &str) -> String {
    let known = LANGUAGES.iter().find(|(name, _)| *name == language);
    let (language, row_name) = known.copied().unwrap_or(LANGUAGES[0]);
    let mut kept = String::with_capacity(text.len());
    let mut is_for_others = false;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        match mark(line) {
            Some(LanguageMark::For(languages)) => {
                is_for_others = !languages.split(' ').any(|name| name == language);
            }
            Some(LanguageMark::End) => is_for_others = false,
            None if is_for_others => continue,
            None if row_language(line).is_some() => {
                let mut rows = vec![line];
                while let Some(row) = lines.next_if(|next| row_language(next).is_some()) {
                    rows.push(row);
                }
                let own = rows.iter().find(|row| row_language(row) == Some(row_name));
                kept.push_str(own.unwrap_or(&rows[0]));
                kept.push('\n');
                continue;
            }
            None => {}
        }
        // Lines with marks stay for now: `plain` removes each with the blank line after it.
        kept.push_str(line);
        kept.push('\n');
    }
    plain(&one_choice(&kept, language))
}

/// The language that a row of a table is about.
fn row_language(line: &str) -> Option<&'static str> {
    let cell = line.strip_prefix("| ")?.split(" |").next()?;
    LANGUAGES.iter().map(|(_, name)| *name).find(|name| *name == cell)
}

/// The text with one block of each choice: the one in this language, or else the first.
fn one_choice(text: &str, language: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut codes: Vec<(String, String)> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            // Blank lines between blocks of one choice separate nothing.
            if !line.is_empty() || codes.is_empty() {
                keep_one(&mut kept, &mut codes, language);
                kept.push_str(line);
                kept.push('\n');
            }
            continue;
        };
        let code_language = info.split_whitespace().next().unwrap_or("text").to_owned();
        let choice = codes.iter().map(|(language, _)| language.as_str());
        if !continues_choice(choice, &code_language) {
            keep_one(&mut kept, &mut codes, language);
        }
        let mut code = format!("{line}\n");
        for line in lines.by_ref() {
            code.push_str(line);
            code.push('\n');
            if line == "```" {
                break;
            }
        }
        codes.push((code_language, code));
    }
    keep_one(&mut kept, &mut codes, language);
    kept
}

/// Whether a block in the language `next` continues the choice of the blocks right before it, whose
/// languages are `choice`. The blocks of a choice are programs, no two of them in one language. A
/// second block in a language says something else than the first, so it begins a new choice. The
/// output of a program belongs to no choice, and ends the choice before it.
fn continues_choice<'a>(choice: impl Iterator<Item = &'a str>, next: &str) -> bool {
    let mut choice = choice.peekable();
    choice.peek().is_some()
        && is_program(next)
        && choice.all(|language| is_program(language) && language != next)
}

/// Whether blocks in this language are programs, and not the output of a program.
fn is_program(language: &str) -> bool {
    !matches!(language, "text" | "json")
}

/// Appends the block in this language to the text, else the first one, and empties the list.
fn keep_one(kept: &mut String, codes: &mut Vec<(String, String)>, language: &str) {
    let chosen = codes.iter().find(|(found, _)| found == language).or(codes.first());
    if let Some((_, code)) = chosen {
        kept.push_str(code);
        kept.push('\n');
    }
    codes.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_in_several_languages_is_a_choice() {
        let text = "```bash\na <b>\n```\n\n```python \
         title=x.py\nb\n```\n\ntext\n\n```bash\nc\n```\n\n```text\nd\n```\n";
        let html = render(text).html;
        assert_eq!(html.matches("<div class=\"choice\">").count(), 1, "{html}");
        assert!(html.contains("a &lt;b&gt;") && html.contains("<figcaption>x.py"), "{html}");
        assert!(html.ends_with("d\n</code></pre></figure>\n"), "{html}");
        // What a program prints ends the choice and is no part of it.
        let text = "```bash\na\n```\n\n```python\nb\n```\n\n```text\nc\n```\n\n```text\nd\n```\n";
        let html = render(text).html;
        assert_eq!(html.matches("<div class=\"choice\">").count(), 1, "{html}");
        assert!(html.find("</div>") < html.find("data-language=\"text\""), "{html}");
        let (choice, printed) = html.split_once("</div>\n").unwrap();
        assert_eq!((choice.matches("<figure").count(), printed.matches("<figure").count()), (2, 2));
    }

    #[test]
    fn two_blocks_of_one_language_are_no_choice() {
        let text = "```bash\n1\n```\n\n```bash\n2\n```\n\n```python\n3\n```\n";
        let html = render(text).html;
        let (alone, choice) = html.split_once("<div class=\"choice\">").unwrap();
        assert_eq!((alone.matches("<figure").count(), choice.matches("<figure").count()), (1, 2));
        assert_eq!(only(text, "bash"), "```bash\n1\n```\n\n```bash\n2\n```\n\n");
        assert_eq!(only(text, "python"), "```bash\n1\n```\n\n```python\n3\n```\n\n");
    }

    #[test]
    fn one_language_of_a_choice_stays() {
        let text = "a\n\n```bash\n1\n```\n\n```python title=x.py\n2\n\n3\n```\n\n\
                    ```text\n4\n```\n\nb\n\n```bash\n5\n```\n\n## c\n";
        let python = "a\n\n```python title=x.py\n2\n\n3\n```\n\n```text\n4\n```\n\nb\n\n\
                      ```bash\n5\n```\n\n## c\n";
        assert_eq!(only(text, "python"), python);
        // A language in which the choice has no block.
        let first = python.replace("```python title=x.py\n2\n\n3", "```bash\n1");
        assert_eq!(only(text, "rust"), first);
    }

    #[test]
    fn what_the_tests_read_is_not_shown() {
        let text = "```python title=x.py background=4242\nx background=1\n```\n";
        assert_eq!(plain(text), "```python title=x.py\nx background=1\n```\n");
        let text = "```python title=x.py pasted=yes\nx pasted=1\n```\n";
        assert_eq!(plain(text), "```python title=x.py\nx pasted=1\n```\n");
        let text = "```json answer=x\n1\n```\n\n```http unrun=no such server\nx unrun=1\n```\n";
        assert_eq!(plain(text), "```json\n1\n```\n\n```http\nx unrun=1\n```\n");
    }

    #[test]
    fn what_is_said_of_other_languages_is_left_out() {
        let text = "a\n\n| Language | Start |\n|---|---|\n| Shell | s |\n| Python | p |\n\n\
                    <!-- for typescript rust -->\n\n### t\n\n```bash\n1\n```\n\n\
                    <!-- end -->\n\nb\n";
        let head = "a\n\n| Language | Start |\n|---|---|\n";
        let part = "### t\n\n```bash\n1\n```\n\n";
        for (language, wanted) in [
            ("python", format!("{head}| Python | p |\n\nb\n")),
            ("bash", format!("{head}| Shell | s |\n\nb\n")),
            // The table has no row for this language, so the first one stays.
            ("rust", format!("{head}| Shell | s |\n\n{part}b\n")),
            ("cobol", format!("{head}| Shell | s |\n\nb\n")),
        ] {
            assert_eq!(only(text, language), wanted, "{language}");
        }
        let all = format!("{head}| Shell | s |\n| Python | p |\n\n{part}b\n");
        assert_eq!(plain(text), all);
        let html = render(text).html;
        assert_eq!(html.matches("<div data-for=\"typescript rust\">").count(), 1, "{html}");
        assert!(html.contains("<h3 id=\"t\">") && html.contains("</div>\n<p>b"), "{html}");
    }

    #[test]
    fn headings_have_anchors_and_sections() {
        let rendered = render("# One\n\nfirst `code`\n\n## Retry: what & when?\n\nsecond\n");
        assert_eq!(rendered.headings.len(), 1);
        assert_eq!(rendered.headings[0].anchor, "retry-what-when");
        assert_eq!(rendered.sections[0].text, "first  code ");
        assert!(rendered.html.contains("id=\"retry-what-when\""), "{}", rendered.html);
    }
}
