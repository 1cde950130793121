//! Begins lookups, and ends them.

use smallvec::SmallVec;

use super::answer::TicketKind;
use super::{ElasticDrop, ElasticTable, LookupOutcome, RecordBytes, TableEffect};
use crate::keys::{KeyForm, ProbeKey};
use crate::lookups::{JoinOutcome, LookupId};
use crate::mutant::ElasticMutant;
use crate::routes::{CopyId, LinkMeter, RouteRefusal};

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
    /// Parts, the longest prefix first.
    pub probes: SmallVec<[LookupProbe; 1]>,
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
        self.begin_lookup(key, hash, packet, links);
        LookupStart::Waiting
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
        if self.overlay.is_empty() {
            return None;
        }
        for number in 0..self.config.keys.probes() {
            if let Some(record) = self.overlay.get(&self.config.keys.probe(key, number))? {
                return Some(LookupOutcome::Hit(RecordBytes::from_slice(record)));
            }
        }
        Some(LookupOutcome::Miss)
    }

    fn begin_lookup(&mut self, key: &[u8], hash: u64, packet: P, links: &mut dyn LinkMeter) {
        let is_exact = matches!(self.config.keys, KeyForm::Exact { .. });
        let probes = (0..self.config.keys.probes()).map(|number| {
            let key = self.config.keys.probe(key, number);
            let home = self.layout.home(if is_exact { hash } else { self.secret.key_hash(&key) });
            LookupProbe { key, home, result: None, reads: 0, tried: SmallVec::new() }
        });
        let state = LookupState { number: 0, hash, probes: probes.collect() };
        let probes = state.probes.len();
        let id = self.lookups.begin(hash, key, packet, LookupState { number: self.numbers.begin(), ..state });
        for probe in 0..probes {
            self.read(id, probe, links);
        }
    }

    /// Sends the READ of a part of a lookup, or ends the lookup if there is no copy to read.
    pub(super) fn read(&mut self, id: LookupId, probe: usize, links: &mut dyn LinkMeter) {
        let Some((_, state)) = self.lookups.get(id) else { return };
        let part = &mut state.probes[probe];
        let route = match self.routes.route(part.home, &part.tried, links) {
            Ok(route) => route,
            Err(refusal) => {
                let reason = match refusal {
                    RouteRefusal::LinkBusy => ElasticDrop::LinkBusy,
                    RouteRefusal::NoServer if part.tried.is_empty() => ElasticDrop::NoServer,
                    RouteRefusal::NoServer => ElasticDrop::NoAnswer,
                };
                return self.end_lookup(id, LookupOutcome::Dropped(reason));
            }
        };
        part.reads += 1;
        let home = part.home;
        let kind = TicketKind::Read { lookup: id, probe, copy: route.copy, epoch: route.epoch, home };
        let token = self.ticket(route.server, kind);
        self.counts.reads += 1;
        let bytes = self.layout.read_bytes();
        self.effects.push_back(TableEffect::Read { server: route.server, address: route.address, bytes, token });
    }

    /// Ends a lookup whose parts are all known. The overlay takes precedence for each part.
    pub(super) fn resolve(&mut self, id: LookupId) {
        let Some((key, state)) = self.lookups.get(id) else { return };
        let (key, hash) = (ProbeKey::from_slice(key), state.hash);
        let is_by_parts = self.config.mutation.is(ElasticMutant::ResolvedByParts);
        let mut found = None;
        for part in &state.probes {
            let remote = part.result.as_ref().and_then(Option::as_deref);
            let newer = if is_by_parts { None } else { self.overlay.get(&part.key) };
            if let Some(record) = newer.unwrap_or(remote) {
                found = Some(RecordBytes::from_slice(record));
                break;
            }
        }
        if self.config.mutation.is(ElasticMutant::AdmissionRace) {
            if let Some(record) = state.probes.iter().find_map(|part| part.result.clone().flatten()) {
                self.cache.offer(&key, hash, &record, &self.sketch);
            }
        } else if let Some(record) = &found {
            self.cache.offer(&key, hash, record, &self.sketch);
        }
        self.end_lookup(id, found.map_or(LookupOutcome::Miss, LookupOutcome::Hit));
    }

    /// Ends a lookup: all its packets get the outcome, in the order of their arrival.
    pub(super) fn end_lookup(&mut self, id: LookupId, outcome: LookupOutcome) {
        let Some((_, mut packets, state)) = self.lookups.finish(id) else { return };
        if self.config.mutation.is(ElasticMutant::MissOnce) && outcome == LookupOutcome::Miss {
            packets.truncate(1);
        }
        if self.config.mutation.is(ElasticMutant::AnswersReversed) {
            packets.make_contiguous().reverse();
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
