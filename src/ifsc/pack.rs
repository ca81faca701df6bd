//! Writes the compact directory from a CSV of branches, with the column names that Razorpay's
//! releases use. The file holds, in this order:
//!
//! - `MAGIC`, and the CRC-32 of all that follows (4 bytes, little-endian);
//! - the data's date and source, how many branches and banks there are, and the banks' names;
//! - for each block its first code (11 bytes) and the length of its deflated bytes, then all
//!   blocks, deflated.
//!
//! A block holds its branches column by column (`columns`). A number has 7 bits in each byte, the
//! lowest first, and the high bit means that more follow. The date, the source and a bank's name
//! each come after their length in bytes.

use std::collections::BTreeMap;
use std::io::Read;

use super::{BLOCK_BRANCHES, MAGIC, Rails, is_ifsc};

/// The most branches of one directory; in 2026 there were fewer than 200,000.
pub const BRANCHES_MAX: usize = 1_000_000;
/// The most characters of a name that are kept.
const NAME_CHARACTERS_MAX: usize = 200;
/// The most bytes of the text that says where the data came from.
const SOURCE_BYTES_MAX: usize = 200;

struct BranchRecord {
    code: String,
    bank: String,
    branch: String,
    rails: Rails,
}

/// Reads a CSV with a header that names IFSC, BANK and BRANCH, and where known NEFT, RTGS, IMPS and
/// UPI, and returns the compact form. `as_of` is the data's date as `YYYY-MM-DD`, `source` a line
/// that says where it came from.
pub fn pack(csv: impl Read, as_of: &str, source: &str) -> Result<Vec<u8>, String> {
    as_of
        .parse::<jiff::civil::Date>()
        .map_err(|_| format!("{as_of:?} is no date: write it like 2026-06-30"))?;
    let has_length = (1..=SOURCE_BYTES_MAX).contains(&source.len());
    if !has_length || source.chars().any(char::is_control) {
        return Err(format!("the source must be a line of 1 to {SOURCE_BYTES_MAX} bytes"));
    }
    let records = read(csv)?;
    let mut banks: BTreeMap<&str, u64> =
        records.values().map(|record| (record.bank.as_str(), 0)).collect();
    for (number, bank_number) in (0..).zip(banks.values_mut()) {
        *bank_number = number;
    }
    let mut body = Vec::new();
    put_text(&mut body, as_of);
    put_text(&mut body, source);
    put_number(&mut body, records.len() as u64);
    put_number(&mut body, banks.len() as u64);
    for bank in banks.keys() {
        put_text(&mut body, bank);
    }
    let sorted: Vec<&BranchRecord> = records.values().collect();
    let blocks: Vec<(&str, Vec<u8>)> = sorted
        .chunks(BLOCK_BRANCHES)
        .filter_map(|block| {
            Some((
                block.first()?.code.as_str(),
                miniz_oxide::deflate::compress_to_vec(&columns(block, &banks), 10),
            ))
        })
        .collect();
    for (first, bytes) in &blocks {
        body.extend_from_slice(first.as_bytes());
        put_number(&mut body, bytes.len() as u64);
    }
    for (_, bytes) in &blocks {
        body.extend_from_slice(bytes);
    }
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
    file.extend_from_slice(&body);
    Ok(file)
}

/// A block column by column, which packs better than row by row: the codes, the rails, each
/// branch's bank as its place among the banks' names, and the branch names, each ended by a line
/// break. A code is written as the number of characters at its beginning that it shares with the
/// code before it, and then its other characters.
fn columns(block: &[&BranchRecord], banks: &BTreeMap<&str, u64>) -> Vec<u8> {
    let (mut codes, mut rails, mut bank_numbers, mut names) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut before = "";
    for record in block {
        let shared =
            before.bytes().zip(record.code.bytes()).take_while(|(one, other)| one == other).count();
        codes.push(shared as u8);
        codes.extend(record.code.bytes().skip(shared));
        before = &record.code;
        rails.push(record.rails.0);
        put_number(&mut bank_numbers, banks.get(record.bank.as_str()).copied().unwrap_or(0));
        names.extend_from_slice(record.branch.as_bytes());
        names.push(b'\n');
    }
    [codes, rails, bank_numbers, names].concat()
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 127 {
        bytes.push((number & 127) as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_number(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

/// The branches of a CSV by their codes. A code that is there twice is refused.
fn read(csv: impl Read) -> Result<BTreeMap<String, BranchRecord>, String> {
    let mut reader = csv::Reader::from_reader(csv);
    let header =
        reader.headers().map_err(|error| format!("the CSV has no header: {error}"))?.clone();
    let column =
        |name: &str| header.iter().position(|found| found.trim().eq_ignore_ascii_case(name));
    let needed =
        |name: &str| column(name).ok_or_else(|| format!("the CSV's header names no column {name}"));
    let (code_column, bank_column, branch_column) =
        (needed("IFSC")?, needed("BANK")?, needed("BRANCH")?);
    let rail_columns =
        [("NEFT", Rails::NEFT), ("RTGS", Rails::RTGS), ("IMPS", Rails::IMPS), ("UPI", Rails::UPI)]
            .map(|(name, rail)| (column(name), rail));
    let mut records = BTreeMap::new();
    for (line, row) in (2..).zip(reader.records()) {
        let row = row.map_err(|error| format!("row {line} cannot be read: {error}"))?;
        let cell = |at: usize| row.get(at).unwrap_or("");
        let code = cell(code_column).trim().to_ascii_uppercase();
        if !is_ifsc(&code) {
            return Err(format!("row {line}: {code:?} is no IFSC"));
        }
        let mut rails = Rails(0);
        for (at, rail) in rail_columns.iter().filter_map(|(at, rail)| Some(((*at)?, *rail))) {
            match cell(at).trim().to_ascii_lowercase().as_str() {
                "true" | "t" | "yes" | "y" | "1" => rails = Rails(rails.0 | rail.0),
                "false" | "f" | "no" | "n" | "0" | "" => {}
                other => {
                    return Err(format!("row {line}: {other:?} is neither true nor false"));
                }
            }
        }
        // A CSV without columns for rails says nothing about rails. That differs from a branch that
        // accepts no rail.
        if rail_columns.iter().all(|(at, _)| at.is_none()) {
            rails = Rails::NOT_TOLD;
        }
        let record = BranchRecord {
            code: code.clone(),
            bank: plain(cell(bank_column)),
            branch: plain(cell(branch_column)),
            rails,
        };
        if records.insert(code, record).is_some() {
            return Err(format!("row {line}: this IFSC stands in the CSV twice"));
        }
        if records.len() > BRANCHES_MAX {
            return Err(format!("the CSV has more than {BRANCHES_MAX} branches"));
        }
    }
    if records.is_empty() { Err("the CSV has no branches".into()) } else { Ok(records) }
}

/// A name on one line, without control characters and doubled spaces.
fn plain(text: &str) -> String {
    let spaced: String = text
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(NAME_CHARACTERS_MAX)
        .collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}
