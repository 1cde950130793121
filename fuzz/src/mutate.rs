//! Changes to inputs: of bytes, of lines, and of tokens.

use crate::random::Random;

/// Maximum size of a mutated input, in bytes.
const MAX_BYTES: usize = 48 << 10;

/// Words and signs that mean something in P4, in IR text and in JSON. Putting one where it does not belong reaches
/// further than a random byte does.
const TOKENS: &str = r##"
    action actions apply bit bool const control default else entries enum error exit extern false for header
    header_union if in inout int key match_kind out package parser return select size state string struct switch table
    this transition true tuple type typedef varbit valueset void break continue list abstract accept reject packet hdr
    meta isValid setValid setInvalid extract emit lookahead advance next last lastIndex push_front pop_front hit miss
    action_run ( ) [ ] { } < > << >> |+| |-| ++ + - * / % & && &&& | || ^ ~ ! == != <= >= = ? : ; , . .. ... @ _ #define
    #include #if #endif #else 0 1 32w0 8w255 4s7 0x 1w2 0b1 bit<32> int<8> bit<0> bit<2048> bit<99999999999>
    varbit<320> null -1 " \ /* */ // mark_to_drop(standard_metadata); packet.extract(hdr.next); goto slot zext sext block
"##;

fn token(random: &mut Random) -> &'static [u8] {
    let tokens: Vec<&str> = TOKENS.split_whitespace().collect();
    match random.below(tokens.len() + 1) {
        0 => b"\n",
        at => tokens[at - 1].as_bytes(),
    }
}

/// A changed copy of `input`: one to some changes of bytes or lines, now and then with a piece of `other`.
pub fn any(input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut data = input.to_vec();
    for _ in 0..=random.below(4) {
        match random.below(3) {
            0 => bytes(&mut data, random),
            1 => lines(&mut data, other, random),
            _ => tokens(&mut data, other, random),
        }
    }
    data.truncate(MAX_BYTES);
    data
}

/// One change of bytes.
pub fn bytes(data: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(data.len() + 1);
    match random.below(8) {
        0 if at < data.len() => data[at] ^= 1 << random.below(8),
        1 if at < data.len() => data[at] = random.next() as u8,
        2 => data.insert(at, random.next() as u8),
        3 => data.truncate(at),
        4 => {
            let end = (at + random.below(16)).min(data.len());
            data.drain(at..end);
        }
        5 => {
            let end = (at + 1 + random.below(64)).min(data.len());
            let piece = data[at..end].to_vec();
            let times = 1 + random.below(8);
            data.splice(at..at, piece.repeat(times));
        }
        6 => {
            // A number in binary, in either order: lengths and offsets of capture files.
            let width = *random.pick(&[1, 2, 4, 8]);
            let number = random.interesting();
            let encoded = if random.one_in(2) { number.to_le_bytes() } else { number.to_be_bytes() };
            let encoded = if random.one_in(2) { &encoded[..width] } else { &encoded[8 - width..] };
            for (target, byte) in data[at..].iter_mut().zip(encoded) {
                *target = *byte;
            }
        }
        _ => {
            data.splice(at..at, token(random).iter().copied());
        }
    }
}

/// One change of lines: one is removed, doubled, moved, or taken from `other`.
pub fn lines(data: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let mut lines: Vec<&[u8]> = data.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.is_empty() {
        return;
    }
    let (at, other_at) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(4) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[other_at]),
        2 => lines.swap(at, other_at),
        _ => {
            let from: Vec<&[u8]> = other.split_inclusive(|byte| *byte == b'\n').collect();
            let start = random.below(from.len());
            let end = (start + 1 + random.below(6)).min(from.len());
            for line in from.get(start..end).unwrap_or_default().iter().rev() {
                lines.insert(at, line);
            }
        }
    }
    *data = lines.concat();
}

/// One change of tokens: one is removed, doubled, replaced by a known word, a number or a token of `other`, or
/// wrapped many times in brackets.
pub fn tokens(data: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let pieces = split(data);
    if pieces.is_empty() {
        return;
    }
    let mut pieces: Vec<Vec<u8>> = pieces.into_iter().map(<[u8]>::to_vec).collect();
    let at = random.below(pieces.len());
    match random.below(8) {
        0 => drop(pieces.remove(at)),
        1 => pieces.insert(at, pieces[random.below(pieces.len())].clone()),
        2 => pieces[at] = token(random).to_vec(),
        3 => pieces.insert(at, token(random).to_vec()),
        4 => pieces[at] = random.interesting().to_string().into_bytes(),
        5 => {
            let from = split(other);
            if !from.is_empty() {
                pieces[at] = random.pick(&from).to_vec();
            }
        }
        6 => {
            // A run of tokens of the other input: an expression, a statement.
            let from = split(other);
            let start = random.below(from.len());
            let end = (start + 1 + random.below(24)).min(from.len());
            let run = from.get(start..end).unwrap_or_default().concat();
            pieces.insert(at, run);
        }
        _ => {
            let (open, close) = *random.pick(&[("(", ")"), ("{", "}"), ("[", "]"), ("-", ""), ("!", ""), ("a.", "")]);
            let times = *random.pick(&[1, 3, 60, 2000]);
            pieces.insert(at, open.repeat(times).into_bytes());
            let end = (at + 2).min(pieces.len());
            pieces.insert(end, close.repeat(times).into_bytes());
        }
    }
    *data = pieces.concat();
}

/// Words, runs of white space, and single other bytes.
pub fn split(text: &[u8]) -> Vec<&[u8]> {
    let class = |byte: &u8| match byte {
        byte if byte.is_ascii_alphanumeric() || *byte == b'_' => 0,
        byte if byte.is_ascii_whitespace() => 1,
        _ => 2,
    };
    text.chunk_by(|a, b| class(a) == class(b) && class(a) != 2).collect()
}
