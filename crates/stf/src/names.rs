//! Finding things by name: in full, by an unambiguous ending, or almost.

/// Why a name names nothing.
pub(crate) enum NoName<'a> {
    /// Nothing is called so, or ends so.
    Unknown,
    /// These two end so.
    Ambiguous(&'a str, &'a str),
}

/// The candidate that is called `wanted`; or else the only one that ends in `.wanted`; or else the only one that ends
/// in `wanted` at all.
pub(crate) fn find<'a, T: Copy>(wanted: &str, candidates: &[(T, &'a str)]) -> Result<T, NoName<'a>> {
    let behind_dot = |name: &str| name.strip_suffix(wanted).is_some_and(|rest| rest.ends_with('.'));
    let only = |fits: &dyn Fn(&str) -> bool| {
        let mut fitting = candidates.iter().filter(|(_, name)| fits(name));
        match (fitting.next(), fitting.next()) {
            (Some((found, _)), None) => Ok(*found),
            (Some((_, one)), Some((_, other))) => Err(NoName::Ambiguous(one, other)),
            _ => Err(NoName::Unknown),
        }
    };
    if let Some((found, _)) = candidates.iter().find(|(_, name)| *name == wanted) {
        return Ok(*found);
    }
    only(&behind_dot).or_else(|_| only(&|name| name.ends_with(wanted)))
}

/// The candidate most like `wanted`, if any is much like it.
pub(crate) fn nearest<'a>(wanted: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let last = |name: &'a str| name.rsplit('.').next().unwrap_or(name);
    candidates
        .map(|name| {
            let score = strsim::jaro_winkler(wanted, name).max(strsim::jaro_winkler(wanted, last(name)));
            (name, score)
        })
        .filter(|(_, score)| *score > 0.8)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_their_endings() {
        let all = [(1, "ingress.test"), (2, "ingress.t"), (3, "egress.t2"), (4, "t2")];
        let found = |wanted: &str| find(wanted, &all).ok();
        assert_eq!(found("ingress.test"), Some(1));
        assert_eq!(found("t"), Some(2), "the only one behind a dot");
        assert_eq!(found("est"), Some(1));
        assert_eq!(found("t2"), Some(4), "the whole name wins");
        assert_eq!(found("2"), None, "ambiguous");
        assert!(matches!(find("2", &all), Err(NoName::Ambiguous("egress.t2", "t2"))));
        assert_eq!(found("x"), None);
    }
}
