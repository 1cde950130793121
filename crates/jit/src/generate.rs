//! Generates the functions of a program's units.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use cranelift_codegen::Context;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Module};
use ir::Program;

use crate::emit::lookup::{self, LookupFunction, LookupFunctions};
use crate::emit::{Emit, ProgramFacts, UnitState, cold_calls};
use crate::layout::FrameLayout;
use crate::native::{declare, define, function, machine};
use crate::scout::PrefetchLayout;
use crate::{Plan, Probe, Speed, Unit, Unsupported};

/// Number of parameters of the function for single packets, of that for copies, of the batch loop and of a scout.
const SINGLE_PARAMS: usize = 1;
const COPY_PARAMS: usize = 2;
const BATCH_PARAMS: usize = 5;
const SCOUT_PARAMS: usize = 4;

/// A program, and how its code is generated.
pub(crate) struct ProgramSource<'a> {
    pub program: &'a Program,
    pub plan: &'a Plan,
    pub layout: &'a FrameLayout,
    pub facts: &'a ProgramFacts,
    pub speed: Speed,
    pub probe: Option<Probe>,
}

/// The functions of a unit.
pub(crate) struct UnitFunctions {
    /// For single packets; `None` if the unit runs on batches only.
    pub single: Option<FuncId>,
    /// For batches, if the unit runs on them.
    pub batch: Option<BatchFunctions>,
    /// For copies, if the unit runs on them.
    pub copy: Option<CopyFunction>,
}

/// The function that runs a unit on copies.
pub(crate) struct CopyFunction {
    pub code: FuncId,
    /// Words of the frame that the code may change and read.
    pub words: Vec<Range<usize>>,
}

/// The functions that run a unit on batches.
pub(crate) struct BatchFunctions {
    pub code: FuncId,
    pub scout: Option<FuncId>,
    pub follow: Option<FuncId>,
    pub prefetch: PrefetchLayout,
}

impl ProgramSource<'_> {
    /// Generates all functions, and makes their addresses known.
    ///
    /// # Errors
    /// If the code generator fails; [`Unsupported::Cancelled`] once `is_cancelled` is true.
    pub(crate) fn generate(
        &self,
        module: &mut JITModule,
        is_cancelled: &AtomicBool,
    ) -> Result<Vec<UnitFunctions>, Unsupported> {
        let mut ids = declare(module)?;
        let (mut context, mut builder) = (module.make_context(), FunctionBuilderContext::new());
        cold_calls::make(module, &mut context, &mut builder, &mut ids, self.layout.arrays.is_some())?;
        let mut generator = FunctionGenerator { source: self, module, context, builder, ids, is_cancelled };
        let units = self.plan.units.iter().enumerate();
        let functions = units.map(|(index, unit)| generator.unit(index, unit)).collect::<Result<Vec<_>, _>>()?;
        generator.module.finalize_definitions().map_err(machine)?;
        Ok(functions)
    }
}

/// A unit, and its number.
struct UnitSource<'u> {
    index: usize,
    unit: &'u Unit,
    state: UnitState,
}

struct FunctionGenerator<'a> {
    source: &'a ProgramSource<'a>,
    module: &'a mut JITModule,
    context: Context,
    builder: FunctionBuilderContext,
    ids: HashMap<&'static str, FuncId>,
    is_cancelled: &'a AtomicBool,
}

impl FunctionGenerator<'_> {
    fn unit(&mut self, index: usize, unit: &Unit) -> Result<UnitFunctions, Unsupported> {
        let ProgramSource { program, plan, facts, speed, probe, .. } = *self.source;
        let is_large = speed.saves_compile_time(program, &unit.steps);
        let of = UnitSource { index, unit, state: UnitState::new(program, facts, plan, index, is_large) };
        let (alone, none) = (PrefetchLayout::default(), LookupFunctions::new());
        let mut single = None;
        if !unit.is_batched_only && !unit.runs_on_copies {
            let generate = |emit: Emit<'_, '_>| emit.with_probe(probe).unit(index);
            single = Some(self.function(&of, "unit", SINGLE_PARAMS, &alone, &none, &generate)?);
        }
        let is_batched = unit.fresh && unit.results.is_some();
        let batch = is_batched.then(|| self.batch(&of)).transpose()?;
        // Measurements need the time of each part, which code for copies does not tell.
        let runs_on_copies = unit.runs_on_copies && probe.is_none();
        let copy = runs_on_copies.then(|| self.copy(&of)).transpose()?.flatten();
        Ok(UnitFunctions { single, batch, copy })
    }

    /// Generates the function that runs a unit on copies, if that is possible.
    fn copy(&mut self, of: &UnitSource<'_>) -> Result<Option<CopyFunction>, Unsupported> {
        let ProgramSource { program, layout, facts, .. } = *self.source;
        let Some(words) = of.state.words_changed_by_copies(program, layout, facts) else { return Ok(None) };
        let results = of.unit.results.clone().unwrap_or_default();
        let (alone, none) = (PrefetchLayout { results, ..PrefetchLayout::default() }, LookupFunctions::new());
        let code = self.function(of, "copy", COPY_PARAMS, &alone, &none, &|emit| emit.copy(of.index))?;
        Ok(Some(CopyFunction { code, words }))
    }

    /// Generates the functions that run a unit on batches.
    fn batch(&mut self, of: &UnitSource<'_>) -> Result<BatchFunctions, Unsupported> {
        let ProgramSource { program, layout, probe, .. } = *self.source;
        // Measurements need each lookup attributed to its own table, so probed code has no scout.
        let prefetch = PrefetchLayout::new(program, layout, of.unit, probe.is_none(), of.state.is_large);
        let lookups = self.lookups(of, "batch", &prefetch, None)?;
        let generate = |emit: Emit<'_, '_>| emit.with_probe(probe).batch(of.index);
        let code = self.function(of, "batch", BATCH_PARAMS, &prefetch, &lookups, &generate)?;
        let (mut scout, mut follow) = (None, None);
        if prefetch.has_scout {
            let lookups = self.lookups(of, "scout", &prefetch, Some(false))?;
            scout = Some(self.function(of, "scout", SCOUT_PARAMS, &prefetch, &lookups, &|emit| emit.scout(false))?);
        }
        if prefetch.rounds > 0 {
            let lookups = self.lookups(of, "follow", &prefetch, Some(true))?;
            follow = Some(self.function(of, "follow", SCOUT_PARAMS, &prefetch, &lookups, &|emit| emit.scout(true))?);
        }
        Ok(BatchFunctions { code, scout, follow, prefetch })
    }

    /// Generates the lookups that a function of a unit calls: a batch loop, or a scout that may follow earlier results.
    fn lookups(
        &mut self,
        of: &UnitSource<'_>,
        caller: &str,
        prefetch: &PrefetchLayout,
        scout: Option<bool>,
    ) -> Result<LookupFunctions, Unsupported> {
        let none = LookupFunctions::new();
        let mut functions = LookupFunctions::new();
        for (table, first) in lookup::repeated(self.source.program, &of.unit.steps, prefetch) {
            let name = format!("{caller}_lookup{}_", table.as_u32());
            let params = lookup::params(prefetch, table);
            let id = self.function(of, &name, params, prefetch, &none, &|emit| emit.lookup(table, scout))?;
            functions.insert(table, LookupFunction::new(id, first));
        }
        Ok(functions)
    }

    /// Generates one function.
    fn function(
        &mut self,
        of: &UnitSource<'_>,
        name: &str,
        params: usize,
        prefetch: &PrefetchLayout,
        lookups: &LookupFunctions,
        generate: &dyn Fn(Emit<'_, '_>),
    ) -> Result<FuncId, Unsupported> {
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Err(Unsupported::Cancelled);
        }
        let id = function(self.module, &mut self.context, format!("{name}{}", of.index), params)?;
        let b = FunctionBuilder::new(&mut self.context.func, &mut self.builder);
        let ProgramSource { program, layout, facts, .. } = *self.source;
        let steps = &of.unit.steps;
        generate(Emit::new(b, program, layout, facts, &of.state, steps, prefetch, lookups, self.module, &self.ids));
        define(self.module, id, &mut self.context)?;
        Ok(id)
    }
}
