//! Large memory for random accesses.

use std::fmt;
use std::io;
use std::ptr::NonNull;

/// Zeroed bytes in huge pages, as far as the kernel has them. Random accesses to ordinary pages wait for translations
/// of addresses. Pages are allocated as they are used.
pub struct HugeBytes {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is not bound to a thread, and its bytes are accessed through references to this value only.
unsafe impl Send for HugeBytes {}
// SAFETY: as above.
unsafe impl Sync for HugeBytes {}

/// Maps this number of zeroed bytes, on huge pages if the kernel has some.
///
/// # Errors
/// Returns an error if `len` is 0 or the kernel cannot map that much memory.
pub(crate) fn map(len: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: creates a new private mapping at an address that the kernel chooses.
    let base = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0)
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // This is a hint that the kernel may ignore. SAFETY: advice on the mapping just created.
    unsafe { libc::madvise(base, len, libc::MADV_HUGEPAGE) };
    NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address zero"))
}

impl HugeBytes {
    /// Maps this number of zeroed bytes.
    ///
    /// # Errors
    /// Returns an error if `len` is 0 or the kernel cannot map that much memory.
    pub fn new(len: usize) -> io::Result<HugeBytes> {
        Ok(HugeBytes { base: map(len)?, len })
    }
}

impl AsRef<[u8]> for HugeBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the mapping has this length, is initialized to zeros, and lives as long as `self`. Changes need
        // `&mut`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl AsMut<[u8]> for HugeBytes {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` is the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

impl fmt::Debug for HugeBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HugeBytes").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Drop for HugeBytes {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` with this length, and no reference to it remains.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_zero_and_keep_what_is_written() {
        let mut bytes = HugeBytes::new(5 << 20).unwrap();
        assert!(bytes.as_ref().len() == 5 << 20 && bytes.as_ref().iter().all(|byte| *byte == 0));
        for at in [0, 4095, 5 << 19, (5 << 20) - 1] {
            bytes.as_mut()[at] = 7;
        }
        assert_eq!(bytes.as_ref().iter().filter(|byte| **byte == 7).count(), 4);
        assert_eq!(bytes.as_ref()[(5 << 20) - 1], 7);
    }

    #[test]
    fn what_the_kernel_cannot_map_is_an_error() {
        assert!(HugeBytes::new(0).is_err());
        assert!(HugeBytes::new(usize::MAX / 2).is_err());
    }
}
