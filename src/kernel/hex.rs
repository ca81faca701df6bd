//! Bytes as hexadecimal text, without `0x`.

/// Two lower-case digits a byte.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |value: u8| DIGITS[usize::from(value & 15)];
    bytes.as_ref().iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// Reads digits of either case; `None` for an odd number of digits or any other character.
pub fn decode(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let bytes = pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?)).collect();
    if rest.is_empty() { bytes } else { None }
}

/// [`decode`] for a fixed number of bytes; `None` also for any other number.
pub fn decode_exact<const LENGTH: usize>(digits: &str) -> Option<[u8; LENGTH]> {
    decode(digits)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_digits_go_round() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = encode(&bytes);
        assert!(text.starts_with("000102") && text.ends_with("fdfeff"));
        assert_eq!(
            (decode(&text), decode(&text.to_uppercase())),
            (Some(bytes.clone()), Some(bytes))
        );
        assert_eq!(decode_exact::<2>("0aF0"), Some([10, 240]));
        for text in ["0", "0g", "+f", " f", "0x", "0é", "é"] {
            assert_eq!(decode(text), None, "{text:?}");
        }
        assert_eq!(
            (decode(""), decode_exact::<2>("0a"), decode_exact::<2>("0a0b0c")),
            (Some(Vec::new()), None, None)
        );
    }
}
