//! Plots the rates at which messages arrived, with a panel for each workload.

use std::error::Error;

use plotters::prelude::*;

use crate::picture::{Panel, each, frame, lines, short};

/// Draws the wanted messages that arrived a second against the datagrams sent a second. The bound is the number of
/// wanted messages sent a second.
pub fn rates(panels: &[Panel]) -> Result<String, Box<dyn Error>> {
    each(panels, |area, panel| {
        let all = || panel.lines.iter().flat_map(|line| line.points.iter().chain(&line.bound));
        let most = |of: fn(&(f64, f64)) -> f64| 1.05 * all().map(of).fold(1.0, f64::max);
        let mut chart =
            frame(area, panel).build_cartesian_2d(0.0..most(|point| point.0), 0.0..most(|point| point.1))?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc("datagrams sent a second").y_desc("wanted messages a second").x_labels(6).y_labels(6);
        mesh.x_label_formatter(&|value| short(*value)).y_label_formatter(&|value| short(*value));
        mesh.light_line_style(WHITE.mix(0.0)).draw()?;
        lines(&mut chart, panel)
    })
}
