//! The IFSC directory: the bank, branch and rails of each code, from the file inside the binary or
//! from a newer one of the operator's.
//!
//! The file is sorted and cut into blocks of 256 branches, each deflated on its own. A look-up
//! finds the block by its first code and inflates only that block. So nothing is inflated at the
//! start, and besides the file only an index is in memory: each block's first code, and where in
//! the file the blocks and the banks' names are. [`pack`] describes the layout of the file and of a
//! block.

pub mod pack;

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

/// Branches in one block. Smaller blocks make look-ups faster and the file larger.
const BLOCK_BRANCHES: usize = 256;
/// The most bytes of an inflated block; real ones have 3 to 16 kB.
const BLOCK_BYTES_MAX: usize = 128 * 1024;
/// The most bytes of a directory file.
pub const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
const MAGIC: &[u8; 8] = b"hundiIF1";
const CODE_LENGTH: usize = 11;

/// The operator's directory if there is one, otherwise the one inside the binary.
pub fn directory(file: Option<&Path>) -> Result<Directory, String> {
    file.map_or_else(Directory::embedded, Directory::open)
}

static EMBEDDED: &[u8] = include_bytes!("../../data/ifsc/directory.bin");

/// The rails that a branch accepts, by the directory. All of them are payment systems of India.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rails(u8);

impl Rails {
    pub const NEFT: Rails = Rails(1);
    pub const RTGS: Rails = Rails(2);
    /// Not reliable: the source lists every branch as ready for IMPS unless it knows otherwise.
    pub const IMPS: Rails = Rails(4);
    pub const UPI: Rails = Rails(8);
    /// The source says nothing about rails.
    const NOT_TOLD: Rails = Rails(16);

    /// Whether the branch accepts a rail; `None` if the directory says nothing about rails.
    pub const fn takes(self, rail: Rails) -> Option<bool> {
        if self.0 & Rails::NOT_TOLD.0 != 0 { None } else { Some(self.0 & rail.0 != 0) }
    }
}

/// What is known of one IFSC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Branch {
    pub code: String,
    /// The bank that the branch belongs to. Codes of some small banks begin with the letters of a
    /// larger bank; this is then the small bank. `None` if the source has no name.
    pub bank_name: Option<String>,
    pub branch_name: Option<String>,
    pub rails: Rails,
}

impl Branch {
    /// Whether a payout can arrive there: the branch accepts NEFT or RTGS, or the directory says
    /// nothing about rails. Codes of merged banks may accept neither.
    pub fn takes_payouts(&self) -> bool {
        self.rails.takes(Rails::NEFT) != Some(false) || self.rails.takes(Rails::RTGS) != Some(false)
    }
}

/// Whether a text has the form of an IFSC: four letters, a zero, six letters or digits, all
/// upper-case.
pub fn is_ifsc(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == CODE_LENGTH
        && bytes.iter().take(4).all(u8::is_ascii_uppercase)
        && bytes.get(4) == Some(&b'0')
        && bytes.iter().skip(5).all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

/// A block: the code of its first branch, and where in the file its deflated bytes are.
struct BranchBlock {
    first: [u8; CODE_LENGTH],
    bytes: Range<usize>,
}

/// A directory of branches, as of one day.
pub struct Directory {
    file: Cow<'static, [u8]>,
    /// The day whose codes it holds, `YYYY-MM-DD`.
    pub as_of: String,
    /// Where the data came from.
    pub source: String,
    /// How many branches it holds.
    pub branches_count: usize,
    /// Where in the file each bank's name is, by the bank's number.
    banks: Vec<Range<usize>>,
    blocks: Vec<BranchBlock>,
}

impl Directory {
    /// The directory inside the binary.
    pub fn embedded() -> Result<Directory, String> {
        // The checksum is not verified here, because reading the whole file would slow down the
        // start. A test verifies it.
        Directory::read(Cow::Borrowed(EMBEDDED))
            .map_err(|fault| format!("the IFSC directory inside the binary: {fault}"))
    }

    /// The directory in a file that `hundi ifsc-pack` wrote.
    pub fn open(path: &Path) -> Result<Directory, String> {
        let fault = |what: String| format!("the IFSC directory {}: {what}", path.display());
        let length = std::fs::metadata(path).map_err(|error| fault(error.to_string()))?.len();
        if length > FILE_BYTES_MAX {
            return Err(fault(format!("the file is larger than {FILE_BYTES_MAX} bytes")));
        }
        let file = std::fs::read(path).map_err(|error| fault(error.to_string()))?;
        Directory::from_bytes(file).map_err(fault)
    }

    /// A directory from the bytes that `pack::pack` makes, with its checksum verified.
    pub fn from_bytes(file: Vec<u8>) -> Result<Directory, String> {
        const DAMAGED: &str =
            "the file is damaged or is not an IFSC directory; write it with `hundi ifsc-pack`";
        let checksum = file.get(MAGIC.len()..MAGIC.len() + 4).ok_or(DAMAGED)?;
        let body = file.get(MAGIC.len() + 4..).ok_or(DAMAGED)?;
        if crc32fast::hash(body).to_le_bytes() != checksum {
            return Err(DAMAGED.into());
        }
        Directory::read(Cow::Owned(file))
    }

    fn read(file: Cow<'static, [u8]>) -> Result<Directory, String> {
        if !file.starts_with(MAGIC) {
            return Err("the file is not an IFSC directory that this version reads".into());
        }
        let parsed = Directory::parse(&file).ok_or("the file is damaged or cut short")?;
        let (as_of, source, branches_count, banks, blocks) = parsed;
        Ok(Directory { file, as_of, source, branches_count, banks, blocks })
    }

    #[allow(clippy::type_complexity, reason = "the fields of a `Directory`")]
    fn parse(file: &[u8]) -> Option<(String, String, usize, Vec<Range<usize>>, Vec<BranchBlock>)> {
        let mut reader = ByteReader { bytes: file, place: MAGIC.len() + 4 };
        let as_of = std::str::from_utf8(file.get(reader.text()?)?).ok()?.to_owned();
        let source = std::str::from_utf8(file.get(reader.text()?)?).ok()?.to_owned();
        let branches_count =
            reader.number().filter(|count| (1..=pack::BRANCHES_MAX).contains(count))?;
        let banks_count = reader.number().filter(|count| *count <= branches_count)?;
        let banks = (0..banks_count).map(|_| reader.text()).collect::<Option<Vec<_>>>()?;
        let mut heads = Vec::new();
        for _ in 0..branches_count.div_ceil(BLOCK_BRANCHES) {
            let first: [u8; CODE_LENGTH] = file.get(reader.take(CODE_LENGTH)?)?.try_into().ok()?;
            heads.push((first, reader.number()?));
        }
        let blocks = heads
            .into_iter()
            .map(|(first, length)| Some(BranchBlock { first, bytes: reader.take(length)? }))
            .collect::<Option<Vec<_>>>()?;
        (reader.place == file.len()).then_some((as_of, source, branches_count, banks, blocks))
    }

    /// The branch with this code, which has to be in upper case. `None` if the directory does not
    /// have the code, or if the file is damaged there.
    pub fn find(&self, code: &str) -> Option<Branch> {
        let wanted: [u8; CODE_LENGTH] = code.as_bytes().try_into().ok()?;
        let number = self.blocks.partition_point(|block| block.first <= wanted).checked_sub(1)?;
        let packed = self.file.get(self.blocks.get(number)?.bytes.clone())?;
        let block =
            miniz_oxide::inflate::decompress_to_vec_with_limit(packed, BLOCK_BYTES_MAX).ok()?;
        let count = BLOCK_BRANCHES.min(self.branches_count - number * BLOCK_BRANCHES);
        let mut reader = ByteReader { bytes: &block, place: 0 };
        let mut found = None;
        let mut current = [0_u8; CODE_LENGTH];
        // A block has all codes, then all rails, bank numbers and names (`pack::columns`). So each
        // loop reads to its column's end.
        for index in 0..count {
            let shared = usize::from(*block.get(reader.take(1)?)?.first()?);
            let rest = block.get(reader.take(CODE_LENGTH.checked_sub(shared)?)?)?;
            current.get_mut(shared..)?.copy_from_slice(rest);
            if current == wanted {
                found = Some(index);
            }
        }
        let index = found?;
        let rails = Rails(*block.get(reader.take(count)?)?.get(index)?);
        let mut bank_number = 0;
        for other in 0..count {
            let number = reader.number()?;
            if other == index {
                bank_number = number;
            }
        }
        let text = |bytes: &[u8]| {
            std::str::from_utf8(bytes).ok().filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let branch = block.get(reader.place..)?.split(|byte| *byte == b'\n').nth(index)?;
        Some(Branch {
            code: code.to_owned(),
            bank_name: text(self.file.get(self.banks.get(bank_number)?.clone())?),
            branch_name: text(branch),
            rails,
        })
    }
}

/// Reads numbers and ranges from bytes. A text is returned as its range, so that nothing is copied.
struct ByteReader<'a> {
    bytes: &'a [u8],
    place: usize,
}

impl ByteReader<'_> {
    /// Steps over `length` bytes and returns their range.
    fn take(&mut self, length: usize) -> Option<Range<usize>> {
        let end = self.place.checked_add(length).filter(|end| *end <= self.bytes.len())?;
        let range = self.place..end;
        self.place = end;
        Some(range)
    }
    fn number(&mut self) -> Option<usize> {
        let mut number = 0_usize;
        for shift in (0..35).step_by(7) {
            let byte = *self.bytes.get(self.place)?;
            self.place += 1;
            number |= usize::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }
    fn text(&mut self) -> Option<Range<usize>> {
        let length = self.number()?;
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_directory_inside_is_whole_and_knows_known_branches() {
        let directory = Directory::from_bytes(EMBEDDED.to_vec()).unwrap();
        assert!(
            directory.branches_count > 180_000 && directory.as_of.as_str() >= "2026-06-30",
            "{}",
            directory.as_of
        );
        let branch = directory.find("HDFC0000001").unwrap();
        assert_eq!(branch.bank_name.as_deref(), Some("HDFC Bank"));
        assert!(branch.branch_name.is_some() && branch.takes_payouts(), "{branch:?}");
        assert_eq!(
            directory.find("SBIN0000001").unwrap().bank_name.as_deref(),
            Some("State Bank of India")
        );
        // The small bank itself is named, not the bank whose letters its code begins with.
        assert_ne!(
            directory.find("YESB0TSS001").and_then(|branch| branch.bank_name).as_deref(),
            Some("Yes Bank")
        );
        for unknown in
            ["HDFC0ZZZZZZ", "AAAA0000000", "ZZZZ0ZZZZZZ", "hdfc0000001", "HDFC000001", ""]
        {
            assert_eq!(directory.find(unknown), None, "{unknown}");
        }
        let merged = directory.find("CORP0000001").map(|branch| branch.takes_payouts());
        assert_ne!(merged, Some(true), "a merged bank's code takes neither NEFT nor RTGS");
    }

    fn csv(rows: &str) -> String {
        format!("BANK,IFSC,BRANCH,NEFT,RTGS,IMPS,UPI\n{rows}")
    }

    #[test]
    fn a_csv_is_packed_and_found_again() {
        let rows = csv("\"Bank, One\",ABCD0123456,\"Main  \
             \"\"A\"\"\",true,false,true,false\nTwo,abcd0a00001,,1,1,1,1\n\
             ,EFGH0000001,X,false,false,true,false\n");
        let directory =
            Directory::from_bytes(pack::pack(rows.as_bytes(), "2026-01-31", "a test").unwrap())
                .unwrap();
        assert_eq!(
            (directory.as_of.as_str(), directory.source.as_str(), directory.branches_count),
            ("2026-01-31", "a test", 3)
        );
        let one = directory.find("ABCD0123456").unwrap();
        assert_eq!(
            (one.bank_name.as_deref(), one.branch_name.as_deref()),
            (Some("Bank, One"), Some("Main \"A\""))
        );
        assert_eq!(
            (one.rails.takes(Rails::NEFT), one.rails.takes(Rails::RTGS), one.takes_payouts()),
            (Some(true), Some(false), true)
        );
        assert_eq!(directory.find("ABCD0A00001").unwrap().branch_name, None);
        let three = directory.find("EFGH0000001").unwrap();
        assert_eq!((three.bank_name.as_deref(), three.takes_payouts()), (None, false));
        let silent = Directory::from_bytes(
            pack::pack("IFSC,BANK,BRANCH\nABCD0123456,B,C\n".as_bytes(), "2026-01-31", "x")
                .unwrap(),
        )
        .unwrap();
        let branch = silent.find("ABCD0123456").unwrap();
        assert!(
            branch.rails.takes(Rails::NEFT).is_none() && branch.takes_payouts(),
            "silence about rails is not a refusal"
        );
    }

    #[test]
    fn a_bad_csv_or_date_is_refused_with_what_is_wrong() {
        for (rows, date, part) in [
            ("BANK,BRANCH\nx,y\n".to_owned(), "2026-01-31", "no column IFSC"),
            (csv("B,ABCD1123456,C,,,,\n"), "2026-01-31", "row 2"),
            (csv("B,ABCD0123456,C,,,,\nB,ABCD0123456,C,,,,\n"), "2026-01-31", "row 3"),
            (csv("B,ABCD0123456\n"), "2026-01-31", "row 2"),
            (csv(""), "2026-01-31", "no branches"),
            (csv("B,ABCD0123456,C,,,,\n"), "31.1.2026", "no date"),
        ] {
            let fault = pack::pack(rows.as_bytes(), date, "a test").unwrap_err();
            assert!(fault.contains(part), "{fault}");
        }
    }

    #[test]
    fn a_damaged_file_is_refused_and_never_panics() {
        let whole = pack::pack(csv("B,ABCD0123456,C,1,1,1,1\n").as_bytes(), "2026-01-31", "a test")
            .unwrap();
        for length in 0..whole.len() {
            assert!(Directory::from_bytes(whole[..length].to_vec()).is_err());
        }
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x41;
            assert!(Directory::from_bytes(damaged.clone()).is_err(), "byte {place}");
            // Without the checksum, as the directory inside the binary is read.
            if let Ok(directory) = Directory::read(Cow::Owned(damaged)) {
                let _ = directory.find("ABCD0123456");
            }
        }
        assert!(
            Directory::open(Path::new("/nonexistent/ifsc.bin"))
                .err()
                .unwrap()
                .contains("/nonexistent/ifsc.bin")
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn every_branch_of_a_directory_is_found_and_no_other(
            codes in proptest::collection::btree_set("[A-C]{4}0[A-B0-2]{6}", 1..700),
            other in "[A-C]{4}0[A-B0-2]{6}",
        ) {
            let rows: String = codes.iter().map(|code| format!("Bank {},{code},Branch \
             {code},true,true,true,true\n", &code[..4])).collect();
            let directory = Directory::from_bytes(pack::pack(csv(&rows).as_bytes(), "2026-01-31",
                "a test").unwrap()).unwrap();
            for code in &codes {
                let found = directory.find(code).unwrap();
                prop_assert_eq!(found.bank_name, Some(format!("Bank {}", &code[..4])));
                prop_assert_eq!(found.branch_name, Some(format!("Branch {code}")));
            }
            prop_assert_eq!(directory.find(&other).is_some(), codes.contains(&other));
        }
    }

    /// Prints the figures of data/ifsc/README.md; run with `--release --ignored --nocapture`.
    #[test]
    #[ignore = "a measurement"]
    fn measure() {
        let started = std::time::Instant::now();
        let directory = Directory::embedded().unwrap();
        let opened = started.elapsed();
        let codes: Vec<String> = directory
            .blocks
            .iter()
            .map(|block| String::from_utf8(block.first.to_vec()).unwrap())
            .collect();
        let started = std::time::Instant::now();
        let found = codes.iter().filter(|code| directory.find(code).is_some()).count();
        let each = started.elapsed() / codes.len() as u32;
        let resident = directory.blocks.len() * size_of::<BranchBlock>()
            + directory.banks.len() * size_of::<Range<usize>>();
        println!(
            "file {} bytes, open {opened:?}, look-up {each:?} (mean of {found}), index {resident} \
             bytes",
            EMBEDDED.len()
        );
    }
}
