//! Defines the control-plane model of v1model: the P4Info resources that its externs and table properties represent.

use p4info::{ControlPlaneModel, MatchKind, MatchType, Property, Resource};

use crate::description::{NAME, V1Model};

impl ControlPlaneModel for V1Model {
    fn architecture(&self) -> &str {
        NAME
    }

    fn resource(&self, object: &str) -> Option<Resource> {
        Some(match object {
            "action_profile" => Resource::ActionProfile { selector: false, size: "size" },
            "action_selector" => Resource::ActionProfile { selector: true, size: "size" },
            // Since version 20200408 arrays have a type argument for the index.
            "counter" => Resource::Counter { size: "size", unit: "type", index: 0 },
            "direct_counter" => Resource::DirectCounter { unit: "type" },
            "meter" => Resource::Meter { size: "size", unit: "type", index: 0 },
            "direct_meter" => Resource::DirectMeter { unit: "type" },
            "register" => Resource::Register { size: "size", index: 1 },
            _ => return None,
        })
    }

    fn property(&self, name: &str) -> Option<Property> {
        Some(match name {
            "implementation" => Property::Implementation,
            "counters" => Property::DirectCounter,
            "meters" => Property::DirectMeter,
            "support_timeout" => Property::IdleTimeout,
            _ => return None,
        })
    }

    fn is_digest(&self, function: &str) -> bool {
        function == "digest"
    }

    fn match_kind(&self, kind: &str) -> MatchKind {
        MatchKind::Standard(match kind {
            "exact" => MatchType::Exact,
            "lpm" => MatchType::Lpm,
            "ternary" => MatchType::Ternary,
            "range" => MatchType::Range,
            "optional" => MatchType::Optional,
            "selector" => return MatchKind::Hidden,
            _ => return MatchKind::Other,
        })
    }
}
