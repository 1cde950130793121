//! Translates value sets and digests (specification 9.6, 9.8).

use std::collections::BTreeSet;

use p4runtime_proto::v1;

use super::{EntityTranslator, PlannedUpdate, UpdateKind, encode_key, parse_matches, print_matches};
use crate::shadow::ShadowChange;
use crate::status::{Code, Refusal};
use crate::switch_ops::Op;

impl EntityTranslator<'_> {
    pub(super) fn value_set(&self, kind: UpdateKind, entry: &v1::ValueSetEntry) -> Result<PlannedUpdate, Refusal> {
        let set = self.schema.value_set(entry.value_set_id)?;
        let subject = format!("value set {}", set.name);
        let about = |refusal: Refusal| refusal.about(&subject);
        kind.must_modify("value sets").map_err(about)?;
        if entry.members.len() as u64 > set.size {
            let message = format!("{} members; the limit is {}", entry.members.len(), set.size);
            return Err(about(Refusal::new(Code::ResourceExhausted, message)));
        }
        let (mut members, mut kept, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        for member in &entry.members {
            let keys = parse_matches(&set.fields, &member.r#match).map_err(about)?;
            if !seen.insert(encode_key(&set.fields, &keys, 0)) {
                return Err(about(Refusal::new(Code::AlreadyExists, "a member is given twice")));
            }
            kept.push(v1::ValueSetMember { r#match: print_matches(&set.fields, &keys) });
            members.push(keys);
        }
        Ok(PlannedUpdate {
            op: Op::SetValueSet(set.ir, members),
            change: ShadowChange::PutValueSet(set.id, kept),
            subject,
        })
    }

    pub(super) fn digest(&mut self, kind: UpdateKind, entry: &v1::DigestEntry) -> Result<PlannedUpdate, Refusal> {
        let schema = self.schema;
        let digest = schema.digest(entry.digest_id)?;
        let subject = format!("digest {}", digest.name);
        let about = |refusal: Refusal| refusal.about(&subject);
        let enabled = self.overlay.digests.get(&digest.id).copied();
        let enabled = enabled.unwrap_or_else(|| self.shadow.digest(digest.id).is_some());
        let change = match (kind, enabled) {
            (UpdateKind::Insert, true) => {
                let message = "it is already enabled; use MODIFY to change its config";
                return Err(about(Refusal::new(Code::AlreadyExists, message)));
            }
            (UpdateKind::Modify | UpdateKind::Delete, false) => {
                return Err(about(Refusal::not_found("it is not enabled; use INSERT to enable it")));
            }
            (UpdateKind::Delete, true) => ShadowChange::DropDigest(digest.id),
            (UpdateKind::Insert | UpdateKind::Modify, _) => {
                if digest.ty.is_none() {
                    let message = "its messages are of a type that cannot be sent to a controller";
                    return Err(about(Refusal::unimplemented(message)));
                }
                let config = entry.config.ok_or_else(|| about(Refusal::invalid("its config is missing")))?;
                if config.max_timeout_ns < 0 || config.max_list_size < 0 || config.ack_timeout_ns < 0 {
                    return Err(about(Refusal::invalid("times and sizes must be at least 0")));
                }
                ShadowChange::PutDigest(digest.id, config)
            }
        };
        self.overlay.digests.insert(digest.id, kind != UpdateKind::Delete);
        Ok(PlannedUpdate { op: Op::Nothing, change, subject })
    }
}
