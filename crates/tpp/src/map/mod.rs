//! Maps names to addresses (paper, section 3.4.1 and appendix).
//!
//! One table, [`ROWS`], has a row for each statistic: namespace, address, registry name, width, unit, access. Names,
//! addresses, the Markdown reference, the Wireshark dissector and the fields of INT are generated from it.
//!
//! Direct addresses have 16 bits and mean *this packet's* port, queue and entries:
//!
//! ```text
//! 0x0000 Switch      0x1000 Stage i, 64 addresses each     0x2000 FlowEntry i, 64 addresses each
//! 0x3000 Link        0x3c00 InputLink                      0x4000 PacketMetadata
//! 0x8000 Register    0xb000 Queue                          0xc000 Field          0xf000 Vendor
//! ```
//!
//! Locations have even addresses. The odd address after it is its high half: the bits above those that fit into a
//! word. An indirect load takes a 32-bit address: below 0x10000 a direct one, else one of another port or register:
//!
//! ```text
//! 0x1 4 bits | port 12 | direct address 16; for Queue + 64 x number of the queue
//! 0x2 4 bits | register 8 | element 19, half 1
//! 0xf 4 bits | vendor 28
//! ```

mod int;
mod lua;
mod markdown;
mod row;
mod rows;

pub use int::{IntSource, int_sources};
pub use lua::dissector;
pub use markdown::int_table;
pub use row::{Access, IntField, Kind, Namespace, StatRow, Unit};
pub use rows::{INT_FIELDS, ROWS};

use std::fmt;
use std::ops::Range;

use diagnostics::names;

/// Maximum number of tables with addresses.
pub const MAX_STAGES: u32 = 64;
/// Addresses between two tables, and between two queues.
const STRIDE: u32 = 64;
/// Highest number of a port in an indirect address.
const MAX_PORT: u32 = 0xfff;
/// Highest number of a register in an indirect address.
const MAX_REGISTER: usize = 0xff;
/// Highest element of a register in an indirect address.
const MAX_ELEMENT: u32 = 0x7_ffff;
/// First indirect addresses.
const OF_PORT: u32 = 0x1000_0000;
pub(crate) const OF_REGISTER: u32 = 0x2000_0000;
/// The direct addresses of registers of the P4 program.
pub const DIRECT_REGISTERS: Range<u16> = Namespace::Register.base()..0xb000;
/// The end of the direct addresses of fields.
const FIELDS_END: u32 = 0xf000;

/// A register array of the P4 program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterShape {
    /// Its control-plane name.
    pub name: String,
    /// Width of an element in bits.
    pub width: u32,
    /// Number of elements.
    pub size: u32,
}

/// A header field that the P4 program parses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldShape {
    /// Its name, as in `hdr.ipv4.ttl`.
    pub name: String,
    /// Its width in bits.
    pub width: u32,
}

/// The location that a name or an address denotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapEntry {
    /// Its address. One above 0xffff needs an indirect load.
    pub address: u32,
    /// Its full name.
    pub name: String,
    /// Width of the complete value in bits.
    pub width: u32,
    /// Its unit.
    pub unit: Unit,
    /// Its behaviour over time.
    pub kind: Kind,
    /// Its permitted accesses.
    pub access: Access,
}

impl MapEntry {
    /// Whether the address is that of a high half.
    pub fn is_high(&self) -> bool {
        self.address & 1 != 0
    }

    /// Whether an instruction can contain the address.
    pub fn is_direct(&self) -> bool {
        self.address <= 0xffff
    }
}

/// The reason for which a name has no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoEntry {
    /// The name has no colon.
    NoColon,
    /// There is no such namespace.
    Namespace {
        /// The name.
        name: String,
        /// The namespace that may be intended.
        near: Option<&'static str>,
    },
    /// The namespace has no such statistic.
    Statistic {
        /// The namespace.
        namespace: Namespace,
        /// The name.
        name: String,
        /// The statistic that may be intended.
        near: Option<String>,
    },
    /// The namespace takes other numbers.
    Numbers {
        /// The namespace.
        namespace: Namespace,
    },
    /// The register array of this name has no elements.
    NoElements(String),
    /// A number is too large.
    TooLarge {
        /// The number.
        what: &'static str,
        /// Its highest value.
        last: u32,
    },
}

impl fmt::Display for NoEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoEntry::NoColon => f.write_str("a name of switch memory is `Namespace:Statistic`"),
            NoEntry::Namespace { name, .. } => write!(f, "there is no namespace `{name}`"),
            NoEntry::Statistic { namespace: Namespace::Register, name, .. } => {
                write!(f, "the program has no register `{name}`")
            }
            NoEntry::Statistic { namespace: Namespace::Field, name, .. } => {
                write!(f, "the program parses no field `{name}`")
            }
            NoEntry::Statistic { namespace, name, .. } => {
                write!(f, "`{}` has no statistic `{name}`", namespace.name())
            }
            NoEntry::Numbers { namespace } => write!(f, "`{}` does not take these numbers", namespace.name()),
            NoEntry::NoElements(name) => write!(f, "the register `{name}` has no elements"),
            NoEntry::TooLarge { what, last } => write!(f, "the highest {what} is {last}"),
        }
    }
}

impl NoEntry {
    /// Returns the remedy, if there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            NoEntry::NoColon => {
                Some("for example `Queue:QueueOccupancy`; `triplane tpp map` lists all names".to_owned())
            }
            NoEntry::Namespace { near: Some(near), .. } => Some(format!("did you mean `{near}`?")),
            NoEntry::Namespace { near: None, .. } => {
                let all = names::listed(Namespace::ALL.iter().map(|namespace| namespace.name()));
                Some(format!("the namespaces are {all}"))
            }
            NoEntry::Statistic { near: Some(near), .. } => Some(format!("did you mean `{near}`?")),
            NoEntry::Statistic { namespace, near: None, .. } => {
                Some(format!("`triplane tpp map {}` lists the names", namespace.name()))
            }
            NoEntry::Numbers { namespace } => Some(match namespace {
                Namespace::Stage | Namespace::FlowEntry => {
                    format!("name the table by its number: `{}0:…`", namespace.name())
                }
                Namespace::Link => "`Link:…` is the output port, `Link$3:…` is port 3".to_owned(),
                Namespace::Queue => "`Queue:…` is this packet's queue, `Queue$3$0:…` is queue 0 of port 3".to_owned(),
                other => format!("write `{}:…`", other.name()),
            }),
            NoEntry::NoElements(_) | NoEntry::TooLarge { .. } => None,
        }
    }
}

/// The map of a switch: the rows of [`ROWS`], and the registers and fields of its program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryMap {
    registers: Vec<(RegisterShape, Option<u16>)>,
    /// The first direct addresses of registers, ascending, and the numbers of these registers. Of registers with the
    /// same address, only the last one may have elements.
    direct: Vec<(u16, usize)>,
    fields: Vec<(FieldShape, u16)>,
}

impl MemoryMap {
    /// Creates the map of a switch whose program is unknown: it has no registers and no fields.
    pub fn new() -> MemoryMap {
        MemoryMap::default()
    }

    /// Creates the map of a switch with a program. Registers get direct addresses in the given order, as long as these
    /// suffice; indirect loads reach the first 524,288 elements of the first 256 registers.
    pub fn with_program(
        registers: impl IntoIterator<Item = RegisterShape>,
        fields: impl IntoIterator<Item = FieldShape>,
    ) -> MemoryMap {
        let mut map = MemoryMap::new();
        let mut free = u32::from(Namespace::Register.base());
        for register in registers {
            let end = register.size.checked_mul(2).and_then(|len| free.checked_add(len));
            match end.filter(|end| *end <= u32::from(DIRECT_REGISTERS.end)) {
                Some(end) => {
                    map.direct.push((free as u16, map.registers.len()));
                    map.registers.push((register, Some(free as u16)));
                    free = end;
                }
                None => map.registers.push((register, None)),
            }
        }
        let addresses = (u32::from(Namespace::Field.base())..FIELDS_END).step_by(2);
        map.fields = fields.into_iter().zip(addresses).map(|(field, address)| (field, address as u16)).collect();
        map
    }

    /// Returns the registers, each with its first direct address.
    pub fn registers(&self) -> &[(RegisterShape, Option<u16>)] {
        &self.registers
    }

    /// Returns the fields, each with its address.
    pub fn fields(&self) -> &[(FieldShape, u16)] {
        &self.fields
    }

    /// Returns the location with this name: `Queue:QueueOccupancy`, `Stage1:Version`, `Link$3:TX-Bytes.High`,
    /// `Register:limits[3]`. Case, `-` and `_` are ignored, except in names of the P4 program.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn find(&self, name: &str) -> Result<MapEntry, NoEntry> {
        let (left, right) = name.split_once(':').ok_or(NoEntry::NoColon)?;
        let (namespace, numbers) = split_numbers(left)?;
        let find = |statistic: &str| match namespace {
            Namespace::Register => self.register_by_name(statistic, &numbers),
            Namespace::Field => self.field_by_name(statistic, &numbers),
            Namespace::Vendor => vendor_by_name(statistic, &numbers),
            _ => row_by_name(namespace, statistic, &numbers),
        };
        let Some(rest) = right.to_ascii_lowercase().strip_suffix(".high").map(str::len) else { return find(right) };
        // A name of the P4 program may end like that of a high half.
        find(right).or_else(|_| {
            let entry = find(&right[..rest])?;
            Ok(MapEntry { address: entry.address + 1, name: entry.name + ".High", access: Access::Read, ..entry })
        })
    }

    /// Returns the location at this address.
    pub fn locate(&self, address: u32) -> Option<MapEntry> {
        let mut entry = match address >> 28 {
            0 if address > 0xffff => return None,
            0 => self.at_direct(address & !1)?,
            1 => at_port(address & !1)?,
            2 => self.at_register(address & !1)?,
            15 => MapEntry { name: format!("Vendor:{:#010x}", address & !1), ..vendor(address & !1) },
            _ => return None,
        };
        if address & 1 == 1 {
            entry.address = address;
            entry.name += ".High";
            entry.access = Access::Read;
        }
        Some(entry)
    }

    fn at_direct(&self, address: u32) -> Option<MapEntry> {
        let namespace = *Namespace::ALL.iter().rev().find(|namespace| u32::from(namespace.base()) <= address)?;
        match namespace {
            Namespace::Register => self.at_register(address),
            Namespace::Field => {
                let (field, _) = self.fields.iter().find(|(_, base)| u32::from(*base) == address)?;
                Some(field_entry(field, address))
            }
            Namespace::Vendor => Some(vendor(address)),
            namespace => {
                let offset = address - u32::from(namespace.base());
                let (stage, offset) =
                    if namespace.has_stage() { (Some(offset / STRIDE), offset % STRIDE) } else { (None, offset) };
                let (row, element) = row_at(namespace, offset)?;
                let numbers = stage.map(|stage| stage.to_string()).unwrap_or_default();
                Some(row_entry(row, element, &numbers, address))
            }
        }
    }

    /// Returns the number of a register and its element at an address, direct or indirect.
    pub fn register_at(&self, address: u32) -> Option<(usize, u32)> {
        let address = address & !1;
        if address & 0xf000_0000 == OF_REGISTER {
            let (number, element) = ((address >> 20 & 0xff) as usize, (address & 0xf_ffff) / 2);
            let (register, _) = self.registers.get(number)?;
            return (element < register.size).then_some((number, element));
        }
        if !u16::try_from(address).is_ok_and(|address| DIRECT_REGISTERS.contains(&address)) {
            return None;
        }
        let next = self.direct.partition_point(|(base, _)| u32::from(*base) <= address);
        let (base, number) = *self.direct.get(next.checked_sub(1)?)?;
        let element = (address - u32::from(base)) / 2;
        (element < self.registers[number].0.size).then_some((number, element))
    }

    /// Returns the value of `Switch:RegisterMap`: FNV-1a of the names, widths and sizes of the registers. So other
    /// registers at the same addresses have another number, except by chance.
    pub fn register_map(&self) -> u32 {
        let bytes = self.registers.iter().flat_map(|(register, _)| {
            let numbers = [register.name.len() as u32, register.width, register.size].map(u32::to_be_bytes);
            numbers.into_iter().flatten().chain(register.name.bytes())
        });
        bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }

    fn at_register(&self, address: u32) -> Option<MapEntry> {
        let (number, element) = self.register_at(address)?;
        Some(register_entry(&self.registers[number].0, element, address))
    }

    fn register_by_name(&self, text: &str, numbers: &[u32]) -> Result<MapEntry, NoEntry> {
        no_numbers(Namespace::Register, numbers)?;
        let (name, element) = match text.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
            Some((name, number)) => (name, parse_number(number).ok_or(too_large("element", MAX_ELEMENT))?),
            None => (text, 0),
        };
        let all: Vec<_> = self.registers.iter().enumerate().map(|(n, (register, _))| (n, &register.name[..])).collect();
        let number = names::find(name, &all, names::Endings::BehindDot).map_err(|_| {
            let near = names::nearest(name, all.iter().map(|(_, name)| *name));
            let near = near.map(|near| format!("Register:{near}[0]"));
            NoEntry::Statistic { namespace: Namespace::Register, name: name.to_owned(), near }
        })?;
        let (register, base) = &self.registers[number];
        let last = register.size.checked_sub(1).ok_or_else(|| NoEntry::NoElements(register.name.clone()))?;
        if element > last {
            return Err(too_large("element of this register", last));
        }
        let address = match base {
            Some(base) => u32::from(*base) + 2 * element,
            None if number > MAX_REGISTER => {
                return Err(too_large("number of a register with addresses", MAX_REGISTER as u32));
            }
            None if element > MAX_ELEMENT => return Err(too_large("element with an address", MAX_ELEMENT)),
            None => OF_REGISTER | (number as u32) << 20 | (element * 2),
        };
        Ok(register_entry(register, element, address))
    }

    fn field_by_name(&self, name: &str, numbers: &[u32]) -> Result<MapEntry, NoEntry> {
        no_numbers(Namespace::Field, numbers)?;
        let all: Vec<_> = self.fields.iter().map(|entry| (entry, &entry.0.name[..])).collect();
        let found = names::find(name, &all, names::Endings::BehindDot);
        found.map(|(field, address)| field_entry(field, (*address).into())).map_err(|_| {
            let near = names::nearest(name, all.iter().map(|(_, name)| *name));
            let near = near.map(|near| format!("Field:{near}"));
            NoEntry::Statistic { namespace: Namespace::Field, name: name.to_owned(), near }
        })
    }
}

/// Splits `Queue$3$0` into the namespace and the numbers. `Stage1` and `Stage$1` are the same.
fn split_numbers(text: &str) -> Result<(Namespace, Vec<u32>), NoEntry> {
    let letters = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (name, rest) = text.split_at(letters);
    let all = || Namespace::ALL.iter().map(|namespace| namespace.name());
    let Some(namespace) = Namespace::ALL.iter().find(|namespace| namespace.name().eq_ignore_ascii_case(name)) else {
        return Err(NoEntry::Namespace { name: name.to_owned(), near: names::nearest(name, all()) });
    };
    let rest = rest.strip_prefix('$').unwrap_or(rest);
    let numbers: Option<Vec<u32>> =
        if rest.is_empty() { Some(Vec::new()) } else { rest.split('$').map(parse_number).collect() };
    numbers.map(|numbers| (*namespace, numbers)).ok_or(NoEntry::Numbers { namespace: *namespace })
}

/// Parses a decimal or hexadecimal number.
pub(crate) fn parse_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_hexdigit()) => u32::from_str_radix(digits, 16).ok(),
        _ if text.starts_with(|c: char| c.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

fn too_large(what: &'static str, last: u32) -> NoEntry {
    NoEntry::TooLarge { what, last }
}

fn no_numbers(namespace: Namespace, numbers: &[u32]) -> Result<(), NoEntry> {
    if numbers.is_empty() { Ok(()) } else { Err(NoEntry::Numbers { namespace }) }
}

/// Returns a name in the form in which names are compared.
fn normalized(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect()
}

fn row_by_name(namespace: Namespace, statistic: &str, numbers: &[u32]) -> Result<MapEntry, NoEntry> {
    let wanted = normalized(statistic);
    let element_of = |row: &StatRow| {
        row.names().find_map(|name| {
            let rest = wanted.strip_prefix(&normalized(name))?;
            let element = if rest.is_empty() && row.count == 1 { 0 } else { rest.parse::<u16>().ok()? };
            (element < row.count && (row.count > 1 || rest.is_empty())).then_some(element)
        })
    };
    let rows = || ROWS.iter().filter(|row| row.namespace == namespace);
    let Some((row, element)) = rows().find_map(|row| Some((row, element_of(row)?))) else {
        let near = names::nearest(statistic, rows().flat_map(StatRow::names));
        let near = near.map(|near| {
            let numbers: String = numbers.iter().map(|number| format!("${number}")).collect();
            let element = rows().any(|row| row.count > 1 && row.name == near);
            format!("{}{numbers}:{near}{}", namespace.name(), if element { "_0" } else { "" })
        });
        return Err(NoEntry::Statistic { namespace, name: statistic.to_owned(), near });
    };
    let direct = u32::from(row.address()) + 2 * u32::from(element);
    match (namespace, numbers) {
        (Namespace::Stage | Namespace::FlowEntry, [stage]) if *stage < MAX_STAGES => {
            Ok(row_entry(row, element, &stage.to_string(), direct + stage * STRIDE))
        }
        (Namespace::Stage | Namespace::FlowEntry, [_]) => Err(too_large("number of a table", MAX_STAGES - 1)),
        (Namespace::Link, [port]) if *port <= MAX_PORT => {
            Ok(row_entry(row, element, &format!("${port}"), OF_PORT | port << 16 | direct))
        }
        (Namespace::Queue, [port, queue]) if *port <= MAX_PORT && *queue < STRIDE => {
            Ok(row_entry(row, element, &format!("${port}${queue}"), OF_PORT | port << 16 | (direct + queue * STRIDE)))
        }
        (Namespace::Queue, [port, _]) if *port <= MAX_PORT => Err(too_large("number of a queue", STRIDE - 1)),
        (Namespace::Link, [_]) | (Namespace::Queue, [_, _]) => Err(too_large("number of a port", MAX_PORT)),
        (Namespace::Stage | Namespace::FlowEntry, _) => Err(NoEntry::Numbers { namespace }),
        (_, []) => Ok(row_entry(row, element, "", direct)),
        _ => Err(NoEntry::Numbers { namespace }),
    }
}

fn row_at(namespace: Namespace, offset: u32) -> Option<(&'static StatRow, u16)> {
    let holds = |row: &&StatRow| {
        let first = u32::from(row.offset);
        row.namespace == namespace && (first..first + 2 * u32::from(row.count)).contains(&offset)
    };
    ROWS.iter().find(holds).map(|row| (row, ((offset - u32::from(row.offset)) / 2) as u16))
}

/// Returns the location of an indirect address of another port.
fn at_port(address: u32) -> Option<MapEntry> {
    let (port, direct) = (address >> 16 & MAX_PORT, address & 0xffff);
    let queues = u32::from(Namespace::Queue.base());
    if (queues..queues + STRIDE * STRIDE).contains(&direct) {
        let (queue, offset) = ((direct - queues) / STRIDE, (direct - queues) % STRIDE);
        let (row, element) = row_at(Namespace::Queue, offset)?;
        return Some(row_entry(row, element, &format!("${port}${queue}"), address));
    }
    let (row, element) = row_at(Namespace::Link, direct.checked_sub(Namespace::Link.base().into())?)?;
    Some(row_entry(row, element, &format!("${port}"), address))
}

fn row_entry(row: &StatRow, element: u16, numbers: &str, address: u32) -> MapEntry {
    let element = if row.count > 1 { format!("_{element}") } else { String::new() };
    let name = format!("{}{numbers}:{}{element}", row.namespace.name(), row.name);
    // Only direct words are written.
    let access = if address > 0xffff { Access::Read } else { row.access };
    MapEntry { address, name, width: row.width, unit: row.unit, kind: row.kind, access }
}

fn register_entry(register: &RegisterShape, element: u32, address: u32) -> MapEntry {
    let name = format!("Register:{}[{element}]", register.name);
    let writable = register.width <= 32 && address <= 0xffff;
    let access = if writable { Access::ReadWrite } else { Access::Read };
    MapEntry { address, name, width: register.width, unit: Unit::None, kind: Kind::Gauge, access }
}

fn field_entry(field: &FieldShape, address: u32) -> MapEntry {
    let (name, width) = (format!("Field:{}", field.name), field.width);
    MapEntry { address, name, width, unit: Unit::None, kind: Kind::Constant, access: Access::Read }
}

fn vendor(address: u32) -> MapEntry {
    let name = format!("Vendor:{:#x}", address.wrapping_sub(u32::from(Namespace::Vendor.base())));
    MapEntry { address, name, width: 32, unit: Unit::None, kind: Kind::Gauge, access: Access::Read }
}

/// Returns the location of `Vendor:0x12`, an offset from 0xf000, or of an indirect address from 0xf0000000.
fn vendor_by_name(text: &str, numbers: &[u32]) -> Result<MapEntry, NoEntry> {
    no_numbers(Namespace::Vendor, numbers)?;
    let unknown = || NoEntry::Statistic { namespace: Namespace::Vendor, name: text.to_owned(), near: None };
    match parse_number(text).ok_or_else(unknown)? {
        offset @ 0..=0xfff if offset % 2 == 0 => Ok(vendor(u32::from(Namespace::Vendor.base()) + offset)),
        address @ 0xf000_0000.. if address % 2 == 0 => {
            Ok(MapEntry { name: format!("Vendor:{address:#010x}"), ..vendor(address) })
        }
        _ => Err(unknown()),
    }
}

/// Returns the row of a statistic, by its first name.
///
/// # Panics
/// If there is none; in a constant, that is an error of the compiler.
pub const fn row_of(namespace: Namespace, name: &str) -> &'static StatRow {
    let mut at = 0;
    while at < ROWS.len() {
        if ROWS[at].namespace as u16 == namespace as u16 && is_same(ROWS[at].name.as_bytes(), name.as_bytes()) {
            return &ROWS[at];
        }
        at += 1;
    }
    panic!("no such statistic");
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

#[cfg(test)]
mod tests;
