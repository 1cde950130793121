//! Defines and renders the differences between a program and a P4Info.

use std::fmt;

use super::types::TooManyParts;

/// The first difference between a program and a P4Info that should describe the same objects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    /// An object has no name or id, or that of another object.
    #[error("the {kind} `{name}` in its P4Info has a missing or duplicate name or id")]
    Identity {
        /// The kind of object.
        kind: &'static str,
        /// The name of the object.
        name: String,
    },
    /// A width is negative, or larger than any value may be.
    #[error("its P4Info gives {of} {bits} bits")]
    Width {
        /// The holder of the value.
        of: WidthOf,
        /// The width in bits.
        bits: i32,
    },
    /// A controller header is wider than any header may be.
    #[error("its P4Info gives the controller header `{name}` {bits} bits")]
    HeaderWidth {
        /// The name of the header.
        name: String,
        /// The width in bits.
        bits: u64,
    },
    /// A type has too many parts.
    #[error(transparent)]
    Type(#[from] TooManyParts),
    /// Two parameters of an action have one id.
    #[error("two parameters of action `{action}` have the same id in its P4Info")]
    ParameterIds {
        /// The name of the action.
        action: String,
    },
    /// An object of both has different parts.
    #[error("its P4Info and its program differ in {part} of {kind} `{name}`")]
    Part {
        /// The kind of object.
        kind: &'static str,
        /// The name of the object.
        name: String,
        /// The part that differs.
        part: DifferentPart,
    },
}

/// The holder of a value that has a width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WidthOf {
    /// A type without a name.
    Type,
    /// A type with this name.
    NamedType(String),
    /// An enum.
    Enum,
    /// A parameter of an action.
    Parameter,
    /// A match field.
    MatchField,
    /// A field of a controller header.
    HeaderField,
}

impl fmt::Display for WidthOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WidthOf::Type => f.write_str("a type"),
            WidthOf::NamedType(name) => write!(f, "the type `{name}`"),
            WidthOf::Enum => f.write_str("an enum"),
            WidthOf::Parameter => f.write_str("a parameter"),
            WidthOf::MatchField => f.write_str("a match field"),
            WidthOf::HeaderField => f.write_str("a field of a controller header"),
        }
    }
}

/// A part of an object that a program and a P4Info describe differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DifferentPart {
    /// The number of parameters.
    Parameters,
    /// The parameter with this name.
    Parameter(String),
    /// The number of match fields, or their ids.
    MatchFields,
    /// The match field with this name.
    MatchField(String),
    /// The actions of a table.
    Actions,
    /// The action profile of a table.
    ActionProfile,
    /// The direct counter of a table.
    DirectCounter,
    /// The direct meter of a table.
    DirectMeter,
    /// The fields of a digest.
    Fields,
}

impl fmt::Display for DifferentPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DifferentPart::Parameters => f.write_str("the parameters"),
            DifferentPart::Parameter(name) => write!(f, "the parameter `{name}`"),
            DifferentPart::MatchFields => f.write_str("the match fields"),
            DifferentPart::MatchField(name) => write!(f, "the match field `{name}`"),
            DifferentPart::Actions => f.write_str("the actions"),
            DifferentPart::ActionProfile => f.write_str("the action profile"),
            DifferentPart::DirectCounter => f.write_str("the direct counter"),
            DifferentPart::DirectMeter => f.write_str("the direct meter"),
            DifferentPart::Fields => f.write_str("the fields"),
        }
    }
}
