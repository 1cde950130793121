//! Entries of the switches of a network, which deliver to each other and forward other packets to hosts.

use crate::entries::{Entity, Installer, Matched, ProgramEntry, Update};
use crate::write::{FLOOD, HOST_ADDRESSES};

impl Installer<'_> {
    /// Returns the writes that make a program with [`split_horizon`](crate::ProgramOptions::split_horizon) drop packets
    /// that came in on the first port of a pair and leave on the second.
    pub fn split_horizon(pairs: &[(u32, u32)]) -> Vec<Update> {
        let port = |name: &str, port: u32| (name.to_owned(), 9, Matched::Exact(port.into()));
        let entry = |(from, to): &(u32, u32)| ProgramEntry {
            table: "SubscriptionsEgress.split_horizon".to_owned(),
            keys: vec![port("from", *from), port("to", *to)],
            priority: None,
            action: "NoAction".to_owned(),
            params: Vec::new(),
        };
        pairs.iter().map(|pair| Update::Insert(Entity::Table(entry(pair)))).collect()
    }

    /// Returns the writes by which a program with [`forwards_hosts`](crate::ProgramOptions::forwards_hosts) forwards
    /// packets to hosts: Ethernet addresses and ports, and the ports on which broadcasts leave.
    pub fn host_addresses(hosts: &[(u64, u32)], flood: &[u32]) -> Vec<Update> {
        let entry = |(address, port): &(u64, u32)| ProgramEntry {
            table: HOST_ADDRESSES.to_owned(),
            keys: vec![("address".to_owned(), 48, Matched::Exact((*address).into()))],
            priority: None,
            action: "Subscriptions.to_host".to_owned(),
            params: vec![("port".to_owned(), 9, (*port).into())],
        };
        let group = Update::Insert(Entity::Group(FLOOD.into(), flood.to_vec()));
        std::iter::once(group).chain(hosts.iter().map(|host| Update::Insert(Entity::Table(entry(host))))).collect()
    }
}
