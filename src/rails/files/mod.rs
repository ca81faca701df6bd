//! What bank rails that exchange files have in common.
//!
//! `workers::bank` is the worker that writes and reads the files. It publishes a file for the bank
//! at most once, and applies a file from the bank once. An SFTP or host-to-host agent, or a person
//! with a browser, carries the files to the bank and back.
//!
//! - Settings: `settings` reads the table `[bank]` and has the trait `FileFormat`, which writes
//!   payment files and reads reports. `profile` says how a bank's files differ from the defaults,
//!   with `characters` and `scripts_of_india` for names, and `windows` for the bank's hours.
//! - Files: `folders` publishes and collects them, `encoding` turns incoming ones into text.
//!   `format` has the types of what is written, `reports` those of what is read, and `values` the
//!   values in both.
//! - Meaning: `references` finds the payment's UTR in a report, `reasons` has the tables of codes.
//! - State: `rail` queues the instructions, and `rows` keeps the journal of what was sent and read.
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
