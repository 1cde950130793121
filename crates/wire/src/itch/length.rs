//! Lists the lengths of all message types, also of those that [`Body`](super::Body) keeps as bytes.

/// Returns the length of a type's messages in bytes, or `None` if TotalView-ITCH 5.0 has no such type.
pub const fn message_len(letter: u8) -> Option<usize> {
    Some(match letter {
        // System events, and the state of each stock (section 1.2).
        b'S' | b'W' => 12,
        b'R' => 39,
        b'H' => 25,
        b'Y' => 20,
        b'L' => 26,
        b'V' | b'J' => 35,
        b'K' => 28,
        b'h' => 21,
        // Orders (sections 1.3 and 1.4).
        b'A' | b'C' => 36,
        b'F' => 40,
        b'E' => 31,
        b'X' => 23,
        b'D' => 19,
        b'U' => 35,
        // Trades (section 1.5).
        b'P' => 44,
        b'Q' => 40,
        b'B' => 19,
        // Imbalances, retail interest, and direct listings (sections 1.6 to 1.8).
        b'I' => 50,
        b'N' => 20,
        b'O' => 48,
        _ => return None,
    })
}

/// The letters of all types.
pub const LETTERS: [u8; 23] = *b"SRHYLVWKJhAFECXDUPQBINO";

#[cfg(test)]
mod tests {
    use super::super::*;

    #[test]
    fn the_lengths_are_those_of_the_parsed_messages() {
        let parsed = [
            (SystemEvent::LETTER, SystemEvent::LEN),
            (TradingAction::LETTER, TradingAction::LEN),
            (AddOrder::LETTER, AddOrder::LEN),
            (AddOrderAttributed::LETTER, AddOrderAttributed::LEN),
            (OrderExecuted::LETTER, OrderExecuted::LEN),
            (OrderExecutedWithPrice::LETTER, OrderExecutedWithPrice::LEN),
            (OrderCancel::LETTER, OrderCancel::LEN),
            (OrderDelete::LETTER, OrderDelete::LEN),
            (OrderReplace::LETTER, OrderReplace::LEN),
            (Trade::LETTER, Trade::LEN),
            (CrossTrade::LETTER, CrossTrade::LEN),
            (BrokenTrade::LETTER, BrokenTrade::LEN),
        ];
        for (letter, len) in parsed {
            assert_eq!(message_len(letter), Some(len), "{}", char::from(letter));
        }
    }

    #[test]
    fn exactly_the_listed_letters_are_types() {
        let known: Vec<u8> = (0..=u8::MAX).filter(|letter| message_len(*letter).is_some()).collect();
        let mut listed = LETTERS.to_vec();
        listed.sort_unstable();
        assert_eq!(known, listed);
    }
}
