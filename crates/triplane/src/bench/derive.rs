//! Derives traffic from a program's entries for a benchmark without a traffic spec.
//!
//! Frames are UDP over IP, or have the headers that the tables are keyed on. Flow by flow, their fields match the
//! entries of the tables in ingress: fields of Ethernet, VLAN tags, IP, TCP and UDP. A field is recognized by the
//! layout of its header, not by its name.

use ::traffic_gen::{Choice, FieldPattern, FlowField, Layer, Size, Spec};
use engine::Objects;
use ir::{Expr, HeaderRef, HeaderTypeId, KeyValue, Op, Program, TableId};

/// Minimum number of flows: a prefix has many hosts.
const MIN_FLOWS: u64 = 1024;

/// Maximum number of entries of a table that are read.
const MAX_ENTRIES: usize = 1 << 20;

/// Traffic, and the tables it follows.
pub struct Derived {
    /// The traffic.
    pub spec: Spec,
    /// Names of tables, and the number of entries of each.
    pub tables: Vec<(String, usize)>,
}

/// Derives the traffic from a program's entries; `None` if they do not constrain frames.
pub fn derive(program: &Program, objects: &Objects) -> Option<Derived> {
    let ingress = &program.bodies[*program.blocks.get("ingress")?];
    let mut applied: Vec<TableId> = Vec::new();
    for instr in ingress.blocks.values().flat_map(|block| &block.instrs) {
        if let Op::Apply { table, .. } = &instr.op
            && !applied.contains(table)
        {
            applied.push(*table);
        }
    }
    let mut spec = Spec { layers: Vec::new(), ..Spec::default() };
    let mut tables = Vec::new();
    for table in applied {
        let keys: Vec<Option<Known>> = program.tables[table].keys.iter().map(|key| known(program, &key.expr)).collect();
        // A frame has one kind of IP, and one of UDP and TCP: the first table decides.
        let clashes = |known: &Known| {
            let others: &[Layer] = match known.layer {
                Some(Layer::Ipv4) => &[Layer::Ipv6],
                Some(Layer::Ipv6) => &[Layer::Ipv4],
                Some(Layer::Udp) => &[Layer::Tcp],
                Some(Layer::Tcp) => &[Layer::Udp],
                _ => &[],
            };
            others.iter().any(|other| spec.has(*other))
        };
        if keys.iter().flatten().any(clashes) || keys.iter().flatten().next().is_none() {
            continue;
        }
        let mut entries: Vec<_> = objects.entries(table).take(MAX_ENTRIES).map(|installed| installed.entry).collect();
        entries.sort_by_cached_key(|entry| (format!("{:?}", entry.keys), entry.priority));
        let patterns: Vec<FieldPattern> = entries.iter().map(|entry| pattern(&keys, &entry.keys)).collect();
        if patterns.iter().all(Vec::is_empty) {
            continue;
        }
        for layer in keys.iter().flatten().filter_map(|known| known.layer) {
            if !spec.has(layer) {
                spec.layers.push(layer);
            }
        }
        tables.push((program.tables[table].name.clone(), patterns.len()));
        spec.patterns.push(patterns);
    }
    let most = spec.patterns.iter().map(Vec::len).max()?;
    spec.flows = MIN_FLOWS.max(most as u64);
    if !spec.has(Layer::Ipv6) && !spec.has(Layer::Ipv4) {
        spec.layers.push(Layer::Ipv4);
    }
    if !spec.has(Layer::Tcp) && !spec.has(Layer::Udp) {
        spec.layers.push(Layer::Udp);
    }
    spec.layers.sort_by_key(|layer| match layer {
        Layer::Vlan => 0,
        Layer::Ipv4 | Layer::Ipv6 => 1,
        Layer::Udp | Layer::Tcp => 2,
    });
    let size = spec.headers_len().max(64);
    spec.size = Size::Between(size, size);
    Some(Derived { spec, tables })
}

/// The frame field that a key element reads.
#[derive(Clone, Copy)]
struct Known {
    field: FlowField,
    layer: Option<Layer>,
}

/// Returns the values of an entry's fields, without the fields that match any value.
fn pattern(keys: &[Option<Known>], values: &[KeyValue]) -> FieldPattern {
    let mut pattern = FieldPattern::new();
    for (known, value) in keys.iter().zip(values) {
        let Some(Known { field, .. }) = known else { continue };
        let choice = match value {
            KeyValue::Exact(value) => Choice::one(value.low_u128()),
            KeyValue::Lpm(_, 0) | KeyValue::Any => continue,
            KeyValue::Lpm(value, length) => Choice::prefix(value.low_u128(), *length, value.width()),
            KeyValue::Ternary(_, mask) if mask.is_zero() => continue,
            KeyValue::Ternary(value, mask) => Choice::Free { value: value.low_u128(), free: mask.not().low_u128() },
            KeyValue::Range(low, high) if high.low_u128() - low.low_u128() >= 1 << 63 => continue,
            KeyValue::Range(low, high) => Choice::Range(low.low_u128(), high.low_u128()),
        };
        pattern.push((*field, choice));
    }
    pattern
}

/// Returns the frame field that an expression reads, by the layout of its header.
fn known(program: &Program, expr: &Expr) -> Option<Known> {
    let Expr::Field(header, index) = expr else { return None };
    let header = match header {
        HeaderRef::Header(header) => *header,
        HeaderRef::Element(stack, _) => program.stacks[*stack].first,
    };
    let ty = program.headers[header].ty;
    let fields = &program.header_types[ty].fields;
    let offset: u32 = fields[..*index as usize].iter().map(|field| field.width).sum();
    let width = fields[*index as usize].width;
    let layer = layer(program, ty)?;
    let field = match (layer, offset, width) {
        (None, 0, 48) => FlowField::DestinationMac,
        (None, 48, 48) => FlowField::SourceMac,
        (Some(Layer::Vlan), 4, 12) => FlowField::Vlan(0),
        (Some(Layer::Ipv4), 64, 8) | (Some(Layer::Ipv6), 56, 8) => FlowField::Ttl,
        (Some(Layer::Ipv4), 96, 32) | (Some(Layer::Ipv6), 64, 128) => FlowField::Source,
        (Some(Layer::Ipv4), 128, 32) | (Some(Layer::Ipv6), 192, 128) => FlowField::Destination,
        (Some(Layer::Udp | Layer::Tcp), 0, 16) => FlowField::SourcePort,
        (Some(Layer::Udp | Layer::Tcp), 16, 16) => FlowField::DestinationPort,
        _ => return None,
    };
    Some(Known { field, layer })
}

/// Returns the layer whose header has this layout; `Some(None)` for Ethernet itself.
fn layer(program: &Program, ty: HeaderTypeId) -> Option<Option<Layer>> {
    let fields = &program.header_types[ty].fields;
    let widths: Vec<u32> = fields.iter().filter(|field| !field.varbit).map(|field| field.width).collect();
    let bits: u32 = widths.iter().sum();
    match (bits, &widths[..]) {
        (112, [48, 48, 16]) => Some(None),
        (32, [.., 12, 16]) => Some(Some(Layer::Vlan)),
        (64, [16, 16, 16, 16]) => Some(Some(Layer::Udp)),
        (160, [4 | 8, .., 32, 32]) => Some(Some(Layer::Ipv4)),
        (160, [16, 16, 32, 32, ..]) => Some(Some(Layer::Tcp)),
        (320, [.., 128, 128]) => Some(Some(Layer::Ipv6)),
        _ => None,
    }
}
