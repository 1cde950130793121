//! Pictures: how old messages were, and how many arrived, a field for each workload.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;

/// A line and its name.
pub type Line = (&'static str, Vec<(f64, f64)>);

/// An axis of shares.
#[derive(Clone, Copy)]
pub enum Shares {
    /// As they are, from none to all.
    Linear,
    /// The less is missing to all, the further apart: the 90th, 99th and 99.9th of a hundred are steps of the same height.
    Tail,
}

impl Shares {
    /// Where a share stands, from 0 to 1.
    fn place(self, share: f64) -> f64 {
        match self {
            Shares::Linear => share / 1.02,
            Shares::Tail => f64::min(-(1.0 - share).max(0.0).log10() / 3.5, 1.0),
        }
    }

    /// The shares that have a line and a name.
    fn named(self) -> &'static [(f64, &'static str)] {
        match self {
            Shares::Linear => &[(0.0, "0 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, "100 %")],
            Shares::Tail => &[(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")],
        }
    }

    fn name(self, share: f64) -> String {
        let named = self.named().iter().find(|(named, _)| *named == share);
        named.map_or(String::new(), |(_, name)| (*name).to_owned())
    }
}

impl Ranged for Shares {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, share: &f64, (from, to): (i32, i32)) -> i32 {
        from + (f64::from(to - from) * self.place(*share)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let all = self.named().iter().map(|(share, _)| *share);
        if hint.weight().allow_light_points() { Vec::new() } else { all.collect() }
    }

    fn range(&self) -> Range<f64> {
        0.0..1.0
    }
}

const SIZE: (u32, u32) = (1200, 380);

/// Lines over a logarithmic axis, side by side; shares are the other axis.
pub fn draw(
    path: &Path,
    x: &str,
    (y, shares): (&str, Shares),
    range: Range<f64>,
    fields: &[(&str, Vec<Line>)],
) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, (title, lines)) in root.split_evenly((1, fields.len().max(1))).iter().zip(fields) {
        let mut chart = ChartBuilder::on(area)
            .caption(title, ("sans-serif", 17))
            .margin(10)
            .x_label_area_size(42)
            .y_label_area_size(50)
            .build_cartesian_2d(range.clone().log_scale(), shares)?;
        chart
            .configure_mesh()
            .x_desc(x)
            .y_desc(y)
            .x_label_formatter(&|value| short(*value))
            .y_label_formatter(&|share| shares.name(*share))
            .light_line_style(WHITE.mix(0.0))
            .draw()?;
        for (number, (name, points)) in lines.iter().enumerate() {
            let colour = Palette99::pick(number).to_rgba();
            let series = LineSeries::new(points.iter().copied(), colour.stroke_width(2));
            chart
                .draw_series(series)?
                .label(*name)
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()?;
    }
    Ok(root.present()?)
}

/// A number at an axis: `50`, `20k`.
fn short(value: f64) -> String {
    if value < 1e4 { format!("{value:.0}") } else { format!("{:.0}k", value / 1e3) }
}
