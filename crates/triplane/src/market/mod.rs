//! `triplane market`: a publisher of a stock exchange's feed, and a subscriber to it.

pub mod args;
pub mod capture;
pub mod publish;
pub mod receive;
pub mod report;
pub mod socket;

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use itch_feed::{Feed, Filter, Pace, Receiver, Subscriber};

use crate::output::{Failure, Output};
use args::{MarketArgs, MarketCommand, PublishArgs, ReceiveArgs};

/// Runs `triplane market`.
pub fn run(args: &MarketArgs, output: &Output) -> Result<(), Failure> {
    match &args.command {
        MarketCommand::Publish(args) => publish(args, output),
        MarketCommand::Receive(args) => receive(args, output),
    }
}

/// Returns the time of day (UTC) in ns since midnight, the unit of the messages' timestamps.
pub fn time_of_day_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_nanos() % u128::from(itch_feed::DAY_NS)) as u64
}

fn publish(args: &PublishArgs, output: &Output) -> Result<(), Failure> {
    let mut feed = Feed::new(args.feed.spec());
    let pace = Pace::new(args.pace());
    let limit = publish::Limit { seconds: args.seconds, datagrams: args.datagrams };
    let published = match (&args.pcap, args.to) {
        (Some(path), _) => {
            if args.seconds.is_none() && args.datagrams.is_none() {
                return Err(Failure::Usage("a capture needs an end: give --datagrams or --seconds".to_owned()));
            }
            capture::write(path, &mut feed, pace, limit)?
        }
        (None, to) => {
            let to = to.ok_or_else(|| Failure::Usage("say where to, with --to".to_owned()))?;
            let socket = socket::sender(args.interface, to)?;
            let stop = crate::signals::stop_on_signals()?;
            output.note(&format!("publishing to {to}; Ctrl-C ends"));
            publish::send(&socket, to, &mut feed, pace, limit, &stop)?
        }
    };
    output.print(&if args.json { report::published_json(&published) } else { report::published(&published) })
}

fn receive(args: &ReceiveArgs, output: &Output) -> Result<(), Failure> {
    let filter = match args.filter.as_deref().map(Filter::parse).transpose() {
        Ok(filter) => filter,
        Err(wrong) => {
            output.diagnostics(&wrong.map, &wrong.diagnostics);
            return Err(Failure::Input("this is no condition over the feed's messages".to_owned()));
        }
    };
    let receiver = if args.from_start { Receiver::from_start() } else { Receiver::default() };
    let mut subscriber = Subscriber::new(receiver, filter);
    let seconds = match &args.pcap {
        Some(path) => capture::read(path, args.port, &mut subscriber)?,
        None => {
            let socket = socket::receiver(args.group, args.interface, args.port)?;
            let stop = crate::signals::stop_on_signals()?;
            let port = socket.local_addr().context("cannot read the address of a socket")?.port();
            output.note(&format!("listening at port {port}; Ctrl-C ends"));
            let ends = receive::Ends { seconds: args.seconds, with_session: !args.stay };
            receive::listen(&socket, &mut subscriber, ends, &stop)?
        }
    };
    let wanted = args.filter.as_deref();
    output.print(&match args.json {
        true => report::received_json(&subscriber, wanted, seconds),
        false => report::received(&subscriber, wanted, seconds),
    })
}
