//! What cannot be translated.

/// Why a value has no translation. Values are shown as people read them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranslationError {
    /// The controller's value is no number of the type's width.
    #[error("{sdn} is not a number of {width} bits")]
    NotANumber {
        /// What was written.
        sdn: String,
        /// The width of the controller's type.
        width: u32,
    },
    /// The controller's value is no text.
    #[error("{sdn} is not a text in UTF-8 of at least one character")]
    NotAText {
        /// What was written.
        sdn: String,
    },
    /// The text is longer than any name has to be.
    #[error("a name of {length} bytes is over the limit of {limit}")]
    TooLong {
        /// Its length, in bytes.
        length: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// Nothing has this name.
    #[error("{sdn} stands for nothing in this switch")]
    Unknown {
        /// What was written.
        sdn: String,
    },
    /// The number has no pair, and does not fit into the data plane's type.
    #[error("{sdn} stands for itself, and the data plane's type has {width} bits only")]
    TooWide {
        /// What was written.
        sdn: String,
        /// The width of the data plane's type.
        width: u32,
    },
    /// The number would stand for itself, but the data plane's value has another name.
    #[error("{sdn} is written {name} here")]
    Taken {
        /// What was written.
        sdn: String,
        /// The name that the value has.
        name: String,
    },
    /// All values of the data plane's type have a name.
    #[error("all values of the data plane's {width} bits have a name already, or too many have")]
    Exhausted {
        /// The width of the data plane's type.
        width: u32,
    },
    /// Two pairs in the configuration exclude each other.
    #[error("{sdn} is in two pairs")]
    Conflict {
        /// The controller's value.
        sdn: String,
    },
    /// A match that says something of some bits only.
    #[error("values of a translated type can be matched exactly or not at all, not by some of their bits")]
    SomeBits,
}
