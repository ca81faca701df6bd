//! One webhook attempt, without storage: judging the address, signing, and sending within bounded
//! time.

mod resolve;
pub mod send;
pub mod sign;
pub mod vet;
