//! Names the rules of the validator, and defines the violations it reports.

use std::fmt;

use diagnostics::SourcePosition;

/// Maximum length of a name in bytes.
pub const MAX_NAME: usize = 1000;
/// Maximum nesting depth of expressions, counting the outermost; lowering splits deeper ones into
/// temporaries.
pub const MAX_EXPR_DEPTH: usize = 256;
/// Maximum number of bits of a header and of the data that an action takes from an entry, and maximum position of the
/// last bit that a lookahead examines.
pub const MAX_DATA_BITS: u64 = 1 << 19;
/// Maximum number of elements of one register, counter or meter array.
pub const MAX_ARRAY_SIZE: u64 = 1 << 24;
/// Maximum number of bits of one register array.
pub const MAX_REGISTER_BITS: u64 = 1 << 31;
/// Maximum number of elements of all arrays together.
pub const MAX_ALL_ARRAYS: u64 = 1 << 26;

macro_rules! rules {
    ($($name:ident $text:literal;)*) => {
        /// A rule of the validator. Its number is its position in the list in the validator's module
        /// documentation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule {
            $(#[doc = $text] $name,)*
        }

        impl Rule {
            /// Every rule in order.
            pub const ALL: &[Rule] = &[$(Rule::$name,)*];

            /// Returns the rule as a sentence.
            pub fn text(self) -> &'static str {
                match self {
                    $(Rule::$name => $text,)*
                }
            }

            /// Returns the rule's name in kebab-case, as used in diagnostics.
            pub fn code(self) -> String {
                let mut code = String::new();
                for c in format!("{self:?}").chars() {
                    if c.is_ascii_uppercase() && !code.is_empty() {
                        code.push('-');
                    }
                    code.push(c.to_ascii_lowercase());
                }
                code
            }
        }
    };
}

rules! {
    IdInRange "Every id, field number and action number names something that exists.";
    UniqueName "Names are unique within a kind, in a header type, in an action's parameters and in a table's actions; \
                exempt are local headers and slots, arguments, actions and action bodies.";
    NameLength "No name is longer than 1000 bytes.";
    WidthLimit "No slot, field, key, register element or expression is wider than 65536 bits, no header or action's \
                data than 524288 bits.";
    SizeLimit "Register, counter and meter arrays have at most 2^24 elements and 2^31 bits each and 2^26 elements \
               together; a lookahead reaches at most 524288 bits.";
    OneVarbit "A header type has at most one varbit field.";
    StackElements "A stack has at least one element, all of one type; no header is in two stacks; its next index is 32 bits wide.";
    Arguments "An action's parameters are argument slots, each parameter its own, used by that action's body alone.";
    Roles "The architecture's `parser` is a parser body, its other blocks are controls.";
    FieldLists "Field lists hold metadata slots and headers that are not local; every \
                field list named by a resubmit, recirculate or clone exists.";
    EqualWidths "Both sides of an operator, an assignment, a conditional expression or a match have the same width.";
    OperandWidth "Conditions are 1 bit wide; bit counts, byte counts, errors, session ids and action numbers 32 bits.";
    SliceBounds "A slice's high bit is at or above its low bit and lies within the value.";
    Extension "The result of an extension is at least as wide as its operand.";
    VarbitUse "Fixed fields are used as values and l-values, varbit fields only by the instructions that accept them.";
    ExprDepth "Expressions nest at most 256 deep.";
    BodyKinds "Only parsers have states, extract, look ahead, advance, verify, select and reject; only controls emit; \
               parsers neither apply tables nor exit.";
    NoApplyInAction "Actions do not apply tables.";
    ExtractWidth "An extraction gives a varbit field's width exactly if the layout has a varbit field.";
    ErrorIndex "A constant error that is raised is a member of the errors.";
    EqualLayouts "A header is copied only from a header of equal layout, a varbit field only from one that is at \
                  most as wide.";
    DigestValues "A digest gets one value for each field, of the field's width.";
    DirectObjects "Indexed counters and meters are used by index; a direct meter is only read; a table's counter and \
                   meter are direct and belong to no other table.";
    MeterUnit "Meters measure packets or bytes, not both.";
    Reachable "A body has an entry block, and every block is reachable from it.";
    SwitchCases "The values of a switch are as wide as its subject, and distinct.";
    SelectCoverage "The matches of a select case cover its keys exactly; a value set covers one key per field.";
    ActionBody "An action's body has the kind `action`.";
    KeyWidth "A table key is as wide as its expression.";
    KeyKinds "A table has at most one lpm key; selector keys belong to a table whose profile has a selector; value \
              sets have no selector keys.";
    EntryKeys "An entry has one value for each key but selectors, of the key's kind and width; prefixes fit and \
               nothing is set outside prefix or mask; ranges are not empty.";
    ActionData "A default action and an entry give one argument for each of the action's parameters, of its width.";
    ActionUse "A default action is not `@tableonly`; an entry's action is not `@defaultonly`.";
    Priority "Priorities are not negative, and 0 where no key element needs one.";
}

impl Rule {
    /// Returns the number of the rule, from 1.
    pub fn number(self) -> usize {
        self as usize + 1
    }
}

/// A broken rule and its location.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// Location in the program, in words: `body MyParser, block start, "extract hdr.ipv4"`.
    pub location: String,
    /// Position in the P4 source, if the program records it.
    pub source: Option<SourcePosition>,
    /// Description of the problem there.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (rule {}, {})", self.location, self.message, self.rule.number(), self.rule.code())?;
        match &self.source {
            Some(source) => write!(f, " at {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Violation {}
