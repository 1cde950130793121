//! Chooses the entries that the switch keeps: a count-min sketch of keys, and a cache of the popular ones.

mod cache;
mod sketch;

pub use cache::{CacheConfig, CacheCounts, PopularCache};
pub use sketch::{CountMinSketch, SketchConfig};
