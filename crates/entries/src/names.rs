//! Finding things by name: in full, by an unambiguous ending, or almost.

/// The one candidate that is called `wanted` or ends in `.wanted`.
pub(crate) fn find<T: Copy>(wanted: &str, candidates: &[(T, &str)]) -> Option<T> {
    if let Some((id, _)) = candidates.iter().find(|(_, name)| *name == wanted) {
        return Some(*id);
    }
    let ends = |name: &str| name.strip_suffix(wanted).is_some_and(|rest| rest.ends_with('.'));
    let mut endings = candidates.iter().filter(|(_, name)| ends(name));
    match (endings.next(), endings.next()) {
        (Some((id, _)), None) => Some(*id),
        _ => None,
    }
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

/// Names in a sentence: `a`, `b`, `c`; a long list is cut.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 24;
    let all: Vec<&str> = names.collect();
    let mut text = all.iter().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if all.len() > SHOWN {
        text.push_str(&format!(" and {} more", all.len() - SHOWN));
    }
    if all.is_empty() { "nothing".to_owned() } else { text }
}
