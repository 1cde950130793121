//! Memory between guard pages: a read or write beyond either end faults and ends the process.

/// Memory between two inaccessible pages.
pub struct Guarded {
    base: *mut u8,
    page: usize,
    pages: usize,
}

impl Guarded {
    /// Maps at least `bytes` bytes.
    pub fn new(bytes: usize) -> Guarded {
        // SAFETY: reads a system constant.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let pages = bytes.div_ceil(page).max(1);
        let size = (pages + 2) * page;
        // SAFETY: creates a new mapping at an address that the kernel chooses.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), size, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(base, libc::MAP_FAILED, "memory can be mapped");
        let base: *mut u8 = base.cast();
        // SAFETY: the pages between the first and the last of the mapping.
        let opened = unsafe { libc::mprotect(base.add(page).cast(), pages * page, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(opened, 0, "pages can be made accessible");
        Guarded { base, page, pages }
    }

    /// Returns `length` bytes at the end of the memory, or at its beginning.
    pub fn place(&mut self, length: usize, at_end: bool) -> &mut [u8] {
        assert!(length <= self.pages * self.page);
        let start = if at_end { (self.pages + 1) * self.page - length } else { self.page };
        // SAFETY: the bytes are in the open pages, which are borrowed with `self`.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(start), length) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made, which is no longer borrowed.
        unsafe { libc::munmap(self.base.cast(), (self.pages + 2) * self.page) };
    }
}
