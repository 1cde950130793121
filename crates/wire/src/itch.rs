//! Parses and emits messages of TotalView-ITCH 5.0 (Nasdaq): the events of an order book.
//!
//! Every message begins with the same header, and its type determines the rest and the length:
//!
//! ```text
//! type 1 | stock locate 2 | tracking number 2 | timestamp 6 (ns since midnight) | ...
//! ```
//!
//! Numbers are in network order, prices have four decimals ([`Price`]), alphanumeric fields are padded with spaces on
//! the right. Messages about an order already introduced do not repeat the stock's [`Symbol`]; all messages contain the
//! *stock locate* that the day's stock directory assigned to it.
//!
//! [`Message`] has the messages that create and change orders and trades, and the few that a feed cannot do without;
//! others are identified by their type and kept as bytes.

use std::fmt;
use std::str::FromStr;

use crate::Malformed;
use crate::field::require;

mod field;
mod length;
#[cfg(test)]
mod tests;

pub use length::{LETTERS, message_len};

use field::WireField;

/// Size of the header of all messages, in bytes.
pub const HEADER_LEN: usize = 11;
/// Place of the timestamp in a message, in bytes.
pub const TIMESTAMP: std::ops::Range<usize> = 5..HEADER_LEN;

const FORMAT: &str = "ITCH";

/// A stock symbol: up to eight characters, padded with spaces.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(pub [u8; 8]);

/// The error for a string that is not a stock symbol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a stock symbol: write one to eight printable ASCII characters without spaces")]
pub struct InvalidSymbol(String);

impl FromStr for Symbol {
    type Err = InvalidSymbol;

    fn from_str(text: &str) -> Result<Self, InvalidSymbol> {
        if text.is_empty() || text.len() > 8 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidSymbol(text.to_owned()));
        }
        let mut symbol = [b' '; 8];
        symbol[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Symbol(symbol))
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.trim_ascii_end().escape_ascii().to_string().as_str())
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A price in ten-thousandths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Price(pub u32);

impl Price {
    /// Returns a price of this many whole dollars.
    ///
    /// # Panics
    /// Panics if there are more than 429,496, where overflow checks are enabled; elsewhere the price wraps around.
    pub const fn dollars(dollars: u32) -> Price {
        Price(dollars * 10_000)
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:04}", self.0 / 10_000, self.0 % 10_000)
    }
}

/// The side of the book that an order is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// `B`.
    Buy,
    /// `S`.
    Sell,
}

/// The header of all messages, without their type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageHeader {
    /// The stock's locate code, assigned daily; 0 in messages without a stock.
    pub stock_locate: u16,
    /// Nasdaq's internal tracking number.
    pub tracking: u16,
    /// Nanoseconds since midnight; 48 bits.
    pub timestamp_ns: u64,
}

/// Declares the messages: letter of the type, and fields in the order in which they are sent.
macro_rules! messages {
    ($($(#[$doc:meta])* $letter:literal $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl $name {
                /// The type's letter.
                pub const LETTER: u8 = $letter;
                /// Size of the whole message in bytes.
                pub const LEN: usize = HEADER_LEN $(+ <$type as WireField>::LEN)*;
            }
        )*

        /// The part of a message after its header.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Body {
            $($(#[$doc])* $name($name),)*
            /// Another type of message: its letter, and the bytes after the header.
            Other(u8, Vec<u8>),
        }

        impl Body {
            /// Returns the type's letter.
            pub fn letter(&self) -> u8 {
                match self {
                    $(Body::$name(_) => $letter,)*
                    Body::Other(letter, _) => *letter,
                }
            }

            fn parse(letter: u8, mut rest: &[u8]) -> Result<Body, Malformed> {
                match letter {
                    $($letter => {
                        require(FORMAT, rest, $name::LEN - HEADER_LEN)?;
                        Ok(Body::$name($name { $($field: WireField::take(&mut rest)?,)* }))
                    })*
                    other => Ok(Body::Other(other, rest.to_vec())),
                }
            }

            fn emit(&self, bytes: &mut Vec<u8>) {
                match self {
                    $(Body::$name(body) => { $(body.$field.put(bytes);)* })*
                    Body::Other(_, rest) => bytes.extend_from_slice(rest),
                }
            }
        }

        $(
            impl From<$name> for Body {
                fn from(body: $name) -> Body {
                    Body::$name(body)
                }
            }
        )*
    };
}

messages! {
    /// The start or end of the day or of a part of it (section 1.1).
    b'S' SystemEvent {
        /// `O`, `S`, `Q`: start of messages, of system hours, of market hours; `M`, `E`, `C`: end of market hours, of
        /// system hours, of messages.
        event: u8,
    }
    /// A change of a stock's trading state (section 1.2.2).
    b'H' TradingAction {
        /// The stock.
        stock: Symbol,
        /// `H` halted, `P` paused, `Q` quotations only, `T` trading.
        state: u8,
        /// Reserved.
        reserved: u8,
        /// Reason code.
        reason: [u8; 4],
    }
    /// A new order without attribution (section 1.3.1).
    b'A' AddOrder {
        /// The order's number for the day.
        order: u64,
        /// Its side.
        side: Side,
        /// Number of shares.
        shares: u32,
        /// Stock.
        stock: Symbol,
        /// Price.
        price: Price,
    }
    /// A new order with attribution (section 1.3.2).
    b'F' AddOrderAttributed {
        /// The order's number for the day.
        order: u64,
        /// Its side.
        side: Side,
        /// Number of shares.
        shares: u32,
        /// Stock.
        stock: Symbol,
        /// Price.
        price: Price,
        /// The market participant.
        attribution: [u8; 4],
    }
    /// An execution of an order, or of a part of it, at its own price (section 1.4.1).
    b'E' OrderExecuted {
        /// The order.
        order: u64,
        /// Number of shares.
        executed: u32,
        /// Match number.
        match_number: u64,
    }
    /// An execution of an order, or of a part of it, at another price (section 1.4.2).
    b'C' OrderExecutedWithPrice {
        /// The order.
        order: u64,
        /// Number of shares.
        executed: u32,
        /// Match number.
        match_number: u64,
        /// `Y` if it is included in displays of trades and volumes, else `N`.
        printable: u8,
        /// Price.
        price: Price,
    }
    /// A partial cancellation of an order (section 1.4.3).
    b'X' OrderCancel {
        /// The order.
        order: u64,
        /// Number of cancelled shares.
        cancelled: u32,
    }
    /// A deletion of an order (section 1.4.4).
    b'D' OrderDelete {
        /// The order.
        order: u64,
    }
    /// A replacement of an order by another of the same stock and side (section 1.4.5).
    b'U' OrderReplace {
        /// The old order.
        order: u64,
        /// The new order.
        replacement: u64,
        /// New number of shares.
        shares: u32,
        /// Price.
        price: Price,
    }
    /// An execution of a non-displayed order (section 1.5.1).
    b'P' Trade {
        /// The order, or 0.
        order: u64,
        /// Its side.
        side: Side,
        /// Number of shares.
        shares: u32,
        /// Stock.
        stock: Symbol,
        /// Price.
        price: Price,
        /// Match number.
        match_number: u64,
    }
    /// The bulk execution of a cross (auction) (section 1.5.2).
    b'Q' CrossTrade {
        /// Number of shares.
        shares: u64,
        /// Stock.
        stock: Symbol,
        /// Price.
        price: Price,
        /// Match number.
        match_number: u64,
        /// `O` opening, `C` closing, `H` IPO, or after a halt or pause.
        cross: u8,
    }
    /// A match that was cancelled (section 1.5.3).
    b'B' BrokenTrade {
        /// Match number.
        match_number: u64,
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Header.
    pub header: MessageHeader,
    /// Body.
    pub body: Body,
}

impl Message {
    /// Parses a message. Bytes beyond the length of a known type are ignored.
    ///
    /// # Errors
    /// Returns an error if it is shorter than its type requires, or a side is neither `B` nor `S`.
    pub fn parse(bytes: &[u8]) -> Result<Message, Malformed> {
        require(FORMAT, bytes, HEADER_LEN)?;
        let (mut header, rest) = bytes[1..].split_at(HEADER_LEN - 1);
        let stock_locate = WireField::take(&mut header)?;
        let tracking = WireField::take(&mut header)?;
        let timestamp_ns = header.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        Ok(Message {
            header: MessageHeader { stock_locate, tracking, timestamp_ns },
            body: Body::parse(bytes[0], rest)?,
        })
    }

    /// Appends the message to `bytes`. Only the low 48 bits of the timestamp are sent.
    pub fn emit(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.body.letter());
        self.header.stock_locate.put(bytes);
        self.header.tracking.put(bytes);
        bytes.extend_from_slice(&self.header.timestamp_ns.to_be_bytes()[2..]);
        self.body.emit(bytes);
    }

    /// Returns the stock, if the message names it.
    pub fn stock(&self) -> Option<Symbol> {
        match &self.body {
            Body::TradingAction(body) => Some(body.stock),
            Body::AddOrder(body) => Some(body.stock),
            Body::AddOrderAttributed(body) => Some(body.stock),
            Body::Trade(body) => Some(body.stock),
            Body::CrossTrade(body) => Some(body.stock),
            _ => None,
        }
    }
}
