//! Implements `--authorize`: the file of users that a server admits, and their rights.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use authorization::Policy;
use diagnostics::{Diagnostics, SourceMap};

use crate::load;
use crate::output::{Failure, Output};

/// The users of an authorization file, and its text for diagnostics.
pub struct UserFile {
    /// The users and their rights.
    pub policy: Arc<Policy>,
    map: SourceMap,
}

impl UserFile {
    /// Prints a warning for every pattern that matches none of these objects of a program.
    pub fn warn_of_unmatched(&self, objects: &[&str], output: &Output) {
        let mut diagnostics = Diagnostics::new();
        self.policy.check_objects(objects, &mut diagnostics);
        output.diagnostics(&self.map, &diagnostics);
    }
}

/// Reads an authorization file. `tls_ca` is the option without which clients have no names.
pub fn users(file: Option<&Path>, tls_ca: &Option<PathBuf>, output: &Output) -> Result<Option<UserFile>, Failure> {
    let Some(file) = file else { return Ok(None) };
    if tls_ca.is_none() {
        return Err(Failure::Usage(
            "--authorize requires TLS client certificates, whose names are the users: also pass --tls-cert, --tls-key, \
             and --tls-ca with the CA that signs the certificates of users"
                .to_owned(),
        ));
    }
    let text = load::read_regular(file, authorization::MAX_BYTES as u64)?;
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let id = map.add(&file.display().to_string(), text.as_str());
    let policy = Policy::parse(id, &text, &mut diagnostics);
    output.diagnostics(&map, &diagnostics);
    match policy {
        Some(policy) => Ok(Some(UserFile { policy: Arc::new(policy), map })),
        None => Err(Failure::Input(load::mistakes(diagnostics.error_count()))),
    }
}
