//! Passwords: their rules, and their Argon2id hashes in PHC strings.

use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};

/// A password has to be long; no kind of character is required (NIST SP 800-63B).
pub const CHARACTERS_MIN: usize = 12;
pub const CHARACTERS_MAX: usize = 256;

/// The parameters that OWASP's Password Storage Cheat Sheet names first for Argon2id: 19 MiB, two
/// passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

const SALT_BYTES: usize = 16;
/// 32 letters and digits, so that each stands for 5 bits. `l`, `o`, `0` and `1` are left out,
/// because they are easily mistaken for others.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// The length of a password that [`make`] makes: 100 random bits.
const MADE_CHARACTERS: usize = 20;

fn hasher() -> Result<Argon2<'static>, String> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).map_err(|error| error.to_string())?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

/// Refuses a password that is too short or too long.
pub fn judge(password: &str) -> Result<(), String> {
    let count = password.chars().count();
    if (CHARACTERS_MIN..=CHARACTERS_MAX).contains(&count) {
        return Ok(());
    }
    Err(format!("a password has {CHARACTERS_MIN} to {CHARACTERS_MAX} characters"))
}

/// What is stored of a password. Computing it takes tens of milliseconds and 19 MiB.
pub fn hash(password: &str, salt: [u8; SALT_BYTES]) -> Result<String, String> {
    let hash = hasher()?
        .hash_password_with_salt(password.as_bytes(), &salt)
        .map_err(|error| format!("the password cannot be hashed: {error}"))?;
    Ok(hash.to_string())
}

/// Whether a password is the one that a stored hash was made of.
pub fn matches(password: &str, stored: &str) -> bool {
    hasher().is_ok_and(|hasher| hasher.verify_password(password.as_bytes(), stored).is_ok())
}

/// A new password for somebody who gave none.
pub fn make(random: [u8; MADE_CHARACTERS]) -> String {
    letters(random)
}

/// A letter or digit of `LETTERS` for each random byte, 5 bits each.
pub(super) fn letters<const N: usize>(random: [u8; N]) -> String {
    random.iter().map(|byte| LETTERS[usize::from(byte % 32)] as char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_argon2id_with_its_own_salt_and_fits_its_password_alone() {
        let one = hash("correct horse battery", [1; 16]).unwrap();
        let other = hash("correct horse battery", [2; 16]).unwrap();
        assert!(one.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{one}");
        assert_ne!(one, other);
        assert!(matches("correct horse battery", &one));
        assert!(!matches("correct horse batterY", &one));
        assert!(!matches("", &one));
        assert!(!matches("correct horse battery", "not a hash"));
    }

    #[test]
    fn a_password_has_12_to_256_characters() {
        assert!(judge("elevenchars").is_err());
        assert!(judge("twelve chars").is_ok());
        assert!(judge(&"x".repeat(256)).is_ok());
        assert!(judge(&"x".repeat(257)).is_err());
        assert!(judge(&make([77; 20])).is_ok());
    }
}
