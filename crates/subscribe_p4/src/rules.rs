//! What rules may speak of, for the crate that compiles them.

use std::collections::BTreeMap;

use source::Span;
use subscribe::{ActionDeclaration, Condition, FormatError, HeaderId as RuleHeader, Kind, Padding, Parameter};

use crate::format::{Format, HeaderId, Match, Notation};

/// The format as rules see it, and what its headers stand for here.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Fields, actions, counters and aggregates have the numbers of the program's.
    pub format: subscribe::Format,
    /// For each header of `format`: it is valid if one of these is.
    pub headers: Vec<Vec<HeaderId>>,
}

impl Rules {
    /// What holds of every message that a switch can see: a header that stands for several is there if one of them is, and
    /// a message is of one kind.
    pub fn possible(&self, format: &Format) -> Condition {
        let valid = |at: usize| Condition::Valid { header: RuleHeader(at as u16), span: Span::default() };
        let mut all = Vec::new();
        for (at, of) in self.headers.iter().enumerate().filter(|(_, of)| of.len() > 1) {
            let any = || Condition::Any(of.iter().map(|header| valid(header.0)).collect());
            all.push(Condition::Any(vec![valid(at), Condition::Not(Box::new(any()))]));
            all.push(Condition::Any(vec![Condition::Not(Box::new(valid(at))), any()]));
        }
        let kinds: Vec<usize> =
            format.messages.iter().flat_map(|messages| &messages.kinds).map(|kind| kind.header.0).collect();
        if !kinds.is_empty() {
            all.push(Condition::Any(kinds.iter().map(|kind| valid(*kind)).collect()));
        }
        for (at, kind) in kinds.iter().enumerate() {
            for other in &kinds[at + 1..] {
                all.push(Condition::Not(Box::new(Condition::All(vec![valid(*kind), valid(*other)]))));
            }
        }
        if all.is_empty() { Condition::Always } else { Condition::All(all) }
    }
}

/// The format as rules see it. A field that lies in several headers has a value if one of them is valid: these are a header
/// of their own to rules, under a name that nobody can write.
///
/// # Errors
/// If two declarations have one name, or codes do not suit their field.
pub fn rules(format: &Format) -> Result<Rules, FormatError> {
    let mut out = subscribe::Format::new();
    // Without declarations, rules may use no aggregates.
    out.slots = 0;
    let mut headers = Vec::new();
    let mut known: BTreeMap<Vec<HeaderId>, RuleHeader> = BTreeMap::new();
    for (at, header) in format.headers.iter().enumerate() {
        known.insert(vec![HeaderId(at)], out.header(&header.name)?);
        headers.push(vec![HeaderId(at)]);
    }
    for field in &format.fields {
        let sources: Vec<HeaderId> = field.sources.iter().map(|source| source.header).collect();
        let header = match known.get(&sources) {
            Some(header) => *header,
            None => {
                let names: Vec<&str> = sources.iter().map(|source| format.headers[source.0].name.as_str()).collect();
                let header = out.header(&names.join(" or "))?;
                known.insert(sources.clone(), header);
                headers.push(sources);
                header
            }
        };
        let kind = match field.notation {
            Notation::Number => Kind::Unsigned,
            Notation::Text => Kind::Text(Padding::SPACES),
            Notation::Ipv4 => Kind::Ipv4,
            Notation::Ipv6 => Kind::Ipv6,
            Notation::Mac => Kind::Mac,
        };
        let matching = match field.matched {
            Match::Exact => subscribe::Match::Exact,
            Match::Lpm => subscribe::Match::Lpm,
            Match::Range => subscribe::Match::Range,
        };
        let (name, width) = (field.name.clone(), field.width);
        let id = out.field(subscribe::Field { name, width, kind, matching, header: Some(header) })?;
        if let Some(bits) = field.codes {
            out.compress(id, bits)?;
        }
    }
    for action in &format.actions {
        let parameter = |(name, width): &(String, u32)| Parameter { name: name.clone(), width: *width };
        let parameters = action.params.iter().map(parameter).collect();
        out.action(ActionDeclaration { name: action.name.clone(), parameters })?;
    }
    for counter in &format.counters {
        let (name, window) = (counter.name.clone(), counter.window);
        out.counter(subscribe::Counter { name, width: 64, window })?;
    }
    for aggregate in &format.aggregates {
        let (slots, keys) = (aggregate.slots, aggregate.keys);
        out.compute(subscribe::Computed { aggregate: aggregate.computes.clone(), slots, keys });
    }
    Ok(Rules { format: out, headers })
}
