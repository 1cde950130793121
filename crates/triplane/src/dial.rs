//! Where a P4Runtime server is and how it is talked to, as options say it.

use std::path::Path;

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::load::{self, Pem};
use crate::output::Failure;

/// The options `--addr` and `--tls-…`.
#[derive(Clone, Copy, Debug)]
pub struct Dial<'a> {
    /// `ADDRESS:PORT`, or a port of this machine.
    pub addr: &'a str,
    /// The authority that signed the server's certificate; without it there is no TLS.
    pub tls_ca: Option<&'a Path>,
    /// The certificate to show, and its key.
    pub tls_cert: Option<&'a Path>,
    /// See [`Dial::tls_cert`].
    pub tls_key: Option<&'a Path>,
    /// The name in the server's certificate, if it is not the one in the address.
    pub tls_name: Option<&'a str>,
}

impl Dial<'_> {
    /// The address in full.
    pub fn address(&self) -> String {
        match self.addr.trim_start_matches(':').parse::<u16>() {
            Ok(port) => format!("127.0.0.1:{port}"),
            // People paste what other programs call an address.
            Err(_) => self.addr.trim_start_matches("http://").to_owned(),
        }
    }

    /// What a connection is made with.
    ///
    /// # Errors
    /// If options do not go together, or a file is not what it should be.
    pub fn endpoint(&self) -> Result<Endpoint, Failure> {
        let Dial { tls_ca, tls_cert, tls_key, tls_name, .. } = self;
        if tls_ca.is_none() && (tls_cert.is_some() || tls_key.is_some() || tls_name.is_some()) {
            return Err(Failure::Usage(
                "TLS needs --tls-ca, the authority that signed the server's certificate".into(),
            ));
        }
        if tls_cert.is_some() != tls_key.is_some() {
            return Err(Failure::Usage("--tls-cert and --tls-key need each other".into()));
        }
        let scheme = if tls_ca.is_some() { "https" } else { "http" };
        let wrong = |_| Failure::Usage(format!("--addr {} is no address: give ADDRESS:PORT", self.addr));
        let endpoint = Endpoint::from_shared(format!("{scheme}://{}", self.address())).map_err(wrong)?;
        let Some(authority) = tls_ca else { return Ok(endpoint) };
        let mut tls =
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(load::pem(authority, Pem::Certificate)?));
        if let (Some(certificate), Some(key)) = (tls_cert, tls_key) {
            let (certificate, key) = (load::pem(certificate, Pem::Certificate)?, load::pem(key, Pem::Key)?);
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        if let Some(name) = tls_name {
            tls = tls.domain_name(*name);
        }
        endpoint.tls_config(tls).map_err(|error| Failure::Input(causes("these TLS files", &error)))
    }
}

/// An error with all that caused it, each once.
pub fn causes(what: &str, error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (what.to_owned(), error.source());
    while let Some(error) = cause {
        let told = error.to_string();
        if !text.contains(&told) {
            text = format!("{text}: {told}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_in_several_ways() {
        let address = |addr| Dial { addr, tls_ca: None, tls_cert: None, tls_key: None, tls_name: None }.address();
        assert_eq!(address("9559"), "127.0.0.1:9559");
        assert_eq!(address(":9559"), "127.0.0.1:9559");
        assert_eq!(address("http://10.0.0.1:9559"), "10.0.0.1:9559");
        assert_eq!(address("switch.example:9559"), "switch.example:9559");
    }
}
