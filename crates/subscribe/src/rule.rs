//! Rules as data: the abstract syntax with resolved names.

use diagnostics::Span;

use crate::format::{ActionId, CounterId, FieldId, HeaderId, Subject, Window};
use crate::ranges::Ranges;

/// A subscription: all `actions` apply to each message for which `condition` holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Name given by `rule NAME:`.
    pub name: Option<Box<str>>,
    /// Source location.
    pub span: Span,
    /// Condition of a match.
    pub condition: Condition,
    /// Actions, in no particular order.
    pub actions: Vec<RuleAction>,
    /// Aggregates that the condition uses.
    pub aggregates: Vec<Aggregate>,
}

impl Rule {
    /// Returns the name of the rule for messages, or its location.
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

/// A condition. Any test of a field of an invalid header is false: `not stock == "A"` holds for messages without a
/// `stock`, and `stock != "A"` does not. The same holds for a test of an aggregate without a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Condition {
    /// `true`.
    Always,
    /// `false`.
    Never,
    /// `valid(header)`.
    Valid {
        /// The header.
        header: HeaderId,
        /// Source location.
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

/// A test of whether a subject has one of some values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Test {
    /// The tested subject.
    pub subject: Subject,
    /// Values for which the test holds.
    pub values: Ranges,
    /// Source location.
    pub span: Span,
}

/// The function of an aggregate. Over no messages, `Count` and `Sum` are 0, and the others have no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Function {
    /// Number of messages.
    Count,
    /// Saturating sum of a field.
    Sum,
    /// The sum divided by the count, rounded down.
    Avg,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The exponentially weighted moving average, rounded to the nearest number. The first message sets it; each
    /// further one moves it by a part of the difference, which [`AggregateWindow::Decaying`] gives.
    Ewma,
}

impl Function {
    /// All functions with their names.
    pub const ALL: [(&'static str, Function); 6] = [
        ("count", Function::Count),
        ("sum", Function::Sum),
        ("avg", Function::Avg),
        ("min", Function::Min),
        ("max", Function::Max),
        ("ewma", Function::Ewma),
    ];

    /// Returns the name in rules.
    pub fn name(self) -> &'static str {
        Function::ALL.iter().find(|(_, function)| *function == self).map_or("", |(name, _)| name)
    }

    /// Returns the window of an aggregate that names none: all messages.
    pub fn default_window(self) -> AggregateWindow {
        match self {
            Function::Ewma => AggregateWindow::DECAYING,
            _ => AggregateWindow::All,
        }
    }

    /// Whether the function has a value over no messages.
    pub fn is_total(self) -> bool {
        matches!(self, Function::Count | Function::Sum)
    }
}

/// The messages that an aggregate ranges over, of those that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AggregateWindow {
    /// `over 1s`: those of the current tumbling window. It begins with the first message after the previous one.
    Tumbling(Window),
    /// `over previous 1s`: those of the last tumbling window that is complete, however long ago it was.
    Previous(Window),
    /// `over all`: all of them.
    All,
    /// `over 16 packets` of an [`Ewma`](Function::Ewma), and of nothing else: all of them, where each moves the average
    /// by `1 / 2^shift` of the difference.
    Decaying {
        /// Binary logarithm of the number of packets, up to [`MAX_SHIFT`](Self::MAX_SHIFT).
        shift: u32,
    },
}

impl AggregateWindow {
    /// Maximum shift of a decaying window: 65,536 packets.
    pub const MAX_SHIFT: u32 = 16;
    /// The window of an average that names none: 16 packets.
    pub const DECAYING: AggregateWindow = AggregateWindow::Decaying { shift: 4 };

    /// Returns the length of the tumbling windows, if there are any.
    pub fn length(self) -> Option<Window> {
        match self {
            AggregateWindow::Tumbling(length) | AggregateWindow::Previous(length) => Some(length),
            AggregateWindow::All | AggregateWindow::Decaying { .. } => None,
        }
    }

    /// Returns the number of fraction bits of a moving average. With one more than the shift, an average of equal
    /// values reaches exactly their value: it moves until the difference, in units of the last bit, is below 2^shift,
    /// which is at most one half.
    pub fn fraction_bits(self) -> u32 {
        match self {
            AggregateWindow::Decaying { shift } => shift + 1,
            _ => 0,
        }
    }
}

/// A value computed over earlier messages: those for which the rest of the rule held, that is, its condition with every
/// aggregate test taken as true.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Aggregate {
    /// The function.
    pub function: Function,
    /// Its input field; only a count may have none.
    pub field: Option<FieldId>,
    /// Key fields: state is separate for each combination of their values.
    pub by: Vec<FieldId>,
    /// The window.
    pub window: AggregateWindow,
}

/// An action of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuleAction {
    /// Delivers to these ports, ascending and distinct. The ports of all matching rules are united.
    Forward(Vec<u32>),
    /// Delivers nowhere. It does not revoke what other rules deliver.
    Drop,
    /// Delivers to the controller.
    ToController,
    /// Runs an action of the program, with one value per parameter.
    Call(ActionId, Vec<u128>),
    /// Updates a counter.
    Update(Update),
}

/// An update of a counter: `counter <- counter FUNCTION operand`. Results saturate at 0 and at the largest value of the
/// counter's width.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Update {
    /// The counter.
    pub counter: CounterId,
    /// The function.
    pub function: UpdateFunction,
    /// Its second operand.
    pub operand: Operand,
}

/// The function of a counter update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UpdateFunction {
    /// The operand replaces the old value.
    Set,
    /// Saturating addition.
    Add,
    /// Saturating subtraction.
    Subtract,
    /// Minimum of both.
    Min,
    /// Maximum of both.
    Max,
}

/// Operand of a counter update. Its value saturates at 0 and at the largest value of a counter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operand {
    /// A term alone.
    Term(Term),
    /// The product of two terms.
    Product(Term, Term),
    /// The first term less the second.
    Difference(Term, Term),
}

/// Term of a counter update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Term {
    /// A number.
    Number(u128),
    /// A field of the message; if its header is not valid, nothing is updated.
    Field(FieldId),
    /// The value of a counter before the message.
    Counter(CounterId),
}
