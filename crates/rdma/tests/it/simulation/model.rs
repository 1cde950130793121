//! The contents of the memory over time, and the effects that requests may have on it.

use std::collections::BTreeMap;

use super::Violation;

/// Size of the words that the model distinguishes.
pub const WORD: usize = 8;

/// A request, as the model sees it.
#[derive(Clone, Debug)]
pub enum Operation {
    /// A range of bytes.
    Read { start: usize, len: usize },
    /// A range of words. The value of each is unique.
    Write { start: usize, words: usize },
    /// A word and a unique number.
    FetchAdd { word: usize, add: u64 },
    /// A word, the value that it should have, and its unique new value.
    CompareSwap { word: usize, compare: u64, swap: u64 },
}

/// A request that was issued.
#[derive(Clone, Debug)]
pub struct IssuedRequest {
    pub operation: Operation,
    /// Connection that carries it. It is closed when the connection is no longer open at the responder.
    pub connection: usize,
    pub issued: u64,
    pub is_ended: bool,
    /// Time of the change and previous value, for each word that it has changed.
    applied: BTreeMap<usize, (u64, u64)>,
}

/// The value of word `word` that request `token` writes.
pub fn value(token: u64, word: usize) -> u64 {
    token << 16 | 1 << 15 | word as u64
}

/// Values of the memory over time, and the requests.
pub struct Model {
    mtu_bytes: usize,
    /// For each word, the time of each change and the value from then on.
    history: Vec<Vec<(u64, u64)>>,
    pub requests: Vec<IssuedRequest>,
    /// Connections that are open at the responder.
    pub open: Vec<bool>,
}

impl Model {
    pub fn new(words: usize, mtu_bytes: usize) -> Model {
        Model { mtu_bytes, history: vec![vec![(0, 0)]; words], requests: Vec::new(), open: Vec::new() }
    }

    pub fn issue(&mut self, operation: Operation, connection: usize, issued: u64) -> u64 {
        let request = IssuedRequest { operation, connection, issued, is_ended: false, applied: BTreeMap::new() };
        self.requests.push(request);
        self.requests.len() as u64 - 1
    }

    pub fn current(&self, word: usize) -> u64 {
        self.history[word].last().expect("a word begins with a value").1
    }

    /// Records that all memory is lost.
    pub fn forget(&mut self, now: u64) {
        self.history.iter_mut().for_each(|word| word.push((now, 0)));
    }

    /// Compares the memory with its last state, and judges each change.
    pub fn observe(&mut self, now: u64, memory: &[u8]) -> Result<(), Violation> {
        for word in 0..self.history.len() {
            let bytes = memory[word * WORD..][..WORD].try_into().expect("eight bytes");
            let (before, after) = (self.current(word), u64::from_le_bytes(bytes));
            if before != after {
                self.change(now, word, before, after)?;
                self.history[word].push((now, after));
            }
        }
        Ok(())
    }

    fn change(&mut self, now: u64, word: usize, before: u64, after: u64) -> Result<(), Violation> {
        let wrong = |why: &str| Err(Violation::WrongChange(format!("word {word}: {before:#x} to {after:#x}: {why}")));
        let causes = |request: &IssuedRequest, token: u64| match request.operation {
            Operation::Write { start, words } => (start..start + words).contains(&word) && value(token, word) == after,
            Operation::FetchAdd { word: at, add } => at == word && before.wrapping_add(add) == after,
            Operation::CompareSwap { word: at, compare, swap } => at == word && compare == before && swap == after,
            Operation::Read { .. } => false,
        };
        let found = (0..).zip(&self.requests).find(|(token, request)| causes(request, *token));
        let Some((token, request)) = found else { return wrong("no request does this") };
        if request.applied.contains_key(&word) {
            return wrong("the request was applied before");
        }
        if !self.open[request.connection] {
            return wrong("the connection of the request is closed");
        }
        let earlier = &self.requests[token as usize + 1..];
        let overtaken = earlier.iter().any(|later| later.connection == request.connection && !later.applied.is_empty());
        if overtaken {
            return wrong("a later request of its queue pair was applied before it");
        }
        self.requests[token as usize].applied.insert(word, (now, before));
        Ok(())
    }

    /// Judges the result of a READ.
    pub fn end_read(&mut self, now: u64, token: u64, data: &[u8]) -> Result<(), Violation> {
        let request = self.end(token)?.clone();
        let wrong = |why: String| Err(Violation::WrongRead(format!("request {token} at {now}: {why}")));
        let Operation::Read { start, len } = request.operation else { return wrong("it is no READ".to_owned()) };
        if data.len() != len {
            return wrong(format!("{} bytes instead of {len}", data.len()));
        }
        // Each packet of the answer is of one moment, so a word is split at the end of a packet.
        let ends = (start..start + len).step_by(self.mtu_bytes).skip(1).chain([start + len]);
        let mut pieces = Vec::new();
        let mut from = start;
        for end in ends {
            while from < end {
                let until = end.min((from / WORD + 1) * WORD);
                pieces.push((from, until));
                from = until;
            }
        }
        for (from, until) in pieces {
            let word = from / WORD;
            let part = from - word * WORD..until - word * WORD;
            let earlier = self.requests[..token as usize].iter().filter(|other| other.connection == request.connection);
            let own = earlier.filter_map(|other| other.applied.get(&word)).map(|(time, _)| *time).max();
            let since = request.issued.max(own.unwrap_or(0));
            let history = &self.history[word];
            let is_held = history.iter().enumerate().any(|(index, (_, value))| {
                let end = history.get(index + 1).map_or(u64::MAX, |(time, _)| *time);
                end >= since && value.to_le_bytes()[part.clone()] == data[from - start..until - start]
            });
            if !is_held {
                return wrong(format!("word {word}, since {since}: {:?}", &data[from - start..until - start]));
            }
        }
        Ok(())
    }

    /// Judges the result of a WRITE.
    pub fn end_write(&mut self, token: u64) -> Result<(), Violation> {
        let request = self.end(token)?;
        match request.operation {
            Operation::Write { words, .. } if request.applied.len() == words => Ok(()),
            _ => Err(Violation::WrongCompletion(format!("WRITE {token} is not in the memory"))),
        }
    }

    /// Judges the result of an atomic operation.
    pub fn end_atomic(&mut self, token: u64, original: u64) -> Result<(), Violation> {
        let request = self.end(token)?.clone();
        let applied = request.applied.values().next().map(|(_, before)| *before);
        let is_right = match request.operation {
            Operation::FetchAdd { .. } => applied == Some(original),
            Operation::CompareSwap { compare, .. } if applied.is_some() => original == compare,
            Operation::CompareSwap { word, compare, .. } => {
                original != compare && self.history[word].iter().any(|(_, value)| *value == original)
            }
            Operation::Read { .. } | Operation::Write { .. } => false,
        };
        let wrong = || Violation::WrongCompletion(format!("atomic operation {token}: {original:#x}"));
        if is_right { Ok(()) } else { Err(wrong()) }
    }

    /// Records the end of a request. Each request ends once.
    pub fn end(&mut self, token: u64) -> Result<&IssuedRequest, Violation> {
        let request = self.requests.get_mut(token as usize).filter(|request| !request.is_ended);
        let request = request.ok_or_else(|| Violation::WrongCompletion(format!("request {token} ended twice")))?;
        request.is_ended = true;
        Ok(request)
    }
}
