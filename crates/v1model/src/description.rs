//! Describes v1model to the compiler: its blocks, externs and metadata.
//!
//! The declarations that programs include are in `v1model.p4` beside this file. Their semantics are written as
//! pipeline IR in the `lower_*` modules, by group: drops and copies, checksums and hashes, objects.

use compiler::Architecture;
use diagnostics::{Diagnostic, Diagnostics, Span};
use lower::{ArchitectureLowering, Block, BlockParam, ExternCall, ExternInstance, Lowering, Object, Store, Val};
use p4::ast;
use p4::typed::{self, Type};

use crate::{lower_hash, lower_object, lower_packet, version};

/// The name of the metadata struct's storage.
pub(crate) const STANDARD_METADATA: &str = "standard_metadata";

/// The slot with the place in the source that dropped a packet ([`ir::LocId`] as a number), 32 bits.
pub const DROP_SITE: &str = "$drop_site";

/// The slot with the ports to replicate to, by bit; 0 without `replicate_to_ports`.
pub const REPLICAS: &str = "$replicas";

/// Width of [`REPLICAS`] in bits: the number of ports that a packet can be replicated to.
pub const REPLICA_PORTS: u32 = 512;

/// The v1model architecture for the compiler.
#[derive(Clone, Copy, Debug, Default)]
pub struct V1Model;

/// The architecture's name, in IR and P4Info.
pub const NAME: &str = "v1model";

/// The files that programs for v1model include: names and texts.
pub const INCLUDES: &[(&str, &str)] = &[("v1model.p4", include_str!("v1model.p4"))];

/// The blocks in the order of the package's parameters, each with the roles of its own parameters.
const BLOCKS: [(&str, &[Role]); 6] = [
    ("parser", &[Role::PacketIn, Role::Headers, Role::Metadata, Role::Standard]),
    ("verify_checksum", &[Role::Headers, Role::Metadata]),
    ("ingress", &[Role::Headers, Role::Metadata, Role::Standard]),
    ("egress", &[Role::Headers, Role::Metadata, Role::Standard]),
    ("compute_checksum", &[Role::Headers, Role::Metadata]),
    ("deparser", &[Role::PacketOut, Role::Headers]),
];

/// Index of the ingress control in [`BLOCKS`]: its parameters name the storage.
const INGRESS: usize = 2;

#[derive(Clone, Copy, PartialEq)]
enum Role {
    PacketIn,
    PacketOut,
    Headers,
    Metadata,
    Standard,
}

/// The package that `main` must be an instance of.
pub const PACKAGE: &str = "V1Switch";

/// An example of the declaration of `main`.
const MAIN_FORM: &str = "V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(), \
                         MyDeparser()) main;";

impl Architecture for V1Model {
    fn includes(&self) -> &'static [(&'static str, &'static str)] {
        INCLUDES
    }

    fn package(&self) -> &'static str {
        PACKAGE
    }

    fn check_declarations(&self, program: &ast::Program, diagnostics: &mut Diagnostics) {
        version::check(program, diagnostics);
    }
}

impl ArchitectureLowering for V1Model {
    fn name(&self) -> &str {
        NAME
    }

    fn main_form(&self) -> &str {
        MAIN_FORM
    }

    fn bind(&self, cx: &mut Lowering<'_>, package: &str, args: &[Val], span: Span) -> Option<Vec<Block>> {
        if package != PACKAGE || args.len() != BLOCKS.len() {
            cx.error(
                Diagnostic::error("package", span, format!("`{package}` is not a package of v1model"))
                    .help(format!("end the program with `{MAIN_FORM}`")),
            );
            return None;
        }
        let ingress = cx.params_of(args.get(INGRESS)?);
        let [headers, metadata, _] = &ingress[..] else { return None };
        let (headers, metadata) = (headers.name.to_string(), metadata.name.to_string());
        // Standard metadata exist even if no block names them: the switch fills them in.
        let standard = cx.params_of(args.get(INGRESS)?).get(2)?.ty.clone();
        cx.shared(STANDARD_METADATA, &standard);
        let mut blocks = Vec::new();
        for ((role, params), arg) in BLOCKS.into_iter().zip(args) {
            let Val::Object(object) = arg else { return None };
            let params = params.iter().map(|role| match role {
                Role::PacketIn => BlockParam::Object(Object::PacketIn),
                Role::PacketOut => BlockParam::Object(Object::PacketOut),
                Role::Headers => BlockParam::Shared(headers.clone()),
                // A program may give its own metadata the name that standard metadata have here.
                Role::Metadata if metadata == STANDARD_METADATA => BlockParam::Shared(format!("user.{metadata}")),
                Role::Metadata => BlockParam::Shared(metadata.clone()),
                Role::Standard => BlockParam::Shared(STANDARD_METADATA.to_owned()),
            });
            blocks.push(Block { role, object: object.clone(), params: params.collect() });
        }
        lower_packet::field_lists(cx, args.get(INGRESS)?, &blocks[INGRESS]);
        Some(blocks)
    }

    fn extern_fn(&self, cx: &mut Lowering<'_>, call: &mut ExternCall<'_>) -> Val {
        match call.name {
            "mark_to_drop" => lower_packet::mark_to_drop(cx, call),
            "clone" | "clone3" | "clone_preserving_field_list" => lower_packet::clone(cx, call),
            "resubmit" | "resubmit_preserving_field_list" => lower_packet::again(cx, call, ir::Request::Resubmit),
            "recirculate" | "recirculate_preserving_field_list" => {
                lower_packet::again(cx, call, ir::Request::Recirculate);
            }
            "truncate" => lower_packet::truncate(cx, call),
            "replicate_to_ports" => lower_packet::replicate_to_ports(cx, call),
            "digest" => lower_packet::digest(cx, call),
            "log_msg" => lower_packet::log_msg(cx, call),
            "assert" | "assume" => lower_packet::assert(cx, call),
            "random" => lower_hash::random(cx, call),
            "hash" => lower_hash::hash(cx, call),
            "verify_checksum" | "verify_checksum_with_payload" => lower_hash::verify_checksum(cx, call),
            "update_checksum" | "update_checksum_with_payload" => lower_hash::update_checksum(cx, call),
            other => {
                cx.unsupported(call.span, format!("v1model has no extern function `{other}`"));
                return cx.default_value(call.ret);
            }
        }
        Val::Absent
    }

    fn extern_method(&self, cx: &mut Lowering<'_>, object: &Object, call: &mut ExternCall<'_>) -> Val {
        lower_object::method(cx, object, call)
    }

    fn extern_instance(&self, cx: &mut Lowering<'_>, instance: &ExternInstance<'_>) -> Object {
        lower_object::instance(cx, instance)
    }

    fn table_property(&self, cx: &mut Lowering<'_>, table: &mut ir::Table, name: &str, value: &Val, span: Span) {
        lower_object::table_property(cx, table, name, value, span);
    }

    fn match_kind(&self, name: &str) -> Option<ir::MatchKind> {
        match name {
            "range" => Some(ir::MatchKind::Range),
            "optional" => Some(ir::MatchKind::Optional),
            "selector" => Some(ir::MatchKind::Selector),
            _ => None,
        }
    }

    fn finish(&self, _cx: &mut Lowering<'_>) {}
}

/// Returns the storage and type of a field of the standard metadata.
pub(crate) fn standard_field(cx: &mut Lowering<'_>, field: &str) -> Option<(Store, Type)> {
    let id = cx.program.structs.iter().find(|(_, decl)| &*decl.name == "standard_metadata_t").map(|(id, _)| id)?;
    let store = cx.shared(STANDARD_METADATA, &Type::Struct(id));
    part(cx.program, &store, id, field)
}

/// Returns the storage and type of a field of a struct.
pub(crate) fn part(program: &typed::Program, store: &Store, id: typed::StructId, field: &str) -> Option<(Store, Type)> {
    let fields = &program.structs[id].fields;
    let index = fields.iter().position(|declared| &*declared.name == field)?;
    match store {
        Store::Fields(parts) => Some((parts.get(index)?.clone(), fields[index].ty.clone())),
        _ => None,
    }
}
