//! Defines mutants: errors that the test builds of a crate can switch on, and that its tests must find.
//!
//! A crate names its errors with [`mutants!`] and lists the first seed that finds each (`testing::mutants`). Code that
//! runs with or without an error asks the type that [`mutation!`] defines; outside of test builds it has no fields, and
//! the compiler removes the tests.

#![forbid(unsafe_code)]

/// Defines an enum of errors, with the constant `ALL`, in the order of the list.
///
/// ```
/// mutants::mutants! {
///     /// An error that is easy to make.
///     pub enum Mutant {
///         /// The last element is left out.
///         LastLeftOut,
///     }
/// }
/// assert_eq!(Mutant::ALL, [Mutant::LastLeftOut]);
/// ```
#[macro_export]
macro_rules! mutants {
    ($(#[$doc:meta])* pub enum $mutant:ident { $($(#[$of_name:meta])* $name:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $mutant {
            $($(#[$of_name])* $name,)*
        }

        impl $mutant {
            /// All mutants.
            pub const ALL: &[$mutant] = &[$($mutant::$name,)*];
        }
    };
}

/// Defines a type that holds the mutant that is switched on, if any. Without this feature of the calling crate there is
/// never one.
///
/// ```
/// mutants::mutants! {
///     /// An error that is easy to make.
///     pub enum Mutant {
///         /// The last element is left out.
///         LastLeftOut,
///     }
/// }
/// mutants::mutation!(pub struct Mutation(Mutant) with feature = "mutants");
/// assert!(!Mutation::default().is(Mutant::LastLeftOut));
/// ```
#[macro_export]
macro_rules! mutation {
    (pub struct $mutation:ident($mutant:ident) with feature = $feature:literal) => {
        /// The mutant that is switched on, if any. There is none outside of test builds.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $mutation {
            #[cfg(feature = $feature)]
            mutant: Option<$mutant>,
        }

        impl $mutation {
            /// Switches a mutant on.
            #[cfg(feature = $feature)]
            pub fn of(mutant: Option<$mutant>) -> $mutation {
                $mutation { mutant }
            }

            /// Whether this mutant is switched on.
            #[cfg(feature = $feature)]
            #[inline(always)]
            pub(crate) fn is(self, mutant: $mutant) -> bool {
                self.mutant == Some(mutant)
            }

            /// Returns false: there are no mutants.
            #[cfg(not(feature = $feature))]
            #[inline(always)]
            pub(crate) fn is(self, _mutant: $mutant) -> bool {
                false
            }
        }
    };
}
