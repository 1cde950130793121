//! Lists the exercises of the P4 tutorials: the commands for Mininet's command line, and what they must show.
//!
//! Host commands that run in the background write to files below `logs/`; `python3 -u` keeps what they print if they
//! are ended with the network.

/// An exercise.
pub struct Exercise {
    /// Its name.
    pub name: &'static str,
    /// Its folder below `exercises`.
    pub folder: &'static str,
    /// Files of the solution, and the files that they replace.
    pub solution: &'static [(&'static str, &'static str)],
    /// Commands for Mininet's command line.
    pub commands: &'static [&'static str],
    /// Checks: what is shown, the file below `logs/` (or the log of Mininet), and what is expected in it.
    pub checks: &'static [(&'static str, &'static str, Expectation)],
}

/// What a text must be like.
pub enum Expectation {
    /// It has this part.
    Has(&'static str),
    /// It has all of these parts.
    HasAll(&'static [&'static str]),
    /// It has one of these parts.
    HasAny(&'static [&'static str]),
    /// It has other text, but not this part.
    Lacks(&'static str),
    /// It has a number above `least` behind one of the places with the text `before`.
    NumberAbove {
        /// The text in front of the number.
        before: &'static str,
        /// The number that must be exceeded.
        least: f64,
    },
}

use Expectation::{Has, HasAll, HasAny, Lacks, NumberAbove};

/// Every exercise that ends by itself when Mininet's command line does.
pub const EXERCISES: &[Exercise] = &[
    Exercise {
        name: "basic",
        folder: "basic",
        solution: &[("solution/basic.p4", "basic.p4")],
        commands: &["pingall"],
        checks: &[("every host reaches every other", "", Has("Results: 0% dropped (12/12 received)"))],
    },
    Exercise {
        name: "basic_tunnel",
        folder: "basic_tunnel",
        solution: &[("solution/basic_tunnel.p4", "basic_tunnel.p4")],
        commands: &[
            "h2 python3 -u receive.py > logs/h2.out 2>&1 &",
            "h3 python3 -u receive.py > logs/h3.out 2>&1 &",
            "sh sleep 5",
            "h1 python3 send.py 10.0.2.2 \"by address\"",
            "h1 python3 send.py 10.0.3.3 \"by tunnel\" --dst_id 2",
            "sh sleep 3",
        ],
        checks: &[
            ("a plain packet arrives", "h2.out", Has("by address")),
            ("a tunnelled packet goes where its tunnel ends", "h2.out", HasAll(&["by tunnel", "dst_id    = 2"])),
            ("and not to its IP destination", "h3.out", Lacks("by tunnel")),
        ],
    },
    Exercise {
        name: "p4runtime",
        folder: "p4runtime",
        solution: &[("solution/mycontroller.py", "mycontroller.py")],
        commands: &[
            "sh timeout 25 python3 -u mycontroller.py > logs/controller.out 2>&1 &",
            "sh sleep 10",
            "h1 ping -c 3 h2",
            "sh sleep 4",
        ],
        checks: &[
            ("pings pass the tunnel", "", Has("3 packets transmitted, 3 received")),
            (
                "the controller reads its counters",
                "controller.out",
                HasAll(&[
                    "s1 MyIngress.ingressTunnelCounter 100: 3 packets",
                    "s2 MyIngress.egressTunnelCounter 100: 3",
                ]),
            ),
        ],
    },
    Exercise {
        name: "ecn",
        folder: "ecn",
        solution: &[("solution/ecn.p4", "ecn.p4")],
        commands: &[
            "h2 python3 -u receive.py > logs/h2.out 2>&1 &",
            "h22 iperf -s -u > logs/iperf.out 2>&1 &",
            "sh sleep 5",
            "h1 python3 -u send.py 10.0.2.2 \"P4 is cool\" 20 > logs/h1.out 2>&1 &",
            "sh sleep 4",
            "h11 iperf -c 10.0.2.22 -t 10 -u",
            "sh sleep 8",
        ],
        checks: &[
            ("packets carry ECN while the link is free", "h2.out", Has("tos       = 0x1")),
            ("and a mark while it is congested", "h2.out", Has("tos       = 0x3")),
        ],
    },
    Exercise {
        name: "mri",
        folder: "mri",
        solution: &[("solution/mri.p4", "mri.p4")],
        commands: &[
            "h2 python3 -u receive.py > logs/h2.out 2>&1 &",
            "h22 iperf -s -u > logs/iperf.out 2>&1 &",
            "sh sleep 5",
            "h1 python3 -u send.py 10.0.2.2 \"P4 is cool\" 20 > logs/h1.out 2>&1 &",
            "sh sleep 4",
            "h11 iperf -c 10.0.2.22 -t 10 -u",
            "sh sleep 8",
        ],
        checks: &[
            ("packets name the switches on their way", "h2.out", HasAll(&["swid      = 1", "swid      = 2"])),
            ("and the depth of a queue", "h2.out", NumberAbove { before: "qdepth    = ", least: 0.0 }),
        ],
    },
    Exercise {
        name: "source_routing",
        folder: "source_routing",
        solution: &[("solution/source_routing.p4", "source_routing.p4")],
        commands: &[
            "h2 python3 -u receive.py > logs/h2.out 2>&1 &",
            "sh sleep 5",
            "h1 printf '2 3 2 2 1\\nq\\n' | python3 -u send.py 10.0.2.2 > logs/h1.out 2>&1",
            "sh sleep 3",
        ],
        checks: &[(
            "a packet takes the five hops that it names",
            "h2.out",
            HasAll(&["got a packet", "ttl       = 59"]),
        )],
    },
    Exercise {
        name: "calc",
        folder: "calc",
        solution: &[("solution/calc.p4", "calc.p4")],
        commands: &["h1 printf '10+20\\n7-3\\n12&10\\n12|3\\n6^3\\nquit\\n' | python3 -u calc.py > logs/h1.out 2>&1"],
        checks: &[(
            "the switch calculates",
            "h1.out",
            HasAll(&["10+20\n30\n", "7-3\n4\n", "12&10\n8\n", "12|3\n15\n", "6^3\n5\n"]),
        )],
    },
    Exercise {
        name: "load_balance",
        folder: "load_balance",
        solution: &[("solution/load_balance.p4", "load_balance.p4")],
        commands: &[
            "h2 python3 -u receive.py > logs/h2.out 2>&1 &",
            "h3 python3 -u receive.py > logs/h3.out 2>&1 &",
            "sh sleep 5",
            "h1 for i in 1 2 3 4 5 6 7 8 9 10; do python3 send.py 10.0.0.1 \"P4 is cool\"; done > logs/h1.out 2>&1",
            "sh sleep 3",
        ],
        checks: &[
            ("flows go to one server", "h2.out", Has("P4 is cool")),
            ("and to the other", "h3.out", Has("P4 is cool")),
        ],
    },
    Exercise {
        name: "qos",
        folder: "qos",
        solution: &[("solution/qos.p4", "qos.p4")],
        commands: &[
            "h2 python3 -u receive.py > logs/h2.out 2>&1 &",
            "sh sleep 5",
            "h1 python3 send.py --p=UDP --des=10.0.2.2 --m=\"P4 is cool\" --dur=2 > logs/h1.out 2>&1",
            "h1 python3 send.py --p=TCP --des=10.0.2.2 --m=\"P4 is cool\" --dur=2 >> logs/h1.out 2>&1",
            "sh sleep 3",
        ],
        checks: &[
            ("UDP gets the code point of expedited forwarding", "h2.out", Has("tos       = 0xb9")),
            ("TCP gets that of voice admit", "h2.out", Has("tos       = 0xb1")),
        ],
    },
    Exercise {
        name: "firewall",
        folder: "firewall",
        solution: &[("solution/firewall.p4", "firewall.p4")],
        commands: &[
            "h3 iperf -s > logs/server3.out 2>&1 &",
            "h1 iperf -s > logs/server1.out 2>&1 &",
            "sh sleep 2",
            "h1 iperf -c 10.0.3.3 -t 2 > logs/out.out 2>&1",
            "h3 timeout -k 1 6 iperf -c 10.0.1.1 -t 2 > logs/in.out 2>&1",
        ],
        checks: &[
            ("a connection from inside carries data", "out.out", HasAny(&["Mbits/sec", "Gbits/sec", "Kbits/sec"])),
            ("one from outside does not", "server1.out", Lacks("connected with")),
        ],
    },
    Exercise {
        name: "link_monitor",
        folder: "link_monitor",
        solution: &[("solution/link_monitor.p4", "link_monitor.p4")],
        commands: &[
            "h1 python3 -u receive.py > logs/probes.out 2>&1 &",
            "h1 python3 -u send.py > logs/h1.out 2>&1 &",
            "h4 iperf -s > logs/h4.out 2>&1 &",
            "sh sleep 5",
            "h1 iperf -c 10.0.4.4 -t 4",
            "sh sleep 2",
        ],
        checks: &[
            ("probes come back", "probes.out", HasAll(&["Switch 1 - Port 4: ", "Switch 4 - Port "])),
            ("with the load of a link", "probes.out", NumberAbove { before: "Switch 1 - Port 4: ", least: 1.0 }),
        ],
    },
    Exercise {
        name: "multicast",
        folder: "multicast",
        solution: &[
            ("solution/multicast.p4", "multicast.p4"),
            ("solution/s1-runtime.json", "sig-topo/s1-runtime.json"),
        ],
        commands: &["pingall"],
        checks: &[("every host reaches every other", "", Has("Results: 0% dropped (12/12 received)"))],
    },
    Exercise {
        name: "flowcache",
        folder: "flowcache",
        solution: &[("solution/flowcache.p4", "flowcache.p4"), ("solution/mycontroller.py", "mycontroller.py")],
        commands: &[
            "sh timeout 40 python3 -u mycontroller.py > logs/controller.out 2>&1 &",
            "sh sleep 12",
            "h1 ping -c 4 h2",
            "sh sleep 8",
        ],
        // The controller sends the first packet of each flow on with the MAC address of the gateway, so the first two
        // pings are lost, with any switch.
        checks: &[
            ("the controller caches unknown flows", "", HasAny(&["2 received", "3 received"])),
            (
                "and removes them when they are idle",
                "controller.out",
                HasAll(&["added table entry", "Deleted flow_cache entry on s1"]),
            ),
        ],
    },
];
