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
    let cannot = format!("cannot connect to {}: ", router.address());
    refused(
        tables(&authority, &router, &[("--tls-ca", "ca.pem")], &[]),
        3,
        &[&cannot, "is for switch.test, not for 127.0.0.1; pass --tls-name switch.test if this is the right server"],
    );
    refused(
        tables(&authority, &router, &[("--tls-ca", "other.pem")], NAMED),
        3,
        &[&cannot, "is not signed by the given authority; pass --tls-ca with the CA that signed it instead of /"],
    );
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
        &[
            "ca.key contains no certificate in PEM format, but a private key; give the file with the certificate of a CA",
        ],
    );
    let wrong_key = [("--tls-ca", "ca.pem"), ("--tls-cert", "person.pem"), ("--tls-key", "switch.key")];
    refused(tables(&authority, &router, &wrong_key, NAMED), 1, &["switch.key does not belong to the certificate in"]);
    refused(
        tables(&authority, &router, &[("--tls-ca", "none.pem")], NAMED),
        3,
        &["none.pem: No such file", "expected the certificate of a CA in PEM format"],
    );
    refused(
        tables(&authority, &router, &[("--tls-ca", "ca.pem")], &["--tls-name", "no name"]),
        2,
        &["--tls-name no name is not a valid name of a server"],
    );

    // This server does not use TLS.
    let plain = Router::start(ROUTER);
    let said = format!("the server on {} does not use TLS; omit --tls-ca", plain.address());
    refused(tables(&authority, &plain, &[("--tls-ca", "ca.pem")], NAMED), 3, &[&said]);

    // The server requires client certificates.
    let router = serve(&authority, true);
    let person = [("--tls-ca", "ca.pem"), ("--tls-cert", "person.pem"), ("--tls-key", "person.key")];
    tables(&authority, &router, &person, NAMED).ok();
    // The reason of the server may be lost with the connection, so there are two sentences with one remedy.
    let without = tables(&authority, &router, &[("--tls-ca", "ca.pem")], NAMED);
    refused(without, 3, &["client", "pass --tls-cert and --tls-key"]);
    let stranger = [("--tls-ca", "ca.pem"), ("--tls-cert", "other.pem"), ("--tls-key", "other.key")];
    refused(tables(&authority, &router, &stranger, NAMED), 3, &["client certificate", "other.pem"]);
}

#[test]
fn the_certificate_of_a_ca_is_none_of_a_server() {
    let Some(authority) = Authority::new() else { return testing::skip("openssl is not installed") };
    let tls = Tls { certificate: authority.read("ca.pem"), key: authority.read("ca.key"), client_authority: None };
    let router = Router::start_with(ROUTER, Some(tls));
    let done = tables(&authority, &router, &[("--tls-ca", "ca.pem")], &["--tls-name", "ca"]);
    assert_eq!(done.code, Some(3), "{done:?}");
    let expected = "the server's certificate is that of a CA, which can only sign others; create the server's";
    assert!(done.stderr.contains(expected), "{done:?}");
}
