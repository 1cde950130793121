//! Count of steps, for tests of how the work grows with its input.

use std::cell::Cell;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Counts a step.
pub(crate) fn count() {
    STEPS.set(STEPS.get() + 1);
}

/// Returns the number of steps that `work` takes.
pub(crate) fn of(work: impl FnOnce()) -> u64 {
    STEPS.set(0);
    work();
    STEPS.get()
}
