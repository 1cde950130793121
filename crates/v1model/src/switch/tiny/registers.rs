//! Finds the P4 program's registers in the memory of tiny packet programs.

use cranelift_entity::EntityRef;
use ir::RegisterId;
use tpp::AccessRights;
use tpp::map::{DIRECT_REGISTERS, FieldShape, MemoryMap, RegisterShape};
use wire::tpp::Packet;

/// Returns the map of tiny packet programs for switches with this P4 program: its registers and its header fields.
pub fn memory_map(program: &ir::Program) -> MemoryMap {
    let headers = program.headers.values().filter(|header| !header.local);
    let fields = headers.flat_map(|header| {
        let fields = program.header_types[header.ty].fields.iter();
        fields.map(|field| FieldShape { name: format!("{}.{}", header.name, field.name), width: field.width })
    });
    MemoryMap::with_program(shapes(program), fields)
}

fn shapes(program: &ir::Program) -> impl Iterator<Item = RegisterShape> {
    program.registers.values().map(|register| RegisterShape {
        name: register.name.clone(),
        width: register.width,
        size: u32::try_from(register.size).unwrap_or(u32::MAX),
    })
}

/// The addresses of a program's registers.
#[derive(Debug)]
pub(super) struct RegisterPlaces {
    map: MemoryMap,
    /// `Switch:RegisterMap`.
    pub number: u32,
}

impl RegisterPlaces {
    pub fn new(program: &ir::Program) -> RegisterPlaces {
        let map = MemoryMap::with_program(shapes(program), []);
        RegisterPlaces { number: map.register_map(), map }
    }

    /// Returns the register and the element at an address, if it has at most `bits` bits.
    pub fn find(&self, address: u32, bits: u32) -> Option<(RegisterId, u64)> {
        let (number, element) = self.map.register_at(address)?;
        let is_narrow = self.map.registers()[number].0.width <= bits;
        is_narrow.then(|| (RegisterId::new(number), element.into()))
    }
}

/// Whether a program with these rights may write registers.
pub(super) fn writes_registers(program: &[u8], rights: &AccessRights) -> bool {
    let writes = |instruction: wire::tpp::Instruction| {
        let address = instruction.address;
        instruction.operation.is_write()
            && DIRECT_REGISTERS.contains(&address)
            && rights.writes.contains(address.into())
    };
    rights.writes_enabled && Packet::new_checked(program).is_ok_and(|packet| packet.instructions().any(writes))
}
