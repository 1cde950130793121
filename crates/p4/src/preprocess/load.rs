//! Loads included files.

use std::io::{Error, ErrorKind, Read, Result};
use std::path::{Path, PathBuf};

/// Maximum size of a file in bytes.
pub(crate) const MAX_FILE_BYTES: usize = 16 << 20;

/// Source of included files: I/O is passed to the preprocessor as an argument.
pub trait Loader {
    /// Returns the text of the file at `path`. After [`ErrorKind::NotFound`], the search for an included file continues
    /// in the next directory; every other error ends it and is reported.
    fn load(&self, path: &Path) -> Result<String>;
}

/// Reads files from disk, up to 16 MiB each. Bytes that are not UTF-8 (the specification allows any in comments and
/// strings) become U+FFFD.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskLoader;

impl Loader for DiskLoader {
    fn load(&self, path: &Path) -> Result<String> {
        let meta = std::fs::metadata(path)?;
        if !meta.is_file() {
            return Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > MAX_FILE_BYTES {
            return Err(Error::new(ErrorKind::FileTooLarge, "it is larger than 16 MiB"));
        }
        Ok(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }
}

/// A loader that finds no file, so only built-in files can be included.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Loader for NoFiles {
    fn load(&self, _: &Path) -> Result<String> {
        Err(ErrorKind::NotFound.into())
    }
}

/// Parameters of a preprocessor run besides the text.
#[derive(Clone, Debug, Default)]
pub struct PreprocessorOptions {
    /// Macros defined before the first line, as in `-D name=value`; the name may include parameters.
    pub defines: Vec<(String, String)>,
    /// Directories in which included files are looked up, in order.
    pub include_dirs: Vec<PathBuf>,
    /// Built-in files, used when no directory has them: name and text. `core.p4` is always available.
    pub builtin: Vec<(&'static str, &'static str)>,
}

/// The core library of the language (specification appendix D), which every program includes.
pub(crate) const CORE: (&str, &str) = ("core.p4", include_str!("../core.p4"));

impl PreprocessorOptions {
    /// Returns the text of the built-in file `name`.
    pub(crate) fn builtin(&self, name: &str) -> Option<&'static str> {
        self.builtin.iter().chain([&CORE]).find(|(known, _)| *known == name).map(|(_, text)| *text)
    }
}

/// Whether the search for a file continues after this error.
pub(crate) fn is_absent(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
