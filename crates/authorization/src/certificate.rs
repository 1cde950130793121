//! Extracts the names of a client from its certificate. The TLS library has verified the certificate before.

use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::asn1::Ia5String;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// A name in a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateName {
    /// The name. A DNS name is in lower case.
    pub text: String,
    /// Whether it is a DNS name, where upper and lower case are the same (RFC 4343).
    pub is_dns: bool,
}

impl CertificateName {
    /// Returns a DNS name.
    pub fn dns(text: &str) -> CertificateName {
        CertificateName { text: text.to_ascii_lowercase(), is_dns: true }
    }

    /// Returns a name of another kind: a URI, an email address or a common name.
    pub fn other(text: &str) -> CertificateName {
        CertificateName { text: text.to_owned(), is_dns: false }
    }
}

/// Returns the names in a certificate (DER): its subject alternative names that are DNS names, URIs or email addresses,
/// in their order, or its common name if it has none of these (RFC 5280, 4.2.1.6). A
/// certificate that cannot be parsed has no names.
pub fn certificate_names(der: &[u8]) -> Vec<CertificateName> {
    let Ok(certificate) = Certificate::from_der(der) else { return Vec::new() };
    let certificate = certificate.tbs_certificate();
    let Ok(alternatives) = certificate.get_extension::<SubjectAltName>() else { return Vec::new() };
    let other = |name: Ia5String| CertificateName::other(name.as_str());
    let names: Vec<CertificateName> = alternatives
        .into_iter()
        .flat_map(|(_, names)| names.0)
        .filter_map(|name| match name {
            GeneralName::DnsName(name) => Some(CertificateName::dns(name.as_str())),
            GeneralName::UniformResourceIdentifier(name) | GeneralName::Rfc822Name(name) => Some(other(name)),
            _ => None,
        })
        .filter(|name| !name.text.is_empty())
        .collect();
    if !names.is_empty() {
        return names;
    }
    let common = certificate.subject().common_name().ok().flatten();
    let common = common.map(|name| CertificateName::other(&name.value()));
    common.filter(|name| !name.text.is_empty()).into_iter().collect()
}
