//! Defines the command line of `triplane market`.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use itch_feed::{DatagramMessages, FeedRate, Mix, Spec, Workload};
use wire::itch::Symbol;

pub const AFTER_HELP: &str = "\
  triplane market receive --group 239.1.1.1 --interface 10.0.0.2 --filter 'stock == \"GOOGL\"'
  triplane market publish --to 239.1.1.1 --interface 10.0.0.1 --rate 10k --seconds 5
  triplane market publish --pcap feed.pcap --datagrams 1000
  triplane market receive --pcap feed.pcap

Privileges: none are needed. Once its socket is open, the command gives up all
capabilities, also root's, and opens no more files (Landlock).

The feed consists of ITCH 5.0 messages in MoldUDP64 datagrams. Their timestamps are the
time of day (UTC), so a receiver on the same machine can measure their age. In
examples/market-data, a switch between the two delivers to each subscriber only the
messages that match its rule.";

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
    /// Send a synthetic stock exchange feed at a steady rate.
    Publish(PublishArgs),
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
#[command(next_help_heading = "Feed")]
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
    /// Number of messages per datagram: fixed (12), or Zipf-distributed (1-12).
    #[arg(long, value_name = "N|1-N", value_parser = counts)]
    pub messages: Option<DatagramMessages>,
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

    /// The feed.
    #[command(flatten)]
    pub feed: FeedArgs,

    /// Messages per second; the suffixes k and M mean thousands and millions.
    #[arg(help_heading = "Rate", long, value_name = "N", value_parser = number, default_value = "1k")]
    pub rate: f64,
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

    /// Print the privileges that remain after everything is open: capabilities, and files restricted by Landlock.
    #[arg(long)]
    pub show_privileges: bool,

    /// Print the results as JSON, including the distribution of ages.
    #[arg(long)]
    pub json: bool,
}

impl FeedArgs {
    /// Returns the specification of the feed.
    pub fn spec(&self) -> Spec {
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
            counts: self.messages.unwrap_or(base.counts),
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
        self.datagram_rate.map_or(FeedRate::Messages(self.rate), FeedRate::Datagrams)
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
    // An Ethernet frame with the usual 1,500 bytes has room for 31 of the longest messages of a feed.
    let count = |text: &str| text.parse().ok().filter(|count| (1..=31).contains(count));
    let counts = match text.split_once('-') {
        None => count(text).map(DatagramMessages::Exactly),
        Some((least, most)) => {
            (least == "1").then(|| count(most)).flatten().map(|most| DatagramMessages::Zipf { most, exponent: 1.0 })
        }
    };
    counts.ok_or_else(|| {
        "expected a number of messages from 1 to 31, such as 12, or a range from 1, such as 1-12".to_owned()
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

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=1e6).contains(seconds));
    seconds.ok_or_else(|| "expected seconds, such as 5 or 0.5".to_owned())
}
