//! Emits cold calls, which are calls that clobber no register.
//!
//! Around a call, the code generator keeps live values in the few callee-saved registers or spills them to the stack,
//! however rarely the call is executed. So functions that are called on cold paths (a key that was not prefetched,
//! headers without headroom) have a second entry point, which saves all registers itself. It cannot return anything:
//! the result is stored in the frame.

use std::collections::HashMap;

use cranelift_codegen::Context;
use cranelift_codegen::ir::{AbiParam, InstBuilder, MemFlagsData, types};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Linkage, Module};

use crate::Unsupported;
use crate::layout::word;
use crate::native::{define, machine};

/// The functions with such an entry point, and its name. Each takes the frame first and returns a word.
const NAMES: [(&str, &str); 2] = [("apply", "apply_cold"), ("assemble", "assemble_cold")];

/// The entry points of programs that use resilient arrays inline.
const ARRAY_NAMES: [(&str, &str); 2] = [("row_read", "row_read_cold"), ("row_write", "row_write_cold")];

/// Returns the name of a function's cold entry point.
pub(super) fn name(function: &str) -> &'static str {
    let found = NAMES.iter().chain(&ARRAY_NAMES).find(|(name, _)| *name == function);
    found.expect("the function has a cold entry point").1
}

/// Generates the entry points, for a program that may use resilient arrays inline.
pub(crate) fn make(
    module: &mut JITModule,
    context: &mut Context,
    builder: &mut FunctionBuilderContext,
    ids: &mut HashMap<&'static str, FuncId>,
    uses_arrays: bool,
) -> Result<(), Unsupported> {
    for (function, name) in NAMES.into_iter().chain(ARRAY_NAMES.into_iter().filter(|_| uses_arrays)) {
        let mut signature = module.declarations().get_function_decl(ids[function]).signature.clone();
        signature.returns.clear();
        signature.call_conv = CallConv::PreserveAll;
        let id = module.declare_function(name, Linkage::Local, &signature).map_err(machine)?;
        debug_assert!(signature.params.iter().all(|param| *param == AbiParam::new(types::I64)));
        context.func.signature = signature;
        let mut b = FunctionBuilder::new(&mut context.func, builder);
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let args = b.block_params(entry).to_vec();
        let function = module.declare_func_in_func(ids[function], b.func);
        let call = b.ins().call(function, &args);
        let answer = b.inst_results(call)[0];
        b.ins().store(MemFlagsData::trusted(), answer, args[0], word::RESULT as i32 * 8);
        b.ins().return_(&[]);
        b.seal_all_blocks();
        b.finalize(module.target_config());
        define(module, id, context)?;
        ids.insert(name, id);
    }
    Ok(())
}
