//! Writes tables to files: CSV, and Parquet where the build has it.

use std::fmt::Write;
use std::path::Path;

use anyhow::Context;

use super::tables::{Column, ResultTable};
use crate::output::Failure;

/// Writes each table to a file that bears the table's name.
pub fn write(folder: &Path, tables: &[ResultTable]) -> Result<(), Failure> {
    for table in tables {
        let path = folder.join(format!("{}.csv", table.name));
        std::fs::write(&path, csv(table)).with_context(|| format!("cannot write {}", path.display()))?;
        #[cfg(feature = "parquet")]
        {
            let path = folder.join(format!("{}.parquet", table.name));
            super::parquet::write(&path, table).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

/// Formats a table as CSV (RFC 4180), with a header line.
fn csv(table: &ResultTable) -> String {
    let names: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
    let mut text = names.join(",") + "\n";
    for row in 0..table.rows() {
        for (at, (_, column)) in table.columns.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            match column {
                Column::Text(values) => text.push_str(&field(&values[row])),
                Column::Whole(values) => _ = write!(text, "{}", values[row]),
                Column::Number(values) => _ = write!(text, "{}", values[row]),
            }
        }
        text.push('\n');
    }
    text
}

/// Formats a text as a CSV field.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
