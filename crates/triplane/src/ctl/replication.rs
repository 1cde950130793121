//! Lists and changes clone sessions and multicast groups.

use diagnostics::Diagnostic;
use p4runtime_proto::bytestring;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::packet_replication_engine_entry::Type as Replication;
use p4runtime_proto::v1::{self, replica::PortKind};
use serde_json::{Value, json};

use super::SwitchConnection;
use super::entry::Change;
use super::show::{RenderedEntry, port};
use super::text::{self, Listing, Note, Word};
use crate::output::Failure;

/// The kind of a session or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionKind {
    /// `clone 5 -> 1, class=2, truncate=128`
    Clone,
    /// `multicast 1 -> 1, 2, 3 instance 7`
    Multicast,
}

impl SessionKind {
    /// Returns its word in commands.
    pub fn word(self) -> &'static str {
        match self {
            SessionKind::Clone => "clone",
            SessionKind::Multicast => "multicast",
        }
    }
}

impl SwitchConnection<'_> {
    /// `sessions`
    pub fn sessions(&self) -> Result<(), Failure> {
        let wanted = [
            Replication::CloneSessionEntry(v1::CloneSessionEntry::default()),
            Replication::MulticastGroupEntry(v1::MulticastGroupEntry::default()),
        ];
        let (mut text, mut objects): (String, Vec<Value>) = Default::default();
        self.read(wanted.map(entity).into(), |entity| {
            if let Kind::PacketReplicationEngineEntry(entry) = entity
                && let Some(kind) = entry.r#type
            {
                text += &format!("{}\n", shown(&kind));
                objects.push(to_json(&kind));
            }
            Ok(())
        })?;
        if self.json {
            return self.print_json(&objects.into());
        }
        if text.is_empty() {
            self.output.note("there are no clone sessions and no multicast groups");
        }
        self.output.print(&text)
    }

    /// `insert`, `modify` and `delete` of a session or a group.
    pub fn change_session(&self, change: Change, kind: SessionKind, line: &str) -> Result<(), Failure> {
        let what = match kind {
            SessionKind::Clone => "a valid clone session",
            SessionKind::Multicast => "a valid multicast group",
        };
        let bound = self.read_line(line, what, |file, _, diagnostics| {
            let written = text::parse_listing(file, line, diagnostics)?;
            match bind(kind, &written, change) {
                Ok(bound) => Some(bound),
                Err(diagnostic) => {
                    diagnostics.push(*diagnostic);
                    None
                }
            }
        })?;
        let (described, json) = (shown(&bound), to_json(&bound));
        self.write(change, entity(bound), &described, json)
    }
}

fn entity(kind: Replication) -> Kind {
    Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(kind) })
}

fn wrong(word: &Word, what: impl Into<String>, help: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("entry-value", word.span, what).help(help))
}

/// Parses a number.
pub fn number(word: &Word, what: &str) -> Result<u32, Box<Diagnostic>> {
    word.text.parse().map_err(|_| wrong(word, format!("`{}` is not a valid {what}", word.text), "write a number"))
}

/// Encodes a port for P4Runtime.
pub fn port_bytes(port: u32) -> Vec<u8> {
    bytestring::print(&bits::Bits::new(port.into(), 32))
}

fn bind(kind: SessionKind, written: &Listing, change: Change) -> Result<Replication, Box<Diagnostic>> {
    let id = number(&written.id, "session id")?;
    let replicas = written.items.iter().map(|(port, notes)| replica(port, notes)).collect::<Result<Vec<_>, _>>()?;
    if replicas.is_empty() && change != Change::Delete && kind == SessionKind::Clone {
        return Err(wrong(&written.id, "the session has no port", "write ID -> PORT"));
    }
    match kind {
        SessionKind::Multicast => {
            if let Some((name, _)) = written.settings.first() {
                return Err(wrong(name, format!("a multicast group has no `{}`", name.text), "it has only ports"));
            }
            let entry = v1::MulticastGroupEntry { multicast_group_id: id, replicas, ..Default::default() };
            Ok(Replication::MulticastGroupEntry(entry))
        }
        SessionKind::Clone => {
            let mut entry = v1::CloneSessionEntry { session_id: id, replicas, ..Default::default() };
            for (name, value) in &written.settings {
                let help = "write class=NUMBER or truncate=BYTES";
                match (&*name.text, value.text.parse::<u32>()) {
                    ("class", Ok(class)) => entry.class_of_service = class,
                    ("truncate", Ok(bytes)) if i32::try_from(bytes).is_ok() => entry.packet_length_bytes = bytes as i32,
                    ("class" | "truncate", _) => return Err(wrong(value, "this is not a number", help)),
                    (other, _) => return Err(wrong(name, format!("a clone session has no `{other}`"), help)),
                }
            }
            Ok(Replication::CloneSessionEntry(entry))
        }
    }
}

fn replica(port: &Word, notes: &[Note]) -> Result<v1::Replica, Box<Diagnostic>> {
    let port = port_bytes(number(port, "port")?);
    let mut replica = v1::Replica { port_kind: Some(PortKind::Port(port)), ..Default::default() };
    for (name, value) in notes {
        match &*name.text {
            "instance" => replica.instance = number(value, "instance")?,
            "backup" => {
                let port = port_bytes(number(value, "port")?);
                replica.backup_replicas.push(v1::BackupReplica { port, instance: replica.instance });
            }
            other => {
                return Err(wrong(
                    name,
                    format!("a replica has no `{other}`"),
                    "a replica has an instance and backups",
                ));
            }
        }
    }
    // The order in which they were written has no meaning.
    let instance = replica.instance;
    replica.backup_replicas.iter_mut().for_each(|backup| backup.instance = instance);
    Ok(replica)
}

fn port_of(replica: &v1::Replica) -> String {
    #[allow(deprecated, reason = "controllers still write ports in the older form, and get them back so")]
    match &replica.port_kind {
        Some(PortKind::EgressPort(port)) => port.to_string(),
        Some(PortKind::Port(bytes)) => port(bytes),
        // Controllers of P4Runtime 1.3 leave out port 0.
        None => "0".to_owned(),
    }
}

/// Formats a session or group: `multicast 1 -> 1, 2 instance 7`.
fn shown(kind: &Replication) -> RenderedEntry {
    let (word, id, replicas) = match kind {
        Replication::CloneSessionEntry(it) => (SessionKind::Clone, it.session_id, &it.replicas),
        Replication::MulticastGroupEntry(it) => (SessionKind::Multicast, it.multicast_group_id, &it.replicas),
    };
    let mut parts: Vec<String> = Vec::new();
    for replica in replicas {
        let mut text = port_of(replica);
        if replica.instance != 0 {
            text += &format!(" instance {}", replica.instance);
        }
        for backup in &replica.backup_replicas {
            text += &format!(" backup {}", port(&backup.port));
        }
        parts.push(text);
    }
    if let Replication::CloneSessionEntry(it) = kind {
        parts.extend((it.class_of_service != 0).then(|| format!("class={}", it.class_of_service)));
        parts.extend((it.packet_length_bytes != 0).then(|| format!("truncate={}", it.packet_length_bytes)));
    }
    RenderedEntry { what: format!("{} {id}", word.word()), value: parts.join(", ") }
}

fn to_json(kind: &Replication) -> Value {
    let replicas = |all: &[v1::Replica]| -> Value {
        let backups = |it: &v1::Replica| it.backup_replicas.iter().map(|it| port(&it.port)).collect::<Vec<_>>();
        let one = |it: &v1::Replica| json!({ "port": port_of(it), "instance": it.instance, "backups": backups(it) });
        all.iter().map(one).collect()
    };
    match kind {
        Replication::CloneSessionEntry(it) => json!({ "clone_session": it.session_id,
            "replicas": replicas(&it.replicas), "class_of_service": it.class_of_service,
            "packet_length_bytes": it.packet_length_bytes }),
        Replication::MulticastGroupEntry(it) => {
            json!({ "multicast_group": it.multicast_group_id, "replicas": replicas(&it.replicas) })
        }
    }
}
