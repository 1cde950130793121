//! Draws a failover as an SVG image: the complete gap above, and the takeover enlarged below.
//!
//! The image is written as text: the same run gives the same bytes.

use std::fmt::Write;

use switch::Time;

use super::timeline::{ArrowKind, HostFrame, Timeline};

const WIDTH: f64 = 1100.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 20.0;
const LANE: f64 = 46.0;
const TITLE: f64 = 64.0;
const AXIS: f64 = 40.0;

/// Maximum number of arrows and frames of a panel.
const MAX_DRAWN: usize = 4_000;

/// The kinds of arrows, with their colours and names.
const KINDS: [(ArrowKind, &str, &str); 6] = [
    (ArrowKind::Renewal, "#9ecae1", "lease renewed"),
    (ArrowKind::Ask, "#e6842a", "row asked for"),
    (ArrowKind::Grant, "#2ca02c", "row granted"),
    (ArrowKind::Write, "#3b6fb6", "write, step of chain"),
    (ArrowKind::Acknowledgement, "#7fbf7b", "acknowledgement"),
    (ArrowKind::Recall, "#8e5ea2", "row asked back"),
];

/// A part of the time, and its place in the image.
struct Panel<'t> {
    timeline: &'t Timeline,
    title: String,
    from: Time,
    to: Time,
    top: f64,
}

/// Returns the image.
pub fn draw(timeline: &Timeline) -> String {
    let ms = |count: u64| count * 1_000_000;
    let (from, to) = match timeline.gap {
        Some((_, from, to)) => {
            let pad = (to.since_ns(from) / 12).max(ms(1));
            (before(from.min(timeline.death), pad), to.after_ns(pad))
        }
        None => (before(timeline.death, ms(5)), timeline.death.after_ns(ms(100))),
    };
    let lanes = timeline.lanes.len() as f64 * LANE;
    let mut panels = vec![Panel { timeline, title: "Failover".to_owned(), from, to, top: 0.0 }];
    if let (Some((.., answer)), Some((_, grant))) = (timeline.gap, timeline.grant) {
        let pad = (answer.since_ns(grant) * 2).max(60_000);
        let (from, to) = (before(grant, pad), answer.after_ns(pad / 3));
        let title = "The takeover, enlarged".to_owned();
        panels.push(Panel { timeline, title, from, to, top: TITLE + lanes + AXIS });
    }
    let steps = timeline.steps();
    let below = panels.len() as f64 * (TITLE + lanes + AXIS);
    let height = below + 40.0 + 20.0 * steps.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} \
         {height}\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"{WIDTH}\" height=\"{height}\" \
         fill=\"white\"/>\n"
    );
    panels.iter().for_each(|panel| panel.draw(&mut svg));
    legend(&mut svg, below + 10.0);
    for (number, (ms, text)) in steps.iter().enumerate() {
        let y = below + 40.0 + 20.0 * number as f64;
        marker(&mut svg, LEFT - 14.0, y - 4.0, number);
        label(&mut svg, (LEFT + 2.0, y), "start", &format!("{ms:.3} ms: {text}"));
    }
    svg.push_str("</svg>\n");
    svg
}

/// Returns an earlier time.
fn before(at: Time, ns: u64) -> Time {
    Time::from_ns(at.as_ns().saturating_sub(ns))
}

fn label(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    // Writing to a string cannot fail.
    _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
}

fn line(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64), style: &str) {
    _ = writeln!(svg, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>");
}

fn bar(svg: &mut String, (x1, x2): (f64, f64), y: f64, colour: &str) {
    let width = (x2 - x1).max(0.0);
    _ = writeln!(
        svg,
        "<rect x=\"{x1:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"10\" fill=\"{colour}\" fill-opacity=\"0.35\"/>"
    );
}

/// Draws the number of a step.
fn marker(svg: &mut String, x: f64, y: f64, number: usize) {
    _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"8\" fill=\"#333\"/>");
    _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"white\" font-size=\"11\">{}</text>",
        y + 4.0,
        number + 1
    );
}

/// Draws the meaning of the colours.
fn legend(svg: &mut String, y: f64) {
    for (number, (_, colour, name)) in KINDS.iter().enumerate() {
        let x = LEFT + 160.0 * number as f64;
        line(svg, (x, y), (x + 24.0, y), &format!("stroke=\"{colour}\" stroke-width=\"3\""));
        label(svg, (x + 30.0, y + 4.0), "start", name);
    }
}

impl Panel<'_> {
    fn x(&self, at: Time) -> f64 {
        let share = (at.as_ns() as f64 - self.from.as_ns() as f64) / self.to.since_ns(self.from).max(1) as f64;
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, lane: usize) -> f64 {
        self.top + TITLE + LANE * (lane as f64 + 0.5)
    }

    fn has(&self, at: Time) -> bool {
        self.from <= at && at <= self.to
    }

    fn draw(&self, svg: &mut String) {
        _ = writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"{:.1}\" font-size=\"16\" font-weight=\"bold\">{}</text>",
            self.top + 24.0,
            self.title
        );
        self.axis(svg);
        self.lanes(svg);
        self.bars(svg);
        self.arrows(svg);
        self.frames(svg);
        self.steps(svg);
    }

    /// Draws the times below the lanes.
    fn axis(&self, svg: &mut String) {
        let bottom = self.top + TITLE + LANE * self.timeline.lanes.len() as f64;
        let span_ms = self.to.since_ns(self.from) as f64 / 1e6;
        let tenth = 10f64.powf((span_ms / 8.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * tenth).into_iter().find(|step| span_ms / step <= 10.0);
        let step = step.unwrap_or(span_ms);
        let first = (self.timeline.ms(self.from) / step).ceil() as i64;
        let last = (self.timeline.ms(self.to) / step).floor() as i64;
        for tick in first..=last {
            let ms = tick as f64 * step;
            let at = Time::from_ns((self.timeline.death.as_ns() as f64 + ms * 1e6).max(0.0).round() as u64);
            let x = self.x(at);
            line(svg, (x, self.top + TITLE), (x, bottom), "stroke=\"#ddd\"");
            let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
            label(svg, (x, bottom + 16.0), "middle", &format!("{ms:.decimals$} ms"));
        }
    }

    fn lanes(&self, svg: &mut String) {
        let timeline = self.timeline;
        for (number, lane) in timeline.lanes.iter().enumerate() {
            let y = self.y(number);
            label(svg, (LEFT - 12.0, y + 4.0), "end", &format!("{} {}", lane.kind, lane.name));
            let end = if number == timeline.dead { self.x(timeline.death) } else { WIDTH - RIGHT };
            line(svg, (LEFT, y), (end, y), "stroke=\"#555\"");
            if number == timeline.dead {
                line(svg, (end, y), (WIDTH - RIGHT, y), "stroke=\"#bbb\" stroke-dasharray=\"4 4\"");
                if self.has(timeline.death) {
                    let cross = "stroke=\"#c00\" stroke-width=\"3\"";
                    line(svg, (end - 6.0, y - 6.0), (end + 6.0, y + 6.0), cross);
                    line(svg, (end - 6.0, y + 6.0), (end + 6.0, y - 6.0), cross);
                }
            }
        }
    }

    /// Draws the lease, the time of ownership, and the gap.
    fn bars(&self, svg: &mut String) {
        let timeline = self.timeline;
        if let Some((lane, from, to)) = timeline.lease.filter(|(_, from, to)| *to >= self.from && *from <= self.to) {
            let (x1, x2, y) = (self.x(from), self.x(to), self.y(lane) + 4.0);
            bar(svg, (x1, x2), y, "#1f77b4");
            let text = format!("lease of {}", timeline.lanes[timeline.dead].name);
            label(svg, (x1 + 4.0, y + 10.0), "start", &text);
        }
        bar(svg, (LEFT, self.x(timeline.death)), self.y(timeline.dead) + 4.0, "#2ca02c");
        if let Some((lane, at)) = timeline.grant {
            bar(svg, (self.x(at), WIDTH - RIGHT), self.y(lane) + 4.0, "#2ca02c");
        }
        if let Some((lane, from, to)) = timeline.gap {
            let (x1, x2, y) = (self.x(from), self.x(to), self.y(lane) - 14.0);
            bar(svg, (x1, x2), y, "#d62728");
            let text = format!("no answer for {:.3} ms", to.since_ns(from) as f64 / 1e6);
            label(svg, ((x1 + x2) / 2.0, y + 9.0), "middle", &text);
        }
    }

    fn arrows(&self, svg: &mut String) {
        let arrows = self.timeline.arrows.iter().filter(|arrow| self.has(arrow.sent)).take(MAX_DRAWN);
        for arrow in arrows {
            let (_, colour, _) = KINDS.iter().find(|(kind, ..)| *kind == arrow.kind).unwrap_or(&KINDS[0]);
            let (x1, y1, y2) = (self.x(arrow.sent), self.y(arrow.from), self.y(arrow.to));
            match arrow.arrived {
                Some(at) => {
                    let x2 = self.x(at);
                    line(svg, (x1, y1), (x2, y2), &format!("stroke=\"{colour}\" stroke-width=\"1.4\""));
                    _ = writeln!(svg, "<circle cx=\"{x2:.1}\" cy=\"{y2:.1}\" r=\"2.4\" fill=\"{colour}\"/>");
                }
                None => {
                    let style = format!("stroke=\"{colour}\" stroke-width=\"1.4\" stroke-dasharray=\"3 3\"");
                    line(svg, (x1, y1), (x1, y2), &style);
                }
            }
        }
    }

    /// Draws a tick for each frame of a host: upwards for received ones.
    fn frames(&self, svg: &mut String) {
        let frames = self.timeline.frames.iter().filter(|frame| self.has(frame.at)).take(MAX_DRAWN);
        for &HostFrame { at, lane, is_received } in frames {
            let (x, y) = (self.x(at), self.y(lane));
            let (end, colour) = if is_received { (y - 10.0, "#2ca02c") } else { (y + 10.0, "#888") };
            line(svg, (x, y), (x, end), &format!("stroke=\"{colour}\" stroke-width=\"1.6\""));
        }
    }

    /// Numbers the steps above the lanes. Steps at nearly the same place are drawn side by side.
    fn steps(&self, svg: &mut String) {
        let bottom = self.top + TITLE + LANE * self.timeline.lanes.len() as f64;
        let mut last = f64::MIN;
        for (number, (ms, _)) in self.timeline.steps().into_iter().enumerate() {
            let at = Time::from_ns((self.timeline.death.as_ns() as f64 + ms * 1e6).round() as u64);
            if !self.has(at) {
                continue;
            }
            let x = self.x(at);
            line(svg, (x, self.top + TITLE - 8.0), (x, bottom), "stroke=\"#333\" stroke-dasharray=\"2 3\"");
            last = x.max(last + 18.0);
            marker(svg, last, self.top + TITLE - 16.0, number);
        }
    }
}
