//! Tests the keeper of layouts in etcd, with real and with misbehaving servers.

mod fake;
mod misbehaving;
mod real;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use resilient::{ChainMember, LayoutRecord, NodeId, ShardChain, StoreLayout};
use resilient_etcd::{EtcdConfig, EtcdEndpoints, EtcdKeeper};
use resilient_store::Cluster;

fn cluster() -> Cluster {
    let section = |(at, name)| format!("[stores.{name}]\naddress = \"127.0.0.1:{}\"\n", at + 1);
    let stores: String = (0..).zip(["a", "b", "c"]).map(section).collect();
    Cluster::read(&format!("[operator]\naddress = \"127.0.0.1:99\"\n{stores}"), Path::new("")).unwrap()
}

/// Returns a record. Those of two authors differ.
fn record(epoch: u64, author: u32) -> LayoutRecord {
    let member = |node| ChainMember::in_life(NodeId(node), 1, author);
    let chain = ShardChain { members: vec![member(1), member(2)], learner: Some(member(3)) };
    let layout = Arc::new(StoreLayout::new(epoch, vec![chain]));
    LayoutRecord { layout, drained: BTreeSet::from([NodeId(2)]) }
}

fn config(urls: &[String]) -> EtcdConfig {
    let endpoints = EtcdEndpoints::parse(urls, false).unwrap();
    EtcdConfig { endpoints, prefix: "/triplane/test".to_owned(), tls: None, login: None }
}

fn keeper(urls: &[String]) -> EtcdKeeper {
    EtcdKeeper::new(config(urls), &cluster()).unwrap()
}
