//! Finds the locations of the architecture's inputs and outputs in a compiled program.

use std::collections::{BTreeMap, HashMap};

use ir::{BodyId, Expr, LValue, LocId, Op, Program, SlotId, SlotKind};

use super::config::drop_port_of;
use crate::description::{DROP_SITE, REPLICAS};

/// An error from building a switch for a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The program was compiled for another architecture.
    #[error("the program was compiled for the architecture `{0}`, this switch runs `v1model`")]
    Architecture(String),
    /// A programmable block is missing.
    #[error("the program has no `{0}` block")]
    Block(&'static str),
    /// A field of the standard metadata is missing.
    #[error("the program has no `standard_metadata.{0}`")]
    Field(&'static str),
    /// A port number is given twice or is out of range.
    #[error("port {0} is given twice, or above 65535")]
    Port(u32),
    /// The program's ports are too narrow for a port of the switch.
    #[error("the switch has port {port}, and the program's ports are numbered 0 to {max}")]
    PortWidth {
        /// The port.
        port: u32,
        /// The largest port number of the program.
        max: u16,
    },
    /// The program's ports are wider than those of any switch.
    #[error("`standard_metadata.egress_spec` has {0} bits; ports have at most 32")]
    WidePort(u32),
    /// The executor refuses the program.
    #[error("{0}")]
    Program(String),
}

/// The programmable blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    pub parser: BodyId,
    pub verify_checksum: BodyId,
    pub ingress: BodyId,
    pub egress: BodyId,
    pub compute_checksum: BodyId,
    pub deparser: BodyId,
}

/// The standard metadata. Fields that every switch needs are required.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standard {
    pub ingress_port: SlotId,
    pub egress_spec: SlotId,
    pub egress_port: SlotId,
    pub instance_type: Option<SlotId>,
    pub packet_length: Option<SlotId>,
    pub enq_timestamp: Option<SlotId>,
    pub enq_qdepth: Option<SlotId>,
    pub deq_timedelta: Option<SlotId>,
    pub deq_qdepth: Option<SlotId>,
    pub ingress_global_timestamp: Option<SlotId>,
    pub egress_global_timestamp: Option<SlotId>,
    pub mcast_grp: Option<SlotId>,
    pub egress_rid: Option<SlotId>,
    pub parser_error: Option<SlotId>,
    pub priority: Option<SlotId>,
    pub drop_site: Option<SlotId>,
    /// The ports of `replicate_to_ports`, by bit.
    pub replicas: Option<SlotId>,
}

impl Standard {
    /// Returns all slots.
    pub fn all(&self) -> Vec<SlotId> {
        let optional = [
            self.instance_type,
            self.packet_length,
            self.enq_timestamp,
            self.enq_qdepth,
            self.deq_timedelta,
            self.deq_qdepth,
            self.ingress_global_timestamp,
            self.egress_global_timestamp,
            self.mcast_grp,
            self.egress_rid,
            self.parser_error,
            self.priority,
            self.drop_site,
            self.replicas,
        ];
        [self.ingress_port, self.egress_spec, self.egress_port]
            .into_iter()
            .chain(optional.into_iter().flatten())
            .collect()
    }
}

/// Everything that the runtime looks up once.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub blocks: Blocks,
    pub standard: Standard,
    /// Slots that a new pass clears: all metadata except the counters of header stacks.
    pub metadata: Vec<SlotId>,
    /// Headers that live across blocks.
    pub headers: Vec<ir::HeaderId>,
    /// The number of `error.NoError`.
    pub no_error: u32,
    /// The `egress_spec` that drops.
    pub drop_port: u32,
}

impl Layout {
    pub fn new(program: &Program) -> Result<Layout, LoadError> {
        if program.arch != "v1model" {
            return Err(LoadError::Architecture(program.arch.clone()));
        }
        let block = |role: &'static str| program.blocks.get(role).copied().ok_or(LoadError::Block(role));
        let blocks = Blocks {
            parser: block("parser")?,
            verify_checksum: block("verify_checksum")?,
            ingress: block("ingress")?,
            egress: block("egress")?,
            compute_checksum: block("compute_checksum")?,
            deparser: block("deparser")?,
        };
        let by_name: BTreeMap<&str, SlotId> = program.slots.iter().map(|(id, slot)| (slot.name.as_str(), id)).collect();
        let field = |name: &str| by_name.get(format!("standard_metadata.{name}").as_str()).copied();
        let required = |name: &'static str| field(name).ok_or(LoadError::Field(name));
        let standard = Standard {
            ingress_port: required("ingress_port")?,
            egress_spec: required("egress_spec")?,
            egress_port: required("egress_port")?,
            instance_type: field("instance_type"),
            packet_length: field("packet_length"),
            enq_timestamp: field("enq_timestamp"),
            enq_qdepth: field("enq_qdepth"),
            deq_timedelta: field("deq_timedelta"),
            deq_qdepth: field("deq_qdepth"),
            ingress_global_timestamp: field("ingress_global_timestamp"),
            egress_global_timestamp: field("egress_global_timestamp"),
            mcast_grp: field("mcast_grp"),
            egress_rid: field("egress_rid"),
            parser_error: field("parser_error"),
            priority: field("priority"),
            drop_site: by_name.get(DROP_SITE).copied(),
            replicas: by_name.get(REPLICAS).copied(),
        };
        let port_width = program.slots[standard.egress_spec].width;
        if port_width > 32 {
            return Err(LoadError::WidePort(port_width));
        }
        let is_counter = |id: SlotId| program.stacks.values().any(|stack| stack.next == id);
        let metadata = program.slots.iter().filter(|(id, slot)| slot.kind == SlotKind::Metadata && !is_counter(*id));
        let headers = program.headers.iter().filter(|(_, header)| !header.local);
        Ok(Layout {
            blocks,
            standard,
            metadata: metadata.map(|(id, _)| id).collect(),
            headers: headers.map(|(id, _)| id).collect(),
            drop_port: drop_port_of(port_width),
            no_error: program.errors.iter().position(|name| name == "NoError").map_or(u32::MAX, |at| at as u32),
        })
    }
}

/// Returns all places of the source that can cause a drop, and the bodies that contain them: assignments to
/// `$drop_site`, assertions, and the ends of blocks, where a program that does not terminate is stopped.
pub(super) fn drop_places(program: &Program) -> HashMap<u32, (diagnostics::SourcePosition, String)> {
    let mut places = HashMap::new();
    let site = program.slot_named(DROP_SITE);
    let mut add = |number: u32, body: &ir::Body| {
        if let Some(place) = program.locs.get(LocId::from_u32(number)).filter(|_| number != 0) {
            places.entry(number).or_insert_with(|| (place.clone(), body.name.clone()));
        }
    };
    for body in program.bodies.values() {
        for block in body.blocks.values() {
            add(block.loc.as_u32(), body);
            for instr in &block.instrs {
                match &instr.op {
                    Op::Assign(LValue::Slot(slot), Expr::Const(value)) if Some(*slot) == site => {
                        add(value.low_u64() as u32, body);
                    }
                    Op::Assert(_) => add(instr.loc.as_u32(), body),
                    _ => {}
                }
            }
        }
    }
    places
}
