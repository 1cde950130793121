//! A cable that is pulled out and plugged in again: replicas and members of groups move to ports that have a link.
//!
//! The tests need root; without it, they skip and say so.

use std::time::{Duration, Instant};

use ports::namespace::{Namespace, NamespaceError, veth};
use ports::{AfPacketPort, Port, Received};

use crate::support::{Directory, Running, TEST_TIMEOUT, triplane};

/// Frames of one kind go to a group, whose replica has a backup; those of another kind to an action of a selector, by
/// their source; those from port 2 and 3 to port 1.
const PROGRAM: &str = "#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> kind; }
struct headers { ethernet_t ethernet; }
struct meta {}
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) {
  state start { p.extract(hdr.ethernet); transition accept; }
}
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
  action leave(bit<9> port) { sm.egress_spec = port; }
  table members {
    key = { hdr.ethernet.kind : exact; hdr.ethernet.src : selector; }
    actions = { leave; NoAction; }
    implementation = action_selector(HashAlgorithm.crc16, 16, 10);
  }
  apply {
    if (sm.ingress_port != 1) { leave(1); }
    else if (hdr.ethernet.kind == 0x88b5) { sm.mcast_grp = 1; }
    else if (!members.apply().hit) { mark_to_drop(sm); }
  }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply {} }
control V(inout headers hdr, inout meta m) { apply {} }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

const ENTRIES: &str = r#"{
  "table_entries": [{"table": "I.members", "match": {"hdr.ethernet.kind": "0x88b6"}, "one_shot": [
    {"action_name": "I.leave", "action_params": {"port": 2}, "weight": 1, "watch_port": 2},
    {"action_name": "I.leave", "action_params": {"port": 3}, "weight": 1, "watch_port": 3}]}],
  "multicast_group_entries": [
    {"multicast_group_id": 1, "replicas": [{"egress_port": 2, "backup_ports": [3]}]}]
}"#;

const REPLICATED: u16 = 0x88b5;
const SELECTED: u16 = 0x88b6;
/// Number of sources: that all of them had the same member by chance has a probability of 1 in 2^31.
const SOURCES: u8 = 32;

/// A switch and three hosts, whose frames the test sends and receives.
struct Network {
    switch: Namespace,
    hosts: [Namespace; 3],
    ports: [AfPacketPort; 3],
}

impl Network {
    fn new() -> Option<Network> {
        match Network::create() {
            Err(error @ NamespaceError::Refused { .. }) => {
                testing::skip(&error.to_string());
                None
            }
            network => Some(network.expect("a network")),
        }
    }

    fn create() -> Result<Network, NamespaceError> {
        let switch = Namespace::new("switch")?;
        switch.disable_ipv6()?;
        let hosts = [Namespace::new("h1")?, Namespace::new("h2")?, Namespace::new("h3")?];
        for (host, end) in hosts.iter().zip(["p1", "p2", "p3"]) {
            host.disable_ipv6()?;
            veth(host, "eth0", &switch, end)?;
            host.set_up("eth0")?;
            switch.set_up(end)?;
            assert!(host.wait_for_link("eth0", TEST_TIMEOUT)? && switch.wait_for_link(end, TEST_TIMEOUT)?);
        }
        let open = |at: usize| hosts[at].enter(|| AfPacketPort::open("eth0").expect("the interface is there"));
        let ports = [open(0)?, open(1)?, open(2)?];
        Ok(Network { switch, hosts, ports })
    }

    fn run(&self, directory: &Directory, kind: &str, workers: &str) -> Running {
        let (program, entries) = (directory.write("p.p4", PROGRAM), directory.write("e.json", ENTRIES));
        let mut command = self.switch.command(triplane(&[]).get_program()).expect("a command in a namespace");
        command.arg("run").arg(program).arg("--entries").arg(entries).args(["--workers", workers]);
        for number in 1..=3 {
            command.args(["--port", &format!("{number}={kind}p{number}")]);
        }
        Running::start(&mut command)
    }

    fn send(&mut self, host: usize, kind: u16, source: u8) {
        let mut frame = vec![0; 60];
        (frame[5], frame[11]) = (1, source);
        frame[12..14].copy_from_slice(&kind.to_be_bytes());
        self.ports[host].send(&frame).expect("the port works");
        self.ports[host].flush().expect("the port works");
    }

    /// Removes what a host has received of this kind, by source.
    fn received(&mut self, host: usize, kind: u16) -> Vec<u8> {
        let mut batch: Vec<Received> = Vec::new();
        while self.ports[host].receive(&mut batch, 64).expect("the port works") > 0 {}
        let of_kind = batch.iter().filter(|frame| frame.data[12..14] == kind.to_be_bytes());
        of_kind.map(|frame| frame.data[11]).collect()
    }

    /// Sends a frame of a kind again and again until this host receives one.
    fn send_until(&mut self, (from, kind, source): (usize, u16, u8), to: usize) {
        let begin = Instant::now();
        loop {
            self.send(from, kind, source);
            std::thread::sleep(Duration::from_millis(5));
            if self.received(to, kind).contains(&source) {
                return;
            }
            assert!(begin.elapsed() < TEST_TIMEOUT, "no frame of kind {kind:#x} and source {source} arrived");
        }
    }

    /// Sends a frame of each source, and returns the numbers that arrived at h2 and h3.
    fn spread(&mut self) -> [usize; 2] {
        for host in 0..3 {
            self.received(host, 0);
        }
        (0..SOURCES).for_each(|source| self.send(0, SELECTED, source));
        let (mut counts, begin) = ([0; 2], Instant::now());
        while counts.iter().sum::<usize>() < SOURCES.into() {
            for (host, count) in [1, 2].into_iter().zip(&mut counts) {
                *count += self.received(host, SELECTED).len();
            }
            assert!(begin.elapsed() < TEST_TIMEOUT, "frames were lost: {counts:?}");
        }
        counts
    }
}

#[test]
fn groups_leave_a_port_without_a_link_and_come_back() {
    for (kind, workers) in [("", "1"), ("xdp:", "1"), ("kernel:", "1"), ("", "2")] {
        let Some(mut network) = Network::new() else { return };
        let directory = Directory::new();
        let mut switch = network.run(&directory, kind, workers);
        switch.wait_for("press Ctrl-C to stop");
        network.send_until((0, REPLICATED, 1), 1);
        let [second, third] = network.spread();
        assert!(second > 0 && third > 0, "both members are used: {second} and {third}, {kind}");

        network.hosts[1].set_down("eth0").expect("the interface is there");
        switch.wait_for("port 2 has no link, and is down");
        network.send_until((0, REPLICATED, 2), 2);
        assert_eq!(network.spread(), [0, SOURCES.into()], "{kind}");

        network.hosts[1].set_up("eth0").expect("the interface is there");
        switch.wait_for("port 2 has a link again");
        network.send_until((0, REPLICATED, 3), 1);
        assert_eq!(network.spread(), [second, third], "{kind}");
        network.send_until((1, SELECTED, 4), 0);
        switch.signal("INT");
        switch.wait().ok();
    }
}

#[test]
fn a_port_without_a_link_at_the_start_comes_up_later() {
    let Some(mut network) = Network::new() else { return };
    let directory = Directory::new();
    network.hosts[1].set_down("eth0").expect("the interface is there");
    let mut switch = network.run(&directory, "", "1");
    switch.wait_for("port 2 has no link, and is down");
    network.send_until((0, REPLICATED, 1), 2);
    network.hosts[1].set_up("eth0").expect("the interface is there");
    switch.wait_for("port 2 has a link again");
    network.send_until((0, REPLICATED, 2), 1);
    switch.signal("INT");
    switch.wait().ok();
}
