//! Files of certificates and keys that a server cannot use: a sentence with the file and the remedy, before anything is
//! opened.

use crate::support::authority::Authority;
use crate::support::{Directory, root, run, triplane};

/// Returns the path of a certificate that expired in 2020, or of its key.
fn expired(name: &str) -> String {
    let path = root().join("crates/credentials/testdata").join(name);
    path.to_str().expect("a path in UTF-8").to_owned()
}

#[test]
fn files_of_a_server_are_refused_with_their_names_and_the_remedy() {
    let Some(authority) = Authority::new() else { return testing::skip("openssl is not installed") };
    for name in ["switch", "other"] {
        authority.certificate(name, "subjectAltName=DNS:switch.test", Some("ca"));
    }
    let directory = Directory::new();
    let [ca, certificate, key] = ["ca.pem", "switch.pem", "switch.key"].map(|name| authority.path(name));
    let text = String::from_utf8(authority.read("switch.pem")).expect("PEM is text");
    let damaged = directory.write("damaged.pem", text.replacen("MII", "AAA", 1));
    let two = directory.write("two.pem", text.clone() + &text.replacen("MII", "AAA", 1));
    let der = directory.write("switch.der", [0x30, 0x82, 1, 0, 0xff, 0xfe]);
    let encrypted = expired("encrypted.key");
    let [old, old_key] = ["expired.pem", "certificate.key"].map(expired);
    let [none, other] = [directory.path("none.pem"), authority.path("other.key")];
    for (tls, code, said) in [
        ([&certificate, &other, &ca], 1, "other.key does not belong to the certificate in "),
        ([&key, &certificate, &ca], 1, "switch.key contains no certificate in PEM format, but a private key; give"),
        ([&certificate, &certificate, &ca], 1, "switch.pem contains no private key in PEM format; give the file with"),
        ([&damaged, &key, &ca], 1, "the certificate in "),
        ([&two, &key, &ca], 1, "the certificate number 2 in "),
        ([&der, &key, &ca], 1, "switch.der contains no certificate in PEM format; convert it with `openssl x509"),
        ([&old, &old_key, &ca], 1, "expired.pem expired at 2020-12-31T00:00:00Z; renew it"),
        ([&certificate, &encrypted, &ca], 1, "encrypted.key is encrypted; decrypt it with `openssl pkey -in "),
        ([&certificate, &key, &old], 1, "expired.pem expired at "),
        ([&certificate, &key, &key], 1, "switch.key contains no certificate in PEM format"),
        ([&none, &key, &ca], 3, "none.pem: No such file or directory (os error 2); expected a certificate in PEM"),
        ([&certificate, &none, &ca], 3, "expected the private key of the certificate in PEM format"),
        ([&certificate, &key, &none], 3, "expected the certificate of a CA in PEM format"),
    ] {
        let [cert, key, ca] = tls;
        let files = ["--tls-cert", cert, "--tls-key", key, "--tls-ca", ca];
        let served = ["run", "examples/router/router.p4", "--port", "1=no-such-if", "--p4runtime", "0"];
        let done = run(&mut triplane(&[&served[..], &files].concat()));
        assert_eq!(done.code, Some(code), "{said}: {done:?}");
        assert!(done.stderr.starts_with("error: ") && done.stderr.contains(said), "no `{said}`: {done:?}");
        assert_eq!(done.stderr.lines().count(), 1, "one sentence: {done:?}");
    }
}
