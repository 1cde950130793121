//! Table 3.3: the four network functions with one server.

use anyhow::Result;

use super::super::Settings;
use super::super::app_lab::LabCommand;
use super::super::figure::{Cell, Chart, FigureClock, PaperFigure};
use super::super::percentiles::SortedValues;
use super::balance::CACHE;
use super::function::NetworkFunction;
use super::lab::{RemoteLab, TablePlace};
use super::{FLOOD_MPPS, LIGHT_MPPS, flood, millions, network, trace, us};

/// Popularity of the flows.
const ZIPF: f64 = 0.99;

/// Table 3.3.
pub fn functions(command: &LabCommand, settings: &Settings) -> Result<PaperFigure> {
    let (light, flood) = (trace(settings, LIGHT_MPPS, ZIPF), flood(settings, ZIPF));
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for function in NetworkFunction::ALL {
        let mut row: Vec<Cell> = vec![function.title().into()];
        for cache in [0, CACHE] {
            let place = TablePlace::Servers { servers: 1, cache };
            let lab = RemoteLab { name: "functions", function, place, others: None, faults: "" };
            let results = lab.run(command, &light)?;
            let times: SortedValues = results.times_ns().collect();
            let rate = lab.run(command, &flood)?.rate()?;
            row.extend([us(&times, 0.5), Cell::Number(results.mean_ns() / 1e3, 3), millions(rate)]);
            bars.push((format!("{}, {}", function.title(), if cache > 0 { "cache" } else { "no cache" }), rate / 1e6));
        }
        let lab = RemoteLab { name: "functions", function, place: TablePlace::Local, others: None, faults: "" };
        let ns = lab.bench(command, &light)?;
        row.extend([Cell::Number(ns / 1e3, 3), Cell::Number(1e3 / ns, 2)]);
        rows.push(row);
    }
    Ok(PaperFigure {
        name: "t3.3",
        title: "Network functions with one server",
        clock: FigureClock::Simulated,
        columns: vec![
            "function",
            "no cache: p50, us",
            "mean, us",
            "Mpps",
            "cache: p50, us",
            "mean, us",
            "Mpps",
            "a core here: us a packet (CPU time)",
            "Mpps (CPU time)",
        ],
        rows,
        notes: vec![
            network(),
            format!(
                "Packets of 64 bytes (headers of the VPN gateway need 106), Zipf {ZIPF}; times at {LIGHT_MPPS} Mpps, \
                 rates with {FLOOD_MPPS:.0} Mpps offered. Packets of a flow that wait at the same time share a READ. \"A \
                 core here\": `triplane bench` runs the same program with a local table in memory, without ports."
            ),
        ],
        chart: Chart::Bars { y: "packets forwarded, Mpps", bars },
    })
}
