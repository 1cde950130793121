//! TLS of a gRPC server: who it is, and whom it lets in.

use std::time::Duration;

use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

/// Certificates and keys, as PEM.
#[derive(Clone)]
pub struct Tls {
    /// The server's certificate, with those that lead to an authority behind it.
    pub certificate: Vec<u8>,
    /// The key that belongs to it.
    pub key: Vec<u8>,
    /// The authority whose clients are let in; without it every client is.
    pub client_authority: Option<Vec<u8>>,
}

impl std::fmt::Debug for Tls {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("client_authority", &self.client_authority.is_some()).finish_non_exhaustive()
    }
}

impl Tls {
    /// Has a server speak TLS only; a client may take so long to agree on it.
    ///
    /// # Errors
    /// Why certificate or key are no good.
    pub fn secure(self, server: Server, patience: Duration) -> Result<Server, String> {
        let identity = Identity::from_pem(self.certificate, self.key);
        let mut config = ServerTlsConfig::new().identity(identity).timeout(patience);
        if let Some(authority) = self.client_authority {
            config = config.client_ca_root(Certificate::from_pem(authority));
        }
        server
            .tls_config(config)
            .map_err(|error| std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string))
    }
}
