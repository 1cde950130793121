//! Events of the streams to the switch, between the tasks that receive them and the thread that handles them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use p4runtime_client::Mastership;

use crate::switch_client::SwitchEvent;

/// The events of each stream that are not handled yet: the last one, and the last report before it that another
/// controller was primary. Memory is bounded, however many events a switch sends.
#[derive(Debug, Default)]
pub(crate) struct ArbitrationInbox(Mutex<BTreeMap<u64, Vec<SwitchEvent>>>);

impl ArbitrationInbox {
    /// Adds an event of a stream. Returns whether it is the first one that waits, so the thread has to be woken.
    pub fn put(&self, stream: u64, event: SwitchEvent) -> bool {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = streams.entry(stream).or_default();
        let is_first = waiting.is_empty();
        // A change of the primary is never dropped: the other controller may have changed the forwarding state.
        waiting.retain(|event| matches!(event, SwitchEvent::Mastership(Mastership::Backup { .. })));
        waiting.drain(..waiting.len().saturating_sub(1));
        waiting.push(event);
        is_first
    }

    /// Takes all events, by stream, in order of arrival.
    pub fn take(&self) -> Vec<(u64, SwitchEvent)> {
        let streams = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut events = Vec::new();
        for (stream, waiting) in streams {
            events.extend(waiting.into_iter().map(|event| (stream, event)));
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_the_primary_survives_a_busy_time() {
        let inbox = ArbitrationInbox::default();
        let other = |id| SwitchEvent::Mastership(Mastership::Backup { election_id: Some(id) });
        let primary = || SwitchEvent::Mastership(Mastership::Primary { election_id: 9 });
        let vacant = || SwitchEvent::Mastership(Mastership::NoPrimary { highest: Some(5) });
        assert!(inbox.put(1, primary()));
        for event in [other(5), vacant(), other(7), primary()] {
            assert!(!inbox.put(1, event), "the thread was woken already");
        }
        assert!(inbox.put(2, primary()), "another stream");
        assert_eq!(inbox.take(), [(1, other(7)), (1, primary()), (2, primary())]);
        // Earlier events are bounded, and are handled once.
        for id in 0..1000 {
            inbox.put(1, other(id));
        }
        assert_eq!((inbox.take().len(), inbox.take().len()), (2, 0));
        assert!(inbox.put(1, primary()));
    }
}
