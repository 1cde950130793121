//! Draws a figure as SVG. The letters are text elements, so no fonts are needed to draw.

use std::error::Error;
use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::figure::{Chart, ChartLine, PaperFigure};

/// Width and height of a picture in pixels.
const SIZE: (u32, u32) = (900, 480);

/// Draws a figure to a file.
///
/// # Errors
/// If the file cannot be written.
pub fn draw(path: &Path, figure: &PaperFigure) -> Result<()> {
    let title = format!("{}: {}", figure.name, figure.title);
    let drawn = match &figure.chart {
        Chart::Lines { x, y, lines } => draw_lines(path, &title, (x, y), lines),
        Chart::Bars { y, bars } => draw_bars(path, &title, y, bars),
    };
    drawn.map_err(|error| anyhow!("cannot draw {}: {error}", path.display()))
}

/// Returns the end of an axis for values up to this one.
fn end(values: impl Iterator<Item = f64>) -> f64 {
    let most = values.fold(0.0, f64::max);
    if most > 0.0 { most * 1.05 } else { 1.0 }
}

fn draw_lines(path: &Path, title: &str, (x, y): (&str, &str), lines: &[ChartLine]) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let all = || lines.iter().flat_map(|(_, points)| points);
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 22))
        .margin(14)
        .x_label_area_size(48)
        .y_label_area_size(80)
        .build_cartesian_2d(0.0..end(all().map(|point| point.0)), 0.0..end(all().map(|point| point.1)))?;
    chart.configure_mesh().x_desc(x).y_desc(y).light_line_style(WHITE.mix(0.0)).draw()?;
    for (number, (name, points)) in lines.iter().enumerate() {
        let colour = Palette99::pick(number).to_rgba().stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), colour))?
            .label(name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour));
    }
    if !lines.is_empty() {
        let labels = &mut chart.configure_series_labels();
        labels
            .position(SeriesLabelPosition::LowerRight)
            .label_font(("sans-serif", 15))
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()?;
    }
    Ok(root.present()?)
}

fn draw_bars(path: &Path, title: &str, y: &str, bars: &[(String, f64)]) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let count = bars.len().max(1) as f64;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 22))
        .margin(14)
        .x_label_area_size(48)
        .y_label_area_size(80)
        .build_cartesian_2d(0.0..count, 0.0..end(bars.iter().map(|bar| bar.1)))?;
    chart.configure_mesh().disable_x_mesh().x_labels(0).y_desc(y).light_line_style(WHITE.mix(0.0)).draw()?;
    for (number, (name, value)) in bars.iter().enumerate() {
        let left = number as f64;
        let colour = Palette99::pick(0).filled();
        chart.draw_series([Rectangle::new([(left + 0.15, 0.0), (left + 0.85, *value)], colour)])?;
        let centre = chart.backend_coord(&(left + 0.5, 0.0));
        let style = TextStyle::from(("sans-serif", 11)).pos(Pos::new(HPos::Center, VPos::Top));
        // Names of two parts have two lines, as bars are narrow.
        for (line, part) in name.splitn(2, ", ").enumerate() {
            root.draw_text(part, &style, (centre.0, centre.1 + 8 + 14 * line as i32))?;
        }
        let above = chart.backend_coord(&(left + 0.5, *value));
        let style = TextStyle::from(("sans-serif", 13)).pos(Pos::new(HPos::Center, VPos::Bottom));
        root.draw_text(&short(*value), &style, (above.0, above.1 - 3))?;
    }
    Ok(root.present()?)
}

/// Formats a number above a bar with three digits.
fn short(value: f64) -> String {
    match value.abs() {
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::figure::tests::example;
    use super::*;

    #[test]
    fn both_kinds_of_charts_are_drawn_with_their_names() {
        let path = std::env::temp_dir().join(format!("xtask-chart-{}.svg", std::process::id()));
        let mut figure = example();
        draw(&path, &figure).expect("the directory is there");
        let bars = std::fs::read_to_string(&path).expect("it was drawn");
        figure.chart = Chart::Lines {
            x: "time, s",
            y: "rate",
            lines: vec![("first".to_owned(), vec![(0.0, 1.0), (2.0, 3.0)]), ("none".to_owned(), Vec::new())],
        };
        draw(&path, &figure).expect("the directory is there");
        let lines = std::fs::read_to_string(&path).expect("it was drawn");
        std::fs::remove_file(&path).expect("it is ours");
        for part in ["An example", "1235", "a &lt; b"] {
            assert!(bars.contains(part), "{bars} lacks {part}");
        }
        for part in ["time, s", "first", "none", "<polyline"] {
            assert!(lines.contains(part), "{lines} lacks {part}");
        }
    }
}
