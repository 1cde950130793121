//! Pictures of a simulation (SVG).

use std::path::Path;

use lab::Topology;
use lab::scenario::Results;
use lab::sim::traffic::Measured;
use plotters::prelude::*;

use super::series::cumulative;
use crate::output::Failure;

/// The most lines of one picture; the rest would hide them.
const LINES: usize = 8;

/// A line and its name.
type Line = (String, Vec<(f64, f64)>);

/// Writes `throughput.svg`, `queues.svg` and `latency.svg`; and `probes.svg` if probes read anything.
pub fn write(folder: &Path, topology: &Topology, results: &Results) -> Result<(), Failure> {
    let interval_s = Measured::INTERVAL_NS as f64 / 1e9;
    let throughput = results.traffic.iter().filter(|flow| flow.measured.bytes > 0).map(|flow| {
        let points = flow.measured.series.iter().enumerate();
        let points =
            points.map(|(at, bytes)| (at as f64 * interval_s, *bytes as f64 * 8.0 / interval_s / 1e6)).collect();
        (flow.name.clone(), points)
    });
    draw(&folder.join("throughput.svg"), "Throughput", "time, s", "payload, Mbit/s", throughput.collect())?;

    let mut longest: Vec<_> = results.links.iter().filter(|link| link.stats.longest_queue > 0).collect();
    longest.sort_by_key(|link| std::cmp::Reverse(link.stats.longest_queue));
    let queues = longest.iter().take(LINES).map(|link| {
        let samples = results.samples.iter().filter(|sample| sample.from == link.from);
        let points = samples.map(|sample| (sample.at.as_ns() as f64 / 1e9, sample.waiting as f64)).collect();
        (format!("{} to {}", topology.end_name(link.from), topology.end_name(link.to)), points)
    });
    draw(&folder.join("queues.svg"), "The longest queues", "time, s", "frames that wait", queues.collect())?;

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
        draw(&folder.join("probes.svg"), "What probes read", "time, s", "", probes)?;
    }

    let latencies = results.traffic.iter().filter(|flow| !flow.measured.latency.is_empty()).map(|flow| {
        let points = cumulative(&flow.measured).into_iter().map(|(ns, share)| (ns as f64 / 1e3, share)).collect();
        (flow.name.clone(), points)
    });
    draw(&folder.join("latency.svg"), "Latency", "latency, us", "share not slower", latencies.collect())
}

fn draw(path: &Path, title: &str, x: &str, y: &str, lines: Vec<Line>) -> Result<(), Failure> {
    try_draw(path, title, x, y, &lines)
        .map_err(|error| anyhow::anyhow!("cannot draw {}: {error}", path.display()).into())
}

fn try_draw(path: &Path, title: &str, x: &str, y: &str, lines: &[Line]) -> Result<(), Box<dyn std::error::Error>> {
    let most = |of: fn(&(f64, f64)) -> f64| {
        let all = lines.iter().flat_map(|(_, points)| points.iter().map(of));
        all.fold(0.0, f64::max).max(f64::MIN_POSITIVE)
    };
    let (right, top) = (most(|point| point.0) * 1.02, most(|point| point.1) * 1.05);
    let root = SVGBackend::new(path, (900, 480)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 22))
        .margin(14)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..right, 0.0..top)?;
    chart.configure_mesh().x_desc(x).y_desc(y).light_line_style(WHITE.mix(0.0)).draw()?;
    for (number, (name, points)) in lines.iter().take(LINES).enumerate() {
        let colour = Palette99::pick(number).to_rgba();
        let series = LineSeries::new(points.iter().copied(), colour.stroke_width(2));
        chart
            .draw_series(series)?
            .label(name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    if !lines.is_empty() {
        chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.3)).draw()?;
    }
    root.present()?;
    Ok(())
}
