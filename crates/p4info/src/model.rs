//! Defines the control plane's view of an architecture.

pub use p4runtime_proto::config::match_field::MatchType;

/// An architecture as P4Info sees it: which extern objects are which resource, and which properties attach them to
/// tables. Everything else is the language's and P4Runtime's.
pub trait ControlPlaneModel {
    /// Returns the architecture's name, for `pkg_info.arch`.
    fn architecture(&self) -> &str;

    /// Returns the resource that instances of an extern object are to the control plane, if they are one.
    fn resource(&self, object: &str) -> Option<Resource>;

    /// Returns the effect of a table's property, if the control plane has to know it.
    fn property(&self, name: &str) -> Option<Property>;

    /// Whether calls of this extern function send their type argument as a digest.
    fn is_digest(&self, function: &str) -> bool;

    /// Returns the size of tables that give none, in entries.
    fn default_table_size(&self) -> i64 {
        1024
    }

    /// Returns the match kind of a key element as the control plane sees it.
    fn match_kind(&self, kind: &str) -> MatchKind;
}

/// A resource of the control plane, with the names of the extern constructor's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Actions with data that tables refer to.
    ActionProfile {
        /// Whether it has groups, whose members are selected by a hash.
        selector: bool,
        /// Name of the parameter that gives the size.
        size: &'static str,
    },
    /// An array of counters.
    Counter {
        /// Name of the parameter that gives the size.
        size: &'static str,
        /// Name of the parameter, an enum, that says whether packets, bytes or both are counted.
        unit: &'static str,
        /// Position of the type argument that is the index's type, if there are that many.
        index: usize,
    },
    /// A counter for each entry of a table.
    DirectCounter {
        /// Name of the parameter that says whether packets, bytes or both are counted.
        unit: &'static str,
    },
    /// An array of meters.
    Meter {
        /// Name of the parameter that gives the size.
        size: &'static str,
        /// Name of the parameter that says whether packets or bytes are metered.
        unit: &'static str,
        /// Position of the type argument that is the index's type, if there are that many.
        index: usize,
    },
    /// A meter for each entry of a table.
    DirectMeter {
        /// Name of the parameter that says whether packets or bytes are metered.
        unit: &'static str,
    },
    /// An array of registers; the first type argument is the element type.
    Register {
        /// Name of the parameter that gives the size.
        size: &'static str,
        /// Position of the type argument that is the index's type, if there are that many.
        index: usize,
    },
}

/// Effect of a table's property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Its value is the action profile with the table's actions.
    Implementation,
    /// Its value is a direct counter.
    DirectCounter,
    /// Its value is a direct meter.
    DirectMeter,
    /// Its value says whether entries age.
    IdleTimeout,
}

/// Match kind of a key element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchKind {
    /// A match kind of P4Runtime.
    Standard(MatchType),
    /// The architecture's own.
    Other,
    /// Hidden from the control plane: only the data plane uses the element.
    Hidden,
}
