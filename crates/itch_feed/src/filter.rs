//! Parses the conditions of subscribers and evaluates them on each message.

use std::sync::Arc;

use diagnostics::{Diagnostics, SourceMap};
use subscribe::{Condition, FieldDeclaration, FieldId, HeaderId, MessageFormat, NoIncludes, Rule, Subject};
use wire::itch::Message;

use crate::view::{FIELDS, KINDS, MessageView};

/// A condition in the rule language over the fields of `examples/market-data/feed.p4`: `kind`, `locate`, `stock`,
/// `price` and so on, and the validity of message kinds (`add_order`, `executed`, ...).
#[derive(Clone, Debug)]
pub struct Filter {
    fields: Arc<Fields>,
    condition: Condition,
}

/// A rule of a subscriber.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// Name from `rule NAME:`.
    pub name: Option<String>,
    /// The condition as a string.
    pub condition: String,
    /// The condition.
    pub filter: Filter,
    /// Destination ports of matching messages, ascending.
    pub ports: Vec<u32>,
}

/// The diagnostics of a condition or of rules that do not parse or check.
#[derive(Debug)]
pub struct FilterError {
    /// The diagnostics.
    pub diagnostics: Diagnostics,
    /// The source that they refer to.
    pub map: SourceMap,
}

impl std::fmt::Display for FilterError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.diagnostics.render(&self.map, false))
    }
}

/// The message format, with the meaning of its ids.
#[derive(Debug)]
struct Fields {
    format: MessageFormat,
    /// Header of each kind, by index in [`KINDS`].
    kinds: Vec<HeaderId>,
    /// Field id by index in [`FIELDS`], with the header that is valid if the field is present.
    fields: Vec<(FieldId, Option<HeaderId>)>,
}

impl Fields {
    fn new() -> Fields {
        let mut format = MessageFormat::new();
        let mut header = |name: &str| format.header(name).expect("names are unique");
        let kinds = KINDS.iter().map(|(name, _)| header(name)).collect();
        // Synthetic headers: their names contain spaces, so no rule can mention them. Each is valid exactly when its
        // field is present.
        let owners = FIELDS.map(|field| field.is_optional.then(|| header(&format!("messages with {}", field.name))));
        let fields = FIELDS.iter().zip(owners).map(|(known, header)| {
            let name = known.name.to_owned();
            let field =
                FieldDeclaration { name, width: known.width, kind: known.kind, matching: known.matching, header };
            (format.field(field).expect("names are unique, and widths fit their kind"), header)
        });
        let fields = fields.collect();
        // No slots: aggregates are rejected.
        format.slots = 0;
        Fields { format, kinds, fields }
    }

    fn is_valid(&self, view: &MessageView, header: HeaderId) -> bool {
        match self.kinds.iter().position(|known| *known == header) {
            Some(kind) => view.kind == kind,
            None => self.fields.iter().zip(view.values).any(|((_, of), value)| *of == Some(header) && value.is_some()),
        }
    }

    fn value(&self, view: &MessageView, field: FieldId) -> Option<u128> {
        self.fields.iter().position(|(known, _)| *known == field).and_then(|at| view.values[at])
    }
}

impl Filter {
    /// Parses a condition such as `stock == "GOOGL" and price > 500000`. Prices are in units of 1/10,000 dollar.
    ///
    /// # Errors
    /// The diagnostics of the condition.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        let fields = Arc::new(Fields::new());
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        match subscribe::condition(&mut map, "filter", text, &fields.format, &mut diagnostics) {
            Some(condition) => Ok(Filter { fields, condition }),
            None => Err(FilterError { diagnostics, map }),
        }
    }

    /// Parses rules. `name` identifies the source in diagnostics.
    ///
    /// # Errors
    /// The diagnostics of the rules; a source without rules, or with aggregates, is an error, too.
    pub fn parse_rules(name: &str, text: &str) -> Result<Vec<Subscription>, FilterError> {
        let fields = Arc::new(Fields::new());
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let rules = subscribe::parse(&mut map, name, text, &fields.format, &mut NoIncludes, &mut diagnostics);
        if rules.is_empty() && !diagnostics.has_errors() {
            let text = "there is no rule; a rule looks like: stock == \"GOOGL\" : fwd(2)";
            diagnostics.push(diagnostics::Diagnostic::error("filter", diagnostics::Span::default(), text));
        }
        if diagnostics.has_errors() {
            return Err(FilterError { diagnostics, map });
        }
        let ports = |rule: &Rule| {
            let forwards = rule.actions.iter().filter_map(|action| match action {
                subscribe::RuleAction::Forward(ports) => Some(ports.clone()),
                _ => None,
            });
            forwards.flatten().collect()
        };
        let subscription = |rule: Rule| {
            // The format has no actions of its own, and no built-in action contains a colon.
            let text = map.text(rule.span);
            let written = text.rsplit_once(':').map_or(text, |(condition, _)| condition);
            let written = match &rule.name {
                Some(_) => written.split_once(':').map_or(written, |(_, condition)| condition),
                None => written,
            };
            Subscription {
                name: rule.name.as_deref().map(str::to_owned),
                condition: written.trim().to_owned(),
                ports: ports(&rule),
                filter: Filter { fields: fields.clone(), condition: rule.condition },
            }
        };
        Ok(rules.into_iter().map(subscription).collect())
    }

    /// Whether the subscriber wants a message.
    pub fn wants(&self, message: &Message) -> bool {
        let view = MessageView::new(message);
        let value = |subject| match subject {
            Subject::Field(field) => self.fields.value(&view, field),
            // The format has no counters or aggregates, so no condition can refer to them.
            Subject::Counter(_) | Subject::Aggregate(_) => None,
        };
        self.condition.holds(&|header| self.fields.is_valid(&view, header), &value)
    }
}

#[cfg(test)]
mod tests {
    use wire::itch::{Body, Price, Side, Symbol};

    use super::*;
    use crate::{Feed, Mix, Spec, Workload};

    fn messages() -> Vec<Message> {
        let mut feed = Feed::new(Spec { mix: Mix::BOOK, share: 0.3, ..Workload::Synthetic.spec(4) });
        (0..1_000).flat_map(|at| crate::messages(&feed.datagram(at)).unwrap()).collect()
    }

    /// Checks that the filter agrees with a predicate in Rust.
    fn check(text: &str, predicate: impl Fn(&Message) -> bool) {
        let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let messages = messages();
        let wanted = messages.iter().filter(|message| filter.wants(message)).count();
        assert!(wanted > 0 && wanted < messages.len(), "{text} wants {wanted}");
        for message in messages {
            assert_eq!(filter.wants(&message), predicate(&message), "{text}: {message:?}");
        }
    }

    #[test]
    fn filters_mean_what_they_say() {
        let google = |message: &Message| message.stock() == Some(Symbol(*b"GOOGL   "));
        let order = |message: &Message| match &message.body {
            Body::AddOrder(body) => Some((body.side, body.shares, body.price)),
            Body::AddOrderAttributed(body) => Some((body.side, body.shares, body.price)),
            Body::Trade(body) => Some((body.side, body.shares, body.price)),
            _ => None,
        };
        let letter = |message: &Message| message.body.letter();
        check("stock == \"GOOGL\"", google);
        check("stock != \"GOOGL\"", |message| message.stock().is_some() && !google(message));
        check("not stock == \"GOOGL\"", |message| !google(message));
        check("valid(trade) or kind == \"D\"", |message| matches!(letter(message), b'P' | b'D'));
        check("not valid(delete)", |message| letter(message) != b'D');
        check("locate == 1", |message| message.header.stock_locate == 1);
        check("side in {\"B\", \"S\"}", |message| order(message).is_some());
        check(
            "stock == \"GOOGL\" and price > 5000000 and side == \"B\" or side == \"S\" and shares in 100..200",
            |message| {
                order(message).is_some_and(|(side, shares, price)| {
                    google(message) && price > Price(5_000_000) && side == Side::Buy
                        || side == Side::Sell && (100..=200).contains(&shares)
                })
            },
        );
        check(
            "kind == \"U\" and price > 5000000",
            |message| matches!(&message.body, Body::OrderReplace(body) if body.price > Price(5_000_000)),
        );
        check("kind in {\"E\", \"X\"} and shares < 50", |message| match &message.body {
            Body::OrderExecuted(body) => body.executed < 50,
            Body::OrderCancel(body) => body.cancelled < 50,
            _ => false,
        });
        check(
            "printable == \"Y\"",
            |message| matches!(&message.body, Body::OrderExecutedWithPrice(body) if body.printable == b'Y'),
        );
        let mine = |order| [2, 3, 5, 9, 17].contains(&order);
        check("order in {2, 3, 5, 9, 17} and not valid(add_order)", |message| match &message.body {
            Body::AddOrderAttributed(body) => mine(body.order),
            Body::OrderExecuted(body) => mine(body.order),
            Body::OrderExecutedWithPrice(body) => mine(body.order),
            Body::OrderCancel(body) => mine(body.order),
            Body::OrderDelete(body) => mine(body.order),
            Body::OrderReplace(body) => mine(body.order),
            Body::Trade(body) => mine(body.order),
            _ => false,
        });
    }

    #[test]
    fn attributed_orders_match_as_orders_and_by_attribution() {
        let header = wire::itch::MessageHeader { stock_locate: 1, tracking: 0, timestamp_ns: 0 };
        let (side, shares, stock, price) = (Side::Buy, 100, Symbol(*b"GOOGL   "), Price(5_000_000));
        let attribution = *b"MM  ";
        let attributed = wire::itch::AddOrderAttributed { order: 1, side, shares, stock, price, attribution };
        let plain = wire::itch::AddOrder { order: 1, side, shares, stock, price };
        let messages = [attributed.into(), plain.into()].map(|body| Message { header, body });
        let wanted = |text| messages.each_ref().map(|message| Filter::parse(text).unwrap().wants(message));
        assert_eq!(wanted("stock == \"GOOGL\" and shares == 100 and price <= 5000000 and side == \"B\""), [true, true]);
        assert_eq!(wanted("kind == \"F\" or kind == \"D\""), [true, false]);
        assert_eq!(wanted("attribution == \"MM\""), [true, false]);
        assert_eq!(wanted("attribution != \"XX\""), [true, false]);
        assert_eq!(wanted("not attribution == \"MM\""), [false, true]);
        assert_eq!(wanted("valid(attributed) and not valid(add_order) and not valid(other)"), [true, false]);
    }

    #[test]
    fn rules_have_names_conditions_and_ports() {
        let text = "rule one: stock == \"A\" : fwd(3, 2)\n  price > 5\n and side == \"B\": fwd(4); drop\n";
        let actual: Vec<_> = Filter::parse_rules("rules", text)
            .unwrap()
            .into_iter()
            .map(|rule| (rule.name, rule.condition, rule.ports))
            .collect();
        let expected = [
            (Some("one".to_owned()), "stock == \"A\"".to_owned(), vec![2, 3]),
            (None, "price > 5\n and side == \"B\"".to_owned(), vec![4]),
        ];
        assert_eq!(actual, expected);
    }

    #[test]
    fn wrong_filters_are_errors() {
        for (text, expected) in [
            ("stok == \"GOOGL\"", "`stok`"),
            ("", "filter:1:1"),
            ("price >", "filter:1:8"),
            ("price > 3 : fwd(1)\nstock == \"A\"", "unexpected text after the condition"),
            ("avg(price) > 3", "aggregates cannot be tested here"),
        ] {
            let error = Filter::parse(text).err().unwrap_or_else(|| panic!("`{text}` was accepted"));
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
