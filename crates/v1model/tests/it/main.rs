//! The integration tests of `v1model`, in one binary, so that their dependencies are linked once.

mod checksums;
mod copies;
mod declarations;
mod inline_rows;
mod received;
mod row_tables;
mod rows;
mod stories;
mod tiny;
mod tiny_entries;
mod tiny_int;
mod tiny_limits;
mod tiny_registers;
mod tiny_rows;
mod tiny_strip;
mod tiny_tags;
mod workers;
