//! Any bytes as a file from the bank: read whole, or refused with a reason.
#![no_main]

use hundi::rails::files::reports::Content;
use hundi::rails::iso20022::reading;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| match reading::read(bytes) {
    Err(refused) => assert!(!refused.reason.is_empty() && refused.reason.len() < 300),
    Ok(found) => {
        assert!((1..=35).contains(&found.message_id.chars().count()));
        if let Content::Accounts(accounts) = found.content {
            let mut lines = accounts.iter().flat_map(|account| &account.lines);
            assert!(lines.all(|line| line.amount.units >= 0));
        }
    }
});
