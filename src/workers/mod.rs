//! Workers, which run beside the requests. Most of them take due rows and do one thing with each. A
//! worker may be stopped at any moment. Chains and webhooks have workers in rooms of their own.

pub mod account_look_ups;
pub mod bank;
pub mod clock;
pub mod housekeeping;
pub mod key_uses;
pub mod name_words;
pub mod rates;
pub mod screening;
pub mod tasks;
