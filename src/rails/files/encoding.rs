//! Turns a file's bytes into text: undoes gzip, and reads the encodings that banks use.

use std::borrow::Cow;

use super::folders::FILE_BYTES_MAX;
use super::format::FileError;

const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];
/// The number of bytes of a gzip member's header without its optional parts, and of its trailer.
const GZIP_HEADER_BYTES: usize = 10;
const GZIP_TRAILER_BYTES: usize = 8;
const UTF8_BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];
/// The characters 0x80 to 0x9F of Windows-1252, with spaces for the five that it lacks.
const WINDOWS_1252_HIGH: [char; 32] = [
    '€', ' ', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', ' ', 'Ž', ' ', ' ', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', ' ', 'ž', 'Ÿ',
];

/// The text of an XML file. A file of more than [`FILE_BYTES_MAX`] bytes, packed or unpacked, is
/// refused.
pub fn text(bytes: &[u8]) -> Result<Cow<'_, str>, FileError> {
    unpacked_text(bytes, decode_xml)
}

/// The text of a table that a portal or a spreadsheet wrote. Such a file does not say its encoding:
/// if it is neither UTF-8 nor UTF-16, it is read as Windows-1252. The limit of [`text`] holds.
pub fn text_of_table(bytes: &[u8]) -> Result<Cow<'_, str>, FileError> {
    unpacked_text(bytes, decode_table)
}

fn unpacked_text(
    bytes: &[u8],
    decode: fn(&[u8]) -> Result<Cow<'_, str>, FileError>,
) -> Result<Cow<'_, str>, FileError> {
    check_size(bytes.len())?;
    if bytes.starts_with(&GZIP_MAGIC) {
        let unpacked = unpack(bytes)?;
        check_size(unpacked.len())?;
        return decode(&unpacked).map(|text| Cow::Owned(text.into_owned()));
    }
    decode(bytes)
}

fn check_size(bytes_count: usize) -> Result<(), FileError> {
    if bytes_count > FILE_BYTES_MAX {
        return Err(FileError::new(format!(
            "the file is larger than {FILE_BYTES_MAX} bytes: have it split"
        )));
    }
    Ok(())
}

/// Unpacks a gzip file of one member (RFC 1952).
fn unpack(bytes: &[u8]) -> Result<Vec<u8>, FileError> {
    let broken = || FileError::new("the gzip file is broken");
    let flags = *bytes.get(3).ok_or_else(FileError::truncated)?;
    let mut at = GZIP_HEADER_BYTES;
    // FEXTRA: a field with its length before it.
    if flags & 0x04 != 0 {
        let length = bytes.get(at..at + 2).ok_or_else(FileError::truncated)?;
        at += 2 + usize::from(u16::from_le_bytes([length[0], length[1]]));
    }
    // FNAME and FCOMMENT: texts that end with a zero.
    for flag in [0x08, 0x10] {
        if flags & flag != 0 {
            let rest = bytes.get(at..).ok_or_else(FileError::truncated)?;
            at += 1 + rest.iter().position(|byte| *byte == 0).ok_or_else(FileError::truncated)?;
        }
    }
    // FHCRC: a checksum of the header.
    if flags & 0x02 != 0 {
        at += 2;
    }
    let end = bytes.len().checked_sub(GZIP_TRAILER_BYTES).filter(|end| *end >= at);
    let (packed, trailer) = bytes
        .get(at..)
        .and_then(|rest| rest.split_at_checked(end? - at))
        .ok_or_else(FileError::truncated)?;
    use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_with_limit};
    let unpacked =
        decompress_to_vec_with_limit(packed, FILE_BYTES_MAX).map_err(|error| {
            match error.status {
                TINFLStatus::HasMoreOutput => FileError::new(format!(
                    "the file is larger than {FILE_BYTES_MAX} bytes: have it split"
                )),
                TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => {
                    FileError::truncated()
                }
                _ => broken(),
            }
        })?;
    let checksum = trailer.first_chunk().map(|bytes: &[u8; 4]| u32::from_le_bytes(*bytes));
    if checksum != Some(crc32fast::hash(&unpacked)) {
        return Err(broken());
    }
    Ok(unpacked)
}

/// Reads UTF-8 and UTF-16, with or without a byte order mark, and a single-byte encoding if the XML
/// declaration names one of [`DECLARED_NAMES`].
fn decode_xml(bytes: &[u8]) -> Result<Cow<'_, str>, FileError> {
    if let Some(text) = utf16(bytes) {
        return text.map(Cow::Owned);
    }
    let bytes = bytes.strip_prefix(&UTF8_BOM).unwrap_or(bytes);
    match declared_encoding(bytes) {
        Some(DeclaredEncoding::Windows1252) => return Ok(Cow::Owned(windows_1252(bytes))),
        Some(DeclaredEncoding::Latin9) => return Ok(Cow::Owned(latin_9(bytes))),
        None => {}
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        // If the last character is cut off, the file is cut off.
        Err(fault) if fault.error_len().is_none() => Err(FileError::truncated()),
        Err(fault) => Err(FileError::new(format!(
            "the encoding is not UTF-8, at byte {}",
            fault.valid_up_to()
        ))),
    }
}

/// Reads UTF-8 and UTF-16, with or without a byte order mark; anything else is read as
/// Windows-1252.
fn decode_table(bytes: &[u8]) -> Result<Cow<'_, str>, FileError> {
    if let Some(text) = utf16(bytes) {
        return text.map(Cow::Owned);
    }
    let bytes = bytes.strip_prefix(&UTF8_BOM).unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(windows_1252(bytes)),
    };
    if text.contains('\0') {
        return Err(FileError::new("the file is no text"));
    }
    Ok(text)
}

/// The text of a file that begins as UTF-16 does: with a byte order mark, or with a printable ASCII
/// character in two bytes.
fn utf16(bytes: &[u8]) -> Option<Result<String, FileError>> {
    match bytes {
        [0xFE, 0xFF, rest @ ..] => Some(decode_utf16(rest, true)),
        [0xFF, 0xFE, rest @ ..] => Some(decode_utf16(rest, false)),
        [0, 0x20..=0x7E, ..] => Some(decode_utf16(bytes, true)),
        [0x20..=0x7E, 0, ..] => Some(decode_utf16(bytes, false)),
        _ => None,
    }
}

/// Reads Windows-1252, and with it ISO-8859-1: where ISO-8859-1 has control characters,
/// Windows-1252 has punctuation and a few letters.
fn windows_1252(bytes: &[u8]) -> String {
    let letter = |byte: &u8| match byte {
        0x80..=0x9F => WINDOWS_1252_HIGH.get(usize::from(byte - 0x80)).copied().unwrap_or(' '),
        byte => char::from(*byte),
    };
    bytes.iter().map(letter).collect()
}

/// Reads ISO-8859-15: ISO-8859-1 with eight other characters.
fn latin_9(bytes: &[u8]) -> String {
    let letter = |byte: &u8| match byte {
        0xA4 => '€',
        0xA6 => 'Š',
        0xA8 => 'š',
        0xB4 => 'Ž',
        0xB8 => 'ž',
        0xBC => 'Œ',
        0xBD => 'œ',
        0xBE => 'Ÿ',
        byte => char::from(*byte),
    };
    bytes.iter().map(letter).collect()
}

fn decode_utf16(bytes: &[u8], is_big_endian: bool) -> Result<String, FileError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| {
        if is_big_endian { u16::from_be_bytes(*pair) } else { u16::from_le_bytes(*pair) }
    });
    let text: Result<String, _> = char::decode_utf16(units).collect();
    match (text, rest.is_empty()) {
        (Ok(text), true) => Ok(text),
        (_, false) => Err(FileError::truncated()),
        (Err(_), true) => Err(FileError::new("the encoding is not UTF-16")),
    }
}

/// A single-byte encoding. A file that names ISO-8859-1 is read as Windows-1252, which has all
/// letters of ISO-8859-1.
#[derive(Clone, Copy)]
enum DeclaredEncoding {
    Windows1252,
    Latin9,
}

/// The names of these encodings in a declaration. The first match counts, so a name comes before a
/// shorter one that is part of it.
const DECLARED_NAMES: &[(&str, DeclaredEncoding)] = &[
    ("iso-8859-15", DeclaredEncoding::Latin9),
    ("iso-8859-1", DeclaredEncoding::Windows1252),
    ("latin1", DeclaredEncoding::Windows1252),
    ("windows-1252", DeclaredEncoding::Windows1252),
];

/// The single-byte encoding that the XML declaration names, if any.
fn declared_encoding(bytes: &[u8]) -> Option<DeclaredEncoding> {
    const DECLARATION_BYTES_MAX: usize = 200;
    let end = bytes.iter().take(DECLARATION_BYTES_MAX).position(|byte| *byte == b'>')?;
    let declaration = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).to_lowercase();
    let mut names = DECLARED_NAMES.iter().filter(|_| declaration.starts_with("<?xml"));
    names.find(|(name, _)| declaration.contains(name)).map(|(_, encoding)| *encoding)
}

/// A gzip file with these flags and optional parts.
#[cfg(test)]
pub fn packed(bytes: &[u8], flags: u8, between: &[u8]) -> Vec<u8> {
    let mut all = vec![0x1F, 0x8B, 8, flags, 0, 0, 0, 0, 0, 255];
    all.extend(between);
    all.extend(miniz_oxide::deflate::compress_to_vec(bytes, 6));
    all.extend(crc32fast::hash(bytes).to_le_bytes());
    all.extend((bytes.len() as u32).to_le_bytes());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UTF-16 with the lower byte first, and with the higher one first.
    fn utf16(text: &str) -> (Vec<u8>, Vec<u8>) {
        let little = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        (little, big)
    }

    #[test]
    fn every_encoding_and_packing_gives_the_same_text() {
        let wanted = "<?xml version=\"1.0\"?><A>é 1</A>";
        let (little, big) = utf16(wanted);
        for bytes in [
            wanted.as_bytes().to_vec(),
            [&[0xEF, 0xBB, 0xBF], wanted.as_bytes()].concat(),
            [&[0xFF, 0xFE], little.as_slice()].concat(),
            [&[0xFE, 0xFF], big.as_slice()].concat(),
            little.clone(),
            big,
            packed(wanted.as_bytes(), 0, &[]),
            packed(&little, 0x08, b"name.xml\0"),
            packed(wanted.as_bytes(), 0x1C, b"\x02\x00xyname\0comment\0"),
        ] {
            assert_eq!(text(&bytes).unwrap(), wanted);
        }
        let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><A>\xE9</A>";
        assert!(text(latin).unwrap().ends_with("<A>é</A>"));
        assert!(text(b"<A>\xE9</A>").is_err(), "without a declaration it must be UTF-8");
        let latin9 = b"<?xml version='1.0' encoding='ISO-8859-15'?>\
            <A>\xA4 \xA6\xA8\xB4\xB8\xBC\xBD\xBE \xA3\xE9</A>";
        assert!(text(latin9).unwrap().ends_with("<A>€ ŠšŽžŒœŸ £é</A>"));
        let windows = b"<?xml version='1.0' encoding='windows-1252'?><A>\x80 \x93\xE9\x94</A>";
        assert!(text(windows).unwrap().ends_with("<A>€ “é”</A>"));
    }

    #[test]
    fn a_table_is_read_in_the_encodings_of_spreadsheets() {
        let wanted = "utr,name\nX1,José – 1\n";
        let (little, big) = utf16(wanted);
        let windows = b"utr,name\nX1,Jos\xE9 \x96 1\n".to_vec();
        for bytes in [
            wanted.as_bytes().to_vec(),
            [&UTF8_BOM, wanted.as_bytes()].concat(),
            [&[0xFF, 0xFE], little.as_slice()].concat(),
            [&[0xFE, 0xFF], big.as_slice()].concat(),
            little,
            big,
            windows.clone(),
            packed(&windows, 0, &[]),
        ] {
            assert_eq!(text_of_table(&bytes).unwrap(), wanted);
        }
        assert!(text_of_table(b"PK\x03\x04\0\0a,b\n").is_err(), "a packed spreadsheet is no text");
        assert!(text_of_table(&[0xFF, 0xFE, b'a']).unwrap_err().is_truncated);
    }

    #[test]
    fn broken_and_large_files_are_refused() {
        let whole = packed(b"<A/>", 0x08, b"name.xml\0");
        for end in 2..whole.len() {
            assert!(text(&whole[..end]).is_err(), "cut at {end}");
        }
        let mut wrong = whole.clone();
        let at = wrong.len() - 6;
        wrong[at] ^= 1;
        assert!(text(&wrong).unwrap_err().reason.contains("broken"));
        let bomb = packed(&vec![b' '; FILE_BYTES_MAX + 1], 0, &[]);
        assert!(text(&bomb).unwrap_err().reason.contains("larger"));
        assert!(text(&[0xFF, 0xFE, b'<']).unwrap_err().is_truncated);
    }
}
