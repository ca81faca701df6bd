//! Readers against small files in the published layouts, whole and damaged.

use std::time::Instant;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::birth::Birth;
use super::*;

const SDN: &[u8] = include_bytes!("../../tests/fixtures/screening/sdn.csv");
const ALT: &[u8] = include_bytes!("../../tests/fixtures/screening/alt.csv");
const ADD: &[u8] = include_bytes!("../../tests/fixtures/screening/add.csv");
const COMMENTS: &[u8] = include_bytes!("../../tests/fixtures/screening/sdn_comments.csv");
const UN: &[u8] = include_bytes!("../../tests/fixtures/screening/consolidated.xml");
const OWN: &[u8] = include_bytes!("../../tests/fixtures/screening/operator.csv");

fn ofac(files: [&[u8]; 4]) -> Result<ReadList, String> {
    let [sdn, alt, add, comments] = files;
    ofac::read(ofac::Files { sdn, alt, add, comments })
}

fn find<'a>(list: &'a ReadList, id: &str) -> &'a ListEntry {
    list.entries.iter().find(|entry| entry.id == id).unwrap()
}

fn names(entry: &ListEntry) -> Vec<(&str, bool)> {
    entry.names.iter().map(|name| (name.text.as_str(), name.is_weak)).collect()
}

#[test]
fn the_sdn_list_is_read_with_everything_in_its_remarks() {
    let list = ofac([SDN, ALT, ADD, COMMENTS]).unwrap();
    assert_eq!((list.entries.len(), list.made_at), (5, None));
    let person = find(&list, "1001");
    assert_eq!(
        names(person),
        [("Dmitry Yurievich KHALBURO", false), ("NIGHTOWLER", true), ("Dmitri CHALBUROV", false)]
    );
    assert_eq!(person.births, [Birth::parse("17 Apr 1983").unwrap()]);
    assert_eq!(person.countries.iter().map(|code| code.as_str()).collect::<Vec<_>>(), ["RU"]);
    assert_eq!(person.identifiers[0].number, "731800555");
    assert_eq!(person.addresses, ["1FfmbHfnpaZjKFvyi1okTjJJusN455paPH"]);
    assert_eq!(
        (find(&list, "1002").kind, find(&list, "1003").kind),
        (EntryKind::Business, EntryKind::Vessel)
    );
    // The remarks of 1004 are cut within an address and go on in sdn_comments.csv.
    let spilled = find(&list, "1004");
    assert_eq!(
        spilled.addresses,
        [
            "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
            "0x98d2a16c1d8f1c5f0f3f4ad6b29d3e5d4c1b2a3f4e5d",
            "TLa2f6VPqDgRE67v1736s7bJ8Ray5wYjU7"
        ]
    );
    assert_eq!(spilled.births.len(), 2);
    assert_eq!(names(spilled)[0].0, "Tariq \"Abu\" Hamid AL-ZAHRUDI");
    assert!(find(&list, "1005").births.is_empty());
}

#[test]
fn the_consolidated_list_is_read() {
    let list = un::read(UN).unwrap();
    assert_eq!((list.entries.len(), list.made_at), (3, Some(1_795_132_809)));
    let person = find(&list, "XXi.001");
    assert_eq!(
        names(person),
        [("ERIKO BADUGENDE", false), ("Erik Badougende", false), ("Le Blanc Aigle", true)]
    );
    assert_eq!(person.births, [Birth::Years { first: 1971, last: 1971, is_guess: false }]);
    assert_eq!(person.countries.iter().map(|code| code.as_str()).collect::<Vec<_>>(), ["CD", "RW"]);
    assert_eq!(person.identifiers[0].number, "OB0243318");
    assert_eq!(
        find(&list, "XXi.002").births,
        [Birth::Years { first: 1958, last: 1960, is_guess: false }]
    );
    assert_eq!(find(&list, "XXe.001").kind, EntryKind::Business);
}

#[test]
fn the_operators_list_is_read() {
    let list = own::read(OWN).unwrap();
    assert_eq!(
        names(find(&list, "own-1")),
        [("Zubin Tarkhad", false), ("Zubeen Tarkhad", false), ("Z. Tarkhad", false)]
    );
    assert_eq!(find(&list, "own-2").addresses, ["TXLAQ63Xg1NAzckPwKHvzw7CSEmLMEqcdj"]);
    assert_eq!(
        find(&list, "own-3").births,
        [Birth::Years { first: 1975, last: 1975, is_guess: false }]
    );
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn faults_name_the_file_and_the_line() {
    let without = |bytes: &[u8], part: &str| text(bytes).replace(part, "").into_bytes();
    let half = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
    let said = |read: Result<ReadList, String>, wanted: &str| {
        let fault = read.map(|list| list.entries.len()).unwrap_err();
        assert!(fault.contains(wanted), "{fault:?} does not say {wanted:?}");
    };
    said(ofac([b"", ALT, ADD, COMMENTS]), "sdn.csv");
    said(ofac([SDN, b"", ADD, COMMENTS]), "alt.csv");
    said(ofac([&half(SDN), ALT, ADD, COMMENTS]), "sdn.csv");
    said(ofac([SDN, ALT, &half(ADD), COMMENTS]), "add.csv");
    said(ofac([SDN, ALT, ADD, &half(COMMENTS)]), "sdn_comments.csv, line 1");
    said(
        ofac([&without(SDN, "\"SDNTK\","), ALT, ADD, COMMENTS]),
        "sdn.csv, line 5: 11 fields instead of 12",
    );
    said(
        ofac([SDN, &text(ALT).replace("1002,", "999,").into_bytes(), ADD, COMMENTS]),
        "alt.csv, line 2: entity 999 is not in sdn.csv",
    );
    said(
        ofac([SDN, ALT, ADD, &text(COMMENTS).replace("1004,", "999,").into_bytes()]),
        "sdn_comments.csv",
    );
    said(
        ofac([&without(SDN, "\u{1a}"), ALT, ADD, COMMENTS]),
        "sdn.csv: the file does not end with the end mark",
    );
    let twice = [SDN.strip_suffix(b"\x1a").unwrap(), SDN].concat();
    said(ofac([&twice, ALT, ADD, COMMENTS]), "sdn.csv, line 6: the id 1001 is used twice");
    let latin = [b"1001,\"K\xe9\"".as_slice(), b"\r\n"].concat();
    said(ofac([SDN, ALT, ADD, &latin]), "sdn_comments.csv, line 1: this is not UTF-8");
    let unclosed = text(SDN).replace("\"SDGT\"", "\"SDGT");
    assert!(ofac([unclosed.as_bytes(), ALT, ADD, COMMENTS]).is_err());

    said(un::read(b""), "the UN list");
    said(un::read(&UN[..UN.len() - 3]), "the UN list");
    said(un::read(&[UN, UN].concat()), "something follows the end of the list");
    said(un::read(&[UN, b"<MORE/>"].concat()), "something follows the end of the list");
    said(un::read(b"<CONSOLIDATED_LIST/>"), "line 1: the list is empty");
    said(un::read(&without(UN, "</ENTITY>")), "the UN list, line");
    said(
        un::read(&without(UN, "<REFERENCE_NUMBER>XXi.002</REFERENCE_NUMBER>")),
        "an entry needs a reference number",
    );
    said(un::read(text(UN).replace("XXi.002", "XXi.001").as_bytes()), "XXi.001 is used twice");
    said(
        un::read(text(UN).replace("dateGenerated", "generated").as_bytes()),
        "line 2: dateGenerated",
    );
    said(
        un::read(text(UN).replace("&amp;", "&lol;").as_bytes()),
        "an entity that XML itself does not have",
    );
    let bomb = text(UN).replace(
        "<CONSOLIDATED_LIST ",
        "<!DOCTYPE x [<!ENTITY lol \"lol\">]>\n<CONSOLIDATED_LIST ",
    );
    said(un::read(bomb.as_bytes()), "line 2: document types are not accepted");
    let deep = text(UN).replace("<SORT_KEY/>", &format!("{}{}", "<A>".repeat(9), "</A>".repeat(9)));
    said(un::read(deep.as_bytes()), "too deep");
    said(
        un::read(b"<CONSOLIDATED_LIST dateGenerated=\"2026-01-01\"></CONSOLIDATED_LIST>"),
        "there are no entries",
    );
    let wide = text(UN).replace("<SORT_KEY/>", &"<A>x</A>".repeat(10_001));
    said(un::read(wide.as_bytes()), "too many elements");

    said(own::read(b""), "the operator's list, line 1");
    said(
        own::read(b"id,name,aliases,date_of_birth,country,address,note\n"),
        "there are no entries",
    );
    said(own::read(b"id,name\n1,x\n"), "line 1: the first line must be");
    for date in ["06/05", "1963-02-31", "12-05-1980", "1963-02", "5 May 80", "1963 or 3000"] {
        let list = text(OWN).replace("1980-05-06", date);
        said(own::read(list.as_bytes()), "line 2: date_of_birth");
    }
    for date in ["1980", "6 May 1980", "May 1980", "circa 1980", "1 Jan 1979 to 31 Dec 1981"] {
        assert!(own::read(text(OWN).replace("1980-05-06", date).as_bytes()).is_ok(), "{date}");
    }
    said(own::read(text(OWN).replace("United Kingdom", "Atlantis").as_bytes()), "line 4: country");
    said(own::read(text(OWN).replace("United Kingdom", "XX").as_bytes()), "line 4: country");
    said(own::read(text(OWN).replace("own-2", "decision").as_bytes()), "the id decision");
    said(
        own::read(text(OWN).replace("own-2", "own-1").as_bytes()),
        "line 3: this id is used twice",
    );
    said(
        own::read(
            text(OWN)
                .replace("TXLAQ63Xg1NAzckPwKHvzw7CSEmLMEqcdj", "1 Main Street, Springfield")
                .as_bytes(),
        ),
        "line 3",
    );
}

#[test]
fn a_fault_that_quotes_the_file_stays_short() {
    let element = "X".repeat(10_000);
    let fault = un::read(
        format!("<CONSOLIDATED_LIST dateGenerated=\"2026-11-20T00:00:09Z\"><{element}\n></Y>")
            .as_bytes(),
    )
    .unwrap_err();
    assert!(
        fault.starts_with("the UN list, line ")
            && fault.chars().count() == FAULT_CHARACTERS_MAX + 1,
        "{fault}"
    );
}

/// One way to damage a file.
#[derive(Clone, Debug)]
enum Damage {
    Flip(usize, u8),
    Cut(usize),
    Double(usize, usize),
    Drop(usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<usize>(), 1_u8..).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        any::<usize>().prop_map(Damage::Cut),
        (any::<usize>(), 1_usize..200).prop_map(|(at, count)| Damage::Double(at, count)),
        (any::<usize>(), 1_usize..200).prop_map(|(at, count)| Damage::Drop(at, count)),
    ]
}

fn damaged(bytes: &[u8], damage: &Damage) -> Vec<u8> {
    let mut out = bytes.to_vec();
    match *damage {
        Damage::Flip(at, bits) => {
            let at = at % out.len();
            out[at] ^= bits;
        }
        Damage::Cut(at) => out.truncate(at % out.len()),
        Damage::Double(at, count) => {
            let at = at % out.len();
            let part = out[at..out.len().min(at + count)].to_vec();
            out.splice(at..at, part);
        }
        Damage::Drop(at, count) => {
            let at = at % out.len();
            let end = out.len().min(at + count);
            out.drain(at..end);
        }
    }
    out
}

/// Reads the fixtures with file number `which` damaged. Answers whether the reader accepted it.
fn read_damaged(which: usize, damages: &[Damage]) -> Result<bool, TestCaseError> {
    let mut files =
        [SDN.to_vec(), ALT.to_vec(), ADD.to_vec(), COMMENTS.to_vec(), UN.to_vec(), OWN.to_vec()];
    let is_cut_only = matches!(damages, [Damage::Cut(_)]);
    for damage in damages {
        if !files[which].is_empty() {
            files[which] = damaged(&files[which], damage);
        }
    }
    let [sdn, alt, add, comments, un, own] = &files;
    let read = match which {
        0..4 => ofac([sdn, alt, add, comments]),
        4 => un::read(un),
        _ => own::read(own),
    };
    // A file that was cut at the end of a line looks whole, unless an end mark, a root element or
    // another file shows the cut. For sdn_comments.csv and the operator's list nothing does.
    let may_look_whole = files[which].ends_with(b"\n") && matches!(which, 3 | 5);
    // A cut that removes only the line break after the root element loses nothing.
    let is_whole_xml = which == 4 && files[4].ends_with(b"</CONSOLIDATED_LIST>");
    if is_cut_only && !may_look_whole && !is_whole_xml {
        prop_assert!(
            read.is_err(),
            "a cut file was accepted: {which} of {} bytes",
            files[which].len()
        );
    }
    match read {
        Ok(list) => {
            prop_assert!(!list.entries.is_empty());
            Ok(true)
        }
        Err(fault) => {
            prop_assert!(
                !fault.is_empty()
                    && fault.chars().count() <= FAULT_CHARACTERS_MAX + 1
                    && !fault.contains(char::is_control),
                "{}",
                fault
            );
            Ok(false)
        }
    }
}

/// Runs for three seconds, or for `HUNDI_TEST_MUTATION_SECONDS`.
#[test]
fn no_damage_to_a_fixture_breaks_a_reader() {
    let seconds: u64 = std::env::var("HUNDI_TEST_MUTATION_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(3);
    let mut runner =
        TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() });
    let strategy = (0_usize..6, prop::collection::vec(damage(), 1..5));
    let (started, mut count, mut taken) = (Instant::now(), 0_u64, 0_u64);
    while started.elapsed().as_secs() < seconds {
        let (which, damages) = strategy.new_tree(&mut runner).unwrap().current();
        taken += u64::from(
            read_damaged(which, &damages)
                .unwrap_or_else(|fault| panic!("file {which}, {damages:?}: {fault}")),
        );
        count += 1;
    }
    println!("{count} damaged lists in {seconds} s, {taken} of them read");
    assert!(count > 100 && taken > 0, "{count} lists, {taken} read");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]
    #[test]
    fn damaged_files_never_panic_and_a_visible_cut_is_refused(
        which in 0_usize..6, damages in prop::collection::vec(damage(), 1..4),
    ) {
        read_damaged(which, &damages)?;
    }

    #[test]
    fn any_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(ofac([&bytes, ALT, ADD, COMMENTS]).is_err());
        prop_assert!(un::read(&bytes).is_err());
        prop_assert!(own::read(&bytes).is_err());
    }
}
