//! Names the errors that the simulation of the tests must find, and switches them on in its builds.

mutants::mutants! {
    /// An error of a requester or a responder that is easy to make.
    pub enum Mutant {
        /// Packets with a wrong integrity check are accepted.
        IcrcUnchecked,
        /// Packets from other addresses are accepted.
        SourceUnchecked,
        /// Of a memory key, only the index is compared.
        KeyUnchecked,
        /// Queue pairs have access to the memory of all domains.
        DomainUnchecked,
        /// WRITEs to read-only memory are executed.
        RightsUnchecked,
        /// A responder gives its queue pairs the same numbers after a restart, and sequence numbers begin with 0.
        SameNumbersAfterRestart,
        /// A requester gives its queue pairs the same numbers again, and sequence numbers begin with 0.
        SameNumbersAfterReopening,
        /// Sequence numbers before the expected one count as later.
        DuplicateIsGap,
        /// Packets after a gap are executed.
        GapAccepted,
        /// Each packet after a gap is answered by a negative acknowledgement.
        NakRepeated,
        /// A READ response of several packets takes one sequence number.
        ReadTakesOneNumber,
        /// A repeated READ is not answered.
        DuplicateReadIgnored,
        /// A repeated WRITE is executed again.
        WriteRepeated,
        /// A repeated atomic operation is executed again.
        AtomicRepeated,
        /// A requester compares sequence numbers as plain numbers.
        NumbersCompared,
        /// A response completes the oldest READ, whatever its sequence number.
        AnswerOfAnyNumber,
        /// An acknowledgement of a packet that was not sent, or was acknowledged before, counts.
        GhostAckCounts,
        /// An acknowledgement of later packets completes a READ whose answer was lost.
        AckCompletesReads,
        /// A lost answer is not inferred from a later one, and there are no timeouts.
        LossUnnoticed,
        /// Responses of any length are accepted.
        LengthUnchecked,
        /// More READs are outstanding than were negotiated.
        WindowIgnored,
        /// A requester retries forever.
        RetriesUnbounded,
        /// A requester ignores negative acknowledgements.
        NakIgnored,
    }
}

mutants::mutation!(pub struct Mutation(Mutant) with feature = "mutants");
