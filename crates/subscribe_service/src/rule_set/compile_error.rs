//! Renders the compiler's refusals.

use diagnostics::{FileId, SourceMap, Span};
use subscribe::Refusal;

use super::{ParsedRules, RuleSetError};

/// Renders a refusal of rules whose sources are gone.
pub(super) fn render_without_source(refusal: &Refusal) -> RuleSetError {
    let no_sources = SourceMap::new();
    RuleSetError::Diagnostics(refusal.diagnostic(&no_sources).render(&no_sources, false))
}

/// Renders a refusal of rules that were just parsed, with carets into their sources.
pub(super) fn render(mut refusal: Refusal, parsed: &ParsedRules) -> RuleSetError {
    /// The file of spans whose sources are gone.
    const NOWHERE: FileId = FileId(u32::MAX);
    let place = |span: &mut Span| {
        let file = FileId(span.file.0.wrapping_sub(parsed.base));
        span.file = if parsed.map.contains(file) { file } else { NOWHERE };
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
        // Earlier rules are named by their ids.
        Refusal::StateExplosion(rules) => {
            rules.iter_mut().for_each(|rule| place(&mut rule.span));
            rules.sort_by_key(|rule| rule.span.file == NOWHERE);
        }
        Refusal::Groups(_) | Refusal::Codes(..) | Refusal::Validity => {}
    }
    RuleSetError::Diagnostics(refusal.diagnostic(&parsed.map).render(&parsed.map, false) + &with)
}
