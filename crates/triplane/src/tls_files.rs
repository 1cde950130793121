//! Reads the files of certificates, private keys and authorities. The sentence about one that cannot be used names it
//! and the remedy.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::anyhow;
use credentials::{CredentialError, check_certificates, check_key};

use crate::load;
use crate::output::Failure;

/// Maximum size of a file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a certificate and its private key, in PEM form.
///
/// # Errors
/// If a file cannot be read or used, or they do not belong together.
pub fn identity(certificate: &Path, key: &Path) -> Result<(String, String), Failure> {
    let chain = certificates(certificate, "a certificate")?;
    let private = read(key, "the private key of the certificate")?;
    check_key(&private, chain.as_bytes()).map_err(|error| Failure::Input(key_sentence(&error, key, certificate)))?;
    Ok((chain, to_text(private, key)?))
}

/// Reads the certificates of authorities, in PEM form.
///
/// # Errors
/// If the file cannot be read, or one of the certificates cannot be used.
pub fn authority(path: &Path) -> Result<String, Failure> {
    certificates(path, "the certificate of a CA")
}

fn certificates(path: &Path, what: &str) -> Result<String, Failure> {
    let content = read(path, what)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let checked = check_certificates(&content, now);
    checked.map_err(|error| Failure::Input(certificate_sentence(&error, path, what, &content)))?;
    to_text(content, path)
}

/// Reads a file. A failure says what the file should be.
fn read(path: &Path, what: &str) -> Result<Vec<u8>, Failure> {
    load::read_bytes(path, MAX_BYTES).map_err(|failure| {
        let kind = match &failure {
            Failure::Environment(error) => error.downcast_ref::<std::io::Error>().map(std::io::Error::kind),
            _ => None,
        };
        let remedy = match kind {
            Some(ErrorKind::PermissionDenied) => "let the user that runs this command read it".to_owned(),
            Some(ErrorKind::NotFound) => format!("expected {what} in PEM format"),
            _ => return failure,
        };
        match failure.sentence() {
            Some(sentence) => anyhow!("{sentence}; {remedy}").into(),
            None => failure,
        }
    })
}

fn to_text(content: Vec<u8>, path: &Path) -> Result<String, Failure> {
    String::from_utf8(content).map_err(|_| Failure::Input(format!("{} is not text (UTF-8)", path.display())))
}

fn certificate_sentence(error: &CredentialError, path: &Path, what: &str, content: &[u8]) -> String {
    let shown = path.display();
    let nth = |number: usize| if number == 1 { String::new() } else { format!("number {number} ") };
    match error {
        // DER begins with the tag of a sequence.
        CredentialError::NoCertificate if content.starts_with(&[0x30]) => format!(
            "{shown} contains no certificate in PEM format; convert it with `openssl x509 -inform der -in {shown} -out \
             FILE`"
        ),
        CredentialError::NoCertificate if contains(content, "PRIVATE KEY-----") => {
            format!("{shown} contains no certificate in PEM format, but a private key; give the file with {what}")
        }
        CredentialError::NoCertificate => {
            format!("{shown} contains no certificate in PEM format; give the file with {what}")
        }
        CredentialError::DamagedCertificate { number } => {
            format!("the certificate {}in {shown} is damaged; copy or create it again", nth(*number))
        }
        CredentialError::Expired { number, not_after } => {
            format!("the certificate {}in {shown} expired at {not_after}; renew it", nth(*number))
        }
        CredentialError::NotYetValid { number, not_before } => format!(
            "the certificate {}in {shown} is not valid before {not_before}; check the clock of this machine",
            nth(*number)
        ),
        other => format!("{shown}: {other}"),
    }
}

fn key_sentence(error: &CredentialError, path: &Path, certificate: &Path) -> String {
    let (shown, certificate) = (path.display(), certificate.display());
    match error {
        CredentialError::NoKey => format!(
            "{shown} contains no private key in PEM format; give the file with the private key of {certificate}"
        ),
        CredentialError::EncryptedKey => format!(
            "the private key in {shown} is encrypted; decrypt it with `openssl pkey -in {shown} -out FILE`, and let \
             only this user read the file"
        ),
        CredentialError::UnsupportedKey => format!(
            "the private key in {shown} is damaged, or neither RSA of 2048 to 8192 bits, ECDSA on P-256 or P-384 nor \
             Ed25519; create it again"
        ),
        CredentialError::OtherKey => format!(
            "the private key in {shown} does not belong to the certificate in {certificate}; give the files that were \
             created together"
        ),
        other => format!("{certificate}: {other}"),
    }
}

fn contains(content: &[u8], wanted: &str) -> bool {
    content.windows(wanted.len()).any(|part| part == wanted.as_bytes())
}
