//! Translates multicast groups and clone sessions (specification 9.5).

use std::collections::BTreeSet;

use p4runtime_proto::bytestring;
use p4runtime_proto::v1;
use switch::{Backup, MAX_REPLICAS, MirrorSession, MulticastGroup, PRIORITIES, PortId};
use v1::packet_replication_engine_entry::Type;
use v1::replica::PortKind;

use super::{EntityTranslator, PlannedUpdate, UpdateKind, check_metadata};
use crate::shadow::ShadowChange;
use crate::status::{Code, Refusal};
use crate::switch_ops::Op;

/// Maximum value of `mcast_grp` and `egress_rid`, which have 16 bits.
const MAX_16: u32 = u16::MAX as u32;

impl EntityTranslator<'_> {
    pub(super) fn replication(
        &self,
        kind: UpdateKind,
        entry: &v1::PacketReplicationEngineEntry,
    ) -> Result<PlannedUpdate, Refusal> {
        match entry.r#type.as_ref() {
            Some(Type::MulticastGroupEntry(group)) => {
                let subject = format!("multicast group {}", group.multicast_group_id);
                let (op, change) = self.multicast(kind, group).map_err(|refusal| refusal.about(&subject))?;
                Ok(PlannedUpdate { op, change, subject })
            }
            Some(Type::CloneSessionEntry(session)) => {
                let subject = format!("clone session {}", session.session_id);
                let (op, change) = self.clone_session(kind, session).map_err(|refusal| refusal.about(&subject))?;
                Ok(PlannedUpdate { op, change, subject })
            }
            None => Err(Refusal::invalid("the entry is neither a multicast group nor a clone session")),
        }
    }

    fn multicast(&self, kind: UpdateKind, group: &v1::MulticastGroupEntry) -> Result<(Op, ShadowChange), Refusal> {
        let id = group.multicast_group_id;
        if !(1..=MAX_16).contains(&id) {
            return Err(Refusal::invalid(format!("multicast_group_id must be between 1 and {MAX_16}")));
        }
        if kind == UpdateKind::Delete {
            return Ok((Op::DeleteMulticast(id), ShadowChange::DropMulticast(id)));
        }
        check_metadata(&group.metadata)?;
        let (replicas, kept) = self.replicas(&group.replicas)?;
        let made = MulticastGroup { replicas };
        let change = ShadowChange::PutMulticast(Box::new(v1::MulticastGroupEntry { replicas: kept, ..group.clone() }));
        Ok(match kind {
            UpdateKind::Insert => (Op::InsertMulticast(id, made), change),
            _ => (Op::ModifyMulticast(id, made), change),
        })
    }

    fn clone_session(&self, kind: UpdateKind, session: &v1::CloneSessionEntry) -> Result<(Op, ShadowChange), Refusal> {
        let id = session.session_id;
        if id == 0 {
            return Err(Refusal::invalid("session_id must be at least 1"));
        }
        if kind == UpdateKind::Delete {
            return Ok((Op::DeleteMirror(id), ShadowChange::DropClone(id)));
        }
        let max_bytes = match u32::try_from(session.packet_length_bytes) {
            Ok(0) => None,
            Ok(bytes) => Some(bytes),
            Err(_) => {
                return Err(Refusal::invalid(format!(
                    "packet_length_bytes is {}; it must be at least 0",
                    session.packet_length_bytes
                )));
            }
        };
        let class = u8::try_from(session.class_of_service).ok().filter(|class| usize::from(*class) < PRIORITIES);
        let class_of_service = class.ok_or_else(|| {
            let highest = PRIORITIES - 1;
            Refusal::invalid(format!("class_of_service is {}; the maximum is {highest}", session.class_of_service))
        })?;
        let (replicas, kept) = self.replicas(&session.replicas)?;
        let made = MirrorSession { replicas, group: None, max_bytes, class_of_service };
        let change = ShadowChange::PutClone(Box::new(v1::CloneSessionEntry { replicas: kept, ..session.clone() }));
        Ok(match kind {
            UpdateKind::Insert => (Op::InsertMirror(id, made), change),
            _ => (Op::ModifyMirror(id, made), change),
        })
    }

    /// Parses replicas. Also returns them in canonical form.
    fn replicas(&self, replicas: &[v1::Replica]) -> Result<(Vec<switch::Replica>, Vec<v1::Replica>), Refusal> {
        let copies = replicas.iter().map(|replica| 1 + replica.backup_replicas.len()).sum::<usize>();
        if copies > MAX_REPLICAS {
            return Err(Refusal::new(
                Code::ResourceExhausted,
                format!("{copies} replicas and backups; the limit is {MAX_REPLICAS}"),
            ));
        }
        let mut seen = BTreeSet::new();
        let mut unique = |port: u32, instance: u32| {
            if seen.insert((port, instance)) {
                Ok(())
            } else {
                Err(Refusal::invalid(format!("port {port} with instance {instance} is given twice")))
            }
        };
        let (mut made, mut kept) = (Vec::new(), Vec::new());
        for replica in replicas {
            let port = self.replica_port(replica.port_kind.as_ref())?;
            let port_kind = replica.port_kind.clone().map(canonical_port);
            let rid = instance(replica.instance)?;
            unique(port, replica.instance)?;
            let (mut backups, mut kept_backups) = (Vec::new(), Vec::new());
            for backup in &replica.backup_replicas {
                let number = self.port(&backup.port)?;
                let rid = instance(backup.instance)?;
                if number == port {
                    return Err(Refusal::invalid(format!("port {port} cannot be its own backup")));
                }
                unique(number, backup.instance)?;
                backups.push(Backup { port: PortId(number), rid });
                let port = bytestring::shortest(&backup.port);
                kept_backups.push(v1::BackupReplica { port, instance: backup.instance });
            }
            made.push(switch::Replica { backups, ..switch::Replica::new(port, rid) });
            kept.push(v1::Replica { instance: replica.instance, backup_replicas: kept_backups, port_kind });
        }
        Ok((made, kept))
    }

    /// Parses the port of a replica. In P4Runtime 1.3 and before, the port is a number, and 0 is not on the wire.
    #[expect(deprecated, reason = "clients of P4Runtime 1.3 number the port")]
    fn replica_port(&self, port: Option<&PortKind>) -> Result<u32, Refusal> {
        match port {
            Some(PortKind::EgressPort(port)) => self.known_port(*port).map(|()| *port),
            Some(PortKind::Port(bytes)) => self.port(bytes),
            None if self.ports.contains(&0) => Ok(0),
            None => Err(Refusal::invalid("a replica has no port, and the switch has no port 0, which may be left out")),
        }
    }

    fn port(&self, bytes: &[u8]) -> Result<u32, Refusal> {
        let port = bytestring::parse_u32(bytes).map_err(|error| Refusal::from(error).about("port"))?;
        self.known_port(port)?;
        Ok(port)
    }
}

/// Returns a port as reads return it.
fn canonical_port(port: PortKind) -> PortKind {
    match port {
        PortKind::Port(bytes) => PortKind::Port(bytestring::shortest(&bytes)),
        number => number,
    }
}

fn instance(instance: u32) -> Result<u16, Refusal> {
    u16::try_from(instance).map_err(|_| Refusal::invalid(format!("instance {instance} is above {MAX_16}")))
}
