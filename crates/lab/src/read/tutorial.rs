//! Reads `topology.json` of the public P4 tutorials.
//!
//! Hosts have `ip`, `mac` and `commands`. Switches have `runtime_json` and, if they run another program than the rest,
//! `program`. It names the JSON that BMv2 loads: `build/basic.json` stands for `basic.p4`. A link is
//! `[end, end, delay, bandwidth]`; the last two may be left out. The delay is in milliseconds (a number, or a text with
//! its unit), the bandwidth in Mbit/s. A switch's end is `s1-p2`.
//!
//! The host commands `route add default gw` and `arp -i eth0 -s` are interpreted, so that simulated hosts, which have
//! no shell, behave the same.

use diagnostics::{Diagnostic, Diagnostics, FileId, Span, names};
use jsonc_parser::ParseOptions;
use jsonc_parser::ast::{Array, Object, Value};
use jsonc_parser::common::Ranged;

use super::{default_mac, field};
use crate::topology::{
    Delay, End, Entries, Host, HostShim, KernelUse, Link, Node, ProgramEdge, Rate, Shape, SwitchProgram, Topology,
    TopologySwitch,
};

/// The extensions of JSON that the P4 tutorials' files may use: comments and trailing commas.
const JSON: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_loose_object_property_names: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Reads as much as possible; every mistake becomes a diagnostic.
pub fn read(file: FileId, text: &str, max_port: u32, diagnostics: &mut Diagnostics) -> Topology {
    let mut topology = Topology::default();
    let mut reader = Reader { file, diagnostics, max_port };
    let parsed = match jsonc_parser::parse_to_ast(text, &Default::default(), &JSON) {
        Ok(parsed) => parsed,
        Err(error) => {
            let range = error.range();
            let span = Span::new(file, range.start as u32, range.end as u32);
            reader.wrong(span, format!("invalid JSON: {}", error.kind()));
            return topology;
        }
    };
    let Some(Value::Object(root)) = &parsed.value else {
        reader.wrong(Span::new(file, 0, 0), "a topology must be a JSON object with `hosts`, `switches` and `links`");
        return topology;
    };
    for (name, span, host) in reader.named(root, "hosts") {
        let host = reader.host(name, span, host, topology.hosts.len());
        topology.hosts.push(host);
    }
    for (name, span, switch) in reader.named(root, "switches") {
        let switch = reader.switch(name, span, switch);
        topology.switches.push(switch);
    }
    reader.links(root, &mut topology);
    topology
}

struct Reader<'d> {
    file: FileId,
    diagnostics: &'d mut Diagnostics,
    /// The largest port number of a switch.
    max_port: u32,
}

impl Reader<'_> {
    fn span(&self, ranged: &impl Ranged) -> Span {
        let range = ranged.range();
        Span::new(self.file, range.start as u32, range.end as u32)
    }

    fn wrong(&mut self, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error("topology", span, message));
    }

    /// The named objects inside the object `key`, in the order of the file.
    fn named<'a>(&mut self, root: &'a Object<'a>, key: &str) -> Vec<(&'a str, Span, &'a Object<'a>)> {
        let Some(property) = root.get(key) else { return Vec::new() };
        let Value::Object(things) = &property.value else {
            self.wrong(self.span(&property.value), format!("`{key}` must be an object: {{\"name\": {{…}}, …}}"));
            return Vec::new();
        };
        let mut found = Vec::new();
        for property in &things.properties {
            let (name, span) = (property.name.as_str(), self.span(&property.name));
            if let Some(what) = field::name_problem(name) {
                self.wrong(span, format!("the name `{name}` {what}"));
            }
            match &property.value {
                Value::Object(thing) => found.push((name, span, thing)),
                other => self.wrong(self.span(other), format!("`{name}` must be an object")),
            }
        }
        found
    }

    fn text<'a>(&mut self, object: &'a Object<'a>, key: &str) -> Option<(&'a str, Span)> {
        let property = object.get(key)?;
        match &property.value {
            Value::StringLit(text) => Some((text.value.as_ref(), self.span(text))),
            other => {
                self.wrong(self.span(other), format!("`{key}` must be a string"));
                None
            }
        }
    }

    fn host(&mut self, name: &str, span: Span, object: &Object<'_>, at: usize) -> Host {
        let address = self.text(object, "ip").and_then(|(text, span)| {
            let address = field::cidr(text);
            if address.is_none() {
                self.wrong(span, format!("`{text}` is not an address with a prefix length: write 10.0.1.1/24"));
            }
            address
        });
        let mac = self
            .text(object, "mac")
            .and_then(|(text, span)| text.parse().map_err(|error| self.wrong(span, format!("{error}"))).ok());
        let commands = match object.get("commands").map(|property| &property.value) {
            Some(Value::Array(list)) => self.commands(list),
            Some(other) => {
                self.wrong(self.span(other), "`commands` must be a list of strings");
                Vec::new()
            }
            None => Vec::new(),
        };
        let gateway = commands.iter().find_map(|command| gateway(command));
        let neighbours = commands.iter().filter_map(|command| neighbour(command)).collect();
        let mac = mac.unwrap_or(default_mac(at));
        Host {
            name: name.to_owned(),
            address,
            mac,
            gateway,
            neighbours,
            commands,
            lacks_shim: false,
            shim: HostShim::default(),
            memory: None,
            is_store: false,
            is_durable: false,
            span,
        }
    }

    fn commands(&mut self, list: &Array<'_>) -> Vec<String> {
        let mut commands = Vec::new();
        for command in &list.elements {
            match command {
                Value::StringLit(text) => commands.push(text.value.to_string()),
                other => self.wrong(self.span(other), "a command must be a string"),
            }
        }
        commands
    }

    fn switch(&mut self, name: &str, span: Span, object: &Object<'_>) -> TopologySwitch {
        let program = match self.text(object, "program") {
            Some((text, span)) => SwitchProgram::File(source_of(text), span),
            None => SwitchProgram::Unsaid,
        };
        let entries = match self.text(object, "runtime_json") {
            Some((text, span)) => Entries::File(text.to_owned(), span),
            None => Entries::None,
        };
        let cpu_port = match object.get("cpu_port").map(|property| &property.value) {
            Some(Value::StringLit(text)) => text.value.parse().ok(),
            Some(Value::NumberLit(number)) => number.value.parse().ok(),
            _ => None,
        };
        let (name, edge, kernel) = (name.to_owned(), ProgramEdge::default(), KernelUse::Off);
        TopologySwitch { name, program, entries, cpu_port, p4runtime: None, edge, device_id: None, kernel, span }
    }

    fn links(&mut self, root: &Object<'_>, topology: &mut Topology) {
        let Some(property) = root.get("links") else { return };
        let Value::Array(links) = &property.value else {
            return self.wrong(self.span(&property.value), "`links` must be a list: [[\"h1\", \"s1-p1\"], …]");
        };
        for link in &links.elements {
            let span = self.span(link);
            let Value::Array(parts) = link else {
                self.wrong(span, "a link must be a list: [\"h1\", \"s1-p1\"]");
                continue;
            };
            let [first, second, rest @ ..] = &parts.elements[..] else {
                self.wrong(span, "a link must have two ends: [\"h1\", \"s1-p1\"]");
                continue;
            };
            let mut shape = Shape::default();
            if let Some(delay) = rest.first() {
                shape.delay = self.delay(delay).unwrap_or(shape.delay).max(shape.delay);
            }
            shape.rate = rest.get(1).and_then(|rate| self.bandwidth(rate));
            if let (Some(first), Some(second)) = (self.end(first, topology), self.end(second, topology)) {
                topology.links.push(Link { ends: [first, second], shape, span });
            }
        }
    }

    /// Reads a delay; numbers without a unit are milliseconds in the tutorials.
    fn delay(&mut self, value: &Value<'_>) -> Option<Delay> {
        let text = match value {
            Value::StringLit(text) => text.value.to_string(),
            Value::NumberLit(number) => number.value.to_owned(),
            other => {
                self.wrong(
                    self.span(other),
                    "a delay must be a number of milliseconds, or a string with a unit: \"5ms\"",
                );
                return None;
            }
        };
        let unit = if text.ends_with(|c: char| c.is_ascii_digit()) { "ms" } else { "" };
        format!("{text}{unit}").parse().map_err(|error| self.wrong(self.span(value), format!("{error}"))).ok()
    }

    fn bandwidth(&mut self, value: &Value<'_>) -> Option<Rate> {
        let Value::NumberLit(number) = value else {
            self.wrong(self.span(value), "a bandwidth must be a number, in Mbit/s");
            return None;
        };
        format!("{}Mbps", number.value).parse().map_err(|error| self.wrong(self.span(value), format!("{error}"))).ok()
    }

    fn end(&mut self, value: &Value<'_>, topology: &Topology) -> Option<End> {
        let span = self.span(value);
        let Value::StringLit(text) = value else {
            self.wrong(span, "an end must be a string: \"h1\", or \"s1-p1\" for a switch and its port");
            return None;
        };
        let (name, port) = match text.value.rsplit_once("-p") {
            Some((name, port)) if topology.node(&text.value).is_none() => (name, Some(port)),
            _ => (text.value.as_ref(), None),
        };
        let Some(node) = topology.node(name) else {
            let finding = Diagnostic::error("topology", span, format!("there is no host or switch `{name}`"));
            let hosts = topology.hosts.iter().map(|host| host.name.as_str());
            let near = names::nearest(name, hosts.chain(topology.switches.iter().map(|switch| switch.name.as_str())));
            self.diagnostics.push(match near {
                Some(near) => finding.help(format!("did you mean `{near}`?")),
                None => finding,
            });
            return None;
        };
        if let (Node::Host(_), None) = (node, port) {
            return Some(End { node, port: 0 });
        }
        let most = self.max_port;
        let port = port.and_then(|port| port.parse().ok()).filter(|port| (1..=most).contains(port));
        match (node, port) {
            (Node::Switch(_), Some(port)) => Some(End { node, port }),
            (Node::Switch(_), None) => {
                self.wrong(span, format!("`{name}` is a switch: specify a port from 1 to {most}: \"{name}-p1\""));
                None
            }
            (Node::Host(_), _) => {
                self.wrong(span, format!("`{name}` is a host and has no ports: write \"{name}\""));
                None
            }
        }
    }
}

/// The P4 source that BMv2's JSON is compiled from, by the convention of the tutorials' makefile.
fn source_of(json: &str) -> String {
    let name = json.strip_prefix("build/").unwrap_or(json);
    match name.strip_suffix(".json") {
        Some(stem) => format!("{stem}.p4"),
        None => name.to_owned(),
    }
}

/// Parses `route add default gw 10.0.1.10 dev eth0` or `ip route add default via 10.0.1.10`.
fn gateway(command: &str) -> Option<std::net::Ipv4Addr> {
    let mut words = command.split_whitespace().skip_while(|word| *word != "default").skip(1);
    let via = words.next().filter(|word| matches!(*word, "gw" | "via"));
    via.and(words.next())?.parse().ok()
}

/// Parses `arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00`.
fn neighbour(command: &str) -> Option<(std::net::Ipv4Addr, wire::ethernet::Address)> {
    let mut words = command.strip_prefix("arp ")?.split_whitespace().skip_while(|word| *word != "-s").skip(1);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}
