//! Names that rules cannot write, and names that would clash in the program.

use std::collections::BTreeMap;

use diagnostics::{Diagnostic, Diagnostics, Span};

use crate::format::{FormatField, ProgramFormat};
use crate::write::{identifier, validity};

/// Names of the program that derive from names of the format, with their origin.
#[derive(Default)]
pub(super) struct TakenNames(BTreeMap<String, String>);

impl TakenNames {
    /// Registers the names of fields and actions. Reports clashes.
    pub fn by(format: &ProgramFormat, diagnostics: &mut Diagnostics) -> TakenNames {
        let mut taken = TakenNames::default();
        for action in &format.actions {
            let _ = taken.take(&format!("the action `{}`", action.name), [format!("do_{}", identifier(&action.name))]);
        }
        for field in &format.fields {
            let why = match field.name.as_str() {
                name if subscribe::SIGN_WORDS.contains(&name) => Some(word(name)),
                name if !is_name(name) => {
                    Some(format!("rules cannot use the name `{name}`: use letters, digits and `_`, and no digit first"))
                }
                name => taken.field(name).err(),
            };
            if let Some(why) = why {
                diagnostics.push(refused(field.span, &why));
            }
        }
        taken.validities(format, diagnostics);
        taken
    }

    /// Registers the variables that hold header validity.
    fn validities(&mut self, format: &ProgramFormat, diagnostics: &mut Diagnostics) {
        let Ok(rules) = crate::rule_format(format) else { return };
        for any in &rules.headers {
            let names: Vec<&str> = any.iter().map(|header| &*format.headers[header.0].name).collect();
            let whose = format!("the header `{}`", names.join("` or `"));
            if let Err(why) = self.take(&whose, [validity(format, any)]) {
                let of = |field: &&FormatField| field.sources.iter().any(|source| any.contains(&source.header));
                let span =
                    format.fields.iter().find(of).or(format.fields.first()).map_or(Span::default(), |field| field.span);
                let error = Diagnostic::error("name", span, why);
                diagnostics.push(error.help("rename one of these members in the headers struct or the union"));
            }
        }
    }

    fn field(&mut self, name: &str) -> Result<(), String> {
        let of = identifier(name);
        let parts = ["value", "codes", "code", "to_code"];
        let names = parts.map(|part| format!("{of}_{part}")).into_iter().chain([format!("with_{of}")]);
        self.take(&format!("the field `{name}`"), names)
    }

    /// Registers the names of a counter; returns the reason if the counter cannot have its name.
    pub fn counter(&mut self, name: &str, format: &ProgramFormat) -> Result<(), String> {
        if subscribe::WORDS.contains(&name) {
            return Err(word(name));
        }
        let is_called = |field: &&FormatField| field.name.rsplit_once('.').is_some_and(|(_, ending)| ending == name);
        if let Some(field) = format.fields.iter().find(is_called) {
            return Err(format!("rules may use `{name}` for the field `{}`", field.name));
        }
        let parts = ["value", "end", "count"].map(|part| format!("{name}_{part}"));
        let kept = ["value", "end", "count"].map(|part| format!("kept_{name}_{part}"));
        self.take(&format!("the counter `{name}`"), parts.into_iter().chain(kept).chain([format!("update_{name}")]))
    }

    fn take(&mut self, whose: &str, names: impl IntoIterator<Item = String>) -> Result<(), String> {
        for name in names {
            if is_slots(&name) {
                return Err(format!("{whose} would clash with a part of an aggregate in the program (`{name}`)"));
            }
            if let Some(other) = self.0.insert(name.clone(), whose.to_owned()) {
                return Err(format!("{whose} and {other} would both need the name `{name}` in the program"));
            }
        }
        Ok(())
    }
}

/// Whether the name has the form of an aggregate's variables: `slot_0_value`.
fn is_slots(name: &str) -> bool {
    name.strip_prefix("slot_").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether the text is a sequence of identifiers joined by dots.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    name.split('.').all(is_part)
}

fn word(name: &str) -> String {
    format!("`{name}` is a keyword of the rule language")
}

fn refused(span: Span, why: &str) -> Diagnostic {
    Diagnostic::error("name", span, why).help("give it a different name in rules: `@query_field(\"name\")`")
}
