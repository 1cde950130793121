//! Runs `triplane ctl watch`: prints the events that a switch sends to its controller, a line each.

use anyhow::anyhow;
use p4runtime_client::{CallError, Code, Mastership, StreamEvent, Wakeup};
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::{self, update::Type};
use serde_json::{Value, json};

use super::{SwitchConnection, failure, names, objects, show, value};
use crate::output::Failure;

/// Maximum number of bytes of a packet in a line.
const MAX_SHOWN: usize = 128;

impl SwitchConnection<'_> {
    /// Prints until Ctrl-C, or until the server goes away.
    pub fn watch(&self) -> Result<(), Failure> {
        let joined = self.client.become_primary_or_listen(self.election_id);
        let (mut stream, election_id) = joined.map_err(|error| failure::from_election(&error))?;
        let mut turned_on = Vec::new();
        match election_id {
            Some(id) => {
                turned_on = self.turn_digests_on(id)?;
                self.output.note(&format!("watching as the primary, with election id {id}; press Ctrl-C to stop"));
            }
            None => self.output.note(
                "another controller is primary and receives digests, packets and idle timeouts; only changes of the \
                 primary are shown here; use --election-id to replace it; press Ctrl-C to stop",
            ),
        }
        let result = loop {
            match self.client.next_event(&mut stream) {
                Ok(Wakeup::Interrupted) => break Ok(()),
                Ok(Wakeup::Event(event)) => self.print_event(&event)?,
                Err(CallError::StreamEnded) => break Err(anyhow!("the server closed the stream").into()),
                Err(error) => break Err(anyhow!("the server closed the stream: {}", failure::reason(&error)).into()),
            }
        };
        if let (Some(id), Ok(())) = (election_id, &result) {
            for digest in turned_on {
                // Another controller may be primary by now; then it decides about digests.
                let _ = self.send(id, Type::Delete, Kind::DigestEntry(digest));
            }
        }
        result
    }

    /// Enables the digests that are not enabled yet, and returns them.
    fn turn_digests_on(&self, election_id: u128) -> Result<Vec<v1::DigestEntry>, Failure> {
        let mut are_on = Vec::new();
        if !self.info.digests.is_empty() {
            self.read(vec![Kind::DigestEntry(v1::DigestEntry::default())], |entity| {
                if let Kind::DigestEntry(entry) = entity {
                    are_on.push(entry.digest_id);
                }
                Ok(())
            })?;
        }
        let mut turned_on = Vec::new();
        let off = self.info.digests.iter().map(|digest| names::id(&digest.preamble)).filter(|id| !are_on.contains(id));
        for digest_id in off {
            let config = v1::digest_entry::Config { max_list_size: 1, ..Default::default() };
            let entry = v1::DigestEntry { digest_id, config: Some(config) };
            self.send(election_id, Type::Insert, Kind::DigestEntry(entry))?;
            turned_on.push(v1::DigestEntry { digest_id, config: None });
        }
        Ok(turned_on)
    }

    fn print_event(&self, event: &StreamEvent) -> Result<(), Failure> {
        for (line, object) in self.lines(event) {
            self.output.print(&if self.json { format!("{object}\n") } else { format!("{line}\n") })?;
        }
        Ok(())
    }

    /// Renders an event as lines and as JSON.
    fn lines(&self, event: &StreamEvent) -> Vec<(String, Value)> {
        let info = &self.info;
        match event {
            StreamEvent::Mastership(mastership) => {
                let id = mastership.election_id();
                let shown = id.map_or(String::new(), |id| format!(" (election id {id})"));
                let (line, primary) = match mastership {
                    Mastership::Primary { .. } => (format!("this client is primary{shown}"), "this"),
                    Mastership::Backup { .. } => (format!("another controller is primary{shown}"), "another"),
                    Mastership::NoPrimary { .. } => ("no controller is primary".to_owned(), "none"),
                };
                // An election id has 128 bits, more than a number of JSON holds.
                let id = id.map(|id| id.to_string());
                vec![(line, json!({ "kind": "mastership", "primary": primary, "election_id": id }))]
            }
            StreamEvent::Packet(packet) => {
                let header = info.controller_packet_metadata.iter().find(|of| names::name(&of.preamble) == "packet_in");
                let fields = packet.metadata.iter().map(|given| {
                    let known = header.and_then(|header| header.metadata.iter().find(|m| m.id == given.metadata_id));
                    match known {
                        Some(known) => (known.name.clone(), value::show(&known.name, known.bitwidth, &given.value)),
                        None => (given.metadata_id.to_string(), p4runtime_proto::bytestring::hex(&given.value)),
                    }
                });
                let fields: Vec<(String, String)> = fields.collect();
                let text = fields.iter().map(|(name, value)| format!(" {name}={value}")).collect::<String>();
                let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                let shown = hex(&packet.payload[..packet.payload.len().min(MAX_SHOWN)]);
                let cut = if packet.payload.len() > MAX_SHOWN { "..." } else { "" };
                let line = format!("packet{text} {} bytes {shown}{cut}", packet.payload.len());
                let fields: Value = fields.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
                vec![(line, json!({ "kind": "packet", "metadata": fields, "payload": hex(&packet.payload) }))]
            }
            StreamEvent::Digest(list) => {
                let digest = info.digests.iter().find(|digest| names::id(&digest.preamble) == list.digest_id);
                let name = digest.map_or("?", |digest| names::name(&digest.preamble));
                let of = digest.and_then(|digest| digest.type_spec.as_ref());
                let shown = list.data.iter().map(|data| objects::data(info, name, of, data));
                shown
                    .map(|text| {
                        (format!("digest {name}: {text}"), json!({ "kind": "digest", "digest": name, "data": text }))
                    })
                    .collect()
            }
            StreamEvent::IdleTimeout(idle) => {
                let entry = |entry: &v1::TableEntry| {
                    let table = info.tables.iter().find(|table| names::id(&table.preamble) == entry.table_id)?;
                    let line = format!("idle {}: {}", names::name(&table.preamble), show::key(table, entry));
                    Some((line, json!({ "kind": "idle", "entry": show::entry_json(info, table, entry) })))
                };
                idle.table_entry.iter().filter_map(entry).collect()
            }
            StreamEvent::Error(error) => {
                let text = failure::coded(Code::from_i32(error.canonical_code), &error.message);
                vec![(format!("error {text}"), json!({ "kind": "error", "message": text }))]
            }
            StreamEvent::Other(_) => Vec::new(),
        }
    }
}
