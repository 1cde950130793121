//! Describes the path of one datagram: the messages that came in, and the messages that left at each port.

use itch_feed::{Feed, PORT};
use switch::trace::PassKind;
use switch::{Frame, PortId, Time};
use wire::itch::{Body, Message};
use wire::moldudp64;

use super::{EXCHANGE, Subscription};
use crate::market::capture;
use crate::output::{Failure, Output};

/// Number of datagrams searched for a suitable one.
const LOOKED_AT: usize = 2_000;
/// Number of messages in a datagram that is easy to follow.
const EASY: std::ops::RangeInclusive<usize> = 3..=6;

/// A description of one datagram's path.
pub struct DatagramPath {
    /// The datagram that came in and those that left, one per line.
    pub lines: Vec<String>,
    /// Number of passes through the program.
    pub passes: usize,
}

/// Sends one datagram of the feed through a separate switch. At least two subscribers want some message of the
/// datagram, and at least one message is wanted by nobody. Returns `None` if the feed has no such datagram.
pub fn path(subscriptions: &[Subscription], output: &Output) -> Result<Option<DatagramPath>, Failure> {
    let mut feed = Feed::new(super::spec());
    let found = (0..LOOKED_AT).map(|_| feed.datagram(0)).find(|payload| {
        let messages = itch_feed::messages(payload).unwrap_or_default();
        let wants = |subscription: &&Subscription| messages.iter().any(|message| subscription.filter.wants(message));
        let nobodys = |message: &&Message| !subscriptions.iter().any(|subscription| subscription.filter.wants(message));
        EASY.contains(&messages.len())
            && subscriptions.iter().filter(wants).count() >= 2
            && messages.iter().filter(nobodys).count() >= 1
    });
    let Some(payload) = found else { return Ok(None) };
    let data = capture::frame(&payload);
    let mut lines = vec![line("in ", EXCHANGE, &data)];
    let mut left = Vec::new();
    let frame = Frame { port: PortId(EXCHANGE), data };
    let trace = super::switch(output)?.trace(Time::ZERO, frame, &mut left);
    left.sort_by_key(|frame| frame.port.0);
    lines.extend(left.iter().map(|frame| line("out", frame.port.0, &frame.data)));
    let again = trace.passes.iter().filter(|pass| matches!(pass.kind, PassKind::Received | PassKind::Recirculated));
    Ok(Some(DatagramPath { lines, passes: again.count() }))
}

fn line(direction: &str, port: u32, frame: &[u8]) -> String {
    let payload = capture::payload(frame, PORT).unwrap_or_default();
    let first = moldudp64::Packet::new_checked(&payload).map_or(0, |packet| packet.sequence());
    let messages: Vec<String> = itch_feed::messages(&payload).unwrap_or_default().iter().map(describe).collect();
    let numbers = match messages.len() {
        1 => format!("message {first}"),
        count => format!("messages {first}-{}", first + count as u64 - 1),
    };
    format!("port {port} {direction} {:4} bytes  {numbers}: {}", frame.len(), messages.join(", "))
}

/// Formats a message in a few words.
fn describe(message: &Message) -> String {
    let stock = message.stock().map(|stock| format!(" {stock}")).unwrap_or_default();
    let dollars = |price: wire::itch::Price| f64::from(price.0) / 1e4;
    match &message.body {
        Body::AddOrder(add) => format!("add{stock} {} at {:.2}", add.shares, dollars(add.price)),
        Body::Trade(trade) => format!("trade{stock} {} at {:.2}", trade.shares, dollars(trade.price)),
        Body::OrderExecuted(_) => "execute".to_owned(),
        Body::OrderCancel(_) => "cancel".to_owned(),
        Body::OrderDelete(_) => "delete".to_owned(),
        Body::OrderReplace(_) => "replace".to_owned(),
        other => format!("{}{stock}", char::from(other.letter())),
    }
}
