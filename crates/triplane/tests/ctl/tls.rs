//! `triplane ctl` over TLS, with certificates of an authority made for the test.

use std::process::Command;

use p4runtime::Tls;

use crate::support::{Directory, Done, run, triplane};
use crate::{ROUTER, Router};

/// An authority and what it signed, as files.
struct Authority {
    directory: Directory,
}

impl Authority {
    /// `None` if there is no `openssl` here.
    fn new() -> Option<Authority> {
        Command::new("openssl").arg("version").output().ok()?;
        let authority = Authority { directory: Directory::new() };
        authority.certificate("ca", "basicConstraints=critical,CA:TRUE", None);
        Some(authority)
    }

    fn path(&self, name: &str) -> String {
        self.directory.path(name)
    }

    /// Makes a key and a certificate, signed by this or by itself.
    fn certificate(&self, name: &str, extension: &str, signer: Option<&str>) {
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

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("it was made")
    }

    /// A switch with a certificate for a name that is not its address.
    fn serve(&self, is_mutual: bool) -> Router {
        let tls = Tls {
            certificate: self.read("switch.pem"),
            key: self.read("switch.key"),
            client_authority: is_mutual.then(|| self.read("ca.pem")),
        };
        Router::start_with(ROUTER, Some(tls))
    }

    /// `triplane ctl tables` with files of this.
    fn tables(&self, router: &Router, options: &[(&str, &str)], words: &[&str]) -> Done {
        let mut all = vec!["ctl".to_owned(), "--addr".to_owned(), router.address().to_string()];
        all.extend(options.iter().flat_map(|(option, file)| [(*option).to_owned(), self.path(file)]));
        all.extend(words.iter().map(|word| (*word).to_owned()));
        all.push("tables".to_owned());
        run(&mut triplane(&all.iter().map(|word| &**word).collect::<Vec<_>>()))
    }
}

const NAMED: &[&str] = &["--tls-name", "switch.test"];

#[test]
fn servers_and_clients_are_who_the_authority_says() {
    let Some(authority) = Authority::new() else { return skip::test("openssl is not installed") };
    authority.certificate("switch", "subjectAltName=DNS:switch.test", Some("ca"));
    authority.certificate("person", "subjectAltName=DNS:person.test", Some("ca"));
    authority.certificate("other", "basicConstraints=critical,CA:TRUE", None);

    let router = authority.serve(false);
    let done = authority.tables(&router, &[("--tls-ca", "ca.pem")], NAMED).ok();
    assert!(done.stdout.contains("RouterIngress.ipv4_lpm"), "{done:?}");
    let refused = |done: Done, code: i32, said: &[&str]| {
        assert_eq!(done.code, Some(code), "{done:?}");
        said.iter().for_each(|said| assert!(done.stderr.contains(said), "no `{said}`: {done:?}"));
    };
    // Its certificate is for another name, of another authority, or not asked for.
    refused(authority.tables(&router, &[("--tls-ca", "ca.pem")], &[]), 3, &["certificate"]);
    refused(authority.tables(&router, &[("--tls-ca", "other.pem")], NAMED), 3, &["certificate"]);
    refused(authority.tables(&router, &[], &[]), 3, &["if the server uses TLS, give --tls-ca"]);
    refused(authority.tables(&router, &[], NAMED), 2, &["TLS needs --tls-ca"]);
    refused(
        authority.tables(&router, &[("--tls-ca", "ca.pem"), ("--tls-cert", "person.pem")], NAMED),
        2,
        &["need each other"],
    );
    refused(authority.tables(&router, &[("--tls-ca", "ca.key")], NAMED), 1, &["ca.key has no certificate in PEM form"]);

    // It does not use TLS.
    let plain = Router::start(ROUTER);
    let said = format!("the server on {} does not use TLS; leave out --tls-ca", plain.address());
    refused(authority.tables(&plain, &[("--tls-ca", "ca.pem")], NAMED), 3, &[&said]);

    // The server asks who comes.
    let router = authority.serve(true);
    let person = [("--tls-ca", "ca.pem"), ("--tls-cert", "person.pem"), ("--tls-key", "person.key")];
    authority.tables(&router, &person, NAMED).ok();
    refused(authority.tables(&router, &[("--tls-ca", "ca.pem")], NAMED), 3, &[]);
    let stranger = [("--tls-ca", "ca.pem"), ("--tls-cert", "other.pem"), ("--tls-key", "other.key")];
    refused(authority.tables(&router, &stranger, NAMED), 3, &[]);
}
