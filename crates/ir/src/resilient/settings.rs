//! Reads the text of one `@resilient`: pairs `key = "value"`.

use std::num::NonZeroU32;

use super::NumberRange;
use crate::Annotation;

/// Maximum length of a name in bytes.
const MAX_NAME: usize = 200;

/// Maximum number of numbers in a range.
const MAX_NUMBERS: u64 = 1 << 20;

/// Settings in the annotation of a register.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ArraySettings {
    pub group: Option<String>,
    /// Time from one snapshot to the next, if there are snapshots. The other fields concern them.
    pub every_ns: Option<u64>,
    pub bound_ns: Option<u64>,
    pub stale: Option<String>,
    pub row_elements: Option<u64>,
}

/// Settings in the annotation of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TableSettings {
    pub group: Option<String>,
    pub action: Option<String>,
    pub source: RowSource,
    pub idle_ms: Option<NonZeroU32>,
}

/// Effect of a miss of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum RowSource {
    /// Nothing: the rows are those of the other tables of its group.
    #[default]
    OfGroup,
    /// Adds a row. The action has no data.
    Added,
    /// Adds a row with a number.
    Number(NumberRange),
    /// Nothing: the rows are those of this table, by their numbers.
    Reverse(String),
}

impl ArraySettings {
    /// Reads the text of an annotation.
    pub fn read(annotation: &Annotation) -> Result<ArraySettings, String> {
        let mut settings = ArraySettings::default();
        for (key, value) in pairs(&annotation.text)? {
            match key {
                "group" => settings.group = Some(name(key, value)?),
                "every" => settings.every_ns = Some(duration(key, value)?),
                "bound" => settings.bound_ns = Some(duration(key, value)?),
                "stale" => settings.stale = Some(name(key, value)?),
                "row" => settings.row_elements = Some(elements(key, value)?),
                "idle" => {
                    return Err("\"idle\" is for tables: the rows of registers are there from the start".to_owned());
                }
                _ => {
                    return Err(format!(
                        "\"{key}\" is unknown: @resilient on a register has \"group\", \"every\", \"bound\", \
                         \"stale\" and \"row\""
                    ));
                }
            }
        }
        match settings {
            ArraySettings { every_ns: None, bound_ns: Some(_), .. } => {
                Err("\"bound\" needs \"every\": it is the age of a snapshot".to_owned())
            }
            ArraySettings { bound_ns: None, stale: Some(_), .. } => {
                Err("\"stale\" needs \"bound\": a snapshot is stale if it is older than that".to_owned())
            }
            ArraySettings { every_ns: None, row_elements: Some(_), .. } => {
                Err("\"row\" needs \"every\": without snapshots, each element is a row of its own".to_owned())
            }
            ArraySettings { every_ns: Some(every), bound_ns: Some(bound), .. } if bound < every => {
                Err("\"bound\" is shorter than \"every\", so it would always be exceeded".to_owned())
            }
            settings => Ok(settings),
        }
    }
}

impl TableSettings {
    /// Reads the text of an annotation.
    pub fn read(annotation: &Annotation) -> Result<TableSettings, String> {
        let mut settings = TableSettings::default();
        for (key, value) in pairs(&annotation.text)? {
            let value = name(key, value)?;
            let source = match key {
                "group" => {
                    settings.group = Some(value);
                    continue;
                }
                "idle" => {
                    settings.idle_ms = Some(idle_time(&value)?);
                    continue;
                }
                "entry_action" => {
                    settings.action = Some(value);
                    continue;
                }
                "add" => {
                    settings.action = Some(value);
                    RowSource::Added
                }
                "pool" | "choice" => {
                    let (first, last) = range(key, &value)?;
                    RowSource::Number(NumberRange { first, last, is_shared: key == "choice" })
                }
                "reverse" => RowSource::Reverse(value),
                "every" | "bound" | "stale" | "row" => {
                    return Err(format!("\"{key}\" is for registers: tables have no snapshots"));
                }
                _ => {
                    return Err(format!(
                        "\"{key}\" is unknown: @resilient on a table has \"group\", \"entry_action\", \"idle\", and \
                         one of \"add\", \"pool\", \"choice\" and \"reverse\""
                    ));
                }
            };
            if settings.source != RowSource::OfGroup {
                return Err("a table can have only one of \"add\", \"pool\", \"choice\" and \"reverse\"".to_owned());
            }
            settings.source = source;
        }
        match settings {
            TableSettings { group: Some(_), source: RowSource::Reverse(_), .. } => {
                Err("\"reverse\" and \"group\" cannot be combined".to_owned())
            }
            TableSettings { source: RowSource::Reverse(of), idle_ms: Some(_), .. } => {
                Err(format!("rows of a reverse table age with those of \"{of}\": give \"idle\" to \"{of}\""))
            }
            TableSettings { group: None, source: RowSource::OfGroup, .. } => Err(
                "@resilient on a table needs \"add\", \"pool\", \"choice\" or \"reverse\", or the \"group\" of a table that has \
                 one"
                    .to_owned(),
            ),
            settings => Ok(settings),
        }
    }
}

/// Checks the length of a name.
fn name(key: &str, value: &str) -> Result<String, String> {
    if value.is_empty() || value.len() > MAX_NAME {
        return Err(format!("\"{key}\" is a name of 1 to {MAX_NAME} bytes"));
    }
    Ok(value.to_owned())
}

/// Reads numbers such as `1024-65535`: at most [`MAX_NUMBERS`].
fn range(key: &str, text: &str) -> Result<(u64, u64), String> {
    let read = text.split_once('-').and_then(|(first, last)| {
        let numbers: (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(numbers).filter(|(first, last)| first <= last && last - first < MAX_NUMBERS)
    });
    read.ok_or_else(|| format!("\"{key}\" is a range such as \"1024-65535\", of at most {MAX_NUMBERS} numbers"))
}

/// Reads a number of elements: a power of two.
fn elements(key: &str, text: &str) -> Result<u64, String> {
    let number: Option<u64> = text.parse().ok();
    number.filter(|number| number.is_power_of_two()).ok_or_else(|| {
        format!("\"{key}\" is the number of elements of each array that make a row, a power of two such as \"64\"")
    })
}

/// Splits `key = "value", …` into pairs.
pub(crate) fn pairs(text: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut rest = text.trim();
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    while !rest.is_empty() {
        let malformed = || format!("\"{rest}\" is not of the form key = \"value\"");
        let (key, after) = rest.split_once('=').ok_or_else(malformed)?;
        let after = after.trim_start().strip_prefix('"').ok_or_else(malformed)?;
        let (value, after) = after.split_once('"').ok_or_else(malformed)?;
        let key = key.trim();
        if pairs.iter().any(|(other, _)| *other == key) {
            return Err(format!("\"{key}\" is given twice"));
        }
        pairs.push((key, value));
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(after) => after.trim_start(),
            None if after.is_empty() => after,
            None => return Err(malformed()),
        };
    }
    Ok(pairs)
}

/// Reads the idle time of rows, such as `300s`, in milliseconds: from 1 ms to 168 h.
fn idle_time(text: &str) -> Result<NonZeroU32, String> {
    const MAX_MS: u32 = 168 * 3_600_000;
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let read = units.into_iter().find_map(|(unit, ms)| text.strip_suffix(unit)?.parse::<u32>().ok()?.checked_mul(ms));
    read.filter(|ms| *ms <= MAX_MS).and_then(NonZeroU32::new).ok_or_else(|| {
        "\"idle\" is a whole number of ms, s, m or h, such as \"300s\", from 1 ms to 168 h; without it, rows stay"
            .to_owned()
    })
}

/// Reads a time such as `10ms`: a whole number of `us`, `ms` or `s`, from 1 us to 1000 s.
fn duration(key: &str, text: &str) -> Result<u64, String> {
    let units = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let read = units.into_iter().find_map(|(unit, ns)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(ns)
    });
    read.filter(|ns| (1_000..=1_000_000_000_000).contains(ns))
        .ok_or_else(|| format!("\"{key}\" is a whole number of us, ms or s, such as \"10ms\", and at most 1000 s"))
}
