//! Converts the options that say where a gRPC server is, and how to authenticate, to a target of the client library.

use std::error::Error;
use std::path::Path;

use p4runtime_client::{ClientTls, HandshakeFailure, ServerTarget, TargetError};

use crate::output::Failure;
use crate::tls_files;

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
            // The files have been checked. What remains is the name that the certificate has to have.
            TargetError::Tls(error) => Failure::Usage(match tls_name {
                Some(name) => causes(&format!("{tls}-name {name} is not a valid name of a server"), &error),
                None => causes(&format!("the host in {addr} {} needs {tls}-name", self.addr), &error),
            }),
        };
        let Some(authority) = tls_ca else { return ServerTarget::new(self.addr, None).map_err(refused) };
        // An address that cannot be parsed is reported before a file that cannot be read.
        ServerTarget::new(self.addr, None).map_err(refused)?;
        let authority = tls_files::authority(authority)?;
        let identity = match (tls_cert, tls_key) {
            (Some(certificate), Some(key)) => Some(tls_files::identity(certificate, key)?),
            _ => None,
        };
        let tls = ClientTls { authority, identity, server_name: tls_name.map(str::to_owned) };
        ServerTarget::new(self.addr, Some(&tls)).map_err(refused)
    }

    /// Returns the sentence for a TLS handshake that failed, with the remedy.
    pub fn handshake_sentence(&self, failure: &HandshakeFailure) -> String {
        let tls = self.options.1;
        let instead =
            |file: Option<&Path>| file.map_or(String::new(), |file| format!(" instead of {}", file.display()));
        let remedy = match failure {
            HandshakeFailure::NotTls => format!("omit {tls}-ca and the other TLS options"),
            HandshakeFailure::UnknownAuthority => {
                format!("pass {tls}-ca with the CA that signed it{}", instead(self.tls_ca))
            }
            HandshakeFailure::OtherName { presented, .. } => match presented.first() {
                Some(name) => format!("pass {tls}-name {name} if this is the right server"),
                None => "the server needs one with a subject alternative name".to_owned(),
            },
            HandshakeFailure::OtherTime => "renew it at the server, or set the clock of this machine".to_owned(),
            HandshakeFailure::IssuesCertificates => {
                "create the server's certificate with `-addext basicConstraints=critical,CA:FALSE`".to_owned()
            }
            HandshakeFailure::BadCertificate(_) => "the server needs another one".to_owned(),
            HandshakeFailure::ClientCertificateRequired => format!("pass {tls}-cert and {tls}-key"),
            HandshakeFailure::ClientCertificateRefused { is_expired: true } => {
                "renew it, or set the clock of the server".to_owned()
            }
            HandshakeFailure::ClientCertificateRefused { is_expired: false } => {
                format!("pass {tls}-cert with a certificate that the server's CA signed{}", instead(self.tls_cert))
            }
            HandshakeFailure::Other(_) => "check that both sides support TLS 1.2 or 1.3".to_owned(),
        };
        format!("cannot connect to {}: {failure}; {remedy}", self.addr)
    }

    /// Returns the remedy for a connection that ended before the first answer, without a reason. A server that refuses
    /// a client's certificate may close the connection before its reason arrives.
    pub fn broken_remedy(&self) -> String {
        let tls = self.options.1;
        match (self.tls_ca, self.tls_cert) {
            (None, _) => format!("if it uses TLS, pass {tls}-ca with the CA that signed its certificate"),
            (Some(_), None) => format!("if it requires client certificates, pass {tls}-cert and {tls}-key"),
            (Some(_), Some(file)) => {
                format!("it may require a client certificate of another CA than that in {}", file.display())
            }
        }
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
