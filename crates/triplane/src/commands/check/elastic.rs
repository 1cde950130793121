//! Lists the tables of a program whose entries can lie in the memory of servers, and their sizes there.

use std::fmt::Write;

use elastic_switch::EntryForm;
use ir::Program;
use serde_json::{Value, json};

use crate::output::grouped;

/// Returns one line for each table.
pub fn to_text(program: &Program) -> String {
    let mut text = String::new();
    for form in EntryForm::all(program) {
        let layout = form.layout();
        let (key, record) = (layout.form().key_bytes(), layout.form().record_bytes());
        // Writing to a string cannot fail.
        _ = writeln!(
            text,
            "elastic table {}: at most {} entries in {} cells of {} bytes (key {key}, record {record}); a READ has {} \
             cells, {} bytes; {}a copy takes {} bytes; the switch caches {} entries",
            form.name,
            grouped(form.settings.entries.into()),
            grouped(layout.cells().into()),
            layout.form().cell_bytes(),
            layout.window(),
            layout.read_bytes(),
            reads(&form),
            grouped(layout.copy_bytes(layout.cells())),
            grouped(form.settings.cache.into()),
        );
    }
    text
}

/// Returns the number of READs of a lookup as text, if it is not one.
fn reads(form: &EntryForm) -> String {
    let Some(prefix) = &form.settings.prefix else { return String::new() };
    let most = form.keys().max_reads();
    if prefix.has_all_lengths() {
        return format!("a lookup has one READ for each prefix length in use, at most {most}; ");
    }
    let lengths: Vec<String> = prefix.lengths.iter().map(u32::to_string).collect();
    format!("a lookup has at most {most} READs, of the prefix lengths {}; ", lengths.join(", "))
}

/// Returns the tables as JSON: an empty list for a program without elastic tables.
pub fn to_json(program: &Program) -> Value {
    let table = |form: &EntryForm| {
        let layout = form.layout();
        json!({
            "table": form.name,
            "entries": form.settings.entries,
            "cells": layout.cells(),
            "key_bytes": layout.form().key_bytes(),
            "record_bytes": layout.form().record_bytes(),
            "cell_bytes": layout.form().cell_bytes(),
            "window": layout.window(),
            "read_bytes": layout.read_bytes(),
            "max_reads": form.keys().max_reads(),
            "prefix_lengths": form.settings.prefix.as_ref().map(|prefix| &prefix.lengths),
            "copy_bytes": layout.copy_bytes(layout.cells()),
            "cache": form.settings.cache,
        })
    };
    Value::Array(EntryForm::all(program).iter().map(table).collect())
}
