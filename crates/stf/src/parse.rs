//! Parses scripts. A line that cannot be parsed is reported, and parsing continues with the next line.

mod words;

use diagnostics::names::nearest;
use diagnostics::{Diagnostics, FileId, SourceMap};
use engine::CrcParams;

use crate::data::PacketPattern;
use crate::lex::TokenLine;
use crate::script::{ActionCallText, Command, CommandKind, ElementRef, EntryTarget, Script, Word};
use words::{
    LineResult, expect_sign, many, name, port, queue, rate, relation, shown, small, targets, value, word, written,
    wrong,
};

/// Parses the file `file` of `map`. Returns `None` after an error; all errors are in `diagnostics` then.
pub fn parse(map: &SourceMap, file: FileId, diagnostics: &mut Diagnostics) -> Option<Script> {
    let before = diagnostics.error_count();
    let text = map.file(file).text().clone();
    let mut script = Script::default();
    let mut start = 0;
    for text in text.split_inclusive('\n') {
        let mut line = TokenLine::new(file, start, text);
        start += text.len() as u32;
        if line.peek().is_none() {
            continue;
        }
        let span = line.span();
        match command(&mut line) {
            Ok(kind) => {
                script.ports.append(&mut line.ports);
                script.commands.push(Command { span, kind });
            }
            Err(diagnostic) => diagnostics.push(*diagnostic),
        }
    }
    (diagnostics.error_count() == before).then_some(script)
}

const COMMANDS: [&str; 44] = [
    "packet",
    "expect",
    "no_packet",
    "wait",
    "add",
    "setdefault",
    "remove",
    "check_counter",
    "check_register",
    "check_digest",
    "check_idle",
    "mirroring_add",
    "mirroring_add_mc",
    "mirroring_delete",
    "mirroring_get",
    "mc_mgrp_create",
    "mc_node_create",
    "mc_node_update",
    "mc_node_associate",
    "mc_set_lag_membership",
    "counter_read",
    "counter_write",
    "register_read",
    "register_write",
    "register_reset",
    "meter_get_rates",
    "meter_set_rates",
    "meter_array_set_rates",
    "member",
    "group",
    "act_prof_create_member",
    "act_prof_create_group",
    "act_prof_add_member_to_group",
    "table_set_timeout",
    "table_indirect_add",
    "table_indirect_add_with_group",
    "pvs_add",
    "pvs_clear",
    "set_queue_rate",
    "set_queue_depth",
    "port_up",
    "port_down",
    "set_crc16_parameters",
    "set_crc32_parameters",
];

fn command(line: &mut TokenLine) -> LineResult<CommandKind> {
    let word = word(line, "a command")?;
    let verb = word.text.to_ascii_lowercase();
    let families = [test_command, object_command, traffic_command];
    let found = families.into_iter().find_map(|family| family(&verb, line).transpose());
    let Some(found) = found.transpose()? else {
        let error = wrong(word.span, format!("unknown command `{verb}`"));
        return Err(match nearest(&verb, COMMANDS) {
            Some(near) => Box::new(error.help(format!("did you mean `{near}`?"))),
            None => error,
        });
    };
    match line.peek() {
        None => Ok(found),
        Some(rest) => {
            let error = wrong(rest.span, format!("unexpected `{}`", shown(&rest.text)));
            Err(Box::new(error.label(format!("`{}` takes no further arguments", word.text))))
        }
    }
}

/// Parses the arguments of a command that sends a packet or checks something; `None` if the verb is of another kind.
fn test_command(verb: &str, line: &mut TokenLine) -> LineResult<Option<CommandKind>> {
    Ok(Some(match verb {
        "packet" => packet(line)?,
        "expect" => {
            let port = port(line)?;
            CommandKind::Expect { port, pattern: pattern(line)? }
        }
        "no_packet" => CommandKind::NoPacket,
        "wait" => CommandKind::Wait,
        "check_counter" => check_counter(line)?,
        "check_register" => {
            let (name, element) = element(line)?;
            let ElementRef::Index(index) = element else {
                return Err(wrong(name.span, "a register element must be given by its index"));
            };
            CommandKind::CheckRegister { name, index, relation: relation(line)?, value: value(line)? }
        }
        "check_digest" => CommandKind::CheckDigest { name: name(line, "a digest")?, values: many(line, value)? },
        "check_idle" => {
            let any = line.peek().is_some();
            CommandKind::CheckIdle {
                entries: if any { many(line, |line| name(line, "an entry"))? } else { Vec::new() },
            }
        }
        _ => return Ok(None),
    }))
}

/// Parses the arguments of a command for the program's objects; `None` if the verb is of another kind.
fn object_command(verb: &str, line: &mut TokenLine) -> LineResult<Option<CommandKind>> {
    Ok(Some(match verb {
        "add" => add(line, None)?,
        "table_indirect_add" => add(line, Some(EntryTarget::Member))?,
        "table_indirect_add_with_group" => add(line, Some(EntryTarget::Group))?,
        "setdefault" => CommandKind::SetDefault { table: name(line, "a table")?, call: call(line)? },
        "remove" => match word(line, "`all` or the name of an entry")? {
            word if word.text.eq_ignore_ascii_case("all") => CommandKind::RemoveAll,
            id => CommandKind::Remove { id },
        },
        "counter_read" => CommandKind::CounterRead { name: name(line, "a counter")?, index: small(line, "an index")? },
        "counter_write" => CommandKind::CounterWrite {
            name: name(line, "a counter")?,
            index: small(line, "an index")?,
            packets: small(line, "a number of packets")?,
            bytes: small(line, "a number of bytes")?,
        },
        "register_read" => {
            CommandKind::RegisterRead { name: name(line, "a register")?, index: small(line, "an index")? }
        }
        "register_write" => CommandKind::RegisterWrite {
            name: name(line, "a register")?,
            index: small(line, "an index")?,
            value: value(line)?,
        },
        "register_reset" => CommandKind::RegisterReset { name: name(line, "a register")? },
        "meter_get_rates" => CommandKind::MeterGet { name: name(line, "a meter")?, index: small(line, "an index")? },
        "meter_set_rates" => CommandKind::MeterSet {
            name: name(line, "a meter")?,
            index: Some(small(line, "an index")?),
            rates: [rate(line)?, rate(line)?],
        },
        "meter_array_set_rates" => {
            CommandKind::MeterSet { name: name(line, "a meter")?, index: None, rates: [rate(line)?, rate(line)?] }
        }
        "act_prof_create_member" => CommandKind::MemberCreate {
            profile: name(line, "an action profile")?,
            member: None,
            call: bare_call(line)?,
        },
        "act_prof_create_group" => CommandKind::MemberGroupCreate {
            profile: name(line, "an action profile")?,
            group: None,
            members: Vec::new(),
        },
        "member" => CommandKind::MemberCreate {
            profile: name(line, "an action profile")?,
            member: Some(small(line, "a member")?),
            call: bare_call(line)?,
        },
        "group" => CommandKind::MemberGroupCreate {
            profile: name(line, "an action profile")?,
            group: Some(small(line, "a group")?),
            members: many(line, |line| small(line, "a member"))?,
        },
        "act_prof_add_member_to_group" => member_join(line)?,
        "table_set_timeout" => {
            CommandKind::TimeoutSet { entry: name(line, "an entry")?, ms: small(line, "a number of milliseconds")? }
        }
        "pvs_add" => CommandKind::ValueSetAdd { name: name(line, "a value set")?, values: many(line, written)? },
        "pvs_clear" => CommandKind::ValueSetClear { name: name(line, "a value set")? },
        "set_crc16_parameters" => crc(line, 16)?,
        "set_crc32_parameters" => crc(line, 32)?,
        _ => return Ok(None),
    }))
}

/// Parses the arguments of a command for the traffic manager; `None` if the verb is of another kind.
fn traffic_command(verb: &str, line: &mut TokenLine) -> LineResult<Option<CommandKind>> {
    Ok(Some(match verb {
        "mirroring_add" => CommandKind::MirrorAdd { session: small(line, "a session")?, port: port(line)? },
        "mirroring_add_mc" => {
            CommandKind::MirrorAddGroup { session: small(line, "a session")?, group: small(line, "a multicast group")? }
        }
        "mirroring_delete" => CommandKind::MirrorDelete { session: small(line, "a session")? },
        "mirroring_get" => CommandKind::MirrorGet { session: small(line, "a session")? },
        "mc_mgrp_create" => CommandKind::GroupCreate { group: small(line, "a multicast group")? },
        "mc_node_create" => CommandKind::NodeCreate { rid: small(line, "a replication id")?, targets: targets(line)? },
        "mc_node_update" => CommandKind::NodeUpdate { node: small(line, "a node")?, targets: targets(line)? },
        "mc_set_lag_membership" => CommandKind::LagMembers { lag: small(line, "a LAG")?, ports: many(line, port)? },
        "mc_node_associate" => {
            CommandKind::NodeAssociate { group: small(line, "a multicast group")?, node: small(line, "a node")? }
        }
        "set_queue_rate" => {
            let pps = small(line, "a number of packets per second")?;
            let (port, queue) = queue(line)?;
            CommandKind::QueueRate { pps, port, queue }
        }
        "set_queue_depth" => {
            let packets = small(line, "a number of packets")?;
            let (port, queue) = queue(line)?;
            CommandKind::QueueDepth { packets, port, queue }
        }
        "port_up" => CommandKind::PortUp { port: port(line)?, up: true },
        "port_down" => CommandKind::PortUp { port: port(line)?, up: false },
        _ => return Ok(None),
    }))
}

fn packet(line: &mut TokenLine) -> LineResult<CommandKind> {
    let port = port(line)?;
    let start = line.here();
    let mut nibbles: Vec<u8> = Vec::new();
    while let Some(word) = line.next() {
        for c in word.text.chars() {
            match c.to_digit(16) {
                Some(digit) => nibbles.push(digit as u8),
                None => return Err(wrong(word.span, format!("`{}` is not hexadecimal", shown(&word.text)))),
            }
        }
    }
    if !nibbles.len().is_multiple_of(2) {
        let error = wrong(start.to(line.end), format!("a packet of {} hexadecimal digits", nibbles.len()));
        return Err(Box::new(error.label("each byte takes two digits")));
    }
    Ok(CommandKind::Packet { port, data: nibbles.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect() })
}

fn pattern(line: &mut TokenLine) -> LineResult<PacketPattern> {
    // Without digits any packet is expected.
    let mut pattern = PacketPattern::default();
    while let Some(word) = line.next() {
        for c in word.text.chars() {
            if pattern.exact {
                return Err(wrong(word.span, "nothing may follow `$`"));
            }
            match (c, c.to_digit(16)) {
                ('*', _) => pattern.nibbles.push(None),
                ('$', _) => pattern.exact = true,
                (_, Some(digit)) => pattern.nibbles.push(Some(digit as u8)),
                _ => {
                    return Err(wrong(word.span, format!("`{}` is neither hexadecimal nor `*`", shown(&word.text))));
                }
            }
        }
    }
    Ok(pattern)
}

fn add(line: &mut TokenLine, indirect: Option<fn(u32) -> EntryTarget>) -> LineResult<CommandKind> {
    let table = name(line, "a table")?;
    let is_key = |line: &TokenLine, at: usize| line.peek_at(at).is_some_and(|word| word.text == ":");
    let mut priority = None;
    let handle_next = indirect.is_some() && line.peek_at(1).is_none();
    if line.peek().is_some_and(Word::is_number) && !is_key(line, 1) && !handle_next {
        let span = line.here();
        priority = Some((small(line, "a priority")?, span));
    }
    let mut keys = Vec::new();
    while is_key(line, 1) {
        let key = word(line, "a key")?;
        line.take(":");
        keys.push((key, written(line)?));
    }
    let target = match indirect {
        Some(target) => target(small(line, "a handle")?),
        None => target(line)?,
    };
    let id = if line.take("=") { Some(name(line, "the entry")?) } else { None };
    Ok(CommandKind::Add { table, priority, keys, target, id })
}

/// `PROFILE MEMBER GROUP [weight:N] [watch_port:PORT]`
fn member_join(line: &mut TokenLine) -> LineResult<CommandKind> {
    let profile = name(line, "an action profile")?;
    let (member, group) = (small(line, "a member")?, small(line, "a group")?);
    let (mut weight, mut watch_port) = (1, None);
    while line.peek().is_some() {
        let option = word(line, "`weight` or `watch_port`")?;
        expect_sign(line, ":", "`:` and a number")?;
        match option.text.as_str() {
            "weight" => weight = small(line, "a weight")?,
            "watch_port" => watch_port = Some(port(line)?),
            other => {
                let message = format!("expected `weight` or `watch_port`, found `{}`", shown(other));
                return Err(wrong(option.span, message));
            }
        }
    }
    Ok(CommandKind::MemberJoin { profile, member, group, weight, watch_port })
}

/// `POLYNOMIAL INITIAL FINAL_XOR REFLECT_IN REFLECT_OUT`
fn crc(line: &mut TokenLine, width: u32) -> LineResult<CommandKind> {
    let mut number = |what: &str, bits: u32| {
        let here = line.here();
        let value: u32 = small(line, what)?;
        if u64::from(value) < 1 << bits {
            Ok(value)
        } else if bits == 1 {
            Err(wrong(here, format!("{what} must be 0 or 1")))
        } else {
            Err(wrong(here, format!("{what} has at most {bits} bits")))
        }
    };
    let (polynomial, init) = (number("a polynomial", width)?, number("an initial value", width)?);
    let xor_out = number("a final value", width)?;
    let (reflect_in, reflect_out) = (number("a flag", 1)? == 1, number("a flag", 1)? == 1);
    Ok(CommandKind::CrcSet(CrcParams { width, polynomial, init, reflect_in, reflect_out, xor_out }))
}

/// `ACTION(...)`, `member=ID` or `group=ID`
fn target(line: &mut TokenLine) -> LineResult<EntryTarget> {
    let is_given = line.peek_at(1).is_some_and(|word| word.text == "=");
    let make: fn(u32) -> EntryTarget = match line.peek().map(|word| word.text.as_str()) {
        Some("member") if is_given => EntryTarget::Member,
        Some("group") if is_given => EntryTarget::Group,
        _ => return Ok(EntryTarget::Action(call(line)?)),
    };
    let what = word(line, "`member` or `group`")?.text;
    line.take("=");
    Ok(make(small(line, &format!("a {what}"))?))
}

/// `ACTION(ARGUMENT, ...)`
fn call(line: &mut TokenLine) -> LineResult<ActionCallText> {
    let action = name(line, "an action")?;
    expect_sign(line, "(", "the action's arguments, or `()`")?;
    let args = arguments(line, |line| line.take(")"))?;
    Ok(ActionCallText { action, args })
}

/// `ACTION(ARGUMENT, ...)`, or the same without parentheses up to the end of the line.
fn bare_call(line: &mut TokenLine) -> LineResult<ActionCallText> {
    if line.peek_at(1).is_some_and(|word| word.text == "(") {
        return call(line);
    }
    let action = name(line, "an action")?;
    let args = arguments(line, |line| line.peek().is_none())?;
    Ok(ActionCallText { action, args })
}

/// Parses arguments until `ended`: values in the order of the parameters, then `param:value` or `param=value`. Commas
/// between them may be left out.
fn arguments(
    line: &mut TokenLine,
    mut ended: impl FnMut(&mut TokenLine) -> bool,
) -> LineResult<Vec<(Option<Word>, Word)>> {
    let mut args: Vec<(Option<Word>, Word)> = Vec::new();
    while !ended(line) {
        if !args.is_empty() {
            line.take(",");
        }
        if line.peek_at(1).is_some_and(|word| matches!(word.text.as_str(), ":" | "=")) {
            let param = name(line, "a parameter")?;
            line.next();
            args.push((Some(param), value(line)?));
        } else if args.last().is_some_and(|(param, _)| param.is_some()) {
            return Err(wrong(line.here(), "an argument without a name cannot follow one with a name"));
        } else {
            args.push((None, value(line)?));
        }
    }
    Ok(args)
}

/// `name(index)`
fn element(line: &mut TokenLine) -> LineResult<(Word, ElementRef)> {
    let name = name(line, "a counter or register")?;
    expect_sign(line, "(", "`(` and an index")?;
    let element = if line.peek().is_some_and(Word::is_number) {
        ElementRef::Index(small(line, "an index")?)
    } else {
        ElementRef::Entry(word(line, "an index")?)
    };
    expect_sign(line, ")", "`)`")?;
    Ok((name, element))
}

fn check_counter(line: &mut TokenLine) -> LineResult<CommandKind> {
    let (name, element) = element(line)?;
    if line.peek().is_none() {
        return Ok(CommandKind::CheckCounter { name, element, check: None });
    }
    let unit = word(line, "`packets` or `bytes`")?;
    let bytes = match unit.text.to_ascii_lowercase().as_str() {
        "bytes" => true,
        "packets" => false,
        other => return Err(wrong(unit.span, format!("expected `packets` or `bytes`, found `{}`", shown(other)))),
    };
    let relation = relation(line)?;
    Ok(CommandKind::CheckCounter { name, element, check: Some((bytes, relation, small(line, "a number")?)) })
}
