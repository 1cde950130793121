//! Emits lookups as functions of their own, one for each table, where a program applies a table many times.
//!
//! A lookup with its inline search takes about a hundred instructions. Where a table is applied, its first application
//! in program order has them inline; the others call the function, which costs a few cycles and saves most of the
//! compile time of programs that repeat their tables for each of several headers.

use std::collections::{BTreeMap, HashMap};

use cranelift_codegen::ir::{FuncRef, InstBuilder, Value, types};
use cranelift_module::{FuncId, Module};
use ir::{BlockId, BodyId, Op, Program, TableId};

use super::Emit;
use super::scout::ScoutState;
use super::versions::ReturnSite;
use super::words::Word;
use crate::scout::PrefetchLayout;
use crate::{Step, walk};

/// Number of applications of a table from which its lookup is a function.
const MANY: usize = 4;
/// Number of parameters of a lookup before the words of the key: frame, prefetch memory, and index of the packet.
const PARAMS: usize = 3;

/// An instruction that applies a table.
type ApplySite = (BodyId, BlockId, usize);

/// A lookup that is a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookupFunction {
    function: FuncId,
    /// The application that has the lookup inline.
    first: ApplySite,
}

/// The lookups of a unit that are functions.
pub(crate) type LookupFunctions = HashMap<TableId, LookupFunction>;

/// Returns the prefetched tables that steps apply many times, each with its first application.
pub(crate) fn repeated(program: &Program, steps: &[Step], prefetch: &PrefetchLayout) -> Vec<(TableId, ApplySite)> {
    let mut sites: BTreeMap<TableId, (ApplySite, usize)> = BTreeMap::new();
    for body in walk::bodies_of_steps(program, steps) {
        for (id, block) in &program.bodies[body].blocks {
            for (number, instr) in block.instrs.iter().enumerate() {
                if let Op::Apply { table, .. } = instr.op {
                    sites.entry(table).or_insert(((body, id, number), 0)).1 += 1;
                }
            }
        }
    }
    let sites = sites.into_iter().filter(|(id, (_, count))| *count >= MANY && prefetch.of(*id).is_some());
    sites.map(|(id, (first, _))| (id, first)).collect()
}

/// Returns the number of parameters of the lookup of a table.
pub(crate) fn params(prefetch: &PrefetchLayout, id: TableId) -> usize {
    PARAMS + prefetch.of(id).map_or(0, |prefetched| prefetched.words)
}

impl LookupFunction {
    pub fn new(function: FuncId, first: ApplySite) -> LookupFunction {
        LookupFunction { function, first }
    }
}

impl Emit<'_, '_> {
    /// Generates the lookup of a table as a function of the frame, the prefetch memory, the index of the packet in its
    /// batch and the words of its key. It returns the record; in a loop 0 if the table's result is pending, in a scout
    /// 0 if there is no result yet. A scout may `follow` earlier results.
    pub(crate) fn lookup(mut self, id: TableId, scout: Option<bool>) {
        let entry = self.b.current_block().expect("a function begins with a block");
        let params = self.b.block_params(entry).to_vec();
        let (prefetch, number) = (params[1], params[2]);
        self.lookup_key = Some(params[PARAMS..].iter().map(|word| Word::Value(*word)).collect());
        let prefetched = self.prefetch.of(id).expect("only prefetched tables have lookups");
        let record = match scout {
            None => self.find(prefetch, number, &prefetched, false),
            Some(follows) => {
                self.scouting = Some(ScoutState::for_lookup(prefetch, number, follows));
                let (runs, unknown) = (self.b.create_block(), self.b.create_block());
                let record = self.b.append_block_param(runs, types::I64);
                self.find_for_scout(&prefetched, runs, unknown);
                self.b.switch_to_block(unknown);
                let none = self.number(0);
                self.b.ins().jump(runs, &[none.into()]);
                self.b.switch_to_block(runs);
                record
            }
        };
        self.b.ins().return_(&[record]);
        // Nothing comes here: a lookup ends no unit.
        let finish = self.finish;
        self.b.switch_to_block(finish);
        let none = self.number(0);
        self.b.ins().return_(&[none]);
        self.seal();
    }

    /// Calls the lookup of a table, if it is a function and this is not its first application.
    pub(super) fn called_lookup(&mut self, id: TableId, site: ReturnSite) -> Option<Value> {
        let lookup = *self.lookups.get(&id)?;
        let body = self.versions.scope(site.scope).body;
        if lookup.first == (body, site.block, site.instr) {
            return None;
        }
        let (prefetch, number) = match (self.lane, &self.scouting) {
            (Some(lane), _) => (lane.prefetch, self.lane_number(lane)),
            (None, Some(scouting)) => (scouting.prefetch, scouting.number),
            (None, None) => return None,
        };
        let key = self.key(id);
        let key: Vec<Value> = key.into_iter().map(|word| self.value(word)).collect();
        self.store_packet_words();
        let function = self.lookup_ref(id, lookup.function);
        let args = [vec![self.frame, prefetch, number], key].concat();
        let call = self.b.ins().call(function, &args);
        self.b.inst_results(call).first().copied()
    }

    fn lookup_ref(&mut self, id: TableId, function: FuncId) -> FuncRef {
        let (module, func) = (&mut *self.module, &mut *self.b.func);
        *self.lookup_refs.entry(id).or_insert_with(|| module.declare_func_in_func(function, func))
    }
}
