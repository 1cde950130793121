//! Runs `triplane market`: a publisher of a stock exchange's feed, and a subscriber to it.

pub mod args;
pub mod capture;
pub mod report;

use ::privileges::KeptAccess;
use itch_feed::live::{FeedDestination, FeedSource, LiveFeedError, ReceiveLimit};
use itch_feed::{Feed, Filter, Pace, PublishLimit, Receiver, Subscriber};

use crate::output::{Failure, Output};
use crate::privileges::restrict;
use args::{MarketArgs, MarketCommand, PublishArgs, ReceiveArgs};

/// Runs `triplane market`.
pub fn run(args: &MarketArgs, output: &Output) -> Result<(), Failure> {
    match &args.command {
        MarketCommand::Publish(args) => publish(args, output),
        MarketCommand::Receive(args) => receive(args, output),
    }
}

impl From<LiveFeedError> for Failure {
    fn from(error: LiveFeedError) -> Failure {
        Failure::Environment(error.into())
    }
}

fn publish(args: &PublishArgs, output: &Output) -> Result<(), Failure> {
    let mut feed = Feed::new(args.feed.spec());
    let pace = Pace::new(args.pace());
    let limit = PublishLimit { seconds: args.seconds, datagrams: args.datagrams };
    let published = match (&args.pcap, args.to) {
        (Some(path), _) => {
            if args.seconds.is_none() && args.datagrams.is_none() {
                return Err(Failure::Usage("--pcap requires a limit: --datagrams or --seconds".to_owned()));
            }
            capture::write(path, &mut feed, pace, limit)?
        }
        (None, to) => {
            let to = to.ok_or_else(|| {
                Failure::Usage("specify a destination with --to, or a capture with --pcap".to_owned())
            })?;
            let publisher = FeedDestination { interface: args.interface, to }.open()?;
            let stop = crate::signals::stop_on_signals()?;
            restrict(&KeptAccess::default(), args.show_privileges, output)?;
            output.note(&format!("publishing to {to}; press Ctrl-C to stop"));
            publisher.publish(&mut feed, pace, limit, &stop)?
        }
    };
    output.print(&if args.json { report::published_json(&published) } else { report::published(&published) })
}

fn receive(args: &ReceiveArgs, output: &Output) -> Result<(), Failure> {
    let filter = match args.filter.as_deref().map(Filter::parse).transpose() {
        Ok(filter) => filter,
        Err(wrong) => {
            output.diagnostics(&wrong.map, &wrong.diagnostics);
            return Err(Failure::Input("invalid --filter".to_owned()));
        }
    };
    let receiver = if args.from_start { Receiver::from_start() } else { Receiver::default() };
    let mut subscriber = Subscriber::new(receiver, filter);
    let seconds = match &args.pcap {
        Some(path) => {
            restrict(&KeptAccess::default().reading(path), args.show_privileges, output)?;
            capture::read(path, args.port, &mut subscriber)?
        }
        None => {
            let source = FeedSource { group: args.group, interface: args.interface, port: args.port };
            let listener = source.open()?;
            let stop = crate::signals::stop_on_signals()?;
            restrict(&KeptAccess::default(), args.show_privileges, output)?;
            output.note(&format!("listening on port {}; press Ctrl-C to stop", listener.port()));
            let limit = ReceiveLimit { seconds: args.seconds, ends_with_session: !args.stay };
            listener.listen(&mut subscriber, limit, &stop)?
        }
    };
    let wanted = args.filter.as_deref();
    output.print(&if args.json {
        report::received_json(&subscriber, wanted, seconds)
    } else {
        report::received(&subscriber, wanted, seconds)
    })
}
