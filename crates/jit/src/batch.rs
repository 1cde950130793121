//! Many packets in one call: what is the same for all of them is set up once.

use std::marker::PhantomData;

use engine::{Colour, Now, Objects};
use ir::SlotId;

use crate::calls::Host;
use crate::compiled::{Compiled, Loop, Outcome, outcome};
use crate::layout::word;
use crate::lent::Lent;
use crate::packet::{Packet, out};
use crate::scout::{self, BATCH, ERROR, Prepared, Row, Rows, SPECIAL, STEP};

/// Packets that a fresh unit runs on one after the other.
///
/// They are [put in](Batch::push), then [run](Batch::run). Where packets are in the end, and the unit's results, can be
/// asked for by their numbers in the batch.
#[derive(Debug)]
pub struct Batch<'a> {
    compiled: &'a Compiled,
    code: &'a Loop,
    packet: &'a mut Packet,
    /// The memory of the batch, which is the packet's otherwise: see [`crate::scout`].
    rows: Vec<Row>,
    notes: Vec<u64>,
    /// What the notes say of tables.
    prepared: Option<Prepared>,
    unit: usize,
    /// How many packets there are, and how many of them have run.
    count: usize,
    done: usize,
    /// Whether the packet that ran last is whole in the frame.
    stopped: bool,
    _buffers: PhantomData<&'a mut [u8]>,
}

/// What a call of [`Batch::run`] came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The packets that came to their end: each leaves from its [buffer](Ended::output_start), or was dropped.
    pub done: std::ops::Range<usize>,
    /// Whether the batch stopped at the packet behind them: there is more to do for it.
    pub stopped: bool,
}

impl Compiled {
    /// A batch without packets for a fresh unit. `packet` lends its frame; whatever it was is gone afterwards.
    ///
    /// # Panics
    /// If there is no such unit, it is not fresh or has no results, or `packet` is another program's.
    pub fn batch<'a>(&'a self, unit: usize, packet: &'a mut Packet) -> Batch<'a> {
        assert!(std::sync::Arc::ptr_eq(self.shape(), packet.shape()), "the packet was made by this program");
        let code = self.batches(unit).expect("a fresh unit with results runs on batches");
        packet.restart(Vec::new(), 0);
        packet.given.clear();
        let (mut rows, mut notes) = (std::mem::take(&mut packet.rows), std::mem::take(&mut packet.notes));
        rows.resize(BATCH, Row::default());
        notes.resize(code.notes.words, 0);
        let prepared = packet.prepared.take();
        Batch {
            compiled: self,
            code,
            packet,
            rows,
            notes,
            prepared,
            unit,
            count: 0,
            done: 0,
            stopped: false,
            _buffers: PhantomData,
        }
    }
}

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Asks for the memory of a packet, which code comes to when all packets are there.
#[inline(always)]
fn ask_for_line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that reads nothing the program can see and faults at no address; SSE, which it
        // needs, is part of x86_64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Writes where a packet lies.
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
    /// Sets a slot of up to 64 bits to a number, cut to the slot's width, for all packets: one of those that the plan
    /// says are given.
    ///
    /// # Panics
    /// If the batch has begun to run.
    #[inline]
    pub fn set_slot_to(&mut self, slot: SlotId, value: u64) {
        assert_eq!(self.done, 0, "slots are set before packets run");
        self.packet.set_slot_to(slot, value);
    }

    /// Adds the packet that begins `start` bytes into `buffer` and ends with it; what lies before is room for headers.
    /// Returns its number.
    ///
    /// # Panics
    /// If there are 32 packets, the batch has begun to run, or `start` is beyond the buffer.
    #[inline]
    pub fn push(&mut self, buffer: &'a mut [u8], start: usize) -> usize {
        let number = self.count;
        self.extend(std::iter::once((buffer, start)));
        number
    }

    /// Adds packets, as many [`Batch::push`] would.
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

    /// How many packets there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Runs packets in order until all are done, or one has to be looked at whole: by [`Batch::stopped`], before the next
    /// call goes on behind it.
    pub fn run(&mut self, objects: &mut Objects, now: Now) -> Progress {
        // Whoever had the objects since may have changed tables, so what was noted may be gone.
        let Loop { notes, .. } = self.code;
        let how = (self.unit, self.compiled.near_bytes());
        let prepared = scout::prepare(notes, &mut self.notes, how, self.prepared.take(), objects);
        self.prepared = Some(prepared);
        self.leave_stopped();
        if prepared.is_any_open {
            self.look_ahead(objects, now);
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
            // SAFETY: the code was generated for a validated program and memory of this layout. It writes to frame and
            // memory, to the packets where their rows say that they lie, and to what the host lends; all of it is
            // borrowed exclusively meanwhile. There is one packet at least, and no more than rows.
            let at = self.host(objects, now, |frame, rows, notes| unsafe {
                code(frame, rows, notes, rows.add(from), rows.add(to)).offset_from_unsigned(rows)
            });
            self.stopped = at < to;
            self.done = at + usize::from(self.stopped);
            if !self.packet.colours.is_empty() && !self.stopped {
                self.packet.colours.fill(Colour::Green);
            }
        }
        self.packet.primed = self.stopped;
        Progress { done: first..self.done - usize::from(self.stopped), stopped: self.stopped }
    }

    /// Asks tables for what packets will look up that have not run yet.
    fn look_ahead(&mut self, objects: &mut Objects, now: Now) {
        let Loop { scout, follow, notes, .. } = self.code;
        let (Some(scout), count) = (scout, self.count) else { return };
        if self.done == count {
            return;
        }
        scout::forget(notes, &mut self.notes, self.done);
        let is_new = self.done == 0;
        if is_new {
            self.host(objects, now, |frame, rows, notes| {
                // SAFETY: the code was generated for a validated program and memory of this layout, where the rows of so
                // many packets say where they lie. It reads these, the frame, what the host lends, and what the notes say
                // where tables keep it, and writes to the notes alone; all of it is borrowed exclusively meanwhile.
                unsafe { scout(frame, rows, notes, count) };
            });
        }
        let mut goes_on = scout::ask(notes, &mut self.notes, self.done, count, objects) && is_new;
        for _ in 0..notes.rounds {
            let Some(follow) = follow.filter(|_| goes_on) else { return };
            // SAFETY: as above.
            self.host(objects, now, |frame, rows, notes| unsafe { follow(frame, rows, notes, count) });
            goes_on = scout::ask_more(notes, &mut self.notes, count, objects);
        }
    }

    /// Has code run while everything is lent to it.
    #[inline(always)]
    fn host<R>(&mut self, objects: &mut Objects, now: Now, work: impl FnOnce(*mut u64, *mut Row, *mut u64) -> R) -> R {
        objects.advance_clock(now.ns);
        let packet: *mut Packet = self.packet;
        // SAFETY: the packet is borrowed exclusively, and nothing else of it but the frame is used while code runs.
        let mut host = unsafe { Host::new(self.compiled.shape(), packet, objects, now.ns) };
        let frame = self.packet.frame.as_mut_ptr();
        // SAFETY: frames begin with control words.
        unsafe { frame.add(word::HOST).write(&raw mut host as u64) };
        work(frame, self.rows.as_mut_ptr(), self.notes.as_mut_ptr())
    }

    /// Forgets what the packet left behind that stopped the batch, if one did.
    fn leave_stopped(&mut self) {
        if std::mem::take(&mut self.stopped) {
            self.packet.clear_traces();
            let given = self.packet.given_words();
            self.packet.frame[given].copy_from_slice(&self.packet.given);
        }
    }

    /// What came of a packet that has run.
    ///
    /// # Panics
    /// If there is no such packet.
    #[inline(always)]
    pub fn ended(&self, number: usize) -> Ended<'_> {
        let rows: &Rows = self.rows.first_chunk().expect("there are rows for a batch");
        Ended { row: &rows[number], frame: &self.packet.frame }
    }

    /// The same of packets one after the other.
    ///
    /// # Panics
    /// If there are no such packets.
    #[inline]
    pub fn ended_all(&self, numbers: std::ops::Range<usize>) -> impl Iterator<Item = Ended<'_>> {
        self.rows[numbers].iter().map(|row| Ended { row, frame: &self.packet.frame })
    }

    /// A copy of a packet that leaves from within its buffer, once it has run; `None` of others.
    pub fn output_copy(&self, number: usize) -> Option<Vec<u8>> {
        let ended = self.ended(number);
        let start = ended.output_start().filter(|_| number < self.done)?;
        let (base, end) = (ended.row.buffer, ended.row.packet + ended.row.length);
        // SAFETY: the row is that of a packet of this batch, so the buffer is borrowed exclusively for as long as the
        // batch lives, and no code runs on it now.
        let buffer = unsafe { std::slice::from_raw_parts(base as *const u8, (end - base) as usize) };
        Some(buffer[start..].to_vec())
    }

    /// The packet that the batch stopped at.
    ///
    /// # Panics
    /// If the batch did not stop.
    pub fn stopped(&mut self) -> Lent<'_> {
        assert!(self.stopped, "the batch stopped at a packet");
        let row = &self.rows[self.done - 1];
        let start = (row.packet - row.buffer) as usize;
        Lent {
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
    /// Nothing of the buffers stays in reach.
    #[inline]
    fn drop(&mut self) {
        self.packet.take_data();
        self.packet.clear_traces();
        self.packet.rows = std::mem::take(&mut self.rows);
        self.packet.notes = std::mem::take(&mut self.notes);
        self.packet.prepared = self.prepared.take();
    }
}

/// What came of a packet of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'b> {
    row: &'b Row,
    frame: &'b [u64],
}

impl Ended<'_> {
    /// How the unit ended.
    #[inline(always)]
    pub fn outcome(&self) -> Outcome {
        let ended = self.row.ended;
        outcome(ended & 0xff, usize::from((ended >> STEP) as u16), || self.frame[word::BLAME] as u32)
    }

    /// Whether code saw the packet to its end that was made for its way through the parser, where that fixes what lies
    /// where. It makes no difference but to time.
    pub fn is_special(&self) -> bool {
        self.row.ended & SPECIAL != 0
    }

    /// The low 64 bits of a result, by the place of its slot in the unit's list.
    ///
    /// # Panics
    /// If a unit cannot have so many results.
    #[inline(always)]
    pub fn result(&self, result: usize) -> u64 {
        self.row.results[result]
    }

    /// The parser's error, an index into [`ir::Program::errors`].
    #[inline(always)]
    pub fn parser_error(&self) -> u32 {
        (self.row.ended >> ERROR) as u32
    }

    /// How many bytes the packet had when it came in.
    #[inline(always)]
    pub fn length(&self) -> usize {
        self.row.length as usize
    }

    /// How many bytes its buffer has.
    #[inline(always)]
    pub fn room(&self) -> usize {
        (self.row.packet - self.row.buffer + self.row.length) as usize
    }

    /// Where in its buffer the packet begins that leaves; `None` if it is not there. Packets that a batch has
    /// [done](Progress::done) leave from there or not at all.
    #[inline(always)]
    pub fn output_start(&self) -> Option<usize> {
        match self.row.out {
            out::EMITTED | out::REPLACED => None,
            at => Some((at - self.row.buffer) as usize),
        }
    }
}
