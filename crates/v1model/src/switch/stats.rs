//! Defines the counters of the architecture, beside those of ports, queues and drops.

use switch::{Registry, Stat};

/// The counters of the architecture. Users see their names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stats {
    pub ingress_clones: Stat,
    pub egress_clones: Stat,
    pub resubmitted: Stat,
    pub recirculated: Stat,
    pub replicated: Stat,
    pub replicas: Stat,
    pub digests: Stat,
    pub packets_in: Stat,
    pub lost_notifications: Stat,
    pub parser_errors: Stat,
}

impl Stats {
    pub fn new(registry: &mut Registry) -> Stats {
        let mut stat = |name: &str| registry.register(name);
        Stats {
            ingress_clones: stat("clone.ingress.packets"),
            egress_clones: stat("clone.egress.packets"),
            resubmitted: stat("resubmit.packets"),
            recirculated: stat("recirculate.packets"),
            replicated: stat("multicast.packets"),
            replicas: stat("multicast.replicas"),
            digests: stat("notification.digests"),
            packets_in: stat("notification.packets-in"),
            lost_notifications: stat("notification.lost"),
            parser_errors: stat("parser.errors"),
        }
    }
}
