//! Configures TLS of a gRPC server: its certificate, and the authority of its clients.

use std::sync::Arc;
use std::time::Duration;

use tonic::Extensions;
use tonic::transport::server::TlsConnectInfo;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

use crate::connection_limit::Slot;

/// Certificates and keys, as PEM.
#[derive(Clone)]
pub struct Tls {
    /// Certificate of the server, followed by the intermediate ones up to an authority.
    pub certificate: Vec<u8>,
    /// Private key of that certificate.
    pub key: Vec<u8>,
    /// Authority that has to have signed the certificates of clients. Without it clients need no certificate.
    pub client_authority: Option<Vec<u8>>,
}

/// Certificates or keys that cannot be used.
#[derive(Debug)]
pub struct TlsError(tonic::transport::Error);

impl std::fmt::Display for TlsError {
    /// Formats the cause: the transport's own text says nothing.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match std::error::Error::source(&self.0) {
            Some(cause) => write!(f, "{cause}"),
            None => write!(f, "{}", self.0),
        }
    }
}

impl std::error::Error for TlsError {}

impl std::fmt::Debug for Tls {
    /// Leaves the private key out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("client_authority", &self.client_authority.is_some()).finish_non_exhaustive()
    }
}

/// Returns the certificate (DER) of the client of a call, by the call's extensions. The authority of clients has signed
/// it. `None` if the connection is without TLS, or without a client certificate.
pub fn client_certificate<T: Send + Sync + 'static>(extensions: &Extensions) -> Option<Vec<u8>> {
    let certificates = extensions.get::<TlsConnectInfo<Arc<Slot<T>>>>()?.peer_certs()?;
    Some(certificates.first()?.as_ref().to_vec())
}

impl Tls {
    /// Configures a server to accept TLS only, with this maximum time for a handshake.
    ///
    /// # Errors
    /// If a certificate or key cannot be used.
    pub fn secure(self, server: Server, handshake_timeout: Duration) -> Result<Server, TlsError> {
        let identity = Identity::from_pem(self.certificate, self.key);
        let mut config = ServerTlsConfig::new().identity(identity).timeout(handshake_timeout);
        if let Some(authority) = self.client_authority {
            config = config.client_ca_root(Certificate::from_pem(authority));
        }
        server.tls_config(config).map_err(TlsError)
    }
}
