//! Generates the code of sequence numbers: detection of missing messages and renumbering per port.
//!
//! Ingress detects gaps in the incoming numbers of a port, and egress renumbers outgoing messages from 1. If packets
//! carry a session, the session hashes to a stream, a slot with its state. Another session that hashes to the same
//! stream takes it over, and so does a session that has ended and restarts with number 1. The stream's turn is a
//! generation counter that increments with each new session. Each cell stores the turn it was written in, so a new
//! session needs no clearing.
//!
//! ```text
//! arrivals:  session ──hash──> stream: sessions, turns, ended, lost_messages       number: delivered, opened, of
//! numbered
//!                              stream and port: due_message, of due_turn                   for stream and port
//! ```

use super::message::{assign, clear};
use super::text::Text;
use super::{arbitration, place};
use crate::format::{Messages, Path, ProgramFormat, Session};

/// Number of cells of a register with one cell per port.
const PORTS: u32 = 512;

/// Whether packets with messages may leave that no rule has seen: those for which a control before the rules ends with
/// `exit`, and clones that a control in egress makes.
pub(super) fn others_leave(format: &ProgramFormat) -> bool {
    format.messages.is_some() && (format.parts.before.is_some() || format.parts.egress.is_some())
}

/// Writes the metadata that a packet preserves between passes: its stream and turn.
pub(super) fn carried(text: &mut Text, messages: &Messages) {
    if messages.session.is_some() {
        text.line(format!("@field_list({}) bit<32> stream;      // index of its session's state", super::ROUND));
        text.line(format!(
            "@field_list({}) bit<64> turn;        // number of the session within the stream",
            super::ROUND
        ));
    }
}

/// Writes the registers, and the action that counts lost messages, if messages are numbered.
pub(super) fn declare_arrivals(text: &mut Text, messages: &Messages) {
    if messages.sequence.is_none() {
        return;
    }
    match &messages.session {
        None => {
            text.line("register<bit<64>>(512) due_message;    // expected sequence number, by port");
            text.line("register<bit<64>>(1) lost_messages;    // messages that never arrived or were dropped here");
        }
        Some(session @ Session { field, streams, .. }) => {
            let (cells, width) = (streams * PORTS, field.width);
            text.line(format!("register<bit<{width}>>({streams}) sessions;    // session, by stream"));
            text.line(format!("register<bit<64>>({streams}) turns;    // number of sessions so far, by stream"));
            text.line(format!(
                "register<bit<64>>({streams}) lost_messages;    // messages that never arrived or were dropped here"
            ));
            match session.arbitrate {
                Some(arbitrate) => arbitration::declare(text, session, arbitrate),
                None => {
                    text.line(format!(
                        "register<bit<1>>({streams}) ended;    // 1 if the session has ended, by stream"
                    ));
                    text.line(format!(
                        "register<bit<64>>({cells}) due_message;    // expected sequence number, by stream and port"
                    ));
                    text.line(format!(
                        "register<bit<64>>({cells}) due_turn;    // number of the session that it belongs to"
                    ));
                }
            }
            text.line("bit<64> turn = 0;");
        }
    }
    text.line("bit<64> lost = 0;");
    text.line("");
    text.block("action lose(bit<64> messages)", |text| {
        text.block("@atomic", |text| match messages.session {
            None => {
                text.line("lost_messages.read(lost, 0);");
                text.line("lost_messages.write(0, lost + messages);");
            }
            Some(_) => {
                text.line("turns.read(turn, meta.subscription.stream);");
                text.line("lost_messages.read(lost, meta.subscription.stream);");
                text.line("lost = turn == meta.subscription.turn ? lost + messages : lost;");
                text.line("lost_messages.write(meta.subscription.stream, lost);");
            }
        });
    });
}

/// Writes code that counts missing messages by gaps in their numbers or, with arbitration, by numbers that no feed has
/// brought.
pub(super) fn arrivals(text: &mut Text, messages: &Messages, sequence: &Path, per_pass: u32) {
    text.block("if (standard_metadata.instance_type == 0)", |text| {
        text.line(format!("bit<64> first = (bit<64>){};", place(sequence)));
        match &messages.session {
            None => {
                declare_due(text, messages);
                text.block("@atomic", |text| due(text, "(bit<32>)standard_metadata.ingress_port"));
            }
            Some(session) => match session.arbitrate {
                None => session_by_port(text, messages, session),
                Some(arbitrate) => arbitrated_session(text, session, arbitrate),
            },
        }
    });
    if let Some(arbitrate) = messages.arbitrate() {
        text.block("if (empty == 0)", |text| arbitration::mark(text, messages, sequence, arbitrate, per_pass));
    }
    match messages.session {
        None => {
            text.line("lost_messages.read(lost, 0);");
            text.line("meta.subscription.missed = lost;");
        }
        // The order of reads matters: if the turn is still the packet's, so was the loss count.
        Some(_) => {
            text.line("lost_messages.read(lost, meta.subscription.stream);");
            text.line("turns.read(turn, meta.subscription.stream);");
            text.line("meta.subscription.missed = turn == meta.subscription.turn ? lost : 0;");
        }
    }
}

/// Writes code that finds the session's turn, and the gap before the packet at its port.
fn session_by_port(text: &mut Text, messages: &Messages, session: &Session) {
    let (count, last) = (place(&messages.count), messages.count.all_ones());
    declare_due(text, messages);
    text.line("bit<1> is_over;");
    text.line("bit<64> mine;");
    find_stream(text, session);
    text.line(at_port("ingress_port"));
    text.block("@atomic", |text| {
        text.line("ended.read(is_over, meta.subscription.stream);");
        let anew = format!("is_over == 1 && first == 1 && {count} != {last}");
        take_turn(text, session, &anew, |text| text.line("ended.write(meta.subscription.stream, 0);"));
        text.block(format!("if ({count} == {last})"), |text| {
            text.line("ended.write(meta.subscription.stream, 1);");
        });
        text.line("due_turn.read(mine, at_port);");
        text.block("if (mine != turn)", |text| {
            text.line("due_turn.write(at_port, turn);");
            text.line("due_message.write(at_port, 0);");
        });
        due(text, "at_port");
    });
}

/// Writes code that finds the session's turn, whatever the port.
fn arbitrated_session(text: &mut Text, session: &Session, arbitrate: u32) {
    find_stream(text, session);
    text.block("@atomic", |text| {
        arbitration::find_restart(text, arbitrate);
        take_turn(text, session, "is_again == 1", arbitration::begin);
        arbitration::keep_time_of_number_1(text);
    });
}

/// Writes code that finds the stream of the packet's session.
fn find_stream(text: &mut Text, session: &Session) {
    let Session { field, streams, .. } = session;
    text.line(format!("bit<{}> session;", field.width));
    let field = place(field);
    text.line(format!("hash(meta.subscription.stream, HashAlgorithm.crc32, 32w0, {{ {field} }}, 32w{streams});"));
}

/// Writes code that begins a turn of the stream if its session is another one or, under the condition `anew`, begins
/// again. `begin` writes further code for a new turn.
fn take_turn(text: &mut Text, session: &Session, anew: &str, begin: impl Fn(&mut Text)) {
    let field = place(&session.field);
    text.line("sessions.read(session, meta.subscription.stream);");
    text.line("turns.read(turn, meta.subscription.stream);");
    text.block(format!("if (turn == 0 || session != {field} || {anew})"), |text| {
        text.line("turn = turn + 1;");
        text.line("turns.write(meta.subscription.stream, turn);");
        text.line(format!("sessions.write(meta.subscription.stream, {field});"));
        text.line("lost_messages.write(meta.subscription.stream, 0);");
        begin(text);
    });
    text.line("meta.subscription.turn = turn;");
}

/// Writes the variables of [`due`].
fn declare_due(text: &mut Text, messages: &Messages) {
    let count = place(&messages.count);
    text.line(format!("bit<64> next = first + (empty == 1 ? 64w0 : (bit<64>){count});"));
    text.line("bit<64> due;");
}

/// Writes code that counts the gap before this packet and updates the number due at a port.
fn due(text: &mut Text, at: &str) {
    text.line(format!("due_message.read(due, {at});"));
    text.block("if (due != 0 && first > due)", |text| text.line("lose(first - due);"));
    text.block("if (next > due)", |text| text.line(format!("due_message.write({at}, next);")));
}

/// Returns the declaration of the cell index of a stream and a port.
fn at_port(port: &str) -> String {
    let bits = PORTS.ilog2();
    format!("bit<32> at_port = (meta.subscription.stream << {bits}) | (bit<32>)standard_metadata.{port};")
}

/// Writes the egress registers, if messages are numbered.
pub(super) fn declare_delivered(text: &mut Text, messages: &Messages) {
    if messages.sequence.is_none() {
        return;
    }
    match &messages.session {
        None => {
            text.line("register<bit<64>>(512) delivered;    // messages sent, by port");
            text.line("register<bit<64>>(512) opened;       // messages shown as missing, by port");
        }
        Some(session) => {
            let cells = session.streams * PORTS;
            text.line(format!("register<bit<64>>({cells}) delivered;    // messages sent, by stream and port"));
            text.line(format!(
                "register<bit<64>>({cells}) opened;       // messages shown as missing, by stream and port"
            ));
            text.line(format!("register<bit<64>>({cells}) numbered;     // number of the session that it belongs to"));
        }
    }
    text.line("");
}

/// Writes code that renumbers messages for the port. Packets of several workers may arrive here out of order; a packet
/// that knows of fewer missing messages than the port has been notified of must not reuse a number.
pub(super) fn number(text: &mut Text, format: &ProgramFormat, messages: &Messages, sequence: &Path) {
    let has_compute = format.parts.compute.is_some();
    let is_matched = if others_leave(format) { " && meta.subscription.matched == 1" } else { "" };
    text.block(format!("if (hdr.{}.isValid(){is_matched})", sequence.header), |text| {
        match messages.session {
            None => of_port(text, messages),
            Some(_) => of_session(text, messages),
        }
        let number = format!("(bit<{}>)(given + gap + 1)", sequence.width);
        assign(text, messages, has_compute, sequence, &number);
        // A checksum over the messages covers their number, too.
        clear(text, messages, has_compute);
    });
}

/// Writes code that reads the port's delivered and missing counts before these messages: `given`, `gap`.
fn of_port(text: &mut Text, messages: &Messages) {
    let count = place(&messages.count);
    text.line("bit<32> port = (bit<32>)standard_metadata.egress_port;");
    text.line("bit<64> given;");
    text.line("bit<64> gap;");
    text.block("@atomic", |text| {
        text.line("delivered.read(given, port);");
        text.line("opened.read(gap, port);");
        text.block("if (meta.subscription.missed > gap)", |text| {
            text.line("gap = meta.subscription.missed;");
            text.line("opened.write(port, gap);");
        });
        text.block(format!("if ({count} != {})", messages.count.all_ones()), |text| {
            text.line(format!("delivered.write(port, given + (bit<64>){count});"));
        });
    });
}

/// Writes the same code for the packet's session.
fn of_session(text: &mut Text, messages: &Messages) {
    let count = place(&messages.count);
    let last = messages.count.all_ones();
    text.line(at_port("egress_port"));
    text.line(format!("bit<64> more = ({count} == {last} ? 64w0 : (bit<64>){count});"));
    text.line("bit<64> given;");
    text.line("bit<64> gap;");
    text.line("bit<64> mine;");
    text.block("@atomic", |text| {
        text.line("delivered.read(given, at_port);");
        text.line("opened.read(gap, at_port);");
        text.line("numbered.read(mine, at_port);");
        text.block("if (mine != meta.subscription.turn)", |text| {
            text.line("given = 0;");
            text.line("gap = 0;");
        });
        text.block("if (meta.subscription.missed > gap)", |text| text.line("gap = meta.subscription.missed;"));
        text.line("// Messages of a session whose state another session has replaced are not counted.");
        text.block("if (mine <= meta.subscription.turn)", |text| {
            text.line("numbered.write(at_port, meta.subscription.turn);");
            text.line("opened.write(at_port, gap);");
            text.line("delivered.write(at_port, given + more);");
        });
    });
}
