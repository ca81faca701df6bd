//! The second factor: codes of an authenticator app, which depend on the time (RFC 6238), and
//! recovery codes.

use ring::hmac;

use super::{Operator, rows};
use crate::kernel::seal::{SealedPlace, Sealer};
use crate::kernel::{Now, OperationError, StoreError};
use crate::services::Services;
use crate::store::Tx;

/// Authenticator apps expect SHA-1, 30 s and six digits.
const STEP_SECONDS: i64 = 30;
const DIGITS: u32 = 6;
/// As long as the hash (RFC 4226, section 4).
pub const SECRET_BYTES: usize = 20;
/// Codes of this many steps before and after the current one are accepted too, because clocks
/// differ and people type slowly.
const STEPS_BESIDE: i64 = 1;

/// How long a new secret waits for its first code. After that, somebody who finds an open session
/// cannot confirm it.
pub const SETUP_SECONDS_MAX: i64 = 15 * 60;

pub const RECOVERY_CODES: usize = 10;
/// How many letters and digits a recovery code has: 50 random bits (`passwords::letters`).
const RECOVERY_CHARACTERS: usize = 10;

/// The HOTP code (RFC 4226) of a step.
fn code_at(secret: &[u8], step: i64, digits: u32) -> u32 {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let tag = tag.as_ref();
    let offset = usize::from(tag.last().copied().unwrap_or(0) & 0x0F);
    let word = tag.get(offset..offset + 4).and_then(|four| <[u8; 4]>::try_from(four).ok());
    (u32::from_be_bytes(word.unwrap_or_default()) & 0x7FFF_FFFF) % 10_u32.pow(digits)
}

/// The step whose code this is, if the step is near `instant` and after `last_step`, the last one
/// whose code was accepted.
fn step_of(secret: &[u8], code: &str, instant: i64, last_step: i64) -> Option<i64> {
    let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    let is_code = code.len() == DIGITS as usize && code.bytes().all(|b| b.is_ascii_digit());
    let given: u32 = code.parse().ok().filter(|_| is_code)?;
    let now = instant.div_euclid(STEP_SECONDS);
    (now - STEPS_BESIDE..=now + STEPS_BESIDE)
        .find(|step| *step > last_step && code_at(secret, *step, DIGITS) == given)
}

/// The code of a secret at an instant, for tests that stand in for an app.
pub fn code(secret: &[u8], instant: i64) -> String {
    format!("{:06}", code_at(secret, instant.div_euclid(STEP_SECONDS), DIGITS))
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Base 32 (RFC 4648) without padding, as apps take a secret.
pub fn base32(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(5) {
        let mut block = [0_u8; 8];
        block[3..3 + chunk.len()].copy_from_slice(chunk);
        let bits = u64::from_be_bytes(block);
        let letters = (chunk.len() * 8).div_ceil(5);
        out.extend((0..letters).map(|at| BASE32[(bits >> (35 - 5 * at)) as usize & 31] as char));
    }
    out
}

/// The `otpauth` address that an app reads from a QR code. `issuer` and `name` are what the app
/// shows.
pub fn uri(issuer: &str, name: &str, secret: &[u8]) -> String {
    let encode = |text: &str| {
        url::form_urlencoded::byte_serialize(text.as_bytes())
            .collect::<String>()
            .replace('+', "%20")
    };
    let (issuer, name, secret) = (encode(issuer), encode(name), base32(secret));
    format!("otpauth://totp/{issuer}:{name}?secret={secret}&issuer={issuer}")
}

/// Gives an operator a new secret, which is valid once [`confirm`] has accepted a code of it. Until
/// then, an earlier secret that is confirmed stays valid, with its recovery codes.
pub fn begin(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    number: i64,
) -> Result<(), StoreError> {
    let secret: [u8; SECRET_BYTES] = now.random_bytes();
    let begun = [secret.as_slice(), &now.instant().to_be_bytes()].concat();
    let key = services.sealing_key(tx)?;
    let nonce = now.random_bytes();
    let sealed = key.seal(nonce, &SealedPlace::NEXT_TOTP_SECRET, &number.to_be_bytes(), &begun)?;
    rows::set_next_totp_secret(tx, number, &sealed)
}

/// The secret that waits for its first code, opened; `None` if there is none, or it was made too
/// long ago.
pub fn next_secret(
    services: &Services,
    operator: &Operator,
    instant: i64,
) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(sealed) = &operator.next_totp_secret else { return Ok(None) };
    let number = operator.identity.number.to_be_bytes();
    let mut secret = services.open(&SealedPlace::NEXT_TOTP_SECRET, &number, sealed)?;
    let made_at = secret.split_off(SECRET_BYTES.min(secret.len()));
    let made_at = made_at.try_into().map(i64::from_be_bytes).map_err(|_| {
        StoreError::Broken("a secret that is being set up does not say when that began".into())
    })?;
    Ok(Some(secret).filter(|_| instant < made_at + SETUP_SECONDS_MAX))
}

/// The confirmed secret of an operator, opened; `None` if there is none.
fn secret(services: &Services, operator: &Operator) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(sealed) = &operator.totp_secret else { return Ok(None) };
    services
        .open(&SealedPlace::TOTP_SECRET, &operator.identity.number.to_be_bytes(), sealed)
        .map(Some)
}

fn recovery_hash(services: &Services, number: i64, code: &str) -> [u8; 32] {
    let code: String =
        code.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    services.sealer.fingerprint(&[b"recovery code", &number.to_be_bytes(), code.as_bytes()])
}

/// Confirms the waiting secret if this is a code of it; the secret replaces an earlier one. Answers
/// new recovery codes, of which only hashes are stored. `None` if the code is wrong, or no secret
/// waits.
pub fn confirm(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    number: i64,
    code: &str,
) -> Result<Option<Vec<String>>, OperationError> {
    let Some(operator) = rows::find(tx, number)? else { return Ok(None) };
    let Some(secret) = next_secret(services, &operator, now.instant())? else { return Ok(None) };
    let Some(step) = step_of(&secret, code, now.instant(), 0) else { return Ok(None) };
    let key = services.sealing_key(tx)?;
    let nonce = now.random_bytes();
    let sealed = key.seal(nonce, &SealedPlace::TOTP_SECRET, &number.to_be_bytes(), &secret)?;
    rows::confirm_totp(tx, number, &sealed, step)?;
    let mut codes = Vec::new();
    for _ in 0..RECOVERY_CODES {
        let made = super::passwords::letters(now.random_bytes::<RECOVERY_CHARACTERS>());
        rows::insert_recovery_code(tx, number, &recovery_hash(services, number, &made))?;
        codes.push(format!("{}-{}", &made[..5], &made[5..]));
    }
    Ok(Some(codes))
}

/// Whether a code of the app is valid at `instant` and was not used before. This does not use the
/// code up, because it is for a database that takes no writes.
pub fn fits(
    sealer: &Sealer,
    operator: &Operator,
    code: &str,
    instant: i64,
) -> Result<bool, StoreError> {
    let Some(sealed) = &operator.totp_secret else { return Ok(false) };
    let number = operator.identity.number.to_be_bytes();
    let secret = sealer.open(&SealedPlace::TOTP_SECRET, &number, sealed)?;
    Ok(step_of(&secret, code, instant, operator.totp_step).is_some())
}

/// Accepts a code of the app, or a recovery code, and uses it up. `false` if it is wrong or was
/// used before.
pub fn take(
    tx: &mut dyn Tx,
    now: &Now,
    services: &Services,
    operator: &Operator,
    code: &str,
) -> Result<bool, StoreError> {
    let number = operator.identity.number;
    let Some(secret) = secret(services, operator)? else { return Ok(false) };
    if let Some(step) = step_of(&secret, code, now.instant(), operator.totp_step) {
        return rows::take_totp_step(tx, number, step);
    }
    let letters = code.chars().filter(char::is_ascii_alphanumeric).count();
    if letters != RECOVERY_CHARACTERS {
        return Ok(false);
    }
    rows::take_recovery_code(tx, number, &recovery_hash(services, number, code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::staff::{OperatorIdentity, Role, Theme};

    /// RFC 6238, appendix B, the rows for SHA-1.
    #[test]
    fn codes_are_those_of_the_standard() {
        let secret = b"12345678901234567890";
        for (instant, code) in [
            (59, 94_287_082),
            (1_111_111_109, 7_081_804),
            (1_111_111_111, 14_050_471),
            (1_234_567_890, 89_005_924),
            (2_000_000_000, 69_279_037),
            (20_000_000_000, 65_353_130),
        ] {
            assert_eq!(code_at(secret, instant / 30, 8), code, "{instant}");
        }
        // RFC 4226, appendix D.
        let first = [755_224, 287_082, 359_152, 969_429, 338_314, 254_676, 287_922, 162_583];
        for (step, code) in (0..).zip(first) {
            assert_eq!(code_at(secret, step, 6), code, "{step}");
        }
    }

    #[test]
    fn a_code_is_taken_near_its_time_and_once() {
        let secret = b"12345678901234567890";
        let code = code(secret, 1_234_567_890);
        let step = 1_234_567_890 / 30;
        for seconds in [-30, 0, 30] {
            assert_eq!(step_of(secret, &code, 1_234_567_890 + seconds, 0), Some(step));
        }
        for seconds in [-61, 61, 86_400] {
            assert_eq!(step_of(secret, &code, 1_234_567_890 + seconds, 0), None);
        }
        assert_eq!(step_of(secret, &code, 1_234_567_890, step), None, "it was taken");
        let spaced = format!("{} {}", &code[..3], &code[3..]);
        assert_eq!(step_of(secret, &spaced, 1_234_567_890, 0), Some(step));
        for text in ["", "005924x", "05924", "0005924", "-05924", "+05924"] {
            assert_eq!(step_of(secret, text, 1_234_567_890, 0), None, "{text}");
        }
    }

    #[test]
    fn a_code_fits_without_being_taken() {
        let (secret, instant) = (b"12345678901234567890", 1_234_567_890);
        let sealer = Sealer::new(&[7; 32]);
        let key = sealer.sealing_key(None).unwrap();
        let seal = |number: i64| {
            let id = number.to_be_bytes();
            key.seal([1; 12], &SealedPlace::TOTP_SECRET, &id, secret).unwrap()
        };
        let mut operator = Operator {
            identity: OperatorIdentity { number: 3, name: "asha".into(), role: Role::Approver },
            password_hash: String::new(),
            is_disabled: false,
            totp_secret: None,
            next_totp_secret: None,
            is_totp_confirmed: true,
            totp_step: 0,
            language: String::new(),
            theme: Theme::Auto,
            created: 0,
        };
        let right = code(secret, instant);
        assert!(!fits(&sealer, &operator, &right, instant).unwrap(), "there is no secret");
        operator.totp_secret = Some(seal(3));
        for _ in 0..2 {
            assert!(fits(&sealer, &operator, &right, instant).unwrap());
        }
        assert!(!fits(&sealer, &operator, &right, instant + 90).unwrap(), "too old");
        for wrong in ["", "000000", &code(secret, instant + 300)] {
            assert!(!fits(&sealer, &operator, wrong, instant).unwrap(), "{wrong:?}");
        }
        operator.totp_step = instant / 30;
        assert!(!fits(&sealer, &operator, &right, instant).unwrap(), "it was taken to sign in");
        operator.totp_secret = Some(seal(4));
        assert!(fits(&sealer, &operator, &right, instant).is_err(), "another operator's secret");
    }

    /// RFC 4648, section 10, without the padding.
    #[test]
    fn secrets_are_written_in_base_32() {
        for (plain, text) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(base32(plain.as_bytes()), text);
        }
        assert_eq!(
            uri("Hundi Pay", "asha", b"12345678901234567890"),
            "otpauth://totp/Hundi%20Pay:asha?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&\
             issuer=Hundi%20Pay"
        );
    }
}
