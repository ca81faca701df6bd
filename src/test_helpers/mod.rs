//! What only test keys can do: move the test clock, send deposits, decide what the simulated bank,
//! the simulated chain and the simulated verification say, and have the caller attacked (`chaos`).

pub mod api;
pub mod beneficiaries;
pub mod chaos;
pub mod clock;
pub mod deposits;
pub mod payouts;
pub mod refunds;

use crate::http::route::ResourcePath;

pub const PATH: ResourcePath = ResourcePath {
    name: "test_helpers",
    description: "Moves the simulated world; test keys only.",
};
