//! Renders RDMA packets.

use super::put;
use crate::Malformed;
use crate::roce::{Extension, NakCode, Opcode, Packet, Position, Syndrome};

/// Writes the operation, its numbers and its arguments.
pub(super) fn line(line: &mut String, datagram: &[u8]) -> Result<(), Malformed> {
    let packet = Packet::new_checked(datagram)?;
    let (qp, psn) = (packet.destination_qp(), packet.psn().number());
    put(line, format_args!("RoCE {} qp {qp:#x} psn {psn}", name(packet.opcode())));
    match packet.extension() {
        Extension::None | Extension::Immediate(_) => {}
        Extension::Reth(reth) | Extension::RethImmediate(reth, _) => {
            put(line, format_args!(", {} bytes at {:#x} key {:#x}", reth.len, reth.address, reth.key));
        }
        Extension::AtomicEth(atomic) => {
            put(line, format_args!(", value {} at {:#x} key {:#x}", atomic.swap_or_add, atomic.address, atomic.key));
        }
        Extension::Aeth(aeth) => verdict(line, aeth.syndrome),
        Extension::AtomicAckEth(aeth, original) => {
            verdict(line, aeth.syndrome);
            put(line, format_args!(", value {original}"));
        }
    }
    if !packet.payload().is_empty() {
        put(line, format_args!(", payload {} bytes", packet.payload().len()));
    }
    Ok(())
}

fn verdict(line: &mut String, syndrome: Syndrome) {
    match syndrome {
        Syndrome::Ack(_) => {}
        Syndrome::RnrNak(_) => line.push_str(", receiver not ready"),
        Syndrome::Nak(NakCode::SequenceError) => line.push_str(", NAK sequence error"),
        Syndrome::Nak(NakCode::InvalidRequest) => line.push_str(", NAK invalid request"),
        Syndrome::Nak(NakCode::RemoteAccessError) => line.push_str(", NAK remote access error"),
        Syndrome::Nak(NakCode::RemoteOperationalError) => line.push_str(", NAK remote operational error"),
        Syndrome::Nak(NakCode::Other(code)) => put(line, format_args!(", NAK {code}")),
        Syndrome::Reserved(byte) => put(line, format_args!(", syndrome {byte:#x}")),
    }
}

fn name(opcode: Opcode) -> String {
    let part = |name: &str, position| match position {
        Position::First => format!("{name} first"),
        Position::Middle => format!("{name} middle"),
        Position::Last => format!("{name} last"),
        Position::Only => name.to_owned(),
    };
    match opcode {
        Opcode::Send(position) => part("SEND", position),
        Opcode::SendImmediate(_) => "SEND with immediate".to_owned(),
        Opcode::Write(position) => part("WRITE", position),
        Opcode::WriteImmediate(_) => "WRITE with immediate".to_owned(),
        Opcode::ReadRequest => "READ".to_owned(),
        Opcode::ReadResponse(position) => part("READ response", position),
        Opcode::Acknowledge => "ACK".to_owned(),
        Opcode::AtomicAcknowledge => "atomic ACK".to_owned(),
        Opcode::CompareSwap => "compare and swap".to_owned(),
        Opcode::FetchAdd => "fetch and add".to_owned(),
        Opcode::Other(byte) => format!("opcode {byte:#04x}"),
    }
}
