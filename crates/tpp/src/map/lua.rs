//! Writes a Wireshark dissector in Lua: the names of the map, and a fixed part that uses them.

use std::fmt::Write;

use wire::tpp::Operation;

use super::{MemoryMap, Namespace, ROWS, STRIDE};

/// Returns a Wireshark dissector that knows the addresses of a map. `tshark -X lua_script:tpp.lua -r FILE` uses it.
pub fn dissector(map: &MemoryMap) -> String {
    let mut text = "-- Dissects tiny packet programs. Generated from the map of a switch's memory.\n\n".to_owned();
    text += "local operations = {\n";
    for operation in Operation::ALL {
        let _ = writeln!(text, "    [{}] = \"{}\",", *operation as u8, operation.name());
    }
    let _ = write!(text, "}}\nlocal stride = {STRIDE}\nlocal names = {{\n");
    for row in ROWS.iter().filter(|row| !row.namespace.has_stage()) {
        for element in 0..row.count {
            let suffix = if row.count > 1 { format!("_{element}") } else { String::new() };
            let address = row.address() + 2 * element;
            let _ = writeln!(text, "    [{address:#06x}] = \"{}:{}{suffix}\",", row.namespace.name(), row.name);
        }
    }
    for (register, base) in map.registers() {
        for element in 0..register.size.min(if base.is_some() { u32::MAX } else { 0 }) {
            let address = u32::from(base.unwrap_or_default()) + 2 * element;
            let _ =
                writeln!(text, "    [{address:#06x}] = {},", quoted(&format!("Register:{}[{element}]", register.name)));
        }
    }
    for (field, address) in map.fields() {
        let _ = writeln!(text, "    [{address:#06x}] = {},", quoted(&format!("Field:{}", field.name)));
    }
    text += "}\nlocal staged = {\n";
    for namespace in Namespace::ALL.iter().filter(|namespace| namespace.has_stage()) {
        let _ = writeln!(text, "    [{:#06x}] = {{ name = \"{}\", rows = {{", namespace.base(), namespace.name());
        for row in ROWS.iter().filter(|row| row.namespace == *namespace) {
            let _ = writeln!(text, "        [{:#04x}] = \"{}\",", row.offset, row.name);
        }
        text += "    } },\n";
    }
    text + "}\n" + include_str!("dissector.lua")
}

/// Returns a string literal of Lua. Names of P4 programs may contain any character.
fn quoted(text: &str) -> String {
    let mut literal = "\"".to_owned();
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'"' && byte != b'\\' => literal.push(byte.into()),
            other => _ = write!(literal, "\\{other:03}"),
        }
    }
    literal + "\""
}
