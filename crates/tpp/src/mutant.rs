//! Names the errors that random programs must find, and switches them on in builds with the feature `testing`.

mutants::mutants! {
    /// An error that is easy to make.
    pub enum Mutant {
        /// A `PUSH` of memory that does not exist does not move the stack pointer.
        PushOfAbsentStays,
        /// A `PUSH` moves the stack pointer even if memory is full.
        PushBeyondMemoryMoves,
        /// Instructions after a failed `CEXEC` move the stack pointer.
        FailedCexecMovesPointer,
        /// A `POP` below the stack wraps around.
        PopBelowStack,
        /// The per-hop length counts words instead of bytes.
        HopLengthInWords,
        /// Operands reach beyond the block of their hop.
        OperandsLeaveBlock,
        /// A finished program is executed again.
        DoneExecuted,
        /// A reflected program is not marked as finished, so the next switch reflects it again.
        ReflectedTwice,
        /// A program that a `CEXEC` ended is reflected.
        EndedReflected,
        /// The checksum is not updated when the memory changes.
        ChecksumStays,
        /// The checksum update adds the new values and does not subtract the old ones.
        ChecksumAddsOnly,
        /// The checksum update lacks a carry, so 0x0000 and 0xffff are confused.
        ChecksumWithoutCarry,
        /// Programs with a wrong checksum are executed.
        ChecksumIgnored,
        /// Writes are executed although they are disabled.
        WritesNotDisabled,
        /// A write that the sender forbade is executed.
        ReadOnlyIgnored,
        /// A disabled `CSTORE` leaves `old` as after a success.
        DisabledCstoreLooksStored,
        /// A disabled `CSTORE` does not end the program.
        DisabledCstoreGoesOn,
        /// A failed `CSTORE` does not end the program.
        FailedCstoreGoesOn,
        /// A failed `CSTORE` does not return the value that it found.
        FailedCstoreSilent,
        /// A failed `CSTORE` finds a value whose low bits look like `old`.
        FailedCstoreLooksStored,
        /// A `CSTORE` stores unconditionally.
        CstoreUnconditional,
        /// The high half of a counter is read separately from its low half.
        HighHalfReadAgain,
        /// A counter that does not fit into a word saturates.
        CounterSaturates,
        /// `MAX` compares the low bits of a value that does not fit.
        MaxOfLowBits,
        /// Negative hop numbers are taken as unsigned.
        HopNumberUnsigned,
        /// The hop number wraps around to a negative one.
        HopNumberWraps,
        /// A waiting program does not count hops.
        WaitingNotCounted,
        /// `CEXEC` ignores its mask.
        MaskIgnored,
        /// `CEXEC` compares 16 bits in programs with 16-bit words.
        CexecOfWords,
        /// A `CEXEC` on memory that does not exist passes.
        CexecOfAbsentPasses,
        /// The address of an indirect load is not checked against the rights.
        IndirectUnchecked,
        /// Reads are not checked against the rights.
        ReadsUnchecked,
        /// Writes are not checked against the rights.
        WritesUnchecked,
        /// An absent word is read as zero.
        AbsentIsZero,
    }
}

/// The errors of a processor: none, or one mutant. A type without values costs nothing.
pub(crate) trait Errors: Copy {
    /// Whether this mutant is switched on.
    fn is(self, mutant: Mutant) -> bool;
}

/// No error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoErrors;

impl Errors for NoErrors {
    #[inline(always)]
    fn is(self, _mutant: Mutant) -> bool {
        false
    }
}

impl Errors for Mutant {
    #[inline]
    fn is(self, mutant: Mutant) -> bool {
        self == mutant
    }
}
