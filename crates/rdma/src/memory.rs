//! Memory regions, and access checks.

use crate::endpoint::{self, MAX_SLOTS};
use crate::mutant::{Mutant, Mutation};
use crate::random::NumberSource;

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// Maximum number of cache lines that are prefetched for a packet, beside its last one.
const PREFETCHED_LINES: usize = 8;

/// Key of a memory region: 32 bits, with a random part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryKey(pub u32);

/// A tenant of a server: queue pairs of a domain have access to memory regions of the same domain only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProtectionDomain(pub u32);

/// The accesses that a memory region allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessRights {
    /// READs.
    pub can_read: bool,
    /// WRITEs.
    pub can_write: bool,
    /// Atomic operations.
    pub can_swap: bool,
}

impl AccessRights {
    /// All accesses.
    pub const ALL: AccessRights = AccessRights { can_read: true, can_write: true, can_swap: true };
    /// READs only.
    pub const READ: AccessRights = AccessRights { can_read: true, can_write: false, can_swap: false };
}

/// The reason for which memory cannot be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationError {
    /// There are too many regions.
    #[error("there are {MAX_SLOTS} memory regions, which is the maximum")]
    TooMany,
    /// The addresses exceed 2^64.
    #[error("the memory region does not fit between its first address and 2^64")]
    PastEnd,
}

/// An access that a packet requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    Read,
    Write,
    Swap,
}

/// Prefetches the first `PREFETCHED_LINES` cache lines of each range, the first line of all ranges before the others.
#[inline]
pub(crate) fn prefetch_all(named: &[&[u8]]) {
    named.iter().for_each(|bytes| tables::prefetch(bytes, 0));
    for bytes in named {
        // A line is touched at its first byte in the range, and the last line at the last byte.
        let end = bytes.len().min(PREFETCHED_LINES * LINE);
        (LINE..end).step_by(LINE).for_each(|at| tables::prefetch(bytes, at));
        tables::prefetch(bytes, end.wrapping_sub(1));
    }
}

/// A memory region.
#[derive(Debug)]
struct MemoryRegion<B> {
    key: MemoryKey,
    domain: ProtectionDomain,
    rights: AccessRights,
    /// Virtual address of the first byte.
    start: u64,
    bytes: B,
}

/// The memory regions of a responder.
#[derive(Debug)]
pub(crate) struct RegionTable<B> {
    regions: Vec<Option<MemoryRegion<B>>>,
    mutation: Mutation,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> RegionTable<B> {
    pub fn new(mutation: Mutation) -> RegionTable<B> {
        RegionTable { regions: Vec::new(), mutation }
    }

    pub fn register(
        &mut self,
        rng: &mut dyn NumberSource,
        domain: ProtectionDomain,
        rights: AccessRights,
        start: u64,
        bytes: B,
    ) -> Result<MemoryKey, RegistrationError> {
        if start.checked_add(bytes.as_ref().len() as u64).is_none() {
            return Err(RegistrationError::PastEnd);
        }
        let slot = endpoint::free_slot(&mut self.regions).ok_or(RegistrationError::TooMany)?;
        let key = MemoryKey(endpoint::draw(rng, slot, u32::BITS));
        self.regions[slot] = Some(MemoryRegion { key, domain, rights, start, bytes });
        Ok(key)
    }

    pub fn deregister(&mut self, key: MemoryKey) -> Option<B> {
        self.get(key)?;
        self.regions[endpoint::slot(key.0)].take().map(|region| region.bytes)
    }

    fn get(&self, key: MemoryKey) -> Option<&MemoryRegion<B>> {
        let region = self.regions.get(endpoint::slot(key.0))?.as_ref()?;
        (region.key == key || self.mutation.is(Mutant::KeyUnchecked)).then_some(region)
    }

    pub fn bytes(&self, key: MemoryKey) -> Option<&B> {
        Some(&self.get(key)?.bytes)
    }

    pub fn bytes_mut(&mut self, key: MemoryKey) -> Option<&mut B> {
        self.get(key)?;
        self.regions[endpoint::slot(key.0)].as_mut().map(|region| &mut region.bytes)
    }

    /// Returns the offset of `len` bytes at `address` in the region with this key. None if the access is not allowed.
    #[inline]
    fn offset(
        &self,
        domain: ProtectionDomain,
        key: MemoryKey,
        access: Access,
        address: u64,
        len: u64,
    ) -> Option<usize> {
        let region = self.get(key)?;
        let is_allowed = match access {
            Access::Read => region.rights.can_read,
            Access::Write => region.rights.can_write || self.mutation.is(Mutant::RightsUnchecked),
            Access::Swap => region.rights.can_swap,
        };
        let is_of_domain = region.domain == domain || self.mutation.is(Mutant::DomainUnchecked);
        let offset = address.checked_sub(region.start)?;
        let (size, end) = (region.bytes.as_ref().len() as u64, offset.checked_add(len)?);
        (is_allowed && is_of_domain && end <= size).then_some(offset as usize)
    }

    /// Returns the bytes that a READ names. None if the access is not allowed.
    #[inline]
    pub fn bytes_to_read(&self, domain: ProtectionDomain, key: MemoryKey, address: u64, len: u64) -> Option<&[u8]> {
        let offset = self.offset(domain, key, Access::Read, address, len)?;
        self.bytes(key)?.as_ref().get(offset..)?.get(..len as usize)
    }

    /// Returns the bytes that a WRITE or an atomic operation names. None if the access is not allowed.
    pub fn bytes_to_change(
        &mut self,
        domain: ProtectionDomain,
        key: MemoryKey,
        access: Access,
        address: u64,
        len: u64,
    ) -> Option<&mut [u8]> {
        let offset = self.offset(domain, key, access, address, len)?;
        self.bytes_mut(key)?.as_mut().get_mut(offset..)?.get_mut(..len as usize)
    }
}
