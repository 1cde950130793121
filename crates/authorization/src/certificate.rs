//! Extracts the names of a client from its certificate. The TLS library has verified the certificate before.

use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::asn1::Ia5String;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// Returns the names in a certificate (DER): its subject alternative names that are DNS names, URIs or email addresses,
/// in their order, or its common name if it has none of these (RFC 5280, 4.2.1.6). DNS names are in lower case. A
/// certificate that cannot be parsed has no names.
pub fn certificate_names(der: &[u8]) -> Vec<String> {
    let Ok(certificate) = Certificate::from_der(der) else { return Vec::new() };
    let certificate = certificate.tbs_certificate();
    let Ok(alternatives) = certificate.get_extension::<SubjectAltName>() else { return Vec::new() };
    let text = |name: Ia5String| name.as_str().to_owned();
    let names: Vec<String> = alternatives
        .into_iter()
        .flat_map(|(_, names)| names.0)
        .filter_map(|name| match name {
            GeneralName::DnsName(name) => Some(text(name).to_ascii_lowercase()),
            GeneralName::UniformResourceIdentifier(name) | GeneralName::Rfc822Name(name) => Some(text(name)),
            _ => None,
        })
        .filter(|name| !name.is_empty())
        .collect();
    if !names.is_empty() {
        return names;
    }
    let common = certificate.subject().common_name().ok().flatten();
    common.map(|name| name.value().into_owned()).filter(|name| !name.is_empty()).into_iter().collect()
}
