//! Forwards notifications from the switch to the primaries: packets, digests and idle entries.

use p4runtime_proto::v1;
use switch::Notification;
use v1::stream_message_response::Update as Response;

use super::{PipelineState, Server};
use crate::arbitration::Outbox;
use crate::caller::Caller;
use crate::data_plane::NotificationBatch;
use crate::schema::Schema;
use crate::translate::encode_key;

impl Server {
    /// Forwards notifications to the primaries. `wall_ns` is the Unix time, for timestamps.
    pub(crate) fn notify(&mut self, batch: NotificationBatch, now_ns: u64, wall_ns: i64, outbox: &mut Outbox) {
        let Some(PipelineState { pipeline, shadow, .. }) = &self.committed else { return };
        let schema = &pipeline.schema;
        if !std::sync::Arc::ptr_eq(&batch.program, &schema.program) {
            return;
        }
        let mut idle: Vec<v1::TableEntry> = Vec::new();
        for notification in batch.notifications {
            match notification {
                Notification::PacketIn { data, .. } => {
                    let Some((metadata, payload)) = (match &schema.packet_in {
                        Some(header) => header.split(&data),
                        None => Some((Vec::new(), data)),
                    }) else {
                        continue;
                    };
                    let packet = v1::PacketIn { payload, metadata };
                    for (stream, access) in self.arbitration.primaries() {
                        if access.receives(&packet.metadata)
                            && self.caller_of(stream).is_ok_and(Caller::receives_packets)
                        {
                            let update = Some(Response::Packet(packet.clone()));
                            outbox.push((stream, v1::StreamMessageResponse { update }));
                        }
                    }
                }
                Notification::Digest { digest, values, .. } => {
                    let Some(id) = schema.digest_ids.get(&digest) else { continue };
                    let Some(config) = shadow.digests.get(id) else { continue };
                    if let Some(list) = self.digests.offer(schema, *id, config, values, now_ns) {
                        self.send_digest(schema, list, wall_ns, outbox);
                    }
                }
                Notification::IdleTimeout { table, entry, .. } => {
                    let table = schema.table_ids.get(&table).and_then(|id| schema.tables.get(id));
                    let Some(table) = table else { continue };
                    let key = encode_key(&table.fields, &entry.keys, entry.priority);
                    if let Some(entry) = shadow.entry(table.id, &key) {
                        idle.push(v1::TableEntry { meter_config: None, ..entry });
                    }
                }
                // P4Runtime has no message for it; its receiver is a collector.
                Notification::IntReport { .. } => {}
            }
        }
        if idle.is_empty() {
            return;
        }
        for (stream, access) in self.arbitration.primaries() {
            let Ok(caller) = self.caller_of(stream) else { continue };
            let may_read = |id: u32| schema.tables.get(&id).is_some_and(|table| caller.may_read(&table.name));
            let visible = idle.iter().filter(|it| access.allows(Some(it.table_id)) && may_read(it.table_id));
            let table_entry: Vec<_> = visible.cloned().collect();
            if !table_entry.is_empty() {
                let notification = v1::IdleTimeoutNotification { table_entry, timestamp: wall_ns };
                let update = Some(Response::IdleTimeoutNotification(notification));
                outbox.push((stream, v1::StreamMessageResponse { update }));
            }
        }
    }

    /// Sends the digest lists that are due.
    pub(crate) fn tick(&mut self, now_ns: u64, wall_ns: i64, outbox: &mut Outbox) {
        let Some(PipelineState { pipeline, shadow, .. }) = &self.committed else { return };
        for list in self.digests.due(&pipeline.schema, &shadow.digests, now_ns) {
            self.send_digest(&pipeline.schema, list, wall_ns, outbox);
        }
    }

    fn send_digest(&self, schema: &Schema, list: v1::DigestList, wall_ns: i64, outbox: &mut Outbox) {
        let list = v1::DigestList { timestamp: wall_ns, ..list };
        let name = schema.digests.get(&list.digest_id).map_or("", |digest| &digest.name);
        for (stream, access) in self.arbitration.primaries() {
            if access.allows(Some(list.digest_id)) && self.caller_of(stream).is_ok_and(|caller| caller.may_read(name)) {
                let update = Some(Response::Digest(list.clone()));
                outbox.push((stream, v1::StreamMessageResponse { update }));
            }
        }
    }

    /// Returns the time of the next [`Server::tick`].
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.digests.next_ns(&self.committed.as_ref()?.shadow.digests)
    }
}
