//! What bank rails that exchange files have in common.
//!
//! A file for the bank is written at most once, and a file from the bank is applied once. An SFTP
//! or host-to-host agent, or a person with a browser, carries both. `settings` is the table
//! `[bank]` and the trait `FileFormat`, which writes payment files and reads reports; `profile` is
//! how a bank's files differ, with `characters` and `windows`. `folders` publishes and collects
//! files, `encoding` turns incoming files into text, `reports` has the types of a report,
//! `references` finds the clearing system's reference in a report, `reasons` has the tables of
//! codes, and `rows` keeps the journal of what was sent and read. `certify` explains sample files.
//! The worker is `workers::bank`.

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
