//! Rules as data: what the language says once names are resolved.

use diagnostics::Span;

use crate::format::{ActionId, CounterId, FieldId, HeaderId, Subject, Window};
use crate::ranges::Ranges;

/// A subscription: when `condition` holds for a message, all of `actions` are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// As given by `rule NAME:`.
    pub name: Option<Box<str>>,
    /// Where it stands.
    pub span: Span,
    /// When it matches.
    pub condition: Condition,
    /// What it does; in no order.
    pub actions: Vec<Action>,
    /// The aggregates that the condition speaks of.
    pub aggregates: Vec<Aggregate>,
}

impl Rule {
    /// How messages name the rule: its name, or the place.
    pub fn label(&self, map: &diagnostics::SourceMap) -> String {
        match &self.name {
            Some(name) => format!("rule `{name}`"),
            None if map.contains(self.span.file) => {
                let place = map.position(self.span);
                format!("the rule at {}:{}", place.file, place.line)
            }
            None => "the rule".to_owned(),
        }
    }
}

/// A condition. Tests of fields of a header that is not valid are false, whatever they ask; so `not stock == "A"` holds
/// for messages without a `stock`, and `stock != "A"` does not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// `true`.
    Always,
    /// `false`.
    Never,
    /// `valid(header)`.
    Valid {
        /// The header.
        header: HeaderId,
        /// Where it stands.
        span: Span,
    },
    /// A comparison with constants.
    Test(Test),
    /// `not`.
    Not(Box<Condition>),
    /// `and` of two or more.
    All(Vec<Condition>),
    /// `or` of two or more.
    Any(Vec<Condition>),
}

/// Whether something has one of some values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Test {
    /// What is tested.
    pub subject: Subject,
    /// The values for which the test holds.
    pub values: Ranges,
    /// Where it stands.
    pub span: Span,
}

/// What an aggregate computes. Over no message at all, `Min` is the largest number of its width, the others are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Function {
    /// How many messages.
    Count,
    /// The sum of a field, which saturates.
    Sum,
    /// The sum divided by the count, rounded down.
    Avg,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
}

impl Function {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Function); 5] = [
        ("count", Function::Count),
        ("sum", Function::Sum),
        ("avg", Function::Avg),
        ("min", Function::Min),
        ("max", Function::Max),
    ];

    /// As rules write it.
    pub fn name(self) -> &'static str {
        Function::ALL.iter().find(|(_, function)| *function == self).map_or("", |(name, _)| name)
    }
}

/// A value computed over messages that came before: those for which the rest of the rule held (its condition with every
/// test of an aggregate taken as true).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Aggregate {
    /// What is computed.
    pub function: Function,
    /// Of which field; only a count may do without.
    pub field: Option<FieldId>,
    /// Apart for each combination of values of these fields.
    pub by: Vec<FieldId>,
    /// Over how long.
    pub window: Window,
}

/// What a rule does with a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Delivers it to these ports; ascending, each once. Ports of all rules that match are taken together.
    Forward(Vec<u32>),
    /// Delivers it nowhere. It does not take back what other rules deliver.
    Drop,
    /// Gives it to the controller.
    ToController,
    /// Runs an action of the program, with a value for each parameter.
    Call(ActionId, Vec<u128>),
    /// Changes a counter.
    Update(Update),
}

/// A change of a counter: `counter <- counter FUNCTION operand`. Results stay within the counter's width: they saturate
/// at 0 and at the largest value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Update {
    /// Which.
    pub counter: CounterId,
    /// How.
    pub function: UpdateFunction,
    /// With what.
    pub operand: Operand,
}

/// How an update uses its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UpdateFunction {
    /// The operand takes the old value's place.
    Set,
    /// It is added.
    Add,
    /// It is taken off.
    Subtract,
    /// The smaller of the two.
    Min,
    /// The larger of the two.
    Max,
}

/// What a counter is updated with.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operand {
    /// A number.
    Number(u128),
    /// A field of the message; where its header is not valid, nothing is updated.
    Field(FieldId),
}
