//! Renders traces as human-readable text, and as JSON.

use serde_json::{Value as Json, json};

use super::TracedValue;
use super::model::{HeaderChange, Pass, PassKind, PassOutcome, Section, Step, StepKind, Trace};
use crate::Time;

/// Column of source positions, unless the line before them is longer.
const PLACE_COLUMN: usize = 76;

/// Sections with more steps than this are shortened to the first [`SHOWN_FIRST`] and the last [`SHOWN_LAST`]. Only
/// loops have more.
const MAX_STEPS: usize = 400;
const SHOWN_FIRST: usize = 30;
const SHOWN_LAST: usize = 10;

/// Lines with indentation and source positions.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, indent: usize, text: &str, at: Option<&str>) {
        let mut line = format!("{:width$}{text}", "", width = indent * 2);
        if let Some(at) = at {
            let used = line.chars().count();
            line.push_str(&" ".repeat(PLACE_COLUMN.saturating_sub(used).max(2)));
            line.push_str(file_of(at));
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Writes one name and value a line, in two columns.
    fn values(&mut self, indent: usize, values: &[TracedValue]) {
        let width = values.iter().map(|value| value.name.len()).max().unwrap_or(0);
        for value in values {
            self.line(indent, &format!("{:width$}  {}", value.name, value.shown), None);
        }
    }
}

/// Formats a number of bytes: `1 byte`, `54 bytes`.
fn in_bytes(count: usize) -> String {
    format!("{count} byte{}", if count == 1 { "" } else { "s" })
}

impl Trace {
    /// Renders the trace as text. Ends with a newline.
    pub fn render(&self) -> String {
        let mut page = Page::default();
        let time = Time::from_ns(self.time_ns);
        page.line(0, &format!("{time}  port {} received {}", self.port, in_bytes(self.data.len() / 2)), None);
        for (index, pass) in self.passes.iter().enumerate() {
            if index > 0 {
                page.line(0, "", None);
                page.line(0, &title(index, pass), None);
            }
            render_pass(&mut page, pass);
        }
        if self.cut {
            page.line(0, "... trace truncated", None);
        }
        page.text
    }

    /// Converts the trace to JSON. The field names are those of [`Trace`] and its parts.
    pub fn to_json(&self) -> Json {
        serde_json::to_value(self).unwrap_or_else(|error| json!({ "error": error.to_string() }))
    }
}

/// `pass 2: clone of pass 1 as received, mirror session 5, 64 bytes`
fn title(index: usize, pass: &Pass) -> String {
    let parent = pass.parent.map_or(0, |parent| parent + 1);
    let what = match &pass.kind {
        PassKind::Received => "received".to_string(),
        PassKind::Resubmitted => format!("pass {parent} resubmitted"),
        PassKind::Recirculated => format!("pass {parent} recirculated"),
        PassKind::IngressClone { session } => format!("clone of pass {parent} as received, mirror session {session}"),
        PassKind::EgressClone { session } => format!("clone of pass {parent} after egress, mirror session {session}"),
        PassKind::Replica { rid } => format!("copy of pass {parent}, replica {rid}"),
    };
    format!("pass {}: {what}, {}", index + 1, in_bytes(pass.bytes))
}

fn render_pass(page: &mut Page, pass: &Pass) {
    for section in &pass.sections {
        let Section { role, body, steps } = section;
        if steps.is_empty() && !matches!(role.as_str(), "ingress" | "egress") {
            continue;
        }
        match pass.egress_port {
            Some(port) if role == "egress" => page.line(0, &format!("{role} {body}, port {port}"), None),
            _ => page.line(0, &format!("{role} {body}"), None),
        }
        // The steps of a parser are shown below its states.
        let mut indent = 1;
        for (index, step) in steps.iter().enumerate() {
            if steps.len() > MAX_STEPS && (SHOWN_FIRST..steps.len() - SHOWN_LAST).contains(&index) {
                if index == SHOWN_FIRST {
                    page.line(1, &format!("... {} more steps ...", steps.len() - SHOWN_FIRST - SHOWN_LAST), None);
                }
                continue;
            }
            if let StepKind::State { name } = &step.what {
                page.line(1, &format!("state {name}"), step.at.as_deref());
                indent = 2;
            } else {
                render_step(page, indent, step);
            }
        }
        if steps.is_empty() {
            page.line(1, "(no steps)", None);
        }
    }
    render_outcome(page, &pass.outcome);
}

fn render_step(page: &mut Page, indent: usize, step: &Step) {
    let at = step.at.as_deref();
    let element = |index: &Option<u64>| index.map_or(String::new(), |index| format!("[{index}]"));
    let text = match &step.what {
        StepKind::State { name } => format!("state {name}"),
        StepKind::Extract { header, at_bit, bits, fields } => {
            page.line(indent, &format!("extract {header}, {} at {}", length(*bits), position(*at_bit)), at);
            return page.values(indent + 1, fields);
        }
        StepKind::Advance { bits } => format!("skip {}", length(*bits)),
        StepKind::Select { keys, target } => {
            let keys: Vec<String> = keys.iter().map(named).collect();
            format!("select {} -> {}", keys.join(", "), target.as_deref().unwrap_or("no case"))
        }
        StepKind::ParserError { error } => format!("error {error}"),
        StepKind::Table { .. } => return render_table(page, indent, step),
        StepKind::Write { old, new } if old == new => format!("{} = {}, as before", new.name, new.shown),
        StepKind::Write { old, new } => format!("{} = {}, was {}", new.name, new.shown, old.shown),
        StepKind::Copy { from, to } => {
            let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "nothing".to_string());
            format!("{} = {}", name(to), name(from))
        }
        StepKind::Validity { header, valid: true } => format!("{header} set valid"),
        StepKind::Validity { header, valid: false } => format!("{header} set invalid"),
        StepKind::Branch { condition, value } => {
            let condition = condition.as_deref().map_or(String::new(), |condition| format!(" {condition}"));
            format!("if{condition}: {}", if *value { "yes" } else { "no" })
        }
        StepKind::Switch { subject } => format!("switch {}", named(subject)),
        StepKind::Register { register, index, value, written } => {
            let verb = if *written { "write" } else { "read" };
            format!("{verb} {register}{}: {}", element(index), value.shown)
        }
        StepKind::Count { counter, index } => format!("count {counter}{}", element(index)),
        StepKind::Meter { meter, index, colour } => format!("meter {meter}{}: {colour}", element(index)),
        StepKind::Compute { algorithm, data, value } => {
            format!("{algorithm} of {}: {}", in_bytes(data.len() / 2), value.shown)
        }
        StepKind::Request { request } => format!("request: {request}"),
        StepKind::Emit { header, bits } => format!("emit {header}, {}", length(*bits)),
        StepKind::Note { text } => format!("note: {text}"),
    };
    page.line(indent, &text, at);
}

fn render_table(page: &mut Page, indent: usize, step: &Step) {
    let StepKind::Table { table, key, hit, entry, member, action, args, steps } = &step.what else { return };
    page.line(indent, &format!("table {table}"), step.at.as_deref());
    let key: Vec<String> = key.iter().map(named).collect();
    if !key.is_empty() {
        page.line(indent + 1, &format!("key     {}", key.join(", ")), None);
    }
    match entry {
        Some(entry) if *hit => page.line(indent + 1, &format!("hit     {entry}"), None),
        _ => page.line(indent + 1, "miss", None),
    }
    if let Some(member) = member {
        page.line(indent + 1, &format!("member  {member}"), None);
    }
    let args: Vec<String> = args.iter().map(named).collect();
    match action {
        Some(action) => {
            let label = if *hit { "action " } else { "default" };
            page.line(indent + 1, &format!("{label} {action}({})", args.join(", ")), None);
        }
        None => page.line(indent + 1, "action  none: the group has no member that is up", None),
    }
    for step in steps {
        render_step(page, indent + 2, step);
    }
}

fn render_outcome(page: &mut Page, outcome: &PassOutcome) {
    match outcome {
        PassOutcome::Running => page.line(0, "in flight", None),
        PassOutcome::Sent { port, to_controller, data, changes } => {
            let to = if *to_controller { " to the controller" } else { "" };
            page.line(0, &format!("sent on port {port}{to}, {}", in_bytes(data.len() / 2)), None);
            if changes.is_empty() {
                return page.line(1, "unchanged", None);
            }
            let name = |change: &HeaderChange| match change {
                HeaderChange::Added { header } | HeaderChange::Removed { header } => header.clone(),
                HeaderChange::Field { new, .. } => new.name.clone(),
            };
            let width = changes.iter().map(|change| name(change).len()).max().unwrap_or(0);
            for change in changes {
                let what = match change {
                    HeaderChange::Added { .. } => "added".to_string(),
                    HeaderChange::Removed { .. } => "removed".to_string(),
                    HeaderChange::Field { old, new } => format!("{} -> {}", old.shown, new.shown),
                };
                page.line(1, &format!("{:width$}  {what}", name(change)), None);
            }
        }
        PassOutcome::Dropped { sentence, place, body, port, .. } => {
            let body = body.as_deref().filter(|body| !body.is_empty()).map_or(String::new(), |b| format!(" ({b})"));
            let place = place.as_deref().map_or(String::new(), |place| format!(" at {}", file_of(place)));
            let port = port.map_or(String::new(), |port| format!(" (port {port})"));
            page.line(0, &format!("dropped {sentence}{place}{body}{port}"), None);
        }
        PassOutcome::Replicated { group, copies } => {
            let by = group.map_or("the mirror session".to_string(), |group| format!("multicast group {group}"));
            page.line(0, &format!("replicated by {by}, {copies} {}", plural(*copies, "copy", "copies")), None);
        }
        PassOutcome::ReplicatedToPorts { ports } => {
            let numbers: Vec<String> = ports.iter().map(u32::to_string).collect();
            let ports = plural(ports.len(), "port", "ports");
            page.line(0, &format!("replicated to {ports} {}", numbers.join(", ")), None);
        }
        PassOutcome::Parked => page.line(0, "waits for a row of resilient state", None),
        PassOutcome::Resubmitted => page.line(0, "resubmitted", None),
        PassOutcome::Recirculated { bytes } => page.line(0, &format!("recirculated, {bytes} bytes"), None),
        PassOutcome::Queued { port, priority, depth } => {
            let packets = plural(*depth, "packet", "packets");
            page.line(0, &format!("waits for port {port} in queue {priority}, {depth} {packets} deep"), None);
        }
    }
}

/// Returns `name = value`, or the value alone if it has no name.
fn named(value: &TracedValue) -> String {
    if value.name.is_empty() { value.shown.clone() } else { format!("{} = {}", value.name, value.shown) }
}

/// Removes the directories from a source position: the reader knows them, and JSON keeps the full path.
fn file_of(place: &str) -> &str {
    place.rsplit(['/', '\\']).next().unwrap_or(place)
}

fn plural<'a>(count: usize, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

/// Renders a length in bytes if it is a whole number of bytes.
fn length(bits: usize) -> String {
    match bits % 8 {
        0 => format!("{} {}", bits / 8, plural(bits / 8, "byte", "bytes")),
        _ => format!("{bits} {}", plural(bits, "bit", "bits")),
    }
}

fn position(bit: usize) -> String {
    if bit.is_multiple_of(8) { format!("byte {}", bit / 8) } else { format!("bit {bit}") }
}
