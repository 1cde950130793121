//! A device config that is a compiled program, from `triplane build`.

use compiled::Compiled;
use ir::Program;
use p4runtime_proto::config::P4Info;
use source::{Diagnostics, SourceMap};

use crate::pipeline::mistakes;
use crate::status::Refusal;

/// Whether a device config is meant to be a compiled program.
pub(crate) fn is_compiled(config: &[u8]) -> bool {
    compiled::is_compiled(config)
}

/// The program of a device config, and its own description.
///
/// # Errors
/// `INVALID_ARGUMENT` if it cannot be run here, or asks of entries what makes no sense.
pub(crate) fn open(config: &[u8]) -> Result<(Program, P4Info), Refusal> {
    let compiled = Compiled::read(config).map_err(|why| Refusal::invalid(format!("p4_device_config {why}")))?;
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    constraints::Checker::new(&compiled.info, &mut map, &mut diagnostics);
    constraints::References::new(&compiled.info, &mut map, &mut diagnostics);
    match diagnostics.has_errors() {
        true => Err(mistakes(&map, &diagnostics)),
        false => Ok((compiled.program, compiled.info)),
    }
}
