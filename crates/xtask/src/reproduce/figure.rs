//! Holds the data of a figure, and prints it as a table and as JSON.

use serde_json::{Value, json};

/// The clock of a figure's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureClock {
    /// Virtual time: the same on every machine.
    Simulated,
    /// CPU time of this machine.
    Processor,
    /// No clock: sizes that the program determines.
    Computed,
}

impl FigureClock {
    fn name(self) -> &'static str {
        match self {
            FigureClock::Simulated => "simulated",
            FigureClock::Processor => "CPU time",
            FigureClock::Computed => "computed",
        }
    }
}

/// A value of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A word.
    Text(String),
    /// A number, and the number of its decimals.
    Number(f64, usize),
    /// Nothing was measured.
    Empty,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl Cell {
    /// Returns a cell with a whole number.
    pub fn whole(number: impl TryInto<i64>) -> Cell {
        number.try_into().map_or(Cell::Empty, |number| Cell::Number(number as f64, 0))
    }

    fn text(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Number(number, decimals) => grouped(&format!("{number:.decimals$}")),
            Cell::Empty => String::new(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Cell::Text(text) => json!(text),
            Cell::Number(number, _) => json!(number),
            Cell::Empty => Value::Null,
        }
    }
}

/// Adds commas between groups of three digits before the decimal point.
fn grouped(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
    let mut text = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    fraction.map_or(text.clone(), |fraction| format!("{text}.{fraction}"))
}

/// A line of a chart: its name, and its points.
pub type ChartLine = (String, Vec<(f64, f64)>);

/// The picture of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Lines over two axes, with their names.
    Lines {
        /// Name of the horizontal axis.
        x: &'static str,
        /// Name of the vertical axis.
        y: &'static str,
        /// The lines.
        lines: Vec<ChartLine>,
    },
    /// A bar for each name.
    Bars {
        /// Name of the vertical axis.
        y: &'static str,
        /// The bars.
        bars: Vec<(String, f64)>,
    },
}

/// A figure of a paper, measured again.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperFigure {
    /// The paper's name of the figure.
    pub name: &'static str,
    /// The subject.
    pub title: &'static str,
    /// The clock of its numbers.
    pub clock: FigureClock,
    /// Names of the columns, with units.
    pub columns: Vec<&'static str>,
    /// The rows, each with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// Sentences about the experiment.
    pub notes: Vec<String>,
    /// The picture.
    pub chart: Chart,
}

impl PaperFigure {
    /// Formats the figure as a heading, a Markdown table, and its notes.
    pub fn text(&self) -> String {
        let mut rows: Vec<Vec<String>> = vec![self.columns.iter().map(|&name| name.to_owned()).collect()];
        rows.extend(self.rows.iter().map(|row| row.iter().map(Cell::text).collect()));
        let is_number = |column: usize| self.rows.iter().all(|row| !matches!(row[column], Cell::Text(_)));
        let count = |text: &String| text.chars().count();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| rows.iter().map(|row| count(&row[column])).max().unwrap_or(0))
            .collect();
        let mut text = format!("{}: {} ({})\n\n", self.name, self.title, self.clock.name());
        for (number, row) in rows.iter().enumerate() {
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column] - count(cell));
                let (before, after) = if is_number(column) { (pad.as_str(), "") } else { ("", pad.as_str()) };
                text.push_str(&format!("| {before}{cell}{after} "));
            }
            text.push_str("|\n");
            if number == 0 {
                let rule = |column: usize| {
                    let line = "-".repeat(widths[column] + 1);
                    if is_number(column) { format!("|{line}:") } else { format!("|{line}-") }
                };
                text.push_str(&(0..self.columns.len()).map(rule).collect::<String>());
                text.push_str("|\n");
            }
        }
        for note in &self.notes {
            text.push_str(&format!("\n{note}"));
        }
        text
    }

    /// Returns the figure as JSON: a list of objects with the names of the columns.
    pub fn json(&self) -> Value {
        let row = |row: &Vec<Cell>| -> Value {
            self.columns.iter().zip(row).map(|(name, cell)| ((*name).to_owned(), cell.json())).collect()
        };
        json!({
            "figure": self.name, "title": self.title, "clock": self.clock.name(),
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(), "notes": self.notes,
        })
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn example() -> PaperFigure {
        PaperFigure {
            name: "5.0",
            title: "An example",
            clock: FigureClock::Simulated,
            columns: vec!["program", "ns"],
            rows: vec![vec!["nat".into(), Cell::Number(1234.56, 1)], vec!["plain".into(), Cell::Empty]],
            notes: vec!["One note.".to_owned()],
            chart: Chart::Bars { y: "ns", bars: vec![("nat".to_owned(), 1234.56), ("a < b".to_owned(), 0.0)] },
        }
    }

    #[test]
    fn a_table_is_aligned_markdown() {
        let expected = "5.0: An example (simulated)\n\n\
                        | program |      ns |\n\
                        |---------|--------:|\n\
                        | nat     | 1,234.6 |\n\
                        | plain   |         |\n\nOne note.";
        assert_eq!(example().text(), expected);
    }

    #[test]
    fn json_has_numbers_and_nothing_where_nothing_was_measured() {
        let json = example().json();
        assert_eq!(json["rows"], json!([{ "program": "nat", "ns": 1234.56 }, { "program": "plain", "ns": null }]));
        assert_eq!(json["clock"], "simulated");
    }

    #[test]
    fn digits_are_grouped_before_the_point_only() {
        let texts = ["0", "999", "1000", "-1234567.25", "0.1234"].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "-1,234,567.25", "0.1234"]);
    }
}
