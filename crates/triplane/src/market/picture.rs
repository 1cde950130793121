//! Plots panels of lines as SVG: the ages of messages. It names nothing of its crate, as the `delivery` benchmark draws
//! with it, too.

use std::error::Error;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;

/// A line, and its upper bound, which is drawn thin and dashed.
#[derive(Clone)]
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    pub bound: Vec<(f64, f64)>,
}

/// A chart with a title.
#[derive(Clone)]
pub struct Panel {
    pub title: String,
    pub lines: Vec<Line>,
}

/// A logarithmic axis of shares: the closer to 1, the wider the spacing, so that the steps to the 90th, 99th and 99.9th
/// percentile have the same height.
#[derive(Clone, Copy)]
struct Tail;

const NAMED: [(f64, &str); 4] = [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")];

impl Ranged for Tail {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, share: &f64, (from, to): (i32, i32)) -> i32 {
        let place = f64::min(-(1.0 - share).max(0.0).log10() / 3.5, 1.0);
        from + (f64::from(to - from) * place).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { NAMED.map(|(share, _)| share).to_vec() }
    }

    fn range(&self) -> Range<f64> {
        0.0..1.0
    }
}

/// Width and height of a panel in pixels.
const PANEL: (u32, u32) = (400, 380);
/// Minimum width of a picture in pixels.
const MIN_WIDTH: u32 = 640;

/// The area of a panel.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws the share of messages that were no older than an age. The axis of ages is logarithmic.
///
/// # Errors
/// The text cannot be laid out; no such case is known.
pub fn ages(x: &str, range: Range<f64>, panels: &[Panel]) -> Result<String, Box<dyn Error>> {
    each(panels, |area, panel| {
        let mut chart = frame(area, panel).build_cartesian_2d(range.clone().log_scale(), Tail)?;
        let name = |share: &f64| {
            NAMED.iter().find(|(named, _)| named == share).map_or(String::new(), |(_, name)| (*name).to_owned())
        };
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(x).y_desc("share no older").x_label_formatter(&|value| short(*value)).y_label_formatter(&name);
        mesh.light_line_style(WHITE.mix(0.0)).draw()?;
        lines(&mut chart, panel)
    })
}

/// Draws panels side by side. Returns the SVG.
pub fn each(
    panels: &[Panel],
    draw: impl Fn(&Area<'_>, &Panel) -> Result<(), Box<dyn Error>>,
) -> Result<String, Box<dyn Error>> {
    let mut svg = String::new();
    {
        let width = (PANEL.0 * panels.len() as u32).max(MIN_WIDTH);
        let root = SVGBackend::with_string(&mut svg, (width, PANEL.1)).into_drawing_area();
        root.fill(&WHITE)?;
        for (area, panel) in root.split_evenly((1, panels.len().max(1))).iter().zip(panels) {
            draw(area, panel)?;
        }
        root.present()?;
    }
    Ok(svg)
}

/// Begins the chart of a panel.
pub fn frame<'a, 'b>(area: &'a Area<'b>, panel: &Panel) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut chart = ChartBuilder::on(area);
    chart.caption(&panel.title, ("sans-serif", 17)).margin(10).x_label_area_size(42).y_label_area_size(54);
    chart
}

/// Draws the lines of a panel and their legend.
pub fn lines<'b, X, Y>(
    chart: &mut ChartContext<'b, SVGBackend<'b>, Cartesian2d<X, Y>>,
    panel: &Panel,
) -> Result<(), Box<dyn Error>>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    let has_bounds = panel.lines.iter().any(|line| !line.bound.is_empty());
    for (number, line) in panel.lines.iter().enumerate() {
        let colour = Palette99::pick(number).to_rgba();
        chart.draw_series(DashedLineSeries::new(line.bound.iter().copied(), 5, 4, colour.stroke_width(1)))?;
        let series = LineSeries::new(line.points.iter().copied(), colour.stroke_width(2));
        let series = if has_bounds { series.point_size(3) } else { series };
        let name = if has_bounds { format!("{}, delivered", line.name) } else { line.name.clone() };
        chart
            .draw_series(series)?
            .label(name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    if has_bounds {
        // An empty series adds an entry to the legend.
        chart
            .draw_series(std::iter::empty::<PathElement<(f64, f64)>>())?
            .label("dashed: wanted, of what was sent")
            .legend(|(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], BLACK.mix(0.5)));
    }
    let position = if has_bounds { SeriesLabelPosition::UpperLeft } else { SeriesLabelPosition::LowerRight };
    let mut labels = chart.configure_series_labels();
    labels.position(position).background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.3)).draw()?;
    Ok(())
}

/// Formats a number for an axis: `50`, `20k`, `1.5M`.
pub fn short(value: f64) -> String {
    match value {
        value if value < 1e4 => format!("{value:.0}"),
        value if value < 1e6 => format!("{:.0}k", value / 1e3),
        value => format!("{:.1}M", value / 1e6),
    }
}
