//! `triplane ctl` over TLS, with certificates of an authority made for the test.

use p4runtime_server::Tls;

use crate::ctl::{ROUTER, Router};
use crate::support::authority::Authority;
use crate::support::{Done, run, triplane};

/// Starts a switch whose certificate is for a name that is not its address.
fn serve(authority: &Authority, is_mutual: bool) -> Router {
    let tls = Tls {
        certificate: authority.read("switch.pem"),
        key: authority.read("switch.key"),
        client_authority: is_mutual.then(|| authority.read("ca.pem")),
    };
    Router::start_with(ROUTER, Some(tls))
}

/// Runs `triplane ctl tables` with files of the authority.
fn tables(authority: &Authority, router: &Router, options: &[(&str, &str)], words: &[&str]) -> Done {
    let mut all = vec!["ctl".to_owned(), "--addr".to_owned(), router.address().to_string()];
    all.extend(options.iter().flat_map(|(option, file)| [(*option).to_owned(), authority.path(file)]));
    all.extend(words.iter().map(|word| (*word).to_owned()));
    all.push("tables".to_owned());
    run(&mut triplane(&all.iter().map(|word| &**word).collect::<Vec<_>>()))
}

const NAMED: &[&str] = &["--tls-name", "switch.test"];

#[test]
fn servers_and_clients_are_who_the_authority_says() {
    let Some(authority) = Authority::new() else { return testing::skip("openssl is not installed") };
    authority.certificate("switch", "subjectAltName=DNS:switch.test", Some("ca"));
    authority.certificate("person", "subjectAltName=DNS:person.test", Some("ca"));
    authority.certificate("other", "basicConstraints=critical,CA:TRUE", None);

    let router = serve(&authority, false);
    let done = tables(&authority, &router, &[("--tls-ca", "ca.pem")], NAMED).ok();
    assert!(done.stdout.contains("RouterIngress.ipv4_lpm"), "{done:?}");
    let refused = |done: Done, code: i32, said: &[&str]| {
        assert_eq!(done.code, Some(code), "{done:?}");
        said.iter().for_each(|said| assert!(done.stderr.contains(said), "no `{said}`: {done:?}"));
    };
    // The certificate is for another name, is signed by another authority, or TLS is not used at all.
    refused(tables(&authority, &router, &[("--tls-ca", "ca.pem")], &[]), 3, &["certificate"]);
    refused(tables(&authority, &router, &[("--tls-ca", "other.pem")], NAMED), 3, &["certificate"]);
    refused(tables(&authority, &router, &[], &[]), 3, &["if it uses TLS, pass --tls-ca"]);
    refused(tables(&authority, &router, &[], NAMED), 2, &["TLS requires --tls-ca"]);
    refused(
        tables(&authority, &router, &[("--tls-ca", "ca.pem"), ("--tls-cert", "person.pem")], NAMED),
        2,
        &["must be given together"],
    );
    refused(
        tables(&authority, &router, &[("--tls-ca", "ca.key")], NAMED),
        1,
        &["ca.key contains no certificate in PEM format"],
    );

    // This server does not use TLS.
    let plain = Router::start(ROUTER);
    let said = format!("the server on {} does not use TLS; omit --tls-ca", plain.address());
    refused(tables(&authority, &plain, &[("--tls-ca", "ca.pem")], NAMED), 3, &[&said]);

    // The server requires client certificates.
    let router = serve(&authority, true);
    let person = [("--tls-ca", "ca.pem"), ("--tls-cert", "person.pem"), ("--tls-key", "person.key")];
    tables(&authority, &router, &person, NAMED).ok();
    refused(tables(&authority, &router, &[("--tls-ca", "ca.pem")], NAMED), 3, &[]);
    let stranger = [("--tls-ca", "ca.pem"), ("--tls-cert", "other.pem"), ("--tls-key", "other.key")];
    refused(tables(&authority, &router, &stranger, NAMED), 3, &[]);
}
