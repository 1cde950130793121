//! Determines the access rights of a role from its configuration.
//!
//! The specification leaves the format of `role.config` to an agreement between controllers and server (section 5.2).
//! This server accepts one: `stratum.P4RoleConfig`, the message that the Stratum switch defined and controllers such
//! as finsy send. Without a configuration a role has access to everything.

use std::collections::BTreeSet;

use p4runtime_proto::prost::{self, Message};
use p4runtime_proto::v1;

use crate::status::{Code, Refusal};

/// Maximum size of a configuration, in bytes: room for thousands of ids. It is kept and sent to every stream of its
/// role.
const MAX_CONFIG_BYTES: usize = 16 << 10;
/// The name at the end of the type URL.
const STRATUM: &str = "stratum.P4RoleConfig";

/// `stratum.P4RoleConfig`.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(prost_path = "::p4runtime_proto::prost")]
struct RoleConfig {
    /// Ids that this role may write and no other role, as long as this one has a controller.
    #[prost(uint32, repeated, tag = "1")]
    exclusive_p4_ids: Vec<u32>,
    /// Ids that this role may write.
    #[prost(uint32, repeated, tag = "2")]
    shared_p4_ids: Vec<u32>,
    /// The filter of packets that the role receives. Without one it receives all.
    #[prost(message, optional, tag = "3")]
    packet_in_filter: Option<PacketFilter>,
    /// Whether the role receives packets.
    #[prost(bool, tag = "4")]
    receives_packet_ins: bool,
    /// Whether the role may set the pipeline.
    #[prost(bool, tag = "5")]
    can_push_pipeline: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
#[prost(prost_path = "::p4runtime_proto::prost")]
struct PacketFilter {
    #[prost(uint32, tag = "1")]
    metadata_id: u32,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// The rights of a role to write, read and receive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoleAccess {
    limits: Option<RoleLimits>,
}

#[derive(Clone, Debug, PartialEq)]
struct RoleLimits {
    /// The ids that the role may write, alone or with others.
    ids: BTreeSet<u32>,
    /// The ids among them that no other role may write.
    exclusive: BTreeSet<u32>,
    packet_in: bool,
    filter: Option<(u32, Vec<u8>)>,
    pipeline: bool,
}

impl RoleAccess {
    /// Returns the rights that a configuration grants.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a configuration in another format.
    pub fn of(config: Option<&prost_types::Any>) -> Result<RoleAccess, Refusal> {
        let Some(any) = config else { return Ok(RoleAccess::default()) };
        if any.type_url.rsplit('/').next() != Some(STRATUM) {
            return Err(Refusal::invalid(format!(
                "role.config is a `{}`; send a `{STRATUM}`, or no config for access to everything",
                any.type_url
            )));
        }
        if any.value.len() > MAX_CONFIG_BYTES {
            return Err(Refusal::new(
                Code::ResourceExhausted,
                format!("role.config has {} bytes; the limit is {MAX_CONFIG_BYTES}", any.value.len()),
            ));
        }
        let config = RoleConfig::decode(&*any.value)
            .map_err(|error| Refusal::invalid(format!("role.config is not a {STRATUM}: {error}")))?;
        let ids = config.exclusive_p4_ids.iter().copied().chain(config.shared_p4_ids).collect();
        Ok(RoleAccess {
            limits: Some(RoleLimits {
                ids,
                exclusive: config.exclusive_p4_ids.into_iter().collect(),
                packet_in: config.receives_packet_ins,
                filter: config.packet_in_filter.map(|filter| (filter.metadata_id, filter.value)),
                pipeline: config.can_push_pipeline,
            }),
        })
    }

    /// Whether the role may write and read the object with this P4Info id. Replication has no id (`None`) and
    /// requires a role without limits.
    pub fn allows(&self, id: Option<u32>) -> bool {
        self.limits.as_ref().is_none_or(|limits| id.is_some_and(|id| limits.ids.contains(&id)))
    }

    /// Returns the ids that no other role may write.
    pub fn exclusive_ids(&self) -> impl Iterator<Item = u32> {
        self.limits.iter().flat_map(|limits| limits.exclusive.iter().copied())
    }

    /// Returns an id that one of two roles claims exclusively and the other one lists too, if there is one.
    pub fn conflict(&self, other: &RoleAccess) -> Option<u32> {
        let (Some(one), Some(other)) = (&self.limits, &other.limits) else { return None };
        let conflict = |one: &RoleLimits, other: &RoleLimits| one.exclusive.intersection(&other.ids).next().copied();
        conflict(one, other).or_else(|| conflict(other, one))
    }

    /// Whether the role may set the pipeline.
    pub fn may_push_pipeline(&self) -> bool {
        self.limits.as_ref().is_none_or(|limits| limits.pipeline)
    }

    /// Whether the role may send and receive packets.
    pub fn has_packets(&self) -> bool {
        self.limits.as_ref().is_none_or(|limits| limits.packet_in)
    }

    /// Whether the role receives a packet with this metadata.
    pub fn receives(&self, metadata: &[v1::PacketMetadata]) -> bool {
        let Some(limits) = &self.limits else { return true };
        let passes = |(id, value): &(u32, Vec<u8>)| {
            metadata
                .iter()
                .any(|field| field.metadata_id == *id && field.value == p4runtime_proto::bytestring::shortest(value))
        };
        limits.packet_in && limits.filter.as_ref().is_none_or(passes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(url: &str, config: &RoleConfig) -> prost_types::Any {
        prost_types::Any { type_url: url.to_owned(), value: config.encode_to_vec() }
    }

    #[test]
    fn without_a_config_everything_is_allowed_and_with_one_what_it_lists() {
        let all = RoleAccess::of(None).unwrap();
        assert!(all.allows(Some(7)) && all.allows(None) && all.may_push_pipeline() && all.receives(&[]));
        let config = RoleConfig {
            exclusive_p4_ids: vec![1],
            shared_p4_ids: vec![2],
            receives_packet_ins: true,
            packet_in_filter: Some(PacketFilter { metadata_id: 1, value: vec![0, 5] }),
            ..Default::default()
        };
        let some = RoleAccess::of(Some(&any("type.googleapis.com/stratum.P4RoleConfig", &config))).unwrap();
        assert!(some.allows(Some(1)) && some.allows(Some(2)) && !some.allows(Some(3)) && !some.allows(None));
        assert!(!some.may_push_pipeline());
        let metadata = |value: u8| [v1::PacketMetadata { metadata_id: 1, value: vec![value] }];
        assert!(some.receives(&metadata(5)) && !some.receives(&metadata(6)) && !some.receives(&[]));
    }

    #[test]
    fn exclusive_ids_conflict_with_any_claim_of_another_role() {
        let access = |exclusive: &[u32], shared: &[u32]| {
            let (exclusive_p4_ids, shared_p4_ids) = (exclusive.to_vec(), shared.to_vec());
            let config = RoleConfig { exclusive_p4_ids, shared_p4_ids, ..Default::default() };
            RoleAccess::of(Some(&any("type.googleapis.com/stratum.P4RoleConfig", &config))).unwrap()
        };
        let one = access(&[1, 2], &[3]);
        assert_eq!(one.exclusive_ids().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(one.conflict(&access(&[2], &[])), Some(2));
        assert_eq!(one.conflict(&access(&[], &[1])), Some(1));
        assert_eq!(one.conflict(&access(&[3], &[])), Some(3));
        assert_eq!(one.conflict(&access(&[4], &[3])), None);
        assert_eq!(one.conflict(&RoleAccess::default()), None);
    }

    #[test]
    fn other_forms_of_config_are_refused() {
        let refused = RoleAccess::of(Some(&any("type.googleapis.com/my.Config", &RoleConfig::default()))).unwrap_err();
        assert_eq!(refused.code, crate::Code::InvalidArgument);
        let broken = prost_types::Any { type_url: format!("x/{STRATUM}"), value: vec![0xff] };
        assert!(RoleAccess::of(Some(&broken)).is_err());
    }
}
