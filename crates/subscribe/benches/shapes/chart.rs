//! Line charts with a logarithmic vertical axis, as SVG.

use std::fmt::Write;

/// A line of a panel: points from left to right.
pub struct DataSeries {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// Lines with a common horizontal axis.
pub struct Panel {
    pub title: &'static str,
    /// Label of the horizontal axis.
    pub across: &'static str,
    /// Whether the horizontal axis is logarithmic; the vertical one always is.
    pub is_log: bool,
    pub lines: Vec<DataSeries>,
}

/// Size of a panel, in pixels.
const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 320.0;
/// Margins between a panel's edge and its axes.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 84.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 48.0;
/// Colours that remain distinguishable with colour vision deficiency (Okabe and Ito).
const COLOURS: [&str; 3] = ["#0072b2", "#d55e00", "#009e73"];

/// Mapping from numbers to pixels.
struct Scale {
    is_log: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn new(is_log: bool, numbers: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Scale {
        let (low, high) = (numbers.clone().fold(f64::MAX, f64::min), numbers.fold(f64::MIN, f64::max));
        let (low, high) = if is_log { (low.log10().floor(), high.log10().ceil()) } else { (low, high) };
        Scale { is_log, low, high, from, to }
    }

    fn at(&self, number: f64) -> f64 {
        let number = if self.is_log { number.log10() } else { number };
        self.from + (number - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// Returns the tick positions: whole numbers, or powers of ten.
    fn marks(&self) -> Vec<f64> {
        let marks = (self.low as i32..=self.high as i32).map(f64::from);
        marks.map(|mark| if self.is_log { 10f64.powf(mark) } else { mark }).collect()
    }
}

/// Formats a number with thousands separators: `1,000`.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Draws panels side by side.
pub fn draw(panels: &[Panel]) -> String {
    let width = WIDTH * panels.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {HEIGHT}\" width=\"{width}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (at, panel) in panels.iter().enumerate() {
        writeln!(out, "<g transform=\"translate({} 0)\">", WIDTH * at as f64).expect("a string takes everything");
        draw_panel(&mut out, panel).expect("a string takes everything");
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

fn draw_panel(out: &mut String, panel: &Panel) -> std::fmt::Result {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let points = panel.lines.iter().flat_map(|line| &line.points);
    let x = Scale::new(panel.is_log, points.clone().map(|point| point.0), LEFT, right);
    let y = Scale::new(true, points.map(|point| point.1), bottom, TOP);
    let middle = (LEFT + right) / 2.0;
    writeln!(out, "<text x=\"{middle}\" y=\"20\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>", panel.title)?;
    for mark in y.marks() {
        let at = y.at(mark);
        writeln!(out, "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>")?;
        let (left, low, shown) = (LEFT - 6.0, at + 4.0, grouped(mark));
        writeln!(out, "<text x=\"{left}\" y=\"{low:.1}\" text-anchor=\"end\">{shown}</text>")?;
    }
    for mark in x.marks() {
        let (at, low, shown) = (x.at(mark), bottom + 18.0, grouped(mark));
        writeln!(out, "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#ddd\"/>")?;
        writeln!(out, "<text x=\"{at:.1}\" y=\"{low}\" text-anchor=\"middle\">{shown}</text>")?;
    }
    let low = bottom + 38.0;
    writeln!(out, "<text x=\"{middle}\" y=\"{low}\" text-anchor=\"middle\">{}</text>", panel.across)?;
    for (line, colour) in panel.lines.iter().zip(COLOURS.iter().cycle()) {
        let place = |(across, up): &(f64, f64)| format!("{:.1},{:.1}", x.at(*across), y.at(*up));
        let places: Vec<String> = line.points.iter().map(place).collect();
        let joined = places.join(" ");
        writeln!(out, "<polyline points=\"{joined}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>")?;
        for (across, up) in &line.points {
            writeln!(out, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>", x.at(*across), y.at(*up))?;
        }
        if let Some((across, up)) = line.points.last() {
            let (left, low) = (x.at(*across) + 8.0, y.at(*up) + 4.0);
            writeln!(out, "<text x=\"{left:.1}\" y=\"{low:.1}\" fill=\"{colour}\">{}</text>", line.name)?;
        }
    }
    Ok(())
}
