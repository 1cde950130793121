//! What compiled code calls for: everything that is too large, or too rare, to be machine code.
//!
//! Each function gets the frame; through [`word::HOST`] it finds the [`Host`] that lends it objects and packet for the
//! time of one run. Values of more than a word are passed by the address of their words, least significant first.

use bits::Bits;
use engine::{BitString, Colour, Objects, Requested};
use ir::{
    Algorithm, BinaryOp, CounterId, DigestId, HeaderId, LocId, MeterId, Program, RegisterId, TableId, ValueSetId,
};

use crate::layout::{Layout, word};
use crate::packet::{Packet, Shape, out};

/// What a run lends to the functions here.
pub(crate) struct Host<'a> {
    pub program: &'a Program,
    pub layout: &'a Layout,
    pub objects: &'a mut Objects,
    /// The packet's own, which others look at between runs.
    pub requests: *mut Vec<(Requested, LocId)>,
    pub colours: *mut Vec<Colour>,
    pub emitted: *mut BitString,
    pub replaced: *mut Vec<u8>,
    pub now_ns: u64,
    pub covered: *mut BitString,
    /// Memory for headers on their way from one place to another.
    pub moved: *mut Vec<u8>,
}

impl<'a> Host<'a> {
    /// The host of runs on a packet.
    ///
    /// # Safety
    /// `packet` is valid, and nothing else of it but its frame is in use while code runs.
    #[inline]
    pub unsafe fn new(shape: &'a Shape, packet: *mut Packet, objects: &'a mut Objects, now_ns: u64) -> Host<'a> {
        // SAFETY: by the caller's promise `packet` is valid; no reference is made.
        unsafe {
            Host {
                program: &shape.program,
                layout: &shape.layout,
                objects,
                requests: &raw mut (*packet).requests,
                colours: &raw mut (*packet).colours,
                emitted: &raw mut (*packet).emitted,
                replaced: &raw mut (*packet).replaced,
                now_ns,
                covered: &raw mut (*packet).covered,
                moved: &raw mut (*packet).moved,
            }
        }
    }
}

/// However a run ended, it keeps no other worker waiting.
impl Drop for Host<'_> {
    fn drop(&mut self) {
        self.objects.end_all_atomics();
    }
}

/// The host of a run.
///
/// # Safety
/// `frame` is the frame of a run that is going on, and no other reference to its host is in use.
unsafe fn host<'a>(frame: *mut u64) -> &'a mut Host<'a> {
    // SAFETY: `Compiled::run` puts the address of a host there that lives until the run is over; compiled code calls
    // one function at a time and each takes the reference once.
    unsafe { &mut *(frame.add(word::HOST).read() as *mut Host<'a>) }
}

/// # Safety
/// `at` is the address of `ceil(width / 64)` words.
unsafe fn value(at: *const u64, width: u32) -> Bits {
    // SAFETY: the caller's promise; a width of 0 reads nothing.
    let words = unsafe { std::slice::from_raw_parts(at, width.div_ceil(64) as usize) };
    Bits::from_words(words, width)
}

/// # Safety
/// `at` is the address of as many words as the value has.
unsafe fn give(at: *mut u64, value: &Bits) {
    for index in 0..value.width().div_ceil(64) as usize {
        // SAFETY: the caller's promise.
        unsafe { at.add(index).write(value.word(index)) };
    }
}

/// Names, argument counts and addresses of the functions, for the code generator. All arguments and results are words.
pub(crate) struct Call {
    pub name: &'static str,
    pub params: usize,
    pub returns: bool,
    pub address: *const u8,
}

macro_rules! calls {
    ($($(#[$doc:meta])* fn $name:ident($($param:ident: $ty:ty),*) $(-> $ret:ty)? $body:block)*) => {
        $($(#[$doc])* unsafe extern "C" fn $name($($param: $ty),*) $(-> $ret)? $body)*

        /// Every function.
        pub(crate) fn all() -> Vec<Call> {
            vec![$(Call {
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

/// Binary operators by number, for [`wide_binary`].
pub(crate) const WIDE: [BinaryOp; 6] =
    [BinaryOp::Mul, BinaryOp::Div, BinaryOp::Rem, BinaryOp::Shl, BinaryOp::Shr, BinaryOp::ShrSigned];

// SAFETY of all of them: compiled code calls them with the frame of the run and with addresses of stack memory that it
// made as large as the widths it passes with them; ids are those of the validated program it was compiled from.
#[allow(clippy::undocumented_unsafe_blocks, reason = "one argument for all, above")]
mod functions {
    use super::*;

    calls! {
        /// `out = a op b` for values of more than 64 bits.
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
            unsafe { give(out, &result) };
        }

        /// The address of the record of a table's default action.
        fn default_record(frame: *mut u64, table: u64) -> u64 {
            let host = unsafe { host(frame) };
            host.objects.default_record(TableId::from_u32(table as u32)).as_ptr() as u64
        }

        /// Looks a table up. Returns the address of the record of what is to run, 0 for "not yet".
        fn apply(frame: *mut u64, table: u64, key: *const u64, words: u64) -> u64 {
            let host = unsafe { host(frame) };
            let key = unsafe { std::slice::from_raw_parts(key, words as usize) };
            let bytes = unsafe { frame.add(word::LENGTH).read() };
            let id = TableId::from_u32(table as u32);
            match host.objects.apply_words(id, &host.program.tables[id], key, bytes, host.now_ns) {
                Some((record, colour)) => {
                    if let Some((meter, colour)) = colour {
                        unsafe { (&mut *host.colours)[meter.as_u32() as usize] = colour };
                    }
                    record.as_ptr() as u64
                }
                None => 0,
            }
        }

        /// Counts what a note says was found. Returns the address of the record of what is to run.
        fn apply_noted(frame: *mut u64, table: u64, found: u64) -> u64 {
            let host = unsafe { host(frame) };
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
                _ => unsafe { give(out, &host.objects.read_register(register, index)) },
            }
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
            let host = unsafe { host(frame) };
            let bytes = unsafe { frame.add(word::LENGTH).read() };
            host.objects.count(CounterId::from_u32(counter as u32), index, bytes);
        }

        fn meter(frame: *mut u64, meter: u64, index: u64) -> u64 {
            let host = unsafe { host(frame) };
            let bytes = unsafe { frame.add(word::LENGTH).read() };
            host.objects.execute_meter(MeterId::from_u32(meter as u32), index, bytes, host.now_ns) as u64
        }

        fn random(frame: *mut u64, low: *const u64, high: *const u64, width: u64, out: *mut u64) {
            let host = unsafe { host(frame) };
            let (low, high) = unsafe { (value(low, width as u32), value(high, width as u32)) };
            unsafe { give(out, &host.objects.random_between(&low, &high)) };
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

        /// Forgets what the last hash covered.
        fn cover_nothing(frame: *mut u64) {
            unsafe { (&mut *host(frame).covered).clear() };
        }

        fn cover_value(frame: *mut u64, from: *const u64, width: u64) {
            let value = unsafe { value(from, width as u32) };
            unsafe { (&mut *host(frame).covered).push(&value) };
        }

        /// Covers `bits` bits of memory.
        fn cover_memory(frame: *mut u64, from: *const u8, bits: u64) {
            let memory = unsafe { std::slice::from_raw_parts(from, bits.div_ceil(8) as usize) };
            let covered = unsafe { &mut *host(frame).covered };
            match bits.is_multiple_of(8) {
                true => covered.push_bytes(memory),
                false => covered.push(&Bits::read(memory, 0, bits as u32)),
            }
        }

        fn cover_payload(frame: *mut u64, from: *const u8, bytes: u64) {
            let memory = unsafe { std::slice::from_raw_parts(from, bytes as usize) };
            unsafe { (&mut *host(frame).covered).push_bytes(memory) };
        }

        /// The hash of what is covered, in `width` bits.
        fn hash(frame: *mut u64, algorithm: u64, width: u64, out: *mut u64) {
            let host = unsafe { host(frame) };
            let result = host.objects.compute(ALGORITHMS[algorithm as usize], unsafe { &*host.covered }, width as u32);
            unsafe { give(out, &result) };
        }

        /// Asks for a clone; `keep` is a field list and one more, 0 for none.
        fn request_clone(frame: *mut u64, ingress: u64, session: u64, keep: u64, loc: u64) {
            let keep = keep.checked_sub(1).map(|keep| keep as u32);
            let request = Requested::Clone { ingress: ingress != 0, session: session as u32, keep };
            unsafe { ask(frame, request, loc) };
        }

        /// Asks for a resubmission (0), a recirculation (1) or a truncation (2).
        fn request(frame: *mut u64, kind: u64, value: u64, loc: u64) {
            let keep = || value.checked_sub(1).map(|keep| keep as u32);
            let request = match kind {
                0 => Requested::Resubmit(keep()),
                1 => Requested::Recirculate(keep()),
                _ => Requested::Truncate(value as u32),
            };
            unsafe { ask(frame, request, loc) };
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
            unsafe { ask(frame, Requested::Digest(id, values), loc) };
        }

        /// Takes a header that does not lie in memory as on the wire off the packet and into its home.
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

        /// Reads bits of the packet.
        fn look_ahead(frame: *mut u64, at_bit: u64, width: u64, out: *mut u64) {
            let packet = unsafe {
                let (at, len) = (frame.add(word::PACKET).read(), frame.add(word::LENGTH).read());
                std::slice::from_raw_parts(at as *const u8, len as usize)
            };
            unsafe { give(out, &Bits::read(packet, at_bit as usize, width as u32)) };
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

        /// Puts `count` runs (address and length) of bytes in front of the payload. Returns how the outgoing packet is
        /// made: see [`out`].
        fn assemble(frame: *mut u64, runs: *const [u64; 2], count: u64, payload: u64, buffer: u64) -> u64 {
            let host = unsafe { host(frame) };
            let runs = unsafe { std::slice::from_raw_parts(runs, count as usize) };
            let end = unsafe { frame.add(word::PACKET).read() + frame.add(word::LENGTH).read() };
            // The last runs may be where they belong already.
            let mut stay = payload;
            let mut moving = runs;
            while let [rest @ .., [at, length]] = moving {
                if at + length != stay {
                    break;
                }
                stay = *at;
                moving = rest;
            }
            // In front of the payload there may be room, and runs that all move one way do not run into each other.
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

        /// Copies bytes between places that may overlap.
        fn move_bytes(to: *mut u8, from: *const u8, bytes: u64) {
            unsafe { std::ptr::copy(from, to, bytes as usize) };
        }

        fn zero_bytes(to: *mut u8, bytes: u64) {
            unsafe { std::ptr::write_bytes(to, 0, bytes as usize) };
        }

        /// Brings a header home, then gives it a variable field from elsewhere.
        fn set_varbit(home: *mut u8, place: *const u8, fixed: u64, from: *const u8, bytes: u64) {
            unsafe {
                std::ptr::copy(place, home, fixed as usize);
                std::ptr::copy(from, home.add(fixed as usize), bytes as usize);
            }
        }

        /// Whether two variable fields of equal width are equal.
        fn varbit_eq(a: *const u8, b: *const u8, bits: u64) -> u64 {
            let bytes = bits.div_ceil(8) as usize;
            let (a, b) = unsafe { (std::slice::from_raw_parts(a, bytes), std::slice::from_raw_parts(b, bytes)) };
            u64::from(Bits::read(a, 0, bits as u32) == Bits::read(b, 0, bits as u32))
        }
    }

    /// Copies a few bytes between places that may overlap.
    ///
    /// # Safety
    /// Both are memory of that length.
    #[inline]
    unsafe fn copy_few(from: *const u8, to: *mut u8, length: usize) {
        unsafe {
            // Everything is read before anything is written.
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

    /// Puts runs one behind the other from `start` on, if none of those in the buffer would be written over before it is
    /// copied: they lie in order and all move towards the same end. False, and nothing done, if not.
    ///
    /// # Safety
    /// The runs are memory, and `start` is in the buffer with room for them behind it.
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
                // A run from elsewhere is written when its turn has come, over what has been copied already.
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

    /// # Safety
    /// As [`host`].
    unsafe fn ask(frame: *mut u64, request: Requested, loc: u64) {
        let host = unsafe { host(frame) };
        let requests = unsafe { &mut *host.requests };
        requests.push((request, LocId::from_u32(loc as u32)));
        unsafe { frame.add(word::ASKED).write(requests.len() as u64) };
    }
}

pub(crate) use functions::all;

/// Algorithms by number, for `hash`.
pub(crate) const ALGORITHMS: [Algorithm; 7] = [
    Algorithm::Csum16,
    Algorithm::Crc16,
    Algorithm::Crc16Custom,
    Algorithm::Crc32,
    Algorithm::Crc32Custom,
    Algorithm::Xor16,
    Algorithm::Identity,
];
