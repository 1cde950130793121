//! Keeps layouts in a key of etcd.

use std::fmt;
use std::io;
use std::time::Duration;

use resilient::LayoutRecord;
use resilient_store::{Cluster, KeeperError, LayoutKeeper, LayoutSwap, LayoutText};
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::client::{CALL_TIMEOUT, EtcdClient, EtcdConnection, KeptValue, SwapOutcome};
use crate::endpoints::EtcdEndpoints;
use crate::error::EtcdError;

/// Interval at which the record is read, to detect that etcd is unreachable or that another operator has changed the
/// record.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum length of the prefix of keys, in bytes.
const MAX_PREFIX: usize = 200;

/// TLS settings, as PEM texts.
#[derive(Clone)]
pub struct EtcdTls {
    /// Certificates of the authorities that may have signed those of the servers.
    pub authority: String,
    /// Certificate and private key that the client presents.
    pub identity: Option<(String, String)>,
}

/// A user of etcd.
#[derive(Clone)]
pub struct EtcdLogin {
    /// Its name.
    pub user: String,
    /// Its password.
    pub password: String,
}

impl fmt::Debug for EtcdLogin {
    /// Omits the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdLogin").field("user", &self.user).finish_non_exhaustive()
    }
}

impl fmt::Debug for EtcdTls {
    /// Omits the private key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdTls").field("identity", &self.identity.is_some()).finish_non_exhaustive()
    }
}

/// Place and access of a record.
#[derive(Clone, Debug)]
pub struct EtcdConfig {
    /// The servers.
    pub endpoints: EtcdEndpoints,
    /// The beginning of the cluster's keys, such as `/triplane/lab`.
    pub prefix: String,
    /// TLS settings, for servers that use TLS.
    pub tls: Option<EtcdTls>,
    /// The user, for servers that require one.
    pub login: Option<EtcdLogin>,
}

/// The reason for which settings are refused.
#[derive(Debug, thiserror::Error)]
pub enum EtcdConfigError {
    /// The prefix of keys cannot be used.
    #[error("`{0}` is not a prefix of keys, such as /triplane/lab: 2 to {MAX_PREFIX} bytes that begin with /")]
    Prefix(String),
    /// There are TLS settings for servers without TLS.
    #[error("certificates have no effect for addresses that begin with http://")]
    UnusedTls,
    /// There are no TLS settings for servers with TLS.
    #[error("addresses that begin with https:// require the CA certificate that verifies the etcd servers")]
    NoAuthority,
    /// An address, a certificate or a key cannot be used.
    #[error("{0} cannot be used with these certificates and keys")]
    Endpoint(String, #[source] tonic::transport::Error),
    /// The executor of calls cannot be created.
    #[error("cannot start the client of etcd")]
    Start(#[source] io::Error),
}

/// Keeps the record of a cluster's operators in a key of etcd.
pub struct EtcdKeeper {
    runtime: Runtime,
    client: EtcdClient,
    key: String,
    text: LayoutText,
}

impl EtcdKeeper {
    /// Creates the keeper of a cluster. It connects with the first call.
    ///
    /// # Errors
    /// If the settings cannot be used.
    pub fn new(config: EtcdConfig, cluster: &Cluster) -> Result<EtcdKeeper, EtcdConfigError> {
        let EtcdConfig { endpoints, prefix, tls, login } = config;
        let trimmed = prefix.trim_end_matches('/');
        let is_prefix = trimmed.starts_with('/') && trimmed.len() <= MAX_PREFIX && !trimmed.contains(char::is_control);
        if !is_prefix {
            return Err(EtcdConfigError::Prefix(prefix));
        }
        match (endpoints.is_tls(), &tls) {
            (true, None) => return Err(EtcdConfigError::NoAuthority),
            (false, Some(_)) => return Err(EtcdConfigError::UnusedTls),
            _ => {}
        }
        let guess = match &tls {
            None => "; it may require TLS",
            Some(EtcdTls { identity: None, .. }) => "; it may require a certificate of this client",
            Some(_) => "",
        };
        let has_identity = tls.as_ref().is_some_and(|tls| tls.identity.is_some());
        let connection = |address: &str| {
            let endpoint = endpoint(address, tls.as_ref())?;
            Ok(EtcdConnection { address: address.to_owned(), endpoint, channel: None })
        };
        let connections = endpoints.addresses().map(connection).collect::<Result<Vec<_>, EtcdConfigError>>()?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(EtcdConfigError::Start)?;
        let client = EtcdClient::new(connections, (has_identity, guess), login);
        Ok(EtcdKeeper { runtime, client, key: format!("{trimmed}/layout"), text: LayoutText::new(cluster) })
    }

    /// Returns the key that has the record.
    pub fn key(&self) -> &str {
        &self.key
    }

    fn read(&mut self) -> Result<KeptValue, KeeperError> {
        self.runtime.block_on(self.client.read(self.key.as_bytes())).map_err(failed)
    }

    fn record(&self, value: Option<&[u8]>) -> Result<Option<LayoutRecord>, KeeperError> {
        let failed = |source| KeeperError::Text { place: format!("the key {} of etcd", self.key), source };
        value.map(|text| self.text.parse(text).map_err(failed)).transpose()
    }
}

fn failed(error: EtcdError) -> KeeperError {
    KeeperError::Service(error.to_string())
}

/// Returns the settings of connections to a server.
fn endpoint(address: &str, tls: Option<&EtcdTls>) -> Result<Endpoint, EtcdConfigError> {
    let refused = |source| EtcdConfigError::Endpoint(address.to_owned(), source);
    let scheme = if tls.is_some() { "https" } else { "http" };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{address}")).map_err(refused)?;
    let endpoint = endpoint.connect_timeout(CALL_TIMEOUT).tcp_nodelay(true);
    let Some(EtcdTls { authority, identity }) = tls else { return Ok(endpoint) };
    let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority));
    if let Some((certificate, key)) = identity {
        config = config.identity(Identity::from_pem(certificate, key));
    }
    endpoint.tls_config(config).map_err(refused)
}

impl LayoutKeeper for EtcdKeeper {
    fn load(&mut self) -> Result<Option<LayoutRecord>, KeeperError> {
        let kept = self.read()?;
        self.record(kept.value.as_deref())
    }

    fn compare_and_swap(&mut self, record: &LayoutRecord) -> Result<LayoutSwap, KeeperError> {
        let KeptValue { revision, value } = self.read()?;
        let kept = self.record(value.as_deref())?;
        if !record.follows(kept.as_ref()) {
            return Ok(LayoutSwap::Superseded(kept));
        }
        let text = self.text.emit(record).into_bytes();
        let swap = self.client.swap(self.key.as_bytes(), revision, text);
        match self.runtime.block_on(swap).map_err(failed)? {
            SwapOutcome::Replaced => Ok(LayoutSwap::Kept),
            SwapOutcome::Changed(KeptValue { value, .. }) => Ok(LayoutSwap::Superseded(self.record(value.as_deref())?)),
        }
    }

    fn check_interval(&self) -> Option<Duration> {
        Some(CHECK_INTERVAL)
    }
}
