//! Encryption at rest: the keys, and the places of sealed values ([`SealedPlace::ALL`]).

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use hmac::{Hmac, Mac};
use secrecy::{ExposeSecret, SecretBox};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::hex;
use super::refusal::StoreError;

pub const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;

/// What identifies a row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKey {
    /// `scope` and `id`; values are bound to the identifier.
    ScopeAndId,
    /// `number`.
    Number,
    /// `answer_id`.
    AnswerId,
}

/// Where a sealed value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredAt {
    /// A value in the table `meta`, under the place's name.
    Meta,
    Column {
        table: &'static str,
        column: &'static str,
        /// SQL for the sealed value: the column, or NULL in rows where the column is not sealed.
        value: &'static str,
        key: RowKey,
        /// Whether rows have a `version`, by which a writer notices that a row was changed.
        is_versioned: bool,
    },
}

/// One place of sealed values. Sealing needs a place, and no place can be made outside this file.
/// So a change of the key finds every sealed value through [`SealedPlace::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedPlace {
    /// Each sealed value is bound to the name of its place, so the name must never change.
    name: &'static str,
    at: StoredAt,
}

impl SealedPlace {
    const fn meta(name: &'static str) -> SealedPlace {
        SealedPlace { name, at: StoredAt::Meta }
    }
    const fn column(
        name: &'static str,
        table: &'static str,
        column: &'static str,
        key: RowKey,
        is_versioned: bool,
    ) -> SealedPlace {
        SealedPlace {
            name,
            at: StoredAt::Column { table, column, value: column, key, is_versioned },
        }
    }
    pub const fn name(&self) -> &'static str {
        self.name
    }
    pub const fn at(&self) -> StoredAt {
        self.at
    }
    /// What a sealed value is bound to: the place, and for a column also the row.
    fn bound(&self, id: &[u8]) -> Vec<u8> {
        match self.at {
            StoredAt::Meta => self.name.as_bytes().to_vec(),
            StoredAt::Column { .. } => [self.name.as_bytes(), b":", id].concat(),
        }
    }
}

/// Names each place, and lists all of them.
macro_rules! places {
    ($($name:ident = $place:expr;)*) => {
        impl SealedPlace {
            $(pub const $name: SealedPlace = $place;)*
            pub const ALL: &'static [SealedPlace] = &[$(SealedPlace::$name),*];
        }
    };
}

places! {
    ACCOUNT_NUMBER = SealedPlace::column(
        "beneficiaries.account_number", "beneficiaries", "account_number_sealed",
        RowKey::ScopeAndId, true,
    );
    KYC = SealedPlace::column(
        "beneficiaries.kyc", "beneficiaries", "kyc_sealed", RowKey::ScopeAndId, true,
    );
    IDENTIFICATION = SealedPlace::column(
        "senders.identification", "senders", "identification_sealed", RowKey::ScopeAndId, false,
    );
    WEBHOOK_SECRETS = SealedPlace::column(
        "webhook_endpoints.secrets", "webhook_endpoints", "secrets_sealed", RowKey::ScopeAndId,
        true,
    );
    TOTP_SECRET = SealedPlace::column(
        "operators.totp_secret", "operators", "totp_secret", RowKey::Number, false,
    );
    NEXT_TOTP_SECRET = SealedPlace::column(
        "operators.next_totp_secret", "operators", "next_totp_secret", RowKey::Number, false,
    );
    // Form 2 is `idempotency::BodyForm::Sealed`.
    STORED_ANSWER = SealedPlace {
        name: "idempotency_answers.body",
        at: StoredAt::Column {
            table: "idempotency_answers",
            column: "body",
            value: "CASE WHEN form = 2 THEN body END",
            key: RowKey::AnswerId,
            is_versioned: false,
        },
    };
    TEST_ACCOUNT_KEY = SealedPlace::meta("test_account_key");
    ADVICE_KEYS_TEST = SealedPlace::meta("advice_keys_test");
    ADVICE_KEYS_LIVE = SealedPlace::meta("advice_keys_live");
    FINGERPRINT_KEY = SealedPlace::meta("fingerprint_key");
}

/// A value that shows whether a key fits a database. It is no secret.
pub type Verifier = [u8; 32];

/// The name of a key for people: the beginning of its verifier.
pub fn key_name(verifier: &[u8]) -> String {
    hex::encode(&verifier[..verifier.len().min(4)])
}

/// What is derived from one of the operator's encryption keys. Never printed.
struct Key {
    cipher: Aes256Gcm,
    verifier: Verifier,
}

impl Key {
    fn new(key: &[u8; KEY_BYTES]) -> Key {
        let cipher_key = mac(key, &[b"hundi seal v1"]);
        Key { cipher: Aes256Gcm::new(&cipher_key.into()), verifier: verifier_of(key) }
    }
    fn open(&self, bound: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, text) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload { msg: text, aad: bound };
        self.cipher.decrypt(&Nonce::from(*nonce), payload).ok()
    }
}

/// The operator's encryption keys. All of them open sealed values; the store says which one seals.
/// Never printed.
pub struct Sealer {
    keys: Vec<Key>,
    fingerprint_key: SecretBox<[u8; 32]>,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(redacted)")
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC takes keys of any length, so this cannot fail.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return [0; 32];
    };
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Makes a key's verifier.
pub fn verifier_of(key: &[u8; KEY_BYTES]) -> Verifier {
    mac(key, &[b"hundi verifier v1"])
}

/// The fingerprint key of a database whose encryption key was never changed. The first change
/// stores it sealed, and it stays in use.
fn derived_fingerprint_key(key: &[u8; KEY_BYTES]) -> [u8; 32] {
    mac(key, &[b"hundi fingerprint v1"])
}

impl Sealer {
    pub fn new(key: &[u8; KEY_BYTES]) -> Sealer {
        Sealer {
            keys: vec![Key::new(key)],
            fingerprint_key: SecretBox::new(Box::new(derived_fingerprint_key(key))),
        }
    }

    /// A sealer that opens with all of `keys`. `sealing_verifier` is the verifier of the key that
    /// seals now; the result is `None` if none of `keys` has it. `fingerprint_key_sealed` is in the
    /// database once its encryption key was changed. Without it, the fingerprint key is derived
    /// from the key that seals.
    pub fn of(
        keys: &[[u8; KEY_BYTES]],
        sealing_verifier: &[u8],
        fingerprint_key_sealed: Option<&[u8]>,
    ) -> Result<Option<Sealer>, StoreError> {
        let Some(key) = keys.iter().find(|key| fits(sealing_verifier, &verifier_of(key))) else {
            return Ok(None);
        };
        let mut sealer = Sealer::new(key);
        sealer.keys = keys.iter().map(Key::new).collect();
        if let Some(sealed) = fingerprint_key_sealed {
            let plain = sealer.open(&SealedPlace::FINGERPRINT_KEY, &[], sealed)?;
            let plain = plain.try_into().map_err(|_| {
                StoreError::Broken("the stored fingerprint key cannot be read".into())
            })?;
            sealer.fingerprint_key = SecretBox::new(Box::new(plain));
        }
        Ok(Some(sealer))
    }

    /// The verifier of each key.
    pub fn verifiers(&self) -> Vec<Verifier> {
        self.keys.iter().map(|key| key.verifier).collect()
    }

    /// A keyed hash: without the key, nobody can find a short or guessable input by trying. The
    /// fingerprint key outlives changes of the encryption key, because links, stored idempotency
    /// keys and decisions hold fingerprints.
    pub fn fingerprint(&self, parts: &[&[u8]]) -> [u8; 32] {
        mac(self.fingerprint_key.expose_secret(), parts)
    }

    /// The fingerprint key, for the store to keep sealed.
    pub fn fingerprint_key(&self) -> &SecretBox<[u8; 32]> {
        &self.fingerprint_key
    }

    /// The key that seals: the one with the verifier that the store names, or the first one if the
    /// store names none yet. `None` if the sealer has no key with that verifier.
    pub fn sealing_key(&self, verifier: Option<&[u8]>) -> Option<SealingKey<'_>> {
        let found = match verifier {
            None => self.keys.first(),
            Some(verifier) => self.keys.iter().find(|key| fits(verifier, &key.verifier)),
        };
        found.map(SealingKey)
    }

    pub fn open(
        &self,
        place: &SealedPlace,
        id: &[u8],
        sealed: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        self.opened(place, id, sealed).map(|(plain, _)| plain).ok_or_else(|| {
            StoreError::Broken("a sealed value does not open: wrong key or damaged row".into())
        })
    }

    /// Opens a sealed value; also returns the verifier of the key that opened it.
    pub fn opened(
        &self,
        place: &SealedPlace,
        id: &[u8],
        sealed: &[u8],
    ) -> Option<(Vec<u8>, Verifier)> {
        let bound = place.bound(id);
        self.keys.iter().find_map(|key| Some((key.open(&bound, sealed)?, key.verifier)))
    }
}

/// Whether a stored verifier belongs to the key with this verifier.
pub fn fits(stored: &[u8], verifier: &Verifier) -> bool {
    bool::from(verifier.as_slice().ct_eq(stored))
}

/// The key that seals in one transaction.
pub struct SealingKey<'s>(&'s Key);

impl SealingKey<'_> {
    /// Encrypts. The place and the row are bound in, so that a sealed value cannot be moved.
    /// `nonce` must be random, and new for each value.
    pub fn seal(
        &self,
        nonce: [u8; NONCE_BYTES],
        place: &SealedPlace,
        id: &[u8],
        plain: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let bound = place.bound(id);
        let payload = Payload { msg: plain, aad: &bound };
        let text = self
            .0
            .cipher
            .encrypt(&Nonce::from(nonce), payload)
            .map_err(|_| StoreError::Broken("sealing failed".into()))?;
        Ok([nonce.as_slice(), &text].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_value_opens_only_with_its_key_and_in_its_place() {
        let sealer = Sealer::new(&[7; 32]);
        let key = sealer.sealing_key(None).unwrap();
        let sealed = key.seal([1; 12], &SealedPlace::KYC, b"a", b"50100012345678").unwrap();
        assert!(!sealed.windows(5).any(|part| part == b"50100"));
        assert_eq!(sealer.open(&SealedPlace::KYC, b"a", &sealed).unwrap(), b"50100012345678");
        assert!(sealer.open(&SealedPlace::KYC, b"b", &sealed).is_err());
        assert!(sealer.open(&SealedPlace::ACCOUNT_NUMBER, b"a", &sealed).is_err());
        assert!(Sealer::new(&[8; 32]).open(&SealedPlace::KYC, b"a", &sealed).is_err());
        assert!(sealer.open(&SealedPlace::KYC, b"", b"short").is_err());
    }

    #[test]
    fn the_key_that_the_store_names_seals_and_every_key_opens() {
        let (old, new) = ([7; 32], [8; 32]);
        let before = Sealer::new(&old);
        let sealed =
            before.sealing_key(None).unwrap().seal([1; 12], &SealedPlace::KYC, b"a", b"x").unwrap();
        assert!(Sealer::of(&[old, new], &[0; 32], None).unwrap().is_none(), "neither key fits");
        let both = Sealer::of(&[old, new], &verifier_of(&old), None).unwrap().unwrap();
        assert_eq!(both.fingerprint(&[b"a"]), before.fingerprint(&[b"a"]));
        assert_eq!(both.opened(&SealedPlace::KYC, b"a", &sealed).unwrap().1, verifier_of(&old));
        assert!(both.sealing_key(Some(&[0; 32])).is_none());
        let key = both.sealing_key(Some(&verifier_of(&new))).unwrap();
        let sealed = key.seal([1; 12], &SealedPlace::KYC, b"a", b"x").unwrap();
        assert!(before.open(&SealedPlace::KYC, b"a", &sealed).is_err());
        assert_eq!(both.opened(&SealedPlace::KYC, b"a", &sealed).unwrap().1, verifier_of(&new));
        // The fingerprint key goes on when the old key is gone.
        let kept = both.fingerprint_key().expose_secret();
        let kept = key.seal([2; 12], &SealedPlace::FINGERPRINT_KEY, &[], kept).unwrap();
        let after = Sealer::of(&[new], &verifier_of(&new), Some(&kept)).unwrap().unwrap();
        assert_eq!(after.fingerprint(&[b"a"]), before.fingerprint(&[b"a"]));
        assert_ne!(after.fingerprint(&[b"a"]), Sealer::new(&new).fingerprint(&[b"a"]));
    }
}
