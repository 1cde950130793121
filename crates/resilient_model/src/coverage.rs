//! Counts the kinds of transitions in a search. A model that never moves a row would find no violation.

use std::sync::atomic::{AtomicU64, Ordering};

use resilient::StoreMessage;
use resilient::message::ReplyBody;

/// Numbers of transitions of each kind, so far.
#[derive(Debug, Default)]
pub struct Coverage {
    outputs: AtomicU64,
    grants: AtomicU64,
    recalls: AtomicU64,
    releases: AtomicU64,
    stale_writes: AtomicU64,
    layouts: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Coverage {
    /// Counts an output.
    pub(crate) fn saw_output(&self) {
        count(&self.outputs);
    }

    /// Counts a message that a switch has received and that had an effect.
    pub(crate) fn saw_message(&self, message: &StoreMessage, has_effect: bool) {
        let StoreMessage::Reply(reply) = message else { return };
        match reply.body {
            ReplyBody::Granted { .. } if has_effect => count(&self.grants),
            ReplyBody::Recall { .. } if has_effect => count(&self.recalls),
            ReplyBody::Released { .. } => count(&self.releases),
            ReplyBody::Stale { .. } => count(&self.stale_writes),
            _ => {}
        }
    }

    /// Counts a layout that is not the first.
    pub(crate) fn saw_layout(&self, epoch: u64) {
        if epoch > 1 {
            count(&self.layouts);
        }
    }

    /// Returns the counts, with their names.
    pub fn counts(&self) -> [(&'static str, u64); 6] {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("outputs", of(&self.outputs)),
            ("grants", of(&self.grants)),
            ("recalls", of(&self.recalls)),
            ("releases", of(&self.releases)),
            ("stale writes", of(&self.stale_writes)),
            ("changes of the chain", of(&self.layouts)),
        ]
    }
}
