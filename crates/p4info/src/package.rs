//! Describes `pkg_info`: the annotations of `main` that describe the whole program.

use std::collections::HashSet;

use diagnostics::{Diagnostic, Diagnostics, SourceMap};
use num_traits::ToPrimitive;
use p4::typed::{Annotation, Instance, Value};
use p4runtime_proto::config as proto;

use crate::annotations;

/// Describes the package.
pub(crate) fn describe(main: &Instance, arch: &str, map: &SourceMap, diagnostics: &mut Diagnostics) -> proto::PkgInfo {
    let mut out = proto::PkgInfo { arch: arch.to_owned(), ..Default::default() };
    let mut given = HashSet::new();
    for annotation in main.annotations.iter() {
        match &*annotation.name {
            "pkginfo" => {
                for (key, value) in keys(annotation, &mut given, diagnostics) {
                    let field = match key.as_str() {
                        "name" => &mut out.name,
                        "version" => &mut out.version,
                        "organization" => &mut out.organization,
                        "contact" => &mut out.contact,
                        "url" => &mut out.url,
                        "arch" => {
                            diagnostics.push(
                                Diagnostic::warning("ignored-annotation", annotation.span, "`arch` has no effect here")
                                    .label(format!("the architecture is `{arch}`")),
                            );
                            continue;
                        }
                        _ => {
                            unknown(annotation, &key, diagnostics);
                            continue;
                        }
                    };
                    match value {
                        Value::String(text) => *field = text.to_string(),
                        _ => wrong(annotation, &key, "a string", diagnostics),
                    }
                }
            }
            "platform_property" => {
                let properties = out.platform_properties.get_or_insert_default();
                for (key, value) in keys(annotation, &mut given, diagnostics) {
                    let field = match key.as_str() {
                        "multicast_group_table_size" => &mut properties.multicast_group_table_size,
                        "multicast_group_table_total_replicas" => &mut properties.multicast_group_table_total_replicas,
                        "multicast_group_table_max_replicas_per_entry" => {
                            &mut properties.multicast_group_table_max_replicas_per_entry
                        }
                        _ => {
                            unknown(annotation, &key, diagnostics);
                            continue;
                        }
                    };
                    match crate::eval::integer(&value, false).and_then(|number| number.to_i32()) {
                        Some(number) => *field = number,
                        None => wrong(annotation, &key, "a number below 2^31", diagnostics),
                    }
                }
            }
            _ => {}
        }
    }
    let shown = annotations::convert(&main.annotations, &["pkginfo", "platform_property"], map, diagnostics);
    out.annotations = shown.annotations;
    out.structured_annotations = shown.structured;
    out.doc = shown.doc;
    out
}

/// Returns the pairs of an annotation. A key must not occur twice, even in several annotations of the same name.
fn keys(
    annotation: &Annotation,
    given: &mut HashSet<(String, String)>,
    diagnostics: &mut Diagnostics,
) -> Vec<(String, Value)> {
    let pairs = annotations::pairs(annotation);
    for (key, _) in &pairs {
        if !given.insert((annotation.name.to_string(), key.clone())) {
            diagnostics.push(Diagnostic::error(
                "duplicate",
                annotation.span,
                format!("duplicate key `{key}` in `@{}`", annotation.name),
            ));
        }
    }
    pairs
}

fn wrong(annotation: &Annotation, key: &str, expected: &str, diagnostics: &mut Diagnostics) {
    diagnostics.push(Diagnostic::error(
        "annotation",
        annotation.span,
        format!("`{key}` in `@{}` takes {expected}", annotation.name),
    ));
}

fn unknown(annotation: &Annotation, key: &str, diagnostics: &mut Diagnostics) {
    diagnostics.push(Diagnostic::warning(
        "unknown-key",
        annotation.span,
        format!("`@{}` has no key `{key}`; it is ignored", annotation.name),
    ));
}
