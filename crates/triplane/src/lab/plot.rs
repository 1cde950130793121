//! Draws charts of a simulation's results, as SVG and PNG.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use anyhow::anyhow;
use lab::Topology;
use lab::scenario::Results;
use lab::sim::traffic::Measured;
use plotters::prelude::*;

use super::picture::Picture;
use super::tables::cumulative;
use crate::output::Failure;

/// Maximum number of lines in one chart; more would hide each other.
const LINES: usize = 8;

/// Width and height of a chart in pixels.
const SIZE: (u32, u32) = (900, 480);

/// A line and its name.
type Line = (String, Vec<(f64, f64)>);

/// Draws `throughput`, `queues` and `latency`, and `probes` if probes read anything.
pub fn write(folder: &Path, topology: &Topology, results: &Results) -> Result<(), Failure> {
    let interval_s = Measured::INTERVAL_NS as f64 / 1e9;
    let throughput = results.traffic.iter().filter(|flow| flow.measured.bytes > 0).map(|flow| {
        let points = flow.measured.series.iter().enumerate();
        let points =
            points.map(|(at, bytes)| (at as f64 * interval_s, *bytes as f64 * 8.0 / interval_s / 1e6)).collect();
        (flow.name.clone(), points)
    });
    draw(folder, "throughput", "Throughput", "time, s", "payload, Mbit/s", throughput.collect())?;

    let mut longest: Vec<_> = results.links.iter().filter(|link| link.stats.longest_queue > 0).collect();
    longest.sort_by_key(|link| std::cmp::Reverse(link.stats.longest_queue));
    let queues = longest.iter().take(LINES).map(|link| {
        let samples = results.samples.iter().filter(|sample| sample.from == link.from);
        let points = samples.map(|sample| (sample.at.as_ns() as f64 / 1e9, sample.waiting as f64)).collect();
        (format!("{} to {}", topology.end_name(link.from), topology.end_name(link.to)), points)
    });
    draw(folder, "queues", "Longest queues", "time, s", "queued frames", queues.collect())?;

    let probes: Vec<Line> = results
        .traffic
        .iter()
        .flat_map(|flow| &flow.values)
        .map(|values| {
            let points = values.points.iter().map(|(at, number)| (at.as_ns() as f64 / 1e9, *number)).collect();
            (values.name.clone(), points)
        })
        .collect();
    if !probes.is_empty() {
        draw(folder, "probes", "Values read by probes", "time, s", "", probes)?;
    }

    let latencies = results.traffic.iter().filter(|flow| !flow.measured.latency.is_empty()).map(|flow| {
        let points = cumulative(&flow.measured).into_iter().map(|(ns, share)| (ns as f64 / 1e3, share)).collect();
        (flow.name.clone(), points)
    });
    draw(folder, "latency", "Latency", "latency, us", "cumulative share", latencies.collect())
}

/// Draws a chart twice: as vectors (SVG) and as pixels (PNG).
fn draw(folder: &Path, name: &str, title: &str, x: &str, y: &str, lines: Vec<Line>) -> Result<(), Failure> {
    let chart = Chart { title, x, y, lines: &lines };
    let failed = |path: &Path, error: &dyn std::error::Error| anyhow!("cannot draw {}: {error}", path.display());
    let path = folder.join(format!("{name}.svg"));
    chart.draw(SVGBackend::new(&path, SIZE)).map_err(|error| failed(&path, &*error))?;
    let path = folder.join(format!("{name}.png"));
    Ok(chart.draw(Picture::new(&path, SIZE)).map_err(|error| failed(&path, &*error))?)
}

/// A line chart with two axes.
struct Chart<'a> {
    title: &'a str,
    x: &'a str,
    y: &'a str,
    lines: &'a [Line],
}

impl Chart<'_> {
    /// Returns the range of one coordinate, extended to include 0 and a margin.
    fn range(&self, of: fn(&(f64, f64)) -> f64) -> Range<f64> {
        let all = || self.lines.iter().flat_map(|(_, points)| points.iter().map(of));
        let (least, most) = (all().fold(0.0, f64::min), all().fold(0.0, f64::max));
        if least == most { 0.0..1.0 } else { least * 1.05..most * 1.05 }
    }

    fn draw<B: DrawingBackend>(&self, backend: B) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static,
    {
        let root = backend.into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(self.title, ("sans-serif", 22))
            .margin(14)
            .x_label_area_size(48)
            .y_label_area_size(80)
            .build_cartesian_2d(self.range(|point| point.0), self.range(|point| point.1))?;
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .x_label_formatter(&|value| short(*value))
            .y_label_formatter(&|value| short(*value))
            .light_line_style(WHITE.mix(0.0))
            .draw()?;
        for (number, (name, points)) in self.lines.iter().take(LINES).enumerate() {
            let colour = Palette99::pick(number).to_rgba();
            let series = LineSeries::new(points.iter().copied(), colour.stroke_width(2));
            chart
                .draw_series(series)?
                .label(name)
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2)));
        }
        if !self.lines.is_empty() {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperRight)
                .label_font(("sans-serif", 15))
                .background_style(WHITE.mix(0.8))
                .border_style(BLACK.mix(0.3))
                .draw()?;
        }
        Ok(root.present()?)
    }
}

/// Formats a number for an axis: `0.25`, `12.5k`, `6M`.
fn short(value: f64) -> String {
    let (value, unit) = match value.abs() {
        ..1e4 => (value, ""),
        ..1e6 => (value / 1e3, "k"),
        ..1e9 => (value / 1e6, "M"),
        _ => (value / 1e9, "G"),
    };
    let text = format!("{value:.3}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn numbers_at_axes_are_short() {
        let texts = [0.0, 0.25, 100.0, 12_500.0, 6e6, -2.5e9].map(short);
        assert_eq!(texts, ["0", "0.25", "100", "12.5k", "6M", "-2.5G"]);
    }
}
