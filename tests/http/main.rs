//! The API over HTTP, through the real router on a real socket: one test binary, one file a subject.

mod support;
mod wire;

mod book;
mod operator;
mod corridors;
mod idempotency;
