//! Matches answers to requests (volume 1, sections 9.7.5.2 and 9.9.2).

use switch::Time;
use wire::roce::{Aeth, Extension, NakCode, Opcode, Packet, Psn, Syndrome, rnr_timer_ns};

use super::queue_pair::{QpState, RequesterQp};
use super::request::Work;
use super::{EndedRequests, EndedResult, FailureReason, RequesterConfig, RequesterCounts};
use crate::mutant::{Mutant, Mutation};

/// The parts of a requester that an answer uses, in addition to its queue pair.
pub(super) struct AnswerContext<'a> {
    pub now: Time,
    pub config: &'a RequesterConfig,
    pub counts: &'a mut RequesterCounts,
    pub ended: &'a mut EndedRequests,
    pub mutation: Mutation,
}

impl AnswerContext<'_> {
    /// Processes a packet whose integrity check and addresses are valid.
    #[inline]
    pub fn packet(&mut self, qp: &mut RequesterQp, packet: &Packet<&[u8]>) {
        if qp.state != QpState::Connected {
            self.counts.ghosts += 1;
            return;
        }
        match (packet.opcode(), packet.extension()) {
            (Opcode::ReadResponse(_), Extension::None) => self.part(qp, packet),
            (Opcode::ReadResponse(_), Extension::Aeth(Aeth { syndrome: Syndrome::Ack(_), .. })) => {
                self.part(qp, packet)
            }
            (Opcode::Acknowledge, Extension::Aeth(aeth)) => self.acknowledge(qp, packet.psn(), aeth.syndrome),
            (Opcode::AtomicAcknowledge, Extension::AtomicAckEth(aeth, original)) => match aeth.syndrome {
                Syndrome::Ack(_) => self.original(qp, packet.psn(), original),
                _ => self.counts.invalid += 1,
            },
            _ => self.counts.invalid += 1,
        }
    }

    /// Whether a number was sent and is not completed.
    fn is_awaited(&self, qp: &RequesterQp, psn: Psn) -> bool {
        if self.mutation.is(Mutant::NumbersCompared) {
            return (qp.oldest.number()..qp.sent.number()).contains(&psn.number());
        }
        psn.since(qp.oldest) < qp.sent.since(qp.oldest) || self.mutation.is(Mutant::GhostAckCounts)
    }

    fn deadline(&self) -> Time {
        self.now.after_ns(self.config.timeout_ns)
    }

    /// Ends the WRITEs at the head of the queue whose numbers are before `end`. Returns false if a request before `end`
    /// still lacks its answer, which is then lost: answers arrive in order.
    #[inline]
    fn complete_writes(&mut self, qp: &mut RequesterQp, end: Psn) -> bool {
        while qp.oldest != end {
            let Some(request) = qp.requests.front_mut() else { return true };
            let (done, left) = (end.since(qp.oldest), request.end().since(qp.oldest));
            if request.work.has_answer() {
                if !self.mutation.is(Mutant::AckCompletesReads) || done < left {
                    return false;
                }
                let (oldest, result) = (request.end(), EndedResult::Read(std::mem::take(&mut request.data)));
                qp.progress(oldest, self.deadline());
                self.end(qp, result);
            } else if done < left {
                request.done += done;
                // Acknowledged packets are not retransmitted.
                if qp.send_index == 0 {
                    qp.send_packet = qp.send_packet.max(request.done);
                }
                qp.progress(end, self.deadline());
            } else {
                let oldest = request.end();
                qp.progress(oldest, self.deadline());
                self.end(qp, EndedResult::Written);
            }
        }
        true
    }

    /// Ends the first request.
    #[inline]
    fn end(&mut self, qp: &mut RequesterQp, result: EndedResult) {
        let Some(request) = qp.pop() else { return };
        self.ended.push(qp.local.number, request.token, result);
        self.ended.recycle(request.data);
    }

    /// Retransmits requests whose answers are lost, as a later answer shows. It does so once until there is progress:
    /// more answers in flight show the same loss.
    fn imply_loss(&mut self, qp: &mut RequesterQp) {
        self.counts.implied_naks += 1;
        if !qp.is_recovering && !self.mutation.is(Mutant::LossUnnoticed) {
            self.retry(qp);
        }
    }

    fn retry(&mut self, qp: &mut RequesterQp) {
        if !qp.retry_after_nak(self.config.max_naks) {
            qp.fail(FailureReason::NoAnswer, self.ended);
        }
    }

    /// Whether the first request awaits an answer with exactly this number. Otherwise counts the reason; a later number
    /// is a sign of loss.
    #[inline]
    fn is_next(&mut self, qp: &mut RequesterQp, psn: Psn) -> bool {
        if self.mutation.is(Mutant::AnswerOfAnyNumber) {
            return qp.requests.front().is_some_and(|request| request.work.has_answer());
        }
        if !self.is_awaited(qp, psn) {
            self.counts.ghosts += 1;
            return false;
        }
        if !self.complete_writes(qp, psn) {
            self.imply_loss(qp);
            return false;
        }
        qp.oldest == psn && qp.requests.front().is_some_and(|request| request.work.has_answer())
    }

    /// Handles a part of the answer to a READ. It completes the WRITEs before the READ, too.
    #[inline]
    fn part(&mut self, qp: &mut RequesterQp, packet: &Packet<&[u8]>) {
        if !self.is_next(qp, packet.psn()) {
            return;
        }
        let (mtu, deadline) = (qp.path.mtu, self.deadline());
        let Some(request) = qp.requests.front_mut() else { return };
        let (Work::Read(range), Opcode::ReadResponse(position)) = (&request.work, packet.opcode()) else {
            self.counts.invalid += 1;
            return;
        };
        // A repeated READ requests only the rest, so its first packet may be any part. The length identifies the part,
        // and the last one is marked.
        let (payload, is_last) = (packet.payload(), request.done + 1 == request.packets);
        let is_fit = payload.len() == mtu.payload_of(request.done, range.len) && position.is_last() == is_last;
        if !is_fit && !self.mutation.is(Mutant::LengthUnchecked) {
            self.counts.invalid += 1;
            return;
        }
        if request.data.capacity() == 0 {
            request.data = self.ended.buffer();
            request.data.reserve_exact(range.len as usize);
        }
        request.data.extend_from_slice(payload);
        request.done += 1;
        let oldest = request.first.plus(request.done);
        let data = if is_last { std::mem::take(&mut request.data) } else { Vec::new() };
        qp.progress(oldest, deadline);
        if is_last {
            self.end(qp, EndedResult::Read(data));
        }
    }

    fn original(&mut self, qp: &mut RequesterQp, psn: Psn, original: u64) {
        if !self.is_next(qp, psn) {
            return;
        }
        let Some(request) = qp.requests.front() else { return };
        if request.work.atomic().is_none() {
            self.counts.invalid += 1;
            return;
        }
        let oldest = request.end();
        qp.progress(oldest, self.deadline());
        self.end(qp, EndedResult::Original(original));
    }

    fn acknowledge(&mut self, qp: &mut RequesterQp, psn: Psn, syndrome: Syndrome) {
        if !self.is_awaited(qp, psn) {
            self.counts.ghosts += 1;
            return;
        }
        match syndrome {
            Syndrome::Ack(_) => {
                if !self.complete_writes(qp, psn.plus(1)) {
                    self.imply_loss(qp);
                }
            }
            Syndrome::Nak(_) if self.mutation.is(Mutant::NakIgnored) => self.counts.naks += 1,
            Syndrome::Nak(NakCode::SequenceError) => {
                self.counts.naks += 1;
                self.complete_writes(qp, psn);
                // A responder reports a gap once. So the same number without progress is a duplicate of the packet.
                if qp.gap.replace(psn) != Some(psn) {
                    self.retry(qp);
                }
            }
            Syndrome::RnrNak(value) => {
                self.counts.naks += 1;
                self.complete_writes(qp, psn);
                qp.sends_from = Some(self.now.after_ns(rnr_timer_ns(value)));
                self.retry(qp);
            }
            Syndrome::Nak(code) => {
                self.counts.naks += 1;
                self.complete_writes(qp, psn);
                self.refused(qp, psn, code);
            }
            Syndrome::Reserved(_) => self.counts.invalid += 1,
        }
    }

    /// Ends the request with this number as refused and all others as flushed, in order.
    fn refused(&mut self, qp: &mut RequesterQp, psn: Psn, code: NakCode) {
        while qp.requests.front().is_some_and(|request| request.end().since(qp.oldest) <= psn.since(qp.oldest)) {
            self.end(qp, EndedResult::Failed(FailureReason::Flushed));
        }
        qp.fail(FailureReason::Refused(code), self.ended);
    }
}
