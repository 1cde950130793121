//! Where a gRPC server is and how it is talked to, as options say it.

use std::path::Path;

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::load::{self, Pem};
use crate::output::Failure;

/// The options `--addr` and `--tls-…`, or what others of the same kind are called.
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
    /// What the options are called: that of the address, and what those of TLS begin with.
    pub options: (&'static str, &'static str),
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
        let Dial { tls_ca, tls_cert, tls_key, tls_name, options: (addr, tls), .. } = self;
        if tls_ca.is_none() && (tls_cert.is_some() || tls_key.is_some() || tls_name.is_some()) {
            return Err(Failure::Usage(format!(
                "TLS needs {tls}-ca, the authority that signed the server's certificate"
            )));
        }
        if tls_cert.is_some() != tls_key.is_some() {
            return Err(Failure::Usage(format!("{tls}-cert and {tls}-key need each other")));
        }
        let scheme = if tls_ca.is_some() { "https" } else { "http" };
        let wrong = |_| Failure::Usage(format!("{addr} {} is no address: give ADDRESS:PORT", self.addr));
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

/// What the options of most commands are called.
pub const OPTIONS: (&str, &str) = ("--addr", "--tls");

/// Whether a connection over TLS failed because what answered does not speak it.
pub fn is_plain(causes: &str) -> bool {
    ["corrupt message", "InvalidContentType", "invalid content type"].iter().any(|it| causes.contains(it))
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
        let address = |addr| {
            Dial { addr, tls_ca: None, tls_cert: None, tls_key: None, tls_name: None, options: OPTIONS }.address()
        };
        assert_eq!(address("9559"), "127.0.0.1:9559");
        assert_eq!(address(":9559"), "127.0.0.1:9559");
        assert_eq!(address("http://10.0.0.1:9559"), "10.0.0.1:9559");
        assert_eq!(address("switch.example:9559"), "switch.example:9559");
    }
}
