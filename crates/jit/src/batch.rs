//! Runs batches of packets in one call, with the per-call setup shared by all of them.

use std::marker::PhantomData;

use engine::{Colour, Now, Objects};
use ir::SlotId;

use crate::host::Host;
use crate::in_place::InPlacePacket;
use crate::layout::word;
use crate::native::{BatchLoop, NativeProgram, UnitOutcome, outcome};
use crate::packet::{DeferredRequest, Packet, out};
use crate::scout::{self, BATCH, ERROR, PrefetchState, RESULTS, Row, Rows, SPECIAL, STEP};
use crate::waiting::WaitingRequests;

/// Packets that a fresh unit processes one after the other.
///
/// Packets are [added](Batch::push), then [run](Batch::run). Afterwards, the output position and the unit's results of
/// each packet are available by its index in the batch.
#[derive(Debug)]
pub struct Batch<'a> {
    compiled: &'a NativeProgram,
    code: &'a BatchLoop,
    packet: &'a mut Packet,
    /// Rows, whose memory otherwise belongs to the packet: see [`crate::scout`].
    rows: Vec<Row>,
    prefetch: Vec<u64>,
    /// State of the prefetch memory that is the same for all packets.
    prepared: Option<PrefetchState>,
    /// The [`Objects::revision`] for which the keys of the packets have been looked up.
    looked_up: Option<u64>,
    unit: usize,
    /// Number of packets, and number of packets that have run.
    count: usize,
    done: usize,
    /// Whether the frame holds the complete state of the packet that ran last.
    stopped: bool,
    _buffers: PhantomData<&'a mut [u8]>,
}

/// Result of a call of [`Batch::run`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Packets that completed: each leaves from its [buffer](FinishedPacket::output_start) or was dropped.
    pub done: std::ops::Range<usize>,
    /// Whether the batch stopped at the packet after them, which needs more work.
    pub stopped: bool,
}

impl NativeProgram {
    /// Creates an empty batch for a fresh unit. `packet` provides the frame and loses its previous contents.
    ///
    /// # Panics
    /// Panics if there is no such unit, it is not fresh or has no results, or `packet` belongs to another program.
    pub fn batch<'a>(&'a self, unit: usize, packet: &'a mut Packet) -> Batch<'a> {
        assert!(std::sync::Arc::ptr_eq(self.template(), packet.template()), "the packet was made by this program");
        let code = self.batches(unit).expect("a fresh unit with results runs on batches");
        packet.reset_inputs(Vec::new(), 0);
        packet.given.clear();
        packet.deferred.clear();
        packet.waiting.clear();
        let (mut rows, mut prefetch) = (std::mem::take(&mut packet.rows), std::mem::take(&mut packet.prefetch));
        rows.resize(BATCH, Row::default());
        prefetch.resize(code.prefetch.words, 0);
        let prepared = packet.prepared.take();
        Batch {
            compiled: self,
            code,
            packet,
            rows,
            prefetch,
            prepared,
            looked_up: None,
            unit,
            count: 0,
            done: 0,
            stopped: false,
            _buffers: PhantomData,
        }
    }
}

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// Prefetches the first cache line of a packet, which code reads once all packets have been added.
#[inline(always)]
fn ask_for_line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint. It reads nothing visible to the program and does not fault at any address; SSE,
        // which it needs, is part of x86_64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Records in a row where a packet lies.
#[inline(always)]
fn arrive(row: &mut Row, buffer: &mut [u8], start: usize) {
    let length = buffer.len().checked_sub(start).expect("packets begin within their buffers");
    let first = buffer.as_ptr().wrapping_add(start);
    ask_for_line(first);
    ask_for_line(first.wrapping_add(LINE - 1));
    let base = buffer.as_mut_ptr() as u64;
    row.packet = base + start as u64;
    row.length = length as u64;
    row.buffer = base;
}

impl<'a> Batch<'a> {
    /// Sets a slot of up to 64 bits to a number, truncated to the slot's width, for all packets. The slot is one of the
    /// plan's given slots.
    ///
    /// # Panics
    /// Panics if the batch has begun to run.
    #[inline]
    pub fn set_slot_to(&mut self, slot: SlotId, value: u64) {
        assert_eq!(self.done, 0, "slots are set before packets run");
        self.packet.set_slot_to(slot, value);
    }

    /// Adds the packet that begins `start` bytes into `buffer` and ends with it; the bytes before it are headroom.
    /// Returns the packet's index.
    ///
    /// # Panics
    /// Panics if there are 32 packets, the batch has begun to run, or `start` is beyond the buffer.
    #[inline]
    pub fn push(&mut self, buffer: &'a mut [u8], start: usize) -> usize {
        let number = self.count;
        self.extend(std::iter::once((buffer, start)));
        number
    }

    /// Adds packets like repeated calls of [`Batch::push`].
    ///
    /// # Panics
    /// As [`Batch::push`].
    #[inline]
    pub fn extend(&mut self, buffers: impl Iterator<Item = (&'a mut [u8], usize)>) {
        assert_eq!(self.done, 0, "packets are added before the first runs");
        let rows: &mut Rows = self.rows.first_chunk_mut().expect("there are rows for a batch");
        let mut count = self.count;
        for (buffer, start) in buffers {
            arrive(rows.get_mut(count).expect("a batch has room for 32 packets"), buffer, start);
            count += 1;
        }
        self.count = count;
    }

    /// Returns the number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the batch has no packets.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Runs packets in order until all are done or one stops. The caller handles a stopped packet through
    /// [`Batch::stopped`] before the next call, which continues after it.
    pub fn run(&mut self, objects: &mut Objects, now: Now) -> Progress {
        // The tables may have changed since the last call, so prefetched results may be stale.
        let BatchLoop { prefetch, .. } = self.code;
        let how = (self.unit, self.compiled.near_bytes());
        let prepared = scout::prepare(prefetch, &mut self.prefetch, how, self.prepared.take(), objects);
        self.prepared = Some(prepared);
        self.discard_stopped();
        if prepared.needs_bulk_lookup && self.looked_up != Some(prepared.revision) {
            self.look_ahead(objects, now);
            self.looked_up = Some(prepared.revision);
        }
        let code = self.code.code;
        if self.packet.given.is_empty() {
            let given = self.packet.given_words();
            self.packet.given.extend_from_slice(&self.packet.frame[given]);
        }
        let first = self.done;
        // Colours belong to one packet.
        let step = if self.packet.colours.is_empty() { BATCH } else { 1 };
        while self.done < self.count && !self.stopped {
            let (from, to) = (self.done, self.count.min(self.done + step));
            // SAFETY: the code was generated for a validated program and memory of this layout. It writes to the frame
            // and the prefetch memory, to the packets at the addresses in their rows, and to the objects that the host
            // lends; all of it is borrowed exclusively during the call. There is at least one packet, and no more
            // packets than rows.
            let at = self.host(objects, now, |frame, rows, prefetch| unsafe {
                code(frame, rows, prefetch, rows.add(from), rows.add(to)).offset_from_unsigned(rows)
            });
            self.stopped = at < to;
            self.done = at + usize::from(self.stopped);
            if !self.packet.colours.is_empty() && !self.stopped {
                self.packet.colours.fill(Colour::Green);
            }
        }
        objects.settle_inline_uses();
        self.packet.primed = self.stopped;
        Progress { done: first..self.done - usize::from(self.stopped), stopped: self.stopped }
    }

    /// Exchanges the digests and truncations that packets requested since the last call, in the order of the packets,
    /// for an empty list. Those of a packet at which the batch stopped are among them.
    #[inline]
    pub fn take_deferred(&mut self, into: &mut Vec<DeferredRequest>) {
        into.clear();
        if !self.packet.deferred.is_empty() {
            std::mem::swap(&mut self.packet.deferred, into);
        }
    }

    /// Exchanges the requests that packets set aside since the last call, in the order of the packets, for an empty
    /// list. Those of a packet at which the batch stopped are among them.
    #[inline]
    pub fn take_waiting(&mut self, into: &mut WaitingRequests) {
        into.clear();
        if !self.packet.waiting.is_empty() {
            std::mem::swap(&mut self.packet.waiting, into);
        }
    }

    /// Returns the buffer of a packet that has run, and the offset at which the incoming packet began.
    ///
    /// # Panics
    /// Panics if the packet has not run, or the batch stopped at it.
    pub fn buffer(&mut self, number: usize) -> (&mut [u8], usize) {
        assert!(number < self.done - usize::from(self.stopped), "the packet has run");
        let (base, start) = (self.rows[number].buffer, self.finished(number).input_start());
        // SAFETY: the row is that of a packet of this batch, so the buffer is borrowed exclusively for as long as the
        // batch lives, and no code runs on it again.
        let buffer = unsafe { std::slice::from_raw_parts_mut(base as *mut u8, self.finished(number).room()) };
        (buffer, start)
    }

    /// Runs the key-prefetch pass and the bulk lookups for the packets that have not run yet.
    fn look_ahead(&mut self, objects: &mut Objects, now: Now) {
        let BatchLoop { scout, follow, prefetch, .. } = self.code;
        let (Some(scout), count) = (scout, self.count) else { return };
        if self.done == count {
            return;
        }
        scout::clear_results(prefetch, &mut self.prefetch, self.done);
        let is_new = self.done == 0;
        if is_new {
            self.host(objects, now, |frame, rows, prefetch| {
                // SAFETY: the code was generated for a validated program and memory of this layout, in which the rows
                // of all these packets are filled. It reads the packets, the frame, the host's objects and the table
                // memory that the prefetch memory points to, and writes only to the prefetch memory; all of it is
                // borrowed exclusively during the call.
                unsafe { scout(frame, rows, prefetch, count) };
            });
        }
        let mut goes_on = scout::look_up(prefetch, &mut self.prefetch, self.done, count, objects) && is_new;
        for _ in 0..prefetch.rounds {
            let Some(follow) = follow.filter(|_| goes_on) else { return };
            // SAFETY: as above.
            self.host(objects, now, |frame, rows, prefetch| unsafe { follow(frame, rows, prefetch, count) });
            goes_on = scout::look_up_round(prefetch, &mut self.prefetch, count, objects);
        }
    }

    /// Runs code with frame, rows, prefetch memory and host set up.
    #[inline(always)]
    fn host<R>(&mut self, objects: &mut Objects, now: Now, work: impl FnOnce(*mut u64, *mut Row, *mut u64) -> R) -> R {
        objects.advance_clock(now.ns);
        let packet: *mut Packet = self.packet;
        // SAFETY: the packet is borrowed exclusively, and only its frame is otherwise used while code runs.
        let mut host = unsafe { Host::new(self.compiled.template(), packet, objects, now.ns) };
        if let Some(arrays) = &self.compiled.template().layout.arrays {
            arrays.prepare(&mut self.packet.frame, host.objects);
        }
        if let Some(aging) = &self.compiled.template().layout.aging {
            aging.prepare(&mut self.packet.frame, host.objects, now.ns);
        }
        let frame = self.packet.frame.as_mut_ptr();
        // SAFETY: frames begin with control words.
        unsafe {
            frame.add(word::HOST).write(&raw mut host as u64);
            frame.add(word::NOW_US).write(now.ns / 1000);
        }
        work(frame, self.rows.as_mut_ptr(), self.prefetch.as_mut_ptr())
    }

    /// Clears the state that a stopped packet left behind.
    fn discard_stopped(&mut self) {
        if std::mem::take(&mut self.stopped) {
            self.packet.clear_previous_packet();
            let given = self.packet.given_words();
            self.packet.frame[given].copy_from_slice(&self.packet.given);
        }
    }

    /// Returns the result of a packet that has run.
    ///
    /// # Panics
    /// Panics if there is no such packet.
    #[inline(always)]
    pub fn finished(&self, number: usize) -> FinishedPacket<'_> {
        let rows: &Rows = self.rows.first_chunk().expect("there are rows for a batch");
        FinishedPacket { row: &rows[number], frame: &self.packet.frame }
    }

    /// Returns the results of several packets in order.
    ///
    /// # Panics
    /// Panics if there are no such packets.
    #[inline]
    pub fn finished_all(&self, numbers: std::ops::Range<usize>) -> impl Iterator<Item = FinishedPacket<'_>> {
        self.rows[numbers].iter().map(|row| FinishedPacket { row, frame: &self.packet.frame })
    }

    /// Copies a packet that leaves from within its buffer, once it has run; `None` for others.
    pub fn output_copy(&self, number: usize) -> Option<Vec<u8>> {
        let ended = self.finished(number);
        let start = ended.output_start().filter(|_| number < self.done)?;
        let (base, end) = (ended.row.buffer, ended.row.packet + ended.row.length);
        // SAFETY: the row is that of a packet of this batch, so the buffer is borrowed exclusively for as long as the
        // batch lives, and no code runs on it now.
        let buffer = unsafe { std::slice::from_raw_parts(base as *const u8, (end - base) as usize) };
        Some(buffer[start..].to_vec())
    }

    /// Returns the packet at which the batch stopped.
    ///
    /// # Panics
    /// Panics if the batch did not stop.
    pub fn stopped(&mut self) -> InPlacePacket<'_> {
        assert!(self.stopped, "the batch stopped at a packet");
        let row = &self.rows[self.done - 1];
        self.packet.frame[word::RESULTS..word::RESULTS + RESULTS].copy_from_slice(&row.results);
        let start = (row.packet - row.buffer) as usize;
        InPlacePacket {
            compiled: self.compiled,
            packet: self.packet,
            base: row.buffer as *mut u8,
            len: start + row.length as usize,
            start,
            primed: true,
            stays: true,
            _buffer: PhantomData,
        }
    }
}

impl Drop for Batch<'_> {
    /// Removes all pointers into the buffers.
    #[inline]
    fn drop(&mut self) {
        self.packet.take_data();
        self.packet.clear_previous_packet();
        self.packet.rows = std::mem::take(&mut self.rows);
        self.packet.prefetch = std::mem::take(&mut self.prefetch);
        self.packet.prepared = self.prepared.take();
    }
}

/// The result of a packet of a batch.
#[derive(Clone, Copy, Debug)]
pub struct FinishedPacket<'b> {
    row: &'b Row,
    frame: &'b [u64],
}

impl FinishedPacket<'_> {
    /// Returns the way in which the unit ended.
    #[inline(always)]
    pub fn outcome(&self) -> UnitOutcome {
        let ended = self.row.ended;
        outcome(ended & 0xff, usize::from((ended >> STEP) as u16), || self.frame[word::BLAME] as u32)
    }

    /// Whether code specialised for the packet's path through the parser, with fixed header offsets, processed it to
    /// the end. It affects timing only.
    pub fn is_special(&self) -> bool {
        self.row.ended & SPECIAL != 0
    }

    /// Returns the low 64 bits of a result, by the index of its slot in the unit's list.
    ///
    /// # Panics
    /// Panics if the index is [`RESULTS`](crate::RESULTS) or more.
    #[inline(always)]
    pub fn result(&self, result: usize) -> u64 {
        self.row.results[result]
    }

    /// Returns the parser's error, an index into [`ir::Program::errors`].
    #[inline(always)]
    pub fn parser_error(&self) -> u32 {
        (self.row.ended >> ERROR) as u32
    }

    /// Returns the length of the incoming packet in bytes.
    #[inline(always)]
    pub fn length(&self) -> usize {
        self.row.length as usize
    }

    /// Returns the offset in the buffer at which the incoming packet began.
    #[inline(always)]
    pub fn input_start(&self) -> usize {
        (self.row.packet - self.row.buffer) as usize
    }

    /// Returns the size of the packet's buffer in bytes.
    #[inline(always)]
    pub fn room(&self) -> usize {
        (self.row.packet - self.row.buffer + self.row.length) as usize
    }

    /// Returns the offset in the buffer at which the outgoing packet begins; `None` if it is not in the buffer. Packets
    /// that a batch reports as [done](Progress::done) leave from there or not at all.
    #[inline(always)]
    pub fn output_start(&self) -> Option<usize> {
        match self.row.out {
            out::EMITTED | out::REPLACED => None,
            at => Some((at - self.row.buffer) as usize),
        }
    }
}
