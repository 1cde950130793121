//! Defines the status of the service, for clients that watch, and the events that its operator sees.

use crate::away_reason::AwayReason;

/// The state of the service at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceStatus {
    /// Whether the switch delivers by all current rules.
    pub installed: bool,
    /// The activity of the switch, as a sentence.
    pub detail: String,
    /// Whether that sentence quotes rules, since the switch rejected an update that belongs to them.
    pub quotes_rules: bool,
    /// Number of rules.
    pub rules: u64,
    /// Number of rules in the file.
    pub rules_in_file: u64,
    /// Number of changes of the switch's tables since the start.
    pub changes: u64,
    /// Rendered mistakes of the file; empty if it has none.
    pub mistakes: String,
}

/// An event for the operator of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceEvent {
    /// The switch is connected and reconciled with the rules.
    Installed {
        /// Number of rules.
        rules: usize,
        /// Number of updates that were written.
        writes: usize,
        /// Whether the program was loaded first.
        loaded: bool,
        /// Whether the switch applies a batch atomically (DATAPLANE_ATOMIC).
        atomic: bool,
    },
    /// The switch runs a program of the format with another order of fields than the best one for the rules. The
    /// program stays, and the rules are compiled in its order.
    OtherOrder {
        /// Number of entries in the program's order.
        entries: usize,
        /// The best order, as names of fields, and the number of entries in it.
        better: (Vec<String>, usize),
    },
    /// The switch cannot be used now, with the reason.
    Away(AwayReason),
    /// The file was read: number of rules added, rules removed, and updates written.
    Reloaded(usize, usize, usize),
    /// The file has these mistakes, as rendered diagnostics, and the earlier rules stay.
    Mistakes(String),
    /// The rules are valid and have these warnings, as rendered diagnostics.
    Warnings(String),
    /// Rules with these ids were added.
    Added(Vec<u64>),
    /// Rules with these ids were removed.
    Removed(Vec<u64>),
}
