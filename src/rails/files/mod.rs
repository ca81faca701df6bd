//! What bank rails that exchange files have in common.
//!
//! A file for the bank is published at most once, and a file from the bank takes effect once. An
//! SFTP or host-to-host agent, or a person with a browser, carries the files. The worker is
//! `workers::bank`.
//!
//! - Settings: `settings` reads the table `[bank]` and has the trait `FileFormat`, which writes
//!   payment files and reads reports. `profile` says how a bank's files differ, with `characters`
//!   and `scripts_of_india` for names, and `windows` for the bank's hours.
//! - Files: `folders` publishes and collects them, `encoding` turns incoming ones into text.
//!   `format` and `values` have the types of what is written, `reports` those of what is read.
//! - Meaning: `references` finds the clearing system's reference in a report, `reasons` has the
//!   tables of codes.
//! - State: `rail` is the rail, and `rows` keeps the journal of what was sent and read.
//! - `certify` explains a bank's sample files.

pub mod certify;
pub mod characters;
pub mod encoding;
pub mod folders;
pub mod format;
pub mod profile;
pub mod rail;
pub mod reasons;
pub mod references;
pub mod reports;
pub mod rows;
pub mod scripts_of_india;
pub mod settings;
pub mod values;
pub mod windows;
