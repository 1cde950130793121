//! Defines the input of a compilation.

use std::path::PathBuf;

use p4::{DiskLoader, Loader, NoFiles, PreprocessorOptions};

use crate::Architecture;

/// A P4 source and the environment in which it is preprocessed.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The name that diagnostics show. Files included in quotes are searched first in its directory.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
    /// Macros that are defined before the first line, as `-D name=value` gives them.
    pub defines: &'a [(String, String)],
    /// Directories that are searched for included files, in order.
    pub include_dirs: &'a [PathBuf],
    /// The reader of included files.
    pub loader: &'a dyn Loader,
}

impl<'a> Source<'a> {
    /// Returns a source that may include files of this machine, with no macros and no further directories.
    pub fn new(name: &'a str, text: &'a str) -> Source<'a> {
        Source { name, text, defines: &[], include_dirs: &[], loader: &DiskLoader }
    }

    /// Returns a source that includes built-in files only: a program that came over the network, for example.
    pub fn without_files(name: &'a str, text: &'a str) -> Source<'a> {
        Source { loader: &NoFiles, ..Source::new(name, text) }
    }

    /// Returns the preprocessor's options.
    pub(crate) fn options(&self, architecture: &dyn Architecture) -> PreprocessorOptions {
        PreprocessorOptions {
            defines: self.defines.to_vec(),
            include_dirs: self.include_dirs.to_vec(),
            builtin: architecture.includes().to_vec(),
        }
    }
}
