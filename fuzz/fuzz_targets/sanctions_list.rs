//! Any bytes as one file of the sanctions lists; the first byte says which. Read whole and not
//! empty, or refused with a reason.
#![no_main]

use hundi::screening::{ofac, own, un};

const SDN: &[u8] = include_bytes!("../../tests/fixtures/screening/sdn.csv");
const ALT: &[u8] = include_bytes!("../../tests/fixtures/screening/alt.csv");
const ADD: &[u8] = include_bytes!("../../tests/fixtures/screening/add.csv");
const COMMENTS: &[u8] = include_bytes!("../../tests/fixtures/screening/sdn_comments.csv");

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let ofac = |sdn, alt, add, comments| ofac::read(ofac::Files { sdn, alt, add, comments });
    let read = match which {
        b'0' => ofac(bytes, ALT, ADD, COMMENTS),
        b'1' => ofac(SDN, bytes, ADD, COMMENTS),
        b'2' => ofac(SDN, ALT, bytes, COMMENTS),
        b'3' => ofac(SDN, ALT, ADD, bytes),
        b'4' => un::read(bytes),
        _ => own::read(bytes),
    };
    match read {
        Ok(list) => assert!(!list.entries.is_empty()),
        Err(fault) => assert!(!fault.is_empty()),
    }
});
