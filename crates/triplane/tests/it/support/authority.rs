//! A certificate authority made for a test, and the certificates that it signs.

use std::process::Command;

use super::{Directory, run};

/// A certificate authority and the certificates that it signed, as files.
pub struct Authority {
    directory: Directory,
}

impl Authority {
    /// Creates an authority. Returns `None` if `openssl` is not installed.
    pub fn new() -> Option<Authority> {
        Command::new("openssl").arg("version").output().ok()?;
        let authority = Authority { directory: Directory::new() };
        authority.certificate("ca", "basicConstraints=critical,CA:TRUE", None);
        Some(authority)
    }

    /// Returns the path of a file of the authority.
    pub fn path(&self, name: &str) -> String {
        self.directory.path(name)
    }

    /// Creates a key and a certificate that is signed by `signer` or by itself.
    pub fn certificate(&self, name: &str, extension: &str, signer: Option<&str>) {
        let (key, certificate) = (self.path(&format!("{name}.key")), self.path(&format!("{name}.pem")));
        let subject = format!("/CN={name}");
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        command.args(["-days", "2", "-subj", &subject, "-addext", extension, "-keyout", &key, "-out", &certificate]);
        if let Some(signer) = signer {
            command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
            command.args(["-CA", &self.path(&format!("{signer}.pem")), "-CAkey", &self.path(&format!("{signer}.key"))]);
        }
        run(&mut command).ok();
    }

    /// Reads a file of the authority.
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("it was made")
    }
}
