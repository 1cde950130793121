//! Names the errors that simulated requests must find, and switches them on in builds with the feature `testing`.

mutants::mutants! {
    /// An error of an executor that is easy to make.
    pub enum ExecutorMutant {
        /// Echoes from every address are accepted.
        SourceIgnored,
        /// Echoes are matched by their sequence number alone.
        TagIgnored,
        /// Echoes with other instructions are accepted.
        AlteredAccepted,
        /// Echoes with a wrong checksum are accepted.
        DamagedAccepted,
        /// A copy of an echo is taken for a new one.
        DuplicateAccepted,
        /// The echo of an earlier try is not accepted after a retry.
        EarlierTryForgotten,
        /// A retry waits no longer than the try before it.
        NoBackoff,
        /// A program is sent once too often.
        OneTryMore,
        /// A request does not end at its deadline.
        DeadlineIgnored,
        /// More programs than permitted wait for their echoes.
        BoundIgnored,
        /// A program that is executed on one switch lacks its guard.
        GuardLeftOut,
        /// A guard of the source is not repeated in later packets.
        CexecNotRepeated,
        /// The instructions of a later packet overwrite the words of the first.
        WordsOfFirstGroup,
        /// The words of a later range of hops are taken for those of the first.
        WordsOfFirstHops,
        /// A program that came back is taken for one that its switch executed.
        EchoIsProof,
        /// Both halves of a value are read by different packets.
        HalvesSplit,
        /// Instructions behind a `CSTORE` travel in another packet.
        CstoreSplit,
        /// A store without a condition may be retried.
        StoreRetried,
        /// A store of one's own whose echo was lost is taken for that of another.
        MineIsAnothers,
        /// Every failed `CSTORE` of a retry is taken for one's own.
        AnothersIsMine,
        /// A failed `CSTORE` of a retry is taken for proof that nothing was stored.
        FailureIsProof,
        /// A value that others store, too, is taken for one's own.
        SharedIsMine,
        /// The mark for reflection is left out.
        MarkLeftOut,
    }
}

mutants::mutation!(pub struct ExecutorMutation(ExecutorMutant) with feature = "testing");
