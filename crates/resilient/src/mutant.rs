//! Names the errors that the simulator must find, and switches them on in its builds.

mutants::mutants! {
    /// An error of the protocol: a bug of the public artefact of RedPlane, or one that is easy to make.
    pub enum Mutant {
        /// The switch counts its lease from the reply's arrival.
        LeaseFromReply,
        /// A reply counts for the last renewal that was sent, not for the one that it answers.
        LeaseFromLastSend,
        /// A renewal that was answered after the lease ended revives the rows.
        LeaseRevived,
        /// The switch uses rows after its lease.
        LeaseIgnored,
        /// Replies to an earlier incarnation count.
        IncarnationIgnored,
        /// A grant for another ask is accepted.
        AskIgnored,
        /// An ask from before a gap between two leases stays valid.
        AskSurvivesLease,
        /// A read does not wait for the writes that it has seen.
        ReadNotWaiting,
        /// An acknowledgement counts for newer writes, too.
        AckOfNewer,
        /// A write of the acknowledged values is skipped while other values are under way.
        ElidedWhilePending,
        /// A row is given back before its writes are acknowledged.
        ReleasedBeforeAck,
        /// A recall of a row that is asked for is answered with a release.
        ReleasedWhileAsking,
        /// A recall is ignored.
        RecallIgnored,
        /// Sequence numbers restart with each owner.
        SeqRestarts,
        /// A retransmission has the newest number with the oldest values.
        RetransmitsOldValues,
        /// A row is kept although its epoch has ended.
        StaleIgnored,
        /// An unacknowledged write is sent once.
        WriteNotRetransmitted,
        /// Outputs leave again with each duplicate of an acknowledgement.
        DuplicateReleases,
        /// Outputs that travel with a write leave when it is sent, and not when they return.
        OutputsLeaveAtSend,
        /// Outputs that travel with a write leave with each duplicate of its acknowledgement.
        OutputsReturnedTwice,
        /// Outputs leave although the acknowledgement that returns them is of a former epoch.
        OutputsOfFormerEpoch,
        /// Outputs that are too long for a datagram are cut off.
        OutputsTruncated,
        /// Outputs travel although earlier ones wait.
        OutputsOvertake,
        /// The acknowledgement of a repeated write returns its outputs, too.
        OutputsOfRepeatedWrite,
        /// The switch reads its clock before a pause, and receives frames after it.
        ClockBeforePause,
        /// The store's sessions never end.
        NeverExpires,
        /// A session belongs to a switch, not to one of its incarnations.
        SessionOfSwitch,
        /// The store grants a row that another switch owns.
        GrantedToAnybody,
        /// A grant does not get a new epoch.
        EpochKept,
        /// A newer ask of the same owner gets the old epoch.
        NewerAskSameEpoch,
        /// A write counts if its number is new, regardless of its epoch.
        SeqFence,
        /// A write counts regardless of its number.
        SeqUnchecked,
        /// A write of an ended epoch is acknowledged.
        AckedUnapplied,
        /// The store waits for a lease without the drift of clocks.
        NoDriftMargin,
        /// A release frees the row regardless of its epoch.
        ReleaseOfAnyEpoch,
        /// A removed row forgets its epoch.
        RemovalForgetsEpoch,
        /// The head replies before its successors have applied an operation.
        TailSkipped,
        /// A number is given to a row although another one has it.
        NumberTaken,
        /// A number is given to a row without the row of the number.
        NumberWithoutRow,
        /// A repeated ask gives a row another number.
        NumberAnew,
        /// The head alone answers that there is no such row.
        MissSkipsChain,
        /// The epochs of removed rows are reused.
        EpochFloorForgotten,
        /// A node that joins does not learn the epochs of rows that were removed.
        EpochFloorUncopied,
        /// A node does not keep on disk the epochs of rows that were removed.
        EpochFloorUnpersisted,
        /// A row is removed although its partner is in use.
        PartnerIgnored,
        /// A row is removed without its partner.
        HalfRemoved,
        /// A row is removed as soon as the session of its owner has ended.
        RemovedWithOwner,
        /// The removal of a row is not cancelled when it gets an owner.
        IdleClockKept,
        /// A row is removed at the head only.
        RemovedAtHead,
        /// A row that its switch has lost is considered owned as long as the session lasts.
        LostRowUnprobed,
        /// Rows whose owner died are never removed.
        DeadOwnerKept,
        /// The uses of a row after its grant do not count.
        UseUncounted,
        /// All packets that wait when the stores answer that there is no such row have a miss, including those that
        /// arrived after the ask.
        MissOfLaterPackets,
        /// A row is granted for writing while one of its readers still has it.
        ReaderNotRecalled,
        /// A switch reads a shared row that it has given back.
        ReadAfterRecall,
        /// A switch reads a shared row for a lease from the arrival of its grant.
        ReaderLeaseFromGrant,
        /// A reader that asks for writing still counts as a reader.
        UpgradeKeepsGrant,
        /// A grant for reading does not get a new epoch.
        SharedEpochKept,
        /// A new head considers all shared rows free.
        ReadersForgotten,
        /// A row is removed when one of its readers has found it idle.
        OtherReadersIgnored,
        /// Messages of another layout are accepted.
        LayoutIgnored,
        /// A node that has lost its memory keeps its life.
        AmnesiaKeepsLife,
        /// A new head considers all sessions ended.
        SessionsForgotten,
        /// A new head considers all rows free.
        GrantsForgotten,
        /// A node accepts operations after a gap.
        GapAccepted,
        /// A node sends a new successor only new operations.
        UnstableForgotten,
        /// A part of a copy is accepted between any two operations.
        ChunkUnordered,
        /// A node considers itself complete before it has copied all rows.
        IncompleteServes,
        /// A new member serves before it has the operations that its predecessor acknowledged alone.
        InactiveServes,
        /// A node forwards and replies before its disk has the operation.
        PersistedLater,
        /// A node does not keep its layout on disk.
        LayoutUnpersisted,
        /// A node does not keep on disk the operations that its successor may need after a restart.
        OperationsUnpersisted,
        /// The operator removes members although no active one remains.
        LastActiveRemoved,
        /// The operator sends a layout before it is committed.
        SentBeforeKept,
        /// A snapshot replaces the last one before the stores have all its pages.
        CommittedEarly,
        /// The next snapshot begins before the last one is acknowledged.
        SnapshotsOverlap,
        /// A snapshot overwrites the pages of the last one.
        WrittenInPlace,
        /// A page whose row is lost before the acknowledgement is considered sent.
        LostPageIgnored,
        /// A packet changes a page of a cut before it is copied.
        PageNotCopied,
        /// A cut is made between two writes of one packet.
        CutInPass,
        /// Packets run before all pages of their row are restored.
        RestoredEarly,
        /// A switch continues with its own copy of a row that it had before.
        RestoredFromMemory,
        /// The age of a snapshot counts from its acknowledgement.
        BoundFromAck,
        /// The age of a snapshot counts from the acknowledgement of any page.
        BoundOfPages,
        /// Packets use rows whose snapshot is too old.
        BoundIgnored,
        /// Changes during a snapshot do not count as changes after it.
        ChangesForgotten,
        /// A row that another switch waits for is given back without a last snapshot.
        ClosedAtOnce,
    }
}

mutants::mutation!(pub struct Mutation(Mutant) with feature = "simulation");

impl Mutant {
    /// Whether the error concerns snapshots, which have a simulation of their own.
    pub fn is_of_snapshots(self) -> bool {
        use Mutant::{
            BoundFromAck, BoundIgnored, BoundOfPages, ChangesForgotten, ClosedAtOnce, CommittedEarly, CutInPass,
            LostPageIgnored, PageNotCopied, RestoredEarly, RestoredFromMemory, SnapshotsOverlap, WrittenInPlace,
        };
        let all = [
            BoundFromAck,
            BoundIgnored,
            BoundOfPages,
            ChangesForgotten,
            ClosedAtOnce,
            CommittedEarly,
            CutInPass,
            LostPageIgnored,
            PageNotCopied,
            RestoredEarly,
            RestoredFromMemory,
            SnapshotsOverlap,
            WrittenInPlace,
        ];
        all.contains(&self)
    }
}
