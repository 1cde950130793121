//! What an architecture says about the control plane.

/// What P4Info has to know of an architecture: which extern objects are which resource, and which properties attach
/// them to tables. Everything else is the language's and P4Runtime's.
pub trait Architecture {
    /// Its name in `pkg_info.arch`.
    fn name(&self) -> &str;

    /// What the instances of an extern object are to the control plane, if anything.
    fn resource(&self, object: &str) -> Option<Resource>;

    /// What a table's property does.
    fn property(&self, name: &str) -> Option<Property>;

    /// Whether calls of this extern function send their type argument as a digest.
    fn is_digest(&self, function: &str) -> bool;

    /// The size of tables that say none.
    fn default_table_size(&self) -> i64 {
        1024
    }

    /// How a key element of this match kind is matched, as the control plane sees it.
    fn match_kind(&self, kind: &str) -> MatchKind;
}

/// What an extern object is to the control plane, with the names of the constructor's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Actions with data that tables refer to.
    ActionProfile {
        /// Whether it has groups, among whose members a hash selects.
        selector: bool,
        /// The parameter that tells the size.
        size: &'static str,
    },
    /// An array of counters.
    Counter {
        /// The parameter that tells the size.
        size: &'static str,
        /// The parameter, an enum, that tells what is counted.
        unit: &'static str,
        /// Which type argument, if there are that many, is the type of the index.
        index: usize,
    },
    /// A counter for each entry of a table.
    DirectCounter {
        /// The parameter that tells what is counted.
        unit: &'static str,
    },
    /// An array of meters.
    Meter {
        /// The parameter that tells the size.
        size: &'static str,
        /// The parameter that tells what is metered.
        unit: &'static str,
        /// Which type argument, if there are that many, is the type of the index.
        index: usize,
    },
    /// A meter for each entry of a table.
    DirectMeter {
        /// The parameter that tells what is metered.
        unit: &'static str,
    },
    /// An array of registers; the first type argument is what they hold.
    Register {
        /// The parameter that tells the size.
        size: &'static str,
        /// Which type argument, if there are that many, is the type of the index.
        index: usize,
    },
}

/// What a table's property does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Its value is the action profile with the table's actions.
    Implementation,
    /// Its value is a direct counter.
    DirectCounter,
    /// Its value is a direct meter.
    DirectMeter,
    /// Its value tells whether entries age.
    IdleTimeout,
}

/// How a key element is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchKind {
    /// One of P4Runtime's.
    Standard(p4runtime_proto::config::match_field::MatchType),
    /// The architecture's own.
    Other,
    /// Not by the control plane: the data plane alone uses it.
    Hidden,
}
