//! `triplane subscribe` over TLS: to the service, from the service to the switch, and users by their certificates.

use crate::support::authority::Authority;
use crate::support::rig::Rig;
use crate::support::service::{self, Service};
use crate::support::{Directory, Done, run, triplane};
use p4runtime_server::Tls;
use testing::port::reserved_address;

/// Runs `triplane subscribe` with files of the authority, and with `--tls-name` if the service has TLS.
fn run_command(
    service: &Service,
    authority: &Authority,
    words: &[&str],
    files: &[(&str, &str)],
    name: &[&str],
) -> Done {
    let mut all: Vec<String> = ["subscribe"].iter().chain(words).map(|word| (*word).to_owned()).collect();
    all.extend(["--service".to_owned(), service.address.clone()]);
    all.extend(files.iter().flat_map(|(option, file)| [(*option).to_owned(), authority.path(file)]));
    all.extend(name.iter().map(|word| (*word).to_owned()));
    run(&mut triplane(&all.iter().map(|word| &**word).collect::<Vec<_>>()))
}

const NAMED: &[&str] = &["--tls-name", "service.test"];
const CA: (&str, &str) = ("--tls-ca", "ca.pem");

fn refused(done: &Done, code: i32, said: &str) {
    assert!(done.code == Some(code) && done.stderr.contains(said), "no `{said}`, or not {code}: {done:?}");
}

#[test]
fn services_switches_and_users_are_who_the_authority_says() {
    let Some(authority) = Authority::new() else { return testing::skip("openssl is not installed") };
    authority.certificate("switch", "subjectAltName=DNS:switch.test", Some("ca"));
    authority.certificate("service", "subjectAltName=DNS:service.test", Some("ca"));
    authority.certificate("person", "subjectAltName=DNS:person.test", Some("ca"));
    authority.certificate("other", "basicConstraints=critical,CA:TRUE", None);
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2)\n");
    // The switch requires client certificates, too.
    let address = reserved_address();
    let tls = Tls {
        certificate: authority.read("switch.pem"),
        key: authority.read("switch.key"),
        client_authority: Some(authority.read("ca.pem")),
    };
    let _rig = Rig::over(8, address, Some(tls));
    let [ca, certificate, key] = ["ca.pem", "service.pem", "service.key"].map(|name| authority.path(name));
    let to_switch = ["--switch-tls-ca", &ca, "--switch-tls-name", "switch.test"];
    let shown = ["--switch-tls-cert", &certificate, "--switch-tls-key", &key];
    let served = ["--tls-cert", &certificate, "--tls-key", &key];

    // A client needs only the authority's certificate to verify the service; the service asks for no client
    // certificate.
    let mut open = Service::start(&rules, address, &[&to_switch[..], &shown, &served].concat());
    open.running.wait_for("the switch applies 1 rule");
    let id = run_command(&open, &authority, &["add", "price > 5 : fwd(3)"], &[CA], NAMED).ok().stdout;
    assert!(run_command(&open, &authority, &["list"], &[CA], NAMED).ok().stdout.contains("price > 5"));
    run_command(&open, &authority, &["remove", id.trim()], &[CA], NAMED).ok();
    refused(&run_command(&open, &authority, &["list"], &[CA], &[]), 3, "certificate");
    refused(&run_command(&open, &authority, &["list"], &[("--tls-ca", "other.pem")], NAMED), 3, "certificate");
    refused(&run_command(&open, &authority, &["list"], &[], &[]), 3, "if it uses TLS, pass --tls-ca");
    refused(&run_command(&open, &authority, &["list"], &[], NAMED), 2, "TLS requires --tls-ca");
    drop(open);

    // Only users with a certificate of the authority may change or list rules.
    let mutual = [&served[..], &["--tls-ca", &ca]].concat();
    let mut closed = Service::start(&rules, address, &[&to_switch[..], &shown, &mutual].concat());
    closed.running.wait_for("the switch applies 1 rule");
    let person = [CA, ("--tls-cert", "person.pem"), ("--tls-key", "person.key")];
    run_command(&closed, &authority, &["add", "price > 5 : fwd(3)"], &person, NAMED).ok();
    refused(
        &run_command(&closed, &authority, &["add", "price > 6 : fwd(3)"], &[CA], NAMED),
        3,
        "pass --tls-cert and --tls-key",
    );
    refused(&run_command(&closed, &authority, &["list"], &[CA], NAMED), 3, "pass --tls-cert and --tls-key");
    let stranger = [CA, ("--tls-cert", "other.pem"), ("--tls-key", "other.key")];
    refused(&run_command(&closed, &authority, &["add", "price > 6 : fwd(3)"], &stranger, NAMED), 3, "");
    assert_eq!(run_command(&closed, &authority, &["list"], &person, NAMED).ok().stdout.lines().count(), 2);
    drop(closed);

    // The switch refuses clients without a certificate, and reports it to a service that has none.
    let mut nobody = Service::start(&rules, address, &to_switch);
    nobody.running.wait_for("pass --switch-tls-cert and --switch-tls-key");
    assert_eq!(nobody.tell(&["add", "price > 5 : fwd(3)"]).code, Some(3));
    refused(&run_command(&nobody, &authority, &["list"], &[CA], NAMED), 3, "does not use TLS; leave out --tls-ca");
    // A switch with TLS and a service without it, and the reverse.
    let mut plain = Service::start(&rules, address, &[]);
    plain.running.wait_for("if it uses TLS, pass --switch-tls-ca");
    drop(plain);
    let other = reserved_address();
    let _plain = Rig::new(8, other);
    let mut secure = Service::start(&rules, other, &to_switch);
    secure.running.wait_for("does not use TLS: omit --switch-tls-ca");
    drop(secure);
    let start = |more: &[&str]| {
        let serve = ["subscribe", "serve", service::FORMAT, &rules, "--listen", "0"];
        run(&mut triplane(&[&serve[..], more].concat()))
    };
    refused(&start(&["--tls-ca", &ca]), 2, "--tls-cert");
    refused(&start(&["--tls-cert", &certificate]), 2, "--tls-key");
    refused(&start(&["--switch-tls-name", "switch.test"]), 2, "TLS requires --switch-tls-ca");
    refused(&start(&["--tls-cert", &certificate, "--tls-key", &authority.path("person.key")]), 1, "does not belong to");
}
