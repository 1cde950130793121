//! The integration tests of `entries_file`, in one binary, so that their dependencies are linked once.

mod files;
mod forms;
