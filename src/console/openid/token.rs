//! Verifies a provider's ID token (OpenID Connect Core, 3.1.3.7) with the crate `jsonwebtoken` and
//! the cryptography of `ring`, which TLS uses too.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, Validation};
use ring::signature;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::staff::provider_links::judge_subject;

/// The algorithms that a provider may sign with. `none` and those with a shared secret are not
/// among them.
pub const ALGORITHMS: [Algorithm; 3] = [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];
/// How far the provider's clock may be from ours, in seconds.
pub const CLOCK_SECONDS_MAX: i64 = 60;
/// How old a token may be, in seconds. It is made for the sign-in that asks for it, so an older one
/// belongs to another sign-in.
pub const AGE_SECONDS_MAX: i64 = 600;

/// The claims that a token must have.
pub struct Expected<'a> {
    pub issuer: &'a str,
    pub client_id: &'a str,
    pub nonce: &'a str,
    pub acr: Option<&'a str>,
}

/// The person in a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderPerson {
    pub subject: String,
    /// `None` unless the provider says that it verified the address.
    pub email: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenFault {
    /// No key that was read from the provider fits the token, or the token names no key and several
    /// fit. The provider may have made the token's key since then.
    UnknownKey,
    Refused(&'static str),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    Several(Vec<String>),
    /// One audience; `jsonwebtoken` compares it.
    One(IgnoredAny),
}

#[derive(Deserialize)]
struct TokenClaims {
    sub: String,
    aud: Audience,
    azp: Option<String>,
    iat: i64,
    nonce: Option<String>,
    acr: Option<String>,
    email: Option<String>,
    /// Only `true` counts. Some providers write a text here.
    email_verified: Option<serde_json::Value>,
}

/// Judges a token. `instant` is now, in Unix seconds; the token's age (`iat`) is judged by it.
/// `jsonwebtoken` compares `exp` and `nbf` with the system's clock.
pub fn verify(
    token: &str,
    keys: &[Jwk],
    expected: &Expected<'_>,
    instant: i64,
) -> Result<ProviderPerson, TokenFault> {
    use TokenFault::Refused;
    // Only the first call in a process installs it; later ones change nothing.
    let _ = RING.install_default();
    let header = jsonwebtoken::decode_header(token)
        .map_err(|_| Refused("the token's header cannot be read, or names an unknown algorithm"))?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err(Refused("the token is signed with an algorithm that is not taken"));
    }
    if header.crit.is_some() {
        return Err(Refused("the token asks for an extension that is not known"));
    }
    let key = key_of(keys, header.alg, header.kid.as_deref()).ok_or(TokenFault::UnknownKey)?;
    let key =
        DecodingKey::from_jwk(key).map_err(|_| Refused("the provider's key cannot be read"))?;
    let mut validation = Validation::new(header.alg);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    validation.set_issuer(&[expected.issuer]);
    validation.set_audience(&[expected.client_id]);
    validation.leeway = CLOCK_SECONDS_MAX.unsigned_abs();
    validation.validate_nbf = true;
    let claims = jsonwebtoken::decode::<TokenClaims>(token, &key, &validation)
        .map_err(|error| Refused(why_refused(&error)))?
        .claims;
    let audiences = match &claims.aud {
        Audience::One(_) => 1,
        Audience::Several(all) => all.len(),
    };
    if claims.azp.as_deref().is_some_and(|azp| azp != expected.client_id)
        || (audiences > 1 && claims.azp.is_none())
    {
        return Err(Refused("the token was made for another client"));
    }
    if claims.nonce.as_deref() != Some(expected.nonce) {
        return Err(Refused("the token is of another sign-in"));
    }
    let age = instant.checked_sub(claims.iat).unwrap_or(i64::MAX);
    if !(-CLOCK_SECONDS_MAX..=AGE_SECONDS_MAX).contains(&age) {
        return Err(Refused("the token was not made just now: compare the clocks"));
    }
    if expected.acr.is_some_and(|acr| claims.acr.as_deref() != Some(acr)) {
        return Err(Refused("the token's acr is not the one that console.oidc.acr asks for"));
    }
    judge_subject(&claims.sub).map_err(|_| {
        Refused("the token's subject is empty, too long, or has control characters")
    })?;
    let is_verified = claims.email_verified == Some(serde_json::Value::Bool(true));
    Ok(ProviderPerson { subject: claims.sub, email: claims.email.filter(|_| is_verified) })
}

/// The key that a token names by its `kid`, if it is one for the token's algorithm. A token without
/// `kid` belongs to the only key that fits; `None` if several fit.
fn key_of<'a>(keys: &'a [Jwk], algorithm: Algorithm, kid: Option<&str>) -> Option<&'a Jwk> {
    let mut fitting = keys.iter().filter(|key| {
        let common = &key.common;
        let is_named = kid.is_none_or(|kid| common.key_id.as_deref() == Some(kid));
        let signs = common.public_key_use.as_ref().is_none_or(|of| *of == PublicKeyUse::Signature);
        let (known, is_kind) = match (&key.algorithm, algorithm) {
            (AlgorithmParameters::RSA(_), Algorithm::RS256) => (KeyAlgorithm::RS256, true),
            (AlgorithmParameters::EllipticCurve(of), Algorithm::ES256) => {
                (KeyAlgorithm::ES256, of.curve == EllipticCurve::P256)
            }
            (AlgorithmParameters::OctetKeyPair(of), Algorithm::EdDSA) => {
                (KeyAlgorithm::EdDSA, of.curve == EllipticCurve::Ed25519)
            }
            _ => return false,
        };
        let is_for = common.key_algorithm.is_none_or(|of| of == known);
        is_named && signs && is_kind && is_for
    });
    let found = fitting.next()?;
    if kid.is_none() && fitting.next().is_some() { None } else { Some(found) }
}

/// Why a token is not accepted, without anything that is in the token.
fn why_refused(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::InvalidSignature => "the token's signature is wrong",
        ErrorKind::ExpiredSignature => "the token has expired",
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::InvalidIssuer => "the token is of another issuer",
        ErrorKind::InvalidAudience => "the token was made for another client",
        ErrorKind::MissingRequiredClaim(_) => "the token lacks something that it must say",
        _ => "the token cannot be read",
    }
}

/// The cryptography that `jsonwebtoken` uses. It only verifies; the service signs no such tokens.
static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: |algorithm, key| {
        Ok(Box::new(RingVerifier { algorithm: *algorithm, key: key.clone() }))
    },
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: |_| Err(ErrorKind::UnsupportedAlgorithm.into()),
        rsa_pub_components_from_public_key: |_| Err(ErrorKind::UnsupportedAlgorithm.into()),
        ec_pub_components_from_private_key: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
        ed_pub_components_from_private_key: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
        compute_digest: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    },
};

/// Verifies signatures by one key with `ring`.
struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature_bytes: &Vec<u8>) -> Result<(), SignatureError> {
        let with = |by: &'static dyn signature::VerificationAlgorithm, key: &[u8]| {
            signature::UnparsedPublicKey::new(by, key).verify(message, signature_bytes)
        };
        let verified = match (self.algorithm, self.key.kind()) {
            // ring takes moduli of 2048 to 8192 bits.
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let key = signature::RsaPublicKeyComponents { n, e };
                key.verify(&signature::RSA_PKCS1_2048_8192_SHA256, message, signature_bytes)
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
                with(&signature::ECDSA_P256_SHA256_FIXED, point)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(key)) => with(&signature::ED25519, key),
            _ => Err(ring::error::Unspecified),
        };
        verified.map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
    use serde_json::{Value, json};

    use super::*;

    fn encoded(value: &Value) -> String {
        URL_SAFE_NO_PAD.encode(value.to_string())
    }

    /// A provider's key, as it signs and as it shows it.
    enum Key {
        P256(EcdsaKeyPair),
        Ed(Ed25519KeyPair),
    }

    impl Key {
        fn p256() -> Key {
            let random = SystemRandom::new();
            let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
            let made = made.unwrap();
            let of = &ECDSA_P256_SHA256_FIXED_SIGNING;
            Key::P256(EcdsaKeyPair::from_pkcs8(of, made.as_ref(), &random).unwrap())
        }
        fn ed() -> Key {
            let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
            Key::Ed(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap())
        }
        fn algorithm(&self) -> &'static str {
            match self {
                Key::P256(_) => "ES256",
                Key::Ed(_) => "EdDSA",
            }
        }
        fn shown(&self, more: &Value) -> Jwk {
            let mut shown = match self {
                Key::P256(key) => {
                    let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                    let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
                    json!({"kty": "EC", "crv": "P-256", "x": x, "y": y})
                }
                Key::Ed(key) => {
                    let x = URL_SAFE_NO_PAD.encode(key.public_key());
                    json!({"kty": "OKP", "crv": "Ed25519", "x": x})
                }
            };
            let more = more.as_object().unwrap().clone();
            shown.as_object_mut().unwrap().extend(more);
            serde_json::from_value(shown).unwrap()
        }
        fn sign(&self, header: &Value, claims: &Value) -> String {
            let message = format!("{}.{}", encoded(header), encoded(claims));
            let mark = match self {
                Key::P256(key) => {
                    let mark = key.sign(&SystemRandom::new(), message.as_bytes());
                    mark.unwrap().as_ref().to_vec()
                }
                Key::Ed(key) => key.sign(message.as_bytes()).as_ref().to_vec(),
            };
            format!("{message}.{}", URL_SAFE_NO_PAD.encode(mark))
        }
    }

    const EXPECTED: Expected<'static> = Expected {
        issuer: "https://login.example.com",
        client_id: "hundi",
        nonce: "the nonce",
        acr: None,
    };

    fn instant() -> i64 {
        crate::kernel::Clock::System.milliseconds() / 1000
    }

    fn claims() -> Value {
        json!({"iss": "https://login.example.com", "aud": "hundi", "sub": "248289761001",
            "nonce": "the nonce", "iat": instant(), "exp": instant() + 300,
            "email": "asha@example.com", "email_verified": true})
    }

    fn with(changes: Value) -> Value {
        let mut claims = claims();
        for (name, value) in changes.as_object().unwrap() {
            match value {
                Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
                _ => claims[name] = value.clone(),
            }
        }
        claims
    }

    #[test]
    fn a_valid_token_names_its_person() {
        for key in [Key::p256(), Key::ed()] {
            let header = json!({"alg": key.algorithm(), "kid": "one"});
            let judged = |claims: &Value, expected: &Expected<'_>| {
                let keys = [key.shown(&json!({"kid": "one", "use": "sig"}))];
                verify(&key.sign(&header, claims), &keys, expected, instant())
            };
            let email = Some("asha@example.com".to_owned());
            let person = ProviderPerson { subject: "248289761001".into(), email };
            assert_eq!(judged(&claims(), &EXPECTED), Ok(person.clone()));
            let several = with(json!({"aud": ["hundi", "another"], "azp": "hundi"}));
            assert_eq!(judged(&several, &EXPECTED), Ok(person.clone()));
            let strong = Expected { acr: Some("gold"), ..EXPECTED };
            assert_eq!(judged(&with(json!({"acr": "gold"})), &strong), Ok(person));
            assert!(judged(&with(json!({"acr": "silver"})), &strong).is_err());
            assert!(judged(&claims(), &strong).is_err());
            // An address that the provider did not verify is left out.
            for unverified in [json!(null), json!(false), json!("true"), json!(1)] {
                let found = judged(&with(json!({"email_verified": unverified})), &EXPECTED);
                assert_eq!(found.unwrap().email, None, "{unverified}");
            }
            let wrong = [
                (json!({"iss": "https://login.example.com/"}), "another issuer"),
                (json!({"iss": null}), "lacks"),
                (json!({"aud": "another"}), "another client"),
                (json!({"aud": null}), "cannot be read"),
                (json!({"aud": []}), "another client"),
                (json!({"aud": ["hundi", "another"]}), "another client"),
                (json!({"azp": "another"}), "another client"),
                (json!({"sub": null}), "cannot be read"),
                (json!({"sub": ""}), "subject"),
                (json!({"sub": "x".repeat(256)}), "subject"),
                (json!({"nonce": "another"}), "another sign-in"),
                (json!({"nonce": null}), "another sign-in"),
                (json!({"exp": instant() - 100}), "expired"),
                (json!({"exp": null}), "lacks"),
                (json!({"exp": "soon"}), "lacks"),
                (json!({"nbf": instant() + 100}), "not valid yet"),
                (json!({"iat": instant() + 100}), "just now"),
                (json!({"iat": instant() - 700}), "just now"),
                (json!({"iat": null}), "cannot be read"),
            ];
            for (changes, why) in wrong {
                match judged(&with(changes.clone()), &EXPECTED) {
                    Err(TokenFault::Refused(found)) => {
                        assert!(found.contains(why), "{changes}: {found}");
                    }
                    other => panic!("{changes}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn only_tokens_that_a_key_of_the_provider_signed_are_valid() {
        let (key, other) = (Key::p256(), Key::p256());
        let shown = |more: Value| vec![key.shown(&more)];
        let named = json!({"alg": "ES256", "kid": "one"});
        let token = key.sign(&named, &claims());
        let judged = |token: &str, keys: &[Jwk]| verify(token, keys, &EXPECTED, instant());
        assert!(judged(&token, &shown(json!({"kid": "one"}))).is_ok());
        let unknown = Err(TokenFault::UnknownKey);
        // Another `kid`, use or algorithm; another kind of key with the same `kid`; no key at all.
        for more in [
            json!({"kid": "two"}),
            json!({}),
            json!({"kid": "one", "use": "enc"}),
            json!({"kid": "one", "alg": "ES384"}),
        ] {
            assert_eq!(judged(&token, &shown(more.clone())), unknown, "{more}");
        }
        assert_eq!(judged(&token, &[Key::ed().shown(&json!({"kid": "one"}))]), unknown);
        assert_eq!(judged(&token, &[]), unknown);
        // A token that names no key belongs to the only key that fits.
        let unnamed = key.sign(&json!({"alg": "ES256"}), &claims());
        let ed = Key::ed().shown(&json!({"kid": "two"}));
        let one = key.shown(&json!({"kid": "one"}));
        assert!(judged(&unnamed, &[one.clone(), ed]).is_ok());
        assert_eq!(judged(&unnamed, &[other.shown(&json!({})), one.clone()]), unknown);
        // A signature of another key, over something else, or cut off.
        let wrong = TokenFault::Refused("the token's signature is wrong");
        let (head, mark) = token.rsplit_once('.').unwrap();
        let moved = format!("{}.{}.{mark}", encoded(&named), encoded(&with(json!({"sub": "x"}))));
        for token in [other.sign(&named, &claims()), moved, format!("{head}.")] {
            assert_eq!(judged(&token, std::slice::from_ref(&one)), Err(wrong.clone()));
        }
        // No signature, the public key as a shared secret, and an extension.
        let public = serde_json::to_string(&one).unwrap();
        for header in [
            json!({"alg": "none"}),
            json!({"alg": "none", "kid": "one"}),
            json!({"alg": "HS256", "kid": "one"}),
            json!({"alg": "ES384", "kid": "one"}),
            json!({"alg": "RS512", "kid": "one"}),
            json!({"kid": "one"}),
            json!({"alg": "ES256", "kid": "one", "crit": ["b64"], "b64": false}),
        ] {
            let message = format!("{}.{}", encoded(&header), encoded(&claims()));
            let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, public.as_bytes());
            let tag = URL_SAFE_NO_PAD.encode(ring::hmac::sign(&secret, message.as_bytes()));
            for token in [format!("{message}."), format!("{message}.{tag}"), message.clone()] {
                let judged = judged(&token, std::slice::from_ref(&one));
                assert!(matches!(judged, Err(TokenFault::Refused(_))), "{header}: {judged:?}");
            }
        }
        for text in ["", ".", "..", "...", "a.b.c", &token[..20]] {
            assert!(judged(text, std::slice::from_ref(&one)).is_err(), "{text}");
        }
    }

    /// A key and a token that another library (jose, for Node) made.
    #[test]
    fn rs256_is_verified_as_others_sign_it() {
        let key: Jwk = serde_json::from_value(json!({"kty": "RSA", "e": "AQAB", "n": concat!(
            "-0w53J24nED-J-QsToFPiS0SkX2lrLRHjzbjdR8qbIMUMVadafs5-GY7o0dJUb-gzvXNxXO9Dc3siQ2_IHD7",
            "GevDPN_1ucL-ISlDmTsrGLeQfV5k2BZo2S4imSPEQBPrIHo17ghCinfsmgNVrlKMaCADuiEkHSUyoCEnIlPR9",
            "1kJ-GDW0UF7l0hkdtS-ziqk0B7kjO2LiCQFsLMOu98pXmbQVIZB6s1om06-VDYwGvKlBntLQHAGB-ZxT1In7I",
            "ebuHYXcHpMB0FxW7BZNBPt2yezvcIeIhBbyhk3j5ajVCrxOjwFTe_Nv1xQyJcuAZYAJdOSNojr_5uC9tkS6k3",
            "Dbw")}))
        .unwrap();
        let mark = concat!(
            "AwdXhpIUVNGZ5ezybvxZrtDFDJq0m6HpmfzqRZwafK29Dgp2R59Z4MS9owgmx6RqcqJYgTMFxnQbgPW4lOMu8",
            "Exelvrf9OKFgFofRQKPLUcaAiw3efWMKZGkZxo5NrLFlg5eyPm7ZUbL9Bibf6o45sQSHtKMnjmlscsPKxx_5z",
            "YlO4uFn4lEPcMlGIaZzXOri8LS1HeSGUV8RR5s-SzmZfeuj2EHgL0KrWJ7tB_kEAzJGzyA34tKmq6ME55DLdO",
            "CHY5Ad1dtx5QcTpeNKkczO5oVUDWpyLoISh_zB70765so8RmQ65gAKV7KRLor7Tb_F_Zndnn-P1T30Zfq9fN3",
            "oQ"
        );
        let _ = RING.install_default();
        let found = key_of(std::slice::from_ref(&key), Algorithm::RS256, None).unwrap();
        let found = DecodingKey::from_jwk(found).unwrap();
        let holds = |message: &[u8]| {
            jsonwebtoken::crypto::verify(mark, message, &found, Algorithm::RS256).unwrap()
        };
        assert!(holds(b"eyJhbGciOiJSUzI1NiJ9.eyJhIjoxfQ"));
        assert!(!holds(b"eyJhbGciOiJSUzI1NiJ9.eyJhIjoyfQ"));
    }
}
