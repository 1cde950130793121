//! The rows of the memory map: one line for each statistic of the paper's appendix (tables 5 to 7), and for each
//! addition of this project.

use super::Namespace::*;
use super::row::{IntField, Kind::*, StatRow, Unit::*};

macro_rules! rows {
    ($($namespace:ident {$(
        $offset:literal $name:literal $registry:literal $width:literal $unit:ident $kind:ident, $meaning:literal
        $(, words $count:literal)? $(, also $alias:literal)* $(, int $bit:literal $field:literal)?;
    )*})*) => {
        /// All rows, ordered by address.
        pub const ROWS: &[StatRow] = &[$($(
            StatRow::new($namespace, $offset, $name, $registry, $width, $unit, $kind, $meaning)
                $(.words($count))? $(.also($alias))* $(.int($bit, $field))?,
        )*)*];
    };
}

// Offset, name, registry name, bits, unit, kind, meaning, and additions of the row.
rows! {
    // Per switch.
    Switch {
        0x00 "ID" "switch.id" 32 None Identifier, "Number of the switch", also "SwitchID", int 0 "Node ID";
        0x02 "Version" "switch.version" 32 None Counter,
            "Generation of the forwarding state: one higher after each change", also "VersionNumber";
        0x04 "Clock" "switch.clock" 64 Nanoseconds Counter, "Time since the switch started", also "Uptime";
        0x06 "ClockFrequency" "switch.clock_frequency" 32 Hertz Constant,
            "Cycles of the clock in a second: 1,000,000,000";
        0x08 "VendorID" "switch.vendor" 32 None Identifier,
            "Number of the implementation, for guards of vendor addresses: 0x54524950";
        0x0a "Ports" "switch.ports" 32 None Gauge, "Number of ports";
        0x0c "RegisterMap" "switch.register_map" 32 None Identifier,
            "Hash of the names, widths and sizes of the P4 program's registers, for guards of their addresses";
        0x800 "AppSpecific" "switch.app" 32 None Gauge, "Word of an application, one for the switch", words 16;
    }
    // Per flow table.
    Stage {
        0x00 "Version" "table.{table}.version" 32 None Counter,
            "Version of the table: one higher after each change of its entries", also "VersionNumber";
        0x02 "ReferenceCount" "table.{table}.entries" 32 Entries Gauge, "Number of entries", also "Entries";
        0x04 "Lookup-Packets" "table.{table}.lookup.packets" 64 Packets Counter, "Packets that were looked up";
        0x06 "Lookup-Bytes" "table.{table}.lookup.bytes" 64 Bytes Counter, "Bytes of packets that were looked up";
        0x08 "Lookup-PacketRate" "table.{table}.lookup.packet_rate" 32 PacketsPerSecond Gauge,
            "Packets that were looked up in a second";
        0x0a "Lookup-ByteRate" "table.{table}.lookup.byte_rate" 32 BytesPerSecond Gauge,
            "Bytes that were looked up in a second";
        0x0c "Match-Packets" "table.{table}.match.packets" 64 Packets Counter, "Packets that matched an entry";
        0x0e "Match-Bytes" "table.{table}.match.bytes" 64 Bytes Counter, "Bytes of packets that matched an entry";
        0x10 "Match-PacketRate" "table.{table}.match.packet_rate" 32 PacketsPerSecond Gauge,
            "Packets that matched in a second";
        0x12 "Match-ByteRate" "table.{table}.match.byte_rate" 32 BytesPerSecond Gauge, "Bytes that matched in a second";
    }
    // Per entry: the one that this packet matched.
    FlowEntry {
        0x00 "ID" "entry.{table}.handle" 32 None Identifier,
            "Handle of the entry that the packet matched: its number in the table, which a later entry may get again; absent after a miss", also "MatchedEntryID";
        0x02 "Generation" "entry.{table}.generation" 32 None Counter,
            "Times that the handle was assigned, so that a deleted entry is not taken for its successor";
        0x04 "InsertClock" "entry.{table}.inserted" 64 Nanoseconds Counter, "Clock at which the entry was inserted or last modified";
        0x06 "Match-Packets" "entry.{table}.match.packets" 64 Packets Counter, "Packets that matched the entry";
        0x08 "Match-Bytes" "entry.{table}.match.bytes" 64 Bytes Counter, "Bytes of packets that matched the entry";
        0x0a "Match-PacketRate" "entry.{table}.match.packet_rate" 32 PacketsPerSecond Gauge,
            "Packets that matched the entry in a second";
        0x0c "Match-ByteRate" "entry.{table}.match.byte_rate" 32 BytesPerSecond Gauge,
            "Bytes that matched the entry in a second";
    }
    // Per link: the one that this packet leaves by.
    Link {
        0x00 "ID" "port.{port}.id" 16 None Identifier, "Number of the port";
        0x02 "Status" "port.{port}.status" 16 Flags Gauge, "Bit 0: up; bit 1: in maintenance";
        0x04 "Capacity" "port.{port}.capacity" 64 BytesPerSecond Gauge, "Rate of the port; absent where none is set";
        0x06 "Queued-Packets" "port.{port}.queued.packets" 32 Packets Gauge,
            "Packets that wait in all queues of the port", also "QueueSize";
        0x08 "Queued-Bytes" "port.{port}.queued.bytes" 32 Bytes Gauge, "Bytes that wait in all queues of the port";
        0x10 "TX-Packets" "port.{port}.tx.packets" 64 Packets Counter, "Packets sent, this one included";
        0x12 "TX-Bytes" "port.{port}.tx.bytes" 64 Bytes Counter, "Bytes sent, this packet's included";
        0x14 "TX-PacketRate" "port.{port}.tx.packet_rate" 32 PacketsPerSecond Gauge, "Packets sent in a second";
        0x16 "TX-ByteRate" "port.{port}.tx.byte_rate" 32 BytesPerSecond Gauge, "Bytes sent in a second";
        0x18 "TX-Utilization" "port.{port}.tx.utilization" 32 BasisPoints Gauge,
            "Share of the capacity that is sent, over the last complete millisecond", int 7 "Egress interface TX utilization";
        0x20 "RX-Packets" "port.{port}.offered.packets" 64 Packets Counter,
            "Packets offered to the port's queues, dropped ones included";
        0x22 "RX-Bytes" "port.{port}.offered.bytes" 64 Bytes Counter, "Bytes offered to the port's queues";
        0x24 "RX-PacketRate" "port.{port}.offered.packet_rate" 32 PacketsPerSecond Gauge, "Packets offered in a second";
        0x26 "RX-ByteRate" "port.{port}.offered.byte_rate" 32 BytesPerSecond Gauge, "Bytes offered in a second";
        0x28 "RX-Utilization" "port.{port}.offered.utilization" 32 BasisPoints Gauge,
            "Share of the capacity that is offered, over the last complete millisecond; above 10,000 in overload";
        0x30 "Drop-Packets" "port.{port}.drop.packets" 64 Packets Counter, "Packets dropped at the port's queues";
        0x32 "Drop-Bytes" "port.{port}.drop.bytes" 64 Bytes Counter, "Bytes dropped at the port's queues";
        0x34 "Drop-PacketRate" "port.{port}.drop.packet_rate" 32 PacketsPerSecond Gauge, "Packets dropped in a second";
        0x36 "Drop-ByteRate" "port.{port}.drop.byte_rate" 32 BytesPerSecond Gauge, "Bytes dropped in a second";
        0x38 "Error-Packets" "port.{port}.error.packets" 64 Packets Counter, "Packets that the driver could not send";
        0x3a "Error-Bytes" "port.{port}.error.bytes" 64 Bytes Counter, "Bytes that the driver could not send";
        0x800 "AppSpecific" "port.{port}.app" 32 None Gauge, "Word of an application, one for each port", words 16;
    }
    // The link that this packet arrived on.
    InputLink {
        0x00 "ID" "port.{in}.id" 16 None Identifier, "Number of the port";
        0x02 "Status" "port.{in}.status" 16 Flags Gauge, "Bit 0: up; bit 1: in maintenance";
        0x10 "RX-Packets" "port.{in}.rx.packets" 64 Packets Counter, "Packets received, this one included";
        0x12 "RX-Bytes" "port.{in}.rx.bytes" 64 Bytes Counter, "Bytes received, this packet's included";
        0x14 "RX-PacketRate" "port.{in}.rx.packet_rate" 32 PacketsPerSecond Gauge, "Packets received in a second";
        0x16 "RX-ByteRate" "port.{in}.rx.byte_rate" 32 BytesPerSecond Gauge, "Bytes received in a second";
        0x18 "Error-Packets" "port.{in}.rx_error.packets" 64 Packets Counter, "Frames with errors";
    }
    // Metadata of this packet.
    PacketMetadata {
        0x00 "InputPort" "" 16 None Identifier, "Port that the packet arrived on", int 1 "Ingress interface ID";
        0x02 "OutputPort" "" 16 None Identifier, "Port that the packet leaves by", int 1 "Egress interface ID";
        0x04 "OutputBitmap" "" 64 Flags Gauge,
            "Ports that ingress chose, of the first 64: bit n is port n", also "OutputPortBitmap";
        0x06 "QueueID" "" 16 None Identifier,
            "Queue of the output port", also "OutputQueue", also "EnqueuedQueueID", int 3 "Queue ID";
        0x08 "MatchedEntryID" "" 32 None Identifier,
            "Handle of the entry that the packet matched in the last table where it matched";
        0x0a "MatchedStage" "" 16 None Identifier, "Number of that table";
        0x10 "EnqueueDepth" "" 32 Packets Gauge,
            "Packets that waited in the queue when this one was enqueued, without it";
        0x12 "DequeueDepth" "" 32 Packets Gauge, "Packets that waited in the queue when this one left it";
        0x14 "IngressTime" "" 64 Nanoseconds Counter, "Time at which the packet arrived", int 4 "Ingress timestamp";
        0x16 "EgressTime" "" 64 Nanoseconds Counter,
            "Time at which the packet left its queue", int 5 "Egress timestamp";
        0x18 "HopLatency" "" 32 Nanoseconds Gauge, "Time from arrival to leaving", int 2 "Hop latency";
        0x1a "QueueTime" "" 32 Nanoseconds Gauge, "Time in the queue";
        0x1c "Length" "" 16 Bytes Gauge, "Length of the frame that leaves, with this program";
        0x1e "DropReason" "" 32 None Identifier, "Number of the reason of a drop; absent in packets that are forwarded";
        0x20 "DropLine" "" 32 None Identifier, "Line of the P4 program that dropped the packet";
    }
    // The program's own header, answered by the TCPU.
    PacketMetadata {
        0x800 "TPP-Hop" "" 16 None Identifier, "Hop number before this execution, as 8 bits", also "HopNumber";
        0x802 "TPP-SP" "" 16 Bytes Gauge, "Stack pointer before this execution";
        0x804 "TPP-Length" "" 16 Bytes Constant, "Length of header, instructions and memory";
        0x806 "TPP-MemoryLength" "" 16 Bytes Constant, "Length of packet memory";
        0x808 "TPP-HopLength" "" 16 Bytes Constant, "Length of the memory of a hop";
        0x80a "TPP-Application" "" 16 None Identifier, "Handle of the application";
        0x80c "TPP-Status" "" 16 Flags Gauge, "Status before this execution";
    }
    // Per queue: the one that this packet waited in.
    Queue {
        0x00 "QueueOccupancy" "queue.{port}.{queue}.depth" 32 Packets Gauge,
            "Packets that wait in the queue", also "Queued-Packets", int 3 "Queue occupancy";
        0x02 "Queued-Bytes" "queue.{port}.{queue}.bytes" 32 Bytes Gauge, "Bytes that wait in the queue";
        0x04 "ID" "queue.{port}.{queue}.id" 16 None Identifier, "Number of the queue";
        0x06 "Capacity" "queue.{port}.{queue}.capacity" 32 Packets Gauge, "Packets that fit into the queue";
        0x08 "Rate" "queue.{port}.{queue}.rate" 32 PacketsPerSecond Gauge,
            "Rate of the queue; absent where none is set";
        0x0a "Priority" "queue.{port}.{queue}.priority" 16 None Identifier,
            "Priority of the queue: higher ones leave first";
        0x10 "TX-Packets" "queue.{port}.{queue}.tx.packets" 64 Packets Counter,
            "Packets that left the queue, this one included";
        0x12 "TX-Bytes" "queue.{port}.{queue}.tx.bytes" 64 Bytes Counter, "Bytes that left the queue";
        0x14 "TX-PacketRate" "queue.{port}.{queue}.tx.packet_rate" 32 PacketsPerSecond Gauge,
            "Packets that left in a second";
        0x16 "TX-ByteRate" "queue.{port}.{queue}.tx.byte_rate" 32 BytesPerSecond Gauge, "Bytes that left in a second";
        0x18 "RX-Packets" "queue.{port}.{queue}.packets" 64 Packets Counter, "Packets that entered the queue";
        0x1a "RX-Bytes" "queue.{port}.{queue}.rx.bytes" 64 Bytes Counter, "Bytes that entered the queue";
        0x1c "RX-PacketRate" "queue.{port}.{queue}.rx.packet_rate" 32 PacketsPerSecond Gauge,
            "Packets that entered in a second";
        0x1e "RX-ByteRate" "queue.{port}.{queue}.rx.byte_rate" 32 BytesPerSecond Gauge,
            "Bytes that entered in a second";
        0x20 "Drop-Packets" "queue.{port}.{queue}.dropped" 64 Packets Counter, "Packets that the full queue dropped";
        0x22 "Drop-Bytes" "queue.{port}.{queue}.drop.bytes" 64 Bytes Counter, "Bytes that the full queue dropped";
        0x24 "Drop-PacketRate" "queue.{port}.{queue}.drop.packet_rate" 32 PacketsPerSecond Gauge,
            "Packets dropped in a second";
        0x26 "Drop-ByteRate" "queue.{port}.{queue}.drop.byte_rate" 32 BytesPerSecond Gauge, "Bytes dropped in a second";
    }
}

/// The fields of INT 2.1 metadata (section 5.7.2), by bit of the instruction bitmap, with their widths in bits. Fields
/// of a bit are in wire order. A field without a row is filled with all ones, as the specification requires.
pub const INT_FIELDS: &[IntField] = &[
    IntField { bit: 0, name: "Node ID", width: 32 },
    IntField { bit: 1, name: "Ingress interface ID", width: 16 },
    IntField { bit: 1, name: "Egress interface ID", width: 16 },
    IntField { bit: 2, name: "Hop latency", width: 32 },
    IntField { bit: 3, name: "Queue ID", width: 8 },
    IntField { bit: 3, name: "Queue occupancy", width: 24 },
    IntField { bit: 4, name: "Ingress timestamp", width: 64 },
    IntField { bit: 5, name: "Egress timestamp", width: 64 },
    IntField { bit: 6, name: "Level 2 ingress interface ID", width: 32 },
    IntField { bit: 6, name: "Level 2 egress interface ID", width: 32 },
    IntField { bit: 7, name: "Egress interface TX utilization", width: 32 },
    IntField { bit: 8, name: "Buffer ID", width: 8 },
    IntField { bit: 8, name: "Buffer occupancy", width: 24 },
];
