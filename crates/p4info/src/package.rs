//! `pkg_info`: what the annotations of `main` say of the program as a whole.

use num_traits::ToPrimitive;
use p4::typed::{Annotation, Instance, Value};
use p4runtime_proto::config as proto;
use source::{Diagnostic, Diagnostics, SourceMap};

use crate::annotations;

/// Describes the package.
pub(crate) fn describe(
    main: &Instance,
    arch: &str,
    map: &SourceMap,
    diagnostics: &mut Diagnostics,
) -> proto::PkgInfo {
    let mut out = proto::PkgInfo { arch: arch.to_owned(), ..Default::default() };
    if let Some(annotation) = annotations::find(&main.annotations, "pkginfo") {
        for (key, value) in annotations::pairs(annotation) {
            let field = match key.as_str() {
                "name" => &mut out.name,
                "version" => &mut out.version,
                "organization" => &mut out.organization,
                "contact" => &mut out.contact,
                "url" => &mut out.url,
                "arch" => &mut out.arch,
                _ => {
                    unknown(annotation, &key, diagnostics);
                    continue;
                }
            };
            match value {
                Value::String(text) => *field = text.to_string(),
                _ => diagnostics.push(Diagnostic::error(
                    "annotation",
                    annotation.span,
                    format!("`{key}` in `@pkginfo` takes a string"),
                )),
            }
        }
    }
    if let Some(annotation) = annotations::find(&main.annotations, "platform_property") {
        let mut properties = proto::PlatformProperties::default();
        for (key, value) in annotations::pairs(annotation) {
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
                None => diagnostics.push(Diagnostic::error(
                    "annotation",
                    annotation.span,
                    format!("`{key}` in `@platform_property` takes a number of at most 31 bits"),
                )),
            }
        }
        out.platform_properties = Some(properties);
    }
    let shown = annotations::shown(&main.annotations, &["pkginfo", "platform_property"], map, diagnostics);
    out.annotations = shown.annotations;
    out.structured_annotations = shown.structured;
    out.doc = shown.doc;
    out
}

fn unknown(annotation: &Annotation, key: &str, diagnostics: &mut Diagnostics) {
    diagnostics.push(Diagnostic::warning(
        "unknown-key",
        annotation.span,
        format!("`@{}` has no key `{key}`; it is left out", annotation.name),
    ));
}
