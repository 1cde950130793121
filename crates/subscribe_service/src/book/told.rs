//! Why rules cannot become tables, for people.

use diagnostics::{FileId, SourceMap, Span};
use subscribe::Refusal;

use super::Read;

/// Why rules that were read some time ago cannot become tables, for people.
pub(super) fn told_anywhere(refusal: &Refusal) -> String {
    let nowhere = SourceMap::new();
    refusal.diagnostic(&nowhere).render(&nowhere, false)
}

/// Why rules cannot become tables, for people; places are those of the rules that were just read.
pub(super) fn told(mut refusal: Refusal, read: &Read) -> String {
    /// What is not of these has no place to be shown.
    const NOWHERE: FileId = FileId(u32::MAX);
    let place = |span: &mut Span| {
        let file = FileId(span.file.0.wrapping_sub(read.base));
        span.file = if read.map.contains(file) { file } else { NOWHERE };
    };
    let mut with = String::new();
    match &mut refusal {
        Refusal::TooLarge { at, .. } | Refusal::Keys { at, .. } => place(at),
        Refusal::Slots { rule, .. } => place(&mut rule.span),
        Refusal::Conflict { rules, .. } | Refusal::Updates { rules, .. } => {
            rules.iter_mut().for_each(|rule| place(&mut rule.span));
            rules.sort_by_key(|rule| rule.span.file == NOWHERE);
            if let Some(rule) = rules.iter().find(|rule| rule.span.file == NOWHERE) {
                with = format!("\nthe other is rule `{}`", rule.name.as_deref().unwrap_or_default());
            }
        }
        // Those that were there before are told by their ids.
        Refusal::Crossing(rules) => {
            rules.iter_mut().for_each(|rule| place(&mut rule.span));
            rules.sort_by_key(|rule| rule.span.file == NOWHERE);
        }
        Refusal::Groups(_) | Refusal::Codes(..) | Refusal::Validity => {}
    }
    refusal.diagnostic(&read.map).render(&read.map, false) + &with
}
