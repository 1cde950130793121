//! Frames that stay in the memory where they were received (UMEM chunks).
//!
//! ```text
//! Memory = chunk 0 | chunk 1 | ...        a chunk belongs to the kernel, or to a Frame, or is free
//! chunk  = headroom | frame | tailroom    the kernel leaves 256 bytes in front of a frame
//! ```
//!
//! A [`Frame`] owns its chunk. Passing it to [`Port::send_frame`](crate::Port::send_frame) of a port on the same memory
//! moves the chunk and copies nothing; dropping it frees the chunk. A frame on the heap behaves alike, so a switch need
//! not distinguish them: drivers without such a memory, and frames longer than a chunk, use the heap.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

/// Headroom in bytes of a frame that moves to the heap because it outgrows its buffer.
const HEADROOM: usize = 128;

/// Frame memory (UMEM): chunks shared by the rings of several ports and by frames.
pub struct Memory {
    base: NonNull<u8>,
    len: usize,
    chunk_len: usize,
    /// Free chunks. Ports take and return many at once.
    free: Mutex<Vec<u32>>,
}

// SAFETY: the mapping is not bound to a thread. Only the owner of a chunk's number accesses the chunk, and numbers
// change owners through the mutex, through rings or by moving a `Frame`.
unsafe impl Send for Memory {}
// SAFETY: as above; the shared state is the mutex and numbers that do not change.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps `chunks` free chunks of `chunk_len` bytes, a power of two.
    pub(crate) fn new(chunks: u32, chunk_len: usize) -> io::Result<Arc<Memory>> {
        assert!(chunk_len.is_power_of_two());
        let len = chunks as usize * chunk_len;
        // Each frame lies on another page, and huge pages save most TLB misses. The pages are allocated when the memory
        // is registered.
        let base = crate::huge::map(len)?;
        // The lowest chunks are taken first, so that light traffic uses little memory.
        let free = Mutex::new((0..chunks).rev().collect());
        Ok(Arc::new(Memory { base, len, chunk_len, free }))
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns the size in bytes.
    pub fn len_bytes(&self) -> usize {
        self.len
    }

    /// Returns the size of a chunk in bytes: a frame with its headroom and tailroom.
    pub fn chunk_len(&self) -> usize {
        self.chunk_len
    }

    /// Returns the number of chunks that neither a port nor a frame owns.
    pub fn free_chunks(&self) -> usize {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Moves up to `count` free chunks to `into`.
    pub(crate) fn take(&self, into: &mut Vec<u32>, count: usize) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let keep = free.len().saturating_sub(count);
        into.extend(free.drain(keep..));
    }

    /// Frees chunks.
    pub(crate) fn give_back(&self, chunks: impl IntoIterator<Item = u32>) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).extend(chunks);
    }

    /// Returns the address of a chunk.
    pub(crate) fn chunk(&self, chunk: u32) -> NonNull<u8> {
        let at = chunk as usize * self.chunk_len;
        assert!(at < self.len, "chunk {chunk} lies outside the frame memory");
        // SAFETY: the chunk lies within the mapping.
        unsafe { self.base.add(at) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` with this length; owners of chunks keep the memory alive.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// The origin of a frame's buffer.
enum Home {
    Chunk(Arc<Memory>, u32),
    Heap,
}

/// An Ethernet frame as on a cable, in a chunk or on the heap. It dereferences to its bytes.
pub struct Frame {
    /// The whole buffer, which contains the frame.
    buffer: NonNull<u8>,
    capacity: u32,
    start: u32,
    len: u32,
    home: Home,
    /// Arrival time in nanoseconds since 1970, if the driver knows it.
    pub time_ns: Option<u64>,
}

// SAFETY: a frame owns its buffer, which is not bound to a thread.
unsafe impl Send for Frame {}
// SAFETY: a shared reference only allows reading.
unsafe impl Sync for Frame {}

impl Frame {
    /// Creates a frame on the heap.
    pub fn from_vec(bytes: Vec<u8>) -> Frame {
        let len = u32::try_from(bytes.len()).expect("no frame is 4 GiB long");
        let buffer = NonNull::from(Box::leak(bytes.into_boxed_slice())).cast();
        Frame { buffer, capacity: len, start: 0, len, home: Home::Heap, time_ns: None }
    }

    /// Creates a frame at `start` of a chunk, which it owns from now on.
    pub(crate) fn from_chunk(memory: Arc<Memory>, chunk: u32, start: u32, len: u32) -> Frame {
        let capacity = memory.chunk_len as u32;
        assert!(u64::from(start) + u64::from(len) <= u64::from(capacity), "a frame lies within its chunk");
        let buffer = memory.chunk(chunk);
        Frame { buffer, capacity, start, len, home: Home::Chunk(memory, chunk), time_ns: None }
    }

    /// Prefetches the frame's first bytes.
    pub(crate) fn prefetch(&self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch is a hint without effects visible to the program.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(self.buffer.as_ptr().wrapping_add(self.start as usize).cast());
        }
    }

    /// If the frame lies in a chunk of `memory`, returns the chunk, the frame's offset in it, and its length. The
    /// caller then owns the chunk.
    pub(crate) fn into_chunk(mut self, memory: &Arc<Memory>) -> Result<(u32, u32, u32), Frame> {
        match &self.home {
            Home::Chunk(own, chunk) if Arc::ptr_eq(own, memory) => {
                let at = (*chunk, self.start, self.len);
                // An empty heap buffer: `drop` releases only the reference to the memory.
                self.home = Home::Heap;
                (self.buffer, self.capacity, self.start, self.len) = (NonNull::dangling(), 0, 0, 0);
                Ok(at)
            }
            _ => Err(self),
        }
    }

    /// Drops frames; those of one memory are freed together, with a single lock of the memory.
    pub fn drop_all(mut frames: impl Iterator<Item = Frame>) {
        let Some(first) = frames.next() else { return };
        let Home::Chunk(memory, _) = &first.home else { return frames.for_each(drop) };
        let memory = Arc::clone(memory);
        let mut free = memory.free.lock().unwrap_or_else(PoisonError::into_inner);
        for frame in std::iter::once(first).chain(frames) {
            // Frames of other memories are dropped one by one.
            if let Ok((chunk, ..)) = frame.into_chunk(&memory) {
                free.push(chunk);
            }
        }
    }

    /// Returns the number of bytes that [`push_front`](Self::push_front) can add without moving the frame.
    pub fn headroom(&self) -> usize {
        self.start as usize
    }

    /// Returns the number of bytes that [`push_back`](Self::push_back) can add without moving the frame.
    pub fn tailroom(&self) -> usize {
        (self.capacity - self.start - self.len) as usize
    }

    /// Returns the headroom with the frame after it, and the offset of the frame.
    pub fn with_headroom(&mut self) -> (&mut [u8], usize) {
        let (start, len) = (self.start as usize, self.len as usize);
        // SAFETY: as for `deref_mut`, including the bytes before the frame in its buffer.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.buffer.as_ptr(), start + len) };
        (bytes, start)
    }

    /// Moves the start of the frame, into its headroom or back; its end stays.
    ///
    /// # Panics
    /// Panics if the start is beyond its end.
    pub fn set_start(&mut self, start: usize) {
        let end = (self.start + self.len) as usize;
        assert!(start <= end, "a frame cannot begin at {start} and end at {end}");
        (self.start, self.len) = (start as u32, (end - start) as u32);
    }

    /// Extends the frame by `count` bytes at the front. Their contents are unspecified until written.
    pub fn push_front(&mut self, count: usize) {
        if count > self.headroom() {
            self.move_to_heap(count + HEADROOM, self.tailroom());
        }
        self.start -= count as u32;
        self.len += count as u32;
    }

    /// Removes `count` bytes from the front, which become headroom.
    ///
    /// # Panics
    /// Panics if the frame is shorter.
    pub fn pull_front(&mut self, count: usize) {
        assert!(count <= self.len as usize, "{count} bytes off a frame of {}", self.len);
        self.start += count as u32;
        self.len -= count as u32;
    }

    /// Extends the frame by `count` bytes at the end. Their contents are unspecified until written.
    pub fn push_back(&mut self, count: usize) {
        if count > self.tailroom() {
            self.move_to_heap(self.headroom(), count);
        }
        self.len += count as u32;
    }

    /// Truncates the frame to `len` bytes; a shorter one stays unchanged.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(u32::try_from(len).unwrap_or(u32::MAX));
    }

    /// Copies the frame, for multicast and mirroring: into a chunk of the same memory if one is free, else to the heap.
    pub fn duplicate(&self) -> Frame {
        let mut copy = match &self.home {
            Home::Chunk(memory, _) => {
                let mut chunk = Vec::with_capacity(1);
                memory.take(&mut chunk, 1);
                match chunk.pop() {
                    Some(chunk) => {
                        let mut copy = Frame::from_chunk(Arc::clone(memory), chunk, self.start, self.len);
                        copy.copy_from_slice(self);
                        copy
                    }
                    None => Frame::from_vec(self.to_vec()),
                }
            }
            Home::Heap => Frame::from_vec(self.to_vec()),
        };
        copy.time_ns = self.time_ns;
        copy
    }

    fn move_to_heap(&mut self, headroom: usize, tailroom: usize) {
        let mut bytes = vec![0; headroom + self.len as usize + tailroom];
        bytes[headroom..][..self.len as usize].copy_from_slice(self);
        let time_ns = self.time_ns;
        let len = self.len;
        *self = Frame::from_vec(bytes);
        (self.start, self.len, self.time_ns) = (headroom as u32, len, time_ns);
    }
}

impl Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start + len <= capacity`, which every method maintains. The buffer belongs to this frame, is
        // initialised (as mappings and vectors are), and nobody else writes to it.
        unsafe { std::slice::from_raw_parts(self.buffer.add(self.start as usize).as_ptr(), self.len as usize) }
    }
}

impl DerefMut for Frame {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and the frame is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.buffer.add(self.start as usize).as_ptr(), self.len as usize) }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        match &self.home {
            Home::Chunk(memory, chunk) => memory.give_back([*chunk]),
            Home::Heap if self.capacity > 0 => {
                let whole = NonNull::slice_from_raw_parts(self.buffer, self.capacity as usize);
                // SAFETY: `from_vec` leaked a box of this length, and this is its only owner.
                drop(unsafe { Box::from_raw(whole.as_ptr()) });
            }
            Home::Heap => {}
        }
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_grows_and_shrinks_in_its_chunk() {
        let memory = Memory::new(2, 2048).unwrap();
        let mut chunks = Vec::new();
        memory.take(&mut chunks, 1);
        let mut frame = Frame::from_chunk(Arc::clone(&memory), chunks[0], 256, 60);
        frame.fill(7);
        frame.push_front(14);
        frame[..14].fill(9);
        assert_eq!((frame.headroom(), frame.len(), frame.tailroom()), (242, 74, 2048 - 242 - 74));
        frame.pull_front(13);
        frame.truncate(2);
        assert_eq!(frame[..], [9, 7]);
        let copy = frame.duplicate();
        assert_eq!((&copy[..], memory.free_chunks()), (&[9, 7][..], 0));
        let on_heap = copy.duplicate();
        assert_eq!(on_heap[..], [9, 7]);
        drop((frame, copy));
        assert_eq!(memory.free_chunks(), 2);
    }

    #[test]
    fn a_frame_without_room_moves_to_the_heap() {
        let memory = Memory::new(1, 2048).unwrap();
        let mut frame = Frame::from_chunk(Arc::clone(&memory), 0, 0, 3);
        memory.take(&mut Vec::new(), 1);
        frame.copy_from_slice(&[1, 2, 3]);
        frame.time_ns = Some(5);
        frame.push_front(1);
        frame[0] = 0;
        assert_eq!((&frame[..], frame.time_ns), (&[0, 1, 2, 3][..], Some(5)));
        assert_eq!((memory.free_chunks(), frame.headroom()), (1, HEADROOM));
        frame.push_back(5000);
        assert_eq!(frame.len(), 5004);
        assert!(frame.into_chunk(&memory).is_err());
    }

    #[test]
    fn frames_dropped_together_go_back_where_they_belong() {
        let memories = [Memory::new(2, 2048).unwrap(), Memory::new(1, 2048).unwrap()];
        memories.iter().for_each(|memory| memory.take(&mut Vec::new(), 2));
        let frame = |of: usize, chunk| Frame::from_chunk(Arc::clone(&memories[of]), chunk, 256, 60);
        let frames = [frame(0, 1), Frame::from_vec(vec![1]), frame(1, 0), frame(0, 0)];
        Frame::drop_all(frames.into_iter());
        assert_eq!((memories[0].free_chunks(), memories[1].free_chunks()), (2, 1));
        assert_eq!((Arc::strong_count(&memories[0]), Arc::strong_count(&memories[1])), (1, 1));
        Frame::drop_all([Frame::from_vec(vec![1]), frame(1, 0)].into_iter());
        assert_eq!(memories[1].free_chunks(), 2);
    }

    #[test]
    fn a_chunk_changes_hands_once() {
        let memory = Memory::new(1, 2048).unwrap();
        memory.take(&mut Vec::new(), 1);
        let frame = Frame::from_chunk(Arc::clone(&memory), 0, 256, 60);
        assert_eq!(frame.into_chunk(&memory).unwrap(), (0, 256, 60));
        assert_eq!((memory.free_chunks(), Arc::strong_count(&memory)), (0, 1));
    }

    #[test]
    fn an_empty_frame_is_a_frame() {
        let mut frame = Frame::from_vec(Vec::new());
        assert_eq!(frame.duplicate().len(), 0);
        frame.push_back(1);
        assert_eq!(frame[..], [0]);
    }
}
