//! Judges the reports of shims of live labs, as the status of a lab has them.

use serde_json::Value;

/// Age at which the report of a shim no longer counts, in seconds. Shims report twice a second.
const OLD_S: f64 = 2.0;

/// Whether the counts of a shim are missing or old.
pub fn is_silent(shim: &Value) -> bool {
    shim["failed"] == true || shim["age_s"].as_f64().is_none_or(|age| age > OLD_S)
}

/// Returns the reason why a shim is silent, or why its last process ended.
pub fn silence(shim: &Value) -> Option<String> {
    let why = shim["why"].as_str().map(str::to_owned);
    let without = || match shim["age_s"].as_f64() {
        _ if !is_silent(shim) => None,
        None => Some("it has not reported yet".to_owned()),
        Some(age) => Some(format!("its last report is {age:.0} s old")),
    };
    why.or_else(without)
}
