//! Table 3.2: memory of the network functions with 10 million entries.

use anyhow::{Context, Result};

use super::super::Settings;
use super::super::app_lab::LabCommand;
use super::super::figure::{Cell, Chart, FigureClock, PaperFigure};
use super::function::{NetworkFunction, PROGRAM};

const ENTRIES: usize = 10_000_000;

/// Windows in cells.
const WINDOWS: [u32; 2] = [8, 16];

/// Megabytes of the paper.
const PAPER: [u32; 4] = [525, 353, 525, 343];

/// The line of `triplane check` about a table, in numbers.
#[derive(Debug, PartialEq)]
struct TableSizes {
    cells: u64,
    cell_bytes: u64,
    key_bytes: u64,
    record_bytes: u64,
    read_bytes: u64,
    copy_bytes: u64,
}

/// Reads the numbers in the line about a table.
fn sizes(text: &str) -> Option<TableSizes> {
    let line = text.lines().find_map(|line| line.strip_prefix("elastic table "))?.replace(',', "");
    let words = line.split(|letter: char| !letter.is_ascii_digit()).filter(|word| !word.is_empty());
    let numbers: Vec<u64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [_, cells, cell_bytes, key_bytes, record_bytes, _, read_bytes, copy_bytes, _] = numbers[..] else {
        return None;
    };
    Some(TableSizes { cells, cell_bytes, key_bytes, record_bytes, read_bytes, copy_bytes })
}

/// Table 3.2.
pub fn memory(command: &LabCommand, _: &Settings) -> Result<PaperFigure> {
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    command.write("sizes/remote-tables.p4", PROGRAM)?;
    for (function, paper) in NetworkFunction::ALL.into_iter().zip(PAPER) {
        for window in WINDOWS {
            let settings = format!("[window = \"{window}\"]");
            let source = function.source("remote-tables.p4", ENTRIES, Some(&settings));
            command.write("sizes/function.p4", &source)?;
            let text = command.output("sizes", &["check", "function.p4"])?;
            let sizes = sizes(&text).with_context(|| format!("no sizes in `{text}`"))?;
            let mb = sizes.copy_bytes as f64 / 1e6;
            rows.push(vec![
                function.title().into(),
                Cell::whole(paper),
                Cell::whole(window),
                Cell::whole(sizes.key_bytes as i64),
                Cell::whole(sizes.record_bytes as i64),
                Cell::whole(sizes.cell_bytes as i64),
                Cell::Number(sizes.cells as f64 / 1e6, 1),
                Cell::whole(sizes.read_bytes as i64),
                Cell::Number(mb, 0),
                Cell::Number((sizes.key_bytes + sizes.record_bytes) as f64 * ENTRIES as f64 / 1e6, 0),
            ]);
            bars.push((format!("{}, {window} cells", function.title()), mb));
        }
    }
    Ok(PaperFigure {
        name: "t3.2",
        title: "Memory of 10 million entries",
        clock: FigureClock::Computed,
        columns: vec![
            "function",
            "paper, MB",
            "window, cells",
            "key, bytes",
            "record, bytes",
            "cell, bytes",
            "cells, M",
            "READ, bytes",
            "a copy, MB",
            "keys and records alone, MB",
        ],
        rows,
        notes: vec![
            "By `triplane check`, IPv6. The paper counts 55, 37, 55 and 36 bytes an entry (in MiB), without empty cells and \
             checks; its two buckets with a shadow take twice their cells. A cell has a generation and a check of 8 bytes \
             beside key and record."
                .to_owned(),
        ],
        chart: Chart::Bars { y: "a copy of the table, MB", bars },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_table_are_read() {
        let text = "f.p4: no errors\nelastic table FunctionIngress.flows: at most 10,000,000 entries in 14,925,384 cells of 72 \
                    bytes (key 37, record 19); a READ has 8 cells, 576 bytes; a copy takes 1,074,628,152 bytes; the \
                    switch caches 1,024 entries\n";
        let expected = TableSizes {
            cells: 14_925_384,
            cell_bytes: 72,
            key_bytes: 37,
            record_bytes: 19,
            read_bytes: 576,
            copy_bytes: 1_074_628_152,
        };
        assert_eq!(sizes(text), Some(expected));
        assert_eq!(sizes("f.p4: no errors\n"), None);
    }
}
