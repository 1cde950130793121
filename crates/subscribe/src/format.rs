//! Defines the vocabulary of rules: fields, headers, counters and actions of one program.

use std::collections::{BTreeMap, HashMap};

use crate::compile::aggregates::ComputedAggregate;

/// Index of a field in [`MessageFormat::fields`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldId(pub u16);

/// Index of a header in [`MessageFormat::headers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeaderId(pub u16);

/// Index of a counter in [`MessageFormat::counters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CounterId(pub u16);

/// Index of an action in [`MessageFormat::actions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActionId(pub u16);

/// Maximum width of a field, in bits. A wider field is declared as several.
pub const MAX_WIDTH: u32 = 128;

/// Notation of a field's values in rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A number. A field of 32, 48 or 128 bits may also be written as an address.
    Unsigned,
    /// Text of as many bytes as the field has, padded.
    Text(Padding),
    /// An IPv4 address, 32 bits.
    Ipv4,
    /// An IPv6 address, 128 bits.
    Ipv6,
    /// An Ethernet address, 48 bits.
    Mac,
}

/// Padding of text that is shorter than its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Padding {
    /// The padding byte: a space in ITCH.
    pub byte: u8,
    /// Whether the padding precedes the text.
    pub left: bool,
}

impl Padding {
    /// Spaces after the text, as exchanges use.
    pub const SPACES: Padding = Padding { byte: b' ', left: false };
    /// Zeros after the text.
    pub const ZEROS: Padding = Padding { byte: 0, left: false };
}

/// Tests that rules may apply to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// Equality with values (`@query_field_exact`); needs no memory for ranges.
    Exact,
    /// Equality and prefixes (`@query_field_lpm`).
    Lpm,
    /// All tests, in range tables (`@query_field_range`).
    Range,
    /// All tests, in the kind of table that suits the target best (`@query_field`).
    Any,
}

/// A field of messages, as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDeclaration {
    /// Name in the program without the common prefix of all names: `add_order.stock`.
    pub name: String,
    /// Width in bits, from 1 to [`MAX_WIDTH`].
    pub width: u32,
    /// Notation of values.
    pub kind: ValueKind,
    /// Permitted tests.
    pub matching: Match,
    /// Header that must be valid for the field to have a value; `None` for metadata, which always has one.
    pub header: Option<HeaderId>,
}

impl FieldDeclaration {
    /// Returns the largest value.
    pub fn max(&self) -> u128 {
        max_of(self.width)
    }
}

/// Returns the largest number of `width` bits.
pub fn max_of(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// A header whose validity rules can test, as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderDeclaration {
    /// Name in the program without the common prefix of all names: `add_order`.
    pub name: String,
}

/// Length of a tumbling window: state is reset at the end of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Window {
    /// Duration in microseconds, from the first counted message.
    Micros(u64),
    /// Number of counted messages; after the last of them the window is empty.
    Packets(u64),
}

/// A variable of the program that rules may test and update (`@query_counter(name, window)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Width in bits, from 1 to [`MAX_WIDTH`]. Updates saturate.
    pub width: u32,
    /// Window after which the counter is reset to 0; `None` for never.
    pub window: Option<Window>,
}

/// A parameter of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Width in bits, from 1 to [`MAX_WIDTH`].
    pub width: u32,
}

/// An action of the program that rules may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionDeclaration {
    /// Its name.
    pub name: String,
    /// Its parameters, in order.
    pub parameters: Vec<Parameter>,
}

/// The vocabulary of rules. Declarations are added one by one, headers before their fields; a reader of the program
/// derives them from annotations.
///
/// Rules refer to a name in full or by a unique suffix after a dot: `stock` for `add_order.stock`.
#[derive(Clone, Debug)]
pub struct MessageFormat {
    fields: Vec<FieldDeclaration>,
    headers: Vec<HeaderDeclaration>,
    counters: Vec<Counter>,
    actions: Vec<ActionDeclaration>,
    compressed: HashMap<FieldId, u32>,
    pub(crate) computed: Vec<ComputedAggregate>,
    /// Names of fields and counters, and their suffixes.
    subjects: HashMap<String, Named<Subject>>,
    header_names: HashMap<String, Named<HeaderId>>,
    /// Fields by the path of one of their headers.
    paths: HashMap<String, (FieldId, HeaderId)>,
    /// Maximum port number that `fwd` accepts; by default there is no limit.
    pub max_port: u32,
    /// Advice to users whose rules need ports beyond [`MessageFormat::max_port`]; by default there is none.
    pub more_ports: Option<&'static str>,
    /// Port of the controller, if known. Rules that forward to it cause a warning.
    pub controller_port: Option<u32>,
    /// Names that `fwd` accepts. If there are any, `fwd` accepts no numbers: rules of a network deliver to hosts.
    pub port_names: BTreeMap<String, u32>,
    /// Maximum number of distinct aggregates (`avg(price by stock)`) in use at a time, each with separate state in the
    /// program. The default is 8; [`MessageFormat::compute`] counts the declared ones.
    pub slots: u16,
    /// Width of an aggregate's value, in bits. The default is 64; values saturate.
    pub slot_width: u32,
}

/// Operand of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// A field.
    Field(FieldId),
    /// A declared counter: its value before this message.
    Counter(CounterId),
    /// An aggregate's value before this message, as an index into [`Rule::aggregates`](crate::Rule::aggregates).
    Aggregate(u16),
}

#[derive(Clone, Copy, Debug)]
enum Named<T> {
    /// A full name.
    Whole(T),
    /// A suffix of one name.
    Ending(T),
    /// A suffix of at least these two.
    Ambiguous(T, T),
}

/// Reason that a name does not resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError<T> {
    /// No such name.
    Unknown,
    /// The name may be either of these.
    Ambiguous(T, T),
}

/// Reason that a declaration cannot be added to a [`MessageFormat`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// The name is already declared.
    Twice(String),
    /// The kind does not allow this width; a sentence.
    Width(String),
    /// More than 65,535 declarations of one sort.
    TooMany,
}

impl std::fmt::Display for FormatError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FormatError::Twice(name) => write!(f, "`{name}` is declared twice"),
            FormatError::Width(sentence) => f.write_str(sentence),
            FormatError::TooMany => f.write_str("there are more than 65,535 declarations"),
        }
    }
}

impl std::error::Error for FormatError {}

impl Default for MessageFormat {
    fn default() -> Self {
        MessageFormat {
            fields: Vec::new(),
            headers: Vec::new(),
            counters: Vec::new(),
            actions: Vec::new(),
            compressed: HashMap::new(),
            computed: Vec::new(),
            subjects: HashMap::new(),
            header_names: HashMap::new(),
            paths: HashMap::new(),
            max_port: u32::MAX,
            more_ports: None,
            controller_port: None,
            port_names: BTreeMap::new(),
            slots: 8,
            slot_width: 64,
        }
    }
}

fn next(length: usize) -> Result<u16, FormatError> {
    u16::try_from(length).map_err(|_| FormatError::TooMany)
}

fn check_width(name: &str, width: u32) -> Result<(), FormatError> {
    match width {
        1..=MAX_WIDTH => Ok(()),
        _ => Err(FormatError::Width(format!(
            "`{name}` has {width} bits, but rules support 1 to {MAX_WIDTH}: declare parts of it as fields"
        ))),
    }
}

/// Registers a name and its suffixes after dots.
fn enter<T: Copy>(names: &mut HashMap<String, Named<T>>, name: &str, id: T) -> Result<(), FormatError> {
    if matches!(names.get(name), Some(Named::Whole(_))) {
        return Err(FormatError::Twice(name.to_owned()));
    }
    names.insert(name.to_owned(), Named::Whole(id));
    for (dot, _) in name.match_indices('.') {
        names
            .entry(name[dot + 1..].to_owned())
            .and_modify(|named| {
                if let Named::Ending(other) = *named {
                    *named = Named::Ambiguous(other, id);
                }
            })
            .or_insert(Named::Ending(id));
    }
    Ok(())
}

fn find<T: Copy>(names: &HashMap<String, Named<T>>, name: &str) -> Result<T, NameError<T>> {
    match names.get(name) {
        Some(Named::Whole(id) | Named::Ending(id)) => Ok(*id),
        Some(Named::Ambiguous(one, other)) => Err(NameError::Ambiguous(*one, *other)),
        None => Err(NameError::Unknown),
    }
}

impl MessageFormat {
    /// Returns an empty format.
    pub fn new() -> MessageFormat {
        MessageFormat::default()
    }

    /// Adds a header.
    ///
    /// # Errors
    /// [`FormatError`], if its name is already declared.
    pub fn header(&mut self, name: &str) -> Result<HeaderId, FormatError> {
        let id = HeaderId(next(self.headers.len())?);
        enter(&mut self.header_names, name, id)?;
        self.headers.push(HeaderDeclaration { name: name.to_owned() });
        Ok(id)
    }

    /// Adds a field.
    ///
    /// # Errors
    /// [`FormatError`], if its name is already declared or its width does not fit its kind.
    pub fn field(&mut self, field: FieldDeclaration) -> Result<FieldId, FormatError> {
        check_width(&field.name, field.width)?;
        let wrong = match field.kind {
            ValueKind::Ipv4 if field.width != 32 => Some("an IPv4 address has 32"),
            ValueKind::Ipv6 if field.width != 128 => Some("an IPv6 address has 128"),
            ValueKind::Mac if field.width != 48 => Some("an Ethernet address has 48"),
            ValueKind::Text(_) if !field.width.is_multiple_of(8) => Some("a string has a multiple of 8"),
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err(FormatError::Width(format!("`{}` has {} bits, but {wrong}", field.name, field.width)));
        }
        assert!(field.header.is_none_or(|header| usize::from(header.0) < self.headers.len()), "headers come first");
        let id = FieldId(next(self.fields.len())?);
        enter(&mut self.subjects, &field.name, Subject::Field(id))?;
        self.fields.push(field);
        Ok(id)
    }

    /// Maps a field's values to codes of 1 to 32 bits before they are looked up. Tables then match few bits, and
    /// prefixes of codes replace prefixes of values. Use it for fields that rules test against few distinct bounds.
    ///
    /// # Errors
    /// [`FormatError`], if the codes are not narrower than the field, or the field is matched exactly.
    pub fn compress(&mut self, field: FieldId, bits: u32) -> Result<(), FormatError> {
        let of = self.get(field);
        if of.matching == Match::Exact || bits == 0 || bits > 32 || bits >= of.width {
            let (name, width) = (&of.name, of.width);
            let sentence = format!(
                "`{name}` has {width} bits and cannot be mapped to {bits}: codes have 1 to 32 bits, fewer than the field, and are for fields that are tested for ranges"
            );
            return Err(FormatError::Width(sentence));
        }
        self.compressed.insert(field, bits);
        Ok(())
    }

    /// Returns the width of a field's codes in bits, if it has codes.
    pub fn compressed(&self, field: FieldId) -> Option<u32> {
        self.compressed.get(&field).copied()
    }

    /// Adds a counter.
    ///
    /// # Errors
    /// [`FormatError`], if its name is already declared or its width is not allowed.
    pub fn counter(&mut self, counter: Counter) -> Result<CounterId, FormatError> {
        check_width(&counter.name, counter.width)?;
        let id = CounterId(next(self.counters.len())?);
        enter(&mut self.subjects, &counter.name, Subject::Counter(id))?;
        self.counters.push(counter);
        Ok(id)
    }

    /// Adds an action of the program.
    ///
    /// # Errors
    /// [`FormatError`], if its name is already declared (`fwd`, `drop` and `to_controller` are built in) or a width is
    /// not allowed.
    pub fn action(&mut self, action: ActionDeclaration) -> Result<ActionId, FormatError> {
        let built_in = ["fwd", "drop", "to_controller"].contains(&action.name.as_str());
        if built_in || self.actions.iter().any(|other| other.name == action.name) {
            return Err(FormatError::Twice(action.name));
        }
        for parameter in &action.parameters {
            check_width(&parameter.name, parameter.width)?;
        }
        let id = ActionId(next(self.actions.len())?);
        self.actions.push(action);
        Ok(id)
    }

    /// Returns the fields, by [`FieldId`].
    pub fn fields(&self) -> &[FieldDeclaration] {
        &self.fields
    }

    /// Returns the headers, by [`HeaderId`].
    pub fn headers(&self) -> &[HeaderDeclaration] {
        &self.headers
    }

    /// Returns the counters, by [`CounterId`].
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// Returns the actions, by [`ActionId`].
    pub fn actions(&self) -> &[ActionDeclaration] {
        &self.actions
    }

    /// Returns a field.
    ///
    /// # Panics
    /// If the id is of another format, like all methods that take ids.
    pub fn get(&self, id: FieldId) -> &FieldDeclaration {
        &self.fields[usize::from(id.0)]
    }

    /// Returns a counter.
    pub fn get_counter(&self, id: CounterId) -> &Counter {
        &self.counters[usize::from(id.0)]
    }

    /// Returns an action.
    pub fn get_action(&self, id: ActionId) -> &ActionDeclaration {
        &self.actions[usize::from(id.0)]
    }

    /// Returns a header.
    pub fn get_header(&self, id: HeaderId) -> &HeaderDeclaration {
        &self.headers[usize::from(id.0)]
    }

    /// Returns the field or counter with this name or unique suffix.
    ///
    /// # Errors
    /// [`NameError`], if there is none, or more than one.
    pub fn subject(&self, name: &str) -> Result<Subject, NameError<Subject>> {
        find(&self.subjects, name)
    }

    /// Adds another name for a field in one of its headers: `add_order.stock` for `stock`, which several headers have.
    /// A test by this name is false unless the header is valid.
    pub fn path(&mut self, path: String, field: FieldId, header: HeaderId) {
        self.paths.insert(path, (field, header));
    }

    /// Returns the field and the header with this path, unless it is the name of a field or counter.
    pub fn field_by_path(&self, path: &str) -> Option<(FieldId, HeaderId)> {
        self.paths.get(path).copied().filter(|_| !self.subjects.contains_key(path))
    }

    /// Returns the header with this name or unique suffix.
    ///
    /// # Errors
    /// [`NameError`], if there is none, or more than one.
    pub fn header_named(&self, name: &str) -> Result<HeaderId, NameError<HeaderId>> {
        find(&self.header_names, name)
    }

    /// Returns the action with this name.
    pub fn action_named(&self, name: &str) -> Option<ActionId> {
        self.actions.iter().position(|action| action.name == name).map(|at| ActionId(at as u16))
    }

    /// Returns the name of a field or counter; aggregates have no name.
    pub fn name(&self, subject: Subject) -> &str {
        match subject {
            Subject::Field(id) => &self.get(id).name,
            Subject::Counter(id) => &self.get_counter(id).name,
            Subject::Aggregate(_) => "aggregate",
        }
    }

    /// Returns the width of the tested value, in bits.
    pub fn width(&self, subject: Subject) -> u32 {
        match subject {
            Subject::Field(id) => self.get(id).width,
            Subject::Counter(id) => self.get_counter(id).width,
            Subject::Aggregate(_) => self.slot_width,
        }
    }
}
