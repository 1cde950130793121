//! Connects to a server by its address and TLS settings.

use std::time::Duration;

use credentials::HandshakeFailure;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::CONNECT_TIMEOUT;

/// TLS settings of a client, as PEM texts.
#[derive(Clone)]
pub struct ClientTls {
    /// Certificate of the authority that signed the server's certificate.
    pub authority: String,
    /// Certificate and private key that the client presents, for servers that ask for one.
    pub identity: Option<(String, String)>,
    /// Name in the server's certificate, where it differs from the host name of the address.
    pub server_name: Option<String>,
}

impl std::fmt::Debug for ClientTls {
    /// Leaves the private key out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("ClientTls");
        shown
            .field("identity", &self.identity.is_some())
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

/// A gRPC server to connect to: its address, with TLS or without.
#[derive(Clone, Debug)]
pub struct ServerTarget {
    address: String,
    endpoint: Endpoint,
    is_tls: bool,
    has_identity: bool,
}

/// An address or TLS settings that no connection can be made with.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The text is not an address.
    #[error("`{address}` is not an address")]
    Address {
        /// The text as it was given.
        address: String,
        /// The parser's finding; `None` if the address has no port.
        source: Option<tonic::transport::Error>,
    },
    /// A certificate or key cannot be used.
    #[error("these TLS certificates and keys cannot be used")]
    Tls(#[source] tonic::transport::Error),
}

/// A failed connection attempt.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing answers at the address.
    #[error("cannot connect to {address}")]
    Unreachable {
        /// `HOST:PORT` of the server.
        address: String,
        /// The transport's error, with its chain of causes.
        source: tonic::transport::Error,
    },
    /// The client uses TLS and the server at the address does not.
    #[error("the server on {address} does not use TLS")]
    NotTls {
        /// `HOST:PORT` of the server.
        address: String,
    },
    /// The TLS handshake failed.
    #[error("cannot connect to {address}: {failure}")]
    Handshake {
        /// `HOST:PORT` of the server.
        address: String,
        /// The cause. It is not [`HandshakeFailure::NotTls`].
        failure: HandshakeFailure,
    },
    /// The connection was not established in time.
    #[error("cannot connect to {address} within {} s", after.as_secs())]
    Timeout {
        /// `HOST:PORT` of the server.
        address: String,
        /// Time after which the attempt was given up.
        after: Duration,
    },
    /// The executor of a blocking client cannot be created.
    #[error("cannot start the client")]
    Start(#[source] std::io::Error),
}

impl ServerTarget {
    /// Checks an address and TLS settings. `address` is `HOST:PORT`, or `PORT` or `:PORT` for this machine; `http://`
    /// before it is ignored.
    ///
    /// # Errors
    /// If the address cannot be parsed or has no port, or a certificate or key cannot be used.
    pub fn new(address: &str, tls: Option<&ClientTls>) -> Result<ServerTarget, TargetError> {
        let full = full_address(address);
        let refused = |source| TargetError::Address { address: address.to_owned(), source };
        if !has_port(&full) {
            return Err(refused(None));
        }
        let scheme = if tls.is_some() { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{full}")).map_err(|source| refused(Some(source)))?;
        let mut endpoint = endpoint.connect_timeout(CONNECT_TIMEOUT).tcp_nodelay(true);
        if let Some(tls) = tls {
            let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.authority));
            if let Some((certificate, key)) = &tls.identity {
                config = config.identity(Identity::from_pem(certificate, key));
            }
            if let Some(name) = &tls.server_name {
                config = config.domain_name(name);
            }
            endpoint = endpoint.tls_config(config).map_err(TargetError::Tls)?;
        }
        let has_identity = tls.is_some_and(|tls| tls.identity.is_some());
        Ok(ServerTarget { address: full, endpoint, is_tls: tls.is_some(), has_identity })
    }

    /// Returns the address as `HOST:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether the client uses TLS.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Whether the client has a certificate to present.
    pub fn has_identity(&self) -> bool {
        self.has_identity
    }

    /// Connects, within [`CONNECT_TIMEOUT`].
    ///
    /// # Errors
    /// If nothing answers at the address in time, the TLS handshake fails, or only the client uses TLS. A server that
    /// expects TLS, or a client certificate, is noticed only at the first call: it ends the connection then
    /// ([`crate::CallError::Transport`]).
    pub async fn connect(&self) -> Result<Channel, ConnectError> {
        let address = || self.address.clone();
        match tokio::time::timeout(CONNECT_TIMEOUT, self.endpoint.connect()).await {
            Ok(Ok(channel)) => Ok(channel),
            Ok(Err(source)) => Err(match HandshakeFailure::of(&source) {
                Some(HandshakeFailure::NotTls) => ConnectError::NotTls { address: address() },
                Some(failure) => ConnectError::Handshake { address: address(), failure },
                None => ConnectError::Unreachable { address: address(), source },
            }),
            Err(_) => Err(ConnectError::Timeout { address: address(), after: CONNECT_TIMEOUT }),
        }
    }
}

/// Expands `PORT` and `:PORT` to an address of this machine, and drops `http://`, which other programs print before an
/// address.
fn full_address(text: &str) -> String {
    match text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => text.trim_start_matches("http://").trim_end_matches('/').to_owned(),
    }
}

/// Whether an address is `HOST:PORT` or `[IPv6]:PORT`. Without a port, the client would connect to that of web servers.
fn has_port(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let is_host = !host.is_empty() && (!host.contains(':') || host.starts_with('[') && host.ends_with(']'));
    is_host && port.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_in_several_ways() {
        let address = |text| ServerTarget::new(text, None).expect("an address").address().to_owned();
        assert_eq!(address("9559"), "127.0.0.1:9559");
        assert_eq!(address(":9559"), "127.0.0.1:9559");
        assert_eq!(address("http://10.0.0.1:9559"), "10.0.0.1:9559");
        assert_eq!(address("http://10.0.0.1:9559/"), "10.0.0.1:9559");
        assert_eq!(address("switch.example:9559"), "switch.example:9559");
        assert_eq!(address("[::1]:9559"), "[::1]:9559");
    }

    #[test]
    fn a_text_that_is_no_address_is_refused() {
        for text in ["not an address", "foo", "127.0.0.1", "host:", ":", "host:0", "host:99999", "::1", "[::1]"] {
            let refused = ServerTarget::new(text, None);
            assert!(matches!(refused, Err(TargetError::Address { address, .. }) if address == text), "{text}");
        }
    }
}
