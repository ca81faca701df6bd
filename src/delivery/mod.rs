//! One webhook attempt, without storage: judging the address, signing, and sending within bounded time.

pub mod send;
pub mod sign;
pub mod vet;
