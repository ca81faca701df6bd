//! Encryption at rest of account numbers, KYC fields, webhook secrets and stored answers that hold
//! one.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use hmac::{Hmac, Mac};
use secrecy::{ExposeSecret, SecretBox};
use sha2::Sha256;

use super::refusal::StoreError;

pub const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;

/// The operator's encryption key and what is derived from it. Never printed.
pub struct Sealer {
    cipher: Aes256Gcm,
    fingerprint_key: SecretBox<[u8; 32]>,
    verifier: [u8; 32],
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(redacted)")
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC takes keys of any length, so this cannot fail; an empty result would only make keys not
    // match.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return [0; 32];
    };
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

impl Sealer {
    pub fn new(key: &[u8; KEY_BYTES]) -> Sealer {
        let encryption_key = mac(key, &[b"hundi seal v1"]);
        Sealer {
            cipher: Aes256Gcm::new(&encryption_key.into()),
            fingerprint_key: SecretBox::new(Box::new(mac(key, &[b"hundi fingerprint v1"]))),
            verifier: mac(key, &[b"hundi verifier v1"]),
        }
    }

    /// A value that may be stored in the open and tells whether a key fits a database.
    pub const fn verifier(&self) -> &[u8; 32] {
        &self.verifier
    }

    /// A keyed fingerprint: without the key, a short or guessable input cannot be tried out against
    /// it.
    pub fn fingerprint(&self, parts: &[&[u8]]) -> [u8; 32] {
        mac(self.fingerprint_key.expose_secret(), parts)
    }

    /// Encrypts; `place` (table, column and row) is bound in, so that a sealed value cannot be
    /// moved to another row.
    pub fn seal(
        &self,
        nonce: [u8; NONCE_BYTES],
        place: &[u8],
        plain: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let payload = Payload { msg: plain, aad: place };
        let mut sealed = nonce.to_vec();
        let text = self
            .cipher
            .encrypt(&Nonce::from(nonce), payload)
            .map_err(|_| StoreError::Broken("sealing failed".into()))?;
        sealed.extend_from_slice(&text);
        Ok(sealed)
    }

    pub fn open(&self, place: &[u8], sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        let broken =
            || StoreError::Broken("a sealed value does not open: wrong key or damaged row".into());
        let (nonce, text) = sealed.split_first_chunk::<NONCE_BYTES>().ok_or_else(broken)?;
        let payload = Payload { msg: text, aad: place };
        self.cipher.decrypt(&Nonce::from(*nonce), payload).map_err(|_| broken())
    }
}

/// The place of one sealed value.
pub fn place(column: &str, id: &[u8]) -> Vec<u8> {
    [column.as_bytes(), b":", id].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_value_opens_only_with_its_key_and_in_its_place() {
        let sealer = Sealer::new(&[7; 32]);
        let sealed =
            sealer.seal([1; 12], &place("beneficiaries.kyc", b"a"), b"50100012345678").unwrap();
        assert!(!sealed.windows(5).any(|part| part == b"50100"));
        assert_eq!(
            sealer.open(&place("beneficiaries.kyc", b"a"), &sealed).unwrap(),
            b"50100012345678"
        );
        assert!(sealer.open(&place("beneficiaries.kyc", b"b"), &sealed).is_err());
        assert!(Sealer::new(&[8; 32]).open(&place("beneficiaries.kyc", b"a"), &sealed).is_err());
        assert!(sealer.open(b"", b"short").is_err());
    }
}
