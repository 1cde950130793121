//! Describes extern objects, digests, and their relations to tables.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use diagnostics::{Diagnostic, Span};
use num_traits::ToPrimitive;
use p4::typed::{Annotations, Type, Value};
use p4runtime_proto::config as proto;
use p4runtime_proto::config::action_profile::{SelectorSizeSemantics, SumOfMembers, SumOfWeights};
use p4runtime_proto::config::table::IdleTimeoutBehavior;
use p4runtime_proto::config::{counter_spec, meter_spec};

use crate::annotations;
use crate::describe::Describer;
use crate::eval;
use crate::inventory::{ExternObject, StaticValue, TableObject, annotations_of};
use crate::model::{Property, Resource};
use crate::symbols::Prefix;

/// Annotations that select how a meter marks packets, in the order of `MeterSpec.Type`; the first is the default.
const METER_TYPES: [&str; 3] = ["two_rate_three_color", "single_rate_three_color", "single_rate_two_color"];

/// Returns the id prefix of a resource.
fn prefix(resource: Resource) -> Prefix {
    match resource {
        Resource::ActionProfile { .. } => Prefix::ActionProfile,
        Resource::Counter { .. } => Prefix::Counter,
        Resource::DirectCounter { .. } => Prefix::DirectCounter,
        Resource::Meter { .. } => Prefix::Meter,
        Resource::DirectMeter { .. } => Prefix::DirectMeter,
        Resource::Register { .. } => Prefix::Register,
    }
}

impl<'a> Describer<'a, '_> {
    pub(crate) fn collect_externs(&mut self) {
        let inventory = self.inventory;
        for at in &inventory.visible_externs {
            let object = &inventory.externs[*at];
            if let Some(resource) = self.model.resource(&object.object.name) {
                self.declare(prefix(resource), &object.name, &object.decl.annotations, object.decl.span);
            }
        }
        for table in &inventory.tables {
            for (property, value) in table.table.properties.iter().zip(&table.properties) {
                let Some(StaticValue::Extern(at)) = value else { continue };
                let object = &inventory.externs[*at];
                if self.model.property(&property.name).is_some()
                    && let Some(resource) = self.model.resource(&object.object.name)
                {
                    let annotations = annotations_of(object, Some(&property.annotations));
                    self.declare(prefix(resource), &object.name, annotations, object.decl.span);
                }
            }
        }
        for (at, (ty, span)) in inventory.digests.iter().enumerate() {
            let name = self.digest_name(ty, at);
            self.symbols.add(Prefix::Digest, &name, None, *span, self.diagnostics);
        }
    }

    /// Describes the extern objects that are declared by name.
    pub(crate) fn externs(&mut self) {
        let inventory = self.inventory;
        for at in &inventory.visible_externs {
            self.mentions_types = true;
            let object = &inventory.externs[*at];
            let Some(resource) = self.model.resource(&object.object.name) else { continue };
            let annotations = &object.decl.annotations;
            match resource {
                Resource::ActionProfile { selector, size } => self.action_profile(object, annotations, selector, size),
                Resource::Counter { size, unit, index } => {
                    let preamble = self.extern_preamble(Prefix::Counter, object, annotations, &[]);
                    let spec = Some(self.counter_spec(object, unit));
                    let size = self.size(object, size);
                    let index_type_name = self.index_type(object, index);
                    self.out.counters.push(proto::Counter { preamble, spec, size, index_type_name });
                }
                Resource::Meter { size, unit, index } => {
                    let preamble = self.extern_preamble(Prefix::Meter, object, annotations, &METER_TYPES);
                    let spec = Some(self.meter_spec(object, annotations, unit));
                    let size = self.size(object, size);
                    let index_type_name = self.index_type(object, index);
                    self.out.meters.push(proto::Meter { preamble, spec, size, index_type_name });
                }
                Resource::Register { size, index } => {
                    let preamble = self.extern_preamble(Prefix::Register, object, annotations, &[]);
                    let size = i32::try_from(self.size(object, size)).unwrap_or(i32::MAX);
                    let held = object.object.type_args.first();
                    let type_spec = held.and_then(|ty| self.types.spec(ty, object.decl.span, self.diagnostics));
                    let index_type_name = self.index_type(object, index);
                    self.out.registers.push(proto::Register { preamble, type_spec, size, index_type_name });
                }
                // Direct resources belong to a table and are described where the table is.
                Resource::DirectCounter { .. } | Resource::DirectMeter { .. } => {}
            }
        }
    }

    fn extern_preamble(
        &mut self,
        prefix: Prefix,
        object: &ExternObject<'a>,
        annotations: &Annotations,
        except: &[&str],
    ) -> Option<proto::Preamble> {
        self.preamble(prefix, &object.name, annotations, except, object.decl.span)
    }

    fn size(&mut self, object: &ExternObject<'a>, param: &str) -> i64 {
        let size = object.arg(param).and_then(eval::size);
        if size.is_none() {
            self.diagnostics.push(
                Diagnostic::error("not-constant", object.decl.span, "P4Info cannot describe the size of this object")
                    .help("the size must be a non-negative constant"),
            );
        }
        size.unwrap_or(0)
    }

    /// Returns the name of an index's type, if it is a `type`.
    fn index_type(&mut self, object: &ExternObject<'a>, at: usize) -> Option<proto::P4NamedType> {
        let ty = object.object.type_args.get(at)?;
        self.mention(ty, object.decl.span);
        match ty {
            Type::New(_) => self.types.name(ty),
            _ => None,
        }
    }

    /// Returns the enum member that was passed to an object's constructor.
    fn unit(&self, object: &ExternObject<'a>, param: &str) -> Option<&'a str> {
        let at = object.decl.param_names.iter().position(|name| &**name == param)?;
        let p4::typed::Arg::Expr(e) = object.decl.args.get(at)? else { return None };
        let Type::Enum(id) = &e.ty else { return None };
        let Value::Bits(value) = object.arg(param)? else { return None };
        let member = self.program.enums[*id].members.iter().find(|member| member.value == *value)?;
        Some(&member.name)
    }

    fn counter_spec(&self, object: &ExternObject<'a>, param: &str) -> proto::CounterSpec {
        let unit = match self.unit(object, param).unwrap_or_default().to_ascii_lowercase().as_str() {
            "packets" => counter_spec::Unit::Packets,
            "bytes" => counter_spec::Unit::Bytes,
            "packets_and_bytes" => counter_spec::Unit::Both,
            _ => counter_spec::Unit::Unspecified,
        };
        proto::CounterSpec { unit: unit as i32 }
    }

    fn meter_spec(&self, object: &ExternObject<'a>, annotations: &Annotations, param: &str) -> proto::MeterSpec {
        let unit = match self.unit(object, param).unwrap_or_default().to_ascii_lowercase().as_str() {
            "packets" => meter_spec::Unit::Packets,
            "bytes" => meter_spec::Unit::Bytes,
            _ => meter_spec::Unit::Unspecified,
        };
        let given = METER_TYPES.iter().position(|name| annotations::has(annotations, name)).unwrap_or(0);
        proto::MeterSpec { unit: unit as i32, r#type: given as i32 }
    }

    fn action_profile(&mut self, object: &ExternObject<'a>, annotations: &Annotations, selector: bool, size: &str) {
        const OWN: [&str; 4] = ["max_group_size", "selector_size_semantics", "max_member_weight", "weights_disallowed"];
        let preamble = self.extern_preamble(Prefix::ActionProfile, object, annotations, &OWN);
        let mut out = proto::ActionProfile {
            preamble,
            with_selector: selector,
            size: self.size(object, size),
            ..Default::default()
        };
        if !selector {
            for name in OWN {
                if let Some(annotation) = annotations::find(annotations, name) {
                    self.ignored(annotation.span, name, "the action profile has no groups");
                }
            }
        } else {
            out.weights_disallowed = annotations::has(annotations, "weights_disallowed");
            out.max_group_size = self.small_number(annotations, "max_group_size").unwrap_or(0);
            let semantics = annotations::string(annotations, "selector_size_semantics");
            out.selector_size_semantics = match semantics.as_deref().map(str::to_ascii_lowercase).as_deref() {
                Some("sum_of_weights") => Some(SelectorSizeSemantics::SumOfWeights(SumOfWeights {})),
                Some("sum_of_members") => {
                    let max_member_weight = self.small_number(annotations, "max_member_weight").unwrap_or(0);
                    Some(SelectorSizeSemantics::SumOfMembers(SumOfMembers { max_member_weight }))
                }
                _ => {
                    if let Some(found) = annotations::find(annotations, "selector_size_semantics") {
                        self.diagnostics.push(
                            Diagnostic::error("annotation", found.span, "unknown size semantics")
                                .help("write `\"sum_of_weights\"` or `\"sum_of_members\"`"),
                        );
                    }
                    None
                }
            };
            if !matches!(out.selector_size_semantics, Some(SelectorSizeSemantics::SumOfMembers(_)))
                && let Some(annotation) = annotations::find(annotations, "max_member_weight")
            {
                self.ignored(annotation.span, "max_member_weight", "the size semantics are not `sum_of_members`");
            }
        }
        out.table_ids = self.tables_of(object);
        self.out.action_profiles.push(out);
    }

    fn ignored(&mut self, span: Span, name: &str, why: &str) {
        self.diagnostics
            .push(Diagnostic::warning("ignored-annotation", span, format!("`@{name}` has no effect here")).label(why));
    }

    fn small_number(&mut self, annotations: &Annotations, name: &str) -> Option<i32> {
        let annotation = annotations::find(annotations, name)?;
        let number = annotations::number(annotations, name).and_then(|number| number.to_i32());
        if number.is_none() {
            self.diagnostics.push(Diagnostic::error(
                "annotation",
                annotation.span,
                format!("`@{name}` takes a number below 2^31"),
            ));
        }
        number
    }

    /// Returns the ids of the tables with this implementation, in the order of their names.
    fn tables_of(&self, object: &ExternObject<'a>) -> Vec<u32> {
        let mut names = BTreeSet::new();
        for table in &self.inventory.tables {
            for (property, value) in table.table.properties.iter().zip(&table.properties) {
                if self.model.property(&property.name) == Some(Property::Implementation)
                    && matches!(value, Some(StaticValue::Extern(at)) if self.inventory.externs[*at].name == object.name)
                {
                    names.insert(&*table.name);
                }
            }
        }
        names.into_iter().map(|name| self.symbols.id(Prefix::Table, name)).collect()
    }

    /// Describes the objects that a table's properties attach.
    pub(crate) fn table_properties(&mut self, object: &TableObject<'a>, out: &mut proto::Table) {
        let inventory = self.inventory;
        let mut direct: BTreeMap<bool, u32> = BTreeMap::new();
        for (property, value) in object.table.properties.iter().zip(&object.properties) {
            let Some(role) = self.model.property(&property.name) else { continue };
            if role == Property::IdleTimeout {
                if matches!(value, Some(StaticValue::Value(Value::Bool(true)))) {
                    out.idle_timeout_behavior = IdleTimeoutBehavior::NotifyControl as i32;
                }
                continue;
            }
            let attached = match value {
                Some(StaticValue::Extern(at)) => Some(&inventory.externs[*at]),
                _ => None,
            };
            let resource = attached.and_then(|object| self.model.resource(&object.object.name));
            match (role, attached, resource) {
                (Property::Implementation, Some(profile), Some(Resource::ActionProfile { selector, size })) => {
                    out.implementation_id = self.symbols.id(Prefix::ActionProfile, &profile.name);
                    if profile.in_place {
                        self.action_profile(profile, &property.annotations, selector, size);
                    }
                }
                (Property::DirectCounter, Some(counter), Some(Resource::DirectCounter { unit })) => {
                    let annotations = annotations_of(counter, Some(&property.annotations));
                    let preamble = self.extern_preamble(Prefix::DirectCounter, counter, annotations, &[]);
                    let spec = Some(self.counter_spec(counter, unit));
                    direct.insert(false, self.symbols.id(Prefix::DirectCounter, &counter.name));
                    let direct_table_id = self.symbols.id(Prefix::Table, &object.name);
                    self.out.direct_counters.push(proto::DirectCounter { preamble, spec, direct_table_id });
                }
                (Property::DirectMeter, Some(meter), Some(Resource::DirectMeter { unit })) => {
                    let annotations = annotations_of(meter, Some(&property.annotations));
                    let preamble = self.extern_preamble(Prefix::DirectMeter, meter, annotations, &METER_TYPES);
                    let spec = Some(self.meter_spec(meter, annotations, unit));
                    direct.insert(true, self.symbols.id(Prefix::DirectMeter, &meter.name));
                    let direct_table_id = self.symbols.id(Prefix::Table, &object.name);
                    self.out.direct_meters.push(proto::DirectMeter { preamble, spec, direct_table_id });
                }
                _ => {
                    let expected = match role {
                        Property::Implementation => "an action profile or action selector",
                        Property::DirectCounter => "a direct counter",
                        _ => "a direct meter",
                    };
                    self.diagnostics.push(
                        Diagnostic::error(
                            "table-property",
                            property.span,
                            format!("`{}` does not name an object of the right kind", property.name),
                        )
                        .label(format!("expected {expected}")),
                    );
                }
            }
        }
        out.direct_resource_ids = direct.into_values().collect();
    }

    /// Returns the control-plane name of a digest: the type's name, or a number for a type without a name.
    fn digest_name(&self, ty: &Type, at: usize) -> String {
        match ty {
            Type::Struct(id) => {
                let decl = &self.program.structs[*id];
                annotations::string(&decl.annotations, "name").unwrap_or_else(|| decl.name.to_string())
            }
            Type::New(id) => self.program.new_types[*id].name.to_string(),
            Type::Enum(id) => self.program.enums[*id].name.to_string(),
            _ => {
                let unnamed = |ty: &Type| !matches!(ty, Type::Struct(_) | Type::New(_) | Type::Enum(_));
                let before = self.inventory.digests[..at].iter().filter(|(ty, _)| unnamed(ty)).count();
                format!("digest_{before}")
            }
        }
    }

    pub(crate) fn digests(&mut self) {
        let inventory = self.inventory;
        let mut done = HashSet::new();
        for (at, (ty, span)) in inventory.digests.iter().enumerate() {
            let name = self.digest_name(ty, at);
            let type_spec = self.types.spec(ty, *span, self.diagnostics);
            if !done.insert(name.clone()) {
                continue;
            }
            let preamble = Some(proto::Preamble {
                id: self.symbols.id(Prefix::Digest, &name),
                alias: self.symbols.alias(&name),
                name,
                ..Default::default()
            });
            self.out.digests.push(proto::Digest { preamble, type_spec });
        }
    }
}
