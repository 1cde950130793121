//! Leaves out of a P4Info what clients of older versions of P4Runtime do not know.
//!
//! A parser of text or JSON refuses a message with a field that it does not know.

use std::collections::BTreeMap;

use crate::config::{MeterSpec, P4Info};

/// A version of P4Runtime that clients are built on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientVersion {
    /// 1.3 and its predecessors.
    V1_3,
    /// 1.4 and its release candidates. The P4Info of the candidates, which many clients in Go are built on, is that of
    /// 1.3; all of 1.4 read it.
    V1_4,
    /// 1.5, which knows everything.
    V1_5,
}

/// Removes the fields that not all clients of a version know. Returns their names, each with the number of messages
/// that had it.
pub fn restrict_to_version(info: &mut P4Info, version: ClientVersion) -> BTreeMap<&'static str, usize> {
    let mut removed = BTreeMap::new();
    if version == ClientVersion::V1_5 {
        return removed;
    }
    let mut remove = |name: &'static str, is_set: bool| {
        if is_set {
            *removed.entry(name).or_default() += 1;
        }
    };
    if let Some(package) = &mut info.pkg_info {
        remove("pkg_info.platform_properties", package.platform_properties.take().is_some());
    }
    for table in &mut info.tables {
        remove("tables.initial_default_action", table.initial_default_action.take().is_some());
        remove("tables.has_initial_entries", std::mem::take(&mut table.has_initial_entries));
    }
    for profile in &mut info.action_profiles {
        remove("action_profiles.selector_size_semantics", profile.selector_size_semantics.take().is_some());
        remove("action_profiles.weights_disallowed", std::mem::take(&mut profile.weights_disallowed));
    }
    let take_type =
        |spec: &mut Option<MeterSpec>| spec.as_mut().is_some_and(|spec| std::mem::take(&mut spec.r#type) != 0);
    for meter in &mut info.meters {
        remove("meters.spec.type", take_type(&mut meter.spec));
    }
    for meter in &mut info.direct_meters {
        remove("direct_meters.spec.type", take_type(&mut meter.spec));
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::action_profile::{SelectorSizeSemantics, SumOfWeights};
    use crate::config::{ActionProfile, Meter, PkgInfo, PlatformProperties, Table, TableActionCall};

    fn everything() -> P4Info {
        let table = Table {
            size: 7,
            is_const_table: true,
            initial_default_action: Some(TableActionCall::default()),
            has_initial_entries: true,
            ..Table::default()
        };
        let profile = ActionProfile {
            size: 9,
            weights_disallowed: true,
            selector_size_semantics: Some(SelectorSizeSemantics::SumOfWeights(SumOfWeights {})),
            ..ActionProfile::default()
        };
        let meter = Meter { size: 3, spec: Some(MeterSpec { unit: 1, r#type: 2 }), ..Meter::default() };
        let platform_properties = Some(PlatformProperties::default());
        P4Info {
            pkg_info: Some(PkgInfo { arch: "v1model".to_owned(), platform_properties, ..PkgInfo::default() }),
            tables: vec![table.clone(), Table { has_initial_entries: false, ..table }],
            action_profiles: vec![profile],
            meters: vec![meter],
            ..P4Info::default()
        }
    }

    #[test]
    fn fields_of_later_versions_are_removed_and_counted() {
        for version in [ClientVersion::V1_3, ClientVersion::V1_4] {
            let mut info = everything();
            let removed: Vec<_> = restrict_to_version(&mut info, version).into_iter().collect();
            let expected = [
                ("action_profiles.selector_size_semantics", 1),
                ("action_profiles.weights_disallowed", 1),
                ("meters.spec.type", 1),
                ("pkg_info.platform_properties", 1),
                ("tables.has_initial_entries", 1),
                ("tables.initial_default_action", 2),
            ];
            assert_eq!(removed, expected);
            let table = &info.tables[0];
            assert_eq!((table.size, table.is_const_table, &table.initial_default_action), (7, true, &None));
            assert_eq!(info.meters[0].spec, Some(MeterSpec { unit: 1, r#type: 0 }));
            assert_eq!(info.pkg_info.as_ref().map(|package| package.arch.as_str()), Some("v1model"));
            assert_eq!(restrict_to_version(&mut info, version), BTreeMap::new());
        }
    }

    #[test]
    fn the_current_version_has_everything() {
        let mut info = everything();
        assert_eq!(restrict_to_version(&mut info, ClientVersion::V1_5), BTreeMap::new());
        assert_eq!(info, everything());
    }
}
