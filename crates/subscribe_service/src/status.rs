//! How things stand, for those who watch and for who runs the service.

/// How things stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether the switch delivers by all the rules that are held.
    pub installed: bool,
    /// What the switch is doing, for people.
    pub detail: String,
    /// Rules.
    pub rules: u64,
    /// Of these, the ones that stand in the file.
    pub rules_in_file: u64,
    /// How often the switch's tables were changed.
    pub changes: u64,
    /// What is wrong with the file; empty if nothing is.
    pub mistakes: String,
}

/// Something that happened, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The switch is connected, and what it held beside the rules was put right with so many writes.
    Installed {
        /// Rules that it delivers by.
        rules: usize,
        /// Writes.
        writes: usize,
        /// Whether the program was loaded for that.
        loaded: bool,
        /// Whether it takes changes as a whole.
        atomic: bool,
    },
    /// The switch runs a program of the format with another order of fields than suits the rules; it stays, and the rules are
    /// compiled in its order.
    OtherOrder {
        /// Entries in its order.
        entries: usize,
        /// The order that suits the rules, by names that say it, and entries in that.
        better: (Vec<String>, usize),
    },
    /// The switch cannot be used now; why.
    Away(String),
    /// The file was read: rules that came, rules that went, writes.
    Reloaded(usize, usize, usize),
    /// The file has mistakes, and the rules from before stay.
    Mistakes(String),
    /// The rules do something that may not be meant: what, with its place.
    Warnings(String),
    /// Rules were added.
    Added(Vec<u64>),
    /// Rules were taken away.
    Removed(Vec<u64>),
}
