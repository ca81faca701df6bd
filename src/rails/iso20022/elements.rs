//! Elements that several messages share, read into values.

use super::xml::Element;
use crate::kernel::{Currency, Money};
use crate::rails::files::format::FileError;
use crate::rails::files::references::{ReferenceElement, References, says_no_reference};
use crate::rails::files::reports::{Reason, Sign};
use crate::rails::files::values::{Day, inr};

/// The most characters of a reference: the standard's `Max35Text`.
const REFERENCE_LENGTH_MAX: usize = 35;

/// The reference at a path, which must be there. Errors as for [`reference_at`].
pub fn identity(element: &Element, path: &str) -> Result<String, FileError> {
    reference_at(element, path)?
        .ok_or_else(|| FileError::new(format!("{} lacks {path}", element.shown())))
}

/// The reference at a path, if there is one. `Err` if it has more than 35 characters or control
/// characters.
pub fn reference_at(element: &Element, path: &str) -> Result<Option<String>, FileError> {
    let Some(text) = element.text_at(path)? else { return Ok(None) };
    if text.chars().count() > REFERENCE_LENGTH_MAX || text.chars().any(char::is_control) {
        return Err(FileError::new(format!(
            "{path} has more than {REFERENCE_LENGTH_MAX} characters, or a control character"
        )));
    }
    Ok(Some(text.to_owned()))
}

/// A text at a path that may be a reference of the bank's. `None` also for a text that is too long,
/// has control characters, or only says that there is no reference, as `NONREF` does.
pub fn possible_reference_at(element: &Element, path: &str) -> Option<String> {
    reference_at(element, path).ok().flatten().filter(|text| !says_no_reference(text))
}

/// An amount in INR, the account's currency.
pub fn amount(element: &Element) -> Result<Money, FileError> {
    if element.currency() != Some(Currency::Inr.as_str()) {
        return Err(FileError::new(format!("{} is not in INR", element.shown())));
    }
    inr(element.text()).ok_or_else(|| {
        FileError::new(format!("{} is not an amount with at most two decimals", element.shown()))
    })
}

/// Which way money moved (`CdtDbtInd`), if the element says so.
pub fn sign(element: &Element) -> Result<Option<Sign>, FileError> {
    match element.text_at("CdtDbtInd")? {
        None => Ok(None),
        Some("CRDT") => Ok(Some(Sign::Credit)),
        Some("DBIT") => Ok(Some(Sign::Debit)),
        Some(_) => Err(FileError::new("CdtDbtInd is neither CRDT nor DBIT")),
    }
}

/// The day in a child: a date or a date-time, either directly or as the choice between `Dt` and
/// `DtTm`.
pub fn day(element: &Element, name: &str) -> Result<Option<Day>, FileError> {
    let Some(choice) = element.optional(name)? else { return Ok(None) };
    let text = match choice.text_at("Dt")? {
        Some(text) => Some(text),
        None => match choice.text_at("DtTm")? {
            Some(text) => Some(text),
            None => Some(choice.text()).filter(|text| !text.is_empty()),
        },
    };
    let Some(text) = text else { return Ok(None) };
    Day::parse(text).map(Some).ok_or_else(|| FileError::new(format!("{name} is not a date")))
}

/// The code or text of an element such as `Rsn` or `Sts`. In newer versions the element holds `Cd`
/// or `Prtry`, in older ones the text itself.
pub fn code_at<'a>(element: &'a Element, name: &str) -> Result<Option<&'a str>, FileError> {
    let Some(choice) = element.optional(name)? else { return Ok(None) };
    for part in ["Cd", "Prtry"] {
        if let Some(code) = choice.text_at(part)? {
            return Ok(Some(code));
        }
    }
    Ok(Some(choice.text()).filter(|text| !text.is_empty()))
}

/// Reads a reason's code and explanation out of an element such as `RtrInf`. If `reason` has a code
/// or a text already, that stays. Explanations are searched for references.
pub fn reason_in(
    information: &Element,
    reason: &mut Reason,
    references: &mut References,
) -> Result<(), FileError> {
    let code = code_at(information, "Rsn")?.filter(|code| code.len() <= REFERENCE_LENGTH_MAX);
    if reason.code.is_none() {
        reason.code = code.map(str::to_owned);
    }
    let texts: Vec<&str> = information.all("AddtlInf").map(Element::text).collect();
    for text in &texts {
        references.add(ReferenceElement::AddtlInf, text);
    }
    // The standard allows 105 characters, so the bank splits a longer text over several elements.
    reason.set_text(&texts.join(" "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::xml;
    use super::*;

    #[test]
    fn the_refusal_of_a_reference_says_what_may_be_wrong() {
        let long = "x".repeat(REFERENCE_LENGTH_MAX + 1);
        for text in ["a&#9;b", long.as_str()] {
            let document = format!("<Document xmlns='x'><B>{text}</B></Document>");
            let (_, root) = xml::parse(document.as_bytes(), &|_| true, "pain.002").unwrap();
            let refused = reference_at(&root, "B").unwrap_err().reason;
            assert_eq!(refused, "B has more than 35 characters, or a control character", "{text}");
        }
    }
}
