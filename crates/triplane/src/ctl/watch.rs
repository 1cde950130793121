//! `triplane ctl watch`: what the switch tells its controller, a line each.

use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::stream_message_response::Update as Told;
use p4runtime_proto::v1::{self, update::Type};
use serde_json::{Value, json};
use tonic::Code;

use super::{Live, client, names, objects, show, value};
use crate::output::Failure;

/// Bytes of a packet that a line has at most.
const MAX_SHOWN: usize = 128;

impl Live<'_> {
    /// Prints until Ctrl-C, or until the server goes away.
    pub fn watch(&self) -> Result<(), Failure> {
        let (mut session, election_id) = self.client.listen()?;
        let mut turned_on = Vec::new();
        match election_id {
            Some(id) => {
                turned_on = self.turn_digests_on(id)?;
                self.output.note(&format!("watching as the primary, with election id {id}; Ctrl-C ends"));
            }
            None => self.output.note(
                "another controller is primary: digests, packets and idle entries go there, and only changes of the \
                 primary are told here; --election-id takes its place; Ctrl-C ends",
            ),
        }
        enum Next {
            Message(Result<Option<v1::StreamMessageResponse>, tonic::Status>),
            Stop,
        }
        let result = loop {
            let next = self.client.wait(async {
                tokio::select! {
                    message = session.responses.message() => Next::Message(message),
                    _ = tokio::signal::ctrl_c() => Next::Stop,
                }
            });
            match next {
                Next::Stop => break Ok(()),
                Next::Message(Ok(Some(message))) => {
                    if let Some(told) = message.update {
                        self.print_told(&told)?;
                    }
                }
                Next::Message(Ok(None)) => {
                    break Err(Failure::Environment(anyhow::anyhow!("the server ended the stream")));
                }
                Next::Message(Err(status)) => {
                    let why = client::words(status.code().into(), status.message());
                    break Err(Failure::Environment(anyhow::anyhow!("the server ended the stream: {why}")));
                }
            }
        };
        if let (Some(id), Ok(())) = (election_id, &result) {
            for digest in turned_on {
                // Whoever is primary by now decides about digests.
                let _ = self.client.write(id, Type::Delete, Kind::DigestEntry(digest));
            }
        }
        result
    }

    /// Turns on the digests that nobody has turned on, and gives those.
    fn turn_digests_on(&self, election_id: u128) -> Result<Vec<v1::DigestEntry>, Failure> {
        let mut are_on = Vec::new();
        if !self.info.digests.is_empty() {
            self.client.read(vec![Kind::DigestEntry(v1::DigestEntry::default())], |entity| {
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
            self.client.write(election_id, Type::Insert, Kind::DigestEntry(entry))?;
            turned_on.push(v1::DigestEntry { digest_id, config: None });
        }
        Ok(turned_on)
    }

    fn print_told(&self, told: &Told) -> Result<(), Failure> {
        for (line, object) in self.lines(told) {
            self.output.print(&if self.json { format!("{object}\n") } else { format!("{line}\n") })?;
        }
        Ok(())
    }

    /// What was told, as lines and as JSON.
    fn lines(&self, told: &Told) -> Vec<(String, Value)> {
        let info = &self.info;
        match told {
            Told::Arbitration(update) => {
                let (code, highest) = client::standing(update);
                let id = highest.map_or(String::new(), |id| format!(" (election id {id})"));
                let line = match code {
                    Code::Ok => format!("this client is primary{id}"),
                    Code::AlreadyExists => format!("another controller is primary{id}"),
                    _ => "no controller is primary".to_owned(),
                };
                let standing = match code {
                    Code::Ok => "this",
                    Code::AlreadyExists => "another",
                    _ => "none",
                };
                // 128 bits are more than a number of JSON holds.
                let id = highest.map(|id| id.to_string());
                vec![(line, json!({ "kind": "mastership", "primary": standing, "election_id": id }))]
            }
            Told::Packet(packet) => {
                let header = info.controller_packet_metadata.iter().find(|of| names::name(&of.preamble) == "packet_in");
                let fields = packet.metadata.iter().map(|given| {
                    let known = header.and_then(|header| header.metadata.iter().find(|m| m.id == given.metadata_id));
                    match known {
                        Some(known) => (known.name.clone(), value::show(&known.name, known.bitwidth, &given.value)),
                        None => (given.metadata_id.to_string(), p4runtime_server::bytestring::hex(&given.value)),
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
            Told::Digest(list) => {
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
            Told::IdleTimeoutNotification(idle) => {
                let entry = |entry: &v1::TableEntry| {
                    let table = info.tables.iter().find(|table| names::id(&table.preamble) == entry.table_id)?;
                    let line = format!("idle {}: {}", names::name(&table.preamble), show::key(table, entry));
                    Some((line, json!({ "kind": "idle", "entry": show::entry_json(info, table, entry) })))
                };
                idle.table_entry.iter().filter_map(entry).collect()
            }
            Told::Error(error) => {
                let text = client::words(error.canonical_code, &error.message);
                vec![(format!("error {text}"), json!({ "kind": "error", "message": text }))]
            }
            Told::Other(_) => Vec::new(),
        }
    }
}
