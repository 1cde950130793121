//! Lists the map of switch memory.

use ::tpp::map::{Access, MAX_STAGES, MemoryMap, Namespace, ROWS, StatRow, dissector, int_table};
use diagnostics::names;
use serde_json::{Value, json};

use super::args::MapArgs;
use super::mapped_program;
use crate::output::{Failure, Output, aligned};

/// Prints the map.
pub fn run(args: &MapArgs, output: &Output) -> Result<(), Failure> {
    let (map, tables) = mapped_program(&args.program, output)?;
    let namespaces = args.namespaces.iter().map(|name| namespace(name)).collect::<Result<Vec<_>, _>>()?;
    let is_wanted = |namespace| namespaces.is_empty() || namespaces.contains(&namespace);
    let lists_tables = is_wanted(Namespace::Stage) || is_wanted(Namespace::FlowEntry);
    let rows = || ROWS.iter().filter(|row| is_wanted(row.namespace));
    if args.lua {
        output.print(&dissector(&map))
    } else if args.int {
        output.print(&int_table())
    } else if args.markdown {
        output.print(&map.markdown(&namespaces))
    } else if args.json {
        let json = json!({
            "tables": if lists_tables { tables } else { Vec::new() },
            "rows": rows().map(row_json).collect::<Vec<_>>(),
            "registers": if is_wanted(Namespace::Register) { registers(&map) } else { Vec::new() },
            "register_map": map.register_map(),
            "fields": if is_wanted(Namespace::Field) { fields(&map) } else { Vec::new() },
        });
        output.print(&format!("{json:#}\n"))
    } else {
        let mut lines: Vec<_> = rows().map(row_line).collect();
        if lists_tables {
            lines.extend(tables.iter().take(MAX_STAGES as usize).enumerate().map(|(stage, name)| {
                let (address, names) =
                    (format!("{:#06x}", 0x1000 + 64 * stage), format!("Stage{stage}, FlowEntry{stage}"));
                [address, names, String::new(), String::new(), format!("table {name}")]
            }));
        }
        if is_wanted(Namespace::Register) {
            if !map.registers().is_empty() {
                let value = format!("`Switch:RegisterMap` is {:#010x} with these registers", map.register_map());
                lines.push([String::new(), "Register".to_owned(), String::new(), String::new(), value]);
            }
            lines.extend(map.registers().iter().map(|(register, base)| {
                let address = base.map_or("indirect".to_owned(), |base| format!("{base:#06x}"));
                let elements = format!("{} elements", register.size);
                [address, format!("Register:{}[i]", register.name), register.width.to_string(), String::new(), elements]
            }));
        }
        if is_wanted(Namespace::Field) {
            lines.extend(map.fields().iter().map(|(field, address)| {
                let (address, name) = (format!("{address:#06x}"), format!("Field:{}", field.name));
                [address, name, field.width.to_string(), String::new(), String::new()]
            }));
        }
        output.print(&aligned(&lines, &[2]))
    }
}

fn namespace(name: &str) -> Result<Namespace, Failure> {
    let found = Namespace::ALL.iter().find(|namespace| namespace.name().eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| {
        let all = || Namespace::ALL.iter().map(|namespace| namespace.name());
        let help = match names::nearest(name, all()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the namespaces are {}", names::listed(all())),
        };
        Failure::Usage(format!("there is no namespace `{name}`; {help}"))
    })
}

/// Returns the name of a row, with `i` for the number of a table and `k` for that of a word.
fn row_name(row: &StatRow) -> String {
    let stage = if row.namespace.has_stage() { "i" } else { "" };
    let element = if row.count > 1 { "_k" } else { "" };
    format!("{}{stage}:{}{element}", row.namespace.name(), row.name)
}

fn row_line(row: &StatRow) -> [String; 5] {
    let unit = if row.access == Access::ReadWrite { "writable".to_owned() } else { row.unit.to_string() };
    [format!("{:#06x}", row.address()), row_name(row), row.width.to_string(), unit, row.meaning.to_owned()]
}

fn row_json(row: &StatRow) -> Value {
    json!({
        "address": row.address(),
        "name": row_name(row),
        "aliases": row.aliases.iter().flatten().collect::<Vec<_>>(),
        "count": row.count,
        "width": row.width,
        "unit": row.unit.to_string(),
        "writable": row.access == Access::ReadWrite,
        "registry": row.registry,
        "int": row.int.map(|(bit, field)| json!({ "bit": bit, "field": field })),
        "meaning": row.meaning,
    })
}

fn registers(map: &MemoryMap) -> Vec<Value> {
    let object = |(register, base): &(::tpp::map::RegisterShape, Option<u16>)| json!({ "name": register.name, "address": base, "width": register.width, "size": register.size });
    map.registers().iter().map(object).collect()
}

fn fields(map: &MemoryMap) -> Vec<Value> {
    let object = |(field, address): &(::tpp::map::FieldShape, u16)| json!({ "name": field.name, "address": address, "width": field.width });
    map.fields().iter().map(object).collect()
}
