//! The key of a cluster, and the fingerprint of its settings.

use std::fmt;

use super::form::{HEADER_BYTES, Header, TAG_BYTES};

/// Length of a fingerprint in bytes.
pub(super) const FINGERPRINT_BYTES: usize = 16;

/// Length of a cluster's key in bytes.
pub const KEY_BYTES: usize = 32;

/// The secret that all members of a cluster share. Any process with it can change all state.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterKey([u8; KEY_BYTES]);

impl ClusterKey {
    /// Creates a key from random bytes.
    pub fn new(random: &[u8; KEY_BYTES]) -> ClusterKey {
        ClusterKey(blake3::derive_key("triplane resilient datagram tags 3", random))
    }

    /// Returns the key of clusters that have none of their own. It is public.
    pub fn public() -> ClusterKey {
        ClusterKey::new(&[0; KEY_BYTES])
    }

    /// Writes the header into a datagram that has room for it, and appends the tag.
    pub(super) fn seal(&self, header: &Header, mut datagram: Vec<u8>) -> Vec<u8> {
        datagram[..HEADER_BYTES].copy_from_slice(&header.bytes());
        let tag = self.tag(&datagram);
        datagram.extend(tag);
        datagram
    }

    /// Whether a datagram ends with its tag.
    pub(super) fn has_sealed(&self, datagram: &[u8]) -> bool {
        let Some((sealed, tag)) = datagram.split_last_chunk::<TAG_BYTES>() else { return false };
        // Takes the same time wherever the tags differ.
        self.tag(sealed).iter().zip(tag).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }

    fn tag(&self, bytes: &[u8]) -> [u8; TAG_BYTES] {
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&blake3::keyed_hash(&self.0, bytes).as_bytes()[..TAG_BYTES]);
        tag
    }
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterKey")
    }
}

/// A hash of the settings that must be equal at all members of a cluster, and of the version of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterFingerprint(pub(super) [u8; FINGERPRINT_BYTES]);

impl ClusterFingerprint {
    /// Returns the fingerprint of settings. Different settings must have different bytes.
    pub fn new(settings: &[u8]) -> ClusterFingerprint {
        let hash = blake3::derive_key("triplane resilient cluster settings 3", settings);
        let mut fingerprint = [0; FINGERPRINT_BYTES];
        fingerprint.copy_from_slice(&hash[..FINGERPRINT_BYTES]);
        ClusterFingerprint(fingerprint)
    }
}
