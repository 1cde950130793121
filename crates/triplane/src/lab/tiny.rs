//! The settings of tiny packet programs in the switches of a network.

use lab::{TinyAccess, Topology};
use v1model::{EXECUTIONS_PER_SECOND, TinySettings};

/// Returns the settings of the switch with this number; `None` if it does not execute programs.
pub fn settings(topology: &Topology, number: u32) -> Option<TinySettings> {
    let may_write = match topology.tpp {
        TinyAccess::Off => return None,
        access => access == TinyAccess::Write,
    };
    let executions_per_second = topology.tpp_limit.unwrap_or(EXECUTIONS_PER_SECOND);
    Some(TinySettings { executions_per_second, ..TinySettings::new(number, may_write) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_have_the_rights_and_the_limit_of_the_topology() {
        let of = |tpp, tpp_limit| settings(&Topology { tpp, tpp_limit, ..Topology::default() }, 3);
        assert_eq!(of(TinyAccess::Off, Some(9)), None);
        assert_eq!(of(TinyAccess::Read, None), Some(TinySettings::new(3, false)));
        let limited = TinySettings { executions_per_second: 9, ..TinySettings::new(3, true) };
        assert_eq!(of(TinyAccess::Write, Some(9)), Some(limited));
    }
}
