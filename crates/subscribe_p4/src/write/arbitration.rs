//! Generates the code that drops duplicates: a message that comes again, by another feed or from a repeater.
//!
//! The last numbers of each session are bits of a register, in words of 64 numbers (blocks). A cell of the register
//! serves the blocks that are equal modulo the number of cells. Two more registers hold the block of each cell, and its
//! session. A pass tests and sets the bits of its messages in one atomic section, so if two workers have the same
//! message, one of them delivers it.
//!
//! A number is lost when its cell moves on to a later block and its bit is not set. Until then, another feed may bring
//! it. So gaps are exact, and subscribers see them later than without arbitration.

use super::Text;
use super::message::{is_there, kinds, size};
use super::place;
use crate::format::{Messages, Path, Session};

/// Numbers of a block, as a binary logarithm.
const BLOCK: u32 = 6;
/// Time in microseconds after which number 1 of a session is not a duplicate but a session of the same name that
/// begins again.
const RESTART_US: u64 = 1_000_000;
/// A word with all bits set.
const ALL: &str = "0xffffffffffffffff";

/// Number of cells of a stream.
fn cells(arbitrate: u32) -> u32 {
    arbitrate >> BLOCK
}

/// Writes the registers.
pub(super) fn declare(text: &mut Text, session: &Session, arbitrate: u32) {
    let (streams, all) = (session.streams, session.streams * cells(arbitrate));
    text.line(format!(
        "register<bit<64>>({streams}) began;    // twice the time of its first packet, or of its number 1 plus 1"
    ));
    text.line(format!("register<bit<64>>({streams}) first_number;    // of the session, by stream"));
    text.line(format!("register<bit<64>>({all}) seen_numbers;    // numbers that came, a bit for each"));
    text.line(format!("register<bit<64>>({all}) seen_block;    // the numbers of these bits, divided by 64"));
    text.line(format!("register<bit<64>>({all}) seen_turn;    // number of the session that they belong to"));
    text.line("bit<64> fresh = 0;     // bits of the messages of this pass that have not come before");
}

/// Writes code that sets `is_again` if number 1 of a session comes a while after it came first, or after the session
/// was joined where no copy of number 1 can be late.
pub(super) fn find_restart(text: &mut Text, arbitrate: u32) {
    text.line("bit<64> now = (bit<64>)standard_metadata.ingress_global_timestamp;");
    text.line("bit<64> since;");
    text.line("began.read(since, meta.subscription.stream);");
    text.line("bit<1> is_one = (empty == 0 && first == 1 ? 1w1 : 1w0);");
    let is_late = format!("now > since >> 1 && now - (since >> 1) >= {RESTART_US}");
    text.line("bit<64> known;");
    text.line("first_number.read(known, meta.subscription.stream);");
    // A feed that lags may bring a number 1 that the other one has lost.
    let is_known = format!("(since & 1 == 1 || known >= {arbitrate})");
    text.line(format!("bit<1> is_again = (is_one == 1 && {is_late} && {is_known} ? 1w1 : 1w0);"));
}

/// Writes code for a session that begins.
pub(super) fn begin(text: &mut Text) {
    text.line("since = now << 1;");
    text.line("began.write(meta.subscription.stream, since);");
    text.line("first_number.write(meta.subscription.stream, first);");
}

/// Writes code that keeps the time of the first number 1.
pub(super) fn keep_time_of_number_1(text: &mut Text) {
    text.block("if (is_one == 1 && since & 1 == 0)", |text| {
        text.line("began.write(meta.subscription.stream, now << 1 | 1);");
    });
}

/// Writes code that finds the messages of this pass that have not come before, and marks them.
pub(super) fn mark(text: &mut Text, messages: &Messages, sequence: &Path, arbitrate: u32, per_pass: u32) {
    if let Some(length) = messages.innermost_length() {
        // Messages of a datagram that is dropped may come by another feed.
        text.line(format!("bit<32> end = {};", messages.before));
        for index in 0..messages.max_messages {
            text.block(format!("if ({})", is_there(messages, index)), |text| {
                kinds(text, messages, index, |text, kind, _| {
                    text.line(format!("end = end + {};", size(messages, kind, index)));
                });
            });
        }
        text.block(format!("if ((bit<32>){} < end)", place(length)), |text| {
            text.line("mark_to_drop(standard_metadata);");
            text.line("return;");
        });
    }
    text.line("bit<8> there = 0;      // messages in the stack, as far as this pass goes");
    for index in 0..per_pass.min(messages.max_messages) {
        text.line(format!("if ({}) {{ there = {}; }}", is_there(messages, index), index + 1));
    }
    text.line(format!("bit<64> number = (bit<64>){};", place(sequence)));
    text.line("bit<8> shift = (bit<8>)(number & 63);");
    text.line("bit<64> ones = (64w1 << there) - 1;");
    text.line("bit<64> later = ones >> (8w64 - shift);");
    text.line(format!("bit<64> block = number >> {BLOCK};"));
    text.line("bit<64> begin;");
    text.line("bit<64> bits;");
    text.line("bit<64> at;");
    text.line("bit<64> owner;");
    text.line("bit<64> unseen;");
    text.line("bit<64> missing;");
    text.line("bit<32> cell;");
    text.block("@atomic", |text| {
        text.line("turns.read(turn, meta.subscription.stream);");
        text.choice(
            "turn != meta.subscription.turn",
            |text| {
                text.line("// Another session has replaced the state of this one.");
                text.line(format!("fresh = {ALL};"));
            },
            |text| {
                text.line("first_number.read(begin, meta.subscription.stream);");
                text.line(format!("bit<64> start = begin >> {BLOCK};"));
                test_and_set(text, arbitrate, "ones << shift");
                text.line("fresh = (ones << shift & ~bits) >> shift;");
                text.block("if (later != 0)", |text| {
                    text.line("block = block + 1;");
                    test_and_set(text, arbitrate, "later");
                    text.line("fresh = fresh | (later & ~bits) << (8w64 - shift);");
                });
            },
        );
    });
}

/// Writes code that reads the bits of `block` to `bits`, and sets those that are `wanted`. Numbers that leave the
/// register unseen are lost.
fn test_and_set(text: &mut Text, arbitrate: u32, wanted: &str) {
    let cells = cells(arbitrate);
    let (log, last) = (cells.ilog2(), cells - 1);
    text.line(format!("cell = (meta.subscription.stream << {log}) | (bit<32>)(block & {last});"));
    text.line("seen_turn.read(owner, cell);");
    text.line("seen_block.read(at, cell);");
    text.line("seen_numbers.read(bits, cell);");
    text.line("unseen = 0;");
    text.line("missing = 0;");
    text.line("if (owner != turn || at < start && at < block) {");
    text.indented(|text| {
        text.line("bits = 0;");
        text.line("// Earlier blocks of the cell never came, as far as they are of the session.");
        text.block("if (block > start)", |text| {
            text.line(format!("missing = (block - start - (block - start & {last})) >> {log} << {BLOCK};"));
            text.block(format!("if (block - start & {last} == 0)"), |text| {
                text.line("missing = missing - (begin & 63);");
            });
        });
    });
    text.line("} else if (at < block) {");
    text.indented(|text| {
        text.line("unseen = at == start ? ~bits >> (bit<8>)(begin & 63) : ~bits;");
        text.line("bits = 0;");
        text.line(format!("missing = (block - at >> {log}) - 1 << {BLOCK};"));
    });
    text.line("} else if (at > block) {");
    text.indented(|text| text.line(format!("bits = {ALL};    // too old to know")));
    text.line("}");
    text.block("if (owner != turn || at <= block)", |text| {
        text.line("seen_turn.write(cell, turn);");
        text.line("seen_block.write(cell, block);");
        text.line(format!("seen_numbers.write(cell, bits | {wanted});"));
    });
    text.block("if (unseen != 0 || missing != 0)", |text| {
        text.line("// The number of bits set, in halves, quarters, bytes and the whole word.");
        text.line("unseen = unseen - (unseen >> 1 & 0x5555555555555555);");
        text.line("unseen = (unseen & 0x3333333333333333) + (unseen >> 2 & 0x3333333333333333);");
        text.line("unseen = unseen + (unseen >> 4) & 0x0f0f0f0f0f0f0f0f;");
        text.line("unseen = unseen + (unseen >> 8);");
        text.line("unseen = unseen + (unseen >> 16);");
        text.line("unseen = unseen + (unseen >> 32) & 0x7f;");
        text.line("lose(unseen + missing);");
    });
}

/// Returns the condition that a message has not come before.
pub(super) fn is_fresh(index: u32) -> String {
    format!("fresh[{index}:{index}] == 1")
}
