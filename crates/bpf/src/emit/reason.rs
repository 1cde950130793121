//! Lists the reasons why packets are handed over.

macro_rules! reasons {
    ($($reason:ident $name:literal $doc:literal $text:literal)*) => {
        /// The reason why packets are handed over.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum HandOverReason {
            $(#[doc = $doc] $reason,)*
        }

        impl HandOverReason {
            /// Returns the stable name.
            pub fn name(self) -> &'static str {
                match self {
                    $(HandOverReason::$reason => $name,)*
                }
            }

            /// Returns what the program does with the packets, as the end of a sentence about them.
            pub fn text(self) -> &'static str {
                match self {
                    $(HandOverReason::$reason => $text,)*
                }
            }
        }
    };
}

reasons! {
    WideValue "wide-value"
        "A value of more than 64 bits is used."
        "use a value of more than 64 bits"
    Stack "header-stack"
        "An element of a header stack is used at a computed index."
        "use an element of a header stack at a computed index"
    Varbit "varbit"
        "A field of variable width is used."
        "use a field of variable width"
    PartialByte "partial-byte"
        "A header does not consist of whole bytes."
        "use a header that does not consist of whole bytes"
    Advance "advance"
        "The parser advances by a number of bits that is computed, or that is not whole bytes."
        "advance the parser by a computed number of bits, or by parts of bytes"
    DeepParse "deep-parse"
        "The parser consumes bytes beyond the first 500."
        "are parsed beyond their first 500 bytes"
    Loop "loop"
        "A loop."
        "enter a loop"
    ValueSet "value-set"
        "A value set has more than 64 members, or ranges of more than 64 bits."
        "are compared with a value set of more than 64 members, or of ranges of more than 64 bits"
    TableKey "table-key"
        "A table has keys that the kernel does not search: see docs/kernel.md."
        "apply a table with keys that are not searched in the kernel"
    Rules "rules"
        "Two rules of the highest priority match, or too many rules have to be compared."
        "match two rules of the highest priority, or have to be compared with too many rules"
    TableSize "table-size"
        "A table is too large for the region."
        "apply a table that is too large for the memory shared with the kernel"
    Profile "action-profile"
        "A member is chosen by a custom CRC, a CRC of more than 64 bytes, or values of more than 64 bits."
        "choose a member of a group by a custom CRC, a CRC of more than 64 bytes, or values of more than 64 bits"
    Register "register"
        "A register has elements of more than 64 bits, is too large for the region, or is read after very many writes."
        "use a register of more than 64 bits, or too large for the memory shared with the kernel, or with very many writes"
    Meter "meter"
        "A meter is executed twice, has a burst of more than 9 * 10^9 units, or is in use for long."
        "execute a meter twice, one with a burst of more than 9 * 10^9 units, or one that another packet has for long"
    LargeMeter "large-meter"
        "A meter array is too large for the region."
        "execute a meter of an array that is too large for the memory shared with the kernel"
    ProfileMeter "profile-meter"
        "A table has a direct meter and an action profile."
        "apply a table that has both a direct meter and an action profile"
    LargeCounter "large-counter"
        "A counter array is too large for the region."
        "are counted in an array that is too large for the memory shared with the kernel"
    Hash "hash"
        "A custom CRC, a CRC of more than 64 bytes, or a hash or checksum of the payload or a field of variable width."
        "need a custom CRC, a CRC of more than 64 bytes, or a hash or checksum of the payload or a field of variable width"
    Random "random"
        "A random number is drawn."
        "draw a random number"
    Atomic "atomic"
        "Another packet is in an atomic section."
        "enter an `@atomic` section while another packet is in one for long"
    Saturation "saturation"
        "A signed operation on 64 bits that saturates."
        "use a signed operation on 64 bits that saturates"
    Request "request"
        "A request: clone, resubmit, recirculate, digest or truncate."
        "are cloned, resubmitted, recirculated, truncated, or reported by a digest"
    Multicast "multicast"
        "Several copies of a packet."
        "are sent to several ports"
    Assertion "assertion"
        "A failed assertion."
        "fail an assertion"
    HeaderLayout "header-layout"
        "There is no room for changed headers, or the outgoing packet has less than 14 bytes."
        "leave with changed headers for which there is no room, or with less than 14 bytes"
    Deparser "deparser"
        "The deparser changes headers."
        "have headers changed by the deparser"
}
