//! Names the errors that random packets with INT must find.

mutants::mutants! {
    /// An error in a node of INT that is easy to make.
    pub enum IntMutant {
        /// A hop puts its metadata behind those of the hops before it.
        StackAtEnd,
        /// The number of remaining hops stays.
        RemainingStays,
        /// A hop adds metadata although no hops remain.
        ExceededHopsAdd,
        /// The flag for exceeded hops is not set.
        HopsFlagStays,
        /// A hop adds metadata although the packet then exceeds the MTU.
        MtuIgnored,
        /// The flag for an exceeded MTU is not set.
        MtuFlagStays,
        /// A packet that exceeds the MTU loses a remaining hop.
        MtuTakesHop,
        /// The length in the shim stays.
        ShimLengthStays,
        /// The length in the shim wraps around.
        ShimLengthWraps,
        /// The length in the UDP header stays.
        UdpLengthStays,
        /// The length in the IP header stays.
        IpLengthStays,
        /// The checksum of the IPv4 header stays.
        IpChecksumStays,
        /// The checksum of UDP or TCP stays.
        ChecksumStays,
        /// The length in the pseudo-header is not part of the update.
        PseudoLengthStays,
        /// A datagram without a checksum gets one.
        ZeroChecksumUpdated,
        /// A UDP checksum that becomes zero is sent as zero, which means none.
        ZeroResultSent,
        /// A value that the switch lacks is zero.
        AbsentIsZero,
        /// A value that does not fit wraps around.
        LargeValueWraps,
        /// A value that does not fit is all ones, like an absent one.
        LargeValueLooksAbsent,
        /// Words of reserved instructions, of the domain and of the checksum complement are zero.
        RestIsZero,
        /// The sink leaves the marker's UDP port.
        PortStays,
        /// The sink leaves the marker's DSCP.
        DscpStays,
        /// The sink clears ECN together with the DSCP.
        EcnCleared,
        /// The sink leaves the protocol of the inserted UDP header.
        ProtocolStays,
        /// The sink keeps the inserted UDP header.
        InsertedHeaderStays,
        /// The report requests metadata that the sink lacks.
        ReportOfAbsent,
        /// The report shows the packet as it leaves, without the stack.
        ReportWithoutStack,
    }
}

mutants::mutation!(pub struct IntMutation(IntMutant) with feature = "testing");
