//! Describes types in P4Info: a type that is referred to is described in `type_info`, together with the types it
//! contains.

use std::collections::HashSet;

use diagnostics::{Diagnostic, Diagnostics, SourceMap};
use p4::ast::StructKind;
use p4::lex::TokenKind;
use p4::typed::{AnnotationBody, EnumId, FieldDecl, NewTypeDecl, NewTypeId, Program, StructDecl, StructId, Type};
use p4runtime_proto::config as proto;
use p4runtime_proto::config::p4_bitstring_like_type_spec::TypeSpec as Bitstring;
use p4runtime_proto::config::p4_data_type_spec::TypeSpec;
use p4runtime_proto::config::p4_new_type_spec::Representation;
use p4runtime_proto::config::p4_new_type_translation::SdnType;

use crate::annotations;

/// Control-plane representation of values of a `type` with `@p4runtime_translation`.
pub(crate) enum TranslatedType {
    String,
    Bits(i32),
}

pub(crate) struct Types<'a> {
    program: &'a Program,
    map: &'a SourceMap,
    pub(crate) info: proto::P4TypeInfo,
    structs: HashSet<StructId>,
    enums: HashSet<EnumId>,
    new_types: HashSet<NewTypeId>,
    depth: u32,
}

/// Maximum depth to which types may contain each other.
const MAX_DEPTH: u32 = 100;

fn named(name: &str) -> proto::P4NamedType {
    proto::P4NamedType { name: name.to_owned() }
}

fn bitstring(spec: Bitstring) -> proto::P4BitstringLikeTypeSpec {
    proto::P4BitstringLikeTypeSpec { type_spec: Some(spec), ..Default::default() }
}

impl<'a> Types<'a> {
    pub(crate) fn new(program: &'a Program, map: &'a SourceMap) -> Self {
        Types {
            program,
            map,
            info: proto::P4TypeInfo::default(),
            structs: HashSet::new(),
            enums: HashSet::new(),
            new_types: HashSet::new(),
            depth: 0,
        }
    }

    /// Returns the name by which a field or parameter refers to its type. Only `type`s have one there, and enums whose
    /// values have no width.
    pub(crate) fn name(&self, ty: &Type) -> Option<proto::P4NamedType> {
        match ty {
            Type::New(id) => Some(named(&self.program.new_types[*id].name)),
            Type::Enum(id) if self.program.enums[*id].underlying.is_none() => Some(named(&self.enum_name(*id))),
            _ => None,
        }
    }

    /// Returns the width in bits of values as the control plane writes them; 0 for strings and for types without a
    /// width.
    pub(crate) fn width(&self, ty: &Type) -> i32 {
        match ty {
            Type::Bit(width) | Type::Int(width) => i32::try_from(*width).unwrap_or(i32::MAX),
            Type::Bool => 1,
            Type::New(id) => {
                let decl = &self.program.new_types[*id];
                match translation(decl) {
                    Some((_, TranslatedType::Bits(width))) => width,
                    Some((_, TranslatedType::String)) => 0,
                    // The translation of a `type` further below does not apply here.
                    None => self.width(&crate::eval::below(self.program, &decl.underlying)),
                }
            }
            Type::Enum(id) => self.program.enums[*id].underlying.as_ref().map_or(0, |ty| self.width(ty)),
            _ => 0,
        }
    }

    fn struct_name(&self, id: StructId) -> String {
        let decl = &self.program.structs[id];
        annotations::string(&decl.annotations, "name").map_or_else(|| decl.name.to_string(), trimmed)
    }

    fn enum_name(&self, id: EnumId) -> String {
        let decl = &self.program.enums[id];
        annotations::string(&decl.annotations, "name").map_or_else(|| decl.name.to_string(), trimmed)
    }

    /// Describes a type and records that it is used. Returns `None`, with a diagnostic, for types that the control
    /// plane cannot see.
    pub(crate) fn spec(
        &mut self,
        ty: &Type,
        span: diagnostics::Span,
        diagnostics: &mut Diagnostics,
    ) -> Option<proto::P4DataTypeSpec> {
        if self.depth > MAX_DEPTH {
            diagnostics.push(
                Diagnostic::error("too-deep", span, "types are nested too deeply here")
                    .help(format!("the maximum is {MAX_DEPTH} levels")),
            );
            return None;
        }
        self.depth += 1;
        let spec = self.spec_inside(ty, span, diagnostics);
        self.depth -= 1;
        spec
    }

    fn spec_inside(
        &mut self,
        ty: &Type,
        span: diagnostics::Span,
        diagnostics: &mut Diagnostics,
    ) -> Option<proto::P4DataTypeSpec> {
        let spec = match ty {
            Type::Bit(_) | Type::Int(_) | Type::Varbit(_) => TypeSpec::Bitstring(self.bits(ty)?),
            Type::Bool => TypeSpec::Bool(proto::P4BoolType {}),
            Type::Error => {
                let members = self.program.errors.iter().map(ToString::to_string).collect();
                self.info.error = Some(proto::P4ErrorTypeSpec { members });
                TypeSpec::Error(proto::P4ErrorType {})
            }
            Type::Enum(id) => {
                self.describe_enum(*id, diagnostics);
                let name = named(&self.enum_name(*id));
                match self.program.enums[*id].underlying {
                    Some(_) => TypeSpec::SerializableEnum(name),
                    None => TypeSpec::Enum(name),
                }
            }
            Type::New(id) => {
                self.describe_new_type(*id, diagnostics);
                TypeSpec::NewType(named(&self.program.new_types[*id].name))
            }
            Type::Struct(id) => {
                self.describe_struct(*id, diagnostics);
                let name = named(&self.struct_name(*id));
                match self.program.structs[*id].kind {
                    StructKind::Struct => TypeSpec::Struct(name),
                    StructKind::Header => TypeSpec::Header(name),
                    StructKind::Union => TypeSpec::HeaderUnion(name),
                }
            }
            Type::Tuple(parts) => {
                let members = parts.iter().map(|part| self.spec(part, span, diagnostics)).collect::<Option<_>>()?;
                TypeSpec::Tuple(proto::P4TupleTypeSpec { members })
            }
            Type::Stack(element, size) => {
                let Type::Struct(id) = &**element else { return None };
                self.describe_struct(*id, diagnostics);
                let name = Some(named(&self.struct_name(*id)));
                let size = i32::try_from(*size).unwrap_or(i32::MAX);
                match self.program.structs[*id].kind {
                    StructKind::Union => {
                        TypeSpec::HeaderUnionStack(proto::P4HeaderUnionStackTypeSpec { header_union: name, size })
                    }
                    _ => TypeSpec::HeaderStack(proto::P4HeaderStackTypeSpec { header: name, size }),
                }
            }
            _ => {
                diagnostics.push(Diagnostic::error(
                    "control-plane-type",
                    span,
                    "P4Info cannot describe values of this type",
                ));
                return None;
            }
        };
        Some(proto::P4DataTypeSpec { type_spec: Some(spec) })
    }

    fn bits(&self, ty: &Type) -> Option<proto::P4BitstringLikeTypeSpec> {
        let narrow = |width: u32| i32::try_from(width).unwrap_or(i32::MAX);
        Some(bitstring(match ty {
            Type::Bit(width) => Bitstring::Bit(proto::P4BitTypeSpec { bitwidth: narrow(*width) }),
            Type::Int(width) => Bitstring::Int(proto::P4IntTypeSpec { bitwidth: narrow(*width) }),
            Type::Varbit(width) => Bitstring::Varbit(proto::P4VarbitTypeSpec { max_bitwidth: narrow(*width) }),
            Type::Bool => Bitstring::Bit(proto::P4BitTypeSpec { bitwidth: 1 }),
            Type::New(_) | Type::Enum(_) => return self.bits(&crate::eval::below(self.program, ty)),
            _ => return None,
        }))
    }

    fn describe_enum(&mut self, id: EnumId, diagnostics: &mut Diagnostics) {
        if !self.enums.insert(id) {
            return;
        }
        let decl = &self.program.enums[id];
        let name = self.enum_name(id);
        let member_name = |member: &p4::typed::EnumMember| {
            annotations::string(&member.annotations, "name").map_or_else(|| member.name.to_string(), trimmed)
        };
        match &decl.underlying {
            None => {
                let members = decl
                    .members
                    .iter()
                    .map(|member| proto::p4_enum_type_spec::Member { name: member_name(member), ..Default::default() });
                let spec = proto::P4EnumTypeSpec { members: members.collect(), ..Default::default() };
                self.info.enums.insert(name, spec);
            }
            Some(underlying) => {
                if matches!(underlying, Type::Int(_)) && decl.members.iter().any(|member| member.value.sign_bit()) {
                    diagnostics.push(Diagnostic::error(
                        "control-plane-type",
                        decl.span,
                        "P4Info cannot describe an enum with negative values",
                    ));
                    return;
                }
                let members = decl.members.iter().map(|member| proto::p4_serializable_enum_type_spec::Member {
                    name: member_name(member),
                    value: member.value.to_be_bytes(),
                    ..Default::default()
                });
                let underlying = proto::P4BitTypeSpec { bitwidth: self.width(underlying) };
                let spec = proto::P4SerializableEnumTypeSpec {
                    underlying_type: Some(underlying),
                    members: members.collect(),
                    ..Default::default()
                };
                self.info.serializable_enums.insert(name, spec);
            }
        }
    }

    fn describe_new_type(&mut self, id: NewTypeId, diagnostics: &mut Diagnostics) {
        if !self.new_types.insert(id) {
            return;
        }
        let decl = &self.program.new_types[id];
        let shown = annotations::convert(&decl.annotations, &["p4runtime_translation"], self.map, diagnostics);
        // The control plane writes the type at the end of a chain of `type`s.
        let mut below = &decl.underlying;
        while let Type::New(id) = below {
            below = &self.program.new_types[*id].underlying;
        }
        let representation = match translation(decl) {
            Some((uri, translated)) => {
                if !matches!(below, Type::Bit(_)) {
                    diagnostics.push(
                        Diagnostic::error(
                            "translation",
                            decl.span,
                            "only a `type` of bit<w> can have `@p4runtime_translation`",
                        )
                        .label("the underlying type is not bit<w>"),
                    );
                }
                let sdn_type = match translated {
                    TranslatedType::String => SdnType::SdnString(Default::default()),
                    TranslatedType::Bits(width) => SdnType::SdnBitwidth(width),
                };
                Some(Representation::TranslatedType(proto::P4NewTypeTranslation { uri, sdn_type: Some(sdn_type) }))
            }
            None => {
                if let Some(annotation) = annotations::find(&decl.annotations, "p4runtime_translation") {
                    diagnostics.push(
                        Diagnostic::error(
                            "translation",
                            annotation.span,
                            "`@p4runtime_translation` takes a string and a type",
                        )
                        .help("write `@p4runtime_translation(\"uri\", bit<32>)` or `(\"uri\", string)`"),
                    );
                }
                self.spec(&below.clone(), decl.span, diagnostics).map(Representation::OriginalType)
            }
        };
        let spec = proto::P4NewTypeSpec {
            representation,
            annotations: shown.annotations,
            structured_annotations: shown.structured,
            ..Default::default()
        };
        self.info.new_types.insert(decl.name.to_string(), spec);
    }

    fn describe_struct(&mut self, id: StructId, diagnostics: &mut Diagnostics) {
        if !self.structs.insert(id) {
            return;
        }
        let program = self.program;
        let decl = &program.structs[id];
        let name = self.struct_name(id);
        match decl.kind {
            StructKind::Struct => {
                let mut members = Vec::new();
                for field in &decl.fields {
                    let type_spec = self.spec(&field.ty, field.span, diagnostics);
                    members.push(proto::p4_struct_type_spec::Member { name: field_name(field), type_spec });
                }
                let spec = proto::P4StructTypeSpec { members, ..Default::default() };
                self.info.structs.insert(name, spec);
            }
            StructKind::Header => {
                let mut members = Vec::new();
                for field in flat_fields(program, decl) {
                    let type_spec = self.bits(field.ty);
                    members.push(proto::p4_header_type_spec::Member { name: field.name, type_spec });
                }
                let spec = proto::P4HeaderTypeSpec { members, ..Default::default() };
                self.info.headers.insert(name, spec);
            }
            StructKind::Union => {
                let mut members = Vec::new();
                for field in &decl.fields {
                    let Type::Struct(header) = &field.ty else { continue };
                    self.describe_struct(*header, diagnostics);
                    let header = Some(named(&self.struct_name(*header)));
                    members.push(proto::p4_header_union_type_spec::Member { name: field_name(field), header });
                }
                let spec = proto::P4HeaderUnionTypeSpec { members, ..Default::default() };
                self.info.header_unions.insert(name, spec);
            }
        }
    }
}

/// Returns the arguments of `@p4runtime_translation(uri, type)`, if it is well formed.
pub(crate) fn translation(decl: &NewTypeDecl) -> Option<(String, TranslatedType)> {
    let annotation = annotations::find(&decl.annotations, "p4runtime_translation")?;
    let AnnotationBody::Unstructured(_, tokens) = &annotation.body else { return None };
    let kinds: Vec<_> = tokens.iter().map(|token| &token.kind).collect();
    let (uri, rest) = match &kinds[..] {
        [TokenKind::String(uri), TokenKind::Punct(","), rest @ ..] => (uri.to_string(), rest),
        _ => return None,
    };
    let width = |literal: &p4::ast::IntLiteral| i32::try_from(&literal.value).ok().filter(|width| *width > 0);
    let translated = match rest {
        [TokenKind::Ident(word)] if &**word == "string" => TranslatedType::String,
        [TokenKind::Int(literal)] => TranslatedType::Bits(width(literal)?),
        [TokenKind::Ident(word), TokenKind::Punct("<"), TokenKind::Int(literal), TokenKind::Punct(">")]
            if &**word == "bit" =>
        {
            TranslatedType::Bits(width(literal)?)
        }
        _ => return None,
    };
    Some((uri, translated))
}

/// Returns the control-plane name of a field.
pub(crate) fn field_name(field: &FieldDecl) -> String {
    annotations::string(&field.annotations, "name").map_or_else(|| field.name.to_string(), trimmed)
}

fn trimmed(name: String) -> String {
    name.strip_prefix('.').map_or(name.clone(), str::to_owned)
}

/// A field of a header. Fields of a struct in a header belong to the header and have a dotted name.
pub(crate) struct FlatField<'a> {
    pub(crate) name: String,
    pub(crate) ty: &'a Type,
    pub(crate) annotations: p4::typed::Annotations,
    pub(crate) span: diagnostics::Span,
}

/// Returns the fields of a header with structs flattened.
pub(crate) fn flat_fields<'a>(program: &'a Program, decl: &'a StructDecl) -> Vec<FlatField<'a>> {
    if !decl.fields.iter().any(|field| matches!(field.ty, Type::Struct(_))) {
        let flat = decl.fields.iter().map(|field| FlatField {
            name: field_name(field),
            ty: &field.ty,
            annotations: field.annotations.clone(),
            span: field.span,
        });
        return flat.collect();
    }
    // Structs being flattened, from the outermost to the innermost.
    let mut open = vec![OpenStruct { decl, next: 0, prefix: String::new(), annotations: Vec::new() }];
    let mut out = Vec::new();
    while let Some(top) = open.last_mut() {
        let Some(field) = top.decl.fields.get(top.next) else {
            open.pop();
            continue;
        };
        top.next += 1;
        let name = format!("{}{}", top.prefix, field.name);
        // Annotations of inner fields precede those of the enclosing ones.
        let mut annotations = field.annotations.to_vec();
        let own = annotations.len();
        for outer in &top.annotations {
            if !annotations[..own].iter().any(|inner| inner.name == outer.name) {
                annotations.push(outer.clone());
            }
        }
        match &field.ty {
            Type::Struct(id) => {
                let decl = &program.structs[*id];
                open.push(OpenStruct { decl, next: 0, prefix: name + ".", annotations });
            }
            ty => out.push(FlatField { name, ty, annotations: annotations.into(), span: field.span }),
        }
    }
    out
}

/// A struct whose fields are being flattened.
struct OpenStruct<'a> {
    decl: &'a StructDecl,
    /// Index of the next field.
    next: usize,
    /// Path to it, with a trailing dot.
    prefix: String,
    /// Annotations of the enclosing fields.
    annotations: Vec<p4::typed::Annotation>,
}
