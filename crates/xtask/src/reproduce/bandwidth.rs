//! Figure 5.12: share of the replication in all bytes that a switch sends and receives.

use anyhow::Result;

use super::Settings;
use super::app_lab::LabCommand;
use super::application::{Application, of_paper};
use super::figure::{Cell, Chart, FigureClock, PaperFigure};
use super::latency::{description, paper_lab, shape};
use super::trace::FrameSizes;

/// Returns the paper's share, in percent.
fn papers(application: Application) -> Cell {
    match application {
        Application::Gateway => Cell::Number(12.8, 1),
        Application::FlowCounter => Cell::Number(51.2, 1),
        _ => "almost 0".into(),
    }
}

/// Figure 5.12.
pub fn shares(command: &LabCommand, settings: &Settings) -> Result<PaperFigure> {
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for application in of_paper() {
        let mut row = vec![application.title().into(), papers(application)];
        for sizes in [FrameSizes::Smallest, FrameSizes::Mixed] {
            let packets = shape(settings, sizes).packets();
            let lab = paper_lab("bandwidth", application, 3);
            let results = lab.run(command, &packets)?;
            let share = 100.0 * results.store_bytes as f64 / (results.store_bytes + results.data_bytes) as f64;
            row.push(Cell::Number(share, 2));
            row.push(Cell::Number(results.store_bytes as f64 / packets.len() as f64, 1));
            let name = if sizes == FrameSizes::Smallest { "64 B" } else { "mixed" };
            bars.push((format!("{}, {name}", application.title()), share));
        }
        rows.push(row);
    }
    Ok(PaperFigure {
        name: "5.12",
        title: "Bytes of the replication",
        clock: FigureClock::Simulated,
        columns: vec![
            "application",
            "paper, 64 bytes, %",
            "64 bytes, %",
            "bytes a packet",
            "mixed sizes, %",
            "bytes a packet ",
        ],
        rows,
        notes: vec![
            description(settings),
            "Bytes that the switch sends and receives, in frames; those between stores are not among them. The simulator \
             gives a switch one frame at a time, so each write is a datagram of its own."
                .to_owned(),
        ],
        chart: Chart::Bars { y: "share of replication, %", bars },
    })
}
