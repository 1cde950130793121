//! The settings of the wrapper, and of the tables in it.

use elastic::ElasticMutation;
use elastic::TableConfig;
use elastic::admission::{CacheConfig, SketchConfig};
use elastic::lookups::LookupLimits;
use elastic::placement::PlacementRule;
use elastic::table::TableLimits;
use rdma::RequesterConfig;
use wire::roce::Mtu;

use crate::entry_form::EntryForm;
use crate::membership::MAX_SERVERS;
use crate::servers::{MemoryServerPort, SwitchAddress};

/// Most copies of a cell, which `elastic` supports.
pub(crate) const MAX_REPLICAS: u32 = 4;

/// Settings of the wrapper.
#[derive(Clone, Debug)]
pub struct ElasticConfig {
    /// Addresses of the switch.
    pub own: SwitchAddress,
    /// The memory servers.
    pub servers: Vec<MemoryServerPort>,
    /// Copies of each cell, from 1 to 4. With fewer servers there are fewer copies.
    pub replicas: u32,
    /// Maximum number of packets that wait for entries. Further ones are dropped and counted.
    pub max_parked: usize,
    /// Maximum payload of a packet of RoCEv2.
    pub mtu: Mtu,
    /// Time after which a request for memory is repeated, in nanoseconds.
    pub retry_ns: u64,
    /// Limits of READs and WRITEs.
    pub requester: RequesterConfig,
    /// Maximum rate of the answers to READs on each port, in bits per second, as a meter of RFC 2698 measures it.
    /// Beyond it, READs go to other copies; if all links are at the rate, packets are dropped and counted.
    pub read_rate: Option<u64>,
}

impl ElasticConfig {
    /// Returns the settings for these servers: two copies of each cell.
    pub fn new(own: SwitchAddress, servers: Vec<MemoryServerPort>) -> ElasticConfig {
        ElasticConfig {
            own,
            replicas: 2,
            servers,
            max_parked: 4096,
            mtu: Mtu::Mtu1024,
            retry_ns: 10_000_000,
            requester: RequesterConfig::default(),
            read_rate: None,
        }
    }
}

/// Reason that the tables of a program cannot lie in the memory of servers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElasticError {
    /// The program has no elastic table.
    #[error("the program has no @elastic table, so there is nothing to put into the memory of servers")]
    NoTable,
    /// There are no servers, or too many.
    #[error("there are {0} memory servers; there can be 1 to {MAX_SERVERS}")]
    Servers(usize),
    /// The number of copies.
    #[error("there cannot be {0} copies: choose 1 to {MAX_REPLICAS}")]
    Replicas(u32),
    /// The prefixes that a table has take too many cells: its name, the cells, and its size.
    #[error(
        "the prefixes of table {0} count as {1} entries, and its size is {2}: choose more lengths in its annotation, \
         or a larger size"
    )]
    Cells(String, u64, u32),
}

/// Returns the settings of a table.
pub(crate) fn table_config(form: &EntryForm, config: &ElasticConfig) -> TableConfig {
    let entries = form.settings.entries;
    let lookups = LookupLimits { lookups: config.max_parked, packets: config.max_parked };
    TableConfig {
        table: form.number,
        keys: form.keys().clone(),
        records: form.records().clone(),
        layout: form.layout_kind(),
        rule: PlacementRule::default(),
        cells: form.cells(),
        entries,
        replicas: config.replicas,
        // The secret is new, so there were no epochs under it.
        first_epoch: 1,
        sketch: SketchConfig::default(),
        cache: CacheConfig { entries: form.settings.cache as usize, ..CacheConfig::default() },
        // The ledger has accepted what the table gets, so nothing may be refused here. Changes that wait are no more
        // than twice the entries, as there is one for each.
        limits: TableLimits { lookups, changes: usize::MAX, stash: usize::MAX, ..TableLimits::default() },
        mutation: ElasticMutation::default(),
    }
}
