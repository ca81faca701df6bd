//! Signing in at an OpenID Connect provider, as an option beside the password.
//!
//! It is the authorization code flow with PKCE (S256). State, nonce and verifier are computed from
//! a token in a cookie of the browser in which the sign-in began. So the provider's answer is valid
//! only in that browser, and a sign-in that is given up leaves nothing in the store. `provider`
//! asks the provider, `token` judges what the provider signed, `flow` binds a sign-in to its
//! browser, and `sign_in` has the two routes.

mod flow;
pub mod provider;
pub mod settings;
pub mod sign_in;
mod token;

pub use provider::OpenId;
