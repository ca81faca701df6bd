//! Workers: what runs beside the requests. Most take due rows and do one thing with each. A worker
//! may be stopped at any moment.

pub mod account_look_ups;
pub mod bank;
pub mod clock;
pub mod housekeeping;
pub mod key_uses;
pub mod name_words;
pub mod rates;
pub mod screening;
pub mod tasks;
