//! Creates and reads the file with the key of a cluster: 64 hexadecimal digits and the end of the line.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use resilient::ClusterKey;
use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};

/// Length of a key in bytes.
const KEY_BYTES: usize = 32;

/// Length of a file with a key, with or without the end of the line.
const FILE_BYTES: u64 = 2 * KEY_BYTES as u64 + 1;

/// The reason for which a key file cannot be created or read.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be read.
    #[error("cannot read the key file {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the key file {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file exists already.
    #[error("{0} exists: a key is not overwritten, since members that have it would be cut off; choose another name")]
    Exists(PathBuf),
    /// It is a directory, a device or a pipe.
    #[error("the key file {0} is not a regular file")]
    NotRegular(PathBuf),
    /// Users other than the owner have rights.
    #[error("other users may use the key file {path}, whose mode is {mode:o}: run `chmod 600 {path}`")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The content is not a key.
    #[error("the key file {0} does not hold 64 hexadecimal digits in one line")]
    Malformed(PathBuf),
}

/// Creates a file with a random key, which only its owner may use.
///
/// # Errors
/// If the file exists, or cannot be written.
pub fn create_key_file(path: &Path) -> Result<(), KeyFileError> {
    let failed = |source| KeyFileError::Write { path: path.to_owned(), source };
    let mut key = [0; KEY_BYTES];
    fill_with_random_bytes(&mut key).map_err(failed)?;
    let mut text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    text.push('\n');
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(KeyFileError::Exists(path.to_owned()));
        }
        opened => opened.map_err(failed)?,
    };
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| {
        // A partial key is useless, and would block the next attempt.
        _ = std::fs::remove_file(path);
        failed(error)
    })
}

/// Reads the key of a file, which only its owner may use.
///
/// # Errors
/// If it cannot be read, others may use it, or it contains no key.
pub(crate) fn read_key_file(path: &Path) -> Result<ClusterKey, KeyFileError> {
    let failed = |source| KeyFileError::Read { path: path.to_owned(), source };
    // A pipe without a writer must not block: it is opened and refused.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if !about.is_file() {
        return Err(KeyFileError::NotRegular(path.to_owned()));
    }
    let mode = about.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Exposed { path: path.to_owned(), mode });
    }
    let mut text = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    key_of(&text).ok_or_else(|| KeyFileError::Malformed(path.to_owned()))
}

fn key_of(text: &[u8]) -> Option<ClusterKey> {
    let digits: &[u8; 2 * KEY_BYTES] = text.strip_suffix(b"\n").unwrap_or(text).try_into().ok()?;
    let mut key = [0; KEY_BYTES];
    for (byte, digits) in key.iter_mut().zip(digits.chunks(2)) {
        for digit in digits {
            *byte = *byte << 4 | char::from(*digit).to_digit(16)? as u8;
        }
    }
    Some(ClusterKey::new(&key))
}

/// Fills the slice with random bytes of the system.
pub(crate) fn fill_with_random_bytes(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A directory that is removed at the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let path = std::env::temp_dir().join(format!("triplane-key-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Directory(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn keys_are_random_private_and_not_overwritten() {
        let directory = Directory::new("new");
        let paths = ["one", "two"].map(|name| directory.0.join(name));
        paths.iter().for_each(|path| create_key_file(path).unwrap());
        let keys = paths.clone().map(|path| read_key_file(&path).unwrap());
        assert!(keys[0] != keys[1] && keys[0] != ClusterKey::public());
        assert_eq!(fs::metadata(&paths[0]).unwrap().mode() & 0o777, 0o600);
        let before = fs::read(&paths[0]).unwrap();
        assert!(matches!(create_key_file(&paths[0]), Err(KeyFileError::Exists(_))));
        assert_eq!(fs::read(&paths[0]).unwrap(), before);
        assert!(matches!(create_key_file(&directory.0.join("none/key")), Err(KeyFileError::Write { .. })));
        assert_eq!(format!("{:?}", keys[0]), "ClusterKey");
    }

    #[test]
    fn other_files_are_refused_in_words() {
        let directory = Directory::new("wrong");
        let refused = |name: &str, part: &str| {
            let error = read_key_file(&directory.0.join(name)).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(name), "{error:?} lacks {part:?}");
        };
        let write = |name: &str, text: &[u8], mode: u32| {
            fs::write(directory.0.join(name), text).unwrap();
            fs::set_permissions(directory.0.join(name), Permissions::from_mode(mode)).unwrap();
        };
        let good = [b'a'; 64];
        write("group", &good, 0o640);
        refused("group", "mode is 640: run `chmod 600");
        write("others", &good, 0o602);
        refused("others", "mode is 602");
        for (name, text) in [
            ("empty", &b""[..]),
            ("short", &good[1..]),
            ("long", &[&good[..], b"a"].concat()),
            ("lines", &[&good[..], b"\n\n"].concat()),
            ("text", &[b'g'; 64]),
            ("bytes", &[0xff; 64]),
            ("huge", &[b'a'; 100_000]),
        ] {
            write(name, text, 0o600);
            refused(name, "does not hold 64 hexadecimal digits");
        }
        symlink("loop", directory.0.join("loop")).unwrap();
        refused("loop", "cannot read the key file");
        refused("missing", "cannot read the key file");
        fs::create_dir(directory.0.join("directory")).unwrap();
        refused("directory", "not a regular file");
        // Symbolic links are followed, and upper case is accepted.
        write("upper", &[b'A'; 64], 0o400);
        symlink("upper", directory.0.join("link")).unwrap();
        assert!(read_key_file(&directory.0.join("link")).is_ok());
    }
}
