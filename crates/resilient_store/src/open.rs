//! Opens what stores and switches need from the system: sockets, directories, random numbers.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::{SocketAddr, UdpSocket};

use resilient::{ChainMember, Peer};

use crate::cluster::{Cluster, ClusterMember};
use crate::hook::StoreHook;
use crate::layout_keeper::{KeeperError, LayoutKeeper};
use crate::lives::{LifeError, StoreDirectory};
use crate::operator_server::OperatorServer;
use crate::server::StoreServer;
use crate::status_socket::StatusSocket;

/// Reason that a store or a switch cannot join its cluster.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address cannot be used.
    #[error("cannot receive at {address}, the address of `{name}` in the cluster file: {source}")]
    Bind {
        /// The member.
        name: String,
        /// Its address.
        address: SocketAddr,
        /// The error.
        source: io::Error,
    },
    /// The store's directory cannot be used.
    #[error(transparent)]
    Life(#[from] LifeError),
    /// The layouts cannot be kept.
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    /// The store has lost its rows.
    #[error(
        "`{0}` keeps its rows in memory and has lost them when it stopped, so it must not answer for them any more"
    )]
    Forgotten(String),
    /// The store is one of several.
    #[error(
        "`{0}` is one of several stores: all of them have to forget together; stop them and remove their directories"
    )]
    NotAlone(String),
}

/// Returns a random number that the system provides.
pub fn random_number() -> u64 {
    // The keys of a new state are random.
    RandomState::new().build_hasher().finish()
}

fn bind(member: &ClusterMember) -> Result<UdpSocket, OpenError> {
    let failed = |source| OpenError::Bind { name: member.name.clone(), address: member.address, source };
    UdpSocket::bind(member.address).map_err(failed)
}

impl StoreServer {
    /// Opens a store of a cluster, which keeps its rows in memory, and begins its first life. With `forgets`, a store
    /// that is alone in its cluster may begin another one, without rows.
    ///
    /// # Errors
    /// If the store has lived before, or its address cannot be used.
    ///
    /// # Panics
    /// If the member is a switch.
    pub fn open(
        cluster: &Cluster,
        member: &ClusterMember,
        directory: &mut StoreDirectory,
        forgets: bool,
    ) -> Result<StoreServer, OpenError> {
        let Peer::Node(node) = member.peer else { panic!("`{}` is a switch", member.name) };
        if directory.lives() > 0 && !forgets {
            return Err(OpenError::Forgotten(member.name.clone()));
        }
        if directory.lives() > 0 && cluster.stores().count() > 1 {
            return Err(OpenError::NotAlone(member.name.clone()));
        }
        let socket = bind(member)?;
        let life = directory.begin_life()?;
        let me = ChainMember { node, life };
        Ok(StoreServer::founding(cluster.clone(), &cluster.layout(life), me, socket, random_number()))
    }
}

impl StoreServer {
    /// Opens a store of a cluster with an operator, which keeps its rows in memory, and begins a life. It has no rows,
    /// and waits until the operator adds it.
    ///
    /// # Errors
    /// If its directory or address cannot be used.
    ///
    /// # Panics
    /// If the member is no store.
    pub fn open_joining(
        cluster: &Cluster,
        member: &ClusterMember,
        directory: &mut StoreDirectory,
    ) -> Result<StoreServer, OpenError> {
        let Peer::Node(node) = member.peer else { panic!("`{}` is no store", member.name) };
        let socket = bind(member)?;
        let count = u32::try_from(directory.begin_life()?).unwrap_or(u32::MAX);
        let me = ChainMember::in_life(node, count, random_number() as u32);
        Ok(StoreServer::joining(cluster.clone(), me, socket, random_number()))
    }
}

impl<K: LayoutKeeper> OperatorServer<K> {
    /// Opens the operator of a cluster. The clients of `status` can see its status and give it commands.
    ///
    /// # Errors
    /// If its address cannot be used, or the layout cannot be read.
    ///
    /// # Panics
    /// If the cluster has no operator.
    pub fn open(cluster: &Cluster, keeper: K, status: Option<StatusSocket>) -> Result<OperatorServer<K>, OpenError> {
        let member = cluster.operator().expect("the cluster has an operator");
        Ok(OperatorServer::new(cluster.clone(), keeper, bind(member)?, status, random_number())?)
    }
}

impl StoreHook {
    /// Opens the connection of a switch of a cluster to its stores.
    ///
    /// # Errors
    /// If the switch's address cannot be used.
    pub fn open(cluster: &Cluster, member: &ClusterMember) -> Result<StoreHook, OpenError> {
        let failed = |source| OpenError::Bind { name: member.name.clone(), address: member.address, source };
        StoreHook::new(cluster.clone(), bind(member)?).map_err(failed)
    }
}
