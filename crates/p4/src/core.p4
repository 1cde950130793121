// The P4_16 core library (specification 1.2.5, appendix D): what every program can count on.

#ifndef _CORE_P4_
#define _CORE_P4_

/// What can go wrong while a packet is parsed. Programs and architectures may add members of their own.
error {
    NoError,               /// Nothing went wrong.
    PacketTooShort,        /// The packet ends before the bits that were asked for.
    NoMatch,               /// No case of a `select` applies.
    StackOutOfBounds,      /// A header stack has no element there.
    HeaderTooShort,        /// The bits do not fit into the varbit field.
    ParserTimeout,         /// The parser took more steps than the target allows.
    ParserInvalidArgument  /// A method was called with a value that the target does not support.
}

/// The packet as a parser sees it: a cursor that moves from the first bit to the last.
extern packet_in {
    /// Fills the header `hdr` from the bits at the cursor, makes it valid and moves the cursor behind it.
    /// T is a header type of fixed size, or `hdr` is the next element of a header stack.
    /// Errors: PacketTooShort, StackOutOfBounds.
    void extract<T>(out T hdr);

    /// The same for a header with exactly one varbit field, which receives `variableFieldSizeInBits` bits.
    /// Errors: PacketTooShort, StackOutOfBounds, HeaderTooShort.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);

    /// The value of type T that the bits at the cursor make up; the cursor stays.
    /// Errors: PacketTooShort.
    T lookahead<T>();

    /// Moves the cursor forward.
    /// Errors: PacketTooShort.
    void advance(in bit<32> sizeInBits);

    /// The length of the packet in bytes. Not every target knows it.
    bit<32> length();
}

/// The packet as a deparser builds it, from its first bit on.
extern packet_out {
    /// Appends `hdr` to the packet if it is valid. A stack, union or struct is appended element by element.
    void emit<T>(in T hdr);
}

/// For parsers: goes on if `check` holds; otherwise records `toSignal` as the parser's error and goes to `reject`.
extern void verify(in bool check, in error toSignal);

/// The action that does nothing.
@noWarn("unused")
action NoAction() {}

/// How a table compares a key with its entries. Architectures may add kinds of their own.
match_kind {
    /// All bits are equal.
    exact,
    /// The bits selected by a mask are equal.
    ternary,
    /// The longest prefix that is equal wins.
    lpm
}

/// Stops the compilation with `message` if `check`, which is known at compile time, is false. The result is `check`,
/// so that an assertion can initialise a constant wherever a declaration may stand.
extern bool static_assert(bool check, string message);

/// The same with a message of the compiler's.
extern bool static_assert(bool check);

#endif
