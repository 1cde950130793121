//! Reads arrays, profiles, value sets, digests, actions and tables.

use bits::Bits;
use cranelift_entity::EntityRef;

use super::cursor::TextReader;
use super::lex::TokenKind;
use crate::text::{ALGORITHMS, MATCH_KINDS, UNITS, meaning_of};
use crate::*;

/// An object with a known name, and the range of tokens after its name.
pub(super) type NamedObject<K> = (K, usize, usize);

impl TextReader<'_, '_> {
    /// Reads a word of a table of [`crate::text`].
    fn word_of<T: Copy>(&mut self, table: &[(T, &'static str)], what: &str) -> Option<T> {
        let word = if self.peek() == TokenKind::Word { self.text_of(self.at) } else { "" };
        match meaning_of(table, word) {
            Some(meaning) => {
                self.at += 1;
                Some(meaning)
            }
            None => {
                let words: Vec<_> = table.iter().map(|(_, word)| *word).collect();
                self.expected(&format!("{what} ({})", words.join(", ")))
            }
        }
    }

    fn size<N: std::str::FromStr>(&mut self) -> Option<N> {
        self.expect("size")?;
        self.number("a size")
    }

    pub(super) fn algorithm(&mut self) -> Option<Algorithm> {
        self.word_of(ALGORITHMS, "an algorithm")
    }

    fn match_kind(&mut self) -> Option<MatchKind> {
        self.word_of(MATCH_KINDS, "a match kind")
    }

    pub(super) fn register(&mut self) -> Option<()> {
        let name = self.declared(self.program.registers.next_key(), "register")?;
        self.expect(":")?;
        let width = self.number("a width in bits")?;
        let size = self.size()?;
        let annotations = self.annotations()?;
        let id = self.program.registers.push(Register { name: name.clone(), width, size, annotations });
        self.names.registers.entry(name).or_insert(id);
        Some(())
    }

    /// Reads the common part of counters and meters: unit, size, annotations.
    fn counted(&mut self) -> Option<(Unit, Option<u64>, Vec<Annotation>)> {
        self.expect(":")?;
        let unit = self.word_of(UNITS, "what is counted")?;
        let size = if self.take("direct") { None } else { Some(self.size()?) };
        Some((unit, size, self.annotations()?))
    }

    pub(super) fn counter(&mut self) -> Option<()> {
        let name = self.declared(self.program.counters.next_key(), "counter")?;
        let (unit, size, annotations) = self.counted()?;
        let id = self.program.counters.push(Counter { name: name.clone(), unit, size, annotations });
        self.names.counters.entry(name).or_insert(id);
        Some(())
    }

    pub(super) fn meter(&mut self) -> Option<()> {
        let name = self.declared(self.program.meters.next_key(), "meter")?;
        let (unit, size, annotations) = self.counted()?;
        let id = self.program.meters.push(Meter { name: name.clone(), unit, size, annotations });
        self.names.meters.entry(name).or_insert(id);
        Some(())
    }

    pub(super) fn profile(&mut self) -> Option<()> {
        let name = self.declared(self.program.profiles.next_key(), "profile")?;
        self.expect(":")?;
        let size = self.size()?;
        self.expect("hash")?;
        let hash_width = self.number("a width in bits")?;
        let selector = if self.take("selector") { Some(self.algorithm()?) } else { None };
        let annotations = self.annotations()?;
        let id = self.program.profiles.push(Profile { name: name.clone(), size, selector, hash_width, annotations });
        self.names.profiles.entry(name).or_insert(id);
        Some(())
    }

    pub(super) fn value_set(&mut self) -> Option<()> {
        let name = self.declared(self.program.value_sets.next_key(), "value set")?;
        self.expect(":")?;
        let size = self.size()?;
        self.expect("{")?;
        let mut fields = Vec::new();
        while !self.take("}") {
            let name = self.name("the name of a field, or `}`")?;
            self.expect(":")?;
            let kind = self.match_kind()?;
            fields.push((name, self.number("a width in bits")?, kind));
        }
        let annotations = self.annotations()?;
        let id = self.program.value_sets.push(ValueSet { name: name.clone(), fields, size, annotations });
        self.names.value_sets.entry(name).or_insert(id);
        Some(())
    }

    pub(super) fn digest(&mut self) -> Option<()> {
        let name = self.declared(self.program.digests.next_key(), "digest")?;
        self.expect("{")?;
        let mut fields = Vec::new();
        while !self.take("}") {
            let name = self.name("the name of a field, or `}`")?;
            self.expect(":")?;
            fields.push((name, self.number("a width in bits")?));
        }
        let id = self.program.digests.push(Digest { name: name.clone(), fields });
        self.names.digests.entry(name).or_insert(id);
        Some(())
    }

    /// Reads an action's name; [`Self::action`] reads the rest.
    pub(super) fn action_name(&mut self, found: &mut Vec<NamedObject<ActionId>>) -> Option<()> {
        let name = self.declared(self.program.actions.next_key(), "action")?;
        let (nobody, unknown_position) = (BodyId::new(0), LocId::new(0));
        let action =
            Action { name: name.clone(), params: vec![], body: nobody, annotations: vec![], loc: unknown_position };
        let id = self.program.actions.push(action);
        self.names.actions.entry(name).or_insert(id);
        found.push((id, self.at, self.end));
        self.at = self.end;
        Some(())
    }

    pub(super) fn action(&mut self, id: ActionId) -> Option<()> {
        self.expect("(")?;
        let mut params = Vec::new();
        while !self.take(")") {
            if !params.is_empty() {
                self.expect(",")?;
            }
            let name = self.name("the name of a parameter, or `)`")?;
            self.expect(":")?;
            let slot = self.slot()?;
            params.push(ActionParam { name, slot, annotations: self.annotations()? });
        }
        self.expect("body")?;
        let body = self.reference("body", |names| &names.bodies, |program| &program.bodies, |body| &body.name)?;
        let annotations = self.annotations()?;
        let loc = self.loc()?;
        let name = std::mem::take(&mut self.program.actions[id].name);
        self.program.actions[id] = Action { name, params, body, annotations, loc };
        Some(())
    }

    /// Reads a table's name; [`Self::table`] reads the rest.
    pub(super) fn table_name(&mut self, found: &mut Vec<NamedObject<TableId>>) -> Option<()> {
        let name = self.declared(self.program.tables.next_key(), "table")?;
        let id = self.program.tables.push(Table::new(name.clone()));
        self.names.tables.entry(name).or_insert(id);
        found.push((id, self.at, self.end));
        self.at = self.end;
        Some(())
    }

    pub(super) fn table(&mut self, id: TableId) -> Option<()> {
        let name = self.span_of(self.at.saturating_sub(1));
        self.expect("{")?;
        let mut table = Table::new(self.program.tables[id].name.clone());
        table.loc = self.loc()?;
        let mut default = false;
        // An index, because a table may list many actions, and many entries that name them.
        let mut actions = crate::text::Index::new();
        while !self.take("}") {
            if self.peek() == TokenKind::End {
                return self.expected("`}`");
            }
            default |= self.is("default");
            let start = self.at;
            if self.table_line(&mut table, &mut actions).is_none() {
                self.skip_line(start);
            }
        }
        if !default {
            return self.error_with(name, "this table has no `default`".to_owned(), "write `default ACTION(...)`");
        }
        self.program.tables[id] = table;
        Some(())
    }

    fn table_line(&mut self, table: &mut Table, actions: &mut crate::text::Index<TableActionId>) -> Option<()> {
        if self.is("@") {
            table.annotations.extend(self.annotations()?);
            return Some(());
        }
        let word = self.keyword();
        self.at += 1;
        match word {
            "key" => {
                let name = self.name("the name of a key")?;
                self.expect(":")?;
                let kind = self.match_kind()?;
                let width = self.number("a width in bits")?;
                let signed = self.take("signed");
                self.expect("=")?;
                let expr = self.expr()?;
                table.keys.push(Key { name, expr, width, kind, signed, annotations: self.annotations()? });
            }
            "action" => {
                let action = self.reference("action", |n| &n.actions, |p| &p.actions, |action| &action.name)?;
                let default_only = self.take("default_only");
                let table_only = self.take("table_only");
                let at = TableActionId::new(table.actions.len());
                table.actions.push(TableAction { action, default_only, table_only });
                actions.entry(self.program.actions[action].name.clone()).or_insert(at);
            }
            "default" => {
                table.default_action = self.call(actions, table.actions.len())?;
                table.const_default = self.take("const");
            }
            "size" => table.size = Some(self.number("a size")?),
            "profile" => {
                let profile = self.reference("profile", |n| &n.profiles, |p| &p.profiles, |profile| &profile.name)?;
                table.profile = Some(profile);
            }
            "counter" => {
                let counter = self.reference("counter", |n| &n.counters, |p| &p.counters, |counter| &counter.name)?;
                table.counter = Some(counter);
            }
            "meter" => {
                table.meter = Some(self.reference("meter", |n| &n.meters, |p| &p.meters, |meter| &meter.name)?);
            }
            "idle_timeout" => table.idle_timeout = true,
            "largest_priority_wins" => table.largest_priority_wins = true,
            "const_entries" => table.const_entries = true,
            "entry" => {
                let entry = self.entry(actions, table.actions.len())?;
                table.entries.push(entry);
            }
            _ => {
                self.at -= 1;
                return self.expected("a part of a table (`key`, `action`, `default`, `entry`, ...) or `}`");
            }
        }
        Some(())
    }

    fn entry(&mut self, actions: &crate::text::Index<TableActionId>, count: usize) -> Option<Entry> {
        let mut keys = Vec::new();
        if !self.is("->") && !self.is("priority") {
            keys.push(self.key_value()?);
            while self.take(",") {
                keys.push(self.key_value()?);
            }
        }
        let mut priority = 0;
        if self.take("priority") {
            let negative = self.take("-");
            let size: u32 = self.number("a priority")?;
            let signed = if negative { -i64::from(size) } else { i64::from(size) };
            let Ok(signed) = i32::try_from(signed) else {
                return self.error(self.span_of(self.at - 1), "this priority is too large");
            };
            priority = signed;
        }
        self.expect("->")?;
        let (action, args) = self.call(actions, count)?;
        let constant = self.take("const");
        Some(Entry { keys, priority, action, args, constant, loc: self.loc()? })
    }

    fn key_value(&mut self) -> Option<KeyValue> {
        if self.take("_") {
            return Some(KeyValue::Any);
        }
        let value = self.constant()?;
        Some(if self.take("/") {
            KeyValue::Lpm(value, self.number("a prefix length in bits")?)
        } else if self.take("&&&") {
            KeyValue::Ternary(value, self.constant()?)
        } else if self.take("..") {
            KeyValue::Range(value, self.constant()?)
        } else {
            KeyValue::Exact(value)
        })
    }

    /// Reads one of a table's actions, and arguments for it.
    fn call(&mut self, actions: &crate::text::Index<TableActionId>, count: usize) -> Option<(u32, Vec<Bits>)> {
        let span = self.span();
        let action = if self.peek() == TokenKind::Nameless {
            let number = self.text_of(self.at)[1..].parse::<u32>().ok().filter(|number| (*number as usize) < count);
            self.at += 1;
            match number {
                Some(number) => number,
                None => return self.error(span, format!("the table has {count} actions so far")),
            }
        } else {
            let name = self.name("one of the table's actions")?;
            match actions.get(&name) {
                Some(at) => at.as_u32(),
                None => return self.error(span, format!("the table has no action called {name:?} so far")),
            }
        };
        self.expect("(")?;
        let mut args = Vec::new();
        while !self.take(")") {
            if !args.is_empty() {
                self.expect(",")?;
            }
            args.push(self.constant()?);
        }
        Some((action, args))
    }
}

/// An index into a table's actions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TableActionId(u32);
cranelift_entity::entity_impl!(TableActionId);
