//! What one webhook attempt needs, without the store: `vet` judges URLs and addresses, `sign` makes
//! the signature, and `client` sends within bounded time.

pub mod attempt;
pub mod client;
mod connection;
mod paced;
mod pool;
mod resolve;
pub mod sign;
pub mod vet;
