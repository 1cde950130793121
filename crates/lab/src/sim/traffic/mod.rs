//! Models traffic: the senders and receivers of each kind of traffic, and their measurements.

mod conga;
mod departures;
mod execute;
mod hpcc;
mod latency;
mod measure;
mod minion;
mod pacing;
mod ping;
mod probe;
mod rcp;
mod replay;
mod request;
mod sizes;
mod sketch;
mod tcp;
mod udp;

pub use conga::{Balancing, CongaSender, FlowPattern};
pub use departures::{Departures, Pattern};
pub use execute::{ExecutedRequest, ExecutionCounts, ExecutionTimes, ProgramClient};
pub use hpcc::{HpccSender, WindowTrace};
pub use latency::Latency;
pub use measure::{Measured, Measurement};
pub use minion::{ArrivedProgram, ProgramCollector, ProgramEcho, ProgramLog, ProgramLogger, ProgramSender};
pub use ping::Ping;
pub use probe::{Field, ProbeSender, ProbeSink, Reading};
pub use rcp::RcpSender;
pub use replay::Replay;
pub use request::{RequestClient, RequestServer};
pub use sizes::SizeDistribution;
pub use sketch::{CountedElement, LinkCount, LinkCounter, link_words};
pub use tcp::{TcpFlows, TcpSender, TcpSink, WINDOW};
pub use udp::{UdpSender, UdpSink};
