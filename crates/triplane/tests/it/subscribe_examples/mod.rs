//! The examples of packet subscriptions. The commands of each README run unchanged, on the captures beside it, and the
//! outgoing frames are compared byte by byte with frames that are built here.
//!
//! `UPDATE_EXPECT=1` regenerates the captures.

mod cache;
mod dns;
mod feed_router;
mod flow_balancer;
mod ila;
mod int_reports;
mod market_data;
mod router;

use crate::support::{self, Directory, Done, root, run, triplane};
use wire::pcap::{Reader, Writer};
use wire::{ethernet, ipv4, udp};

/// A folder of `examples/`.
struct Example {
    name: &'static str,
    format: &'static str,
    rules: &'static str,
}

impl Example {
    fn path(&self, file: &str) -> String {
        format!("examples/{}/{file}", self.name)
    }

    /// Compares a capture of the folder with the expected frames, which are 100 ms apart from a start time on.
    #[track_caller]
    fn has_capture(&self, file: &str, from_ms: u64, frames: &[Vec<u8>]) {
        let path = root().join(self.path(file));
        let right = capture((0..).map(|number| from_ms + 100 * number).zip(frames));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, &right).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == right, "{} is not what UPDATE_EXPECT=1 writes", path.display());
    }

    /// Runs the `triplane` commands of the README's first section in a directory that stands in for `/tmp`. Returns the
    /// directory and the output of each command.
    #[track_caller]
    fn run_readme(&self) -> (Directory, Vec<Done>) {
        let readme = std::fs::read_to_string(root().join(self.path("README.md"))).unwrap();
        let directory = Directory::new();
        let joined =
            readme.split("\n## ").next().unwrap_or_default().replace("\\\n", " ").replace("/tmp/", &directory.path(""));
        let commands = joined.lines().filter_map(|line| line.strip_prefix("triplane "));
        let commands = commands.map(|command| command.split(" | ").next().unwrap_or_default());
        let done = commands.map(|command| run(&mut triplane(&command.split_whitespace().collect::<Vec<_>>())).ok());
        let done: Vec<Done> = done.collect();
        assert!(done.len() >= 2, "the README of {} has commands", self.name);
        (directory, done)
    }

    /// Sends frames through a switch with the example's format and rules: at each port of `inputs` the frames listed
    /// with it. Returns the frames that leave at ports 1 to `outputs`, on which machine code and interpreter must
    /// agree.
    #[track_caller]
    fn send(&self, inputs: &[(u32, &[Vec<u8>])], outputs: u32) -> Vec<Vec<Vec<u8>>> {
        self.send_by(&self.path(self.rules), inputs, outputs)
    }

    /// Sends frames through a switch with the example's format and the rules of another file.
    #[track_caller]
    fn send_by(&self, rules: &str, inputs: &[(u32, &[Vec<u8>])], outputs: u32) -> Vec<Vec<Vec<u8>>> {
        let directory = Directory::new();
        let (program, entries) = (directory.path("program.p4"), directory.path("entries.json"));
        let format = self.path(self.format);
        run(&mut triplane(&["subscribe", "compile", &format, rules, "-o", &entries, "--program", &program])).ok();
        let output = |port: u32| directory.path(&format!("out{port}.pcap"));
        let mut ports = Vec::new();
        for port in 1..=outputs {
            let input = inputs.iter().find(|(at, _)| *at == port).map(|(_, frames)| capture((0..).zip(*frames)));
            let input = input.map_or(String::new(), |bytes| directory.write(&format!("in{port}.pcap"), bytes));
            ports.extend(["--port".to_owned(), format!("{port}={input}:{}", output(port))]);
        }
        let mut arguments = vec!["run", &program, "--entries", &entries];
        arguments.extend(ports.iter().map(String::as_str));
        let run = |more: &[&str]| -> Vec<Vec<Vec<u8>>> {
            support::run(&mut triplane(&[&arguments[..], more].concat())).ok();
            (1..=outputs).map(|port| frames(&output(port))).collect()
        };
        let compiled = run(&[]);
        assert_eq!(compiled, run(&["--interpret"]));
        compiled
    }
}

/// Writes a capture of frames at times in milliseconds.
fn capture<'a>(frames: impl Iterator<Item = (u64, &'a Vec<u8>)>) -> Vec<u8> {
    let mut capture = Writer::new(Vec::new()).unwrap();
    for (at_ms, frame) in frames {
        capture.write(at_ms * 1_000_000, frame).unwrap();
    }
    capture.into_inner()
}

/// Reads the frames of a capture.
fn frames(path: &str) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    Reader::new(bytes.as_slice()).unwrap().map(|captured| captured.unwrap().data).collect()
}

/// A host that sends datagrams.
#[derive(Clone, Copy)]
struct Host {
    mac: [u8; 6],
    ip: [u8; 4],
    port: u16,
}

impl Host {
    /// A datagram to another host, as a frame.
    fn datagram(self, to: Host, payload: &[u8]) -> Vec<u8> {
        let udp = udp::Repr { source_port: self.port, destination_port: to.port };
        let ip = ipv4::Repr::new(self.ip.into(), to.ip.into(), ipv4::UDP);
        let destination = ethernet::Address(to.mac);
        let ethernet = ethernet::Repr { destination, source: ethernet::Address(self.mac), ethertype: ethernet::IPV4 };
        ethernet.packet(&ip.packet(&udp.packet(ip.addresses(), payload)))
    }
}
