//! An authority made for a test, and the certificates that it signs.

use std::process::Command;

use super::{Directory, run};

/// An authority and what it signed, as files.
pub struct Authority {
    directory: Directory,
}

impl Authority {
    /// `None` if there is no `openssl` here.
    pub fn new() -> Option<Authority> {
        Command::new("openssl").arg("version").output().ok()?;
        let authority = Authority { directory: Directory::new() };
        authority.certificate("ca", "basicConstraints=critical,CA:TRUE", None);
        Some(authority)
    }

    /// The path of a file of it.
    pub fn path(&self, name: &str) -> String {
        self.directory.path(name)
    }

    /// Makes a key and a certificate, signed by this or by itself.
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

    /// What is in one.
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("it was made")
    }
}
