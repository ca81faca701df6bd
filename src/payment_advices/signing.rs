//! Signatures of payment advices: the service's Ed25519 keys, the canonical form that they sign,
//! and the verification of a signature without a network.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretSlice};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::kernel::seal::{SealedPlace, Sealer};
use crate::kernel::{Mode, Now, StoreError};
use crate::secrets;
use crate::store::{Tx, meta};

/// The most keys of one mode. Old keys stay, so that what they signed can be verified.
pub const KEYS_COUNT_MAX: usize = 64;
/// The only algorithm, by the name that RFC 9864 registers.
pub const ALGORITHM: &str = "Ed25519";

const SEED_BYTES: usize = 32;
/// The length of one key in a mode's sealed list. The key is written as the time of its creation in
/// Unix seconds (`i64`, big-endian), followed by its seed.
const ENTRY_BYTES: usize = 8 + SEED_BYTES;

/// A signature over the document without its member `signature`, in the canonical form of RFC 8785
/// (JCS).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AdviceSignature {
    /// Always `Ed25519`.
    pub algorithm: &'static str,
    /// The key's JWK thumbprint (RFC 7638), which finds it in the published key set.
    pub key_id: String,
    /// 64 bytes in base64url without padding.
    pub value: String,
}

/// A key that verifies signatures; all of it may be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    pub bytes: [u8; 32],
    pub mode: Mode,
    /// Unix seconds.
    pub created: i64,
}

impl PublicKey {
    /// The JWK thumbprint (RFC 7638, RFC 8037): the hash of the key's required members in
    /// lexicographic order.
    pub fn key_id(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.bytes);
        URL_SAFE_NO_PAD
            .encode(Sha256::digest(format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#)))
    }
}

/// A key that signs. It has no `Debug`, so that it cannot be logged.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    pub public: PublicKey,
}

impl SigningKey {
    fn from_seed(seed: &[u8], mode: Mode, created: i64) -> Result<SigningKey, StoreError> {
        let unreadable = || StoreError::Broken("a signing key cannot be read".into());
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| unreadable())?;
        let bytes = pair.public_key().as_ref().try_into().map_err(|_| unreadable())?;
        Ok(SigningKey { pair, public: PublicKey { bytes, mode, created } })
    }

    /// Signs a document; its member `signature` does not count.
    pub fn sign(&self, document: &Value) -> Result<AdviceSignature, StoreError> {
        let signed = signed_bytes(document).map_err(|fault| {
            StoreError::Broken(format!("a payment advice cannot be signed: {fault}"))
        })?;
        let value = URL_SAFE_NO_PAD.encode(self.pair.sign(&signed));
        Ok(AdviceSignature { algorithm: ALGORITHM, key_id: self.public.key_id(), value })
    }
}

/// Where the store keeps the keys of a mode: in the row of `meta` that has the place's name.
const fn place(mode: Mode) -> &'static SealedPlace {
    match mode {
        Mode::Test => &SealedPlace::ADVICE_KEYS_TEST,
        Mode::Live => &SealedPlace::ADVICE_KEYS_LIVE,
    }
}

/// The unsealed list of a mode's keys, oldest first, with [`ENTRY_BYTES`] for each.
fn open_entries(
    sealer: &Sealer,
    mode: Mode,
    sealed: Option<&[u8]>,
) -> Result<SecretSlice<u8>, StoreError> {
    let plain = sealed.map(|sealed| sealer.open(place(mode), &[], sealed)).transpose()?;
    Ok(SecretSlice::from(plain.unwrap_or_default()))
}

fn keys(tx: &mut dyn Tx, sealer: &Sealer, mode: Mode) -> Result<Vec<SigningKey>, StoreError> {
    let plain = open_entries(sealer, mode, meta::read(tx, place(mode).name())?.as_deref())?;
    let entries = plain.expose_secret().chunks(ENTRY_BYTES);
    let read = |entry: &[u8]| {
        let (created, seed) = entry
            .split_first_chunk()
            .ok_or_else(|| StoreError::Broken("a signing key cannot be read".into()))?;
        SigningKey::from_seed(seed, mode, i64::from_be_bytes(*created))
    };
    entries.map(read).collect()
}

/// Makes the first key of each mode that has none.
pub fn ensure(tx: &mut dyn Tx, now: &mut Now, sealer: &Sealer) -> Result<(), StoreError> {
    for mode in [Mode::Test, Mode::Live] {
        if meta::read(tx, place(mode).name())?.is_none() {
            rotate(tx, now, sealer, mode)?;
        }
    }
    Ok(())
}

/// Makes a new key, which signs from now on. The earlier keys are kept and published. Fails if the
/// mode has [`KEYS_COUNT_MAX`] keys.
pub fn rotate(
    tx: &mut dyn Tx,
    now: &mut Now,
    sealer: &Sealer,
    mode: Mode,
) -> Result<PublicKey, StoreError> {
    let stored = meta::read(tx, place(mode).name())?;
    let known = open_entries(sealer, mode, stored.as_deref())?;
    if known.expose_secret().len() >= KEYS_COUNT_MAX * ENTRY_BYTES {
        return Err(StoreError::Broken(format!(
            "there are {KEYS_COUNT_MAX} keys already, and every one is kept"
        )));
    }
    let (created, seed) = (now.instant(), now.random_bytes::<SEED_BYTES>());
    let key = SigningKey::from_seed(&seed, mode, created)?;
    let plain = SecretSlice::from([known.expose_secret(), &created.to_be_bytes(), &seed].concat());
    let sealing = secrets::sealing_key(tx, sealer)?;
    let sealed = sealing.seal(now.random_bytes(), place(mode), &[], plain.expose_secret())?;
    meta::replace(tx, place(mode).name(), stored.as_deref(), &sealed)?;
    Ok(key.public)
}

/// The key that signs in a mode.
pub fn newest(tx: &mut dyn Tx, sealer: &Sealer, mode: Mode) -> Result<SigningKey, StoreError> {
    keys(tx, sealer, mode)?.pop().ok_or_else(|| {
        StoreError::Broken(
            "there is no key that signs payment advices: start the server once".into(),
        )
    })
}

/// Every key of both modes.
pub fn public_keys(tx: &mut dyn Tx, sealer: &Sealer) -> Result<Vec<PublicKey>, StoreError> {
    let mut all = keys(tx, sealer, Mode::Test)?;
    all.extend(keys(tx, sealer, Mode::Live)?);
    Ok(all.into_iter().map(|key| key.public).collect())
}

/// The keys as a JWK set (RFC 7517, RFC 8037). `livemode` and `created` are members of our own.
/// `livemode` is `false` for a key of test mode, which vouches for nothing real.
pub fn key_set(keys: &[PublicKey]) -> Value {
    let entry = |key: &PublicKey| {
        json!({
            "kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(key.bytes),
                "kid": key.key_id(), "alg": ALGORITHM, "use": "sig",
            "livemode": key.mode.is_live(), "created": key.created,
        })
    };
    json!({ "keys": keys.iter().map(entry).collect::<Vec<_>>() })
}

/// Reads a JWK set that was saved from `/.well-known/hundi-advice-keys.json`. Keys of other kinds
/// are ignored.
pub fn read_key_set(bytes: &[u8]) -> Result<Vec<PublicKey>, String> {
    let fault = |what: &str| {
        format!(
            "the key set cannot be read: {what}; save it anew from \
             /.well-known/hundi-advice-keys.json"
        )
    };
    let whole: Value = serde_json::from_slice(bytes).map_err(|_| fault("it is not JSON"))?;
    let entries = whole
        .get("keys")
        .and_then(Value::as_array)
        .ok_or_else(|| fault("it has no list `keys`"))?;
    let mut found = Vec::new();
    for entry in entries {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        if (text("kty"), text("crv")) != (Some("OKP"), Some("Ed25519")) {
            continue;
        }
        let bytes =
            text("x").and_then(|x| URL_SAFE_NO_PAD.decode(x).ok()).and_then(|x| x.try_into().ok());
        let livemode = entry.get("livemode").and_then(Value::as_bool);
        let (Some(bytes), Some(livemode)) = (bytes, livemode) else {
            return Err(fault("a key lacks `x` or `livemode`"));
        };
        let mode = if livemode { Mode::Live } else { Mode::Test };
        let key = PublicKey {
            bytes,
            mode,
            created: entry.get("created").and_then(Value::as_i64).unwrap_or(0),
        };
        if text("kid") != Some(&key.key_id()) {
            return Err(fault("a key's `kid` is not its thumbprint"));
        }
        found.push(key);
    }
    Ok(found)
}

/// Why a document is not what the service signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("it is not a payment advice")]
    NotAnAdvice,
    #[error("it has no readable signature (algorithm, key_id, value)")]
    NoSignature,
    #[error("its signature names the algorithm {0:?}, and only Ed25519 is taken")]
    Algorithm(String),
    #[error(
        "its key {0:?} is not in the key set: use the key set of the service that issued it, \
         saved after the advice was made"
    )]
    UnknownKey(String),
    #[error("it is signed with a key of the other mode: a test key vouches for nothing real")]
    Mode,
    /// The document has no canonical form: it is no object, or it has a number that is not whole or
    /// too large.
    #[error("{0}")]
    Form(String),
    #[error("the signature does not fit: the document or the signature was altered")]
    Altered,
}

/// Checks a document's signature against the keys, without a network. Answers the key that signed
/// it. The order of members and white space do not matter. Whoever parses the text must refuse
/// duplicate members, because a [`Value`] no longer shows them.
pub fn verify<'a>(document: &Value, keys: &'a [PublicKey]) -> Result<&'a PublicKey, Invalid> {
    if document.get("object").and_then(Value::as_str) != Some("payment_advice") {
        return Err(Invalid::NotAnAdvice);
    }
    let part = |name: &str| {
        document.get("signature").and_then(|signature| signature.get(name)).and_then(Value::as_str)
    };
    let (Some(algorithm), Some(key_id), Some(value)) =
        (part("algorithm"), part("key_id"), part("value"))
    else {
        return Err(Invalid::NoSignature);
    };
    if algorithm != ALGORITHM {
        return Err(Invalid::Algorithm(algorithm.into()));
    }
    let value = URL_SAFE_NO_PAD.decode(value).map_err(|_| Invalid::NoSignature)?;
    let key = keys
        .iter()
        .find(|key| key.key_id() == key_id)
        .ok_or_else(|| Invalid::UnknownKey(key_id.into()))?;
    if document.get("livemode").and_then(Value::as_bool) != Some(key.mode.is_live()) {
        return Err(Invalid::Mode);
    }
    let signed = signed_bytes(document).map_err(Invalid::Form)?;
    UnparsedPublicKey::new(&ED25519, &key.bytes)
        .verify(&signed, &value)
        .map_err(|_| Invalid::Altered)?;
    Ok(key)
}

/// What a signature covers: the document without `signature`, in canonical form.
fn signed_bytes(document: &Value) -> Result<Vec<u8>, String> {
    let Value::Object(members) = document else { return Err("it is no JSON object".into()) };
    let rest: Map<String, Value> = members
        .iter()
        .filter(|(name, _)| *name != "signature")
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect();
    let mut text = String::new();
    write_canonical(&Value::Object(rest), &mut text)?;
    Ok(text.into_bytes())
}

/// The largest integer that is written. In RFC 8785 numbers are doubles. Up to `INTEGER_MAX`, a
/// double holds every integer exactly.
const INTEGER_MAX: u64 = (1 << 53) - 1;

/// The part of RFC 8785 that advices need: members sorted by UTF-16 code units, no white space,
/// shortest escapes. Numbers must be whole, so that the form of doubles never matters.
fn write_canonical(value: &Value, out: &mut String) -> Result<(), String> {
    let escaped = |text: &str| serde_json::to_string(text).map_err(|error| error.to_string());
    match value {
        Value::Number(number) => {
            let is_exact =
                number.as_i64().is_some_and(|number| number.unsigned_abs() <= INTEGER_MAX);
            if !is_exact {
                return Err(format!(
                    "it holds the number {number}, but numbers must be whole and below 2^53"
                ));
            }
            out.push_str(&number.to_string());
        }
        Value::String(text) => out.push_str(&escaped(text)?),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out)?;
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (index, (name, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&escaped(name)?);
                out.push(':');
                write_canonical(member, out)?;
            }
            out.push('}');
        }
        plain => out.push_str(&plain.to_string()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(seed: u8, mode: Mode) -> SigningKey {
        SigningKey::from_seed(&[seed; 32], mode, 1_790_000_000).unwrap()
    }

    fn signed(key: &SigningKey) -> Value {
        let mut document = json!({
            "object": "payment_advice", "livemode": key.public.mode.is_live(), "amount": "88412.50",
                "settled_at": 1_790_000_000,
            "sender": { "name": "क्षेत्रपाल 😀 \"R\u{1}\"", "country": "AE", "address": null },
                "deposits": [{ "b": 1, "a": 2 }],
        });
        document["signature"] = serde_json::to_value(key.sign(&document).unwrap()).unwrap();
        document
    }

    fn canonical(value: &Value) -> Result<String, String> {
        let mut text = String::new();
        write_canonical(value, &mut text).map(|()| text)
    }

    #[test]
    fn the_canonical_form_is_that_of_rfc_8785() {
        // The RFC's own example of sorting (3.2.3), with the strings of 3.2.2 and whole numbers.
        let value: Value = serde_json::from_str(concat!(
            r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","#,
            r#""\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","#,
            r#""\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","#,
            r#""\u00f6":"Latin Small Letter O With Diaeresis"}"#
        ))
        .unwrap();
        let order = ["\\r", "1", "\u{80}", "ö", "€", "😀", "\u{fb33}"];
        let text = canonical(&value).unwrap();
        let positions: Vec<usize> = order
            .iter()
            .map(|name| {
                text.find(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{name} in {text}"))
            })
            .collect();
        assert!(positions.is_sorted(), "{text}");
        let value: Value = serde_json::from_str(concat!(
            r#"{ "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "#,
            r#""literals": [null, true, false], "n": [0, -1, 9007199254740991] }"#
        ))
        .unwrap();
        assert_eq!(
            canonical(&value).unwrap(),
            r#"{"literals":[null,true,false],"n":[0,-1,9007199254740991],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
        );
        for number in ["1.5", "9007199254740992", "1e30", "-9007199254740992"] {
            assert!(canonical(&serde_json::from_str(number).unwrap()).is_err(), "{number}");
        }
    }

    #[test]
    fn a_known_seed_gives_the_key_and_signature_of_rfc_8032_and_the_thumbprint_of_rfc_8037() {
        let seed = URL_SAFE_NO_PAD.decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A").unwrap();
        let key = SigningKey::from_seed(&seed, Mode::Test, 0).unwrap();
        assert_eq!(
            URL_SAFE_NO_PAD.encode(key.public.bytes),
            "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
        );
        assert_eq!(key.public.key_id(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
        let value = URL_SAFE_NO_PAD
            .encode(key.pair.sign(b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"));
        assert_eq!(
            value,
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
        );
    }

    #[test]
    fn a_signature_holds_for_its_document_and_key_only() {
        let (first, second, live) = (key(1, Mode::Test), key(2, Mode::Test), key(3, Mode::Live));
        let all = [first.public.clone(), second.public.clone(), live.public.clone()];
        let document = signed(&second);
        assert_eq!(verify(&document, &all), Ok(&second.public));
        assert_eq!(verify(&signed(&live), &all), Ok(&live.public));

        // Neither the order of the members nor the order of the keys counts.
        let Value::Object(members) = &document else { panic!() };
        let turned = Value::Object(
            members.iter().rev().map(|(name, value)| (name.clone(), value.clone())).collect(),
        );
        assert_ne!(turned.to_string(), document.to_string());
        let keys: Vec<PublicKey> = all.iter().rev().cloned().collect();
        assert_eq!(verify(&turned, &keys), Ok(&second.public));

        assert_eq!(verify(&document, &all[..1]), Err(Invalid::UnknownKey(second.public.key_id())));
        assert_eq!(verify(&json!({ "object": "payout" }), &all), Err(Invalid::NotAnAdvice));
        let changed = |path: &str, value: Value| {
            let mut changed = document.clone();
            *changed.pointer_mut(path).unwrap() = value;
            verify(&changed, &all).map(|_| ())
        };
        assert_eq!(
            changed("/signature/algorithm", json!("HS256")),
            Err(Invalid::Algorithm("HS256".into()))
        );
        assert_eq!(
            changed("/signature/algorithm", json!("none")),
            Err(Invalid::Algorithm("none".into()))
        );
        assert_eq!(
            changed("/signature/key_id", json!(first.public.key_id())),
            Err(Invalid::Altered),
            "a wrong key"
        );
        assert_eq!(changed("/signature", Value::Null), Err(Invalid::NoSignature));
        assert_eq!(changed("/signature/value", json!("?")), Err(Invalid::NoSignature));
        assert_eq!(changed("/signature/value", json!("AAAA")), Err(Invalid::Altered));
        assert_eq!(changed("/amount", json!("88412.51")), Err(Invalid::Altered));
        assert_eq!(changed("/sender/address", json!("x")), Err(Invalid::Altered));
        assert_eq!(
            changed("/livemode", json!(true)),
            Err(Invalid::Mode),
            "a test key cannot vouch for a live payout"
        );
        assert_eq!(changed("/signature/key_id", json!(live.public.key_id())), Err(Invalid::Mode));
        assert!(matches!(changed("/settled_at", json!(1.5)), Err(Invalid::Form(_))));
        let mut more = document.clone();
        more["note"] = json!("added");
        assert_eq!(verify(&more, &all), Err(Invalid::Altered));
    }

    #[test]
    fn a_key_set_reads_back_and_a_broken_one_is_refused() {
        let all = [key(1, Mode::Test).public, key(3, Mode::Live).public];
        let set = key_set(&all);
        assert_eq!(read_key_set(set.to_string().as_bytes()).unwrap(), all);
        let mut with_others = set.clone();
        with_others["keys"].as_array_mut().unwrap().insert(0, json!({ "kty": "RSA", "n": "x" }));
        assert_eq!(read_key_set(with_others.to_string().as_bytes()).unwrap(), all);
        for (path, value) in [
            ("/keys/0/x", json!("AA")),
            ("/keys/0/kid", json!("x")),
            ("/keys/1/livemode", Value::Null),
            ("/keys", Value::Null),
        ] {
            let mut broken = set.clone();
            *broken.pointer_mut(path).unwrap() = value;
            assert!(read_key_set(broken.to_string().as_bytes()).is_err(), "{path}");
        }
        assert!(read_key_set(b"no").is_err());
        let shown = set.to_string();
        assert!(!shown.contains("\"d\""), "no private member");
    }

    proptest! {
        #[test]
        fn an_altered_byte_never_verifies(place in any::<prop::sample::Index>(),
            mask in 1..=255_u8) {
            let key = key(7, Mode::Test);
            let document = signed(&key);
            let keys = [key.public.clone()];
            let mut bytes = document.to_string().into_bytes();
            prop_assert!(verify(&serde_json::from_slice(&bytes).unwrap(), &keys).is_ok());
            let place = place.index(bytes.len());
            bytes[place] ^= mask;
            // A change that parses to the same values, such as another escape of a character,
            // leaves the document the same.
            if let Ok(altered) = serde_json::from_slice::<Value>(&bytes) && altered != document {
                prop_assert!(verify(&altered, &keys).is_err());
            }
        }
    }
}
