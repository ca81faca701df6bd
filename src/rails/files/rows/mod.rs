//! The rows of the bank's journal: what was written for the bank, and what the bank reported.

pub mod incoming;
pub mod instructions;
pub mod lines;
pub mod messages;

pub use incoming::{
    Counts, FileStatus, begin_file, end_file, file_status, has_other_lines, insert_statement,
    is_incoming_known, is_statement_known,
};
pub use instructions::{
    Attention, InstructionStatus, Journalled, advance, awaiting_operator, claim_reference, find,
    names_written, note_entry, note_names, note_reason, of_message, paid_under, published_until,
    queue, queue_again, queued, queued_count, set_attention, stop_waiting, unanswered, under_way,
    undo_queue_again, withdraw,
};
pub use lines::{
    LinePlace, Matching, Unmatched, explain_line, explanations, find_unmatched, insert_line,
    insert_shared_line, is_debit_of_another_day, keep_explanation, match_to_payout,
    match_to_payouts, unmatched, unmatched_count,
};
pub use messages::{
    Message, MessageStatus, begin_message, end_message, find_message, message_named,
    next_file_number, open_messages, stage_message,
};
