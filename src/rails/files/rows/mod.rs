//! The rows of the bank's journal: what was written for it, and what it said.

pub mod incoming;
pub mod instructions;
pub mod lines;
pub mod messages;

pub use incoming::{
    Counts, FileStatus, file_begin, file_end, file_status, is_message_known, is_statement_known,
    statement,
};
pub use instructions::{
    Attention, InstructionStatus, Journalled, advance, answer, attended_count, claim_reference,
    find, names_written, note_entry, note_names, note_reason, of_message, paid_under, queue,
    queue_again, queued, queued_count, set_attention, unanswered, under_way, withdraw,
    withdraw_again,
};
pub use lines::{
    LinePlace, Matching, Unmatched, accept, assign, close_difference, closed_differences, line,
    share, shared_line, unmatched,
};
pub use messages::{
    MessageStatus, OpenMessage, message_begin, message_end, message_find, message_named,
    message_staged, messages_open, next_file_number,
};
