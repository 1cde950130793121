//! Memory that ends, or begins, where nothing may be touched: reading or writing a byte beyond it is a fault that ends the
//! process.

/// Pages without access on both sides.
pub struct Guarded {
    base: *mut u8,
    page: usize,
    pages: usize,
}

impl Guarded {
    /// Room for `bytes` bytes.
    pub fn new(bytes: usize) -> Guarded {
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let pages = bytes.div_ceil(page).max(1);
        let size = (pages + 2) * page;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), size, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(base, libc::MAP_FAILED, "memory can be mapped");
        let base: *mut u8 = base.cast();
        // SAFETY: the pages between the first and the last of the mapping.
        let opened = unsafe { libc::mprotect(base.add(page).cast(), pages * page, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(opened, 0, "memory can be opened");
        Guarded { base, page, pages }
    }

    /// `length` bytes that end where the memory does, or begin where it does.
    pub fn place(&mut self, length: usize, at_end: bool) -> &mut [u8] {
        assert!(length <= self.pages * self.page);
        let start = if at_end { (self.pages + 1) * self.page - length } else { self.page };
        // SAFETY: the bytes are in the open pages, which are borrowed with `self`.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(start), length) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made, which nobody borrows any more.
        unsafe { libc::munmap(self.base.cast(), (self.pages + 2) * self.page) };
    }
}
