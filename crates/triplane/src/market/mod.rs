//! Runs `triplane market`: a publisher of a stock exchange's feed, and a subscriber to it.

pub mod args;
pub mod capture;
mod picture;
pub mod report;

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};

use ::privileges::KeptAccess;
use anyhow::Context;
use itch_feed::live::{FeedDestination, FeedSource, LiveFeedError, ReceiveLimit};
use itch_feed::{BinaryFileError, DatagramSource, Feed, Filter, Pace, PublishLimit, Receiver, Replay, Subscriber};

use crate::output::{Failure, Output};
use crate::privileges::restrict;
use args::{MarketArgs, MarketCommand, PublishArgs, ReceiveArgs, SampleArgs};

/// Buffer size for a recorded day, in bytes.
const READ_AHEAD: usize = 1 << 20;

/// Runs `triplane market`.
pub fn run(args: &MarketArgs, output: &Output) -> Result<(), Failure> {
    match &args.command {
        MarketCommand::Publish(args) => publish(args, output),
        MarketCommand::Sample(args) => sample(args, output),
        MarketCommand::Receive(args) => receive(args, output),
    }
}

impl From<LiveFeedError> for Failure {
    fn from(error: LiveFeedError) -> Failure {
        Failure::Environment(error.into())
    }
}

fn publish(args: &PublishArgs, output: &Output) -> Result<(), Failure> {
    let Some(path) = &args.binary_file else {
        if args.pcap.is_some() && args.seconds.is_none() && args.datagrams.is_none() {
            return Err(Failure::Usage("--pcap requires a limit: --datagrams or --seconds".to_owned()));
        }
        return send(args, &mut Feed::new(args.spec()?), output);
    };
    let input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        Box::new(BufReader::with_capacity(READ_AHEAD, file))
    };
    send(args, &mut Replay::new(input, args.replay()), output)
}

/// Sends a feed to where the arguments say, and reports on it.
fn send(args: &PublishArgs, feed: &mut impl DatagramSource, output: &Output) -> Result<(), Failure> {
    let pace = Pace::new(args.pace());
    let limit = PublishLimit { seconds: args.seconds, datagrams: args.datagrams };
    let (published, error) = match (&args.pcap, args.to) {
        (Some(path), _) => capture::write(path, feed, pace, limit)?,
        (None, to) => {
            let to = to.ok_or_else(|| {
                Failure::Usage("specify a destination with --to, or a capture with --pcap".to_owned())
            })?;
            let publisher = FeedDestination { interface: args.interface, to }.open()?;
            let stop = crate::signals::stop_on_signals()?;
            restrict(&KeptAccess::default(), args.show_privileges, output)?;
            output.note(&format!("publishing to {to}; press Ctrl-C to stop"));
            match publisher.publish(feed, pace, limit, &stop) {
                Ok(published) => (published, None),
                Err(LiveFeedError::Recording(error)) => return Err(recording(args, error)),
                Err(error) => return Err(error.into()),
            }
        }
    };
    if let Some(error) = error {
        return Err(recording(args, error));
    }
    output.print(&if args.json { report::published_json(&published) } else { report::published(&published) })
}

/// Returns the failure of a recorded day that cannot be read further.
fn recording(args: &PublishArgs, error: BinaryFileError) -> Failure {
    let name = match &args.binary_file {
        Some(path) if path.as_os_str() != "-" => path.display().to_string(),
        _ => "standard input".to_owned(),
    };
    match error {
        BinaryFileError::Read { .. } => Failure::Environment(anyhow::Error::new(error).context(name)),
        error => Failure::Input(format!("{name}: {error}")),
    }
}

fn sample(args: &SampleArgs, output: &Output) -> Result<(), Failure> {
    let failed = || format!("cannot write {}", args.output.display());
    let mut file = BufWriter::new(File::create(&args.output).with_context(failed)?);
    let written = itch_feed::write_sample(&mut file, args.feed.spec(None), args.count, args.rate);
    let count = written.and_then(|count| file.flush().map(|()| count)).with_context(failed)?;
    output.note(&format!("wrote {} messages to {}", crate::output::grouped(count), args.output.display()));
    Ok(())
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
    // Afterwards, the command may not create files.
    let mut picture = match &args.cdf {
        Some(path) => Some(File::create(path).with_context(|| format!("cannot write {}", path.display()))?),
        None => None,
    };
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
    if let (Some(file), Some(path)) = (&mut picture, &args.cdf) {
        let svg = report::drawn(&subscriber, wanted).map_err(|error| anyhow::anyhow!("{error}"))?;
        file.write_all(svg.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    output.print(&if args.json {
        report::received_json(&subscriber, wanted, seconds)
    } else {
        report::received(&subscriber, wanted, seconds)
    })
}
