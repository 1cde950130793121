//! What rules may speak of: fields, headers, counters and actions of one program.

use std::collections::{BTreeMap, HashMap};

use crate::computed::Computed;

/// A field of a [`Format`], by its place in [`Format::fields`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldId(pub u16);

/// A header of a [`Format`], by its place in [`Format::headers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeaderId(pub u16);

/// A counter of a [`Format`], by its place in [`Format::counters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CounterId(pub u16);

/// An action of a [`Format`], by its place in [`Format::actions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActionId(pub u16);

/// The widest field, in bits. A wider one is declared as several.
pub const MAX_WIDTH: u32 = 128;

/// How people write a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number. A field of 32, 48 or 128 bits may also be written as an address.
    Unsigned,
    /// Text of as many bytes as the field has, filled up.
    Text(Padding),
    /// An IPv4 address, 32 bits.
    Ipv4,
    /// An IPv6 address, 128 bits.
    Ipv6,
    /// An Ethernet address, 48 bits.
    Mac,
}

/// How text that is shorter than its field is filled up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Padding {
    /// With this byte: a space in ITCH.
    pub byte: u8,
    /// Before the text instead of behind it.
    pub left: bool,
}

impl Padding {
    /// Spaces behind the text, as exchanges do.
    pub const SPACES: Padding = Padding { byte: b' ', left: false };
    /// Zeros behind the text.
    pub const ZEROS: Padding = Padding { byte: 0, left: false };
}

/// What a field may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// Whether it has one of some values (`@query_field_exact`): no memory for ranges is needed.
    Exact,
    /// That, and whether it begins with some bits (`@query_field_lpm`).
    Lpm,
    /// Everything; entries are ranges (`@query_field_range`).
    Range,
    /// Everything; entries are whatever the target does best (`@query_field`).
    Any,
}

/// A field of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// As in the program, without what all names begin with: `add_order.stock`.
    pub name: String,
    /// In bits, from 1 to [`MAX_WIDTH`].
    pub width: u32,
    /// How values are written.
    pub kind: Kind,
    /// What it may be asked.
    pub matching: Match,
    /// The header that must be valid for the field to have a value; `None` for what always has one (metadata).
    pub header: Option<HeaderId>,
}

impl Field {
    /// The largest value.
    pub fn max(&self) -> u128 {
        max_of(self.width)
    }
}

/// The largest number of `width` bits.
pub fn max_of(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// A header whose validity can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// As in the program, without what all names begin with: `add_order`.
    pub name: String,
}

/// A tumbling window: what was counted is forgotten at the end of each, and counted anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Window {
    /// So many microseconds, from the first message on that counts.
    Micros(u64),
    /// So many messages that count: after the last of them there is nothing again.
    Packets(u64),
}

/// A variable of the program that rules may test and update (`@query_counter(name, window)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// In bits, from 1 to [`MAX_WIDTH`]. Updates saturate.
    pub width: u32,
    /// When it goes back to 0; `None` for never.
    pub window: Option<Window>,
}

/// A parameter of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// In bits, from 1 to [`MAX_WIDTH`].
    pub width: u32,
}

/// An action of the program that rules may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionDeclaration {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub parameters: Vec<Parameter>,
}

/// What rules may speak of. Fields, headers, counters and actions are added one by one, headers before their fields;
/// whoever reads programs does that from annotations.
///
/// A name may be written in full or by an ending behind a dot, where that is unique: `stock` for `add_order.stock`.
#[derive(Clone, Debug)]
pub struct Format {
    fields: Vec<Field>,
    headers: Vec<Header>,
    counters: Vec<Counter>,
    actions: Vec<ActionDeclaration>,
    compressed: HashMap<FieldId, u32>,
    pub(crate) computed: Vec<Computed>,
    /// The names of fields and counters, and their endings.
    subjects: HashMap<String, Named<Subject>>,
    header_names: HashMap<String, Named<HeaderId>>,
    /// The largest port that `fwd` takes. 510 unless changed: v1model's ports have 9 bits, and 511 stands for dropping.
    pub max_port: u32,
    /// The port at which the controller gets packets, if it is known: rules that deliver there are warned of.
    pub controller_port: Option<u32>,
    /// Names that `fwd` takes. If there are any, it takes no numbers: rules of a network deliver to hosts.
    pub port_names: BTreeMap<String, u32>,
    /// How many different aggregates (`avg(price by stock)`) rules may use at a time, each with a state of its own in
    /// the program. 8 unless changed; [`Format::compute`] counts those that a program computes.
    pub slots: u16,
    /// The width of an aggregate's value, in bits. 64 unless changed; values saturate.
    pub slot_width: u32,
    /// The window of an aggregate that names none. A second unless changed.
    pub window: Window,
}

/// What a test asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// A field.
    Field(FieldId),
    /// A declared counter: its value before this message.
    Counter(CounterId),
    /// An aggregate, by its place in [`Rule::aggregates`](crate::Rule::aggregates): its value before this message.
    Aggregate(u16),
}

#[derive(Clone, Copy, Debug)]
enum Named<T> {
    /// A full name.
    Whole(T),
    /// An ending of one name.
    Ending(T),
    /// An ending of these two.
    Ambiguous(T, T),
}

/// Why a name cannot be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoName<T> {
    /// There is none.
    Unknown,
    /// It may be either of these.
    Ambiguous(T, T),
}

/// Why something cannot be added to a [`Format`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// The name is taken.
    Twice(String),
    /// The width is none that this kind has: a sentence.
    Width(String),
    /// More than 65,535 of one sort.
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

impl Default for Format {
    fn default() -> Self {
        Format {
            fields: Vec::new(),
            headers: Vec::new(),
            counters: Vec::new(),
            actions: Vec::new(),
            compressed: HashMap::new(),
            computed: Vec::new(),
            subjects: HashMap::new(),
            header_names: HashMap::new(),
            max_port: 510,
            controller_port: None,
            port_names: BTreeMap::new(),
            slots: 8,
            slot_width: 64,
            window: Window::Micros(1_000_000),
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
            "`{name}` has {width} bits, and rules can speak of 1 to {MAX_WIDTH}: declare its parts as fields"
        ))),
    }
}

/// Enters a name and its endings behind dots.
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

fn find<T: Copy>(names: &HashMap<String, Named<T>>, name: &str) -> Result<T, NoName<T>> {
    match names.get(name) {
        Some(Named::Whole(id) | Named::Ending(id)) => Ok(*id),
        Some(Named::Ambiguous(one, other)) => Err(NoName::Ambiguous(*one, *other)),
        None => Err(NoName::Unknown),
    }
}

impl Format {
    /// A format without anything.
    pub fn new() -> Format {
        Format::default()
    }

    /// Adds a header.
    ///
    /// # Errors
    /// [`FormatError`], if its name is taken.
    pub fn header(&mut self, name: &str) -> Result<HeaderId, FormatError> {
        let id = HeaderId(next(self.headers.len())?);
        enter(&mut self.header_names, name, id)?;
        self.headers.push(Header { name: name.to_owned() });
        Ok(id)
    }

    /// Adds a field.
    ///
    /// # Errors
    /// [`FormatError`], if its name is taken or its width does not fit its kind.
    pub fn field(&mut self, field: Field) -> Result<FieldId, FormatError> {
        check_width(&field.name, field.width)?;
        let wrong = match field.kind {
            Kind::Ipv4 if field.width != 32 => Some("an IPv4 address has 32"),
            Kind::Ipv6 if field.width != 128 => Some("an IPv6 address has 128"),
            Kind::Mac if field.width != 48 => Some("an Ethernet address has 48"),
            Kind::Text(_) if !field.width.is_multiple_of(8) => Some("text has a multiple of 8"),
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err(FormatError::Width(format!("`{}` has {} bits, and {wrong}", field.name, field.width)));
        }
        assert!(field.header.is_none_or(|header| usize::from(header.0) < self.headers.len()), "headers come first");
        let id = FieldId(next(self.fields.len())?);
        enter(&mut self.subjects, &field.name, Subject::Field(id))?;
        self.fields.push(field);
        Ok(id)
    }

    /// Has a field's values mapped onto codes of so many bits (1 to 32) before they are looked up: then tables match few
    /// bits, and prefixes of codes take the place of prefixes of values. For fields that rules ask few different bounds of.
    ///
    /// # Errors
    /// [`FormatError`], if the codes are no narrower than the field, or it is matched exactly.
    pub fn compress(&mut self, field: FieldId, bits: u32) -> Result<(), FormatError> {
        let of = self.get(field);
        if of.matching == Match::Exact || bits == 0 || bits > 32 || bits >= of.width {
            let (name, width) = (&of.name, of.width);
            let sentence = format!(
                "`{name}` has {width} bits and cannot be mapped onto {bits}: codes have 1 to 32 bits, fewer than the field, and are for fields that are asked for ranges"
            );
            return Err(FormatError::Width(sentence));
        }
        self.compressed.insert(field, bits);
        Ok(())
    }

    /// The width of a field's codes, if it has some.
    pub fn compressed(&self, field: FieldId) -> Option<u32> {
        self.compressed.get(&field).copied()
    }

    /// Adds a counter.
    ///
    /// # Errors
    /// [`FormatError`], if its name is taken or its width is none.
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
    /// [`FormatError`], if its name is taken (`fwd`, `drop` and `to_controller` are) or a width is none.
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

    /// The fields, by [`FieldId`].
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The headers, by [`HeaderId`].
    pub fn headers(&self) -> &[Header] {
        &self.headers
    }

    /// The counters, by [`CounterId`].
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// The actions, by [`ActionId`].
    pub fn actions(&self) -> &[ActionDeclaration] {
        &self.actions
    }

    /// A field.
    ///
    /// # Panics
    /// If the id is of another format, as all that take ids.
    pub fn get(&self, id: FieldId) -> &Field {
        &self.fields[usize::from(id.0)]
    }

    /// A counter.
    pub fn get_counter(&self, id: CounterId) -> &Counter {
        &self.counters[usize::from(id.0)]
    }

    /// An action.
    pub fn get_action(&self, id: ActionId) -> &ActionDeclaration {
        &self.actions[usize::from(id.0)]
    }

    /// A header.
    pub fn get_header(&self, id: HeaderId) -> &Header {
        &self.headers[usize::from(id.0)]
    }

    /// The field or counter of this name or unique ending.
    ///
    /// # Errors
    /// [`NoName`], if there is none, or more than one.
    pub fn subject(&self, name: &str) -> Result<Subject, NoName<Subject>> {
        find(&self.subjects, name)
    }

    /// The header of this name or unique ending.
    ///
    /// # Errors
    /// [`NoName`], if there is none, or more than one.
    pub fn header_named(&self, name: &str) -> Result<HeaderId, NoName<HeaderId>> {
        find(&self.header_names, name)
    }

    /// The action of this name.
    pub fn action_named(&self, name: &str) -> Option<ActionId> {
        self.actions.iter().position(|action| action.name == name).map(|at| ActionId(at as u16))
    }

    /// The name of a field or counter; aggregates have none of their own.
    pub fn name(&self, subject: Subject) -> &str {
        match subject {
            Subject::Field(id) => &self.get(id).name,
            Subject::Counter(id) => &self.get_counter(id).name,
            Subject::Aggregate(_) => "aggregate",
        }
    }

    /// The width of what is tested, in bits.
    pub fn width(&self, subject: Subject) -> u32 {
        match subject {
            Subject::Field(id) => self.get(id).width,
            Subject::Counter(id) => self.get_counter(id).width,
            Subject::Aggregate(_) => self.slot_width,
        }
    }
}
