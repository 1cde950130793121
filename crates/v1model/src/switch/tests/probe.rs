//! The probe: a v1model program in IR whose frames select its operations.
//!
//! A frame is `op:8 port:16 arg:16` and a payload. Ingress sets `egress_spec` to the port and performs the operation;
//! egress appends a report header, which [`report`] reads back.

use std::collections::BTreeMap;

use bits::Bits;
use ir::*;

use BinaryOp::{Eq, Ne};

/// The operation in the first byte of a frame.
#[derive(Clone, Copy, Debug)]
pub enum Do {
    Unicast,
    Drop,
    DropWithoutSite,
    Multicast,
    CloneIngress,
    ResubmitOnce,
    ResubmitAlways,
    Digest,
    AssertInIngress,
    CloneEgress,
    CloneEgressAlways,
    Recirculate,
    RecirculateAlways,
    Truncate,
    DropInEgress,
    SecondByteIsPriority,
}

/// The values that egress saw, in the order of the report header's fields.
pub const REPORT: [(&str, u32); 10] = [
    ("type", 8),
    ("rid", 16),
    ("kept", 16),
    ("length", 16),
    ("in_us", 32),
    ("out_us", 32),
    ("waited", 32),
    ("enq_depth", 16),
    ("deq_depth", 16),
    ("port", 16),
];

/// Returns a frame for the probe, with `payload` bytes of 0xee after its five bytes.
pub fn frame(op: Do, port: u16, arg: u16, payload: usize) -> Vec<u8> {
    let mut data = vec![op as u8];
    data.extend(port.to_be_bytes());
    data.extend(arg.to_be_bytes());
    data.extend(std::iter::repeat_n(0xee, payload));
    data
}

/// Renders a frame that left: the operation, the nonzero values of the report, and the number of payload bytes; for
/// frames too short for a report their length.
pub fn report(data: &[u8]) -> String {
    let report_bytes = REPORT.iter().map(|(_, width)| width).sum::<u32>() as usize / 8;
    let Some(payload) = data.len().checked_sub(5 + report_bytes) else { return format!("{} bytes", data.len()) };
    let mut parts = vec![format!("op={}", data[0])];
    let mut at = 40;
    for (name, width) in REPORT {
        let value = Bits::read(data, at, width).low_u64();
        at += width as usize;
        if value != 0 {
            parts.push(format!("{name}={value}"));
        }
    }
    parts.push(format!("payload={payload}"));
    parts.join(" ")
}

/// Slot ids by name, created on demand.
#[derive(Default)]
struct Build {
    program: Program,
    slots: BTreeMap<&'static str, SlotId>,
}

impl Build {
    fn slot(&mut self, name: &'static str, width: u32) -> SlotId {
        let slot = Slot { name: name.into(), width, kind: SlotKind::Metadata, signed: false };
        let id = self.program.slots.push(slot);
        self.slots.insert(name, id);
        id
    }

    fn header(&mut self, name: &str, fields: &[(&str, u32)]) -> HeaderId {
        let field = |(name, width): &(&str, u32)| HeaderField {
            name: name.to_string(),
            width: *width,
            varbit: false,
            signed: false,
            annotations: Vec::new(),
        };
        let fields = fields.iter().map(field).collect();
        let ty = HeaderType { name: format!("{name}_t"), fields, annotations: Vec::new() };
        let ty = self.program.header_types.push(ty);
        self.program.headers.push(Header { name: format!("hdr.{name}"), ty, local: false })
    }

    fn loc(&mut self, line: u32) -> LocId {
        self.program.locs.push(diagnostics::SourcePosition { file: "probe.p4".into(), line, column: 9 })
    }

    fn body(&mut self, role: &str, name: &str, kind: BodyKind, blocks: Vec<Block>) {
        let body = Body { name: name.into(), kind, blocks: blocks.into_iter().collect() };
        let body = self.program.bodies.push(body);
        self.program.blocks.insert(role.to_string(), body);
    }
}

fn number(value: u64, width: u32) -> Expr {
    Expr::Const(Bits::new(u128::from(value), width))
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::Binary(op, Box::new(left), Box::new(right))
}

/// Makes a block of instructions and their places.
fn block(name: &str, instrs: Vec<(Op, LocId)>, terminator: Terminator) -> Block {
    let instrs = instrs.into_iter().map(|(op, loc)| Instr { op, loc }).collect();
    Block { name: name.into(), is_state: false, instrs, terminator, loc: LocId::from_u32(0) }
}

/// Returns the program.
pub fn program() -> Program {
    let mut b = Build::default();
    b.program.arch = "v1model".into();
    b.program.errors = vec!["NoError".into(), "PacketTooShort".into()];
    let nowhere = b.loc(0);
    for (name, width) in [
        ("standard_metadata.ingress_port", 9),
        ("standard_metadata.egress_spec", 9),
        ("standard_metadata.egress_port", 9),
        ("standard_metadata.instance_type", 32),
        ("standard_metadata.packet_length", 32),
        ("standard_metadata.enq_timestamp", 32),
        ("standard_metadata.enq_qdepth", 19),
        ("standard_metadata.deq_timedelta", 32),
        ("standard_metadata.deq_qdepth", 19),
        ("standard_metadata.ingress_global_timestamp", 48),
        ("standard_metadata.egress_global_timestamp", 48),
        ("standard_metadata.mcast_grp", 16),
        ("standard_metadata.egress_rid", 16),
        ("standard_metadata.parser_error", 32),
        ("standard_metadata.priority", 3),
        ("$drop_site", 32),
        ("meta.kept", 16),
        ("meta.lost", 16),
    ] {
        b.slot(name, width);
    }
    let slots = b.slots.clone();
    let slot = |name: &str| slots[name];
    let standard = |name: &str| slots[format!("standard_metadata.{name}").as_str()];
    let ask = b.header("ask", &[("op", 8), ("port", 16), ("arg", 16)]);
    let seen = b.header("seen", &REPORT);
    let field = |header: HeaderId, index: u32| Expr::Field(HeaderRef::Header(header), index);
    let read = |name: &str| Expr::Slot(standard(name));
    b.program.field_lists.insert(1, vec![FieldListItem::Slot(slot("meta.kept"))]);
    b.program.digests.push(ir::Digest { name: "seen_t".into(), fields: vec![("port".into(), 16), ("arg".into(), 16)] });
    let digest = DigestId::from_u32(0);

    let state = Block {
        is_state: true,
        ..block("start", vec![(Op::Extract(HeaderRef::Header(ask), None), b.loc(5))], Terminator::Return)
    };
    b.body("parser", "ProbeParser", BodyKind::Parser, vec![state]);
    for (role, name) in [("verify_checksum", "Verify"), ("compute_checksum", "Compute")] {
        b.body(role, name, BodyKind::Control, vec![block("start", Vec::new(), Terminator::Return)]);
    }

    // Ingress: block0 chooses by operation, the block after it is the default.
    let at = |b: &mut Build, op: Do| b.loc(100 + op as u32);
    let cut = |value: Expr, width: u32| Expr::Slice(Box::new(value), width - 1, 0);
    let set = |name: SlotId, value: Expr| Op::Assign(LValue::Slot(name), value);
    let arg32 = || Expr::ZeroExtend(Box::new(field(ask, 2)), 32);
    let once = |kind: u64| binary(Ne, read("instance_type"), number(kind, 32));
    let drop_port = || number(511, 9);

    let mut blocks = vec![];
    let mut cases = vec![];
    let mut case = |op: Do, instrs: Vec<(Op, LocId)>, blocks: &mut Vec<Block>| {
        blocks.push(block(&format!("{op:?}"), instrs, Terminator::Return));
        cases.push((Bits::new(op as u128, 8), BlockId::from_u32(blocks.len() as u32 + 1)));
    };
    let here = at(&mut b, Do::Drop);
    let site = set(slot("$drop_site"), number(u64::from(here.as_u32()), 32));
    case(Do::Drop, vec![(set(standard("egress_spec"), drop_port()), here), (site, here)], &mut blocks);
    case(Do::DropWithoutSite, vec![(set(standard("egress_spec"), drop_port()), here)], &mut blocks);
    let here = at(&mut b, Do::Multicast);
    case(Do::Multicast, vec![(set(standard("mcast_grp"), field(ask, 2)), here)], &mut blocks);
    let here = at(&mut b, Do::CloneIngress);
    let clone = |ingress| Op::Request(Request::Clone { ingress, session: arg32(), keep: Some(1) });
    // The clone carries the packet as received, so that the change of `port` must not be seen in it.
    let spoil = Op::Assign(LValue::Field(HeaderRef::Header(ask), 0), number(0xff, 8));
    case(Do::CloneIngress, vec![(clone(true), here), (spoil.clone(), here)], &mut blocks);
    let here = at(&mut b, Do::ResubmitAlways);
    let resubmit = || Op::Request(Request::Resubmit(Some(1)));
    case(Do::ResubmitAlways, vec![(resubmit(), here)], &mut blocks);
    let here = at(&mut b, Do::Digest);
    let values = vec![field(ask, 1), field(ask, 2)];
    case(Do::Digest, vec![(Op::Request(Request::Digest(digest, values)), here)], &mut blocks);
    let here = at(&mut b, Do::AssertInIngress);
    case(Do::AssertInIngress, vec![(Op::Assert(number(0, 1)), here)], &mut blocks);
    let here = at(&mut b, Do::SecondByteIsPriority);
    let priority = set(standard("priority"), cut(field(ask, 2), 3));
    case(Do::SecondByteIsPriority, vec![(priority, here)], &mut blocks);
    let here = at(&mut b, Do::ResubmitOnce);
    let again = vec![(resubmit(), here), (spoil, here)];
    blocks.push(block("again", again, Terminator::Return));
    let again = BlockId::from_u32(blocks.len() as u32 + 1);
    let twice = BlockId::from_u32(1);
    blocks.push(block(
        "ResubmitOnce",
        Vec::new(),
        Terminator::Branch { condition: once(6), then: again, otherwise: twice },
    ));
    cases.push((Bits::new(Do::ResubmitOnce as u128, 8), BlockId::from_u32(blocks.len() as u32 + 1)));
    let here = b.loc(90);
    let first = block(
        "start",
        vec![
            (set(standard("egress_spec"), cut(field(ask, 1), 9)), here),
            (set(slot("meta.kept"), binary(BinaryOp::Add, Expr::Slot(slot("meta.kept")), number(7, 16))), here),
            (set(slot("meta.lost"), number(9, 16)), here),
        ],
        Terminator::Switch { subject: field(ask, 0), cases, default: twice },
    );
    let mut ingress = vec![first, block("end", Vec::new(), Terminator::Return)];
    ingress.append(&mut blocks);
    b.body("ingress", "ProbeIngress", BodyKind::Control, ingress);

    // Egress: block0 reports and chooses, block1 is the default.
    let widths = REPORT.map(|(_, width)| width);
    let fit = |value: Expr, from: u32, to: u32| match from.cmp(&to) {
        std::cmp::Ordering::Less => Expr::ZeroExtend(Box::new(value), to),
        _ => cut(value, to),
    };
    let sources = [
        (read("instance_type"), 32),
        (read("egress_rid"), 16),
        (Expr::Slot(slot("meta.kept")), 16),
        (read("packet_length"), 32),
        (read("ingress_global_timestamp"), 48),
        (read("egress_global_timestamp"), 48),
        (read("deq_timedelta"), 32),
        (read("enq_qdepth"), 19),
        (read("deq_qdepth"), 19),
        (read("egress_port"), 9),
    ];
    let here = b.loc(200);
    let mut reports = vec![(Op::SetValid(HeaderRef::Header(seen)), here)];
    for (index, (value, width)) in sources.into_iter().enumerate() {
        let place = LValue::Field(HeaderRef::Header(seen), index as u32);
        reports.push((Op::Assign(place, fit(value, width, widths[index])), here));
    }
    let mut blocks: Vec<Block> = vec![];
    let mut cases = vec![];
    let mut case = |op: Do, only: Option<Expr>, instr: Op, loc: LocId| {
        let id = |blocks: &Vec<Block>| BlockId::from_u32(blocks.len() as u32 + 1);
        blocks.push(block(&format!("{op:?}"), vec![(instr, loc)], Terminator::Return));
        if let Some(condition) = only {
            let then = id(&blocks);
            let otherwise = BlockId::from_u32(1);
            blocks.push(block("once", Vec::new(), Terminator::Branch { condition, then, otherwise }));
        }
        cases.push((Bits::new(op as u128, 8), id(&blocks)));
    };
    let recirculate = || Op::Request(Request::Recirculate(Some(1)));
    let here = at(&mut b, Do::CloneEgress);
    let normal = || binary(Eq, read("instance_type"), number(0, 32));
    case(Do::CloneEgress, Some(normal()), clone(false), here);
    case(Do::CloneEgressAlways, None, clone(false), here);
    // Egress sees every packet that ingress forwarded as a normal one; the kept field marks the first pass.
    let first = binary(Eq, Expr::Slot(slot("meta.kept")), number(7, 16));
    case(Do::Recirculate, Some(first), recirculate(), here);
    case(Do::RecirculateAlways, None, recirculate(), here);
    case(Do::Truncate, None, Op::Request(Request::Truncate(arg32())), here);
    let here = at(&mut b, Do::DropInEgress);
    case(Do::DropInEgress, None, set(standard("egress_spec"), drop_port()), here);
    let choose = Terminator::Switch { subject: field(ask, 0), cases, default: BlockId::from_u32(1) };
    let mut egress = vec![block("start", reports, choose), block("end", Vec::new(), Terminator::Return)];
    egress.append(&mut blocks);
    b.body("egress", "ProbeEgress", BodyKind::Control, egress);

    // A recirculated packet is parsed from its first byte, so the report follows the operation.
    let emits = [ask, seen].map(|header| (Op::Emit(HeaderRef::Header(header)), nowhere));
    let deparser = block("start", emits.into(), Terminator::Return);
    b.body("deparser", "ProbeDeparser", BodyKind::Control, vec![deparser]);
    b.program
}
