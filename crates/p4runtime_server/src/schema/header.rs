//! Describes the headers of packets to and from the controller (`@controller_header`).

use bits::Bits;
use ir::Program;
use p4runtime_proto::config::{P4Info, controller_packet_metadata};
use p4runtime_proto::v1::PacketMetadata;

use super::ValueEncoding;
use crate::status::Refusal;

/// A field of a controller header.
#[derive(Clone, Debug)]
struct HeaderField {
    /// The field's id in P4Info; `None` for padding.
    id: Option<u32>,
    name: String,
    width: u32,
    /// The controller's form.
    sdn: ValueEncoding,
}

/// A header in front of packets to or from the controller.
#[derive(Clone, Debug)]
pub struct ControllerHeader {
    parts: Vec<HeaderField>,
    bytes: usize,
}

impl ControllerHeader {
    /// Returns the program's header of this name: `packet_in` or `packet_out`.
    pub(super) fn of(
        program: &Program,
        info: &P4Info,
        name: &str,
        sdn: impl Fn(&controller_packet_metadata::Metadata) -> ValueEncoding,
    ) -> Option<ControllerHeader> {
        let described = info
            .controller_packet_metadata
            .iter()
            .find(|it| it.preamble.as_ref().is_some_and(|preamble| preamble.name == name))?;
        let quoted = format!("\"{name}\"");
        let layout = program.header_types.values().find(|header| {
            header.annotations.iter().any(|it| it.name == "controller_header" && it.text.trim() == quoted)
        });
        let parts: Vec<HeaderField> = match layout {
            Some(layout) => {
                let part = |field: &ir::HeaderField| {
                    let metadata = described.metadata.iter().find(|metadata| metadata.name == field.name);
                    HeaderField {
                        id: metadata.map(|it| it.id),
                        name: field.name.clone(),
                        width: field.width,
                        sdn: metadata.map_or(ValueEncoding::Plain, &sdn),
                    }
                };
                layout.fields.iter().map(part).collect()
            }
            None => {
                let part = |metadata: &controller_packet_metadata::Metadata| HeaderField {
                    id: Some(metadata.id),
                    name: metadata.name.clone(),
                    width: metadata.bitwidth as u32,
                    sdn: sdn(metadata),
                };
                described.metadata.iter().map(part).collect()
            }
        };
        let bits: u64 = parts.iter().map(|part| u64::from(part.width)).sum();
        bits.is_multiple_of(8).then_some(ControllerHeader { bytes: (bits / 8) as usize, parts })
    }

    /// Splits a packet of the program into metadata and payload. Returns `None` if it is shorter than the header.
    pub fn split(&self, packet: &[u8]) -> Option<(Vec<PacketMetadata>, Vec<u8>)> {
        let (header, payload) = packet.split_at_checked(self.bytes)?;
        let mut at = 0;
        let mut metadata = Vec::new();
        for part in &self.parts {
            let value = Bits::read(header, at, part.width);
            at += part.width as usize;
            if let Some(metadata_id) = part.id {
                metadata.push(PacketMetadata { metadata_id, value: part.sdn.print(&value) });
            }
        }
        Some((metadata, payload.to_vec()))
    }

    /// Joins metadata and payload to a packet for the program.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if a field is missing, unknown, given twice or too wide.
    pub fn join(&self, metadata: &[PacketMetadata], payload: &[u8]) -> Result<Vec<u8>, Refusal> {
        let mut packet = vec![0; self.bytes];
        let known = |id: u32| self.parts.iter().any(|part| part.id == Some(id));
        if let Some(unknown) = metadata.iter().find(|field| !known(field.metadata_id)) {
            return Err(Refusal::invalid(format!(
                "the program's packet_out header has no field with the id {}; it has {}",
                unknown.metadata_id,
                self.listed()
            )));
        }
        let mut at = 0;
        for part in &self.parts {
            if let Some(id) = part.id {
                let mut given = metadata.iter().filter(|field| field.metadata_id == id);
                let (Some(field), None) = (given.next(), given.next()) else {
                    return Err(Refusal::invalid(format!(
                        "packet_out needs each field of its header once, and `{}` (id {id}) is missing or given twice; \
                         the header has {}",
                        part.name,
                        self.listed()
                    )));
                };
                let value = part
                    .sdn
                    .parse(&field.value, part.width)
                    .map_err(|refusal| Refusal::invalid(format!("field `{}` has {}", part.name, refusal.message)))?;
                value.write(&mut packet, at);
            }
            at += part.width as usize;
        }
        packet.extend_from_slice(payload);
        Ok(packet)
    }

    fn listed(&self) -> String {
        let part = |part: &HeaderField| part.id.map(|id| format!("`{}` (id {id}, {} bits)", part.name, part.width));
        self.parts.iter().filter_map(part).collect::<Vec<_>>().join(", ")
    }
}
