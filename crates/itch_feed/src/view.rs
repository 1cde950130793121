//! Provides the view of a message that rules have: the header fields of `examples/market-data/feed.p4`.

use subscribe::{Match, Padding, ValueKind};
use wire::itch::{Body, Message, Price, Side, Symbol};

/// Message kinds, by their header names, with the letters of their types. The last is for all other types.
pub(crate) const KINDS: [(&str, &[u8]); 9] = [
    ("add_order", b"A"),
    ("attributed", b"F"),
    ("executed", b"E"),
    ("executed_with_price", b"C"),
    ("cancel", b"X"),
    ("delete", b"D"),
    ("replace", b"U"),
    ("trade", b"P"),
    ("other", b""),
];

/// A field of the view.
pub(crate) struct FieldDescription {
    pub name: &'static str,
    pub width: u32,
    pub kind: ValueKind,
    pub matching: Match,
    /// Whether some messages lack the field.
    pub is_optional: bool,
}

const fn known(name: &'static str, width: u32, kind: ValueKind, matching: Match) -> FieldDescription {
    FieldDescription { name, width, kind, matching, is_optional: true }
}

const TEXT: ValueKind = ValueKind::Text(Padding::SPACES);

/// The fields of the view.
pub(crate) const FIELDS: [FieldDescription; 9] = [
    FieldDescription { is_optional: false, ..known("kind", 8, TEXT, Match::Exact) },
    FieldDescription { is_optional: false, ..known("locate", 16, ValueKind::Unsigned, Match::Exact) },
    known("order", 64, ValueKind::Unsigned, Match::Exact),
    known("side", 8, TEXT, Match::Exact),
    known("shares", 32, ValueKind::Unsigned, Match::Any),
    known("stock", 64, TEXT, Match::Exact),
    known("price", 32, ValueKind::Unsigned, Match::Any),
    known("attribution", 32, TEXT, Match::Exact),
    known("printable", 8, TEXT, Match::Exact),
];

/// The view of a message.
pub(crate) struct MessageView {
    /// Index in [`KINDS`].
    pub kind: usize,
    /// Values by index in [`FIELDS`]; `None` if the message has no such field.
    pub values: [Option<u128>; FIELDS.len()],
}

/// The fields after `locate`, if the message has them.
#[derive(Default)]
struct Parts {
    order: Option<u64>,
    side: Option<Side>,
    shares: Option<u32>,
    stock: Option<Symbol>,
    price: Option<Price>,
    attribution: Option<[u8; 4]>,
    printable: Option<u8>,
}

impl Parts {
    fn of(body: &Body) -> Parts {
        let none = Parts::default();
        match body {
            Body::AddOrder(body) => Parts::full(body.order, body.side, body.shares, body.stock, body.price),
            Body::AddOrderAttributed(body) => Parts {
                attribution: Some(body.attribution),
                ..Parts::full(body.order, body.side, body.shares, body.stock, body.price)
            },
            Body::Trade(body) => Parts::full(body.order, body.side, body.shares, body.stock, body.price),
            Body::OrderExecuted(body) => Parts { order: Some(body.order), shares: Some(body.executed), ..none },
            Body::OrderExecutedWithPrice(body) => Parts {
                order: Some(body.order),
                shares: Some(body.executed),
                price: Some(body.price),
                printable: Some(body.printable),
                ..none
            },
            Body::OrderCancel(body) => Parts { order: Some(body.order), shares: Some(body.cancelled), ..none },
            Body::OrderDelete(body) => Parts { order: Some(body.order), ..none },
            Body::OrderReplace(body) => {
                Parts { order: Some(body.order), shares: Some(body.shares), price: Some(body.price), ..none }
            }
            Body::SystemEvent(_)
            | Body::TradingAction(_)
            | Body::CrossTrade(_)
            | Body::BrokenTrade(_)
            | Body::Other(..) => none,
        }
    }

    /// Returns the fields of a new order or a trade.
    fn full(order: u64, side: Side, shares: u32, stock: Symbol, price: Price) -> Parts {
        Parts {
            order: Some(order),
            side: Some(side),
            shares: Some(shares),
            stock: Some(stock),
            price: Some(price),
            ..Parts::default()
        }
    }
}

impl MessageView {
    pub(crate) fn new(message: &Message) -> MessageView {
        let letter = message.body.letter();
        let kind = KINDS.iter().position(|(_, letters)| letters.contains(&letter));
        let parts = Parts::of(&message.body);
        let side = |side| if side == Side::Buy { b'B' } else { b'S' };
        let values = [
            Some(letter.into()),
            Some(message.header.stock_locate.into()),
            parts.order.map(u128::from),
            parts.side.map(|given| side(given).into()),
            parts.shares.map(u128::from),
            parts.stock.map(|stock| u64::from_be_bytes(stock.0).into()),
            parts.price.map(|price| price.0.into()),
            parts.attribution.map(|text| u32::from_be_bytes(text).into()),
            parts.printable.map(u128::from),
        ];
        MessageView { kind: kind.unwrap_or(KINDS.len() - 1), values }
    }
}
