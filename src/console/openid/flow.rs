//! Binds a sign-in at the provider to the browser that began it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::kernel::seal::Sealer;

/// How long a person may take at the provider, in seconds.
pub const FLOW_SECONDS_MAX: i64 = 600;
/// The longest path to go to after the sign-in; instead of a longer one the browser goes to the
/// overview.
const NEXT_BYTES_MAX: usize = 1_000;

/// The state, nonce and verifier of one sign-in at a provider. Keyed hashes over the browser's
/// token make them, so nobody who has one of them can compute another.
pub struct SignInFlow {
    /// Goes to the provider and comes back unchanged: when the sign-in began, where to go
    /// afterwards, and a keyed hash over both and the browser's token.
    pub state: String,
    /// The claim `nonce` of the token that the provider signs.
    pub nonce: String,
    /// The code verifier that is sent with the code (RFC 7636).
    pub verifier: String,
}

impl SignInFlow {
    /// Begins a sign-in for a browser's token. `instant` is in Unix seconds; `next` is the path to
    /// go to afterwards, or "".
    pub fn begin(sealer: &Sealer, token: &str, instant: i64, next: &str) -> SignInFlow {
        let next = if next.len() <= NEXT_BYTES_MAX { next } else { "" };
        let carried = [instant.to_be_bytes().as_slice(), next.as_bytes()].concat();
        let mark = |kind: &[u8], more: &[u8]| {
            URL_SAFE_NO_PAD.encode(sealer.fingerprint(&[kind, token.as_bytes(), more]))
        };
        let state = mark(b"openid state", &carried);
        SignInFlow {
            state: format!("{}.{state}", URL_SAFE_NO_PAD.encode(&carried)),
            nonce: mark(b"openid nonce", &instant.to_be_bytes()),
            verifier: mark(b"openid verifier", &instant.to_be_bytes()),
        }
    }

    /// The sign-in that a state belongs to, and where to go afterwards. `None` if another browser
    /// began it, if this service did not make the state, and after [`FLOW_SECONDS_MAX`].
    pub fn resume(
        sealer: &Sealer,
        token: &str,
        state: &str,
        instant: i64,
    ) -> Option<(SignInFlow, String)> {
        let (carried, _) = state.split_once('.')?;
        let carried = URL_SAFE_NO_PAD.decode(carried).ok()?;
        let (begun, next) = carried.split_at_checked(8)?;
        let begun = i64::from_be_bytes(begun.try_into().ok()?);
        let next = std::str::from_utf8(next).ok()?;
        let flow = SignInFlow::begin(sealer, token, begun, next);
        let is_own = bool::from(flow.state.as_bytes().ct_eq(state.as_bytes()));
        let is_young = (0..=FLOW_SECONDS_MAX).contains(&instant.checked_sub(begun)?);
        (is_own && is_young).then(|| (flow, next.to_owned()))
    }

    /// The code challenge, which the provider compares with the verifier (RFC 7636, S256).
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_goes_on_in_its_own_browser_for_ten_minutes() {
        let sealer = Sealer::new(&[7; 32]);
        let flow = SignInFlow::begin(&sealer, "browser", 1_000, "/console/audit");
        let resumed = |token: &str, state: &str, instant: i64| {
            SignInFlow::resume(&sealer, token, state, instant)
                .map(|(flow, next)| (flow.nonce, flow.verifier, next))
        };
        let wanted = (flow.nonce.clone(), flow.verifier.clone(), "/console/audit".to_owned());
        assert_eq!(resumed("browser", &flow.state, 1_000), Some(wanted.clone()));
        assert_eq!(resumed("browser", &flow.state, 1_600), Some(wanted));
        assert_eq!(resumed("browser", &flow.state, 1_601), None);
        assert_eq!(resumed("browser", &flow.state, 999), None);
        assert_eq!(resumed("another", &flow.state, 1_000), None);
        let (carried, mark) = flow.state.split_once('.').unwrap();
        let later = SignInFlow::begin(&sealer, "browser", 1_001, "/console/audit");
        let other = later.state.split_once('.').unwrap().0;
        for state in ["", ".", "x", carried, mark, &format!("{other}.{mark}"), "AAAA.AAAA"] {
            assert_eq!(resumed("browser", state, 1_000), None, "{state}");
        }
        // The state of a service with another key is not taken.
        assert!(
            SignInFlow::resume(&Sealer::new(&[8; 32]), "browser", &flow.state, 1_000).is_none()
        );
        // Each sign-in has its own values, which differ from one another.
        assert!(later.nonce != flow.nonce && later.verifier != flow.verifier);
        assert!(flow.nonce != flow.verifier && flow.verifier.len() == 43);
        let long = SignInFlow::begin(&sealer, "browser", 1, &"x".repeat(1_001));
        assert_eq!(SignInFlow::resume(&sealer, "browser", &long.state, 1).unwrap().1, "");
    }

    /// RFC 7636, appendix B.
    #[test]
    fn the_challenge_is_the_verifiers_hash() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
        let flow = SignInFlow { state: String::new(), nonce: String::new(), verifier };
        assert_eq!(flow.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
