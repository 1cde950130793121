//! Defines the programs, their traffic, and the entries of tables that otherwise stores fill.

use std::error::Error;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use ports::load::{Flood, FrameMix, FrameVariety, Vary};
use serde_json::{Value, json};
use wire::ipv4;

use crate::load;

/// Number of flows, users or keys.
pub const FLOWS: u32 = 512;

/// Length of frames.
const LENGTH: usize = 60;

/// First address of the flows inside.
const INSIDE: u32 = 0x0a01_0000;
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 100);
const PORTS: [u16; 2] = [40_000, 80];

/// An example program and its traffic, which arrives at port 1.
#[derive(Clone, Copy, Debug)]
pub struct Application {
    /// Its name in the table, and as the argument of a load.
    pub name: &'static str,
    /// The path of the program below `examples`.
    pub program: &'static str,
    /// The smallest acceptable ratio of throughput.
    pub bound: f64,
    /// Whether frames leave by port 1, at which they arrived.
    pub answers: bool,
    traffic: Traffic,
}

#[derive(Clone, Copy, Debug)]
enum Traffic {
    /// Datagrams from inside to an address, after headers with this type and these bytes.
    Flows { to: Ipv4Addr, header: &'static [u8] },
    /// Data packets of users; 4 of 64 are for signalling. (In the paper 1 of 18 is.)
    Users,
    /// Requests of a key-value store.
    Keys,
}

/// The key-value store, whose share of updates is chosen.
pub const KEY_VALUE: Application =
    Application { name: "key-value", program: "key-value/store.p4", bound: 0.0, answers: true, traffic: Traffic::Keys };

/// All programs with a bound.
pub const APPLICATIONS: [Application; 6] = [
    Application {
        name: "nat",
        program: "nat/nat.p4",
        bound: 0.97,
        answers: false,
        traffic: Traffic::Flows { to: OUTSIDE, header: &[8, 0] },
    },
    Application {
        name: "connection-firewall",
        program: "connection-firewall/firewall.p4",
        bound: 0.97,
        answers: false,
        traffic: Traffic::Flows { to: OUTSIDE, header: &[8, 0] },
    },
    Application {
        name: "sticky-balancer",
        program: "sticky-balancer/balancer.p4",
        bound: 0.97,
        answers: false,
        traffic: Traffic::Flows { to: SERVICE, header: &[8, 0] },
    },
    Application {
        name: "heavy-hitters",
        program: "heavy-hitters/hitters.p4",
        bound: 0.97,
        answers: false,
        traffic: Traffic::Flows { to: OUTSIDE, header: &[0x81, 0, 0, 7, 8, 0] },
    },
    Application { name: "gateway", program: "gateway/gateway.p4", bound: 0.9, answers: true, traffic: Traffic::Users },
    Application {
        name: "flow-counter",
        program: "flow-counter/counter.p4",
        bound: 0.5,
        answers: false,
        traffic: Traffic::Flows { to: OUTSIDE, header: &[0x88, 0xb5, 0, 0, 0, 0, 8, 0] },
    },
];

impl Application {
    /// Returns the number of each 64 frames that write in measurements, unless it is chosen.
    pub fn usual_share(&self) -> u32 {
        if let Traffic::Users = self.traffic { 4 } else { 0 }
    }

    /// Returns the number of each 64 frames that write while the rows are fetched: the rows of users then have a
    /// tunnel.
    pub fn first_share(&self) -> u32 {
        if let Traffic::Users = self.traffic { 64 } else { self.usual_share() }
    }

    /// Returns its entries file, with entries of all flows for a program without annotations.
    pub fn entries(&self, is_plain: bool) -> Option<String> {
        let mac = |last: u8| format!("02:aa:00:00:00:0{last}");
        let mut all: Vec<Value> = Vec::new();
        let mut add = |table: &str, keys: Value, action: &str, params: Value| {
            all.push(json!({ "table": table, "match": keys, "action_name": action, "action_params": params }));
        };
        let port = json!({ "standard.ingress_port": 1 });
        let flows = (0..if is_plain { FLOWS } else { 0 }).map(|flow| (flow, Ipv4Addr::from(INSIDE + flow).to_string()));
        match self.name {
            "nat" => {
                let params = json!({ "port": 2, "own": mac(2), "next": mac(3), "address": "192.0.2.254" });
                add("NatIngress.sides", port, "NatIngress.from_inside", params);
                for (flow, source) in flows {
                    let key = json!({ "hdr.ipv4.protocol": 17, "hdr.ipv4.src": source, "meta.src_port": PORTS[0] });
                    let number = json!({ "port": 1024 + flow });
                    add("NatIngress.outbound", key, "NatIngress.translate_source", number);
                }
            }
            "connection-firewall" => {
                add("FirewallIngress.sides", port, "FirewallIngress.from_inside", json!({ "port": 2 }));
                for (_, source) in flows {
                    let key = json!({
                        "meta.flow.protocol": 17, "meta.flow.ip_inside": source,
                        "meta.flow.ip_outside": OUTSIDE.to_string(), "meta.flow.port_inside": PORTS[0],
                        "meta.flow.port_outside": PORTS[1],
                    });
                    add("FirewallIngress.inside", key, "FirewallIngress.allow", json!({}));
                }
            }
            "sticky-balancer" => {
                add("BalanceIngress.services", json!({ "hdr.ipv4.dst": SERVICE.to_string() }), "NoAction", json!({}));
                for server in 0..3 {
                    let address = format!("10.0.2.{}", server + 1);
                    let (key, params) = (json!({ "meta.server": server }), json!({ "server": &address }));
                    add("BalanceIngress.servers", key, "BalanceIngress.to_server", params);
                    let (key, way) = (json!({ "hdr.ipv4.dst": format!("{address}/32") }), (mac(2), mac(3)));
                    let params = json!({ "port": 2, "own": way.0, "next": way.1 });
                    add("BalanceIngress.routes", key, "BalanceIngress.forward", params);
                }
                for (flow, source) in flows {
                    let key = json!({
                        "hdr.ipv4.protocol": 17, "hdr.ipv4.src": source, "hdr.ipv4.dst": SERVICE.to_string(),
                        "hdr.ports.src": PORTS[0], "hdr.ports.dst": PORTS[1],
                    });
                    add("BalanceIngress.flows", key, "BalanceIngress.use", json!({ "server": flow % 3 }));
                }
            }
            "heavy-hitters" => add("HittersIngress.crossings", port, "HittersIngress.leave_by", json!({ "port": 2 })),
            "flow-counter" => add("CounterIngress.crossings", port, "CounterIngress.leave_by", json!({ "port": 2 })),
            _ => return None,
        }
        Some(json!({ "table_entries": all }).to_string())
    }

    /// Returns the first frame of a flood, and the variation of the others. `share` of each 64 write.
    fn frames(&self, share: u32) -> (Vec<u8>, FrameVariety) {
        let ethernet = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        let vary = |offset, first, balance| Some(Vary { offset, first, count: FLOWS, balance });
        let (mut frame, variety) = match self.traffic {
            Traffic::Flows { to, header } => {
                let before = ethernet.len() + header.len();
                let frame = [&ethernet[..], header, &datagram(to)].concat();
                (frame, FrameVariety { vary: vary(before + 12, INSIDE, Some(before + 4)), mix: None })
            }
            Traffic::Users => {
                let mix = FrameMix { offset: 10, bytes: [0, 1, 0x88, 0xb6], share };
                let frame = [&ethernet[..], &[0x88, 0xb5]].concat();
                (frame, FrameVariety { vary: vary(12, 0x88b5_0000, None), mix: Some(mix) })
            }
            Traffic::Keys => {
                // Setting a value counts a change, so it always writes.
                let mix = FrameMix { offset: 11, bytes: [1, 0x88, 0xb6, 1], share };
                let frame = [&ethernet[..], &[0x88, 0xb6]].concat();
                (frame, FrameVariety { vary: vary(13, 0xb600_0000, None), mix: Some(mix) })
            }
        };
        frame.resize(LENGTH, 0);
        (frame, variety)
    }
}

/// Returns a datagram from the first flow. Its identification balances the address in the header's checksum.
fn datagram(to: Ipv4Addr) -> Vec<u8> {
    let udp = [&PORTS[0].to_be_bytes()[..], &PORTS[1].to_be_bytes(), &[0, 12, 0, 0, 1, 2, 3, 4]].concat();
    let mut packet = ipv4::Repr::new(Ipv4Addr::from(INSIDE), to, ipv4::UDP).packet(&udp);
    packet[4..6].copy_from_slice(&[0xff, 0xff]);
    packet[10..12].fill(0);
    let sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// First argument of a request to run a load: the name of the program, and the share of 64 frames that write, and the
/// share of 64 that are sent follow.
pub fn run_load() -> Result<(), Box<dyn Error>> {
    let argument = |at| std::env::args().nth(at).ok_or("an argument is missing");
    let name = argument(2)?;
    let mut all = APPLICATIONS.into_iter().chain([KEY_VALUE]);
    let application = all.find(|application| application.name == name).ok_or("there is no such program")?;
    let (frame, variety) = application.frames(argument(3)?.parse()?);
    load::run(&Flood::various("eth0", &frame, variety, argument(4)?.parse()?)?)
}

/// The example programs in a directory of their own, with and without annotations.
pub struct Programs(PathBuf);

impl Programs {
    /// Copies the programs.
    pub fn copy(to: PathBuf) -> Result<Programs, Box<dyn Error>> {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        std::fs::create_dir_all(to.join("common"))?;
        for file in ["packet.p4", "checksum.p4"] {
            std::fs::copy(examples.join("common").join(file), to.join("common").join(file))?;
        }
        for application in APPLICATIONS.iter().chain([&KEY_VALUE]) {
            let text = std::fs::read_to_string(examples.join(application.program))?;
            for (directory, text) in [("plain", without_annotations(&text)), ("annotated", text)] {
                std::fs::create_dir_all(to.join(directory))?;
                std::fs::write(to.join(directory).join(file_name(application)), text)?;
            }
        }
        Ok(Programs(to))
    }

    /// Returns the path of a program.
    pub fn path(&self, application: &Application, is_plain: bool) -> PathBuf {
        self.0.join(if is_plain { "plain" } else { "annotated" }).join(file_name(application))
    }
}

fn file_name(application: &Application) -> String {
    format!("{}.p4", application.name)
}

/// Returns a program's text without annotations of resilient state.
fn without_annotations(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once("@resilient") {
        plain.push_str(before);
        rest = after.strip_prefix('[').and_then(|list| list.split_once(']')).map_or(after, |(_, after)| after);
    }
    plain + rest
}
