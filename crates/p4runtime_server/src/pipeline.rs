//! Defines a pipeline: the program that a controller sends, and its description (specification chapter 7).
//!
//! The device config is the text of a P4 program or a compiled program, bare or in the wrapper of controllers for BMv2.
//! Text is compiled here. The program's P4Info must match the one that the controller sent, so that both mean the same
//! objects.

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

/// Maximum length of a program, in bytes.
const MAX_PROGRAM_BYTES: usize = 16 << 20;
/// Maximum length of the compiler's errors in an answer, in bytes.
const MAX_REPORT_BYTES: usize = 6 << 10;

/// A program that can run, and the config from its controller.
#[derive(Clone, Debug)]
pub struct Pipeline {
    pub(crate) schema: Arc<Schema>,
    /// The config as it was sent, returned by reads.
    pub(crate) config: ForwardingPipelineConfig,
}

impl Pipeline {
    /// Makes a pipeline of a program that was compiled elsewhere. `source` is its text.
    pub fn new(program: Arc<Program>, info: P4Info, source: Vec<u8>) -> Pipeline {
        let config = ForwardingPipelineConfig { p4info: Some(info.clone()), p4_device_config: source, cookie: None };
        Pipeline { schema: Arc::new(Schema::new(program, info)), config }
    }

    /// Returns the names in P4Info of what clients read and write: everything but actions, packet headers, and counters
    /// and meters of entries, which belong to their tables.
    pub fn object_names(&self) -> Vec<&str> {
        self.schema.readable_names().collect()
    }

    /// Replaces the config, cookie included, as if the pipeline had been sent with it.
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
        compiler::check_names(&p4info).map_err(Refusal::invalid)?;
        if let Some(difference) = difference(sent, &p4info) {
            return Err(Refusal::invalid(format!(
                "config.p4info does not describe the program in p4_device_config: {difference}"
            )));
        }
        Ok(Pipeline { schema: Arc::new(Schema::new(Arc::new(ir), p4info)), config })
    }

    /// Returns the device config as it was sent.
    pub fn source(&self) -> &[u8] {
        &self.config.p4_device_config
    }

    /// Returns the program.
    pub fn program(&self) -> &Arc<Program> {
        &self.schema.program
    }
}

/// The message in which controllers for BMv2 wrap a device config (`p4.tmp.P4DeviceConfig`).
#[derive(Clone, PartialEq, Message)]
#[prost(prost_path = "::p4runtime_proto::prost")]
struct Bmv2Wrapper {
    #[prost(bool, tag = "1")]
    reassign: bool,
    #[prost(bytes = "vec", tag = "3")]
    device_data: Vec<u8>,
}

/// Removes BMv2's wrapper from a device config. Returns `None` if there is none.
fn unwrapped(bytes: &[u8]) -> Option<Vec<u8>> {
    // No text starts with these bytes.
    let wrapped = bytes.first().is_some_and(|first| [0x08, 0x1a].contains(first));
    let inner = wrapped.then(|| Bmv2Wrapper::decode(bytes).ok()).flatten()?.device_data;
    (!inner.is_empty()).then_some(inner)
}

/// Returns the memory that the P4Info in a device config takes, in bytes.
pub(crate) fn p4info_memory(config: &[u8]) -> u64 {
    ProgramFile::p4info_memory(unwrapped(config).as_deref().unwrap_or(config))
}

/// Returns the program's text from a device config.
fn source_text(bytes: &[u8]) -> Result<&str, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::invalid(
            "config.p4_device_config is missing; send the source of the P4 program or the output of `triplane build`",
        ));
    }
    if bytes.len() > MAX_PROGRAM_BYTES {
        return Err(Refusal::invalid(format!("the program has more than {MAX_PROGRAM_BYTES} bytes")));
    }
    // Controllers written for BMv2's first server put a length or a marker before the JSON.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
    if text.trim_start().starts_with('{') || text.contains("\"header_types\"") {
        return Err(Refusal::invalid(
            "p4_device_config is a JSON file for BMv2; this switch compiles programs itself: send the P4 source instead, or \
             the output of `triplane build`",
        ));
    }
    std::str::from_utf8(bytes)
        .map_err(|_| Refusal::invalid("p4_device_config is not UTF-8; this switch takes the source of a P4 program"))
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

/// Remedy of a missing file, instead of the compiler's, which is for files of this machine.
const INCLUDES_NOTHING: &str =
    "a controller's program includes built-in files only; send the output of `triplane build` instead";

/// Returns the refusal of a program that has mistakes, with the compiler's errors in the order of the text.
fn mistakes(map: &SourceMap, diagnostics: &Diagnostics) -> Refusal {
    let errors = diagnostics.in_order().into_iter().filter(|finding| finding.severity == diagnostics::Severity::Error);
    let mut report = String::new();
    for finding in errors {
        // A program may have 100,000 errors. The report shows a few of them.
        if report.len() > MAX_REPORT_BYTES {
            break;
        }
        if !report.is_empty() {
            report.push('\n');
        }
        let mut finding = finding.clone();
        if finding.code == "include-not-found" {
            finding.help = Some(INCLUDES_NOTHING.to_owned());
        }
        report.push_str(&finding.render(map, false));
    }
    cut(&mut report, MAX_REPORT_BYTES);
    Refusal::invalid(format!("the program in p4_device_config has errors:\n{report}"))
}
