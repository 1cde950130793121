//! Evaluates v1model as docs/v1model.md states it: the six blocks, and what happens between them.

use std::collections::{BTreeMap, VecDeque};

use num_bigint::BigInt;
use p4::lex::TokenKind;
use p4::typed::{Annotation, AnnotationBody, Program, Type, VarId};

use crate::Reference;
use crate::budget::PacketBudget;
use crate::evaluator::{BlockEvaluator, Evaluated, Stop, unsupported};
use crate::externs::drop_spec;
use crate::instance::Object;
use crate::number::Number;
use crate::packet::{PacketBits, valid_header_bits};
use crate::value::{Initial, Value, initial};

/// Maximum number of times that one packet and its ancestors go through the pipeline again.
const MAX_PASSES: u32 = 255;

/// An action of the architecture that a block requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchRequest {
    /// A copy to a mirror session, with a field list.
    Clone {
        /// The session.
        session: u32,
        /// The field list.
        keep: Option<u32>,
    },
    /// Another ingress pass of the packet as it came.
    Resubmit(u32),
    /// Another pass of the packet as it leaves.
    Recirculate(u32),
    /// Truncation to this many bytes.
    Truncate(u32),
    /// A message to the control plane.
    Digest(Vec<Number>),
}

/// What blocks leave for the architecture.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Requests in order.
    pub requests: Vec<SwitchRequest>,
    /// Whether a checksum was wrong.
    pub checksum_error: bool,
    /// `packet_length`, which counters add up.
    pub packet_length: u64,
}

/// A destination of a mirror session or multicast group: port and replication id.
pub type Replica = (u32, u64);

/// A mirror session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorSession {
    /// Destinations.
    pub replicas: Vec<Replica>,
    /// Multicast group with further destinations.
    pub group: Option<u32>,
    /// Maximum number of bytes of a copy.
    pub max_bytes: Option<u32>,
}

/// The configuration of the switch outside the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Mirror sessions.
    pub mirrors: BTreeMap<u32, MirrorSession>,
    /// Multicast groups.
    pub groups: BTreeMap<u32, Vec<Replica>>,
}

/// A packet that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Port.
    pub port: u32,
    /// Bytes.
    pub data: Vec<u8>,
}

/// The result of one received packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Packets that leave, in order.
    pub sent: Vec<Sent>,
    /// Digests in order.
    pub digests: Vec<Vec<Number>>,
}

/// A packet between two blocks.
#[derive(Clone, Debug)]
struct PassState {
    input: Vec<u8>,
    bits: PacketBits,
    headers: Value,
    metadata: Value,
    standard: Value,
    ingress_port: u32,
    passes: u32,
    max_bytes: u32,
    /// Bits of valid headers after the parser.
    parsed_bits: usize,
}

impl PassState {
    /// Returns the approximate size in memory, in bytes.
    fn bytes(&self) -> u64 {
        self.input.len() as u64 + self.headers.bytes() + self.metadata.bytes() + self.standard.bytes()
    }
}

enum Work {
    Ingress(PassState),
    Egress(PassState, u32),
}

/// The six blocks of a program.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    instances: [usize; 6],
    types: [Type; 3],
}

/// Indices into [`Blocks::instances`].
#[derive(Clone, Copy, PartialEq)]
enum BlockRole {
    Parser,
    Verify,
    Ingress,
    Egress,
    Compute,
    Deparser,
}

impl Blocks {
    /// Finds the blocks of `main`.
    pub(crate) fn of(program: &Program, instances: &crate::instance::Instances) -> Option<Blocks> {
        let main = *instances.top.get(&program.main?)?;
        let args = &instances.list[main].args;
        let mut found = [0; 6];
        for (block, arg) in found.iter_mut().zip(args.iter()) {
            let Value::Object(Object::Instance(index)) = arg else { return None };
            *block = *index;
        }
        let Type::Control(ingress) = instances.list[found[BlockRole::Ingress as usize]].ty else { return None };
        let params = &program.controls[ingress].params;
        let ty = |index: usize| params.get(index).map(|param| program.vars[param.var].ty.clone());
        Some(Blocks { instances: found, types: [ty(0)?, ty(1)?, ty(2)?] })
    }
}

impl Reference<'_> {
    /// Runs a received packet through the switch until everything that it caused has left or was dropped.
    ///
    /// # Errors
    /// If the result is not defined, or the program uses something that is not modelled.
    pub fn packet(&mut self, port: u32, data: &[u8], now_us: u64) -> Result<Outcome, Stop> {
        self.now_us = now_us;
        self.budget = PacketBudget::new();
        let mut outcome = Outcome::default();
        let mut first = self.fresh(data.to_vec(), port);
        first.passes = 0;
        let mut work = VecDeque::from([Work::Ingress(first)]);
        while let Some(next) = work.pop_front() {
            let done = match next {
                Work::Ingress(packet) => self.ingress(packet, &mut work, &mut outcome),
                Work::Egress(packet, port) => self.egress(packet, port, &mut work, &mut outcome),
            };
            match done {
                // A false assertion drops the packet.
                Ok(()) | Err(Stop::AssertFailed) => {}
                Err(stop) => return Err(stop),
            }
        }
        Ok(outcome)
    }

    fn fresh(&self, data: Vec<u8>, ingress_port: u32) -> PassState {
        let [headers, metadata, standard] =
            self.blocks.types.each_ref().map(|ty| initial(self.program, ty, Initial::Zero));
        PassState {
            bits: PacketBits::new(&data),
            input: data,
            headers,
            metadata,
            standard,
            ingress_port,
            passes: 0,
            max_bytes: u32::MAX,
            parsed_bits: 0,
        }
    }

    /// Runs a block. The results of its parameters replace the packet's parts.
    fn block(&mut self, role: BlockRole, packet: &mut PassState) -> Evaluated<(Vec<SwitchRequest>, Option<usize>)> {
        let index = self.blocks.instances[role as usize];
        let ty = self.instances.list[index].ty.clone();
        let program = self.program;
        let mut evaluator =
            BlockEvaluator::new(program, &self.instances, &mut self.control_plane, &mut self.budget, &[]);
        evaluator.packet = std::mem::take(&mut packet.bits);
        evaluator.in_parser = role == BlockRole::Parser;
        evaluator.effects.packet_length = number_of(program, &packet.standard, "packet_length");
        let params = match ty {
            Type::Parser(id) => &program.parsers[id].params,
            Type::Control(id) => &program.controls[id].params,
            _ => return Err(unsupported("a block that is neither parser nor control")),
        };
        let vars: Vec<VarId> = params.iter().map(|param| param.var).collect();
        // The positions of headers, metadata and standard metadata among the parameters.
        let offset = usize::from(matches!(role, BlockRole::Parser | BlockRole::Deparser));
        if offset == 1 {
            let object = if role == BlockRole::Parser { Object::PacketIn } else { Object::PacketOut };
            evaluator.env.insert(vars[0], Value::Object(object));
        }
        let parts = [&mut packet.headers, &mut packet.metadata, &mut packet.standard];
        for (var, part) in vars[offset..].iter().zip(parts) {
            evaluator.env.insert(*var, std::mem::replace(part, Value::Void));
        }
        let result = evaluator.within(index, |cx| match ty {
            Type::Parser(id) => cx.run_parser(id),
            Type::Control(id) => cx.run_control(id),
            _ => Ok(()),
        });
        let parts = [&mut packet.headers, &mut packet.metadata, &mut packet.standard];
        for (var, part) in vars[offset..].iter().zip(parts) {
            *part = evaluator.env.remove(var).unwrap_or(Value::Void);
        }
        packet.bits = evaluator.packet;
        if evaluator.effects.checksum_error {
            set(program, &mut packet.standard, "checksum_error", 1);
        }
        let requests = evaluator.effects.requests;
        match result {
            Ok(()) | Err(Stop::Exit | Stop::Return(_)) => Ok((requests, None)),
            Err(Stop::Reject(error)) => Ok((requests, Some(error))),
            Err(stop) => Err(stop),
        }
    }

    /// Runs the parser; an error of it is in `parser_error` and does not drop the packet.
    fn parse(&mut self, packet: &mut PassState) -> Evaluated<Vec<SwitchRequest>> {
        let (requests, error) = self.block(BlockRole::Parser, packet)?;
        let error = error.unwrap_or(0);
        let decl = self.program.structs.values().find(|decl| &*decl.name == "standard_metadata_t");
        let index = decl.and_then(|decl| decl.fields.iter().position(|field| &*field.name == "parser_error"));
        if let Some(field) = index.and_then(|index| packet.standard.parts_mut().get_mut(index)) {
            *field = Value::Error(error);
        }
        packet.parsed_bits = valid_header_bits(&packet.headers) + valid_header_bits(&packet.metadata);
        Ok(requests)
    }

    fn ingress(&mut self, mut packet: PassState, work: &mut VecDeque<Work>, outcome: &mut Outcome) -> Evaluated<()> {
        let (port, length) = (packet.ingress_port.into(), packet.input.len() as u64);
        for (field, value) in
            [("ingress_port", port), ("packet_length", length), ("ingress_global_timestamp", self.now_us)]
        {
            set(self.program, &mut packet.standard, field, value);
        }
        let mut requests = self.parse(&mut packet)?;
        requests.extend(self.block(BlockRole::Verify, &mut packet)?.0);
        requests.extend(self.block(BlockRole::Ingress, &mut packet)?.0);
        let asked = Asked::of(requests, &mut packet, outcome);
        if let Some((session, keep)) = asked.clone
            && packet.passes < MAX_PASSES
            && self.traffic.mirrors.contains_key(&session)
        {
            let mut copy = self.fresh(packet.input.clone(), packet.ingress_port);
            copy.passes = packet.passes + 1;
            set(self.program, &mut copy.standard, "ingress_port", packet.ingress_port.into());
            self.parse(&mut copy)?;
            self.mirror(copy, &packet, session, keep, 1, work)?;
        }
        if let Some(list) = asked.resubmit {
            if packet.passes < MAX_PASSES {
                let mut again = self.fresh(packet.input.clone(), packet.ingress_port);
                again.passes = packet.passes + 1;
                self.keep(&packet, &mut again, Some(list));
                set(self.program, &mut again.standard, "instance_type", 6);
                self.budget.pass()?;
                self.budget.keep(again.bytes())?;
                work.push_back(Work::Ingress(again));
            }
            return Ok(());
        }
        let group = number_of(self.program, &packet.standard, "mcast_grp");
        if group != 0 {
            set(self.program, &mut packet.standard, "instance_type", 5);
            let replicas = self.traffic.groups.get(&(group as u32)).cloned().unwrap_or_default();
            self.replicate(&packet, &replicas, work)?;
            return Ok(());
        }
        let port = number_of(self.program, &packet.standard, "egress_spec");
        if port != drop_spec(self.program) {
            set(self.program, &mut packet.standard, "instance_type", 0);
            self.budget.pass()?;
            work.push_back(Work::Egress(packet, port as u32));
        }
        Ok(())
    }

    fn egress(
        &mut self,
        mut packet: PassState,
        port: u32,
        work: &mut VecDeque<Work>,
        outcome: &mut Outcome,
    ) -> Evaluated<()> {
        let headers = (valid_header_bits(&packet.headers) + valid_header_bits(&packet.metadata)) / 8;
        let length = (packet.input.len() + headers).saturating_sub(packet.parsed_bits / 8);
        for (field, value) in [
            ("enq_timestamp", self.now_us),
            ("enq_qdepth", 0),
            ("packet_length", length as u64),
            ("egress_global_timestamp", self.now_us),
            ("deq_timedelta", 0),
            ("deq_qdepth", 0),
            ("egress_port", port.into()),
            ("egress_spec", 0),
        ] {
            set(self.program, &mut packet.standard, field, value);
        }
        let requests = self.block(BlockRole::Egress, &mut packet)?.0;
        let asked = Asked::of(requests, &mut packet, outcome);
        if let Some((session, keep)) = asked.clone
            && packet.passes < MAX_PASSES
            && self.traffic.mirrors.contains_key(&session)
        {
            let mut copy = packet.clone();
            copy.passes += 1;
            self.mirror(copy, &packet, session, keep, 2, work)?;
        }
        if number_of(self.program, &packet.standard, "egress_spec") == drop_spec(self.program) {
            return Ok(());
        }
        self.block(BlockRole::Compute, &mut packet)?;
        packet.bits.restart_output();
        self.block(BlockRole::Deparser, &mut packet)?;
        let mut data = packet.bits.leaving();
        data.truncate(packet.max_bytes as usize);
        match asked.recirculate {
            Some(list) if packet.passes < MAX_PASSES => {
                let mut again = self.fresh(data, packet.ingress_port);
                again.passes = packet.passes + 1;
                self.keep(&packet, &mut again, Some(list));
                set(self.program, &mut again.standard, "instance_type", 4);
                self.budget.pass()?;
                self.budget.keep(again.bytes())?;
                work.push_back(Work::Ingress(again));
            }
            Some(_) => {}
            None => {
                self.budget.keep(data.len() as u64)?;
                outcome.sent.push(Sent { port, data });
            }
        }
        Ok(())
    }

    /// Sends a clone to its session. Of the metadata only the field list is kept.
    fn mirror(
        &mut self,
        mut copy: PassState,
        original: &PassState,
        session: u32,
        keep: Option<u32>,
        instance_type: u64,
        work: &mut VecDeque<Work>,
    ) -> Evaluated<()> {
        let Some(session) = self.traffic.mirrors.get(&session) else { return Ok(()) };
        for part in [&mut copy.headers, &mut copy.metadata, &mut copy.standard] {
            clear_scalars(part);
        }
        self.keep(original, &mut copy, keep);
        set(self.program, &mut copy.standard, "instance_type", instance_type);
        copy.max_bytes = session.max_bytes.unwrap_or(u32::MAX);
        let group = session.group.and_then(|group| self.traffic.groups.get(&group));
        let replicas: Vec<Replica> = session.replicas.iter().chain(group.into_iter().flatten()).copied().collect();
        self.replicate(&copy, &replicas, work)
    }

    fn replicate(&mut self, packet: &PassState, replicas: &[Replica], work: &mut VecDeque<Work>) -> Evaluated<()> {
        for (port, rid) in replicas {
            self.budget.pass()?;
            self.budget.keep(packet.bytes())?;
            let mut copy = packet.clone();
            set(self.program, &mut copy.standard, "egress_rid", *rid);
            work.push_back(Work::Egress(copy, *port));
        }
        Ok(())
    }

    /// Copies the fields of the metadata that `@field_list(list)` names.
    fn keep(&self, from: &PassState, to: &mut PassState, list: Option<u32>) {
        if let Some(list) = list {
            self.keep_fields(&self.blocks.types[1], &from.metadata, &mut to.metadata, list);
        }
    }

    fn keep_fields(&self, ty: &Type, from: &Value, to: &mut Value, list: u32) {
        let Type::Struct(id) = ty else { return };
        let fields = self.program.structs[*id].fields.iter();
        for ((field, from), to) in fields.zip(from.parts()).zip(to.parts_mut()) {
            let named = field.annotations.iter().filter(|annotation| &*annotation.name == "field_list");
            if named.flat_map(numbers).any(|number| number == BigInt::from(list)) {
                *to = from.clone();
            } else if matches!(from, Value::Struct(_)) {
                self.keep_fields(&field.ty, from, to, list);
            }
        }
    }
}

/// The requests that count: the last of each kind.
#[derive(Default)]
struct Asked {
    clone: Option<(u32, Option<u32>)>,
    resubmit: Option<u32>,
    recirculate: Option<u32>,
}

impl Asked {
    fn of(requests: Vec<SwitchRequest>, packet: &mut PassState, outcome: &mut Outcome) -> Asked {
        let mut asked = Asked::default();
        for request in requests {
            match request {
                SwitchRequest::Clone { session, keep } => asked.clone = Some((session, keep)),
                SwitchRequest::Resubmit(list) => asked.resubmit = Some(list),
                SwitchRequest::Recirculate(list) => asked.recirculate = Some(list),
                SwitchRequest::Truncate(bytes) => packet.max_bytes = packet.max_bytes.min(bytes),
                SwitchRequest::Digest(values) => outcome.digests.push(values),
            }
        }
        asked
    }
}

fn numbers(annotation: &Annotation) -> Vec<BigInt> {
    match &annotation.body {
        AnnotationBody::Unstructured(_, tokens) => tokens
            .iter()
            .filter_map(|token| match &token.kind {
                TokenKind::Int(literal) => Some(literal.value.clone()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn field_of(program: &Program, field: &str) -> Option<usize> {
    let decl = program.structs.values().find(|decl| &*decl.name == "standard_metadata_t")?;
    decl.fields.iter().position(|known| &*known.name == field)
}

/// Sets a numeric field of the standard metadata.
fn set(program: &Program, standard: &mut Value, field: &str, value: u64) {
    if let Some(Value::Number(number)) = field_of(program, field).and_then(|at| standard.parts_mut().get_mut(at)) {
        *number = Number::new(value, number.width);
    }
}

/// Returns a numeric field of the standard metadata.
fn number_of(program: &Program, standard: &Value, field: &str) -> u64 {
    match field_of(program, field).and_then(|at| standard.parts().get(at)) {
        Some(Value::Number(number)) => number.to_u64().unwrap_or(0),
        _ => 0,
    }
}

/// Sets every scalar outside headers to 0.
fn clear_scalars(value: &mut Value) {
    match value {
        Value::Number(number) => *number = Number::new(0, number.width),
        Value::Bool(value) => *value = false,
        Value::Error(index) => *index = 0,
        Value::Header { .. } => {}
        other => other.parts_mut().iter_mut().for_each(clear_scalars),
    }
}
