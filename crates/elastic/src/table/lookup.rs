//! Begins lookups, and ends them.

use smallvec::SmallVec;

use super::answer::TicketKind;
use super::{ElasticDrop, ElasticTable, LookupOutcome, RecordBytes, TableEffect};
use crate::keys::{KeyForm, ProbeKey};
use crate::lookups::{JoinOutcome, LookupId};
use crate::mutant::ElasticMutant;
use crate::routes::{CopyId, LinkMeter, ReadRoute, RouteRefusal};

/// Result of beginning a lookup.
#[derive(Debug, PartialEq, Eq)]
pub enum LookupStart<P> {
    /// The switch answers at once.
    Answered {
        /// The packet.
        packet: P,
        /// Its result.
        outcome: LookupOutcome,
    },
    /// The packet is kept. An answer follows as an effect.
    Waiting,
}

/// A part of a lookup: one READ at a time.
#[derive(Debug)]
pub(super) struct LookupProbe {
    pub key: ProbeKey,
    pub home: u32,
    /// The answer of remote memory: a record or none.
    pub result: Option<Option<RecordBytes>>,
    /// READs of the current copy.
    pub reads: u32,
    /// Copies that returned no valid answer.
    pub tried: SmallVec<[CopyId; 2]>,
}

/// A lookup in progress.
#[derive(Debug)]
pub(super) struct LookupState {
    /// Its number for the grace period.
    pub number: u64,
    /// Hash of the packet's key, for the sketch.
    pub hash: u64,
    /// Parts, the longest prefix first: one for each length in use that has cells.
    pub probes: SmallVec<[LookupProbe; 1]>,
}

/// The cell key of a part, and its record in remote memory.
type PartResult = (ProbeKey, Option<RecordBytes>);

/// Returns the outcome for a record or none.
fn found(record: Option<RecordBytes>) -> LookupOutcome {
    record.map_or(LookupOutcome::Miss, LookupOutcome::Hit)
}

/// Returns the reason for dropping a packet whose READ has no route, at the first attempt or a later one.
fn refused(refusal: RouteRefusal, is_first: bool) -> ElasticDrop {
    match refusal {
        RouteRefusal::LinkBusy => ElasticDrop::LinkBusy,
        RouteRefusal::NoServer if is_first => ElasticDrop::NoServer,
        RouteRefusal::NoServer => ElasticDrop::NoAnswer,
    }
}

impl<P> ElasticTable<P> {
    /// Looks up a key for a packet. The packet waits after others of its key, or is answered locally, or waits for a
    /// READ. Bytes are the fields of the key as [`crate::keys::KeyForm`] defines them.
    pub fn lookup(&mut self, key: &[u8], packet: P, links: &mut dyn LinkMeter) -> LookupStart<P> {
        if key.len() != self.config.keys.lookup_bytes() {
            let outcome = self.drop_reason(ElasticDrop::BadKey);
            return self.at_once(packet, outcome);
        }
        let hash = self.secret.key_hash(key);
        self.sketch.add(hash);
        if self.config.mutation.is(ElasticMutant::CachedOvertakes)
            && let Some(outcome) = self.local(key)
        {
            return LookupStart::Answered { packet, outcome };
        }
        let packet = match self.lookups.join(hash, key, packet) {
            JoinOutcome::Joined => return LookupStart::Waiting,
            JoinOutcome::Full(packet) => {
                let outcome = self.drop_reason(ElasticDrop::Full);
                return self.at_once(packet, outcome);
            }
            JoinOutcome::Absent(packet) => packet,
        };
        if let Some(outcome) = self.local(key) {
            self.counts.local += 1;
            return self.at_once(packet, outcome);
        }
        if !self.lookups.has_room() {
            let outcome = self.drop_reason(ElasticDrop::Full);
            return self.at_once(packet, outcome);
        }
        self.begin_lookup(key, hash, packet, links)
    }

    /// Answers a packet without waiting, but not before answers that are among the effects.
    fn at_once(&mut self, packet: P, outcome: LookupOutcome) -> LookupStart<P> {
        if self.answers == 0 {
            return LookupStart::Answered { packet, outcome };
        }
        self.push_answer(packet, outcome);
        LookupStart::Waiting
    }

    fn push_answer(&mut self, packet: P, outcome: LookupOutcome) {
        self.answers += 1;
        self.effects.push_back(TableEffect::Answer { packet, outcome });
    }

    /// Answers from the cache and the overlay, if they suffice.
    fn local(&self, key: &[u8]) -> Option<LookupOutcome> {
        if let Some(record) = self.cache.get(key) {
            return Some(LookupOutcome::Hit(RecordBytes::from_slice(record)));
        }
        if let KeyForm::Exact { .. } = self.config.keys {
            let record = self.overlay.get(key)?;
            return Some(found(record.map(RecordBytes::from_slice)));
        }
        for length in self.prefixes.used() {
            let record = match length.is_kept {
                true => self.prefixes.get(key, length.bits),
                false => self.overlay.get(&self.config.keys.masked(key, length.bits))?,
            };
            if let Some(record) = record {
                return Some(LookupOutcome::Hit(RecordBytes::from_slice(record)));
            }
        }
        Some(LookupOutcome::Miss)
    }

    /// Begins a lookup whose READs can all be made. Otherwise it makes none: those of a lookup that is dropped would
    /// take the rate of the links from others.
    fn begin_lookup(&mut self, key: &[u8], hash: u64, packet: P, links: &mut dyn LinkMeter) -> LookupStart<P> {
        let probe = |key: ProbeKey, hash| {
            let home = self.layout.home(hash);
            LookupProbe { key, home, result: None, reads: 0, tried: SmallVec::new() }
        };
        let probes: SmallVec<[LookupProbe; 1]> = match &self.config.keys {
            KeyForm::Exact { .. } => SmallVec::from_iter([probe(key.into(), hash)]),
            form @ KeyForm::Prefix { .. } => {
                let lengths = self.prefixes.used().iter().filter(|length| !length.is_kept);
                let keys = lengths.map(|length| form.masked(key, length.bits));
                keys.map(|key| probe(key.clone(), self.secret.key_hash(&key))).collect()
            }
        };
        if probes.len() > 1 {
            links.save();
        }
        let routes = probes.iter().map(|part| self.routes.route(part.home, &[], links));
        let routes: SmallVec<[ReadRoute; 1]> = match routes.collect() {
            Ok(routes) => routes,
            Err(refusal) => {
                if probes.len() > 1 {
                    links.restore();
                }
                let outcome = self.drop_reason(refused(refusal, true));
                return self.at_once(packet, outcome);
            }
        };
        let state = LookupState { number: self.numbers.begin(), hash, probes };
        let id = self.lookups.begin(hash, key, packet, state);
        for (probe, route) in routes.into_iter().enumerate() {
            self.send_read(id, probe, route);
        }
        LookupStart::Waiting
    }

    /// Sends the READ of a part of a lookup, or ends the lookup if there is no copy to read.
    pub(super) fn read(&mut self, id: LookupId, probe: usize, links: &mut dyn LinkMeter) {
        let Some((_, state)) = self.lookups.get(id) else { return };
        let part = &mut state.probes[probe];
        let route = match self.routes.route(part.home, &part.tried, links) {
            Ok(route) => route,
            Err(refusal) => {
                let reason = refused(refusal, part.tried.is_empty());
                return self.end_lookup(id, LookupOutcome::Dropped(reason));
            }
        };
        self.send_read(id, probe, route);
    }

    fn send_read(&mut self, id: LookupId, probe: usize, route: ReadRoute) {
        let Some((_, state)) = self.lookups.get(id) else { return };
        let part = &mut state.probes[probe];
        part.reads += 1;
        let home = part.home;
        let kind = TicketKind::Read { lookup: id, probe, copy: route.copy, epoch: route.epoch, home };
        let token = self.ticket(route.server, kind);
        self.counts.reads += 1;
        let bytes = self.layout.read_bytes();
        self.effects.push_back(TableEffect::Read { server: route.server, address: route.address, bytes, token });
    }

    /// Ends a lookup whose parts are all known. Each part is compared with what the switch knows now, so that the
    /// answer is that of one moment.
    pub(super) fn resolve(&mut self, id: LookupId) {
        let Some((key, state)) = self.lookups.get(id) else { return };
        let (key, hash) = (ProbeKey::from_slice(key), state.hash);
        let parts = state.probes.iter_mut();
        let results: SmallVec<[PartResult; 1]> =
            parts.map(|part| (std::mem::take(&mut part.key), part.result.take().flatten())).collect();
        let record = self.current(&key, &results);
        if self.config.mutation.is(ElasticMutant::AdmissionRace) {
            if let Some(record) = results.iter().find_map(|(_, record)| record.as_ref()) {
                self.cache.offer(&key, hash, record, &self.sketch);
            }
        } else if let Some(record) = &record {
            self.cache.offer(&key, hash, record, &self.sketch);
        }
        self.end_lookup(id, found(record));
    }

    /// Returns the record that a key has now. `results` are those of remote memory for its cell keys, from the time
    /// since its lookup began.
    fn current(&self, key: &[u8], results: &[PartResult]) -> Option<RecordBytes> {
        if let KeyForm::Exact { .. } = self.config.keys {
            return results.iter().find_map(|(key, remote)| self.newest(key, remote.as_ref()));
        }
        if self.config.mutation.is(ElasticMutant::KeptPrefixWins) {
            let mut kept = self.prefixes.used().iter().filter(|length| length.is_kept);
            if let Some(record) = kept.find_map(|length| self.prefixes.get(key, length.bits)) {
                return Some(RecordBytes::from_slice(record));
            }
        }
        self.prefixes.used().iter().find_map(|length| {
            if length.is_kept {
                return self.prefixes.get(key, length.bits).map(RecordBytes::from_slice);
            }
            let cell = self.config.keys.masked(key, length.bits);
            // If a length came into use after the lookup began, its prefixes stay in the overlay until the lookup ends.
            let result = results.iter().find(|(key, _)| *key == cell);
            if result.is_none() && self.config.mutation.is(ElasticMutant::LengthsOfTheStart) {
                return None;
            }
            self.newest(&cell, result.and_then(|(_, record)| record.as_ref()))
        })
    }

    /// Returns the record of a cell key: that of the overlay, which takes precedence, or of remote memory.
    fn newest(&self, key: &[u8], remote: Option<&RecordBytes>) -> Option<RecordBytes> {
        let is_by_parts = self.config.mutation.is(ElasticMutant::ResolvedByParts);
        match self.overlay.get(key).filter(|_| !is_by_parts) {
            Some(newer) => newer.map(RecordBytes::from_slice),
            None => remote.cloned(),
        }
    }

    /// Ends a lookup: all its packets get the outcome, in the order of their arrival.
    pub(super) fn end_lookup(&mut self, id: LookupId, outcome: LookupOutcome) {
        let Some((_, mut packets, state)) = self.lookups.finish(id) else { return };
        if self.config.mutation.is(ElasticMutant::MissOnce) && outcome == LookupOutcome::Miss {
            packets.truncate(1);
        }
        if self.config.mutation.is(ElasticMutant::AnswersReversed) {
            packets.reverse();
        }
        if let LookupOutcome::Dropped(reason) = outcome {
            self.counts.dropped[reason as usize] += packets.len() as u64;
        }
        for packet in packets {
            self.push_answer(packet, outcome.clone());
        }
        self.numbers.end(state.number);
        self.overlay.retire(self.numbers.oldest());
    }
}
