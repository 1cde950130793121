//! Reads entries from a file or from a switch.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};
use entries_file::EntryAction;
use ir::{KeyValue, Program};
use p4runtime_proto::v1;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::packet_replication_engine_entry::Type as Replication;
use subscribe::ColumnLayout;
use subscribe_p4::entries::{Entity, Matched, ProgramEntry};
use subscribe_p4::read_back::{self, Finding};
use subscribe_service::ProgramNames;

use super::args::DiffArgs;
use super::load::Loaded;
use super::replication::options_without_program;
use crate::ctl::args::ServerArgs;
use crate::ctl::{self, names};
use crate::output::{Failure, Output};

/// Entries with their source.
pub struct EntrySet {
    name: String,
    /// All entities, by the names of the program.
    pub entities: Vec<Entity>,
    /// The order of fields of their program.
    pub layout: ColumnLayout,
    /// The position of each, if they are from a file.
    places: Option<(SourceMap, Vec<Span>)>,
}

/// Returns the text of an entries file, or `None` for a rules file, which does not begin with a brace.
pub fn is_entries(path: &Path) -> Result<Option<String>, Failure> {
    /// Maximum length of the comments before the first brace.
    const BEGINNING: u64 = 1 << 16;
    super::load::is_text(path, "rules and entries")?;
    // A pipe can be read only once, and holds rules.
    if !path.is_file() {
        return Ok(None);
    }
    let mut beginning = Vec::new();
    File::open(path)
        .and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning))
        .with_context(|| format!("cannot read {}", path.display()))?;
    let beginning = String::from_utf8_lossy(&beginning);
    let mut rest = beginning.trim_start_matches('\u{feff}').trim_start();
    loop {
        let behind = if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/")
        } else if rest.starts_with("//") || rest.starts_with('#') {
            rest.split_once('\n')
        } else {
            break;
        };
        rest = behind.map_or("", |(_, behind)| behind).trim_start();
    }
    if !rest.starts_with('{') {
        return Ok(None);
    }
    crate::load::read(path, entries_file::MAX_FILE_BYTES).map(Some)
}

/// Reads the entries of a file, in the format of `--entries`.
pub fn in_file(path: &Path, text: String, loaded: &Loaded, output: &Output) -> Result<EntrySet, Failure> {
    let name = path.display().to_string();
    let unfit = |why: read_back::ReconstructError| Failure::Input(format!("{name}: {why}"));
    // Some of these are names of actions, not tables of a stage.
    let mentioned = text.split('"').filter(|word| word.starts_with("Subscriptions."));
    let options = options_without_program();
    let (layout, target) = read_back::reconstruct(mentioned, &loaded.rules, options.target).map_err(unfit)?;
    let has_pairs = text.contains("SubscriptionsEgress.split_horizon");
    let bitmap = subscribe_p4::bitmap_of(text.split('"'));
    let options = subscribe_p4::ProgramOptions {
        target,
        split_horizon: has_pairs,
        forwards_hosts: text.contains(subscribe_p4::HOST_ADDRESSES),
        ..options
    };
    let options = options.with_bitmap_width(bitmap);
    let mut made = loaded.made(&layout, &options);
    let program = made.compile();
    made.report(output)?;
    let program =
        program.ok_or_else(|| Failure::Input(format!("{name}: no program can be generated for these entries")))?.ir;
    let file = made.map.add(&name, text);
    let mut diagnostics = Diagnostics::new();
    let parsed = crate::entries::parse(&made.map, file, &program, &mut diagnostics);
    output.diagnostics(&made.map, &diagnostics);
    let Some(parsed) = parsed else { return Err(Failure::Input(format!("{name} cannot be compared"))) };
    let mut wrong = Diagnostics::new();
    let mut entities = Vec::new();
    let mut spans = Vec::new();
    let start = Span::new(file, 0, 0);
    for group in &parsed.groups {
        entities.push(Entity::Group(group.id, group.replicas.iter().map(|replica| replica.port).collect()));
        spans.push(start);
    }
    for mirror in &parsed.mirrors {
        entities.push(Entity::Session(mirror.id, mirror.replicas.first().map_or(0, |replica| replica.port)));
        spans.push(start);
    }
    for entry in &parsed.tables {
        match table_entry(entry, &program) {
            Some(entity) => {
                entities.push(Entity::Table(entity));
                spans.push(entry.span);
            }
            None => wrong.push(Diagnostic::error("entry-action", entry.span, "rule tables have no action profiles")),
        }
    }
    for (table, call, span) in &parsed.defaults {
        let action = &program.actions[call.action].name;
        if program.tables[*table].name.starts_with("Subscriptions") && action != "NoAction" {
            let what = format!("the default action of a rule table must be `NoAction`, not `{action}`");
            wrong.push(Diagnostic::error("entry-default", *span, what));
        }
    }
    output.diagnostics(&made.map, &wrong);
    if wrong.has_errors() {
        Err(Failure::Input(format!("{name} cannot be compared")))
    } else {
        Ok(EntrySet { name, entities, layout, places: Some((made.map, spans)) })
    }
}

/// Translates an entry to names. Returns `None` if it has no action of its own.
fn table_entry(entry: &entries_file::TableEntrySpec, program: &Program) -> Option<ProgramEntry> {
    let table = &program.tables[entry.table];
    let EntryAction::Action(call) = &entry.target else { return None };
    let action = &program.actions[call.action];
    let keys = table.keys.iter().zip(&entry.keys).filter_map(|(key, value)| {
        let matched = match value {
            KeyValue::Exact(value) => Matched::Exact(value.low_u128()),
            KeyValue::Lpm(value, length) => Matched::Lpm(value.low_u128(), *length),
            KeyValue::Ternary(value, mask) => Matched::Ternary(value.low_u128(), mask.low_u128()),
            KeyValue::Range(first, last) => Matched::Range(first.low_u128(), last.low_u128()),
            KeyValue::Any => return None,
        };
        Some((key.name.clone(), key.width, matched))
    });
    let params = action.params.iter().zip(&call.args);
    Some(ProgramEntry {
        table: table.name.clone(),
        keys: keys.collect(),
        priority: (entry.priority > 0).then_some(entry.priority as u32),
        action: action.name.clone(),
        params: params.map(|(param, value)| (param.name.clone(), value.width(), value.low_u128())).collect(),
    })
}

/// Reads the entries of a switch over P4Runtime.
pub fn in_switch(address: &str, args: &DiffArgs, loaded: &Loaded) -> Result<EntrySet, Failure> {
    let server = ServerArgs {
        addr: address.to_owned(),
        device_id: args.device_id,
        election_id: None,
        tls_ca: args.tls.tls_ca.clone(),
        tls_cert: args.tls.tls_cert.clone(),
        tls_key: args.tls.tls_key.clone(),
        tls_name: args.tls.tls_name.clone(),
        json: false,
    };
    let client = ctl::connect(&server)?;
    let info = ctl::read_p4info(&client, &server)?;
    let name = format!("@{address}");
    let tables: Vec<&str> = info.tables.iter().map(|table| names::name(&table.preamble)).collect();
    if !tables.contains(&"Subscriptions.validity") {
        return Err(Failure::Input(format!("{name}: the switch's program was not generated by `triplane subscribe`")));
    }
    let shape = read_back::reconstruct(tables.into_iter(), &loaded.rules, options_without_program().target);
    let (layout, _) = shape.map_err(|why| Failure::Input(format!("{name}: {why}")))?;
    let program = ProgramNames::new(&info);
    let unknown = || Failure::Input("the switch has an entry that does not fit its program's P4Info".to_owned());
    let mut entities = Vec::new();
    let copies = |kind| Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(kind) });
    let wanted = [
        Kind::TableEntry(v1::TableEntry::default()),
        copies(Replication::MulticastGroupEntry(v1::MulticastGroupEntry::default())),
        copies(Replication::CloneSessionEntry(v1::CloneSessionEntry::default())),
    ];
    for kind in wanted {
        client.read::<Failure>(vec![kind], |entity| {
            if matches!(&entity, Kind::TableEntry(entry) if entry.is_default_action) {
                return Ok(());
            }
            entities.push(program.decode(&v1::Entity { entity: Some(entity) }).ok_or_else(unknown)?);
            Ok(())
        })?;
    }
    Ok(EntrySet { name, entities, layout, places: None })
}

impl EntrySet {
    /// Creates the entries that rules compile to.
    pub fn compiled(path: &Path, entities: Vec<Entity>, layout: ColumnLayout) -> EntrySet {
        EntrySet { name: path.display().to_string(), entities, layout, places: None }
    }

    /// Prints the findings about the entries.
    ///
    /// # Errors
    /// If a finding prevents a comparison.
    pub fn print_findings(&self, findings: &[Finding], output: &Output) -> Result<(), Failure> {
        /// Maximum number of findings that are printed: more of them mostly repeat one cause.
        const MOST: usize = 10;
        let mut wrong = Diagnostics::new();
        for finding in findings.iter().take(MOST) {
            let make = if finding.is_error { Diagnostic::error } else { Diagnostic::warning };
            match &self.places {
                Some((_, spans)) => {
                    let diagnostic = make("entry-meaning", spans[finding.at], finding.message.clone());
                    let other = finding.also.map(|other| (spans[other], "the other entry".to_owned()));
                    wrong.push(match other {
                        Some((span, label)) => diagnostic.also(span, label),
                        None => diagnostic,
                    });
                }
                None => {
                    let which = |at: usize| match &self.entities[at] {
                        Entity::Table(entry) => format!("{} {}", entry.table, keys(entry)),
                        _ => String::new(),
                    };
                    let other =
                        finding.also.map_or(String::new(), |other| format!(" (the other entry: {})", which(other)));
                    output.note(&format!("{}: {}: {}{other}", self.name, which(finding.at), finding.message));
                }
            }
        }
        if let Some((map, _)) = &self.places {
            output.diagnostics(map, &wrong);
        }
        if findings.len() > MOST {
            output.note(&format!("{}: and {} more of these", self.name, findings.len() - MOST));
        }
        if findings.iter().any(|finding| finding.is_error) {
            Err(Failure::Input(format!("{} cannot be compared", self.name)))
        } else {
            Ok(())
        }
    }
}

/// Formats the key of an entry.
fn keys(entry: &ProgramEntry) -> String {
    let shown = entry.keys.iter().map(|(name, _, matched)| match matched {
        Matched::Exact(value) => format!("{name}={value:#x}"),
        Matched::Lpm(value, length) => format!("{name}={value:#x}/{length}"),
        Matched::Range(first, last) => format!("{name}={first:#x}..{last:#x}"),
        Matched::Ternary(value, mask) => format!("{name}={value:#x}&&&{mask:#x}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}
