//! Calls of controllers, as scripts of messages: the server executes or refuses each request, and its state is what it
//! reports. The properties that must hold are in `p4runtime_server::testing`.

#[path = "../../../crates/p4runtime_server/tests/it/v1model_target.rs"]
mod v1model_target;

use ::p4runtime_server::testing::script;

use super::{FuzzTarget, Reached};
use crate::random::Random;
use crate::{mutate, worker};
use v1model_target::V1ModelTarget;

/// Scripts of calls.
pub struct Calls {
    /// Scripts that reached something.
    inputs: Vec<Vec<u8>>,
}

impl Calls {
    pub fn new() -> Calls {
        Calls { inputs: (1..=50).map(script::generate::<V1ModelTarget>).collect() }
    }
}

impl FuzzTarget for Calls {
    fn seeds(&self) -> Vec<Vec<u8>> {
        self.inputs.clone()
    }

    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        if random.one_in(3) {
            return script::generate::<V1ModelTarget>(random.next());
        }
        let mut input = random.pick(&self.inputs).clone();
        if random.one_in(4) {
            // The calls of one after those of another.
            input.extend(random.pick(&self.inputs));
        }
        for _ in 0..=random.below(6) {
            mutate::bytes(&mut input, random);
        }
        input
    }

    fn run(&mut self, input: &[u8]) -> Vec<u64> {
        let mut reached = Reached::default();
        script::run::<V1ModelTarget>(input).into_iter().for_each(|what| reached.add(what));
        reached.list()
    }

    fn keep(&mut self, input: Vec<u8>) {
        worker::remember(&mut self.inputs, input);
    }
}
