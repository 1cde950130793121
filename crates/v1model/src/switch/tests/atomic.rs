//! `@atomic` blocks are one step for all workers, with each executor and each way to leave them.

use std::sync::{Arc, Barrier};

use ::switch::{HeadroomBuf, PortId, Time};
use compiler::Source;
use ir::Program;

use crate::description::V1Model;
use crate::{Config, Executor, Switch};

/// Cell 0 counts in a block of its own. Cell 1 counts packets in an action, within the block in which cells 2 and 3
/// count; every third one exits there and is not counted in cell 3. Cell 4 counts in a function that returns from its
/// block.
const SOURCE: &str = "
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct headers { h_t h; }
struct metadata { bit<32> v; }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<32>>(8) r;
    action count_some() {
        @atomic {
            r.read(meta.v, 1);
            r.write(1, meta.v + 1);
            if ((meta.v & 3) == 0) { exit; }
        }
    }
    action count_and_return() {
        @atomic {
            r.read(meta.v, 4);
            r.write(4, meta.v + 1);
            if (meta.v % 2 == 0) { return; }
        }
    }
    table t { actions = { count_some; } default_action = count_some(); }
    apply {
        std.egress_spec = 1;
        @atomic {
            r.read(meta.v, 0);
            hdr.h.a = hdr.h.a + 1;
            r.write(0, meta.v + 1);
        }
        count_and_return();
        @atomic {
            r.read(meta.v, 2);
            r.write(2, meta.v + 1);
            t.apply();
            r.read(meta.v, 3);
            r.write(3, meta.v + 1);
        }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<32>>(1) last;
    apply {
        @atomic {
            last.read(meta.v, 0);
            last.write(0, meta.v + 1);
        }
    }
}
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

fn program() -> Arc<Program> {
    Arc::new(compiler::expect_program(&Source::new("atomic.p4", SOURCE), &V1Model).ir)
}

#[test]
fn atomic_blocks_of_workers_lose_nothing() {
    const WORKERS: u32 = 3;
    const BATCH: u64 = 32;
    let program = program();
    // Enough packets for the workers to meet.
    for (executor, batches) in [(Executor::Jit, 10_000), (Executor::Interpreter, 400)] {
        let config = Config { executor, ..Config::with_ports(2) };
        let mut owner = Switch::new(program.clone(), config).expect("the switch runs the program");
        let workers = owner.workers(WORKERS);
        let together = Barrier::new(WORKERS as usize);
        std::thread::scope(|scope| {
            for mut worker in workers {
                let together = &together;
                scope.spawn(move || {
                    together.wait();
                    for at in 0..batches {
                        let mut batch: Vec<HeadroomBuf> = (0..BATCH).map(|_| HeadroomBuf::new(&[7; 60], 64)).collect();
                        let mut departed = Vec::new();
                        worker.step_in_place(Time::from_us(at), PortId(0), &mut batch, &mut departed);
                        assert_eq!(departed.len() as u64, BATCH);
                    }
                });
            }
        });
        let all = u64::from(WORKERS) * batches * BATCH;
        let cell = |name: &str, index: u64| {
            let (id, _) = program.registers.iter().find(|(_, it)| it.name == name).expect("the register is there");
            owner.objects().register(id, index).expect("the cell is there").low_u64()
        };
        let counts: Vec<u64> = (0..5).map(|index| cell("I.r", index)).collect();
        assert_eq!(counts, [all, all, all, all - all.div_ceil(4), all], "{executor:?}");
        assert_eq!(cell("E.last", 0), all, "{executor:?}");
    }
}
