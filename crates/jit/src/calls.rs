//! Implements the runtime functions that compiled code calls: operations too large, or too rare, to be inlined.
//!
//! Each function gets the frame. Through [`word::HOST`] it finds the [`Host`], which lends it objects and packet for
//! the duration of one run. Values of more than a word are passed by the address of their words, least significant
//! first.

use bits::Bits;
use engine::{Ending, Requested};
use ir::{Algorithm, BinaryOp, CounterId, DigestId, HeaderId, LocId, MeterId, RegisterId, TableId, ValueSetId};

use crate::host::Host;
use crate::layout::word;
use crate::packet::{DeferredRequest, out};
use crate::waiting::WaitingRequest;
use crate::{code, pass};

/// The last argument of functions that make requests: the source location in the lowest 32 bits and, for requests that
/// do not stop a batch, the step, the packet's index in the batch, and a flag.
pub(crate) mod deferred {
    /// Bit positions of the step and of the packet's index, which has 6 bits.
    pub const STEP: u32 = 32;
    pub const PACKET: u32 = 48;
    pub const MOST: u8 = 0x3f;
    pub const FLAG: u64 = 1 << 63;
}

/// The last argument of `set_aside`: the step, the packet's index in the batch, and flags. And its results.
pub(crate) mod waiting {
    use crate::MayWait;

    /// Bit position of the packet's index, which has 6 bits.
    pub const PACKET: u32 = 16;
    pub const MOST: u8 = 0x3f;
    pub const CLONES: u64 = 1 << 32;
    pub const PASSES: u64 = 1 << 33;
    pub const RESUBMISSION_ENDS: u64 = 1 << 34;

    /// The packet continues.
    pub const GOES_ON: u64 = 0;
    /// There is a request that may not wait.
    pub const STOPS: u64 = 1;
    /// The packet ends here.
    pub const ENDS: u64 = 2;

    pub fn flags(may_wait: MayWait) -> u64 {
        let MayWait { clones, passes, resubmission_ends } = may_wait;
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        flag(clones, CLONES) | flag(passes, PASSES) | flag(resubmission_ends, RESUBMISSION_ENDS)
    }
}

/// Returns the host of a run for an effect on the objects: they have taken over the packet's pass. If its outputs wait,
/// the batch stops at the packet.
///
/// # Safety
/// As [`host`].
unsafe fn effect_host<'a>(frame: *mut u64) -> &'a mut Host<'a> {
    // SAFETY: by the caller's promise; the word belongs to the frame, which the host does not refer to.
    let host = unsafe { host(frame) };
    // SAFETY: frames have this many words, and code accesses none during a call.
    let frame = unsafe { std::slice::from_raw_parts_mut(frame, host.layout.words) };
    if pass::take_over(frame, host.layout, host.objects) {
        // SAFETY: the host's list is that of the run in progress, and nobody else uses it during a call.
        pass::hold(frame, unsafe { &mut *host.requests });
    }
    host
}

/// Returns the host of a run.
///
/// # Safety
/// `frame` is the frame of a run in progress, and no other reference to its host is in use.
unsafe fn host<'a>(frame: *mut u64) -> &'a mut Host<'a> {
    // SAFETY: `NativeProgram::run_at` stores the address of a host there, which lives until the run is over. Compiled
    // code calls one function at a time, and each takes the reference once.
    unsafe { &mut *(frame.add(word::HOST).read() as *mut Host<'a>) }
}

/// # Safety
/// `at` is the address of `ceil(width / 64)` words.
unsafe fn value(at: *const u64, width: u32) -> Bits {
    // SAFETY: by the caller's promise; a width of 0 reads nothing.
    let words = unsafe { std::slice::from_raw_parts(at, width.div_ceil(64) as usize) };
    Bits::from_words(words, width)
}

/// # Safety
/// `at` is the address of as many words as the value has.
unsafe fn store_value(at: *mut u64, value: &Bits) {
    for index in 0..value.width().div_ceil(64) as usize {
        // SAFETY: by the caller's promise.
        unsafe { at.add(index).write(value.word(index)) };
    }
}

/// Name, argument count and address of a runtime function, for the code generator. All arguments and results are words.
pub(crate) struct RuntimeFunction {
    pub name: &'static str,
    pub params: usize,
    pub returns: bool,
    pub address: *const u8,
}

macro_rules! calls {
    ($($(#[$doc:meta])* fn $name:ident($($param:ident: $ty:ty),*) $(-> $ret:ty)? $body:block)*) => {
        $($(#[$doc])* unsafe extern "C" fn $name($($param: $ty),*) $(-> $ret)? $body)*

        /// Returns all runtime functions.
        pub(crate) fn all() -> Vec<RuntimeFunction> {
            vec![$(RuntimeFunction {
                name: stringify!($name),
                params: [$(stringify!($param)),*].len(),
                returns: calls!(@returns $($ret)?),
                address: $name as *const u8,
            },)*]
        }
    };
    (@returns) => { false };
    (@returns $ret:ty) => { true };
}

/// Binary operators that [`wide_binary`] implements, by index.
pub(crate) const WIDE: [BinaryOp; 6] =
    [BinaryOp::Mul, BinaryOp::Div, BinaryOp::Rem, BinaryOp::Shl, BinaryOp::Shr, BinaryOp::ShrSigned];

// SAFETY of all functions: compiled code calls them with the frame of the run and with addresses of stack memory that
// it sized for the widths it passes along; ids are those of the validated program it was compiled from.
#[allow(clippy::undocumented_unsafe_blocks, reason = "one argument for all, above")]
mod functions {
    use super::*;

    calls! {
        /// Computes `out = a op b` for values of more than 64 bits.
        fn wide_binary(op: u64, a: *const u64, a_width: u64, b: *const u64, b_width: u64, out: *mut u64) {
            let (a, b) = unsafe { (value(a, a_width as u32), value(b, b_width as u32)) };
            let amount = || b.to_u64().and_then(|amount| u32::try_from(amount).ok()).unwrap_or(u32::MAX);
            let result = match WIDE[op as usize] {
                BinaryOp::Mul => a.mul(&b),
                BinaryOp::Div => a.div(&b),
                BinaryOp::Rem => a.rem(&b),
                BinaryOp::Shl => a.shl(amount()),
                BinaryOp::Shr => a.shr(amount()),
                _ => a.signed_shr(amount()),
            };
            unsafe { store_value(out, &result) };
        }

        /// Returns the address of the record of a table's default action.
        fn default_record(frame: *mut u64, table: u64) -> u64 {
            let host = unsafe { host(frame) };
            host.objects.default_record(TableId::from_u32(table as u32)).as_ptr() as u64
        }

        /// Looks a key up in a table. Returns the address of the record to run, or 0 if the result is pending.
        fn apply(frame: *mut u64, table: u64, key: *const u64, words: u64) -> u64 {
            let mut host = unsafe { host(frame) };
            if host.objects.may_undo_lookup(TableId::from_u32(table as u32)) {
                host = unsafe { effect_host(frame) };
            }
            let key = unsafe { std::slice::from_raw_parts(key, words as usize) };
            let bytes = unsafe { frame.add(word::LENGTH).read() };
            let id = TableId::from_u32(table as u32);
            let found = host.objects.apply_words(id, &host.program.tables[id], key, bytes, host.now_ns);
            let Some((record, colour)) = found else { return 0 };
            if let Some((meter, colour)) = colour {
                unsafe { (&mut *host.colours)[meter.as_u32() as usize] = colour };
            }
            record.as_ptr() as u64
        }

        /// Counts a hit on a prefetched result. Returns the address of the record to run.
        fn apply_prefetched(frame: *mut u64, table: u64, found: u64) -> u64 {
            let host = unsafe { effect_host(frame) };
            let bytes = unsafe { frame.add(word::LENGTH).read() };
            let id = TableId::from_u32(table as u32);
            let (record, colour) = host.objects.apply_found(id, found as u32, bytes, host.now_ns);
            if let Some((meter, colour)) = colour {
                unsafe { (&mut *host.colours)[meter.as_u32() as usize] = colour };
            }
            record.as_ptr() as u64
        }

        fn direct_colour(frame: *mut u64, meter: u64) -> u64 {
            let host = unsafe { host(frame) };
            unsafe { (&*host.colours)[meter as usize] as u64 }
        }

        fn atomic(frame: *mut u64, begins: u64) {
            let host = unsafe { host(frame) };
            if begins != 0 { host.objects.begin_atomic() } else { host.objects.end_atomic() }
        }

        fn register_read(frame: *mut u64, register: u64, index: u64, width: u64, out: *mut u64) {
            let host = unsafe { host(frame) };
            let register = RegisterId::from_u32(register as u32);
            match width {
                0 => {}
                1..=64 => unsafe { out.write(host.objects.register_word(register, index)) },
                _ => unsafe { store_value(out, &host.objects.read_register(register, index)) },
            }
        }

        /// Reads an element in a program with rows. Returns the code with which the unit ends, or 0.
        fn row_read(frame: *mut u64, register: u64, index: u64, width: u64, out: *mut u64) -> u64 {
            let host = unsafe { effect_host(frame) };
            let register = RegisterId::from_u32(register as u32);
            let read = match width {
                0 => Ok(()),
                1..=64 => host.objects.read_word_in_pass(register, index).map(|word| unsafe { out.write(word) }),
                _ => host.objects.read_in_pass(register, index).map(|value| unsafe { store_value(out, &value) }),
            };
            unsafe { used_row(frame, read) }
        }

        /// Writes an element in a program with rows. Returns the code with which the unit ends, or 0.
        fn row_write(frame: *mut u64, register: u64, index: u64, width: u64, from: *const u64) -> u64 {
            let host = unsafe { effect_host(frame) };
            let register = RegisterId::from_u32(register as u32);
            let written = match width {
                0 => Ok(()),
                1..=64 => host.objects.write_word_in_pass(register, index, unsafe { from.read() }),
                _ => host.objects.write_in_pass(register, index, &unsafe { value(from, width as u32) }),
            };
            unsafe { used_row(frame, written) }
        }

        fn register_write(frame: *mut u64, register: u64, index: u64, width: u64, from: *const u64) {
            let host = unsafe { host(frame) };
            let register = RegisterId::from_u32(register as u32);
            match width {
                0 => {}
                1..=64 => host.objects.set_register_word(register, index, unsafe { from.read() }),
                _ => host.objects.write_register(register, index, &unsafe { value(from, width as u32) }),
            }
        }

        fn count(frame: *mut u64, counter: u64, index: u64) {
            let host = unsafe { effect_host(frame) };
            let bytes = unsafe { frame.add(word::LENGTH).read() };
            host.objects.count(CounterId::from_u32(counter as u32), index, bytes);
        }

        fn meter(frame: *mut u64, meter: u64, index: u64) -> u64 {
            let host = unsafe { effect_host(frame) };
            let bytes = unsafe { frame.add(word::LENGTH).read() };
            host.objects.execute_meter(MeterId::from_u32(meter as u32), index, bytes, host.now_ns) as u64
        }

        fn random(frame: *mut u64, low: *const u64, high: *const u64, width: u64, out: *mut u64) {
            let host = unsafe { effect_host(frame) };
            let (low, high) = unsafe { (value(low, width as u32), value(high, width as u32)) };
            unsafe { store_value(out, &host.objects.random_between(&low, &high)) };
        }

        fn value_set(frame: *mut u64, set: u64, keys: *const u64) -> u64 {
            let host = unsafe { host(frame) };
            let id = ValueSetId::from_u32(set as u32);
            let mut at = keys;
            let mut values = Vec::new();
            for (_, width, _) in &host.program.value_sets[id].fields {
                values.push(unsafe { value(at, *width) });
                at = unsafe { at.add(width.div_ceil(64) as usize) };
            }
            u64::from(host.objects.value_set_contains(id, &values))
        }

        /// Clears the data that the next hash covers.
        fn cover_nothing(frame: *mut u64) {
            unsafe { (&mut *host(frame).covered).clear() };
        }

        fn cover_value(frame: *mut u64, from: *const u64, width: u64) {
            let value = unsafe { value(from, width as u32) };
            unsafe { (&mut *host(frame).covered).push(&value) };
        }

        /// Adds `bits` bits of memory to the covered data.
        fn cover_memory(frame: *mut u64, from: *const u8, bits: u64) {
            let memory = unsafe { std::slice::from_raw_parts(from, bits.div_ceil(8) as usize) };
            let covered = unsafe { &mut *host(frame).covered };
            let value = || Bits::read(memory, 0, bits as u32);
            if bits.is_multiple_of(8) { covered.push_bytes(memory) } else { covered.push(&value()) }
        }

        fn cover_payload(frame: *mut u64, from: *const u8, bytes: u64) {
            let memory = unsafe { std::slice::from_raw_parts(from, bytes as usize) };
            unsafe { (&mut *host(frame).covered).push_bytes(memory) };
        }

        /// Returns a sum of at most 32 bits of a payload's 16-bit words, in the machine's byte order.
        fn payload_sum(from: *const u8, bytes: u64) -> u64 {
            crate::ones_complement::sum(unsafe { std::slice::from_raw_parts(from, bytes as usize) })
        }

        /// Computes the hash of the covered data, in `width` bits.
        fn hash(frame: *mut u64, algorithm: u64, width: u64, out: *mut u64) {
            let host = unsafe { host(frame) };
            let result = host.objects.compute(ALGORITHMS[algorithm as usize], unsafe { &*host.covered }, width as u32);
            unsafe { store_value(out, &result) };
        }

        /// Requests a clone; `keep` is the index of a field list plus one, or 0 for none.
        fn request_clone(frame: *mut u64, ingress: u64, session: u64, keep: u64, loc: u64) {
            let keep = keep.checked_sub(1).map(|keep| keep as u32);
            let request = Requested::Clone { ingress: ingress != 0, session: session as u32, keep };
            unsafe { push_request(frame, request, loc) };
        }

        /// Requests a resubmission (0), a recirculation (1) or a truncation (2).
        fn request(frame: *mut u64, kind: u64, value: u64, loc: u64) {
            let keep = || value.checked_sub(1).map(|keep| keep as u32);
            let request = match kind {
                0 => Requested::Resubmit(keep()),
                1 => Requested::Recirculate(keep()),
                _ => Requested::Truncate(value as u32),
            };
            unsafe { push_request(frame, request, loc) };
        }

        fn request_digest(frame: *mut u64, digest: u64, from: *const u64, loc: u64) {
            let id = DigestId::from_u32(digest as u32);
            let mut at = from;
            let mut values = Vec::new();
            let host = unsafe { host(frame) };
            for (_, width) in &host.program.digests[id].fields {
                values.push(unsafe { value(at, *width) });
                at = unsafe { at.add(width.div_ceil(64) as usize) };
            }
            unsafe { push_request(frame, Requested::Digest(id, values), loc) };
        }

        /// Sets the requests of a packet aside, with the slots that field lists preserve, if all of them may wait.
        fn set_aside(frame: *mut u64, preserved: *const u64, place: u64) -> u64 {
            let host = unsafe { host(frame) };
            let (requests, waiting) = unsafe { (&mut *host.requests, &mut *host.waiting) };
            let may_wait = |request: &Requested| match request {
                Requested::Clone { .. } => place & waiting::CLONES != 0,
                Requested::Resubmit(_) | Requested::Recirculate(_) => place & waiting::PASSES != 0,
                _ => false,
            };
            if !requests.iter().all(|(request, _)| may_wait(request)) {
                return waiting::STOPS;
            }
            let is_resubmitted = requests.iter().any(|(request, _)| matches!(request, Requested::Resubmit(_)));
            let (first, end) = host.layout.inputs;
            let preserved = unsafe { std::slice::from_raw_parts(preserved, (end - first) as usize) };
            let words = waiting.preserved.len();
            waiting.preserved.extend_from_slice(preserved);
            let packet = usize::from((place >> waiting::PACKET) as u8 & waiting::MOST);
            let step = usize::from(place as u16);
            waiting.requests.extend(requests.drain(..).map(|(request, loc)| {
                WaitingRequest { packet, step, request, loc, preserved: words }
            }));
            unsafe { frame.add(word::REQUESTS).write(0) };
            let ends = is_resubmitted && place & waiting::RESUBMISSION_ENDS != 0;
            if ends { waiting::ENDS } else { waiting::GOES_ON }
        }

        /// Saves the frame, before the state of a copy that stopped is stored there.
        fn save_frame(frame: *mut u64) {
            let host = unsafe { host(frame) };
            let words = host.layout.words;
            unsafe {
                let saved = &mut *host.saved;
                saved.clear();
                saved.extend_from_slice(std::slice::from_raw_parts(frame, words));
            }
        }

        /// Extracts a header whose memory layout differs from the wire into its home.
        fn extract(frame: *mut u64, header: u64, home: *mut u8, at_bit: u64, varbit_bits: u64) {
            let host = unsafe { host(frame) };
            let id = HeaderId::from_u32(header as u32);
            let ty = host.layout.ty(host.program, id);
            let packet = unsafe {
                let (at, len) = (frame.add(word::PACKET).read(), frame.add(word::LENGTH).read());
                std::slice::from_raw_parts(at as *const u8, len as usize)
            };
            let bytes = (ty.fixed_bytes + (varbit_bits as u32).div_ceil(8)) as usize;
            let memory = unsafe { std::slice::from_raw_parts_mut(home, bytes) };
            let mut at = at_bit as usize;
            for (field, offset) in host.program.layout(id).fields.iter().zip(&ty.offsets) {
                let width = if field.varbit { varbit_bits as u32 } else { field.width };
                Bits::read(packet, at, width).write(memory, *offset as usize);
                at += width as usize;
            }
        }

        /// Reads bits of the packet without extracting them.
        fn look_ahead(frame: *mut u64, at_bit: u64, width: u64, out: *mut u64) {
            let packet = unsafe {
                let (at, len) = (frame.add(word::PACKET).read(), frame.add(word::LENGTH).read());
                std::slice::from_raw_parts(at as *const u8, len as usize)
            };
            unsafe { store_value(out, &Bits::read(packet, at_bit as usize, width as u32)) };
        }

        /// Appends a header to the outgoing packet.
        fn emit(frame: *mut u64, header: u64, place: *const u8, varbit_bits: u64) {
            let host = unsafe { host(frame) };
            let id = HeaderId::from_u32(header as u32);
            let ty = host.layout.ty(host.program, id);
            let bytes = (ty.fixed_bytes + (varbit_bits as u32).div_ceil(8)) as usize;
            let memory = unsafe { std::slice::from_raw_parts(place, bytes) };
            for (field, offset) in host.program.layout(id).fields.iter().zip(&ty.offsets) {
                let width = if field.varbit { varbit_bits as u32 } else { field.width };
                unsafe { &mut *host.emitted }.push(&Bits::read(memory, *offset as usize, width));
            }
        }

        /// Moves `count` runs of bytes (first address and end) directly in front of the payload. Returns the form of
        /// the outgoing packet: see [`out`]. The list is used up.
        fn assemble(frame: *mut u64, runs: *mut [u64; 2], count: u64, payload: u64, buffer: u64) -> u64 {
            let host = unsafe { host(frame) };
            let runs = unsafe { std::slice::from_raw_parts_mut(runs, count as usize) };
            runs.iter_mut().for_each(|[at, end]| *end -= *at);
            let runs = &*runs;
            let end = unsafe { frame.add(word::PACKET).read() + frame.add(word::LENGTH).read() };
            // The last runs may lie where they belong already.
            let mut stay = payload;
            let mut moving = runs;
            while let [rest @ .., [at, length]] = moving {
                if at + length != stay {
                    break;
                }
                stay = *at;
                moving = rest;
            }
            // There may be headroom in front of the payload, and runs that all move in one direction do not overwrite
            // each other.
            let total: u64 = moving.iter().map(|[_, length]| length).sum();
            if total <= stay - buffer && unsafe { slide(moving, stay - total, buffer..end) } {
                return stay - total;
            }
            let (moved, replaced) = unsafe { (&mut *host.moved, &mut *host.replaced) };
            moved.clear();
            for [at, length] in moving {
                let run = unsafe { std::slice::from_raw_parts(*at as *const u8, *length as usize) };
                moved.extend_from_slice(run);
            }
            let room = stay - buffer;
            if moved.len() as u64 <= room {
                let start = stay - moved.len() as u64;
                unsafe { std::ptr::copy_nonoverlapping(moved.as_ptr(), start as *mut u8, moved.len()) };
                start
            } else {
                let rest = unsafe { std::slice::from_raw_parts(stay as *const u8, (end - stay) as usize) };
                replaced.clear();
                replaced.extend_from_slice(moved);
                replaced.extend_from_slice(rest);
                out::REPLACED
            }
        }

        /// Copies bytes between regions that may overlap.
        fn move_bytes(to: *mut u8, from: *const u8, bytes: u64) {
            unsafe { std::ptr::copy(from, to, bytes as usize) };
        }

        fn zero_bytes(to: *mut u8, bytes: u64) {
            unsafe { std::ptr::write_bytes(to, 0, bytes as usize) };
        }

        /// Moves a header to its home, then copies its varbit field from another address.
        fn set_varbit(home: *mut u8, place: *const u8, fixed: u64, from: *const u8, bytes: u64) {
            unsafe {
                std::ptr::copy(place, home, fixed as usize);
                std::ptr::copy(from, home.add(fixed as usize), bytes as usize);
            }
        }

        /// Returns 1 if two varbit fields of equal width are equal, else 0.
        fn varbit_eq(a: *const u8, b: *const u8, bits: u64) -> u64 {
            let bytes = bits.div_ceil(8) as usize;
            let (a, b) = unsafe { (std::slice::from_raw_parts(a, bytes), std::slice::from_raw_parts(b, bytes)) };
            u64::from(Bits::read(a, 0, bits as u32) == Bits::read(b, 0, bits as u32))
        }
    }

    /// Copies a few bytes between regions that may overlap.
    ///
    /// # Safety
    /// Both addresses are valid for that length.
    #[inline]
    unsafe fn copy_few(from: *const u8, to: *mut u8, length: usize) {
        unsafe {
            // All reads come before the first write.
            let ends = |size: usize| (from.add(length - size), to.add(length - size));
            match length {
                4..8 => {
                    let (from_last, to_last) = ends(4);
                    let parts = (from.cast::<u32>().read_unaligned(), from_last.cast::<u32>().read_unaligned());
                    to.cast::<u32>().write_unaligned(parts.0);
                    to_last.cast::<u32>().write_unaligned(parts.1);
                }
                8..=16 => {
                    let (from_last, to_last) = ends(8);
                    let parts = (from.cast::<u64>().read_unaligned(), from_last.cast::<u64>().read_unaligned());
                    to.cast::<u64>().write_unaligned(parts.0);
                    to_last.cast::<u64>().write_unaligned(parts.1);
                }
                17..=32 => {
                    let (from_last, to_last) = ends(16);
                    let parts = (from.cast::<u128>().read_unaligned(), from_last.cast::<u128>().read_unaligned());
                    to.cast::<u128>().write_unaligned(parts.0);
                    to_last.cast::<u128>().write_unaligned(parts.1);
                }
                33..=64 => {
                    let (from_last, to_last) = ends(32);
                    let first = from.cast::<[u128; 2]>().read_unaligned();
                    let last = from_last.cast::<[u128; 2]>().read_unaligned();
                    to.cast::<[u128; 2]>().write_unaligned(first);
                    to_last.cast::<[u128; 2]>().write_unaligned(last);
                }
                _ => std::ptr::copy(from, to, length),
            }
        }
    }

    /// Moves runs so that they lie one after the other from `start` on, if no run in the buffer would be overwritten
    /// before it is copied: they lie in order and all move towards the same end. Otherwise returns false and does
    /// nothing.
    ///
    /// # Safety
    /// The runs are valid memory, and `start` is in the buffer with enough bytes after it.
    unsafe fn slide(runs: &[[u64; 2]], start: u64, buffer: std::ops::Range<u64>) -> bool {
        let (mut to, mut last) = (start, 0);
        let (mut down, mut up) = (true, true);
        for [at, length] in runs {
            if buffer.contains(at) && *length > 0 {
                if *at < last {
                    return false;
                }
                last = at + length;
                down &= to <= *at;
                up &= to >= *at;
            } else if *length > 0 {
                // A run from outside the buffer is written in its turn, over bytes that have been copied already.
                up &= runs.len() == 1;
            }
            to += length;
        }
        if down {
            let mut to = start;
            for [at, length] in runs {
                unsafe { copy_few(*at as *const u8, to as *mut u8, *length as usize) };
                to += length;
            }
        } else if up {
            for [at, length] in runs.iter().rev() {
                to -= length;
                unsafe { copy_few(*at as *const u8, to as *mut u8, *length as usize) };
            }
        }
        down || up
    }

    /// Returns the code of an access to a row. From here on, outputs of the packet may have to wait: then it leaves its
    /// batch, which it requests once.
    unsafe fn used_row(frame: *mut u64, result: Result<(), Ending>) -> u64 {
        let host = unsafe { host(frame) };
        if result.is_err() {
            return code::ROW_REFUSED;
        }
        if host.objects.pass_must_wait() {
            let frame = unsafe { std::slice::from_raw_parts_mut(frame, host.layout.words) };
            pass::hold(frame, unsafe { &mut *host.requests });
        }
        0
    }

    /// # Safety
    /// As [`host`].
    unsafe fn push_request(frame: *mut u64, request: Requested, loc: u64) {
        let host = unsafe { host(frame) };
        let place = LocId::from_u32(loc as u32);
        if loc & deferred::FLAG != 0 {
            let (packet, step) = ((loc >> deferred::PACKET) as u8 & deferred::MOST, (loc >> deferred::STEP) as u16);
            let (packet, step) = (usize::from(packet), usize::from(step));
            unsafe { &mut *host.deferred }.push(DeferredRequest { packet, step, request, loc: place });
            return;
        }
        let requests = unsafe { &mut *host.requests };
        requests.push((request, place));
        unsafe { frame.add(word::REQUESTS).write(requests.len() as u64) };
    }
}

pub(crate) use functions::all;

/// Hash algorithms by index, for `hash`.
pub(crate) const ALGORITHMS: [Algorithm; 7] = [
    Algorithm::Csum16,
    Algorithm::Crc16,
    Algorithm::Crc16Custom,
    Algorithm::Crc32,
    Algorithm::Crc32Custom,
    Algorithm::Xor16,
    Algorithm::Identity,
];
