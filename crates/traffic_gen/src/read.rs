//! Parses specifications: `udp,size=64,flows=10000,dst=10.0.0.0/16`.

mod item;
mod value;

use diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};

use crate::{FlowField, Layer, MAX_FRAME, Size, Spec};
use item::{SpecItem, items};
use value::FieldType;

/// The result of parsing a specification.
#[derive(Clone, Debug, PartialEq)]
pub enum TrafficSource {
    /// Synthetic frames.
    Made(Spec),
    /// The frames of a capture file, arriving on these ports in turn.
    Capture {
        /// The file's name.
        path: String,
        /// The ports.
        ports: Vec<u32>,
    },
}

/// Every word and key with its meaning, for help texts.
pub const KEYS: &[(&str, &str)] = &[
    ("vlan, ipv4, ipv6, udp, tcp", "headers after the Ethernet header (udp over ipv4)"),
    ("size=64 | 64-1500 | imix", "frame size in bytes, without the frame check sequence (64)"),
    ("flows=10000", "number of flows (1)"),
    ("zipf=0.99", "Zipf-distributed flow frequencies, with this exponent"),
    ("ports=1-4 | 1+3", "ingress ports of the switch (1)"),
    ("src=, dst=", "addresses: 10.0.0.1, 10.0.0.0/16, 10.0.0.1-10.0.0.9, or IPv6"),
    ("sport=, dport=", "UDP or TCP ports: 80, or 1024-65535"),
    ("smac=, dmac=", "Ethernet addresses: one, or first-last"),
    ("vlan=100 | 1-100", "VLAN ID of a tag; give it twice for two tags"),
    ("ttl=, proto=, ethertype=", "these fields: a number, or first-last"),
    ("payload=HEX", "bytes repeated after the headers (zeros)"),
    ("frame=HEX", "whole frames, instead of headers and payload"),
    ("vary=14+2", "write the flow number to the two bytes at offset 14"),
    ("pcap=FILE", "the frames of a capture, repeated"),
    ("seed=1", "seed of the random numbers"),
];

/// Parses a file of a source map, for a switch whose largest port number is `max_port`. Returns `None` after an error.
pub fn read(map: &SourceMap, file: FileId, max_port: u32, diagnostics: &mut Diagnostics) -> Option<TrafficSource> {
    let text = map.file(file).text().clone();
    let before = diagnostics.error_count();
    let mut reader = SpecReader {
        diagnostics,
        max_port,
        spec: Spec { layers: Vec::new(), ..Spec::default() },
        seen: Vec::new(),
        tags: 0,
        size: None,
        capture: None,
    };
    for item in items(&text, file) {
        reader.item(&item);
    }
    let whole = Span::new(file, 0, text.len() as u32);
    let given = reader.finish(whole);
    (diagnostics.error_count() == before).then_some(given)
}

struct SpecReader<'a> {
    diagnostics: &'a mut Diagnostics,
    max_port: u32,
    spec: Spec,
    /// Keys with their locations.
    seen: Vec<(String, Span)>,
    tags: u8,
    size: Option<Span>,
    capture: Option<String>,
}

impl SpecReader<'_> {
    fn wrong(&mut self, code: &'static str, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(code, span, message).help(help));
    }

    fn item(&mut self, item: &SpecItem<'_>) {
        let Some(value) = item.value else { return self.word(item) };
        let key = item.key;
        if !matches!(key, "vlan")
            && let Some((_, first)) = self.seen.iter().find(|(seen, _)| seen == key)
        {
            let finding = Diagnostic::error("traffic-twice", item.key_span, format!("`{key}` is given twice"));
            return self.diagnostics.push(finding.also(*first, "first given here").help("keep one of them"));
        }
        self.seen.push((key.to_owned(), item.key_span));
        if let Err((message, help)) = self.set(key, value, item) {
            let code = if message.starts_with("there is no") { "traffic-unknown" } else { "traffic-value" };
            let span = if code == "traffic-unknown" { item.key_span } else { item.value_span };
            self.wrong(code, span, message, help);
        }
    }

    /// Parses the name of a header.
    fn word(&mut self, item: &SpecItem<'_>) {
        let layer = match item.key {
            "eth" | "ethernet" => {
                self.seen.push(("eth".to_owned(), item.key_span));
                return;
            }
            "vlan" => Layer::Vlan,
            "ipv4" | "ip" => Layer::Ipv4,
            "ipv6" => Layer::Ipv6,
            "udp" => Layer::Udp,
            "tcp" => Layer::Tcp,
            "imix" => return self.wrong("traffic-syntax", item.key_span, "`imix` is a size", "write `size=imix`"),
            "" => return self.wrong("traffic-syntax", item.key_span, "this item is empty", "remove the comma"),
            word if value::is_key(word) => {
                let help = format!("write {}, for example", value::example(word));
                return self.wrong("traffic-syntax", item.key_span, format!("`{word}` has no value"), help);
            }
            word => {
                let (message, help) = value::unknown(word);
                return self.wrong("traffic-unknown", item.key_span, message, help);
            }
        };
        self.seen.push((item.key.to_owned(), item.key_span));
        self.layer(layer, item.key_span);
    }

    /// Adds a header in protocol order.
    fn layer(&mut self, layer: Layer, span: Span) {
        let rank = |layer: Layer| match layer {
            Layer::Vlan => 0,
            Layer::Ipv4 | Layer::Ipv6 => 1,
            Layer::Udp | Layer::Tcp => 2,
        };
        if layer == Layer::Vlan {
            if self.tags == 4 {
                return self.wrong("traffic-headers", span, "a frame has at most four tags here", "remove this one");
            }
            self.tags += 1;
        }
        if let Some(clash) = self.spec.layers.iter().find(|other| rank(**other) == rank(layer)).copied()
            && layer != Layer::Vlan
        {
            let message = format!("a frame has either {} or {}", clash.name(), layer.name());
            return self.wrong("traffic-headers", span, message, "keep one of them");
        }
        // Headers may be given in any order.
        let at = self.spec.layers.iter().position(|other| rank(*other) > rank(layer));
        self.spec.layers.insert(at.unwrap_or(self.spec.layers.len()), layer);
    }

    /// Sets the value of a key. An error consists of a message and a remedy.
    fn set(&mut self, key: &str, text: &str, item: &SpecItem<'_>) -> Result<(), (String, String)> {
        match key {
            "size" => {
                self.size = Some(item.value_span);
                self.spec.size = match text {
                    "imix" => Size::Imix,
                    _ => {
                        let (low, high) = value::range(key, text, 14, MAX_FRAME as u64)?;
                        Size::Between(low as usize, high as usize)
                    }
                };
            }
            "flows" => self.spec.flows = value::range(key, text, 1, 1 << 32).and_then(|r| value::only(key, r))?,
            "seed" => self.spec.seed = value::range(key, text, 0, u64::MAX).and_then(|r| value::only(key, r))?,
            "zipf" => self.spec.zipf = Some(value::exponent(text)?),
            "ports" => self.spec.ports = value::ports(text, self.max_port)?,
            "payload" => self.spec.payload = value::hex(key, text, MAX_FRAME)?,
            "frame" => self.spec.frame = Some(value::hex(key, text, MAX_FRAME)?),
            "vary" => self.spec.vary = Some(value::vary(text)?),
            "pcap" if text.is_empty() => {
                return Err(("the file has no name".into(), "write `pcap=` and the name of a capture".into()));
            }
            "pcap" => self.capture = Some(text.to_owned()),
            "vlan" => {
                let number = self.tags;
                self.layer(Layer::Vlan, item.key_span);
                let choice = value::choice(FieldType::Number(4094), key, text)?.0;
                self.spec.fields.insert(FlowField::Vlan(number), choice);
            }
            "src" | "dst" => {
                let (choice, is_v6) = value::choice(FieldType::Address, key, text)?;
                self.spec.fields.insert(if key == "src" { FlowField::Source } else { FlowField::Destination }, choice);
                self.seen.push((if is_v6 { "an IPv6 address" } else { "an IPv4 address" }.to_owned(), item.value_span));
            }
            "smac" | "dmac" => {
                let field = if key == "smac" { FlowField::SourceMac } else { FlowField::DestinationMac };
                self.spec.fields.insert(field, value::choice(FieldType::Mac, key, text)?.0);
            }
            "sport" | "dport" | "ttl" | "proto" | "ethertype" => {
                let (field, most) = match key {
                    "sport" => (FlowField::SourcePort, 65535),
                    "dport" => (FlowField::DestinationPort, 65535),
                    "ttl" => (FlowField::Ttl, 255),
                    "proto" => (FlowField::Protocol, 255),
                    _ => (FlowField::EtherType, 65535),
                };
                self.spec.fields.insert(field, value::choice(FieldType::Number(most), key, text)?.0);
            }
            _ => return Err(value::unknown(key)),
        }
        Ok(())
    }

    fn place(&self, key: &str) -> Option<Span> {
        self.seen.iter().find(|(seen, _)| seen == key).map(|(_, span)| *span)
    }

    /// Adds implied headers and checks the specification for consistency.
    fn finish(mut self, whole: Span) -> TrafficSource {
        if let Some(path) = self.capture.take() {
            let others: Vec<_> =
                self.seen.iter().filter(|(key, _)| !matches!(&key[..], "pcap" | "ports")).cloned().collect();
            for (key, span) in others {
                let message = format!("the frames of a capture are not changed, so `{key}` has no effect");
                self.wrong("traffic-capture", span, message, "only `ports` can be combined with `pcap`");
            }
            return TrafficSource::Capture { path, ports: self.spec.ports };
        }
        if self.spec.frame.is_some() {
            self.whole_frames();
        } else {
            self.usual_headers(whole);
            self.fields_have_headers();
        }
        self.sizes();
        TrafficSource::Made(self.spec)
    }

    fn whole_frames(&mut self) {
        let about = ["frame", "size", "flows", "zipf", "ports", "seed", "vary"];
        let others: Vec<_> = self.seen.iter().filter(|(key, _)| !about.contains(&&key[..])).cloned().collect();
        for (key, span) in others {
            let message = format!("`frame` gives whole frames, so `{key}` has no effect");
            self.wrong("traffic-frame", span, message, "omit it, or omit `frame`; use `vary` to make flows differ");
        }
        let given = self.spec.headers_len();
        if given < 14
            && let Some(span) = self.place("frame")
        {
            let message = format!("a frame of {given} bytes has no Ethernet header");
            self.wrong("traffic-value", span, message, "at least 14 bytes are required");
        }
        if self.size.is_none() {
            self.spec.size = Size::Between(given.max(14), given.max(14));
        }
        self.spec.layers.clear();
    }

    fn usual_headers(&mut self, whole: Span) {
        let v6 = self.place("an IPv6 address").or(self.place("ipv6"));
        let v4 = self.place("an IPv4 address").or(self.place("ipv4"));
        if let (Some(v6), Some(v4)) = (v6, v4) {
            let finding = Diagnostic::error("traffic-headers", v6, "a frame has either IPv4 or IPv6");
            self.diagnostics.push(finding.also(v4, "this implies IPv4").help("use the same version for both"));
            return;
        }
        let has = |keys: &[&str]| keys.iter().any(|key| self.place(key).is_some());
        let only_ethernet = has(&["eth", "ethertype"]);
        let (ip, transport) = (has(&["ttl", "proto"]) || v4.is_some() || v6.is_some(), has(&["sport", "dport"]));
        let no_ip = !self.spec.has(Layer::Ipv4) && !self.spec.has(Layer::Ipv6);
        let no_transport = !self.spec.has(Layer::Udp) && !self.spec.has(Layer::Tcp);
        let (says_ip, protocol) = (has(&["ipv4", "ip", "ipv6"]), has(&["proto"]));
        if no_ip && (!no_transport || ip || transport || !only_ethernet) {
            self.layer(if v6.is_some() { Layer::Ipv6 } else { Layer::Ipv4 }, whole);
        }
        if no_transport && (transport || !(only_ethernet || says_ip || protocol)) {
            self.layer(Layer::Udp, whole);
        }
    }

    /// Rejects fields that no header has.
    fn fields_have_headers(&mut self) {
        let ip = self.spec.has(Layer::Ipv4) || self.spec.has(Layer::Ipv6);
        let transport = self.spec.has(Layer::Udp) || self.spec.has(Layer::Tcp);
        if ip && let Some(span) = self.place("ethertype") {
            self.wrong(
                "traffic-headers",
                span,
                "with an IP header, the EtherType is fixed",
                "omit `ethertype`, or use `eth` as the only header",
            );
        }
        if transport && let Some(span) = self.place("proto") {
            let help = "omit `proto`, or use `ipv4` or `ipv6` as the last header";
            self.wrong("traffic-headers", span, "with a UDP or TCP header, the protocol is fixed", help);
        }
    }

    fn sizes(&mut self) {
        let headers = self.spec.headers_len();
        let least = match self.spec.size {
            Size::Between(low, _) => low,
            Size::Imix => headers,
        };
        if least < headers {
            let names: Vec<&str> = self.spec.layers.iter().map(|layer| layer.name()).collect();
            match self.size {
                Some(span) => {
                    let what = match self.spec.frame {
                        Some(_) => "the given frame has".to_owned(),
                        None => {
                            format!("Ethernet{}{} have", if names.is_empty() { "" } else { ", " }, names.join(", "))
                        }
                    };
                    let message = format!("{what} {headers} bytes, so a frame cannot have only {least}");
                    self.wrong("traffic-size", span, message, format!("write `size={headers}` or more"));
                }
                None => self.spec.size = Size::Between(headers, headers),
            }
        }
        if let (Some(vary), Some(span)) = (self.spec.vary, self.place("vary"))
            && vary.offset + vary.len > least.max(headers)
        {
            let message = format!("bytes {} to {} are not in every frame", vary.offset, vary.offset + vary.len - 1);
            self.wrong("traffic-value", span, message, format!("frames have {} bytes or more", least.max(headers)));
        }
    }
}
