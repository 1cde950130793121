//! Checks certificates and private keys in PEM form.

use std::time::Duration;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use x509_cert::Certificate;
use x509_cert::der::Decode;

/// The reason why a file of certificates or a private key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The file has no certificate in PEM form.
    #[error("there is no certificate in PEM format")]
    NoCertificate,
    /// A certificate cannot be parsed.
    #[error("certificate {number} is damaged")]
    DamagedCertificate {
        /// Position in the file, from 1.
        number: usize,
    },
    /// A certificate is not valid any more.
    #[error("certificate {number} expired at {not_after}")]
    Expired {
        /// Position in the file, from 1.
        number: usize,
        /// Last time of its validity, such as `2026-01-31T12:00:00Z`.
        not_after: String,
    },
    /// A certificate is not valid yet.
    #[error("certificate {number} is not valid before {not_before}")]
    NotYetValid {
        /// Position in the file, from 1.
        number: usize,
        /// First time of its validity.
        not_before: String,
    },
    /// The file has no private key in PEM form.
    #[error("there is no private key in PEM format")]
    NoKey,
    /// The private key is encrypted.
    #[error("the private key is encrypted")]
    EncryptedKey,
    /// The private key cannot be parsed, or TLS does not use keys of its kind.
    #[error("the private key is damaged or of an unsupported kind")]
    UnsupportedKey,
    /// The private key is that of another certificate.
    #[error("the private key does not belong to the certificate")]
    OtherKey,
}

/// Checks the certificates in a file: the one of a server or client with those between it and an authority, or
/// authorities. All of them have to be valid at `now`, the time since 1970.
///
/// # Errors
/// The first certificate that cannot be used; [`CredentialError::NoCertificate`] if there is none.
pub fn check_certificates(pem: &[u8], now: Duration) -> Result<(), CredentialError> {
    let certificates = parse_certificates(pem)?;
    for (at, der) in certificates.iter().enumerate() {
        let number = at + 1;
        let certificate = Certificate::from_der(der).map_err(|_| CredentialError::DamagedCertificate { number })?;
        let validity = certificate.tbs_certificate().validity();
        if now > validity.not_after.to_unix_duration() {
            return Err(CredentialError::Expired { number, not_after: validity.not_after.to_string() });
        }
        if now < validity.not_before.to_unix_duration() {
            return Err(CredentialError::NotYetValid { number, not_before: validity.not_before.to_string() });
        }
    }
    Ok(())
}

/// Checks a private key, and that it belongs to the first of `certificates`, which [`check_certificates`] has accepted.
///
/// # Errors
/// The reason why the key cannot be used.
pub fn check_key(pem: &[u8], certificates: &[u8]) -> Result<(), CredentialError> {
    let certificates = parse_certificates(certificates)?;
    // The second is the older form, whose header is no base64.
    let marks = [&b"-----BEGIN ENCRYPTED PRIVATE KEY-----"[..], b"Proc-Type: 4,ENCRYPTED"];
    if marks.into_iter().any(|mark| contains(pem, mark)) {
        return Err(CredentialError::EncryptedKey);
    }
    let key = match PrivateKeyDer::from_pem_slice(pem) {
        Ok(key) => key,
        Err(rustls::pki_types::pem::Error::NoItemsFound) => return Err(CredentialError::NoKey),
        Err(_) => return Err(CredentialError::UnsupportedKey),
    };
    let key = default_provider().key_provider.load_private_key(key).map_err(|_| CredentialError::UnsupportedKey)?;
    match CertifiedKey::new(certificates, key).keys_match() {
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(()),
        Err(Error::InconsistentKeys(_)) => Err(CredentialError::OtherKey),
        Err(_) => Err(CredentialError::DamagedCertificate { number: 1 }),
    }
}

/// Returns the certificates of a file: at least one.
fn parse_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CredentialError> {
    let mut certificates = Vec::new();
    for found in CertificateDer::pem_slice_iter(pem) {
        let number = certificates.len() + 1;
        certificates.push(found.map_err(|_| CredentialError::DamagedCertificate { number })?);
    }
    if certificates.is_empty() { Err(CredentialError::NoCertificate) } else { Ok(certificates) }
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|part| part == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate that is valid from 2026-01-01 to 2026-12-31, and its key.
    const CERTIFICATE: &str = include_str!("../testdata/certificate.pem");
    const KEY: &str = include_str!("../testdata/certificate.key");
    const OTHER_KEY: &str = include_str!("../testdata/other.key");
    const ENCRYPTED_KEY: &str = include_str!("../testdata/encrypted.key");

    /// Returns the time of a day, counted from 1970.
    fn day(days: u64) -> Duration {
        Duration::from_secs(days * 86_400)
    }

    /// 2026-07-02.
    const VALID: u64 = 20_636;

    #[test]
    fn certificates_are_valid_for_a_time() {
        let check = |days| check_certificates(CERTIFICATE.as_bytes(), day(days));
        assert_eq!(check(VALID), Ok(()));
        let number = 1;
        let not_after = "2026-12-31T00:00:00Z".to_owned();
        assert_eq!(check(VALID + 365), Err(CredentialError::Expired { number, not_after }));
        let not_before = "2026-01-01T00:00:00Z".to_owned();
        assert_eq!(check(VALID - 365), Err(CredentialError::NotYetValid { number, not_before }));
    }

    #[test]
    fn damaged_certificates_are_counted() {
        let check = |text: &str| check_certificates(text.as_bytes(), day(VALID));
        for text in ["", "certificate", KEY] {
            assert_eq!(check(text), Err(CredentialError::NoCertificate), "{text}");
        }
        let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let garbage = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        let cut = &CERTIFICATE[..CERTIFICATE.len() / 2];
        for damaged in [empty, garbage, cut] {
            assert_eq!(check(damaged), Err(CredentialError::DamagedCertificate { number: 1 }), "{damaged}");
            let second = format!("{CERTIFICATE}{damaged}");
            assert_eq!(check(&second), Err(CredentialError::DamagedCertificate { number: 2 }), "{damaged}");
        }
    }

    #[test]
    fn keys_belong_to_their_certificate() {
        let check = |key: &str| check_key(key.as_bytes(), CERTIFICATE.as_bytes());
        assert_eq!(check(KEY), Ok(()));
        assert_eq!(check(OTHER_KEY), Err(CredentialError::OtherKey));
        assert_eq!(check(ENCRYPTED_KEY), Err(CredentialError::EncryptedKey));
        let older = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,1A\n\nAAAA\n";
        assert_eq!(check(&format!("{older}-----END RSA PRIVATE KEY-----\n")), Err(CredentialError::EncryptedKey));
        assert_eq!(check(CERTIFICATE), Err(CredentialError::NoKey));
        assert_eq!(check(&KEY[..KEY.len() / 2]), Err(CredentialError::UnsupportedKey));
        let empty = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        assert_eq!(check(empty), Err(CredentialError::UnsupportedKey));
        assert_eq!(check_key(KEY.as_bytes(), b""), Err(CredentialError::NoCertificate));
    }
}
