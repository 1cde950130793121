//! Hashes all state that determines a node's behaviour, so that a model checker recognizes equal states.

use std::hash::{Hash, Hasher};

use super::StoreNode;

impl Hash for StoreNode {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        // A new field must be hashed, or listed here with the reason. Random numbers name copies and seed hashes; their
        // values do not matter.
        let StoreNode { config, me, layout, random: _, shards, outbox } = self;
        assert!(!config.is_durable && outbox.is_empty(), "the effects belong to the state, too");
        (me, layout, shards).hash(hasher);
    }
}
