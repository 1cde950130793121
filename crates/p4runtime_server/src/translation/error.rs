//! Defines the errors of translation.

/// A value that cannot be translated. Values are in printable form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranslationError {
    /// The controller's value is not a number of the type's width.
    #[error("{sdn} is not a {width}-bit number")]
    NotANumber {
        /// The value.
        sdn: String,
        /// The width of the controller's type.
        width: u32,
    },
    /// The controller's value is not a text.
    #[error("{sdn} is not a non-empty UTF-8 string")]
    NotAText {
        /// The value.
        sdn: String,
    },
    /// The text is too long.
    #[error("a name of {length} bytes exceeds the limit of {limit}")]
    TooLong {
        /// Length of the text, in bytes.
        length: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The closed mapping has no such value.
    #[error("{sdn} has no counterpart in this switch")]
    Unknown {
        /// The value.
        sdn: String,
    },
    /// The number has no pair and does not fit into the data plane's type.
    #[error("{sdn} maps to itself, but the data plane's type has only {width} bits")]
    TooWide {
        /// The value.
        sdn: String,
        /// The width of the data plane's type.
        width: u32,
    },
    /// The number would map to itself, but that value of the data plane belongs to another pair.
    #[error("{sdn} is not available; its value in the data plane belongs to {name}")]
    Taken {
        /// The value.
        sdn: String,
        /// The controller's value in that pair.
        name: String,
    },
    /// All values of the data plane's type are taken.
    #[error("all values of the data plane's {width} bits are assigned, or the limit of names is reached")]
    Exhausted {
        /// The width of the data plane's type.
        width: u32,
    },
    /// Two configured pairs exclude each other.
    #[error("{sdn} is mapped twice")]
    Conflict {
        /// The controller's value.
        sdn: String,
    },
    /// The match covers only some bits.
    #[error("a field of a translated type can be matched exactly or not at all, not on some of its bits")]
    SomeBits,
}
