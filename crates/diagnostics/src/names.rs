//! Names as people write them, held against those there are: in full, by an ending, or almost.

/// Which endings of a name stand for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endings {
    /// Those that begin behind a dot: `t` for `ingress.t`.
    BehindDot,
    /// Those too, if none fits, that begin anywhere: `ble` for `ingress.table`.
    Anywhere,
}

/// Why a name names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoName<'a> {
    /// Nothing is called so, or ends so.
    Unknown,
    /// These two end so.
    Ambiguous(&'a str, &'a str),
}

/// The candidate that is called `wanted`, or else the only one that ends so.
///
/// # Errors
/// [`NoName`], if there is none, or more than one.
pub fn find<'a, T: Copy>(wanted: &str, candidates: &[(T, &'a str)], endings: Endings) -> Result<T, NoName<'a>> {
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
    let found = only(&behind_dot);
    match endings {
        Endings::BehindDot => found,
        Endings::Anywhere => found.or_else(|_| only(&|name| name.ends_with(wanted))),
    }
}

/// The candidate most like `wanted`, if any is much like it. What a name begins with up to its last dot may be missing.
pub fn nearest<'a>(wanted: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
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

/// Names in a sentence: `a`, `b`, `c`; a long list is cut, and an empty one is "nothing".
pub fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 24;
    let all: Vec<&str> = names.collect();
    let mut text = all.iter().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if all.len() > SHOWN {
        text.push_str(&format!(" and {} more", all.len() - SHOWN));
    }
    if all.is_empty() { "nothing".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_their_endings() {
        let all = [(1, "ingress.test"), (2, "ingress.t"), (3, "egress.t2"), (4, "t2"), (5, "a.t3"), (6, "b.t3")];
        let found = |wanted: &str| find(wanted, &all, Endings::Anywhere).ok();
        assert_eq!(found("ingress.test"), Some(1));
        assert_eq!(found("t"), Some(2), "the only one behind a dot");
        assert_eq!(found("est"), Some(1));
        assert_eq!(find("est", &all, Endings::BehindDot), Err(NoName::Unknown));
        assert_eq!(found("t2"), Some(4), "the whole name wins");
        assert_eq!(found("2"), None, "ambiguous");
        assert_eq!(find("2", &all, Endings::Anywhere), Err(NoName::Ambiguous("egress.t2", "t2")));
        assert_eq!(find("t3", &all, Endings::BehindDot), Err(NoName::Ambiguous("a.t3", "b.t3")));
        assert_eq!(found("x"), None);
    }

    #[test]
    fn names_that_are_almost_right() {
        let all = ["MyIngress.ipv4_lpm", "MyIngress.arp"];
        assert_eq!(nearest("ipv4_lmp", all.into_iter()), Some("MyIngress.ipv4_lpm"));
        assert_eq!(nearest("unlike", all.into_iter()), None);
    }
}
