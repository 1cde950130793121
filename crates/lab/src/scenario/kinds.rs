//! Reads each kind of traffic from a file.

use std::net::Ipv4Addr;

use diagnostics::Span;
use toml::de::{DeTable, DeValue};
use tpp::conga::{CongaSettings, PathMetric};
use tpp::hpcc::HpccSettings;
use tpp::rcp::Fairness;

use super::{Timing, TrafficKind};
use crate::read::document::Reader;
use crate::sim::CongestionControl;
use crate::sim::traffic::{Balancing, Field, Reading, SizeDistribution};
use crate::sim::transport::Law;
use crate::topology::{Delay, Rate, Topology};

/// The congestion control whose senders react to ECN marks as in RFC 8257.
const DCTCP: &str = "dctcp";

impl TrafficKind {
    /// Returns the readings of probes; empty for other traffic.
    pub fn readings(&self) -> &[Reading] {
        match self {
            TrafficKind::Probe { readings, .. } => readings,
            _ => &[],
        }
    }

    /// Returns the congestion control of its connections; `None` if it has no connections.
    pub fn control(&self) -> Option<CongestionControl> {
        match self {
            TrafficKind::Tcp { control, .. }
            | TrafficKind::Flows { control, .. }
            | TrafficKind::Requests { control, .. } => Some(*control),
            _ => None,
        }
    }
}

impl Reader<'_> {
    pub(super) fn kind(
        &mut self,
        table: &DeTable<'_>,
        span: Span,
        kind: &str,
        kind_span: Span,
        topology: &Topology,
    ) -> Option<TrafficKind> {
        Some(match kind {
            "udp" => self.udp(table, span)?,
            "tcp" => TrafficKind::Tcp {
                bytes: self.integer(table, "bytes", 1..=u32::MAX).map(u64::from),
                window: self.integer(table, "window", 2_048..=1 << 26).unwrap_or(1 << 18),
                control: self.control(table),
            },
            "flows" => TrafficKind::Flows {
                sizes: self.sizes(table),
                rate_bps: self.offered(table, span)?,
                control: self.control(table),
            },
            "requests" => TrafficKind::Requests {
                request: self.integer(table, "request", 16..=1 << 30).unwrap_or(100),
                response: self.integer(table, "response", 1..=1 << 30).unwrap_or(1_000),
                think: self.parsed(table, "think").unwrap_or_default(),
                control: self.control(table),
            },
            "ping" => TrafficKind::Ping {
                count: self.integer(table, "count", 1..=1_000_000).unwrap_or(5),
                interval: self.parsed(table, "interval").unwrap_or(Delay::from_ms(100)),
            },
            "probe" => {
                let readings = self.readings(table);
                TrafficKind::Probe {
                    frame: self.frame(table, span)?,
                    count: self.integer(table, "count", 1..=100_000_000).unwrap_or(100_000_000),
                    interval: self.parsed(table, "interval").unwrap_or(Delay::from_ms(10)),
                    readings,
                }
            }
            "rcp" => TrafficKind::Rcp {
                size: self.integer(table, "size", 62..=9_230).unwrap_or(1_000),
                fairness: self.fairness(table),
                interval: self.parsed(table, "interval").unwrap_or(Delay::from_ms(10)),
            },
            "hpcc" => TrafficKind::Hpcc {
                size: self.integer(table, "size", 62..=9_230).unwrap_or(1_000),
                settings: self.hpcc(table),
            },
            "conga" => self.conga(table, span)?,
            "tpp" => match self.text(table, "file") {
                Some((file, _)) => TrafficKind::Tpp {
                    file: file.to_owned(),
                    count: self.integer(table, "count", 1..=1_000_000).unwrap_or(5),
                    interval: self.parsed(table, "interval").unwrap_or(Delay::from_ms(100)),
                },
                None => {
                    self.wrong(span, "tiny packet programs need a file: file = \"path.tpp\"");
                    return None;
                }
            },
            "execute" => self.execution(table, span, topology)?,
            "replay" => match self.text(table, "file") {
                Some((file, _)) => TrafficKind::Replay(file.to_owned()),
                None => {
                    self.wrong(span, "a replay needs a file: file = \"in.pcap\"");
                    return None;
                }
            },
            other => {
                let message = format!(
                    "unknown kind of traffic `{other}`: expected udp, tcp, flows, requests, ping, rcp, hpcc, conga, \
                     tpp, execute, probe or replay"
                );
                self.wrong(kind_span, message);
                return None;
            }
        })
    }

    fn udp(&mut self, table: &DeTable<'_>, span: Span) -> Option<TrafficKind> {
        let timing = self.timing(table);
        let size = self.integer(table, "size", 62..=9_230).unwrap_or(512);
        Some(TrafficKind::Udp { size, rate_bps: self.offered(table, span)?, timing })
    }

    /// Reads flows over several paths.
    fn conga(&mut self, table: &DeTable<'_>, span: Span) -> Option<TrafficKind> {
        let timing = self.timing(table);
        let size = self.integer(table, "size", 62..=9_230).unwrap_or(1_000);
        let flows = self.integer(table, "flows", 1..=4_096).unwrap_or(16);
        let least_loaded = self.one_of(table, "balance", &[("least-loaded", true), ("ecmp", false)]).unwrap_or(true);
        let balancing = if least_loaded {
            let paths = self.integer(table, "paths", 1..=64).unwrap_or(4) as usize;
            let metrics = [("max", PathMetric::Max), ("sum", PathMetric::Sum)];
            let metric = self.one_of(table, "metric", &metrics).unwrap_or(PathMetric::Max);
            let gap: Delay = self.parsed(table, "gap").unwrap_or(Delay::from_us(500));
            let interval_ns = self.parsed(table, "interval").unwrap_or(Delay::from_ms(1)).as_ns();
            let settings = CongaSettings::new(paths, metric, gap.as_ns(), interval_ns);
            Balancing::LeastLoaded { settings, interval_ns }
        } else {
            for word in ["paths", "metric", "gap", "interval"] {
                if let Some((_, span)) = self.get(table, word) {
                    self.wrong(span, format!("`{word}` requires balance = \"least-loaded\""));
                }
            }
            Balancing::Ecmp
        };
        Some(TrafficKind::Conga { size, rate_bps: self.offered(table, span)?, timing, flows, balancing })
    }

    fn timing(&mut self, table: &DeTable<'_>) -> Timing {
        let timings = [
            ("constant", Timing::Constant),
            ("poisson", Timing::Poisson),
            ("on-off", Timing::OnOff { on: Delay::from_ms(10), off: Delay::from_ms(10) }),
        ];
        let mut timing = self.one_of(table, "timing", &timings).unwrap_or(Timing::Constant);
        if let Timing::OnOff { on, off } = &mut timing {
            *on = self.parsed(table, "on").unwrap_or(*on);
            *off = self.parsed(table, "off").unwrap_or(*off);
        } else {
            for word in ["on", "off"] {
                if let Some((_, span)) = self.get(table, word) {
                    self.wrong(span, format!("`{word}` requires timing = \"on-off\""));
                }
            }
        }
        timing
    }

    /// Reads the parameters of HPCC flows.
    fn hpcc(&mut self, table: &DeTable<'_>) -> HpccSettings {
        let target = match (self.get(table, "target"), self.number(table, "target")) {
            (None, _) => HpccSettings::TARGET,
            (Some(_), Some(target)) if (0.5..=0.99).contains(&target) => target,
            (Some((_, span)), _) => {
                self.wrong(span, "`target` must be a share of the capacity from 0.5 to 0.99");
                HpccSettings::TARGET
            }
        };
        let settings = HpccSettings::new(target);
        let max_flows = self.integer(table, "max-flows", 1..=65_536).unwrap_or(settings.max_flows);
        HpccSettings { max_flows, ..settings }
    }

    /// Reads the shares of RCP* flows.
    fn fairness(&mut self, table: &DeTable<'_>) -> Fairness {
        match self.get(table, "fairness") {
            Some((DeValue::Integer(_) | DeValue::Float(_), span)) => match self.number(table, "fairness") {
                Some(alpha) if (0.01..=100.0).contains(&alpha) => Fairness::Alpha(alpha),
                _ => {
                    self.wrong(span, "`fairness` must be a number from 0.01 to 100, \"max-min\" or \"proportional\"");
                    Fairness::MaxMin
                }
            },
            _ => {
                let known = [("max-min", Fairness::MaxMin), ("proportional", Fairness::Alpha(1.0))];
                self.one_of(table, "fairness", &known).unwrap_or(Fairness::MaxMin)
            }
        }
    }

    fn offered(&mut self, table: &DeTable<'_>, span: Span) -> Option<u64> {
        if self.get(table, "rate").is_none() {
            self.wrong(span, "this traffic needs a rate: rate = \"10Mbps\"");
        }
        self.parsed(table, "rate").map(Rate::bps)
    }

    fn control(&mut self, table: &DeTable<'_>) -> CongestionControl {
        let controls = [
            ("reno", CongestionControl::Reno),
            ("cubic", CongestionControl::Cubic),
            ("none", CongestionControl::None),
            // DCTCP reacts to losses as Reno does; only its reaction to marks differs.
            (DCTCP, CongestionControl::Reno),
        ];
        self.one_of(table, "control", &controls).unwrap_or_default()
    }

    /// Reads the reaction to ECN marks; `None` if packets are not ECN-capable.
    pub(super) fn ecn(&mut self, table: &DeTable<'_>) -> Option<Law> {
        let on = self.get(table, "ecn").is_some_and(|(value, span)| match value {
            DeValue::Boolean(on) => *on,
            _ => {
                self.wrong(span, "`ecn` must be true or false");
                false
            }
        });
        let dctcp = self.get(table, "control").is_some_and(|(value, _)| value.as_str() == Some(DCTCP));
        if dctcp { Some(Law::Dctcp) } else { on.then_some(Law::Classic) }
    }

    /// Reads the virtual address that the receivers share.
    pub(super) fn behind(&mut self, table: &DeTable<'_>) -> Option<Ipv4Addr> {
        let (text, span) = self.text(table, "address")?;
        let address = text.parse().ok();
        if address.is_none() {
            self.wrong(span, format!("`{text}` is not an IPv4 address: write 10.0.0.100"));
        }
        address
    }

    /// Reads the bytes of a probe.
    fn frame(&mut self, table: &DeTable<'_>, span: Span) -> Option<Vec<u8>> {
        let Some((text, span)) = self.text(table, "frame") else {
            self.wrong(
                span,
                "a probe needs a frame, starting with the Ethernet header: frame = \"ffffffffffff 020000000001 88b5 \
                 00\"",
            );
            return None;
        };
        let digits: Option<Vec<u8>> =
            text.chars().filter(|c| !c.is_whitespace()).map(|c| Some(c.to_digit(16)? as u8)).collect();
        let Some(digits) = digits.filter(|digits| digits.len().is_multiple_of(2)) else {
            self.wrong(span, "a frame must be hexadecimal: two digits per byte, with optional spaces");
            return None;
        };
        let frame: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        if !(14..=9_230).contains(&frame.len()) {
            self.wrong(span, format!("a frame must have 14 to 9230 bytes, this one has {}", frame.len()));
            return None;
        }
        let ethertype = u16::from_be_bytes([frame[12], frame[13]]);
        if [wire::ethernet::IPV4, wire::ethernet::ARP].contains(&ethertype) {
            self.wrong(
                span,
                "a probe cannot use the EtherTypes of IPv4 and ARP, which hosts process themselves: use another one, \
                 such as 88b5",
            );
            return None;
        }
        Some(frame)
    }

    /// Reads the readings of probes.
    fn readings(&mut self, table: &DeTable<'_>) -> Vec<Reading> {
        let Some(values) = self.table(table, "values") else { return Vec::new() };
        let mut readings = Vec::new();
        for (name, _) in values.iter() {
            let span = self.span(name.span());
            let name: &str = name.get_ref();
            self.showable(name, span);
            let Some(value) = self.table(values, name) else { continue };
            self.known(value, "a value", &["at", "bytes", "over", "scale"]);
            let at = self.integer(value, "at", 0..=9_229);
            let bytes = self.integer(value, "bytes", 1..=8).unwrap_or(4);
            let scale = self.number(value, "scale").unwrap_or(1.0);
            let over = self.over(value);
            match at {
                Some(at) => {
                    let field = Field { at: at as usize, bytes: bytes as usize };
                    readings.push(Reading { name: name.to_owned(), field, over, scale });
                }
                None => {
                    let span = self.get(values, name).map(|(_, span)| span).expect("it was found");
                    self.wrong(span, "a value needs a position in the frame: { at = 14, bytes = 4 }");
                }
            }
        }
        readings
    }

    /// Reads the field by which another one is divided: its offset and its length in bytes.
    fn over(&mut self, table: &DeTable<'_>) -> Option<Field> {
        let (value, span) = self.get(table, "over")?;
        let list = value.as_array();
        let numbers: Option<Vec<usize>> =
            list.and_then(|list| list.iter().map(|one| one.get_ref().as_integer()?.as_str().parse().ok()).collect());
        match numbers.as_deref() {
            Some(&[at @ 0..=9_229, bytes @ 1..=8]) => Some(Field { at, bytes }),
            _ => {
                self.wrong(span, "`over` must be the offset and the length of a field in bytes: [18, 4]");
                None
            }
        }
    }

    fn sizes(&mut self, table: &DeTable<'_>) -> SizeDistribution {
        match self.get(table, "sizes") {
            Some((DeValue::Integer(_), _)) => {
                SizeDistribution::fixed(self.integer(table, "sizes", 1..=u32::MAX).unwrap_or(1).into())
            }
            _ => {
                let known =
                    [("web-search", SizeDistribution::web_search()), ("data-mining", SizeDistribution::data_mining())];
                self.one_of(table, "sizes", &known).unwrap_or_else(SizeDistribution::web_search)
            }
        }
    }
}
