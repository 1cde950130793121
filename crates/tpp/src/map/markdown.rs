//! Writes the reference of the map.

use std::fmt::Write;

use super::{Access, INT_FIELDS, MemoryMap, Namespace, ROWS, StatRow, int_sources};

impl MemoryMap {
    /// Returns the rows of some namespaces as Markdown tables, one for each, and the registers and fields of the
    /// program; all namespaces if none is given.
    pub fn markdown(&self, namespaces: &[Namespace]) -> String {
        let mut text = String::new();
        for namespace in Namespace::ALL {
            if !namespaces.is_empty() && !namespaces.contains(namespace) {
                continue;
            }
            let rows: Vec<&StatRow> = ROWS.iter().filter(|row| row.namespace == *namespace).collect();
            if !rows.is_empty() {
                let _ = write!(text, "### {}\n\n{}\n", namespace.name(), about(*namespace));
                text += "| address | name | bits | unit | access | registry name | meaning |\n|---|---|---|---|---|---|---|\n";
                rows.iter().for_each(|row| text += &line(row));
                text.push('\n');
            }
        }
        text + &self.program(namespaces)
    }

    fn program(&self, namespaces: &[Namespace]) -> String {
        let wanted = |namespace| namespaces.is_empty() || namespaces.contains(&namespace);
        let mut text = String::new();
        if !self.registers.is_empty() && wanted(Namespace::Register) {
            text += "### Register\n\n| address | name | bits | elements |\n|---|---|---|---|\n";
            for (register, base) in &self.registers {
                let address = base.map_or("indirect".to_owned(), |base| format!("`{base:#06x}`"));
                let name = format!("`Register:{}[i]`", register.name);
                let _ = writeln!(text, "| {address} | {name} | {} | {} |", register.width, register.size);
            }
            text.push('\n');
        }
        if !self.fields.is_empty() && wanted(Namespace::Field) {
            text += "### Field\n\n| address | name | bits |\n|---|---|---|\n";
            for (field, address) in &self.fields {
                let _ = writeln!(text, "| `{address:#06x}` | `Field:{}` | {} |", field.name, field.width);
            }
            text.push('\n');
        }
        text
    }
}

/// Returns a sentence about a namespace.
fn about(namespace: Namespace) -> &'static str {
    match namespace {
        Namespace::Switch => "Of the whole switch.\n",
        Namespace::Stage => "Of table `i`: `Stage0:Version`. Its addresses are 64 × `i` higher.\n",
        Namespace::FlowEntry => {
            "Of the entry that this packet matched in table `i`: `FlowEntry0:ID`. Its addresses are 64 × `i` higher.\n"
        }
        Namespace::Link => "Of the port that this packet leaves by; of port `i` as `Link$i:…`, by an indirect load.\n",
        Namespace::InputLink => "Of the port that this packet arrived on.\n",
        Namespace::PacketMetadata => "Of this packet.\n",
        Namespace::Queue => {
            "Of the queue that this packet waited in; of queue `j` of port `i` as `Queue$i$j:…`, by an indirect load.\n"
        }
        Namespace::Register | Namespace::Field | Namespace::Vendor => "",
    }
}

fn line(row: &StatRow) -> String {
    let stage = if row.namespace.has_stage() { "i" } else { "" };
    let element = if row.count > 1 { "_k" } else { "" };
    let mut names: Vec<_> =
        row.names().map(|name| format!("`{}{stage}:{name}{element}`", row.namespace.name())).collect();
    let name = names.remove(0);
    let also = if names.is_empty() { String::new() } else { format!(", also {}", names.join(", ")) };
    let access = match row.access {
        Access::Read => "read",
        Access::ReadWrite => "read, write",
    };
    let registry = if row.registry.is_empty() { String::new() } else { format!("`{}`", row.registry) };
    let meaning = if row.count > 1 {
        format!("{}; `k` from 0 to {}", row.meaning, row.count - 1)
    } else {
        row.meaning.to_owned()
    };
    let address = row.address();
    format!("| `{address:#06x}` | {name}{also} | {} | {} | {access} | {registry} | {meaning} |\n", row.width, row.unit)
}

/// Returns the fields of INT 2.1 and their rows as a Markdown table.
pub fn int_table() -> String {
    let mut text = "| bit | field | bits | name |\n|---|---|---|---|\n".to_owned();
    for source in int_sources(u16::MAX) {
        let name = source.row.map_or("all ones".to_owned(), |row| format!("`{}:{}`", row.namespace.name(), row.name));
        let _ = writeln!(text, "| {} | {} | {} | {name} |", source.field.bit, source.field.name, source.field.width);
    }
    debug_assert_eq!(text.lines().count(), INT_FIELDS.len() + 2);
    text
}
