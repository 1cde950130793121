//! Names the errors that the simulator must find, and switches them on in its builds.

macro_rules! mutants {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// An error of the protocol. Each is a bug of the public artefact of RedPlane, or one that is easy to make.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Mutant {
            $($(#[$doc])* $name,)*
        }

        impl Mutant {
            /// All mutants.
            pub const ALL: &[Mutant] = &[$(Mutant::$name,)*];
        }
    };
}

mutants! {
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
    /// An ask of before a gap between two leases stays valid.
    AskSurvivesLease,
    /// A read does not wait for the writes that it has seen.
    ReadNotWaiting,
    /// An acknowledgement counts for newer writes, too.
    AckOfNewer,
    /// A write of the acknowledged values is left out while other values are under way.
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
    /// A write counts if its number is new, whatever its epoch.
    SeqFence,
    /// A write counts whatever its number.
    SeqUnchecked,
    /// A write of an ended epoch is acknowledged.
    AckedUnapplied,
    /// The store waits for a lease without the drift of clocks.
    NoDriftMargin,
    /// A release frees the row whatever its epoch.
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
    /// The head says itself that there is no such row.
    MissSkipsChain,
    /// All packets that wait when the stores answer that there is no such row have a miss, also those that came after
    /// the ask.
    MissOfLaterPackets,
    /// Messages of another layout are accepted.
    LayoutIgnored,
    /// A node that has lost its memory keeps its life.
    AmnesiaKeepsLife,
    /// A new head takes all sessions for ended.
    SessionsForgotten,
    /// A new head takes all rows for free.
    GrantsForgotten,
    /// A node accepts operations behind a gap.
    GapAccepted,
    /// A node sends a new successor only new operations.
    UnstableForgotten,
    /// A part of a copy is accepted between any two operations.
    ChunkUnordered,
    /// A node takes itself for complete before it has copied all rows.
    IncompleteServes,
    /// A new member serves before it has the operations that its predecessor acknowledged alone.
    InactiveServes,
    /// A node forwards and replies before its disk has the operation.
    PersistedLater,
    /// A node does not keep its layout on disk.
    LayoutUnpersisted,
    /// A node does not keep on disk the operations that its successor may need after a restart.
    OperationsUnpersisted,
    /// The operator removes members although no active one stays.
    LastActiveRemoved,
    /// The operator sends a layout before it is kept.
    SentBeforeKept,
}

/// The mutant that is switched on, if any. Without the feature `simulation` there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mutation {
    #[cfg(feature = "simulation")]
    mutant: Option<Mutant>,
}

impl Mutation {
    /// Switches a mutant on.
    #[cfg(feature = "simulation")]
    pub fn of(mutant: Option<Mutant>) -> Mutation {
        Mutation { mutant }
    }

    /// Whether this mutant is switched on.
    #[cfg(feature = "simulation")]
    pub(crate) fn is(self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// Returns false: there are no mutants.
    #[cfg(not(feature = "simulation"))]
    #[inline(always)]
    pub(crate) fn is(self, _mutant: Mutant) -> bool {
        false
    }
}
