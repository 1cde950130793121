//! Describes the pipeline that can run in the kernel: the same steps as one whole unit of machine code.

use engine::MayWait;
use ir::Program;

use super::layout::{Layout, LoadError};
use super::state::{result, whole_steps};

/// Returns the steps of a packet through the whole pipeline: received, processed, and sent by one port or dropped.
/// Everything else that the switch does for a packet is handed over.
///
/// # Errors
/// If the program is not a v1model program.
pub fn kernel_pipeline(program: &Program) -> Result<bpf::KernelPipeline, LoadError> {
    let layout = Layout::new(program)?;
    let (steps, egress_begins) = whole_steps(program, &layout, [MayWait::default(); 2]);
    let standard = layout.standard;
    let times =
        [standard.ingress_global_timestamp, standard.egress_global_timestamp, standard.enq_timestamp].into_iter();
    Ok(bpf::KernelPipeline {
        steps,
        egress_begins,
        ingress_port: standard.ingress_port,
        egress_port: result::EGRESS_PORT,
        drop_site: standard.drop_site,
        unknown: times.flatten().collect(),
    })
}
