//! Reads the settings with which an operator uses etcd.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ::privileges::KeptAccess;
use anyhow::Context;
use resilient_etcd::{EndpointError, EtcdConfig, EtcdConfigError, EtcdEndpoints, EtcdKeeper, EtcdLogin, EtcdTls};
use resilient_store::Cluster;

use super::args::EtcdArgs;
use crate::output::Failure;
use crate::{load, privileges, tls_files};

/// Maximum length of a file with a password, in bytes.
const MAX_PASSWORD: u64 = 4096;

/// Returns the keeper of a cluster's layout in etcd, and the access that it needs.
pub fn keeper(args: &EtcdArgs, cluster: &Cluster) -> Result<(EtcdKeeper, KeptAccess), Failure> {
    let endpoints = EtcdEndpoints::parse(&args.etcd, args.etcd_plaintext).map_err(|error| match error {
        EndpointError::Plaintext(_) => Failure::Usage(format!("{error}, or pass --etcd-plaintext")),
        error => Failure::Usage(error.to_string()),
    })?;
    let kept = endpoints.addresses().map(privileges::client_access).reduce(KeptAccess::and).unwrap_or_default();
    let tls = match &args.etcd_ca {
        None => None,
        Some(path) => {
            let identity = args.etcd_cert.as_ref().zip(args.etcd_key.as_ref());
            let identity = identity.map(|(certificate, key)| tls_files::identity(certificate, key)).transpose()?;
            Some(EtcdTls { authority: tls_files::authority(path)?, identity })
        }
    };
    let login = match args.etcd_user.clone().zip(args.etcd_password_file.as_ref()) {
        Some((user, path)) => Some(EtcdLogin { user, password: password(path)? }),
        None => None,
    };
    let config = EtcdConfig { endpoints, prefix: args.etcd_prefix.clone(), tls, login };
    let keeper = EtcdKeeper::new(config, cluster).map_err(|error| match error {
        EtcdConfigError::NoAuthority => Failure::Usage(format!("{error}: pass --etcd-ca")),
        EtcdConfigError::UnusedTls => Failure::Usage(format!("{error}: use https://, or leave out --etcd-ca")),
        EtcdConfigError::Prefix(_) => Failure::Usage(error.to_string()),
        error => Failure::Environment(error.into()),
    })?;
    Ok((keeper, kept))
}

/// Reads the password in a file that only its owner may use.
fn password(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let file = load::open_regular(path)?;
    let mode = file.metadata().with_context(|| format!("cannot read {shown}"))?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let message = format!("other users may use the password file {shown}, whose mode is {mode:o}");
        return Err(Failure::Environment(anyhow::anyhow!("{message}: run `chmod 600 {shown}`")));
    }
    let mut text = String::new();
    file.take(MAX_PASSWORD + 1).read_to_string(&mut text).with_context(|| format!("cannot read {shown}"))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    if line.is_empty() || line.contains('\n') || text.len() as u64 > MAX_PASSWORD {
        return Err(Failure::Input(format!("the password file {shown} does not hold a password in one line")));
    }
    Ok(line.to_owned())
}
