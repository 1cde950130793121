//! Names the cause of a failed TLS handshake.

use std::error::Error;

use rustls::CertificateError;

/// The cause of a handshake that failed on the client's side, or was refused by the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeFailure {
    /// The server answered, and not with TLS.
    #[error("the server does not use TLS")]
    NotTls,
    /// No given authority has signed the server's certificate.
    #[error("the server's certificate is not signed by the given authority")]
    UnknownAuthority,
    /// The server's certificate is for other names.
    #[error("the server's certificate is for {}, not for {expected}", listed(presented))]
    OtherName {
        /// The name that the client expects.
        expected: String,
        /// The names in the certificate.
        presented: Vec<String>,
    },
    /// The server's certificate is not valid any more, or not yet.
    #[error("the server's certificate has expired, or is not valid yet")]
    OtherTime,
    /// The server's certificate is that of an authority.
    #[error("the server's certificate is that of a CA, which can only sign others")]
    IssuesCertificates,
    /// The server's certificate is unusable for another reason.
    #[error("the server's certificate cannot be used: {0}")]
    BadCertificate(String),
    /// The server refuses clients without a certificate.
    #[error("the server refuses clients without a certificate")]
    ClientCertificateRequired,
    /// The server refuses the client's certificate.
    #[error("the server refuses the client certificate{}", if *is_expired { ", which has expired" } else { "" })]
    ClientCertificateRefused {
        /// Whether the certificate has expired, by the server's clock.
        is_expired: bool,
    },
    /// Any other cause, in the words of the TLS library.
    #[error("the TLS handshake failed: {0}")]
    Other(String),
}

impl HandshakeFailure {
    /// Returns the failure of TLS in the chain of causes of an error, if there is one.
    pub fn of(error: &(dyn Error + 'static)) -> Option<HandshakeFailure> {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(HandshakeFailure::of_tls(tls));
        }
        // HTTP/2 keeps no more than the text of an error that ends its connection, and puts it into another.
        if let Some((_, rest)) = error.to_string().split_once("received fatal alert: ") {
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
            return Some(of_alert(&rest[..end]));
        }
        // An error of input and output contains another error, which is not among its causes.
        match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => HandshakeFailure::of(inner),
            None => HandshakeFailure::of(error.source()?),
        }
    }

    /// Returns the failure of a client that presented no certificate. Servers may report that as a bad certificate, as
    /// those in Go do.
    pub fn without_certificate(self) -> HandshakeFailure {
        match self {
            HandshakeFailure::ClientCertificateRefused { is_expired: false } => {
                HandshakeFailure::ClientCertificateRequired
            }
            other => other,
        }
    }

    fn of_tls(error: &rustls::Error) -> HandshakeFailure {
        match error {
            rustls::Error::InvalidMessage(_) => HandshakeFailure::NotTls,
            rustls::Error::InvalidCertificate(error) => of_certificate(error),
            rustls::Error::AlertReceived(alert) => of_alert(&format!("{alert:?}")),
            other => HandshakeFailure::Other(other.to_string()),
        }
    }
}

fn of_certificate(error: &CertificateError) -> HandshakeFailure {
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => HandshakeFailure::UnknownAuthority,
        CertificateError::NotValidForNameContext { expected, presented } => HandshakeFailure::OtherName {
            expected: expected.to_str().into_owned(),
            presented: presented.iter().map(|name| plain_name(name)).collect(),
        },
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => HandshakeFailure::OtherTime,
        // The library that checks certificates has an error for it, but not as a part of its interface.
        other if other.to_string().contains("CaUsedAsEndEntity") => HandshakeFailure::IssuesCertificates,
        other => HandshakeFailure::BadCertificate(other.to_string()),
    }
}

/// Converts an alert (RFC 8446, 6.2), by the name that the TLS library gives it.
fn of_alert(name: &str) -> HandshakeFailure {
    match name {
        "CertificateRequired" => HandshakeFailure::ClientCertificateRequired,
        "CertificateExpired" => HandshakeFailure::ClientCertificateRefused { is_expired: true },
        "UnknownCA"
        | "BadCertificate"
        | "CertificateUnknown"
        | "UnsupportedCertificate"
        | "CertificateRevoked"
        | "AccessDenied"
        | "DecryptError" => HandshakeFailure::ClientCertificateRefused { is_expired: false },
        other => HandshakeFailure::Other(format!("the server reports {other}")),
    }
}

/// Returns the name in the TLS library's `DnsName("switch.example")` or `IpAddress(127.0.0.1)`.
fn plain_name(text: &str) -> String {
    let inner = text.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(text);
    inner.trim_matches('"').to_owned()
}

/// Lists at most four names.
fn listed(names: &[String]) -> String {
    match names {
        [] => "no name".to_owned(),
        [only] => only.clone(),
        [first @ .., last] if names.len() <= 4 => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} other names", names[..3].join(", "), names.len() - 3),
    }
}

#[cfg(test)]
mod tests {
    use rustls::AlertDescription;

    use super::*;

    /// Returns an error as a connection reports it: TLS within an error of input and output, within another.
    fn failure(error: rustls::Error) -> Option<HandshakeFailure> {
        let outer = std::io::Error::other(std::io::Error::new(std::io::ErrorKind::InvalidData, error));
        HandshakeFailure::of(&outer)
    }

    #[test]
    fn causes_are_found_within_errors_of_a_connection() {
        let certificate = |error| failure(rustls::Error::InvalidCertificate(error));
        assert_eq!(certificate(CertificateError::UnknownIssuer), Some(HandshakeFailure::UnknownAuthority));
        assert_eq!(certificate(CertificateError::Expired), Some(HandshakeFailure::OtherTime));
        let alert = |alert| failure(rustls::Error::AlertReceived(alert));
        let required = Some(HandshakeFailure::ClientCertificateRequired);
        assert_eq!(alert(AlertDescription::CertificateRequired), required);
        let refused = |is_expired| Some(HandshakeFailure::ClientCertificateRefused { is_expired });
        assert_eq!(alert(AlertDescription::UnknownCA), refused(false));
        let bad = alert(AlertDescription::BadCertificate).expect("it is known");
        assert_eq!(Some(bad.without_certificate()), required);
        assert_eq!(alert(AlertDescription::CertificateExpired), refused(true));
        let content = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        assert_eq!(failure(content), Some(HandshakeFailure::NotTls));
        assert!(matches!(failure(rustls::Error::DecryptError), Some(HandshakeFailure::Other(_))));
        for text in
            ["received fatal alert: CertificateRequired", "Io { error: \"received fatal alert: CertificateRequired\" }"]
        {
            assert_eq!(HandshakeFailure::of(&std::io::Error::other(text)), required, "{text}");
        }
        assert_eq!(HandshakeFailure::of(&std::io::Error::other("reset")), None);
    }

    #[test]
    fn names_are_listed() {
        let listed = |names: &[&str]| super::listed(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(listed(&[]), "no name");
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(listed(&["a", "b", "c", "d", "e"]), "a, b, c and 2 other names");
        assert_eq!(plain_name("DnsName(\"switch.test\")"), "switch.test");
        assert_eq!(plain_name("IpAddress(127.0.0.1)"), "127.0.0.1");
        assert_eq!(plain_name("switch"), "switch");
    }
}
