//! Figure 5.14 and tables 5.2 and 3.4, whose numbers are CPU time and memory of this machine: runs benchmarks and reads
//! their tables.

use anyhow::{Context, Result, bail};

use super::Settings;
use super::figure::{Cell, Chart, FigureClock, PaperFigure};
use crate::step::Step;

/// Runs a benchmark, and returns the rows of the Markdown tables that it prints, with `columns` cells each.
fn rows(settings: &Settings, package: &str, bench: &str, columns: usize) -> Result<Vec<Vec<String>>> {
    let arguments = ["bench", "--quiet", "-p", package, "--profile", &settings.profile, "--bench", bench];
    super::show(&format!("cargo {}", arguments.join(" ")));
    let text = Step::cargo(bench, &arguments).output()?;
    let rows = table_rows(&text, columns);
    if rows.is_empty() {
        bail!("`cargo {}` printed no table", arguments.join(" "));
    }
    Ok(rows)
}

/// Returns the rows of Markdown tables with this number of columns, without their heads and rules.
fn table_rows(text: &str, columns: usize) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Option<Vec<String>> {
        let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        let cells: Vec<String> = inner.split('|').map(|cell| cell.trim().trim_matches('*').to_owned()).collect();
        (cells.len() == columns).then_some(cells)
    };
    let lines: Vec<&str> = text.lines().collect();
    let is_rule = |line: &str| line.contains("---");
    let is_head = |at: usize| lines.get(at + 1).is_some_and(|next| is_rule(next));
    lines
        .iter()
        .enumerate()
        .filter(|(at, line)| !is_rule(line) && !is_head(*at))
        .filter_map(|(_, line)| cells(line))
        .collect()
}

/// Returns a number of a table; `Cell::Empty` for an empty cell.
fn number(text: &str, decimals: usize) -> Result<Cell> {
    if text.is_empty() {
        return Ok(Cell::Empty);
    }
    let number = text.replace(',', "").parse().with_context(|| format!("`{text}` is not a number"))?;
    Ok(Cell::Number(number, decimals))
}

/// Returns the paper's description of an application's rate relative to the plain program.
fn papers(name: &str) -> &'static str {
    match name {
        name if name.starts_with("NAT") || name.starts_with("firewall") || name.starts_with("load balancer") => "1",
        name if name.starts_with("EPC-SGW") => "slightly less than 1",
        name if name.starts_with("Sync-Counter") => "about 0.5",
        _ => "",
    }
}

/// Figure 5.14: from `--bench rows`, whose columns are name, ns of the plain and the resilient program, ratio, bound.
pub fn rates(settings: &Settings) -> Result<PaperFigure> {
    let (mut table, mut bars) = (Vec::new(), Vec::new());
    for row in rows(settings, "resilient_switch", "rows", 5)? {
        let [name, plain, resilient, ratio, _] = &row[..] else { unreachable!("rows have five cells") };
        let ratio: f64 = ratio.parse().with_context(|| format!("`{ratio}` is not a ratio"))?;
        let papers = papers(name);
        table.push(vec![
            name.clone().into(),
            papers.into(),
            number(plain, 1)?,
            number(resilient, 1)?,
            Cell::Number(1.0 / ratio, 2),
        ]);
        if !papers.is_empty() {
            bars.push((name.clone(), 1.0 / ratio));
        }
    }
    Ok(PaperFigure {
        name: "5.14",
        title: "Rate of packets beside the plain program",
        clock: FigureClock::Processor,
        columns: vec!["application", "paper", "plain, ns a packet", "resilient, ns a packet", "ratio of the rates"],
        rows: table,
        notes: vec![
            "In memory, batches of 32 frames of 60 bytes on one core. A write's time includes that of one store in the \
             same thread, unless the row says otherwise."
                .to_owned(),
        ],
        chart: Chart::Bars { y: "ratio of the rates", bars },
    })
}

/// Table 5.2: from `--bench resources`, whose columns are name, program or part, value, unit.
pub fn resources(settings: &Settings) -> Result<PaperFigure> {
    resource_table(settings, "t5.2", "resilient_switch", "bytes a row")
}

/// Table 3.4: from `--bench resources` of `elastic_switch`, with the same columns.
pub fn remote_resources(settings: &Settings) -> Result<PaperFigure> {
    resource_table(settings, "t3.4", "elastic_switch", "bytes an entry")
}

/// Returns the table of `--bench resources` in a package. The picture has the values with a unit.
fn resource_table(
    settings: &Settings,
    name: &'static str,
    package: &str,
    bar_unit: &'static str,
) -> Result<PaperFigure> {
    let (mut table, mut bars) = (Vec::new(), Vec::new());
    for row in rows(settings, package, "resources", 4)? {
        let [resource, part, value, unit] = &row[..] else { unreachable!("rows have four cells") };
        let decimals = value.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let value = number(value, decimals)?;
        if let Cell::Number(bytes, _) = value
            && unit == bar_unit
        {
            bars.push((format!("{resource}, {part}"), bytes));
        }
        table.push(vec![resource.clone().into(), part.clone().into(), value, unit.clone().into()]);
    }
    Ok(PaperFigure {
        name,
        title: "Resources",
        clock: FigureClock::Processor,
        columns: vec!["resource", "of", "value", "unit"],
        rows: table,
        notes: vec!["Bytes are those requested from the allocator, for 100,000 rows or entries.".to_owned()],
        chart: Chart::Bars { y: bar_unit, bars },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_table_are_read_without_its_head() {
        let text = "noise\n| a | b |\n|---|---|\n| NAT | **1.04** |\n| x | |\n| one | two | three |\nend";
        let expected = [vec!["NAT", "1.04"], vec!["x", ""]];
        assert_eq!(table_rows(text, 2), expected);
    }

    #[test]
    fn numbers_may_be_missing_or_grouped_but_not_words() {
        assert_eq!(number("1,234.5", 1).expect("a number"), Cell::Number(1234.5, 1));
        assert_eq!(number("", 1).expect("nothing"), Cell::Empty);
        assert!(number("fast", 1).is_err());
    }
}
