//! Two hosts with real network stacks and a namespace between them for the router, as `examples/router` has them:
//!
//! ```text
//!  h1 10.0.1.1/24 ── eth0   p1 ── router ── p2   eth0 ── 10.0.2.2/24 h2
//!     gateway 10.0.1.254                                 gateway 10.0.2.254
//! ```

use std::process::Command;

use super::{Done, Running, run, triplane, unique};

/// The network. Dropping it deletes its namespaces, and with them the links.
pub struct Network {
    suffix: String,
}

/// A host: name, network, last byte of its address, and its and the gateway's MAC address.
const HOSTS: [(&str, u8, u8, &str, &str); 2] =
    [("h1", 1, 1, "02:00:00:00:01:01", "02:00:00:00:01:fe"), ("h2", 2, 2, "02:00:00:00:02:02", "02:00:00:00:02:fe")];

impl Network {
    /// Returns the reason why no network is possible here, or `None` if one is.
    pub fn obstacle(tools: &[&str]) -> Option<String> {
        for tool in ["ip"].iter().chain(tools) {
            let found = run(Command::new("sh").args(["-c", &format!("command -v {tool}")]));
            if found.code != Some(0) {
                return Some(format!("the program `{tool}` is not installed"));
            }
        }
        let name = format!("triplane-{}", unique());
        let made = run(Command::new("ip").args(["netns", "add", &name]));
        let _ = run(Command::new("ip").args(["netns", "delete", &name]));
        let reason = made.stderr.lines().next().unwrap_or_default().to_owned();
        (made.code != Some(0)).then(|| format!("network namespaces cannot be made: {reason}"))
    }

    /// Creates both hosts, up and with their routes. With `static_neighbours` they know the gateway's MAC address;
    /// without it, they resolve it.
    pub fn new(static_neighbours: bool) -> Network {
        let network = Network { suffix: unique() };
        for name in ["router", "h1", "h2"] {
            ip(&["netns", "add", &network.namespace(name)]);
        }
        let router = network.namespace("router");
        for (host, number, last, mac, gateway_mac) in HOSTS {
            let (namespace, port) = (network.namespace(host), format!("p{number}"));
            ip(&["link", "add", "eth0", "netns", &namespace, "type", "veth", "peer", "name", &port, "netns", &router]);
            // Without link-local addresses the kernel sends no IPv6 of its own, so that packets can be counted.
            for (namespace, link) in [(&namespace, "eth0"), (&router, port.as_str())] {
                ip(&["-n", namespace, "link", "set", link, "addrgenmode", "none"]);
            }
            let gateway = format!("10.0.{number}.254");
            ip(&["-n", &namespace, "link", "set", "eth0", "address", mac]);
            ip(&["-n", &namespace, "address", "add", &format!("10.0.{number}.{last}/24"), "dev", "eth0"]);
            ip(&["-n", &router, "link", "set", &port, "up"]);
            ip(&["-n", &namespace, "link", "set", "eth0", "up"]);
            ip(&["-n", &namespace, "link", "set", "lo", "up"]);
            ip(&["-n", &namespace, "route", "add", "default", "via", &gateway]);
            if static_neighbours {
                ip(&["-n", &namespace, "neighbour", "add", &gateway, "lladdr", gateway_mac, "dev", "eth0"]);
            }
        }
        network
    }

    /// Returns a command that runs a program in a namespace.
    pub fn command(&self, namespace: &str, program: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(namespace)]).args(program).current_dir(super::root());
        command
    }

    /// Runs a program in a namespace to its end.
    #[track_caller]
    pub fn run(&self, namespace: &str, program: &[&str]) -> Done {
        run(&mut self.command(namespace, program))
    }

    /// Starts the router on its two ports, with additional arguments for `triplane run`.
    pub fn router(&self, more: &[&str]) -> Running {
        let mut running = self.router_on(["1=p1", "2=p2"], more);
        running.wait_for("press Ctrl-C to stop");
        running
    }

    /// Starts the router on ports of other kinds, and does not wait until it runs.
    pub fn router_on(&self, [one, two]: [&str; 2], more: &[&str]) -> Running {
        let binary = triplane(&[]).get_program().to_str().expect("a path").to_owned();
        let arguments = ["run", "examples/router/router.p4", "--entries", "examples/router/entries.json"];
        let ports = ["--port", one, "--port", two];
        let whole: Vec<&str> = [&[binary.as_str()], &arguments[..], &ports[..], more].concat();
        Running::start(&mut self.command("router", &whole))
    }

    /// Returns the answer of the metrics listener at an address in the router's namespace. Needs `perl`.
    #[track_caller]
    pub fn scrape(&self, address: &str) -> String {
        let scraper = r#"
            my $peer = IO::Socket::INET->new(PeerAddr => $ARGV[0], Timeout => 20) or die "no answer: $!";
            print $peer "GET /metrics HTTP/1.1\r\nHost: router\r\n\r\n";
            print while <$peer>;
        "#;
        self.run("router", &["perl", "-MIO::Socket::INET", "-e", scraper, address]).ok().stdout
    }

    fn namespace(&self, name: &str) -> String {
        format!("triplane-{}-{name}", self.suffix)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in ["router", "h1", "h2"] {
            let _ = Command::new("ip").args(["netns", "delete", &self.namespace(name)]).output();
        }
    }
}

#[track_caller]
fn ip(arguments: &[&str]) {
    run(Command::new("ip").args(arguments)).ok();
}
