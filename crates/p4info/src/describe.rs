//! Converts the inventory to P4Info: tables, actions, value sets and packet headers. Extern objects are in [`objects`].
//!
//! [`objects`]: crate::objects

use std::collections::HashSet;

use diagnostics::names::shared;
use diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};
use num_traits::Signed;
use p4::ast::{Direction, StructKind};
use p4::typed::{Annotations, Program, Type, Value, ValueSet};
use p4runtime_proto::config as proto;
use p4runtime_proto::config::action_ref::Scope;
use p4runtime_proto::config::match_field::{Match, MatchType};

use crate::annotations;
use crate::eval;
use crate::inventory::{Inventory, StaticValue, TableObject};
use crate::model::{ControlPlaneModel, MatchKind};
use crate::symbols::{Prefix, Symbols, field_ids};
use crate::types::{Types, field_name, flat_fields};

pub(crate) struct Describer<'a, 'd> {
    pub(crate) program: &'a Program,
    pub(crate) model: &'d dyn ControlPlaneModel,
    pub(crate) map: &'a SourceMap,
    pub(crate) diagnostics: &'d mut Diagnostics,
    pub(crate) inventory: &'d Inventory<'a>,
    pub(crate) symbols: Symbols,
    pub(crate) types: Types<'a>,
    /// Whether anything that may refer to types was described. `type_info` is then present, even if empty.
    pub(crate) mentions_types: bool,
    pub(crate) out: proto::P4Info,
    pub(crate) names: HashSet<(i32, String)>,
}

impl<'a, 'd> Describer<'a, 'd> {
    pub(crate) fn new(
        program: &'a Program,
        model: &'d dyn ControlPlaneModel,
        map: &'a SourceMap,
        inventory: &'d Inventory<'a>,
        diagnostics: &'d mut Diagnostics,
    ) -> Self {
        Describer {
            program,
            model,
            map,
            diagnostics,
            inventory,
            symbols: Symbols::default(),
            types: Types::new(program, map),
            mentions_types: inventory.calls_extern_functions,
            out: proto::P4Info::default(),
            names: HashSet::new(),
        }
    }

    /// Describes everything except the package.
    pub(crate) fn describe(&mut self) {
        self.collect();
        self.symbols.assign();
        self.actions();
        self.externs();
        self.tables();
        self.value_sets();
        self.digests();
        self.packet_headers();
    }

    /// Registers every name, so that ids can be assigned.
    fn collect(&mut self) {
        let inventory = self.inventory;
        for action in &inventory.actions {
            self.declare(Prefix::Action, &action.name, &action.action.annotations, action.action.span);
        }
        for table in &inventory.tables {
            self.declare(Prefix::Table, &table.name, &table.table.annotations, table.table.span);
        }
        for (name, set) in &inventory.value_sets {
            self.declare(Prefix::ValueSet, name, &set.annotations, set.span);
        }
        for decl in self.program.structs.values() {
            if decl.kind == StructKind::Header && annotations::has(&decl.annotations, "controller_header") {
                let name = annotations::string(&decl.annotations, "name").unwrap_or_else(|| decl.name.to_string());
                self.declare(Prefix::ControllerHeader, &name, &decl.annotations, decl.span);
            }
        }
        self.collect_externs();
    }

    pub(crate) fn declare(&mut self, prefix: Prefix, name: &str, annotations: &Annotations, span: Span) {
        // The declaration's id is that of the first object with this name.
        let id = if shared(name).is_some() { None } else { annotations::id(annotations, self.diagnostics) };
        self.symbols.add(prefix, name, id, span, self.diagnostics);
    }

    pub(crate) fn preamble(
        &mut self,
        prefix: Prefix,
        name: &str,
        annotations: &Annotations,
        except: &[&str],
        span: Span,
    ) -> Option<proto::Preamble> {
        let shown = annotations::convert(annotations, except, self.map, self.diagnostics);
        if !self.names.insert((prefix as i32, name.to_owned())) {
            self.diagnostics.push(
                Diagnostic::error(
                    "control-plane-name",
                    span,
                    format!("two objects of this kind have the control-plane name `{name}`"),
                )
                .help("give one of them another `@name`"),
            );
        }
        Some(proto::Preamble {
            id: self.symbols.id(prefix, name),
            name: name.to_owned(),
            alias: self.symbols.alias(name),
            annotations: shown.annotations,
            structured_annotations: shown.structured,
            doc: shown.doc,
            annotation_locations: Vec::new(),
        })
    }

    fn actions(&mut self) {
        let inventory = self.inventory;
        let mut done = HashSet::new();
        for object in &inventory.actions {
            let action = object.action;
            if annotations::has(&action.annotations, "hidden") || !done.insert(&object.name) {
                continue;
            }
            let preamble = self.preamble(Prefix::Action, &object.name, &action.annotations, &[], action.span);
            let data: Vec<_> = if object.listed {
                action.params.iter().filter(|param| param.direction == Direction::None).collect()
            } else {
                // Code that calls an action sets its parameters.
                Vec::new()
            };
            let vars: Vec<_> = data.iter().map(|param| &self.program.vars[param.var]).collect();
            let given: Vec<_> =
                vars.iter().map(|var| (annotations::id(&var.annotations, self.diagnostics), var.span)).collect();
            let ids = field_ids(&given, self.diagnostics);
            let mut params = Vec::new();
            for (var, id) in vars.into_iter().zip(ids) {
                let shown = annotations::convert(&var.annotations, &[], self.map, self.diagnostics);
                let name = annotations::string(&var.annotations, "name").unwrap_or_else(|| var.name.to_string());
                self.mention(&var.ty, var.span);
                params.push(proto::action::Param {
                    id,
                    name,
                    bitwidth: self.types.width(&var.ty),
                    type_name: self.types.name(&var.ty),
                    annotations: shown.annotations,
                    structured_annotations: shown.structured,
                    doc: shown.doc,
                    annotation_locations: Vec::new(),
                });
            }
            self.out.actions.push(proto::Action { preamble, params });
        }
    }

    /// Describes a type in `type_info`, if it has a name.
    pub(crate) fn mention(&mut self, ty: &Type, span: Span) {
        self.mentions_types = true;
        self.types.spec(ty, span, self.diagnostics);
    }

    fn tables(&mut self) {
        let inventory = self.inventory;
        for object in &inventory.tables {
            let table = object.table;
            if annotations::has(&table.annotations, "hidden") {
                continue;
            }
            self.mentions_types = true;
            let preamble = self.preamble(Prefix::Table, &object.name, &table.annotations, &[], table.span);
            let action_id = |at: usize| object.actions.get(at).map_or(0, |name| self.symbols.id(Prefix::Action, name));
            let default = action_id(table.default_action.0);
            let mut out = proto::Table {
                preamble,
                size: self.table_size(object),
                const_default_action_id: if table.const_default { default } else { 0 },
                is_const_table: table.const_entries,
                has_initial_entries: !table.entries.is_empty(),
                initial_default_action: Some(proto::TableActionCall {
                    action_id: default,
                    arguments: self.default_arguments(object),
                }),
                ..Default::default()
            };
            out.match_fields = self.match_fields(object);
            out.action_refs = self.action_refs(object);
            self.table_properties(object, &mut out);
            self.out.tables.push(out);
        }
    }

    fn table_size(&self, object: &TableObject<'a>) -> i64 {
        let written = object.table.size.and_then(|size| i64::try_from(size).ok());
        let computed = || {
            let at = object.table.properties.iter().position(|property| &*property.name == "size")?;
            match object.properties[at].as_ref()? {
                StaticValue::Value(value) => eval::size(value),
                _ => None,
            }
        };
        written.or_else(computed).filter(|size| *size != 0).unwrap_or_else(|| self.model.default_table_size())
    }

    fn default_arguments(&mut self, object: &TableObject<'a>) -> Vec<proto::table_action_call::Argument> {
        let table = object.table;
        let Some(listed) = table.actions.get(table.default_action.0) else { return Vec::new() };
        let action = &self.program.actions[listed.action];
        let data = action.params.iter().filter(|param| param.direction == Direction::None);
        let mut out = Vec::new();
        for (at, (param, (value, ty))) in data.zip(&object.default_args).enumerate() {
            let var = &self.program.vars[param.var];
            let given = annotations::id(&var.annotations, self.diagnostics);
            let Some(value) = value.as_ref().and_then(|value| self.bytes(value, ty, var.span)) else { continue };
            let param_id = given.unwrap_or(at as u32 + 1);
            out.push(proto::table_action_call::Argument { param_id, value });
        }
        out
    }

    /// Encodes a value as the control plane writes it: big endian, with as many bytes as its type has.
    fn bytes(&mut self, value: &Value, ty: &Type, span: Span) -> Option<Vec<u8>> {
        let width = match self.types.width(ty) {
            0 => match value {
                Value::Bits(bits) => bits.width(),
                _ => 0,
            },
            width => u32::try_from(width).unwrap_or(0),
        };
        let number = match value {
            Value::Bool(truth) => num_bigint::BigInt::from(u8::from(*truth)),
            other => eval::integer(other, matches!(eval::below(self.program, ty), Type::Int(_)))?,
        };
        if number.is_negative() {
            self.diagnostics.push(Diagnostic::error(
                "control-plane-type",
                span,
                "P4Info cannot describe a negative default value",
            ));
            return None;
        }
        let digits = number.to_bytes_be().1;
        let length = (width as usize).div_ceil(8);
        let mut bytes = vec![0; length.saturating_sub(digits.len())];
        bytes.extend(&digits[digits.len().saturating_sub(length.max(1))..]);
        Some(bytes)
    }

    fn match_fields(&mut self, object: &TableObject<'a>) -> Vec<proto::MatchField> {
        let keys = &object.table.keys;
        let given: Vec<_> =
            keys.iter().map(|key| (annotations::id(&key.annotations, self.diagnostics), key.span)).collect();
        let ids = field_ids(&given, self.diagnostics);
        let mut out = Vec::new();
        for (key, id) in keys.iter().zip(ids) {
            let Some(kind) = self.match_kind(&key.match_kind) else { continue };
            let shown = annotations::convert(&key.annotations, &[], self.map, self.diagnostics);
            self.mention(&key.expr.ty, key.span);
            out.push(proto::MatchField {
                id,
                name: key.name.to_string(),
                bitwidth: self.types.width(&key.expr.ty),
                r#match: Some(kind),
                type_name: self.types.name(&key.expr.ty),
                annotations: shown.annotations,
                structured_annotations: shown.structured,
                doc: shown.doc,
                annotation_locations: Vec::new(),
            });
        }
        out
    }

    fn match_kind(&self, kind: &str) -> Option<Match> {
        match self.model.match_kind(kind) {
            MatchKind::Standard(kind) => Some(Match::MatchType(kind as i32)),
            MatchKind::Other => Some(Match::OtherMatchType(kind.to_owned())),
            MatchKind::Hidden => None,
        }
    }

    fn action_refs(&mut self, object: &TableObject<'a>) -> Vec<proto::ActionRef> {
        let mut out = Vec::new();
        for (listed, name) in object.table.actions.iter().zip(&object.actions) {
            // An id of a hidden action would refer to nothing.
            if annotations::has(&self.program.actions[listed.action].annotations, "hidden") {
                continue;
            }
            let shown = annotations::convert(&listed.annotations, &[], self.map, self.diagnostics);
            let marked = |name| annotations::has(&listed.annotations, name);
            let scope = match (marked("tableonly"), marked("defaultonly")) {
                (true, true) => {
                    self.diagnostics.push(Diagnostic::error(
                        "annotation",
                        listed.span,
                        "an action cannot be both `@tableonly` and `@defaultonly`",
                    ));
                    Scope::TableAndDefault
                }
                (true, false) => Scope::TableOnly,
                (false, true) => Scope::DefaultOnly,
                (false, false) => Scope::TableAndDefault,
            };
            out.push(proto::ActionRef {
                id: self.symbols.id(Prefix::Action, name),
                scope: scope as i32,
                annotations: shown.annotations,
                structured_annotations: shown.structured,
                annotation_locations: Vec::new(),
            });
        }
        out
    }

    fn value_sets(&mut self) {
        let inventory = self.inventory;
        for (name, set) in &inventory.value_sets {
            let preamble = self.preamble(Prefix::ValueSet, name, &set.annotations, &[], set.span);
            let r#match = self.value_set_fields(set);
            let size = i32::try_from(set.size).unwrap_or(i32::MAX);
            self.out.value_sets.push(proto::ValueSet { preamble, r#match, size });
        }
    }

    fn value_set_fields(&mut self, set: &ValueSet) -> Vec<proto::MatchField> {
        let exact = Some(Match::MatchType(MatchType::Exact as i32));
        match &set.ty {
            Type::Struct(id) => {
                let program = self.program;
                let fields = &program.structs[*id].fields;
                let given: Vec<_> = fields
                    .iter()
                    .map(|field| (annotations::id(&field.annotations, self.diagnostics), field.span))
                    .collect();
                let ids = field_ids(&given, self.diagnostics);
                let mut out = Vec::new();
                for (field, id) in fields.iter().zip(ids) {
                    let shown = annotations::convert(&field.annotations, &["match"], self.map, self.diagnostics);
                    let kind = match annotations::find(&field.annotations, "match").map(|found| &found.body) {
                        Some(p4::typed::AnnotationBody::Unstructured(kind, _)) => self.match_kind(kind.trim()),
                        _ => exact.clone(),
                    };
                    out.push(proto::MatchField {
                        id,
                        name: field_name(field),
                        bitwidth: self.types.width(&field.ty),
                        r#match: kind,
                        type_name: self.types.name(&field.ty),
                        annotations: shown.annotations,
                        structured_annotations: shown.structured,
                        doc: shown.doc,
                        annotation_locations: Vec::new(),
                    });
                }
                out
            }
            Type::Enum(id) if self.program.enums[*id].underlying.is_some() => {
                let bitwidth = self.types.width(&set.ty);
                let members = self.program.enums[*id].members.iter().zip(1..);
                let field = |name: &str, id| proto::MatchField {
                    id,
                    name: name.to_owned(),
                    bitwidth,
                    r#match: exact.clone(),
                    ..Default::default()
                };
                members.map(|(member, id)| field(&member.name, id)).collect()
            }
            Type::Tuple(parts) => {
                let parts = parts.iter().zip(1..);
                parts
                    .map(|(ty, id)| proto::MatchField {
                        id,
                        bitwidth: self.types.width(ty),
                        r#match: exact.clone(),
                        ..Default::default()
                    })
                    .collect()
            }
            ty => vec![proto::MatchField {
                id: 1,
                bitwidth: self.types.width(ty),
                r#match: exact,
                type_name: self.types.name(ty),
                ..Default::default()
            }],
        }
    }

    /// Describes headers with `@controller_header`, which packets to and from the controller carry.
    fn packet_headers(&mut self) {
        let program = self.program;
        for decl in program.structs.values() {
            let Some(annotation) = annotations::find(&decl.annotations, "controller_header") else { continue };
            if decl.kind != StructKind::Header || annotations::has(&decl.annotations, "hidden") {
                continue;
            }
            let Some(name) = annotations::string(&decl.annotations, "controller_header") else {
                self.diagnostics.push(
                    Diagnostic::error("annotation", annotation.span, "`@controller_header` takes a string")
                        .help("write `@controller_header(\"packet_in\")`"),
                );
                continue;
            };
            let own = annotations::string(&decl.annotations, "name").unwrap_or_else(|| decl.name.to_string());
            let shown = annotations::convert(&decl.annotations, &[], self.map, self.diagnostics);
            let preamble = Some(proto::Preamble {
                id: self.symbols.id(Prefix::ControllerHeader, &own),
                name: name.clone(),
                alias: name,
                annotations: shown.annotations,
                structured_annotations: shown.structured,
                doc: shown.doc,
                annotation_locations: Vec::new(),
            });
            let fields = flat_fields(program, decl);
            let given: Vec<_> = fields
                .iter()
                .map(|field| (annotations::id(&field.annotations, self.diagnostics), field.span))
                .collect();
            let ids = field_ids(&given, self.diagnostics);
            let mut metadata = Vec::new();
            for (field, id) in fields.into_iter().zip(ids) {
                if annotations::has(&field.annotations, "hidden") {
                    continue;
                }
                let shown = annotations::convert(&field.annotations, &[], self.map, self.diagnostics);
                self.mention(field.ty, field.span);
                metadata.push(proto::controller_packet_metadata::Metadata {
                    id,
                    name: field.name,
                    bitwidth: self.types.width(field.ty),
                    type_name: self.types.name(field.ty),
                    annotations: shown.annotations,
                    structured_annotations: shown.structured,
                    annotation_locations: Vec::new(),
                });
            }
            self.out.controller_packet_metadata.push(proto::ControllerPacketMetadata { preamble, metadata });
        }
    }
}
