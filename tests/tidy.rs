//! Keeps the house as `src/lib.rs` and ARCHITECTURE.md draw it: the order of the rooms, where SQL,
//! drivers and HTTP may stand, and how long lines and files may be.
//!
//! Each rule is a function over the text of the tree. A test plants a break of each rule and sees
//! that it is found.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Columns of a line of Rust, and of a document.
const RUST_COLUMNS_MAX: usize = 100;
const DOCUMENT_COLUMNS_MAX: usize = 120;
/// Lines of a file below `src/`, without its tests.
const FILE_LINES_MAX: usize = 500;
/// A word this long cannot be broken: a key, a hash, a link, a pattern.
const UNBREAKABLE_CHARACTERS_MIN: usize = 60;

/// A path below the project, and its text.
type Tree = BTreeMap<String, String>;

fn project() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read_below(folder: &Path, ending: &str, tree: &mut Tree) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            read_below(&path, ending, tree);
        } else if path.extension().is_some_and(|found| found == ending) {
            let name = path.strip_prefix(project()).unwrap().to_str().unwrap().to_owned();
            tree.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

/// Every Rust file of the service.
fn sources() -> Tree {
    let mut tree = Tree::new();
    read_below(&project().join("src"), "rs", &mut tree);
    tree
}

/// Rust that is neither generated nor somebody else's.
fn rust() -> Tree {
    let mut tree = sources();
    for folder in ["tests", "bench", "fuzz/fuzz_targets"] {
        read_below(&project().join(folder), "rs", &mut tree);
    }
    tree
}

fn documents() -> Tree {
    let mut tree = Tree::new();
    for folder in ["docs", "bench"] {
        read_below(&project().join(folder), "md", &mut tree);
    }
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        tree.insert(name.into(), fs::read_to_string(project().join(name)).unwrap());
    }
    tree
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("_test.rs") || path.contains("/tests/")
}

/// A file without its tests: a module behind `#[cfg(test)]` ends it.
fn without_tests(text: &str) -> &str {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    &text[..end]
}

/// A file without comments, and with the content of every string and character left out.
fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some(length) = string_length(rest) {
            out.push_str("\"\"");
            // Lines keep their numbers.
            out.extend(rest[..length].matches('\n'));
            at += length;
        } else {
            let letter = rest.chars().next().unwrap();
            out.push(letter);
            at += letter.len_utf8();
        }
    }
    out
}

/// How long the string or character literal is that begins here.
fn string_length(rest: &str) -> Option<usize> {
    let (quote, hashes) = match rest.as_bytes() {
        [b'"', ..] => (0, None),
        [b'r', b'"' | b'#', ..] => {
            let hashes = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
            if rest.as_bytes().get(1 + hashes) != Some(&b'"') {
                return None;
            }
            (1 + hashes, Some(hashes))
        }
        [b'\'', b'\\', ..] => return rest[2..].find('\'').map(|end| end + 3),
        [b'\'', ..] => {
            let mut letters = rest.char_indices().skip(2);
            return letters.next().filter(|(_, letter)| *letter == '\'').map(|(end, _)| end + 1);
        }
        _ => return None,
    };
    let body = &rest[quote + 1..];
    if let Some(hashes) = hashes {
        let end = format!("\"{}", "#".repeat(hashes));
        return body.find(&end).map(|found| quote + 1 + found + end.len());
    }
    let mut is_escaped = false;
    for (index, byte) in body.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(index + 2),
            _ => {}
        }
    }
    None
}

/// The strings of a file, with their line numbers.
fn strings(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while at < text.len() {
        let rest = &text[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(length) = string_length(rest) {
            found.push((line, rest[..length].to_owned()));
            length
        } else {
            rest.chars().next().unwrap().len_utf8()
        };
        line += rest[..length].matches('\n').count();
        at += length;
    }
    found
}

/// The rooms of `src/lib.rs`, from the ground up.
fn rooms(lib: &str) -> Vec<String> {
    let declared = bare(lib);
    let names = declared.lines().filter_map(|line| line.trim().strip_prefix("pub mod "));
    names.filter_map(|rest| rest.split(';').next()).map(str::to_owned).collect()
}

fn room_of(path: &str) -> &str {
    let inside = path.trim_start_matches("src/");
    inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs")
}

/// Paths such as `a::b::c` that a file names from the crate's root, braces unfolded.
fn imports(path: &str, text: &str) -> BTreeSet<String> {
    let bare = bare(without_tests(text));
    let mut found = BTreeSet::new();
    for (start, _) in bare.match_indices("crate::") {
        let is_macro = bare[..start].ends_with('$');
        if !is_macro {
            unfold(&bare[start + "crate::".len()..], "", &mut found);
        }
    }
    // `super::` counts from the file's own module.
    let module = module_of(path);
    for (start, _) in bare.match_indices("super::") {
        if bare[..start].ends_with("super::") {
            continue;
        }
        let depth = bare[start..].split("super::").take_while(|part| part.is_empty()).count();
        let depth = depth.max(1);
        let Some(above) = module.len().checked_sub(depth) else { continue };
        let prefix = module[..above].join("::");
        let rest = &bare[start + depth * "super::".len()..];
        let prefix = if prefix.is_empty() { prefix } else { format!("{prefix}::") };
        unfold(rest, &prefix, &mut found);
    }
    found
}

/// `src/a/b.rs` is `a::b`, `src/a/mod.rs` is `a`.
fn module_of(path: &str) -> Vec<&str> {
    let inside = path.trim_start_matches("src/").trim_end_matches(".rs");
    inside.split('/').filter(|part| *part != "mod").collect()
}

fn unfold(rest: &str, prefix: &str, found: &mut BTreeSet<String>) {
    let name_end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, after) = rest.split_at(name_end);
    if let Some(deeper) = after.strip_prefix("::").filter(|_| !name.is_empty()) {
        return unfold(deeper, &format!("{prefix}{name}::"), found);
    }
    if let Some(inside) = rest.strip_prefix('{').filter(|_| name.is_empty()) {
        let (mut depth, mut start) = (0, 0);
        for (index, letter) in inside.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => {
                    unfold(inside[start..index].trim(), prefix, found);
                    return;
                }
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    unfold(inside[start..index].trim(), prefix, found);
                    start = index + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let path = format!("{prefix}{name}");
    found.insert(path.trim_end_matches("::").to_owned());
}

/// Imports of a room that stands above the importing one.
fn upward_imports(tree: &Tree) -> Vec<String> {
    let rooms = rooms(&tree["src/lib.rs"]);
    let place = |room: &str| rooms.iter().position(|known| known == room);
    let mut broken = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| !is_test_file(path)) {
        let room = room_of(path);
        if matches!(room, "lib" | "main") {
            continue;
        }
        let Some(here) = place(room) else {
            broken.push(format!("{path}: the room {room} is not in src/lib.rs"));
            continue;
        };
        for import in imports(path, text) {
            let other = import.split("::").next().unwrap_or("");
            if place(other).is_some_and(|there| there > here) {
                broken.push(format!("{path} imports {import}, which stands above it"));
            }
        }
    }
    broken
}

/// The file that a path leads to: the longest part of it that is a file.
fn file_of(tree: &Tree, import: &str) -> Option<String> {
    let parts: Vec<&str> = import.split("::").collect();
    (1..=parts.len()).rev().find_map(|length| {
        let base = format!("src/{}", parts[..length].join("/"));
        [format!("{base}.rs"), format!("{base}/mod.rs")]
            .into_iter()
            .find(|path| tree.contains_key(path))
    })
}

/// Files that import one another in a ring. A folder's `mod.rs` and the files beside it are one
/// module to its reader, so arrows between them do not count.
fn cycles(tree: &Tree) -> Vec<String> {
    let mut arrows: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in tree.iter().filter(|(path, _)| !is_test_file(path)) {
        let targets = imports(path, text).into_iter().filter_map(|import| file_of(tree, &import));
        let others = targets.filter(|target| target != path && !is_own_face(path, target));
        arrows.insert(path, others.collect());
    }
    let mut broken = Vec::new();
    let mut done: BTreeSet<String> = BTreeSet::new();
    for start in arrows.keys() {
        let mut trail = Vec::new();
        walk(start, &arrows, &mut trail, &mut done, &mut broken);
    }
    broken
}

/// A module's face and its parts: `a/mod.rs` with `a/b.rs`, or with `a/b/c.rs`.
fn is_own_face(one: &str, other: &str) -> bool {
    let is_face = |face: &str, part: &str| {
        face.strip_suffix("mod.rs").is_some_and(|folder| part.starts_with(folder))
    };
    is_face(one, other) || is_face(other, one)
}

fn walk(
    path: &str,
    arrows: &BTreeMap<&str, BTreeSet<String>>,
    trail: &mut Vec<String>,
    done: &mut BTreeSet<String>,
    broken: &mut Vec<String>,
) {
    if let Some(begin) = trail.iter().position(|known| known == path) {
        broken.push(format!("a ring of files: {} -> {path}", trail[begin..].join(" -> ")));
        return;
    }
    if done.contains(path) {
        return;
    }
    trail.push(path.to_owned());
    for target in arrows.get(path).into_iter().flatten() {
        walk(target, arrows, trail, done, broken);
    }
    trail.pop();
    done.insert(path.to_owned());
}

fn may_hold_sql(path: &str) -> bool {
    path.starts_with("src/store/") || path.ends_with("/rows.rs") || path.contains("/rows/")
}

/// Whether a string is a statement or a part of one.
fn is_sql(string: &str) -> bool {
    let text = string.trim_start_matches(['r', '#', '"']).trim_start();
    let starts =
        ["SELECT ", "INSERT INTO ", "UPDATE ", "DELETE FROM ", "WITH RECURSIVE ", "PRAGMA "];
    let parts = [" = ?", " < ?", " > ?", " <= ?", " >= ?", " <> ?", " IS NULL AND "];
    starts.iter().any(|start| text.starts_with(start))
        || parts.iter().any(|part| string.contains(part))
}

fn sql_in_wrong_files(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| !may_hold_sql(path) && !is_test_file(path)) {
        for (line, string) in strings(without_tests(text)) {
            if is_sql(&string) {
                broken.push(format!("{path}:{line}: SQL outside rows.rs and store/: {string}"));
            }
        }
    }
    broken
}

/// Crates that only some places may name.
fn crates_in_wrong_files(tree: &Tree) -> Vec<String> {
    const DRIVERS: &[&str] = &["rusqlite", "tokio_postgres", "tokio_postgres_rustls"];
    const SERVER: &[&str] = &["hyper::server", "hyper::service"];
    // The demonstration has a webhook receiver of its own.
    const SERVERS: &[&str] = &["src/http/", "src/pages/", "src/console/", "src/demo"];
    const HTTP: &[&str] = &[
        "src/http/",
        "src/pages/",
        "src/console/",
        "src/test_helpers/",
        "src/cli/",
        "src/demo",
        "src/app.rs",
    ];
    const ROUTES: &[&str] = &["src/resource.rs", "src/routes.rs"];
    let is_below = |path: &str, places: &[&str]| places.iter().any(|place| path.starts_with(place));
    let mut broken = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| !is_test_file(path)) {
        let bare = bare(without_tests(text));
        for driver in DRIVERS {
            if !path.starts_with("src/store/") && bare.contains(&format!("{driver}::")) {
                broken.push(format!("{path} names the driver {driver}: only store/ may"));
            }
        }
        for server in SERVER {
            if !is_below(path, SERVERS) && bare.contains(server) {
                broken.push(format!("{path} names {server}: only http/ and pages/ may"));
            }
        }
        let speaks_http = is_below(path, HTTP) || is_below(path, ROUTES) || is_api(path);
        if !speaks_http && imports(path, text).iter().any(|import| import.starts_with("http::")) {
            broken.push(format!("{path} imports http/: only api.rs, pages/ and the top may"));
        }
    }
    broken
}

/// A resource's face to HTTP: `api.rs`, or a folder of that name.
fn is_api(path: &str) -> bool {
    path.ends_with("/api.rs") || path.ends_with("_api.rs") || path.contains("/api/")
}

/// `http/` is a framework: it knows no resource.
fn http_knows_a_slice(tree: &Tree) -> Vec<String> {
    let rooms = rooms(&tree["src/lib.rs"]);
    let above = rooms.iter().skip_while(|room| *room != "http").skip(1).collect::<Vec<_>>();
    let mut broken = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| path.starts_with("src/http/")) {
        for import in imports(path, text) {
            if above.iter().any(|room| import.split("::").next() == Some(room)) {
                broken.push(format!("{path} imports {import}: http/ knows no slice"));
            }
        }
    }
    broken
}

/// Files outside `kernel/` that may ask the machine for time or randomness although `clippy.toml`
/// bans it.
fn clocks_outside_the_kernel(tree: &Tree) -> Vec<String> {
    let lifts = |text: &str| bare(text).contains("clippy::disallowed_methods");
    let outside = tree.iter().filter(|(path, _)| !path.starts_with("src/kernel/"));
    outside
        // src/lib.rs makes it an error.
        .filter(|(path, text)| *path != "src/lib.rs" && lifts(text))
        .map(|(path, _)| format!("{path} lifts the ban on clocks and randomness"))
        .collect()
}

/// What `clippy.toml` has to ban for that.
const BANNED: &[&str] = &[
    "std::time::SystemTime::now",
    "jiff::Timestamp::now",
    "jiff::Zoned::now",
    "getrandom::fill",
    "rand::rng",
    "rand::random",
];

fn not_banned(clippy: &str, lib: &str) -> Vec<String> {
    let bans = |path: &&&str| clippy.contains(&format!("path = \"{path}\""));
    let missing = BANNED.iter().filter(|path| !bans(path)).map(|path| path.to_string());
    let is_error = lib.contains("deny(clippy::disallowed_methods)");
    missing.chain((!is_error).then(|| "src/lib.rs does not deny it".to_owned())).collect()
}

/// The resources that have a route: the word after `/v1/`, or after `/v1/test_helpers/`.
fn resources_with_routes(tree: &Tree) -> BTreeSet<String> {
    let apis = tree.iter().filter(|(path, _)| is_api(path) || path.contains("src/test_helpers/"));
    apis.flat_map(|(_, text)| strings(without_tests(text)))
        .filter_map(|(_, string)| {
            let path = string.trim_matches('"').strip_prefix("/v1/")?.to_owned();
            let path = path.strip_prefix("test_helpers/").unwrap_or(&path);
            path.split(['/', '?']).next().filter(|word| !word.is_empty()).map(str::to_owned)
        })
        .collect()
}

/// Resources whose tests over HTTP are not found by their name.
fn resources_without_tests(tree: &Tree, tests: &BTreeSet<String>) -> Vec<String> {
    let resources = resources_with_routes(tree).into_iter();
    resources.filter(|resource| !tests.contains(&format!("tests/http/{resource}.rs"))).collect()
}

/// The types that a file declares, each with the words that follow it in its line.
fn declared_types(text: &str) -> Vec<(String, String)> {
    let bare = bare(without_tests(text));
    let declaration = |line: &str| {
        let mut rest = line.trim_start();
        // `pub(in …)` has spaces; nothing here uses it.
        rest = rest.strip_prefix("pub").map_or(rest, |rest| rest.split_once(' ').unwrap().1);
        rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
        let is_member = line.starts_with(' ');
        let (keyword, rest) = rest.split_once(' ')?;
        let declares = matches!(keyword, "struct" | "enum" | "trait" | "union")
            // An indented `type` belongs to a trait or to an implementation of one.
            || (keyword == "type" && !is_member);
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, definition) = rest.split_at(end);
        let is_name = name.starts_with(|c: char| c.is_ascii_uppercase());
        (declares && is_name).then(|| (name.to_owned(), format!("{keyword}{definition}")))
    };
    bare.lines().filter_map(declaration).chain(types_from_macros(&bare)).collect()
}

/// Macros that declare one type, whose name comes before the first brace.
const MACROS_OF_A_TYPE: &[&str] = &["string_enum!", "statuses!", "form!"];
/// A macro that declares one type for each name before a range of lengths.
const MACRO_OF_TYPES: &str = "text_fields!";

/// The types that a file's calls of macros declare.
fn types_from_macros(bare: &str) -> Vec<(String, String)> {
    let word_before = |text: &str| {
        let text = text.trim_end();
        let start = text.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        text[start..].to_owned()
    };
    let mut names = Vec::new();
    for name in MACROS_OF_A_TYPE {
        for (start, _) in bare.match_indices(name) {
            let body = bare[start + name.len()..].trim_start();
            // The opening bracket may itself be a brace.
            names.extend(body[1..].split('{').next().map(word_before));
        }
    }
    if let Some((_, body)) = bare.split_once(&format!("{MACRO_OF_TYPES} {{")) {
        names.extend(body.lines().filter_map(|line| Some(word_before(line.split_once(" (")?.0))));
    }
    let is_name = |name: &String| name.starts_with(|c: char| c.is_ascii_uppercase());
    names.into_iter().filter(is_name).map(|name| (name, "macro".to_owned())).collect()
}

/// Names that two types have. Aliases of one type mean the same.
fn types_of_one_name(tree: &Tree) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<(&String, String)>> = BTreeMap::new();
    for (path, text) in tree.iter().filter(|(path, _)| !is_test_file(path)) {
        for (name, definition) in declared_types(text) {
            places.entry(name).or_default().push((path, definition));
        }
    }
    let is_alias = |found: &[(&String, String)]| {
        found[0].1.starts_with("type") && found.iter().all(|one| one.1 == found[0].1)
    };
    let twice = places.iter().filter(|(_, found)| found.len() > 1 && !is_alias(found));
    let told = twice.map(|(name, found)| {
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        format!("{name} is declared in {}", paths.join(" and in "))
    });
    told.collect()
}

fn long_lines(tree: &Tree, columns_max: usize) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, text) in tree {
        let mut is_literal = false;
        for (index, line) in text.lines().enumerate() {
            // What a document shows as it is, such as a command's output, keeps its lines.
            if path.ends_with(".md") && line.trim_start().starts_with("```") {
                is_literal = !is_literal;
            }
            let is_table = path.ends_with(".md") && line.starts_with('|');
            let is_unbreakable = line
                .split_whitespace()
                .any(|word| word.chars().count() >= UNBREAKABLE_CHARACTERS_MIN);
            if line.chars().count() > columns_max && !is_literal && !is_table && !is_unbreakable {
                broken.push(format!("{path}:{}: {} columns", index + 1, line.chars().count()));
            }
        }
    }
    broken
}

fn long_files(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| !is_test_file(path)) {
        let lines = without_tests(text).lines().count();
        if lines > FILE_LINES_MAX {
            broken.push(format!("{path}: {lines} lines without its tests"));
        }
    }
    broken
}

/// The rooms that ARCHITECTURE.md draws, from the ground up: the names in the first block of text
/// below `src/`, each at the line's beginning.
fn drawn_rooms(architecture: &str) -> Vec<String> {
    let map = architecture.split("```").nth(1).unwrap_or("");
    let mut drawn = Vec::new();
    for line in map.lines().skip_while(|line| line.trim() != "src/").skip(1) {
        let Some(entry) = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')) else {
            if line.starts_with(' ') || line.is_empty() {
                continue;
            }
            break;
        };
        let names = entry
            .split_whitespace()
            .take_while(|name| name.ends_with('/') || name.ends_with(".rs"));
        drawn.extend(
            names.map(|name| name.trim_end_matches('/').trim_end_matches(".rs").to_owned()),
        );
    }
    drawn
}

fn wrong_map(lib: &str, architecture: &str) -> Vec<String> {
    let (listed, drawn) = (rooms(lib), drawn_rooms(architecture));
    let mut broken = Vec::new();
    for room in &listed {
        if !drawn.contains(room) {
            broken.push(format!("ARCHITECTURE.md does not draw the room {room}"));
        }
    }
    for room in &drawn {
        if !listed.contains(room) {
            broken.push(format!("ARCHITECTURE.md draws {room}, which src/lib.rs does not list"));
        }
    }
    if broken.is_empty() && listed != drawn {
        broken.push(format!("another order: src/lib.rs {listed:?}, ARCHITECTURE.md {drawn:?}"));
    }
    broken
}

fn style_sheets() -> Tree {
    let mut tree = Tree::new();
    for folder in ["assets", "src"] {
        read_below(&project().join(folder), "css", &mut tree);
    }
    tree
}

/// Rules that stand in two style sheets, and colours of one that another has too. The shared sheets
/// in `assets/` are there for both.
fn repeated_styles(sheets: &Tree) -> Vec<String> {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    let mut repeated = Vec::new();
    for (path, text) in sheets {
        // The dark theme gives the same colours other values.
        let is_rule = |line: &&str| line.ends_with('}') && line.contains('{');
        let is_value = |line: &&str| line.starts_with("--") && line.contains(['#', '"']);
        for line in text.lines().map(str::trim).filter(|line| is_rule(line) || is_value(line)) {
            match seen.insert(line, path) {
                Some(other) if other != path => repeated.push(format!("{other}, {path}: {line}")),
                _ => {}
            }
        }
    }
    repeated
}

#[track_caller]
fn assert_none(broken: Vec<String>) {
    assert!(broken.is_empty(), "{} places:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn no_room_imports_one_above_it() {
    assert_none(upward_imports(&sources()));
    let planted = with("src/ledger/mod.rs", "use crate::transfers::{self, funding};\n");
    assert_eq!(upward_imports(&planted).len(), 2, "{:?}", upward_imports(&planted));
    let inline = with("src/kernel/hex.rs", "fn f() { crate::store::open() }\n");
    assert_eq!(upward_imports(&inline).len(), 1);
    let unknown = with("src/attic/mod.rs", "");
    assert_eq!(upward_imports(&unknown).len(), 1, "a room that nobody listed");
}

#[test]
fn no_files_import_one_another_in_a_ring() {
    assert_none(cycles(&sources()));
    let mut planted = with("src/rates/one.rs", "use super::two::B;\n");
    planted.insert("src/rates/two.rs".into(), "use crate::rates::three::C;\n".into());
    planted.insert("src/rates/three.rs".into(), "use super::one::A;\n".into());
    assert_eq!(cycles(&planted).len(), 1, "{:?}", cycles(&planted));
}

#[test]
fn sql_stands_in_rows_and_in_the_store() {
    assert_none(sql_in_wrong_files(&sources()));
    for planted in [
        "const Q: &str = \"SELECT id FROM transfers\";\n",
        "const Q: &str = r#\"DELETE FROM tasks\"#;\n",
        "const FILTER: &str = \"status = ?\";\n",
    ] {
        assert_eq!(sql_in_wrong_files(&with("src/deposits/extra.rs", planted)).len(), 1);
    }
    let comment = "// SELECT id FROM transfers\n";
    assert!(sql_in_wrong_files(&with("src/deposits/extra.rs", comment)).is_empty());
}

#[test]
fn drivers_and_server_types_stay_in_their_rooms() {
    assert_none(crates_in_wrong_files(&sources()));
    let driver = with("src/deposits/extra.rs", "use rusqlite::Connection;\n");
    assert_eq!(crates_in_wrong_files(&driver).len(), 1);
    let server = with("src/deposits/extra.rs", "use hyper::service::Service;\n");
    assert_eq!(crates_in_wrong_files(&server).len(), 1);
    let http = with("src/deposits/extra.rs", "use crate::http::route::Route;\n");
    assert_eq!(crates_in_wrong_files(&http).len(), 1);
}

#[test]
fn http_is_a_framework() {
    assert_none(http_knows_a_slice(&sources()));
    let planted = with("src/http/extra.rs", "use crate::payouts::Payout;\n");
    assert_eq!(http_knows_a_slice(&planted).len(), 1);
}

#[test]
fn only_the_kernel_asks_for_time_and_randomness() {
    assert_none(clocks_outside_the_kernel(&sources()));
    let allow = "#![allow(clippy::disallowed_methods)]\n";
    assert_eq!(clocks_outside_the_kernel(&with("src/payouts/mod.rs", allow)).len(), 1);
    let clippy = fs::read_to_string(project().join("clippy.toml")).unwrap();
    let lib = fs::read_to_string(project().join("src/lib.rs")).unwrap();
    assert_none(not_banned(&clippy, &lib));
    assert_eq!(not_banned(&clippy.replace("rand::rng", "rand::gone"), &lib), ["rand::rng"]);
    assert_eq!(not_banned(&clippy, &lib.replace("deny(clippy", "warn(clippy")).len(), 1);
}

#[test]
fn each_resource_has_tests_of_its_name() {
    let tests: BTreeSet<String> = rust().into_keys().collect();
    assert!(resources_with_routes(&sources()).len() > 10);
    assert_none(resources_without_tests(&sources(), &tests));
    let planted = with("src/attic/api.rs", "const PATH: &str = \"/v1/attics/{id}\";\n");
    assert_eq!(resources_without_tests(&planted, &tests), ["attics"]);
}

#[test]
fn lines_are_no_longer_than_a_page_is_wide() {
    assert_none(long_lines(&rust(), RUST_COLUMNS_MAX));
    assert_none(long_lines(&documents(), DOCUMENT_COLUMNS_MAX));
    let line = format!("// {}\n", "word ".repeat(20));
    assert_eq!(long_lines(&Tree::from([("a.rs".into(), line)]), RUST_COLUMNS_MAX).len(), 1);
    let line = format!("{}\n", "word ".repeat(25));
    assert_eq!(long_lines(&Tree::from([("a.md".into(), line)]), DOCUMENT_COLUMNS_MAX).len(), 1);
}

#[test]
fn a_type_name_means_one_thing() {
    assert_none(types_of_one_name(&sources()));
    for planted in [
        "pub struct Limiter;\n",
        "fn f() {\n    pub(super) enum Limiter {}\n}\n",
        "type Limiter = u8;\n",
        "pub trait Limiter<'a>: Send {}\n",
        "crate::string_enum!(\n    /// A word.\n    Limiter { One \"one\", Two \"two\" }\n);\n",
        "crate::statuses!(\"limit\",\n    Limiter { One \"one\" => [Two], Two \"two\" => [] });\n",
        "crate::form! {\n    at_least_one Limiter { name: Option<Text> }\n}\n",
        "text_fields! {\n    Limiter (5..=20) PATTERN => |text| keep(text), \"is long.\";\n}\n",
    ] {
        let tree = with("src/deposits/extra.rs", planted);
        assert_eq!(types_of_one_name(&tree).len(), 1, "{planted}");
    }
    let mut planted = with("src/deposits/extra.rs", "pub type Extra = Id<kind::Deposit>;\n");
    planted.insert("src/refunds/extra.rs".into(), "type Extra = Id<kind::Deposit>;\n".into());
    assert_none(types_of_one_name(&planted));
    planted.insert("src/refunds/extra.rs".into(), "type Extra = Id<kind::Refund>;\n".into());
    assert_eq!(types_of_one_name(&planted).len(), 1, "aliases of two types");
}

#[test]
fn files_are_short() {
    assert_none(long_files(&sources()));
    let text = "fn f() {}\n".repeat(FILE_LINES_MAX + 1);
    assert_eq!(long_files(&with("src/kernel/extra.rs", &text)).len(), 1);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{text}}}\n");
    assert!(long_files(&with("src/kernel/extra.rs", &tests)).is_empty());
}

#[test]
fn the_map_is_true() {
    let lib = fs::read_to_string(project().join("src/lib.rs")).unwrap();
    let architecture = fs::read_to_string(project().join("ARCHITECTURE.md")).unwrap();
    assert_none(wrong_map(&lib, &architecture));
    let more = format!("{lib}\npub mod attic;\n");
    assert_eq!(wrong_map(&more, &architecture).len(), 1, "a room that the map lacks");
    let fewer = lib.replace("pub mod ledger;", "");
    assert_eq!(wrong_map(&fewer, &architecture).len(), 1, "a room that only the map has");
    let listed = rooms(&lib);
    let (first, second) = (&listed[0], &listed[1]);
    let swapped = lib
        .replace(&format!("pub mod {first};"), "pub mod swapped_out;")
        .replace(&format!("pub mod {second};"), &format!("pub mod {first};"))
        .replace("pub mod swapped_out;", &format!("pub mod {second};"));
    assert_eq!(wrong_map(&swapped, &architecture).len(), 1, "another order");
}

#[test]
fn pages_share_their_looks() {
    let mut sheets = style_sheets();
    assert_none(repeated_styles(&sheets));
    let again = "a { color: var(--accent); }\n  --good: #0b6b3a;\n";
    sheets.insert("src/attic/attic.css".into(), again.into());
    assert_eq!(repeated_styles(&sheets).len(), 2, "{:?}", repeated_styles(&sheets));
}

/// The tree as it is, with one more file.
fn with(path: &str, text: &str) -> Tree {
    let mut tree = sources();
    tree.insert(path.into(), text.into());
    // What the tree itself breaks is another assertion's to say.
    let before = sources();
    if before.contains_key(path) {
        let whole = format!("{text}{}", before[path]);
        tree.insert(path.into(), whole);
    }
    tree
}
