//! Resolves names that users write: by full name, by suffix, or by similarity.

/// Suffixes of a name that may stand for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endings {
    /// Suffixes that begin after a dot: `t` for `ingress.t`.
    BehindDot,
    /// As `BehindDot`; if none matches, any suffix: `ble` for `ingress.table`.
    Anywhere,
}

/// Reason why a name does not resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoName<'a> {
    /// No candidate has this name or suffix.
    Unknown,
    /// At least these two candidates have this suffix.
    Ambiguous(&'a str, &'a str),
}

/// Returns the candidate named `wanted`, or else the only candidate that ends with `wanted`.
///
/// # Errors
/// [`NoName`] if there is no such candidate, or more than one.
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

/// Returns the candidate that is spelled most like `wanted`, if any is close enough to be meant. `wanted` may omit a
/// candidate's prefix up to its last dot. If no candidate is close, `wanted` of several words may omit the last word of
/// the only candidate that is close without it: `clone_sessions` for `clone_session_entries`.
///
/// The distance is that of Damerau and Levenshtein, and at most a third of the letters of `wanted`, or one. Names of
/// one or two letters are close by chance, so they are only near a longer name or one that differs in case.
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let others: Vec<&str> = candidates.into_iter().filter(|name| *name != wanted).collect();
    let distance_to = |name: &str| {
        let last = name.rsplit('.').next().unwrap_or(name);
        [name, last].into_iter().filter_map(|name| distance(wanted, name)).min()
    };
    let spelled_alike = others.iter().filter_map(|name| Some((distance_to(name)?, *name))).min();
    spelled_alike.map(|(_, name)| name).or_else(|| {
        let without_last_word = |name: &str| name.rsplit_once('_').and_then(|(rest, _)| distance_to(rest));
        let mut longer = others.iter().filter(|name| wanted.contains('_') && without_last_word(name).is_some());
        longer.next().filter(|_| longer.next().is_none()).copied()
    })
}

/// Returns the distance of two names, if they are close enough that one may be meant by the other.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    let (length, other) = (wanted.chars().count(), name.chars().count());
    let limit = (length / 3).max(1);
    let is_close = length.max(other) > 2 && length.abs_diff(other) <= limit;
    let is_plausible = is_close && name.chars().any(|c| wanted.contains(c)) || name.eq_ignore_ascii_case(wanted);
    is_plausible.then(|| strsim::damerau_levenshtein(wanted, name)).filter(|distance| *distance <= limit)
}

/// Returns the name under which the `number`th object is known to which a program gives this name: `t`, `t (2)`,
/// `t (3)`. No object is declared with such a name by accident.
pub fn numbered(name: &str, number: usize) -> String {
    if number < 2 { name.to_owned() } else { format!("{name} ({number})") }
}

/// Returns the name that a program gives more than one object, if [`numbered`] made `name` of it.
pub fn shared(name: &str) -> Option<&str> {
    let (given, number) = name.strip_suffix(')')?.rsplit_once(" (")?;
    let number: usize = number.parse().ok().filter(|number| *number > 1)?;
    (numbered(given, number) == name).then_some(given)
}

/// Formats names for a sentence: `a`, `b`, `c`. A long list is truncated; an empty one becomes "nothing".
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
    fn numbered_names_lead_back_to_the_shared_one() {
        assert_eq!([numbered("a.t", 1), numbered("a.t", 2), numbered("a.t", 12)], ["a.t", "a.t (2)", "a.t (12)"]);
        for (name, given) in [("a.t (2)", Some("a.t")), ("a (2) (3)", Some("a (2)"))] {
            assert_eq!(shared(name), given);
        }
        for name in ["", "t", "t (1)", "t (02)", "t (+2)", "t(2)", "t (x)", "t (2) "] {
            assert_eq!(shared(name), None, "{name}");
        }
    }

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
        assert_eq!(nearest("ab", ["cb", "abc"]), Some("abc"), "short names are close by chance");
        assert_eq!(nearest("a", ["b", "A"]), Some("A"));
        assert_eq!(nearest("host", ["host"]), None, "the name itself is not a suggestion");
    }

    #[test]
    fn a_name_without_its_last_word_is_near_the_only_candidate_that_begins_so() {
        let all = ["action_profile_members", "action_profile_groups", "multicast_group_entries", "p4info"];
        assert_eq!(nearest("multicast_groups", all), Some("multicast_group_entries"));
        assert_eq!(nearest("multicast", all), None, "two words are missing");
        assert_eq!(nearest("action_profiles", all), None, "ambiguous");
        assert_eq!(nearest("next_hop", ["next_hops", "next_hop_table"]), Some("next_hops"), "a whole name wins");
        assert_eq!(nearest("next_hops", ["In.next_hop_table"]), Some("In.next_hop_table"));
        assert_eq!(nearest("route", ["route_table"]), None, "a single word is close by chance");
    }
}
