//! One webhook attempt, without storage: vetting the address, signing, and sending within bounded
//! time.

pub mod attempt;
pub mod client;
mod connection;
mod paced;
mod pool;
mod resolve;
pub mod sign;
pub mod vet;
