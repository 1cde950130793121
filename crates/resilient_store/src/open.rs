//! Opens what stores and switches need from the system: sockets, directories, random numbers.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;

use resilient::store::{GroupCommit, StoreRecovery};
use resilient::{ChainMember, NodeId, Peer, StoreConfig, StoreNode, expiry_ns};
use switch::Time;

use crate::cluster::{Cluster, ClusterMember};
use crate::disk::{DiskError, DiskOwner, StoreDisk};
use crate::disk_writer::ServerDisk;
use crate::hook::StoreHook;
use crate::key_file::fill_with_random_bytes;
use crate::layout_keeper::KeeperError;
use crate::lives::{LifeError, StoreDirectory};
use crate::operator_server::OperatorServer;
use crate::server::StoreServer;
use crate::socket::ClusterSocket;

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
        "`{0}` kept its rows in memory and lost them when it stopped, so it must not start as if they had never existed"
    )]
    Forgotten(String),
    /// The store keeps its rows on disk, but was started without that option.
    #[error("`{name}` keeps its rows in {path}, so it must not start without them")]
    Durable {
        /// The store.
        name: String,
        /// Its directory.
        path: PathBuf,
    },
    /// The store has run before, but its directory has no rows.
    #[error("`{name}` has run before, but its rows are not in {path}: it kept them in memory, or they were removed")]
    Lost {
        /// The store.
        name: String,
        /// Its directory.
        path: PathBuf,
    },
    /// The rows on disk cannot be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The chain on disk has a store that the cluster file lacks.
    #[error("the rows of `{0}` are also at a store that the cluster file lacks; use the file with all stores")]
    UnknownMember(String),
    /// The number of shards on disk differs from that in the cluster file.
    #[error("the rows of `{name}` are in {kept} shards, and the cluster file has shards = {wanted}: use {kept}")]
    OtherShards {
        /// The store.
        name: String,
        /// Number of shards on disk.
        kept: usize,
        /// Number of shards of the cluster file.
        wanted: u16,
    },
    /// The store is one of several.
    #[error(
        "`{0}` is one of several stores: all of them have to forget together; stop them and remove their directories"
    )]
    NotAlone(String),
}

/// Returns a random number that the system provides.
///
/// # Panics
/// If the system has none, which does not happen on supported kernels.
pub fn random_number() -> u64 {
    let mut bytes = [0; 8];
    fill_with_random_bytes(&mut bytes).expect("the system provides random numbers");
    u64::from_ne_bytes(bytes)
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
    /// If the store has run before, keeps its rows on disk, or its address cannot be used.
    ///
    /// # Panics
    /// If the member is a switch.
    pub fn open(
        cluster: &Cluster,
        member: &ClusterMember,
        directory: &mut StoreDirectory,
        forgets: bool,
    ) -> Result<StoreServer, OpenError> {
        let node = number_of(member);
        if StoreDisk::is_in(directory.path()) && !forgets {
            let (name, path) = (member.name.clone(), directory.path().to_owned());
            return Err(OpenError::Durable { name, path });
        }
        if directory.lives() > 0 && !forgets {
            return Err(OpenError::Forgotten(member.name.clone()));
        }
        check_alone(cluster, member, directory)?;
        let socket = bind(member)?;
        let life = directory.begin_life()?;
        StoreDisk::remove(directory.path())?;
        let me = ChainMember { node, life };
        Ok(StoreServer::founding(cluster.clone(), &cluster.layout(life), me, socket, random_number()))
    }

    /// Opens a store of a cluster that keeps its rows in the directory, with the rows of its earlier starts. With
    /// `forgets`, a store that is alone in its cluster, or whose cluster has an operator, begins another life, without
    /// rows.
    ///
    /// # Errors
    /// If the rows of an earlier start are missing or cannot be used, or the store's address cannot be used.
    ///
    /// # Panics
    /// If the member is a switch.
    pub fn open_durable(
        cluster: &Cluster,
        member: &ClusterMember,
        directory: &mut StoreDirectory,
        forgets: bool,
    ) -> Result<StoreServer, OpenError> {
        let node = number_of(member);
        let (name, path) = (member.name.clone(), directory.path().to_owned());
        let is_operated = cluster.is_operated();
        let next = directory.lives() + 1;
        let life = match is_operated {
            true => joining_member(node, next).life,
            false => next,
        };
        let mut owner = DiskOwner { name: name.clone(), node: node.0, life };
        if forgets && !is_operated {
            check_alone(cluster, member, directory)?;
        }
        let socket = bind(member)?;
        let disk = if StoreDisk::is_in(&path) && !forgets {
            let (disk, life) = StoreDisk::open(&path, &owner)?;
            let count = u64::from(ChainMember { node, life }.life_count());
            if count < directory.lives() {
                // The store has begun a life in memory since then.
                return Err(OpenError::Lost { name, path });
            }
            if count > next {
                return Err(disk.damaged("the directory knows fewer lives than the file").into());
            }
            owner.life = life;
            disk
        } else if directory.lives() > 0 && !forgets && !is_operated {
            return Err(OpenError::Lost { name, path });
        } else {
            StoreDisk::create(&path, &owner)?
        };
        // An interrupted start has created the file but not begun its life.
        let me = ChainMember { node, life: owner.life };
        if directory.lives() < u64::from(me.life_count()) {
            directory.begin_life()?;
        }
        let (node, commit) = restore(cluster, me, &disk)?;
        let is_known = |member: &ChainMember| cluster.address_of(Peer::Node(member.node)).is_some();
        if !node.layout().chains().iter().flat_map(|chain| chain.members.iter().chain(&chain.learner)).all(is_known) {
            return Err(OpenError::UnknownMember(name));
        }
        let (kept, wanted) = (node.layout().chains().len(), cluster.shards());
        if node.layout().epoch() > 0 && kept != usize::from(wanted) {
            return Err(OpenError::OtherShards { name, kept, wanted });
        }
        let rows = node.layout().shards().map(|shard| node.rows(shard) as u64).sum();
        let server = ServerDisk::new(disk, commit, rows);
        Ok(StoreServer::of(
            node,
            ClusterSocket::new(socket, cluster.clone(), member.peer, random_number()),
            Some(server),
        ))
    }
}

/// Returns a store in a life that begins now, in a cluster with an operator.
fn joining_member(node: NodeId, count: u64) -> ChainMember {
    ChainMember::in_life(node, u32::try_from(count).unwrap_or(u32::MAX), random_number() as u32)
}

/// Restores a node from its disk. If the disk has no entries yet, creates a node with the first layout, or one that
/// waits for the operator.
fn restore(cluster: &Cluster, me: ChainMember, disk: &StoreDisk) -> Result<(StoreNode, GroupCommit), OpenError> {
    let config = StoreConfig { is_durable: true, ..cluster.store_config() };
    let (lease_ns, longest_ns) = (config.lease_ns, disk.longest_lease_ns()?);
    if lease_ns > longest_ns {
        disk.set_longest_lease_ns(lease_ns)?;
    }
    // Switches may still have leases from an earlier cluster file. The node waits for them as if it started later.
    let expiry = |lease_ns: u64| expiry_ns(lease_ns, config.drift_ppm);
    let now = Time::from_ns(expiry(longest_ns.max(lease_ns)) - expiry(lease_ns));
    let mut recovery = StoreRecovery::new(config, me, random_number(), now);
    disk.recover(&mut recovery)?;
    if recovery.has_layout() {
        return recovery.finish().map_err(|_| disk.damaged("operations are missing").into());
    }
    if cluster.is_operated() {
        return Ok((StoreNode::joining(config, me, random_number()), GroupCommit::default()));
    }
    let founded = StoreNode::founding(config, me, random_number(), now, &cluster.layout(me.life));
    Ok((founded, GroupCommit::default()))
}

/// Returns a store's number.
fn number_of(member: &ClusterMember) -> NodeId {
    member.peer.node().unwrap_or_else(|| panic!("`{}` is a switch", member.name))
}

/// Returns an error if one of several stores is to forget its rows.
fn check_alone(cluster: &Cluster, member: &ClusterMember, directory: &StoreDirectory) -> Result<(), OpenError> {
    if directory.lives() > 0 && cluster.stores().count() > 1 {
        return Err(OpenError::NotAlone(member.name.clone()));
    }
    Ok(())
}

impl StoreServer {
    /// Opens a store of a cluster with an operator, which keeps its rows in memory, and begins a life. It has no rows,
    /// and waits until the operator adds it.
    ///
    /// # Errors
    /// If the store keeps its rows on disk, or its directory or address cannot be used.
    ///
    /// # Panics
    /// If the member is not a store.
    pub fn open_joining(
        cluster: &Cluster,
        member: &ClusterMember,
        directory: &mut StoreDirectory,
    ) -> Result<StoreServer, OpenError> {
        let node = number_of(member);
        if StoreDisk::is_in(directory.path()) {
            let (name, path) = (member.name.clone(), directory.path().to_owned());
            return Err(OpenError::Durable { name, path });
        }
        let socket = bind(member)?;
        let me = joining_member(node, directory.begin_life()?);
        Ok(StoreServer::joining(cluster.clone(), me, socket, random_number()))
    }
}

impl OperatorServer {
    /// Binds the socket of an operator.
    ///
    /// # Errors
    /// If its address cannot be used.
    pub fn bind(member: &ClusterMember) -> Result<UdpSocket, OpenError> {
        bind(member)
    }
}

impl StoreHook {
    /// Opens the connection of a switch of a cluster to its stores.
    ///
    /// # Errors
    /// If the switch's address cannot be used.
    pub fn open(cluster: &Cluster, member: &ClusterMember) -> Result<StoreHook, OpenError> {
        let failed = |source| OpenError::Bind { name: member.name.clone(), address: member.address, source };
        StoreHook::new(cluster.clone(), member.peer, bind(member)?, random_number()).map_err(failed)
    }
}
