//! Base64 for chunks that are not text: the standard alphabet with padding, strict. Forty lines are
//! less to carry than a crate.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Three bytes become four characters; what is missing of the last three becomes `=`.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, i| bits << 8 | u32::from(three.get(i).copied().unwrap_or(0)));
        for place in 0..4 {
            let six = (bits >> (18 - 6 * place)) as usize & 63;
            text.push(if place <= three.len() { char::from(ALPHABET[six]) } else { '=' });
        }
    }
    text
}

/// The bytes, or what is wrong with the text.
pub fn decode(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return Err("base64: the length, with padding, must be a multiple of four".to_string());
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    let (mut bits, mut held) = (0u32, 0);
    for digit in digits.bytes() {
        let six = ALPHABET.iter().position(|&known| known == digit);
        bits = bits << 6 | six.ok_or_else(|| format!("base64: unexpected {:?}", char::from(digit)))? as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_vectors_of_rfc_4648_go_both_ways() {
        for (plain, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Ok(plain.as_bytes()));
        }
    }

    #[test]
    fn every_byte_survives() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Ok(all));
    }

    #[test]
    fn what_is_not_base64_is_named() {
        assert!(decode("Zg=").unwrap_err().contains("multiple of four"));
        assert!(decode("====").unwrap_err().contains("multiple of four"));
        assert!(decode("Zm 9").unwrap_err().contains("' '"));
    }
}
