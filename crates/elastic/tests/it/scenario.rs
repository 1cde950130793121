//! Draws the configuration of a simulation from its seed.

use elastic::admission::{CacheConfig, SketchConfig};
use elastic::keys::KeyForm;
use elastic::layout::LayoutKind;
use elastic::lookups::LookupLimits;
use elastic::placement::PlacementRule;
use elastic::record::{ActionForm, RecordForm};
use elastic::table::{TableConfig, TableLimits};
use elastic::{ElasticMutant, ElasticMutation};
use rng::SplitMix64;

/// Chances of faults, in a thousand inputs.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultRates {
    /// A READ or WRITE is never completed.
    pub loss: u64,
    /// A READ is executed in two parts.
    pub torn: u64,
    /// A server silently loses its memory.
    pub blank: u64,
    /// A server writes random bytes into a cell.
    pub scribble: u64,
    /// A server begins to answer with random bytes.
    pub liar: u64,
    /// The port of a server goes down.
    pub port_down: u64,
    /// A link becomes busy, or free again.
    pub busy: u64,
    /// The set of servers changes.
    pub membership: u64,
    /// The table is drained.
    pub drain: u64,
}

/// Configuration of a simulation.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub config: TableConfig,
    pub servers: u16,
    pub rates: FaultRates,
    pub inputs: u32,
    /// Number of different keys of packets.
    pub keys: u64,
    /// Largest delay of a message.
    pub delay: u64,
}

/// The actions of the simulated tables: one with 16 bits, one without parameters.
pub fn records() -> RecordForm {
    RecordForm::new(vec![ActionForm { parameter_bits: vec![16], is_default_only: false }, ActionForm::default()])
}

/// Draws a form of keys of 6 bits: some lengths have cells, and some stay in the switch.
fn prefix_form(random: &mut SplitMix64) -> KeyForm {
    let lengths = match random.below(4) {
        0 => (0..=6).collect(),
        1 => vec![6],
        _ => vec![2, 4, 6],
    };
    KeyForm::Prefix { exact_bytes: 0, bits: 6, lengths, expansion_bits: random.below(4) as u32 }
}

impl Scenario {
    pub fn draw(random: &mut SplitMix64, mutant: Option<ElasticMutant>) -> Scenario {
        let is_quiet = random.percent(15);
        let mut rate = |chances: u64, most: u64| {
            let is_on = !is_quiet && random.percent(chances);
            if is_on { 1 + random.below(most) } else { 0 }
        };
        let rates = FaultRates {
            loss: rate(60, 20),
            torn: rate(70, 500),
            blank: rate(40, 10),
            scribble: rate(40, 20),
            liar: rate(25, 6),
            port_down: rate(50, 15),
            busy: rate(30, 20),
            membership: rate(30, 6),
            drain: rate(30, 8),
        };
        let keys = 4 + random.below(40);
        let is_paper = random.percent(25);
        let layout = match is_paper {
            true => LayoutKind::TwoBuckets {
                cells: 1 + random.below(3) as u32,
                scratchpad_bytes: random.below(2) as u32 * 64,
            },
            false => LayoutKind::Windows { cells: 1 + random.below(6) as u32 },
        };
        let rule = match is_paper && random.percent(60) {
            true => PlacementRule::RandomWalk { max_tries: random.below(6) as u32 },
            false => PlacementRule::default(),
        };
        let key_form = match random.percent(30) {
            true => prefix_form(random),
            false => KeyForm::Exact { bytes: 2 },
        };
        let config = TableConfig {
            table: 7,
            keys: key_form,
            records: records(),
            layout,
            rule,
            cells: keys as u32 / 2 + random.below(24) as u32,
            entries: 8 + random.below(60) as u32,
            replicas: random.pick(&[(3, 1), (5, 2), (2, 3)]),
            first_epoch: 1,
            sketch: SketchConfig { rows: 4, width: 64, ageing_interval: 64 },
            cache: CacheConfig { entries: random.below(4) as usize, threshold: 1 + random.below(4) as u16 },
            limits: TableLimits {
                lookups: LookupLimits {
                    lookups: 4 + random.below(40) as usize,
                    packets: 8 + random.below(100) as usize,
                },
                changes: 300,
                operations: 1 + random.below(8) as usize,
                stash: 1000,
                rereads: random.below(3) as u32,
                blocks: 1 + random.below(3) as u32,
                repairs: random.below(4) as u32,
                restarts: 1 + random.below(3) as u32,
                valid_reads: 30,
            },
            mutation: ElasticMutation::of(mutant),
        };
        let servers = 1 + random.below(4) as u16;
        Scenario { config, servers, rates, inputs: 150 + random.below(350) as u32, keys, delay: 2 + random.below(30) }
    }
}
