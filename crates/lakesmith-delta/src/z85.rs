//! Z85: the text form of binary data in deletion vector descriptors.
//!
//! # Source
//! ZeroMQ RFC 32; Delta PROTOCOL.md, "Deletion Vector Descriptor Schema".

const ALPHABET: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// Encodes bytes; a length that is no multiple of four is padded with zero bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(4) * 5);
    for chunk in bytes.chunks(4) {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        let mut value = u32::from_be_bytes(word);
        let mut digits = [0; 5];
        for digit in digits.iter_mut().rev() {
            *digit = ALPHABET[(value % 85) as usize];
            value /= 85;
        }
        text.extend(digits.iter().map(|d| char::from(*d)));
    }
    text
}

/// Decodes text; `None` if its length is no multiple of five or it holds anything but Z85.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(5) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 5 * 4);
    for chunk in text.chunks(5) {
        let mut value = 0u32;
        for byte in chunk {
            let digit = ALPHABET.iter().position(|a| a == byte)? as u32;
            value = value.checked_mul(85)?.checked_add(digit)?;
        }
        bytes.extend(value.to_be_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        assert_eq!(encode(&[0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B]), "HelloWorld");
        assert_eq!(decode(b"HelloWorld").unwrap(), [0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B]);
        let uuid = uuid::Uuid::parse_str("d2c639aa-8816-431a-aaf6-d3fe2512ff61").unwrap();
        assert_eq!(encode(uuid.as_bytes()), "^-aqEH.-t@S}K{vb[*k^");
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in ["a", "abcd ", "#####", "abcdefg", "ab\"cd"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut padded = bytes.clone();
            padded.resize(bytes.len().div_ceil(4) * 4, 0);
            prop_assert_eq!(decode(encode(&bytes).as_bytes()), Some(padded));
        }

        #[test]
        fn any_text_is_decoded_or_refused(text in ".{0,40}") {
            let _ = decode(text.as_bytes());
        }
    }
}
