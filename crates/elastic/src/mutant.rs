//! Names the errors that the simulation must find, and switches them on in its builds.

mutants::mutants! {
    /// An error of the table: one that is easy to make, or one of the published algorithms.
    pub enum ElasticMutant {
        /// A victim is overwritten before its copy is written, and nothing else has its record meanwhile (algorithm 1,
        /// line 19).
        VictimFirst,
        /// A random walk that ends without success has already been written: its last victim is lost (algorithm 1, line
        /// 3).
        WalkLosesVictim,
        /// Cells that repeat at the end of a copy, or in the shadow of a bucket, are not written.
        RepeatsForgotten,
        /// Blank memory counts as empty cells.
        BlankIsEmpty,
        /// A key of zeros counts as an empty cell.
        ZeroKeyIsEmpty,
        /// An entry leaves the overlay once its writes are acknowledged.
        NoGracePeriod,
        /// A lookup with several READs is resolved part by part, as they complete.
        ResolvedByParts,
        /// Modifying or deleting an entry does not change the cache.
        CacheKeepsDeleted,
        /// The record of an answer enters the cache without a check of the overlay.
        AdmissionRace,
        /// Checks of cells are not verified.
        CheckIgnored,
        /// A packet whose key is cached meanwhile overtakes those that wait.
        CachedOvertakes,
        /// The acknowledgement of one copy counts for all.
        FirstAckCounts,
        /// A server that returns is read at once, with its old memory.
        StaleCopyReturns,
        /// Packets that wait are forgotten when the table is drained.
        DrainForgets,
        /// A miss is delivered to the first of the packets that wait, and the others are forgotten.
        MissOnce,
        /// Packets that waited are answered last first.
        AnswersReversed,
        /// A READ of a window that passes the end of the table begins at the start of the table.
        EndNotRepeated,
        /// Counters of the sketch never age.
        NeverAges,
        /// The cells of a deleted prefix become empty, though a shorter one continues to them.
        ShorterForgotten,
        /// A lookup is resolved with the prefix lengths that were in use when it began.
        LengthsOfTheStart,
        /// A prefix that stays in the switch is found before longer ones in remote memory.
        KeptPrefixWins,
    }
}

mutants::mutation!(pub struct ElasticMutation(ElasticMutant) with feature = "mutants");
