//! Defines the command line of `triplane market`.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use itch_feed::{DatagramMessages, FeedRate, GATHER_NS, Mix, ReplayOptions, Spec, Workload};
use wire::itch::{AddOrder, Symbol, Trade};
use wire::moldudp64::{self, LENGTH_LEN};
use wire::{ipv4, udp};

use crate::output::Failure;

/// Messages per second of a synthetic feed.
const DEFAULT_RATE: f64 = 1_000.0;
/// Maximum number of messages per datagram. A packet of 9,000 bytes has room for 471 of the shortest.
const MAX_MESSAGES: u16 = 500;

pub const AFTER_HELP: &str = "\
  triplane market receive --group 239.1.1.1 --interface 10.0.0.2 --filter 'stock == \"GOOGL\"'
  triplane market publish --to 239.1.1.1 --interface 10.0.0.1 --rate 10k --seconds 5
  triplane market publish --pcap feed.pcap --datagrams 1000
  triplane market receive --pcap feed.pcap
  zcat 08302017.NASDAQ_ITCH50.gz | triplane market publish --binary-file - --from 9:30 --to 239.1.1.1

Privileges: none are needed. Once its socket is open, the command gives up all
capabilities, also root's, and opens no more files (Landlock).

The feed consists of ITCH 5.0 messages in MoldUDP64 datagrams. Their timestamps are the
time of day (UTC), so a receiver on the same machine can measure their age. In
examples/market-data, a switch between the two delivers to each subscriber only the
messages that match its rule.

--binary-file plays a day of Nasdaq (BinaryFILE: messages, each behind a length of two
bytes), at its own pace times --speed, or at a constant --rate. At its own pace, the
messages of a datagram are at most 1 ms apart in the file. `market sample` writes a small
day with all types of message.";

/// `triplane market`.
#[derive(Args, Debug)]
pub struct MarketArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: MarketCommand,
}

/// The subcommands of `triplane market`.
#[derive(Subcommand, Debug)]
pub enum MarketCommand {
    /// Send a stock exchange's feed: a synthetic one at a steady rate, or a recorded day at its own pace.
    Publish(PublishArgs),
    /// Write a small synthetic day in the format of Nasdaq's recorded ones (BinaryFILE).
    Sample(SampleArgs),
    /// Receive a feed: count messages and gaps, filter messages, measure their age.
    Receive(ReceiveArgs),
}

/// The workloads of the talk on packet subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// 1 to 12 messages per datagram, Zipf-distributed, 1 % of them for the symbol.
    Synthetic,
    /// Always 12 messages per datagram, all for the symbol.
    WorstCase,
    /// One message per datagram, 0.1 % of them for the symbol.
    Sample,
}

/// Types of message in a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Types {
    /// New orders only.
    Add,
    /// The mix of an exchange: orders added, executed, cancelled, deleted and replaced, and trades.
    Book,
}

/// Options of the feed.
#[derive(Args, Debug)]
#[command(next_help_heading = "Synthetic feed")]
pub struct FeedArgs {
    /// The kind of feed; the options below override parts of it.
    #[arg(long, value_enum, default_value = "synthetic")]
    pub workload: Shape,
    /// The stock symbol of interest.
    #[arg(long, default_value = "GOOGL")]
    pub symbol: Symbol,
    /// Share of new orders and trades that are for the symbol, from 0 to 1.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub share: Option<f64>,
    /// Number of other stocks.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=9_998))]
    pub others: Option<u16>,
    /// Types of message in the feed.
    #[arg(long, value_enum)]
    pub mix: Option<Types>,
    /// Seed of the feed: the same seed gives the same messages.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// `triplane market publish`.
#[derive(Args, Debug)]
pub struct PublishArgs {
    /// Destination: a host or a multicast group, at UDP port 26400 by default.
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = address, required_unless_present = "pcap")]
    pub to: Option<SocketAddrV4>,
    /// Send from this local address, and so from its interface.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0", hide_default_value = true)]
    pub interface: Ipv4Addr,
    /// Write frames to a capture instead of sending them; timestamps start at midnight.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["to", "interface"])]
    pub pcap: Option<PathBuf>,

    /// Number of messages per datagram: fixed (12), or Zipf-distributed (1-12). A recorded day has 1 by default, and
    /// fewer where they do not fit.
    #[arg(help_heading = "Datagrams", long, value_name = "N|1-N", value_parser = counts)]
    pub messages: Option<DatagramMessages>,
    /// Maximum size of an IP packet in bytes, from 576 to 9000.
    #[arg(help_heading = "Datagrams", long, value_name = "BYTES", default_value_t = 1_500, value_parser = clap::value_parser!(u16).range(576..=9_000))]
    pub mtu: u16,

    /// The feed.
    #[command(flatten)]
    pub feed: FeedArgs,

    /// Send this recorded day instead (BinaryFILE with ITCH 5.0, unpacked); `-` is the standard input.
    #[arg(help_heading = "Recorded day", long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["workload", "symbol", "share", "others", "mix"])]
    pub binary_file: Option<PathBuf>,
    /// Play the day this many times faster, instead of at a constant rate.
    #[arg(help_heading = "Recorded day", long, value_name = "FACTOR", value_parser = speed, requires = "binary_file", conflicts_with_all = ["rate", "datagram_rate"])]
    pub speed: Option<f64>,
    /// Skip the messages before this time of day.
    #[arg(help_heading = "Recorded day", long, value_name = "H:MM[:SS]", value_parser = time_of_day, requires = "binary_file")]
    pub from: Option<u64>,
    /// Keep the timestamps of the file. By default, messages get the time at which they are sent.
    #[arg(help_heading = "Recorded day", long, requires = "binary_file")]
    pub keep_timestamps: bool,

    /// Messages per second (1k by default); the suffixes k and M mean thousands and millions.
    #[arg(help_heading = "Rate", long, value_name = "N", value_parser = number)]
    pub rate: Option<f64>,
    /// Rate in datagrams per second instead.
    #[arg(help_heading = "Rate", long, value_name = "N", value_parser = number, conflicts_with = "rate")]
    pub datagram_rate: Option<f64>,
    /// Stop after this number of seconds.
    #[arg(help_heading = "Rate", long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Stop after this number of datagrams.
    #[arg(help_heading = "Rate", long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub datagrams: Option<u64>,

    /// Print the privileges that remain after everything is open: capabilities, and files restricted by Landlock.
    #[arg(long)]
    pub show_privileges: bool,

    /// Print the results as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `triplane market sample`.
#[derive(Args, Debug)]
pub struct SampleArgs {
    /// The file.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Number of messages of the market hours.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub count: u64,
    /// Messages per second of the market hours, at random intervals.
    #[arg(long, value_name = "N", value_parser = number, default_value = "1k")]
    pub rate: f64,

    /// The feed.
    #[command(flatten)]
    pub feed: FeedArgs,
}

/// `triplane market receive`.
#[derive(Args, Debug)]
pub struct ReceiveArgs {
    /// Join this multicast group.
    #[arg(long, value_name = "ADDRESS", value_parser = group)]
    pub group: Option<Ipv4Addr>,
    /// Join it on the interface with this local address.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0", hide_default_value = true)]
    pub interface: Ipv4Addr,
    /// The UDP port.
    #[arg(long, value_name = "PORT", default_value_t = itch_feed::PORT)]
    pub port: u16,
    /// Read frames from a capture instead; its timestamps are the times of arrival.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["group", "interface", "seconds", "stay"])]
    pub pcap: Option<PathBuf>,

    /// Condition that selects messages, as in rules. By default all are selected.
    #[arg(long, value_name = "CONDITION")]
    pub filter: Option<String>,
    /// Also count the messages before the first received one as missing: a stream starts with number 1.
    #[arg(long)]
    pub from_start: bool,
    /// Stop after this number of seconds, unless the session ends earlier.
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Continue after the end of a session, until Ctrl-C or --seconds.
    #[arg(long)]
    pub stay: bool,

    /// Draw the distribution of the selected messages' ages as SVG.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cdf: Option<PathBuf>,

    /// Print the privileges that remain after everything is open: capabilities, and files restricted by Landlock.
    #[arg(long)]
    pub show_privileges: bool,

    /// Print the results as JSON, including the distribution of ages.
    #[arg(long)]
    pub json: bool,
}

impl FeedArgs {
    /// Returns the specification of the feed; `counts` overrides the number of messages per datagram.
    pub fn spec(&self, counts: Option<DatagramMessages>) -> Spec {
        let workload = match self.workload {
            Shape::Synthetic => Workload::Synthetic,
            Shape::WorstCase => Workload::WorstCase,
            Shape::Sample => Workload::Sample,
        };
        let base = workload.spec(self.seed);
        Spec {
            symbol: self.symbol,
            share: self.share.unwrap_or(base.share),
            others: self.others.unwrap_or(base.others),
            counts: counts.unwrap_or(base.counts),
            mix: match self.mix {
                None => base.mix,
                Some(Types::Add) => Mix::ADD_ONLY,
                Some(Types::Book) => Mix::BOOK,
            },
            ..base
        }
    }
}

impl PublishArgs {
    /// Returns the rate of the feed.
    pub fn pace(&self) -> FeedRate {
        match (self.datagram_rate, self.rate, &self.binary_file) {
            (Some(rate), _, _) => FeedRate::Datagrams(rate),
            (None, Some(rate), _) => FeedRate::Messages(rate),
            (None, None, Some(_)) => FeedRate::Recorded(self.speed.unwrap_or(1.0)),
            (None, None, None) => FeedRate::Messages(DEFAULT_RATE),
        }
    }

    /// Returns the maximum payload of a datagram, in bytes.
    pub fn max_payload(&self) -> usize {
        usize::from(self.mtu) - ipv4::HEADER_LEN - udp::HEADER_LEN
    }

    /// Returns the specification of the synthetic feed.
    ///
    /// # Errors
    /// If a datagram has no room for its messages.
    pub fn spec(&self) -> Result<Spec, Failure> {
        let spec = self.feed.spec(self.messages);
        let (DatagramMessages::Exactly(most) | DatagramMessages::Zipf { most, .. }) = spec.counts;
        let longest = LENGTH_LEN + if spec.mix == Mix::ADD_ONLY { AddOrder::LEN } else { Trade::LEN };
        let room = (self.max_payload() - moldudp64::HEADER_LEN) / longest;
        if usize::from(most) > room {
            return Err(Failure::Usage(format!(
                "--messages {most} does not fit: a packet of {} bytes has room for {room} messages of this feed; \
                 --mtu is at most 9000",
                self.mtu
            )));
        }
        Ok(spec)
    }

    /// Returns the options with which a recorded day is played.
    pub fn replay(&self) -> ReplayOptions {
        ReplayOptions {
            session: Workload::Sample.spec(0).session,
            counts: self.messages.unwrap_or(DatagramMessages::Exactly(1)),
            max_payload: self.max_payload(),
            gather_ns: matches!(self.pace(), FeedRate::Recorded(_)).then_some(GATHER_NS),
            from_ns: self.from.unwrap_or(0),
            keeps_timestamps: self.keep_timestamps,
            seed: self.feed.seed,
        }
    }
}

fn address(text: &str) -> Result<SocketAddrV4, String> {
    let alone = text.parse().map(|address: Ipv4Addr| SocketAddrV4::new(address, itch_feed::PORT));
    alone
        .or_else(|_| text.parse())
        .map_err(|_| "expected an IPv4 address, such as 239.1.1.1 or 10.0.0.2:26400".to_owned())
}

fn group(text: &str) -> Result<Ipv4Addr, String> {
    let address: Option<Ipv4Addr> = text.parse().ok();
    address
        .filter(Ipv4Addr::is_multicast)
        .ok_or_else(|| "expected a multicast address, 224.0.0.0 to 239.255.255.255".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1, such as 0.01".to_owned())
}

fn counts(text: &str) -> Result<DatagramMessages, String> {
    let count = |text: &str| text.parse().ok().filter(|count| (1..=MAX_MESSAGES).contains(count));
    let counts = match text.split_once('-') {
        None => count(text).map(DatagramMessages::Exactly),
        Some((least, most)) => {
            (least == "1").then(|| count(most)).flatten().map(|most| DatagramMessages::Zipf { most, exponent: 1.0 })
        }
    };
    counts.ok_or_else(|| {
        "expected a number of messages from 1 to 500, such as 12, or a range from 1, such as 1-12".to_owned()
    })
}

fn number(text: &str) -> Result<f64, String> {
    let (digits, unit) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1e3),
        None => text.strip_suffix('M').map_or((text, 1.0), |digits| (digits, 1e6)),
    };
    let number = digits.parse().ok().map(|number: f64| number * unit).filter(|number| (0.001..=1e9).contains(number));
    number.ok_or_else(|| "expected a rate per second, such as 500, 10k or 1.5M".to_owned())
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.strip_suffix('x').unwrap_or(text).parse().ok();
    let speed = speed.filter(|speed| (0.001..=1e6).contains(speed));
    speed.ok_or_else(|| "expected a factor, such as 2, 0.5 or 100x".to_owned())
}

/// Parses a time of day into ns since midnight.
fn time_of_day(text: &str) -> Result<u64, String> {
    let mut parts = text.split(':').map(|part| part.parse::<u64>().ok());
    let time = match [parts.next(), parts.next(), parts.next(), parts.next()] {
        [Some(Some(hours)), Some(Some(minutes)), None, None] => Some([hours, minutes, 0]),
        [Some(Some(hours)), Some(Some(minutes)), Some(Some(seconds)), None] => Some([hours, minutes, seconds]),
        _ => None,
    };
    let time = time.filter(|[hours, minutes, seconds]| *hours < 24 && *minutes < 60 && *seconds < 60);
    time.map(|[hours, minutes, seconds]| ((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000)
        .ok_or_else(|| "expected a time of day, such as 9:30 or 15:59:30".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=1e6).contains(seconds));
    seconds.ok_or_else(|| "expected seconds, such as 5 or 0.5".to_owned())
}
