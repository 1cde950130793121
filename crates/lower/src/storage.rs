//! Storage: allocates slots and header instances for variables of any type.
//!
//! ```text
//! struct headers { ethernet_t eth; vlan_t[2] vlan; }     header hdr.eth, header hdr.vlan[0], header hdr.vlan[1],
//!                                                         stack hdr.vlan with slot hdr.vlan.$next
//! struct meta    { bit<9> port; struct { bool x; } a; }  slot meta.port, slot meta.a.x
//! varbit<40> v                                            header v with one varbit field
//! ```

use ir::{Expr, HeaderId, HeaderRef, LValue, SlotId, SlotKind, StackId};
use p4::ast::StructKind;
use p4::typed::{StructId, Type};

use crate::lowering::Lowering;
use crate::value::Val;

/// Maximum number of slots and headers of a program.
const MAX_STORAGE: usize = 500_000;

/// Storage of a value of any type.
#[derive(Clone, Debug, PartialEq)]
pub enum Store {
    /// A scalar in a slot.
    Slot(SlotId),
    /// A scalar in a header.
    Field(HeaderRef, u32),
    /// A `varbit`: a varbit field, in a header created for it if needed.
    Varbit(HeaderRef, u32),
    /// A header.
    Header(HeaderRef),
    /// A header in a union: all members, and the index of this one.
    Member(Vec<HeaderRef>, usize),
    /// A header union: its members.
    Union(Vec<HeaderRef>),
    /// A stack of headers.
    Stack(StackId),
    /// A stack of header unions, or an array of anything else: its elements and, for a stack, the slot of the next
    /// index.
    Array(Vec<Store>, Option<SlotId>),
    /// A struct or tuple; without parts for a type that has no storage.
    Fields(Vec<Store>),
}

/// Maximum number of elements of an array in a header.
const MAX_ARRAY: u32 = 1 << 16;

/// Lifetime of storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// As long as the packet is in the pipeline.
    Packet,
    /// Within a block, or less: decided after lowering.
    Scoped,
    /// A parameter of an action.
    Argument,
}

/// Resolves `type` declarations to the underlying type.
pub(crate) fn resolve<'t>(program: &'t p4::typed::Program, mut ty: &'t Type) -> &'t Type {
    while let Type::New(id) = ty {
        ty = &program.new_types[*id].underlying;
    }
    ty
}

impl<'a> Lowering<'a> {
    /// Returns the width of a scalar type in bits: 1 for `bool`, 32 for `error` and plain enums. `None` for other
    /// types.
    pub fn scalar_width(&self, ty: &Type) -> Option<u32> {
        match resolve(self.program, ty) {
            Type::Bool => Some(1),
            Type::Bit(width) | Type::Int(width) => Some(*width),
            Type::Error => Some(32),
            Type::Enum(id) => match &self.program.enums[*id].underlying {
                Some(underlying) => self.scalar_width(underlying),
                None => Some(32),
            },
            _ => None,
        }
    }

    /// Whether arithmetic on the type is signed.
    pub fn is_signed(&self, ty: &Type) -> bool {
        match resolve(self.program, ty) {
            Type::Int(_) => true,
            Type::Enum(id) => self.program.enums[*id].underlying.as_ref().is_some_and(|ty| self.is_signed(ty)),
            _ => false,
        }
    }

    /// Returns the declaration and kind of a struct type.
    pub(crate) fn struct_kind(&self, ty: &Type) -> Option<(StructId, StructKind)> {
        match resolve(self.program, ty) {
            Type::Struct(id) => Some((*id, self.program.structs[*id].kind)),
            _ => None,
        }
    }

    /// Returns the names and types of a struct's, header's or tuple's fields.
    pub fn fields_of(&self, ty: &Type) -> Vec<(String, Type)> {
        match resolve(self.program, ty) {
            Type::Struct(id) => {
                self.program.structs[*id].fields.iter().map(|f| (f.name.to_string(), f.ty.clone())).collect()
            }
            Type::Tuple(types) => types.iter().enumerate().map(|(i, ty)| (format!("f{i}"), ty.clone())).collect(),
            _ => Vec::new(),
        }
    }

    /// Creates a temporary slot.
    pub fn temp(&mut self, width: u32) -> SlotId {
        self.slot("$tmp", width, false, Lifetime::Scoped)
    }

    /// Creates a slot of the architecture or the compiler that lives as long as the packet.
    pub fn packet_slot(&mut self, name: &str, width: u32) -> SlotId {
        self.slot(name, width, false, Lifetime::Packet)
    }

    pub(crate) fn slot(&mut self, name: &str, width: u32, signed: bool, lifetime: Lifetime) -> SlotId {
        let name = self.unique(name);
        let kind = match lifetime {
            Lifetime::Packet => SlotKind::Metadata,
            Lifetime::Scoped => SlotKind::Local,
            Lifetime::Argument => SlotKind::Argument,
        };
        let slot = self.ir.slots.push(ir::Slot { name, width, kind, signed });
        if lifetime == Lifetime::Scoped {
            self.scoped.slots.insert(slot);
        }
        self.storage_cells += 1;
        slot
    }

    fn header(&mut self, name: &str, ty: ir::HeaderTypeId, lifetime: Lifetime) -> HeaderId {
        let name = self.unique(name);
        let header = self.ir.headers.push(ir::Header { name, ty, local: lifetime != Lifetime::Packet });
        if lifetime != Lifetime::Packet {
            self.scoped.headers.insert(header);
        }
        self.storage_cells += 1;
        header
    }

    /// Creates storage for a variable of this type.
    pub(crate) fn store(&mut self, name: &str, ty: &Type, lifetime: Lifetime) -> Store {
        if self.failed || self.storage_cells > MAX_STORAGE {
            if !self.failed {
                self.too_large("the program has too much storage");
            }
            return Store::Fields(Vec::new());
        }
        if let Some(width) = self.scalar_width(ty) {
            let signed = self.is_signed(ty);
            return Store::Slot(self.slot(name, width, signed, lifetime));
        }
        match resolve(self.program, ty) {
            Type::Varbit(max) => {
                let ty = self.varbit_type(*max);
                Store::Varbit(HeaderRef::Header(self.header(name, ty, lifetime)), 0)
            }
            Type::Tuple(types) => {
                let types = types.clone();
                let part = |(i, ty): (usize, &Type)| self.store(&format!("{name}.{i}"), ty, lifetime);
                Store::Fields(types.iter().enumerate().map(part).collect())
            }
            Type::Struct(id) => match self.program.structs[*id].kind {
                StructKind::Struct => {
                    let fields = self.fields_of(ty);
                    let part = |(field, ty): &(String, Type)| self.store(&format!("{name}.{field}"), ty, lifetime);
                    Store::Fields(fields.iter().map(part).collect())
                }
                StructKind::Header => {
                    let ty = self.header_type(*id);
                    Store::Header(HeaderRef::Header(self.header(name, ty, lifetime)))
                }
                StructKind::Union => {
                    let mut members = Vec::new();
                    for (field, ty) in self.fields_of(ty) {
                        match self.store(&format!("{name}.{field}"), &ty, lifetime) {
                            Store::Header(header) => members.push(header),
                            _ => return Store::Fields(Vec::new()),
                        }
                    }
                    Store::Union(members)
                }
            },
            Type::Stack(element, size) => self.stack(name, &element.clone(), *size, lifetime),
            _ => Store::Fields(Vec::new()),
        }
    }

    fn stack(&mut self, name: &str, element: &Type, size: u32, lifetime: Lifetime) -> Store {
        if size as usize > MAX_STORAGE {
            self.too_large("the stack or array is too large");
            return Store::Fields(Vec::new());
        }
        let name = &self.unique(name);
        match self.struct_kind(element) {
            Some((id, StructKind::Header)) => {
                let ty = self.header_type(id);
                let headers: Vec<HeaderId> =
                    (0..size).map(|i| self.header(&format!("{name}[{i}]"), ty, lifetime)).collect();
                let next = self.slot(&format!("{name}.$next"), 32, false, lifetime);
                let Some(first) = headers.first().copied() else { return Store::Fields(Vec::new()) };
                Store::Stack(self.ir.stacks.push(ir::Stack { name: name.to_owned(), first, size, next }))
            }
            kind => {
                let elements = (0..size).map(|i| self.store(&format!("{name}[{i}]"), element, lifetime)).collect();
                let is_stack = kind.is_some_and(|(_, kind)| kind == StructKind::Union);
                let next = is_stack.then(|| self.slot(&format!("{name}.$next"), 32, false, lifetime));
                Store::Array(elements, next)
            }
        }
    }

    /// Returns the layout of a header type; structs in headers are flattened.
    pub(crate) fn header_type(&mut self, id: StructId) -> ir::HeaderTypeId {
        if let Some(ty) = self.header_types.get(&id) {
            return *ty;
        }
        let decl = &self.program.structs[id];
        let mut fields = Vec::new();
        for field in &decl.fields {
            let annotations = self.annotations(&field.annotations);
            self.layout(&field.name, &field.ty, annotations, field.span, &mut fields);
        }
        if fields.iter().filter(|field| field.varbit).count() > 1 {
            self.unsupported(decl.span, "a header with more than one varbit field is not supported");
            let mut seen = false;
            fields.retain(|field| !field.varbit || !std::mem::replace(&mut seen, true));
        }
        let annotations = self.annotations(&decl.annotations);
        let ty = self.ir.header_types.push(ir::HeaderType { name: decl.name.to_string(), fields, annotations });
        self.header_types.insert(id, ty);
        ty
    }

    fn layout(
        &mut self,
        name: &str,
        ty: &Type,
        annotations: Vec<ir::Annotation>,
        span: diagnostics::Span,
        fields: &mut Vec<ir::HeaderField>,
    ) {
        if let Some(width) = self.scalar_width(ty) {
            let signed = self.is_signed(ty);
            fields.push(ir::HeaderField { name: name.to_owned(), width, varbit: false, signed, annotations });
            return;
        }
        match resolve(self.program, ty) {
            Type::Varbit(max) => {
                fields.push(ir::HeaderField {
                    name: name.to_owned(),
                    width: *max,
                    varbit: true,
                    signed: false,
                    annotations,
                });
            }
            Type::Struct(_) | Type::Tuple(_) => {
                for (field, ty) in self.fields_of(ty) {
                    self.layout(&format!("{name}.{field}"), &ty, Vec::new(), span, fields);
                }
            }
            Type::Stack(element, size) if *size <= MAX_ARRAY => {
                let (element, size) = ((**element).clone(), *size);
                for i in 0..size {
                    self.layout(&format!("{name}[{i}]"), &element, Vec::new(), span, fields);
                }
            }
            _ => self.unsupported(span, "a header field of this type is not supported"),
        }
    }

    fn varbit_type(&mut self, max: u32) -> ir::HeaderTypeId {
        if let Some(ty) = self.varbit_types.get(&max) {
            return *ty;
        }
        let field = ir::HeaderField {
            name: "value".to_owned(),
            width: max,
            varbit: true,
            signed: false,
            annotations: Vec::new(),
        };
        let name = format!("varbit<{max}>");
        let ty = self.ir.header_types.push(ir::HeaderType { name, fields: vec![field], annotations: Vec::new() });
        self.varbit_types.insert(max, ty);
        ty
    }

    /// Returns the number of layout fields that a type takes.
    fn leaf_count(&self, ty: &Type) -> u32 {
        if self.scalar_width(ty).is_some() {
            return 1;
        }
        match resolve(self.program, ty) {
            Type::Varbit(_) => 1,
            Type::Stack(element, size) => self.leaf_count(element).saturating_mul(*size),
            _ => self.fields_of(ty).iter().map(|(_, ty)| self.leaf_count(ty)).sum(),
        }
    }

    /// Returns the storage of field `index` of a header of type `id`.
    pub(crate) fn header_field(&self, header: &HeaderRef, id: StructId, index: usize) -> Store {
        let fields = &self.program.structs[id].fields;
        let before = fields[..index].iter().map(|field| self.leaf_count(&field.ty)).sum();
        self.field_at(header, &fields[index].ty, before)
    }

    /// Returns the storage of every field of a header of type `id`.
    pub(crate) fn header_fields(&self, header: &HeaderRef, id: StructId) -> Vec<Store> {
        let mut at = 0;
        let mut stores = Vec::new();
        for field in &self.program.structs[id].fields {
            stores.push(self.field_at(header, &field.ty, at));
            at += self.leaf_count(&field.ty);
        }
        stores
    }

    fn field_at(&self, header: &HeaderRef, ty: &Type, mut at: u32) -> Store {
        if self.scalar_width(ty).is_some() {
            return Store::Field(header.clone(), at);
        }
        if let Type::Varbit(_) = resolve(self.program, ty) {
            return Store::Varbit(header.clone(), at);
        }
        let mut parts = Vec::new();
        if let Type::Stack(element, size) = resolve(self.program, ty) {
            let step = self.leaf_count(element);
            let part = |i| self.field_at(header, element, at + i * step);
            return Store::Array((0..*size).map(part).collect(), None);
        }
        for (_, ty) in self.fields_of(ty) {
            parts.push(self.field_at(header, &ty, at));
            at += self.leaf_count(&ty);
        }
        Store::Fields(parts)
    }

    /// Returns the IR's type of a header instance.
    pub(crate) fn layout_of(&self, header: &HeaderRef) -> ir::HeaderTypeId {
        match header {
            HeaderRef::Header(header) => self.ir.headers[*header].ty,
            HeaderRef::Element(stack, _) => self.ir.headers[self.ir.stacks[*stack].first].ty,
        }
    }

    /// Returns element `index` of a stack.
    pub(crate) fn element(&self, stack: StackId, index: u32) -> HeaderRef {
        HeaderRef::Header(HeaderId::from_u32(self.ir.stacks[stack].first.as_u32() + index))
    }

    /// Returns element `index` of a stack, which need not be a constant.
    pub(crate) fn element_at(&self, stack: StackId, index: Expr) -> HeaderRef {
        match ir::fold::as_const(&index).and_then(bits::Bits::to_u64) {
            Some(at) if at < u64::from(self.ir.stacks[stack].size) => self.element(stack, at as u32),
            _ => HeaderRef::Element(stack, Box::new(index)),
        }
    }

    /// Returns the storage that blocks share under a name; created on first use.
    pub fn shared(&mut self, name: &str, ty: &Type) -> Store {
        if let Some(store) = self.shared.get(name) {
            return store.clone();
        }
        let store = self.store(name, ty, Lifetime::Packet);
        self.shared.insert(name.to_owned(), store.clone());
        store
    }
}

impl Store {
    /// Returns the stored value, which is read when it is used.
    pub fn read(&self) -> Val {
        match self {
            Store::Slot(slot) => Val::Bits(Expr::Slot(*slot)),
            Store::Field(header, field) => Val::Bits(Expr::Field(header.clone(), *field)),
            Store::Varbit(header, field) => Val::Varbit(header.clone(), *field),
            Store::Header(header) => Val::Header(header.clone()),
            Store::Member(members, index) => Val::Header(members[*index].clone()),
            Store::Union(members) => Val::Union(members.clone()),
            Store::Stack(stack) => Val::Stack(*stack),
            Store::Array(elements, next) => Val::Array(elements.iter().map(Store::read).collect(), *next),
            Store::Fields(parts) => Val::Fields(parts.iter().map(Store::read).collect()),
        }
    }

    /// Returns the l-value of a scalar.
    pub fn as_lvalue(&self) -> Option<LValue> {
        match self {
            Store::Slot(slot) => Some(LValue::Slot(*slot)),
            Store::Field(header, field) => Some(LValue::Field(header.clone(), *field)),
            _ => None,
        }
    }

    /// Returns the header, for a header or a union's member.
    pub fn as_header(&self) -> Option<&HeaderRef> {
        match self {
            Store::Header(header) => Some(header),
            Store::Member(members, index) => Some(&members[*index]),
            _ => None,
        }
    }
}
