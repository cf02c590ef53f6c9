//! Base64, for names that do not fit into a header.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            out.push(if place <= chunk.len() {
                char::from(DIGITS[(word >> (18 - 6 * place) & 63) as usize])
            } else {
                '='
            });
        }
    }
    out
}

pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() * 3 / 4);
    for chunk in digits.as_bytes().chunks(4) {
        let mut word = 0_u32;
        for digit in chunk {
            let value = DIGITS.iter().position(|known| known == digit)?;
            word = word << 6 | u32::try_from(value).ok()?;
        }
        word <<= 6 * (4 - chunk.len());
        out.extend_from_slice(&word.to_be_bytes()[1..chunk.len()]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        assert_eq!(base64("Hello, 世界".as_bytes()), "SGVsbG8sIOS4lueVjA==");
        assert_eq!(base64(b" padded "), "IHBhZGRlZCA=");
        for length in 0..50_u8 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(37)).collect();
            assert_eq!(from_base64(&base64(&bytes)), Some(bytes));
        }
        assert_eq!(from_base64("a"), None);
        assert_eq!(from_base64("a*=="), None);
    }
}
