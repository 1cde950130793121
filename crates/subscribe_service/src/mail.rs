//! What streams of the switch bring while the desk is busy.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::link::{Standing, Told};

/// What each stream brought last, and that another controller was primary before: a switch that says more than is listened
/// to fills no memory.
#[derive(Debug, Default)]
pub(crate) struct Mail(Mutex<BTreeMap<u64, Vec<Told>>>);

impl Mail {
    /// Takes something in; whether there was nothing of this stream yet.
    pub fn put(&self, stream: u64, told: Told) -> bool {
        let mut letters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = letters.entry(stream).or_default();
        let is_first = held.is_empty();
        // That another one was primary is not passed over: it may have changed what the switch holds.
        held.retain(|told| matches!(told, Told::Standing(Standing::Other(_))));
        held.drain(..held.len().saturating_sub(1));
        held.push(told);
        is_first
    }

    /// All of it, by stream, in the order in which it came.
    pub fn take(&self) -> Vec<(u64, Told)> {
        let letters = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        letters.into_iter().flat_map(|(of, all)| all.into_iter().map(move |told| (of, told))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_another_was_primary_is_heard_after_a_busy_time() {
        let mail = Mail::default();
        let other = |id| Told::Standing(Standing::Other(id));
        let primary = || Told::Standing(Standing::Primary);
        assert!(mail.put(1, primary()));
        for told in [other(5), Told::Standing(Standing::Nobody(5)), other(7), primary()] {
            assert!(!mail.put(1, told), "the desk was told already");
        }
        assert!(mail.put(2, primary()), "another stream");
        let heard: Vec<String> = mail.take().iter().map(|(stream, told)| format!("{stream}: {told:?}")).collect();
        assert_eq!(heard, ["1: Standing(Other(7))", "1: Standing(Primary)", "2: Standing(Primary)"]);
        // What was said before is bounded, and is said once.
        for id in 0..1000 {
            mail.put(1, other(id));
        }
        assert_eq!((mail.take().len(), mail.take().len()), (2, 0));
        assert!(mail.put(1, primary()));
    }
}
