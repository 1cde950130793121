//! Converts the options that say where a gRPC server is, and how to authenticate, to a target of the client library.

use std::error::Error;
use std::path::Path;

use p4runtime_client::{ClientTls, ServerTarget, TargetError};

use crate::load::{self, Pem};
use crate::output::Failure;

/// Values of `--addr` and `--tls-…`, or of the options with the same meaning in other commands.
#[derive(Clone, Copy, Debug)]
pub struct ServerOptions<'a> {
    /// `ADDRESS:PORT`, or a port of this machine.
    pub addr: &'a str,
    /// File with the authority that signed the server's certificate. Without it the client does not use TLS.
    pub tls_ca: Option<&'a Path>,
    /// File with the certificate to present.
    pub tls_cert: Option<&'a Path>,
    /// File with the key of that certificate.
    pub tls_key: Option<&'a Path>,
    /// Name in the server's certificate, where it differs from the host name of the address.
    pub tls_name: Option<&'a str>,
    /// Names of the options: that of the address, and the prefix of those of TLS.
    pub options: (&'static str, &'static str),
}

impl ServerOptions<'_> {
    /// Checks the options and reads the files.
    ///
    /// # Errors
    /// If options contradict each other, the address cannot be parsed, or a file is not in PEM form.
    pub fn target(&self) -> Result<ServerTarget, Failure> {
        let ServerOptions { tls_ca, tls_cert, tls_key, tls_name, options: (addr, tls), .. } = self;
        if tls_ca.is_none() && (tls_cert.is_some() || tls_key.is_some() || tls_name.is_some()) {
            return Err(Failure::Usage(format!("TLS requires {tls}-ca, the CA that signed the server's certificate")));
        }
        if tls_cert.is_some() != tls_key.is_some() {
            return Err(Failure::Usage(format!("{tls}-cert and {tls}-key must be given together")));
        }
        let refused = |error| match error {
            TargetError::Address { address, .. } => Failure::Usage(format!(
                "{addr} {address} is not a valid address: expected ADDRESS:PORT, such as 127.0.0.1:9559, or PORT"
            )),
            TargetError::Tls(error) => Failure::Input(causes("cannot use these TLS files", &error)),
        };
        let Some(authority) = tls_ca else { return ServerTarget::new(self.addr, None).map_err(refused) };
        // An address that cannot be parsed is reported before a file that cannot be read.
        ServerTarget::new(self.addr, None).map_err(refused)?;
        let authority = load::pem(authority, Pem::Certificate)?;
        let identity = match (tls_cert, tls_key) {
            (Some(certificate), Some(key)) => {
                Some((load::pem(certificate, Pem::Certificate)?, load::pem(key, Pem::Key)?))
            }
            _ => None,
        };
        let tls = ClientTls { authority, identity, server_name: tls_name.map(str::to_owned) };
        ServerTarget::new(self.addr, Some(&tls)).map_err(refused)
    }
}

/// Names of the options in most commands.
pub const OPTIONS: (&str, &str) = ("--addr", "--tls");

/// Appends an error's chain of causes to `failed`, each text once.
pub fn causes(failed: &str, error: &dyn Error) -> String {
    let (mut text, mut cause) = (failed.to_owned(), error.source());
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}
