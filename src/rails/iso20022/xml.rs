//! Reads XML from outside into a small tree, within limits, and writes our own XML. The other
//! modules of `iso20022` touch no markup.
//!
//! Document types, processing instructions and entities other than XML's own are refused, because
//! ISO 20022 never needs them. A business header or an envelope around the message is skipped.

use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use quick_xml::name::ResolveResult;
use quick_xml::{NsReader, Writer};

use crate::rails::files::encoding;
pub use crate::rails::files::folders::FILE_BYTES_MAX;
use crate::rails::files::format::FileError;

/// How deep elements may be nested.
pub const DEPTH_MAX: usize = 32;
/// The most elements of a file, enough for some 10 000 statement entries.
pub const ELEMENTS_MAX: usize = 400_000;
/// The most bytes of one element's text. The longest text type of the messages that are read has
/// 2 048 characters.
pub const TEXT_BYTES_MAX: usize = 8_192;
/// The most attributes of one element, namespaces included.
pub const ATTRIBUTES_MAX: usize = 16;

/// One element of the document's namespace.
#[derive(Clone, Debug, Default)]
pub struct Element {
    name: String,
    text: String,
    currency: Option<String>,
    children: Vec<Element>,
}

impl Element {
    /// Every child of this name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }
    /// The child of this name, if there is one. A second one is an error, because it makes the file
    /// ambiguous.
    pub fn optional(&self, name: &str) -> Result<Option<&Element>, FileError> {
        let mut found = self.children.iter().filter(|child| child.name == name);
        let first = found.next();
        match found.next() {
            None => Ok(first),
            Some(_) => Err(FileError::new(format!("{} holds {name} more than once", self.shown()))),
        }
    }
    /// The child of this name, which must be there once.
    pub fn required(&self, name: &str) -> Result<&Element, FileError> {
        self.optional(name)?.ok_or_else(|| FileError::new(format!("{} lacks {name}", self.shown())))
    }
    /// The element at a path such as `TxSts` or `Rsn/Cd`, each step at most once.
    pub fn at(&self, path: &str) -> Result<Option<&Element>, FileError> {
        let mut here = self;
        for name in path.split('/') {
            match here.optional(name)? {
                Some(child) => here = child,
                None => return Ok(None),
            }
        }
        Ok(Some(here))
    }
    /// The text at a path, without white space around it; an empty text counts as absent.
    pub fn text_at(&self, path: &str) -> Result<Option<&str>, FileError> {
        Ok(self.at(path)?.map(Element::text).filter(|text| !text.is_empty()))
    }
    pub fn text(&self) -> &str {
        self.text.trim_matches([' ', '\t', '\r', '\n'])
    }
    /// The texts of the element and of everything within it.
    pub fn texts(&self) -> Vec<&str> {
        let mut found = vec![self.text()];
        found.extend(self.children.iter().flat_map(Element::texts));
        found.retain(|text| !text.is_empty());
        found
    }
    /// The attribute `Ccy`.
    pub fn currency(&self) -> Option<&str> {
        self.currency.as_deref()
    }
    /// The element's name for an error message, if it could be one of the standard's; otherwise "an
    /// element", because a message must not show contents.
    pub fn shown(&self) -> &str {
        let is_plain =
            self.name.len() <= 32 && self.name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_plain { &self.name } else { "an element" }
    }
}

fn is_text_allowed(character: char) -> bool {
    matches!(character,
        '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Reads a whole file that holds one element `Document`, in a namespace that `knows` accepts.
/// Answers the namespace and that element. `messages` names the messages that the caller reads, for
/// the refusal of a file with none of them.
pub fn parse(
    bytes: &[u8],
    knows: &dyn Fn(&str) -> bool,
    messages: &'static str,
) -> Result<(String, Element), FileError> {
    let text = encoding::text(bytes)?;
    if text.trim_ascii().is_empty() {
        return Err(FileError::truncated());
    }
    Tree { messages, ..Tree::default() }.read(&text, knows)
}

/// The elements that are open, and what was counted so far.
#[derive(Default)]
struct Tree {
    /// The names of the messages that are read.
    messages: &'static str,
    open: Vec<Element>,
    root: Option<Element>,
    namespace: String,
    elements_count: usize,
    /// The depth within an element of another namespace, which is skipped as a whole; 0 outside
    /// one.
    foreign_depth: usize,
    /// How many elements are open around the document: its envelope.
    envelope_depth: usize,
    /// Whether an element other than `Document` began outside the document.
    has_envelope: bool,
}

/// The error of a file that holds none of the messages that are read.
pub fn no_message(messages: &str) -> FileError {
    FileError::new(format!("the file is no message that is read here: it must be {messages}"))
}

impl Tree {
    fn read(
        mut self,
        text: &str,
        knows: &dyn Fn(&str) -> bool,
    ) -> Result<(String, Element), FileError> {
        let mut reader = NsReader::from_str(text);
        // Comments hold no data, and `--` within one is not well-formed.
        reader.config_mut().check_comments = true;
        let mut is_first = true;
        loop {
            let position = reader.buffer_position();
            let (namespace, event) = match reader.read_resolved_event() {
                Ok(found) => found,
                Err(_) => return Err(ill_formed(text, position)),
            };
            let namespace = match namespace {
                ResolveResult::Bound(namespace) => Some(namespace.0.to_owned()),
                ResolveResult::Unbound => None,
                ResolveResult::Unknown(_) => {
                    return Err(FileError::new(format!(
                        "a namespace prefix is not declared, at byte {position}"
                    )));
                }
            };
            match event {
                Event::Eof => break,
                Event::Decl(declaration) if is_first => check_declaration(&declaration)?,
                Event::Decl(_) | Event::PI(_) => {
                    return Err(FileError::new(format!(
                        "the file holds a processing instruction, at byte {position}"
                    )));
                }
                Event::DocType(_) => {
                    return Err(FileError::new(
                        "the file holds a document type, which no bank's message has",
                    ));
                }
                Event::Comment(_) => {}
                Event::Start(start) => self.begin(&start, namespace, knows)?,
                Event::Empty(start) => {
                    self.begin(&start, namespace, knows)?;
                    self.end()?;
                }
                Event::End(_) => self.end()?,
                Event::Text(text) => self.append(&text.xml10_content(), position)?,
                Event::CData(text) => self.append(&text.xml10_content(), position)?,
                Event::GeneralRef(reference) => {
                    let character = match reference.resolve_char_ref() {
                        Ok(Some(character)) => Some(character),
                        Ok(None) => match &*reference {
                            "amp" => Some('&'),
                            "lt" => Some('<'),
                            "gt" => Some('>'),
                            "quot" => Some('"'),
                            "apos" => Some('\''),
                            _ => None,
                        },
                        Err(_) => None,
                    };
                    let character = character.ok_or_else(|| {
                        FileError::new(format!(
                            "the file uses an entity that XML does not define, at byte {position}"
                        ))
                    })?;
                    self.append(character.encode_utf8(&mut [0; 4]), position)?;
                }
            }
            is_first = false;
        }
        match (self.root, self.open.is_empty() && self.foreign_depth == 0) {
            (_, true) if self.envelope_depth > 0 => Err(FileError::truncated()),
            (Some(root), true) => Ok((self.namespace, root)),
            (None, true) if self.has_envelope => Err(no_message(self.messages)),
            (None, true) | (_, false) => Err(FileError::truncated()),
        }
    }

    fn begin(
        &mut self,
        start: &BytesStart<'_>,
        namespace: Option<String>,
        knows: &dyn Fn(&str) -> bool,
    ) -> Result<(), FileError> {
        self.elements_count += 1;
        if self.elements_count > ELEMENTS_MAX {
            return Err(FileError::new(format!(
                "the file has more than {ELEMENTS_MAX} elements: have it split"
            )));
        }
        if self.envelope_depth + self.open.len() + self.foreign_depth >= DEPTH_MAX {
            return Err(FileError::new(format!("elements are nested deeper than {DEPTH_MAX}")));
        }
        let mut currency = None;
        for (index, attribute) in start.attributes().enumerate() {
            let attribute = attribute
                .map_err(|_| FileError::new("an attribute is malformed or given twice"))?;
            if index >= ATTRIBUTES_MAX {
                return Err(FileError::new(format!(
                    "an element has more than {ATTRIBUTES_MAX} attributes"
                )));
            }
            if attribute.value.contains('<') {
                return Err(FileError::new("an attribute is malformed"));
            }
            if attribute.key.as_ref() == "Ccy" {
                currency = Some(attribute.value.chars().take(8).collect());
            }
        }
        if self.foreign_depth > 0 {
            self.foreign_depth += 1;
            return Ok(());
        }
        let name = start.local_name().as_ref().to_owned();
        if self.open.is_empty() {
            return self.begin_root(name, namespace, knows);
        }
        if namespace.as_deref().unwrap_or_default() != self.namespace {
            // The schema permits other namespaces only in the element `Envlp` of supplementary
            // data, which is no envelope around a message.
            if self.open.last().is_some_and(|parent| parent.name == "Envlp") {
                self.foreign_depth = 1;
                return Ok(());
            }
            return Err(FileError::new("an element is of another namespace than the document"));
        }
        self.open.push(Element { name, currency, ..Element::default() });
        Ok(())
    }

    fn begin_root(
        &mut self,
        name: String,
        namespace: Option<String>,
        knows: &dyn Fn(&str) -> bool,
    ) -> Result<(), FileError> {
        let namespace = namespace.unwrap_or_default();
        if name != "Document" {
            // `BusMsg`, `BizMsgEnvlp` and what else banks and agents put around a message.
            if self.envelope_depth == 0 && (self.root.is_some() || self.has_envelope) {
                return Err(FileError::new("the file holds more than one document"));
            }
            self.envelope_depth += 1;
            self.has_envelope = true;
            return Ok(());
        }
        if self.root.is_some() || (self.has_envelope && self.envelope_depth == 0) {
            return Err(FileError::new("the file holds more than one document"));
        }
        if !knows(&namespace) {
            return Err(no_message(self.messages));
        }
        self.namespace = namespace;
        self.open.push(Element { name, ..Element::default() });
        Ok(())
    }

    fn end(&mut self) -> Result<(), FileError> {
        if self.foreign_depth > 0 {
            self.foreign_depth -= 1;
            return Ok(());
        }
        if self.open.is_empty() && self.envelope_depth > 0 {
            self.envelope_depth -= 1;
            return Ok(());
        }
        let element =
            self.open.pop().ok_or_else(|| FileError::new("an element ends that did not begin"))?;
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
        Ok(())
    }

    fn append(&mut self, text: &str, position: u64) -> Result<(), FileError> {
        if let Some(wrong) = text.chars().find(|character| !is_text_allowed(*character)) {
            return Err(FileError::new(format!(
                "the character U+{:04X} is not allowed in XML, near byte {position}",
                wrong as u32
            )));
        }
        match self.open.last_mut() {
            _ if self.foreign_depth > 0 => Ok(()),
            None if text.trim_ascii().is_empty() || self.envelope_depth > 0 => Ok(()),
            None => Err(FileError::new("text stands outside the document")),
            Some(element) => {
                // White space between children is layout.
                if !element.children.is_empty() && text.trim_ascii().is_empty() {
                    return Ok(());
                }
                if element.text.len() + text.len() > TEXT_BYTES_MAX {
                    return Err(FileError::new(format!(
                        "the text of {} is longer than {TEXT_BYTES_MAX} bytes",
                        element.shown()
                    )));
                }
                element.text.push_str(text);
                Ok(())
            }
        }
    }
}

fn check_declaration(declaration: &BytesDecl<'_>) -> Result<(), FileError> {
    // The text was decoded before this declaration was read. The decoder reads a file as UTF-8 if
    // it does not know the declared encoding, so the text may be wrong: such a file is refused.
    const ENCODINGS: &[&str] = &[
        "utf-8",
        "utf8",
        "utf-16",
        "utf-16le",
        "utf-16be",
        "us-ascii",
        "iso-8859-1",
        "latin1",
        "iso-8859-15",
        "windows-1252",
    ];
    let is_known = match declaration.encoding() {
        None => true,
        Some(Ok(encoding)) => ENCODINGS.iter().any(|known| encoding.eq_ignore_ascii_case(known)),
        Some(Err(_)) => false,
    };
    if !is_known {
        return Err(FileError::new("the encoding is not one that is read"));
    }
    if declaration.version().is_ok_and(|version| version == "1.0") {
        Ok(())
    } else {
        Err(FileError::new("the file is not XML 1.0"))
    }
}

/// The error of malformed XML. The library's own errors can contain names from the file, so only
/// the position is given. Markup that begins and never ends means that the file was cut off.
fn ill_formed(text: &str, position: u64) -> FileError {
    let rest = usize::try_from(position)
        .ok()
        .and_then(|position| text.as_bytes().get(position..))
        .unwrap_or_default();
    if !rest.contains(&b'>') {
        return FileError::truncated();
    }
    FileError::new(format!("the XML is not well-formed, at byte {position}"))
}

/// Builds a document: closures open and close elements in pairs, so they always match.
pub struct Document {
    writer: Writer<Vec<u8>>,
}

impl Document {
    /// Writes `Document` in a namespace, with what `content` adds, in UTF-8.
    pub fn write(namespace: &str, content: impl FnOnce(&mut Document)) -> Vec<u8> {
        Document::declared("UTF-8", namespace, content)
    }
    /// [`Document::write`] with another encoding in the declaration. The answer is still UTF-8; the
    /// caller converts it.
    pub fn declared(
        encoding: &str,
        namespace: &str,
        content: impl FnOnce(&mut Document),
    ) -> Vec<u8> {
        let mut document = Document { writer: Writer::new_with_indent(Vec::new(), b' ', 1) };
        document.event(Event::Decl(BytesDecl::new("1.0", Some(encoding), None)));
        let mut root = BytesStart::new("Document");
        root.push_attribute(("xmlns", namespace));
        document.event(Event::Start(root));
        content(&mut document);
        document.event(Event::End(BytesEnd::new("Document")));
        let mut bytes = document.writer.into_inner();
        bytes.push(b'\n');
        bytes
    }
    /// Adds an event. Writing to memory does not fail.
    fn event(&mut self, event: Event<'_>) {
        let _ = self.writer.write_event(event);
    }
    pub fn element(&mut self, name: &str, content: impl FnOnce(&mut Document)) {
        self.event(Event::Start(BytesStart::new(name)));
        content(self);
        self.event(Event::End(BytesEnd::new(name)));
    }
    /// Writes an element with a text. Characters that XML cannot hold are left out.
    pub fn text(&mut self, name: &str, text: &str) {
        let allowed: String =
            text.chars().filter(|character| is_text_allowed(*character)).collect();
        self.event(Event::Start(BytesStart::new(name)));
        self.event(Event::Text(BytesText::new(&allowed)));
        self.event(Event::End(BytesEnd::new(name)));
    }
    /// Writes nested elements, the innermost with a text: `path(&["SvcLvl", "Cd"], "URNS")`.
    pub fn path(&mut self, names: &[&str], text: &str) {
        match names {
            [] => {}
            [name] => self.text(name, text),
            [name, rest @ ..] => self.element(name, |document| document.path(rest, text)),
        }
    }
    /// Writes an amount with its currency in the attribute `Ccy`.
    pub fn amount(&mut self, name: &str, amount: crate::kernel::Money) {
        let mut start = BytesStart::new(name);
        start.push_attribute(("Ccy", amount.currency.as_str()));
        self.event(Event::Start(start));
        self.event(Event::Text(BytesText::new(&amount.to_string())));
        self.event(Event::End(BytesEnd::new(name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMESPACE: &str = "urn:iso:std:iso:20022:tech:xsd:pain.002.001.10";

    fn read(text: &str) -> Result<Element, FileError> {
        parse(text.as_bytes(), &|namespace| namespace == NAMESPACE, "pain.002")
            .map(|(_, root)| root)
    }
    fn wrap(inner: &str) -> String {
        format!("<Document xmlns='{NAMESPACE}'>{inner}</Document>")
    }

    #[test]
    fn what_no_message_needs_is_refused_with_a_reason() {
        let deep = format!("{}{}", "<A>".repeat(DEPTH_MAX), "</A>".repeat(DEPTH_MAX));
        let long = format!("<A>{}</A>", "x".repeat(TEXT_BYTES_MAX + 1));
        let bomb = format!("<!DOCTYPE a [<!ENTITY b 'c'>]>{}", wrap("<A>&b;</A>"));
        for (text, reason) in [
            (bomb.as_str(), "document type"),
            (&wrap("<A>&b;</A>"), "entity"),
            (&wrap("<A>&#0;</A>"), "entity"),
            (&wrap("<A>&#1;</A>"), "not allowed"),
            (&wrap("<?php x?>"), "processing instruction"),
            (&format!("<?xml version='1.0' encoding='EBCDIC'?>{}", wrap("")), "encoding"),
            (&format!("<?xml version='1.1'?>{}", wrap("")), "XML 1.0"),
            ("<Document xmlns='urn:other'/>", "no message"),
            ("<Document/>", "no message"),
            ("<html/>", "no message that is read here: it must be pain.002"),
            (&format!("<Message xmlns='{NAMESPACE}'/>"), "no message"),
            (&wrap("<A xmlns='urn:other'/>"), "another namespace"),
            (&wrap("<p:A/>"), "not declared"),
            (&wrap("<A></B>"), "well-formed"),
            (&wrap(&deep), "nested"),
            (&wrap(&long), "longer"),
            (&format!("{}{}", wrap(""), wrap("")), "more than one"),
            (&format!("{} tail", wrap("")), "outside"),
            (&wrap("<A b='1' b='2'/>"), "attribute"),
            ("nonsense", "outside"),
        ] {
            let refused = read(text).expect_err(text);
            assert!(refused.reason.contains(reason), "{text:.80}: {refused}");
            assert!(!refused.is_truncated, "{text:.80}");
        }
        let fault = |bytes: &[u8]| parse(bytes, &|_| true, "pain.002").unwrap_err().reason;
        assert!(fault(b"<Document xmlns='\xFF'/>").contains("encoding"));
        assert!(fault(&vec![b' '; FILE_BYTES_MAX + 1]).contains("larger"));
        let many = wrap(&"<A/>".repeat(ELEMENTS_MAX));
        assert!(read(&many).unwrap_err().reason.contains("elements"));
    }

    #[test]
    fn every_truncated_file_is_reported_as_truncated() {
        let whole = wrap("<A Ccy=\"INR\">é &amp; <![CDATA[x<y]]></A><!-- c -->");
        assert_eq!(read(&whole).unwrap().text_at("A").unwrap(), Some("é & x<y"));
        for end in 0..whole.len() {
            let begun = &whole.as_bytes()[..end];
            let refused =
                parse(begun, &|namespace| namespace == NAMESPACE, "pain.002").expect_err("cut off");
            assert!(refused.is_truncated, "cut at {end}: {refused}");
        }
    }

    #[test]
    fn a_message_is_found_within_an_envelope() {
        let message = wrap("<A>2</A>");
        let header = "<AppHdr xmlns='urn:head'><Fr>x</Fr><BizMsgIdr>1</BizMsgIdr></AppHdr>";
        for text in [
            format!("<BusMsg>{header}{message}</BusMsg>"),
            format!("<Q xmlns='urn:q'><Body>some text {message}</Body><Tail/></Q>"),
        ] {
            assert_eq!(read(&text).unwrap().text_at("A").unwrap(), Some("2"), "{text}");
            for end in 0..text.len() {
                assert!(read(&text[..end]).expect_err("cut off").is_truncated, "cut at {end}");
            }
        }
        for (text, reason) in [
            (format!("<BusMsg>{message}{message}</BusMsg>"), "more than one"),
            (format!("<BusMsg>{header}</BusMsg>"), "no message"),
            (format!("{message}<BusMsg/>"), "more than one"),
            (format!("<BusMsg/>{message}"), "more than one"),
        ] {
            let refused = read(&text).expect_err(&text);
            assert!(refused.reason.contains(reason), "{text}: {refused}");
        }
    }

    #[test]
    fn only_supplementary_data_may_hold_other_namespaces() {
        let text = wrap(
            "<SplmtryData><Envlp><x:B \
             xmlns:x='urn:other'><x:C>1</x:C></x:B></Envlp></SplmtryData><A>2</A>",
        );
        let root = read(&text).unwrap();
        assert_eq!(root.text_at("A").unwrap(), Some("2"));
        assert!(root.required("B").is_err() && root.at("SplmtryData/Envlp/B").unwrap().is_none());
        assert!(
            read(&wrap("<A>1</A><A>2</A>")).unwrap().text_at("A").is_err(),
            "two elements of one name are ambiguous"
        );
    }

    #[test]
    fn written_text_reads_back_whatever_it_holds() {
        let bytes = Document::write(NAMESPACE, |document| {
            document.path(&["A", "Nm"], "a<b & \"c\" \u{1} आशा ]]>")
        });
        let (_, root) = parse(&bytes, &|_| true, "pain.002").unwrap();
        assert_eq!(root.text_at("A/Nm").unwrap(), Some("a<b & \"c\"  आशा ]]>"));
    }
}
