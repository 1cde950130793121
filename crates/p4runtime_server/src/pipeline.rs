//! A pipeline: the program that a controller sends, and its description (specification chapter 7).
//!
//! The device config is the text of a P4 program or a compiled program, bare or wrapped as controllers for BMv2 wrap
//! their JSON. Text is compiled here; the P4Info that belongs to the program is held against the one that the
//! controller sent, so that both talk of the same objects.

use std::sync::Arc;

use compiler::{Architecture, CompiledProgram, ProgramFile, Source};
use diagnostics::{Diagnostics, SourceMap};
use ir::Program;
use p4runtime_proto::config::P4Info;
use p4runtime_proto::prost::Message;
use p4runtime_proto::v1::ForwardingPipelineConfig;

use crate::difference::difference;
use crate::schema::Schema;
use crate::status::{Refusal, cut};

/// The longest program that is read, in bytes.
const MAX_PROGRAM_BYTES: usize = 16 << 20;
/// Maximum length of the compiler's errors in an answer, in bytes.
const MAX_REPORT_BYTES: usize = 6 << 10;

/// A program that can be run, and what its controller sent.
#[derive(Clone, Debug)]
pub struct Pipeline {
    pub(crate) schema: Arc<Schema>,
    /// As it was sent, to be given back.
    pub(crate) config: ForwardingPipelineConfig,
}

impl Pipeline {
    /// A program that was compiled elsewhere; `source` is its text.
    pub fn new(program: Arc<Program>, info: P4Info, source: Vec<u8>) -> Pipeline {
        let config = ForwardingPipelineConfig { p4info: Some(info.clone()), p4_device_config: source, cookie: None };
        Pipeline { schema: Arc::new(Schema::new(program, info)), config }
    }

    /// The same, as if it had been sent like this; a cookie may be with it.
    #[must_use]
    pub fn sent_as(self, config: ForwardingPipelineConfig) -> Pipeline {
        Pipeline { config, ..self }
    }

    /// Compiles the program that a controller sent, for an architecture.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is no P4 program, has mistakes, or is not the program that its P4Info describes.
    pub fn compile(config: ForwardingPipelineConfig, architecture: &dyn Architecture) -> Result<Pipeline, Refusal> {
        let Some(sent) = &config.p4info else {
            return Err(Refusal::invalid("config.p4info is missing; `triplane p4info PROG.p4` prints a program's"));
        };
        let inner = unwrapped(&config.p4_device_config);
        let source = inner.as_deref().unwrap_or(&config.p4_device_config);
        let compiled = if compiler::is_program_file(source) {
            parse_file(source)?
        } else {
            compile_source(source_text(source)?, architecture)?
        };
        let CompiledProgram { ir, p4info } = compiled;
        if let Some(difference) = difference(sent, &p4info) {
            return Err(Refusal::invalid(format!(
                "config.p4info does not describe the program in p4_device_config: {difference}"
            )));
        }
        Ok(Pipeline { schema: Arc::new(Schema::new(Arc::new(ir), p4info)), config })
    }

    /// The device config, as it was sent.
    pub fn source(&self) -> &[u8] {
        &self.config.p4_device_config
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.schema.program
    }
}

/// What BMv2's controllers put around a device config (`p4.tmp.P4DeviceConfig`).
#[derive(Clone, PartialEq, Message)]
#[prost(prost_path = "::p4runtime_proto::prost")]
struct Wrapped {
    #[prost(bool, tag = "1")]
    reassign: bool,
    #[prost(bytes = "vec", tag = "3")]
    device_data: Vec<u8>,
}

/// A device config without BMv2's wrapping, if it has one.
fn unwrapped(bytes: &[u8]) -> Option<Vec<u8>> {
    // Text has no such bytes at its start.
    let wrapped = bytes.first().is_some_and(|first| [0x08, 0x1a].contains(first));
    let inner = wrapped.then(|| Wrapped::decode(bytes).ok()).flatten()?.device_data;
    (!inner.is_empty()).then_some(inner)
}

/// The program's text, if that is what a device config is.
fn source_text(bytes: &[u8]) -> Result<&str, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::invalid(
            "config.p4_device_config is missing; it is the text of the P4 program, or what `triplane build` made of it",
        ));
    }
    if bytes.len() > MAX_PROGRAM_BYTES {
        return Err(Refusal::invalid(format!("the program has more than {MAX_PROGRAM_BYTES} bytes")));
    }
    // Controllers written for BMv2's first server put a length or a marker in front of the JSON.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
    if text.trim_start().starts_with('{') || text.contains("\"header_types\"") {
        return Err(Refusal::invalid(
            "p4_device_config is a JSON file for BMv2; this switch compiles programs itself: send the P4 source instead, or \
             what `triplane build` made of it",
        ));
    }
    std::str::from_utf8(bytes)
        .map_err(|_| Refusal::invalid("p4_device_config is no text; this switch takes the text of a P4 program"))
}

/// Reads a device config that `triplane build` made.
fn parse_file(config: &[u8]) -> Result<CompiledProgram, Refusal> {
    let file = ProgramFile::parse(config).map_err(|why| Refusal::invalid(format!("p4_device_config {why}")))?;
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    compiler::check_restrictions(&file.program.p4info, &mut map, &mut diagnostics);
    if diagnostics.has_errors() { Err(mistakes(&map, &diagnostics)) } else { Ok(file.program) }
}

/// Compiles the text of a program. It came over the network, so it includes no files of this machine.
fn compile_source(text: &str, architecture: &dyn Architecture) -> Result<CompiledProgram, Refusal> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let source = Source::without_files("p4_device_config", text);
    let compiled = compiler::compile(&source, architecture, &mut map, &mut diagnostics);
    compiled.ok_or_else(|| mistakes(&map, &diagnostics))
}

/// Returns the refusal of a program that has mistakes, with the compiler's errors in the order of the text.
fn mistakes(map: &SourceMap, diagnostics: &Diagnostics) -> Refusal {
    let errors = diagnostics.in_order().into_iter().filter(|finding| finding.severity == diagnostics::Severity::Error);
    let mut report: String = errors.map(|finding| finding.render(map, false)).collect::<Vec<_>>().join("\n");
    cut(&mut report, MAX_REPORT_BYTES);
    Refusal::invalid(format!("the program in p4_device_config has mistakes:\n{report}"))
}
