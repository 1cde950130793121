//! Writes archives of the format `newc` of cpio, which the kernel unpacks into its first file system
//! (Documentation/driver-api/early-userspace/buffer-format.rst of the kernel).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Directories have the type 4, regular files the type 10, in the upper bits of the mode.
const DIRECTORY: u32 = 0o40755;
const FILE: u32 = 0o100755;

/// An archive of files that anyone may execute.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    /// Names of files and directories that it has.
    names: BTreeSet<String>,
}

impl Archive {
    /// Adds a file under an absolute path, with the directories that lead to it, unless the archive has it.
    pub fn add(&mut self, path: &str, contents: &[u8]) {
        let name = path.trim_start_matches('/');
        for (at, _) in name.match_indices('/') {
            self.add_directory(&name[..at]);
        }
        if self.names.insert(name.to_owned()) {
            self.entry(name, FILE, contents);
        }
    }

    /// Adds a directory, whose parent the archive has.
    pub fn add_directory(&mut self, name: &str) {
        if self.names.insert(name.to_owned()) {
            self.entry(name, DIRECTORY, &[]);
        }
    }

    /// Adds a file of this machine under the same path.
    pub fn add_from(&mut self, path: &Path) -> Result<()> {
        let contents = fs::read(path).with_context(|| path.display().to_string())?;
        self.add(path.to_str().context("a path that is not UTF-8")?, &contents);
        Ok(())
    }

    /// Returns the complete archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, contents: &[u8]) {
        let number = self.names.len() as u32;
        let links = 1 + u32::from(mode == DIRECTORY);
        // Number, mode, owner and group, links, time, size, device and its number (two each), length of the name, sum.
        let (size, name_len) = (contents.len() as u32, name.len() as u32 + 1);
        let fields = [number, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_len, 0];
        self.bytes.extend_from_slice(b"070701");
        fields.iter().for_each(|field| self.bytes.extend_from_slice(format!("{field:08x}").as_bytes()));
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_before_their_files_and_once() {
        let mut archive = Archive::default();
        archive.add("/lib/x/one", b"1");
        archive.add("/lib/x/two", b"22222");
        archive.add("/lib/x/one", b"ignored");
        let bytes = archive.finish();
        let text = String::from_utf8_lossy(&bytes);
        let at = |name: &str| text.find(&format!("{name}\0")).unwrap_or_else(|| panic!("no {name} in {text}"));
        assert!(at("lib") < at("lib/x") && at("lib/x") < at("lib/x/one") && at("lib/x/one") < at("lib/x/two"));
        assert_eq!(text.matches("070701").count(), 5, "{text}");
        assert!(!text.contains("ignored") && at("TRAILER!!!") > at("lib/x/two"));
        assert!(bytes.len().is_multiple_of(4));
        // The file has five bytes, and a name of nine and the final zero.
        let header = at("lib/x/two") - 110;
        assert_eq!((&text[header + 54..header + 62], &text[header + 94..header + 102]), ("00000005", "0000000a"));
    }
}
