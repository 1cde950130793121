//! Handles completions of READs and WRITEs.

use super::operation::OperationId;
use super::{ElasticTable, MemoryToken, RecordBytes, Ticket};
use crate::layout::{AnswerContext, WindowAnswer};
use crate::lookups::LookupId;
use crate::mutant::ElasticMutant;
use crate::routes::{CopyId, LinkMeter};

/// Kinds of READs and WRITEs.
#[derive(Clone, Copy, Debug)]
pub(super) enum TicketKind {
    /// A part of a lookup.
    Read { lookup: LookupId, probe: usize, copy: CopyId, epoch: u64, home: u32 },
    /// A step of an operation.
    Step { operation: OperationId, step: usize },
    /// A block of a copy that fills.
    Block { copy: CopyId, epoch: u64 },
    /// A window that is rewritten.
    Repair { copy: CopyId, home: u32 },
}

/// Verdict on the answer to a READ.
enum ReadVerdict {
    Known(Option<RecordBytes>),
    Torn,
    Invalid,
}

impl<P> ElasticTable<P> {
    /// Handles the completion of a READ (its bytes) or WRITE (any bytes). An unknown token is ignored.
    pub fn completed(&mut self, token: MemoryToken, bytes: &[u8], links: &mut dyn LinkMeter) {
        let Some(ticket) = self.tickets.remove(token.0) else { return };
        match ticket.kind {
            TicketKind::Read { lookup, probe, copy, epoch, home } => {
                self.answered(lookup, probe, (copy, epoch, home), bytes, links);
            }
            TicketKind::Step { operation, step } => self.acknowledge(operation, step),
            TicketKind::Block { copy, epoch } => self.block_written(copy, epoch),
            TicketKind::Repair { copy, home } => self.fills.repaired(copy, home),
        }
    }

    /// Handles the failure of a READ or WRITE, such as a timeout or an error of the connection: its server is
    /// considered down until [`ElasticTable::server_up`]. An unknown token is ignored.
    pub fn failed(&mut self, token: MemoryToken, links: &mut dyn LinkMeter) {
        let Some(server) = self.tickets.get(token.0).map(|ticket| ticket.server) else { return };
        self.server_down(server, links);
    }

    /// Handles a READ or WRITE whose server is down.
    pub(super) fn lose(&mut self, ticket: Ticket, links: &mut dyn LinkMeter) {
        match ticket.kind {
            TicketKind::Read { lookup, probe, copy, .. } => self.retry(lookup, probe, copy, links),
            TicketKind::Step { operation, step } => self.acknowledge(operation, step),
            TicketKind::Block { .. } => {}
            TicketKind::Repair { copy, home } => self.fills.repaired(copy, home),
        }
    }

    fn answered(
        &mut self,
        lookup: LookupId,
        probe: usize,
        (copy, epoch, home): (CopyId, u64, u32),
        bytes: &[u8],
        links: &mut dyn LinkMeter,
    ) {
        let Some((_, state)) = self.lookups.get(lookup) else { return };
        let part = &mut state.probes[probe];
        let (secret, records) = (&self.secret, &self.config.records);
        let context = AnswerContext { secret, epoch, records, mutation: self.config.mutation };
        let verdict = match self.layout.parse(context, home, &part.key, bytes) {
            WindowAnswer::Hit(record) => ReadVerdict::Known(Some(RecordBytes::from_slice(record))),
            WindowAnswer::Miss => ReadVerdict::Known(None),
            WindowAnswer::Torn => ReadVerdict::Torn,
            WindowAnswer::Invalid => ReadVerdict::Invalid,
        };
        match verdict {
            ReadVerdict::Known(mut record) => {
                self.fills.read_valid(copy, self.config.limits.valid_reads);
                if self.config.mutation.is(ElasticMutant::ResolvedByParts)
                    && let Some(newer) = self.overlay.get(&part.key)
                {
                    record = newer.map(RecordBytes::from_slice);
                }
                part.result = Some(record);
                if state.probes.iter().all(|part| part.result.is_some()) {
                    self.resolve(lookup);
                }
            }
            ReadVerdict::Torn if part.reads <= self.config.limits.rereads => {
                self.counts.rereads += 1;
                self.read(lookup, probe, links);
            }
            ReadVerdict::Torn | ReadVerdict::Invalid => {
                // A failure of a copy that was replaced meanwhile does not count.
                if self.routes.copy(copy).is_some_and(|present| present.epoch == epoch && present.is_live) {
                    self.damaged(copy, home, links);
                    self.retry(lookup, probe, copy, links);
                } else {
                    self.read_again(lookup, probe, links);
                }
            }
        }
    }

    /// Reads from another copy.
    fn retry(&mut self, lookup: LookupId, probe: usize, failed: CopyId, links: &mut dyn LinkMeter) {
        let Some((_, state)) = self.lookups.get(lookup) else { return };
        let part = &mut state.probes[probe];
        if part.result.is_some() {
            return;
        }
        part.tried.push(failed);
        self.read_again(lookup, probe, links);
    }

    fn read_again(&mut self, lookup: LookupId, probe: usize, links: &mut dyn LinkMeter) {
        if let Some((_, state)) = self.lookups.get(lookup) {
            state.probes[probe].reads = 0;
            self.counts.retries += 1;
            self.read(lookup, probe, links);
        }
    }
}
