//! Pictures: how old messages were, and how many arrived, a field for each workload.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use plotters::prelude::*;

/// A line and its name.
pub type Line = (&'static str, Vec<(f64, f64)>);

const SIZE: (u32, u32) = (1200, 380);

/// Lines over a logarithmic axis, side by side; shares are the other axis.
pub fn draw(
    path: &Path,
    x: &str,
    y: &str,
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
            .build_cartesian_2d(range.clone().log_scale(), 0.0..1.02)?;
        chart
            .configure_mesh()
            .x_desc(x)
            .y_desc(y)
            .x_label_formatter(&|value| short(*value))
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
