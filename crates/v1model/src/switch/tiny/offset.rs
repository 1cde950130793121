//! The offsets of the statistics that the switch has, from the memory map.

use tpp::map::{Namespace, row_of};

pub const SWITCH_ID: u16 = row_of(Namespace::Switch, "ID").offset;
pub const SWITCH_VERSION: u16 = row_of(Namespace::Switch, "Version").offset;
pub const SWITCH_CLOCK: u16 = row_of(Namespace::Switch, "Clock").offset;
pub const SWITCH_CLOCK_FREQUENCY: u16 = row_of(Namespace::Switch, "ClockFrequency").offset;
pub const SWITCH_VENDOR_ID: u16 = row_of(Namespace::Switch, "VendorID").offset;
pub const SWITCH_PORTS: u16 = row_of(Namespace::Switch, "Ports").offset;
pub const SWITCH_REGISTER_MAP: u16 = row_of(Namespace::Switch, "RegisterMap").offset;
pub const SWITCH_APP_SPECIFIC: u16 = row_of(Namespace::Switch, "AppSpecific").offset;

pub const STAGE_VERSION: u16 = row_of(Namespace::Stage, "Version").offset;
pub const STAGE_ENTRIES: u16 = row_of(Namespace::Stage, "ReferenceCount").offset;

pub const ENTRY_ID: u16 = row_of(Namespace::FlowEntry, "ID").offset;
pub const ENTRY_GENERATION: u16 = row_of(Namespace::FlowEntry, "Generation").offset;
pub const ENTRY_INSERT_CLOCK: u16 = row_of(Namespace::FlowEntry, "InsertClock").offset;
pub const ENTRY_MATCH_PACKETS: u16 = row_of(Namespace::FlowEntry, "Match-Packets").offset;
pub const ENTRY_MATCH_BYTES: u16 = row_of(Namespace::FlowEntry, "Match-Bytes").offset;

pub const LINK_ID: u16 = row_of(Namespace::Link, "ID").offset;
pub const LINK_STATUS: u16 = row_of(Namespace::Link, "Status").offset;
pub const LINK_CAPACITY: u16 = row_of(Namespace::Link, "Capacity").offset;
pub const LINK_QUEUED_PACKETS: u16 = row_of(Namespace::Link, "Queued-Packets").offset;
pub const LINK_QUEUED_BYTES: u16 = row_of(Namespace::Link, "Queued-Bytes").offset;
pub const LINK_TX_PACKETS: u16 = row_of(Namespace::Link, "TX-Packets").offset;
pub const LINK_TX_BYTES: u16 = row_of(Namespace::Link, "TX-Bytes").offset;
pub const LINK_TX_UTILIZATION: u16 = row_of(Namespace::Link, "TX-Utilization").offset;
pub const LINK_RX_PACKETS: u16 = row_of(Namespace::Link, "RX-Packets").offset;
pub const LINK_RX_BYTES: u16 = row_of(Namespace::Link, "RX-Bytes").offset;
pub const LINK_RX_UTILIZATION: u16 = row_of(Namespace::Link, "RX-Utilization").offset;
pub const LINK_DROP_PACKETS: u16 = row_of(Namespace::Link, "Drop-Packets").offset;
pub const LINK_DROP_BYTES: u16 = row_of(Namespace::Link, "Drop-Bytes").offset;
pub const LINK_ERROR_PACKETS: u16 = row_of(Namespace::Link, "Error-Packets").offset;
pub const LINK_ERROR_BYTES: u16 = row_of(Namespace::Link, "Error-Bytes").offset;
pub const LINK_APP_SPECIFIC: u16 = row_of(Namespace::Link, "AppSpecific").offset;

pub const INPUT_ID: u16 = row_of(Namespace::InputLink, "ID").offset;
pub const INPUT_STATUS: u16 = row_of(Namespace::InputLink, "Status").offset;
pub const INPUT_RX_PACKETS: u16 = row_of(Namespace::InputLink, "RX-Packets").offset;
pub const INPUT_RX_BYTES: u16 = row_of(Namespace::InputLink, "RX-Bytes").offset;

pub const QUEUE_OCCUPANCY: u16 = row_of(Namespace::Queue, "QueueOccupancy").offset;
pub const QUEUE_QUEUED_BYTES: u16 = row_of(Namespace::Queue, "Queued-Bytes").offset;
pub const QUEUE_ID: u16 = row_of(Namespace::Queue, "ID").offset;
pub const QUEUE_CAPACITY: u16 = row_of(Namespace::Queue, "Capacity").offset;
pub const QUEUE_RATE: u16 = row_of(Namespace::Queue, "Rate").offset;
pub const QUEUE_PRIORITY: u16 = row_of(Namespace::Queue, "Priority").offset;
pub const QUEUE_TX_PACKETS: u16 = row_of(Namespace::Queue, "TX-Packets").offset;
pub const QUEUE_TX_BYTES: u16 = row_of(Namespace::Queue, "TX-Bytes").offset;
pub const QUEUE_RX_PACKETS: u16 = row_of(Namespace::Queue, "RX-Packets").offset;
pub const QUEUE_RX_BYTES: u16 = row_of(Namespace::Queue, "RX-Bytes").offset;
pub const QUEUE_DROP_PACKETS: u16 = row_of(Namespace::Queue, "Drop-Packets").offset;
pub const QUEUE_DROP_BYTES: u16 = row_of(Namespace::Queue, "Drop-Bytes").offset;

pub const PACKET_INPUT_PORT: u16 = row_of(Namespace::PacketMetadata, "InputPort").offset;
pub const PACKET_OUTPUT_PORT: u16 = row_of(Namespace::PacketMetadata, "OutputPort").offset;
pub const PACKET_QUEUE_ID: u16 = row_of(Namespace::PacketMetadata, "QueueID").offset;
pub const PACKET_MATCHED_ENTRY: u16 = row_of(Namespace::PacketMetadata, "MatchedEntryID").offset;
pub const PACKET_MATCHED_STAGE: u16 = row_of(Namespace::PacketMetadata, "MatchedStage").offset;
pub const PACKET_ENQUEUE_DEPTH: u16 = row_of(Namespace::PacketMetadata, "EnqueueDepth").offset;
pub const PACKET_DEQUEUE_DEPTH: u16 = row_of(Namespace::PacketMetadata, "DequeueDepth").offset;
pub const PACKET_INGRESS_TIME: u16 = row_of(Namespace::PacketMetadata, "IngressTime").offset;
pub const PACKET_EGRESS_TIME: u16 = row_of(Namespace::PacketMetadata, "EgressTime").offset;
pub const PACKET_HOP_LATENCY: u16 = row_of(Namespace::PacketMetadata, "HopLatency").offset;
pub const PACKET_QUEUE_TIME: u16 = row_of(Namespace::PacketMetadata, "QueueTime").offset;
pub const PACKET_LENGTH: u16 = row_of(Namespace::PacketMetadata, "Length").offset;
