//! The hash of a server's certificate, by which a password proves to be said to this server and no other
//! (`channel_binding`, RFC 5929): also where nobody checks the certificate.

use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// `tls-server-end-point`: hashed as the certificate itself was for its signature, but at least by SHA-256. None where
/// that is not defined.
pub(super) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    Some(match signature_hash(certificate)? {
        Hash::Sha256 => Sha256::digest(certificate).to_vec(),
        Hash::Sha384 => Sha384::digest(certificate).to_vec(),
        Hash::Sha512 => Sha512::digest(certificate).to_vec(),
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

/// `SEQUENCE { what is signed, SEQUENCE { OID of the algorithm, … }, … }`
fn signature_hash(certificate: &[u8]) -> Option<Hash> {
    let (whole, _) = element(certificate)?;
    let (_, after) = element(whole)?;
    let (algorithm, _) = element(after)?;
    let (name, _) = element(algorithm)?;
    /// 1.2.840.113549.1.1
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    /// 1.2.840.10045.4.3
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    let (last, family) = name.split_last()?;
    match (family, last) {
        // MD5 and SHA-1 count as SHA-256.
        (RSA, 4 | 5 | 11) | (ECDSA, 2) => Some(Hash::Sha256),
        (RSA, 12) | (ECDSA, 3) => Some(Hash::Sha384),
        (RSA, 13) | (ECDSA, 4) => Some(Hash::Sha512),
        _ => None,
    }
}

/// The content of the first element of DER, and what follows it.
fn element(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // A length of so many bytes.
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = digits
                .iter()
                .fold(0, |length, digit| length << 8 | usize::from(*digit));
            (length, rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn finds_the_hash_of_the_signature() {
        let file = include_bytes!("../../../guard/tests/tls/certificate.pem");
        let certificate = CertificateDer::from_pem_slice(file).expect("a certificate");
        assert_eq!(signature_hash(&certificate), Some(Hash::Sha256));
        assert_eq!(end_point(&certificate).map(|hash| hash.len()), Some(32));
        for end in 0..certificate.len().min(200) {
            assert_eq!(end_point(&certificate[..end]), None);
        }
    }
}
