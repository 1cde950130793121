//! Renders benchmark results as text.

use std::fmt::Write;

use super::Results;
use super::breakdown::Breakdown;
use crate::output::{Output, grouped};
use v1model::Path;
use v1model_runtime::bench::memory::{BATCH, Counts};

/// Width of the longest bar, in columns.
const BAR: usize = 30;

/// Renders all results.
pub fn render(results: &Results, output: &Output) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut text, results, output);
    text
}

fn write_all(text: &mut String, results: &Results, output: &Output) -> std::fmt::Result {
    let Results { counts, measured, .. } = results;
    let runner = if results.compiled { "machine code" } else { "the interpreter" };
    writeln!(text, "{}", output.bold(&format!("{}: {runner} on one core, in memory", results.program)))?;
    if cfg!(debug_assertions) {
        writeln!(text, "  this is a debug build of triplane: measure with a release build")?;
    }
    if let Some(why) = &results.why_interpreted {
        writeln!(text, "  {why}: falling back to the interpreter")?;
    }
    writeln!(text)?;
    for (number, line) in wrapped(&results.traffic, 84).iter().enumerate() {
        writeln!(text, "  {:12}{line}", if number == 0 { "traffic" } else { "" })?;
    }
    let typical = measured.median_ns();
    let (p99, mean) = (measured.percentile_ns(99.0), measured.mean_ns());
    writeln!(text, "  {:12}{} packets/s", "speed", rate(typical))?;
    writeln!(text, "  {:12}median {} ns, p99 {} ns, mean {} ns", "per packet", ns(typical), ns(p99), ns(mean))?;
    let (fastest, slowest) =
        results.rounds.iter().fold((f64::MAX, 0f64), |(low, high), ns| (low.min(*ns), high.max(*ns)));
    let rounds = results.rounds.len();
    writeln!(
        text,
        "  {:12}over {} batches: a sample is the time of a batch of {BATCH} packets, divided by {BATCH}",
        "",
        grouped(measured.batches.count())
    )?;
    writeln!(text, "  {:12}{rounds} rounds with medians from {} to {} ns", "", ns(fastest), ns(slowest))?;
    if mean > typical * 1.2 {
        writeln!(text, "  {:12}other processes used the CPU at times: the mean is well above the median", "")?;
    }
    if let Some(interpreter) = &results.interpreter {
        let slow = interpreter.median_ns();
        writeln!(text, "  {:12}{} packets/s, median {} ns", "interpreter", rate(slow), ns(slow))?;
        writeln!(text, "  {:12}machine code is {:.1} times as fast", "", slow / typical.max(1e-9))?;
    }
    writeln!(text)?;
    let of_all = |count: u64| format!("{:>15}  {:5.1} %", grouped(count), share(count, counts.sent));
    writeln!(text, "  {:12}{:>15}", "sent", grouped(counts.sent))?;
    writeln!(text, "  {:12}{}", "forwarded", of_all(counts.forwarded))?;
    writeln!(text, "  {:12}{}", "dropped", of_all(counts.dropped))?;
    for site in &counts.drops {
        writeln!(text, "    {}", said(site))?;
    }
    let rest = [
        ("copies", counts.copies, "made by multicast and cloning"),
        ("to the CPU", counts.to_controller, "sent to the control plane"),
        ("waiting", counts.waiting, "in queues when the time was up"),
    ];
    for (name, count, what) in rest.into_iter().filter(|(_, count, _)| *count > 0) {
        writeln!(text, "  {name:12}{:>15}  {what}", grouped(count))?;
    }
    paths(text, counts)?;
    if counts.forwarded == 0 && counts.to_controller == 0 && counts.dropped > 0 {
        writeln!(text, "\n  Nothing was forwarded: this is the speed of dropping. Inspect such a packet with")?;
        writeln!(text, "  `triplane trace`, or use other frames (--traffic) or other entries (--entries).")?;
    }
    writeln!(text)?;
    breakdown(text, &results.breakdown, typical, output)?;
    writeln!(
        text,
        "\n  Parts are sampled in a second run, with instrumented code. There they add up to {} ns; here they are\n  \
         scaled to the {} ns of the first run.",
        ns(results.breakdown.sampled_ns),
        ns(typical)
    )
}

/// Writes the paths that packets took, with the reason where it was not the fastest. Without reasons there is one line.
fn paths(text: &mut String, counts: &Counts) -> std::fmt::Result {
    for (number, count) in counts.paths.iter().enumerate() {
        let name = if number == 0 { "path" } else { "" };
        let path = match count.path {
            Path::Batched => "in batches of up to 32, in place",
            Path::Single => "one at a time, in place",
            Path::Copied => "copied",
        };
        let (packets, share) = (grouped(count.packets), share(count.packets, counts.sent));
        writeln!(text, "  {name:12}{packets:>15}  {share:5.1} %  {path}")?;
        if let Some(reason) = count.reason {
            writeln!(text, "  {:12}{:>15}  {:>7}    because {reason}:", "", "", "")?;
            for line in wrapped(reason.remedy(), 70) {
                writeln!(text, "  {:12}{:>15}  {:>7}    {line}", "", "", "")?;
            }
        }
    }
    Ok(())
}

fn breakdown(text: &mut String, breakdown: &Breakdown, whole: f64, output: &Output) -> std::fmt::Result {
    let rows: Vec<_> = breakdown.shares.iter().map(|share| (share.kind.label(), share)).collect();
    let width = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0).max(30);
    let most = rows.iter().map(|(_, share)| share.ns).fold(0.0, f64::max).max(1e-9);
    writeln!(text, "{}", output.bold(&format!("  {:width$} {:>8}  {:>6}", "where the time goes", "ns", "share")))?;
    for (label, share) in &rows {
        let percent = share.ns / whole.max(1e-9) * 100.0;
        let bar = bar(share.ns / most);
        let rare = share.packets.filter(|part| !(0.995..1.005).contains(part));
        let rare = rare.map(|part| format!("  {}", often(part))).unwrap_or_default();
        let line = format!("  {label:width$} {:>8}  {percent:4.0} %  {bar}{rare}", ns(share.ns));
        writeln!(text, "{}", line.trim_end())?;
    }
    writeln!(text, "  {:width$} {:>8}   100 %", "all", ns(whole))?;
    if !breakdown.unused.is_empty() {
        writeln!(text, "  no packet reached {}", breakdown.unused.join(", "))?;
    }
    Ok(())
}

/// Formats a frequency: `25.0 % of packets`, or `1.50 times a packet`.
fn often(part: f64) -> String {
    if part < 1.0 { format!("{:.1} % of packets", part * 100.0) } else { format!("{part:.2} times per packet") }
}

/// Formats a drop site as a sentence with a readable count.
fn said(site: &switch::DropSite) -> String {
    let whole = site.to_string();
    let rest = whole.strip_prefix(&site.packets.to_string()).unwrap_or(&whole);
    format!("{}{rest}", grouped(site.packets))
}

fn bar(part: f64) -> String {
    let eighths = (part * (BAR * 8) as f64).round() as usize;
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{rest}", "█".repeat(eighths / 8))
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64 * 100.0
}

/// Formats nanoseconds with their significant digits.
pub fn ns(value: f64) -> String {
    if value < 1000.0 { format!("{value:.1}") } else { grouped(value.round() as u64) }
}

/// Formats the packets a second at `ns` nanoseconds a packet.
pub fn rate(ns: f64) -> String {
    amount(1e9 / ns.max(1e-9))
}

/// Formats a large number in words: `19.6 million`.
pub fn amount(value: f64) -> String {
    match value {
        1e6.. => format!("{:.2} million", value / 1e6),
        1e4.. => format!("{:.1} thousand", value / 1e3),
        _ => format!("{value:.0}"),
    }
}

/// Wraps words into lines of at most `width` characters; a longer word gets its own line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!((ns(51.04), ns(4721.6)), ("51.0".into(), "4,722".into()));
        assert_eq!(
            (rate(50.0), rate(20_000.0), rate(1e6)),
            ("20.00 million".into(), "50.0 thousand".into(), "1000".into())
        );
        assert_eq!((bar(1.0).chars().count(), &bar(0.0)[..], &bar(1.5 / 30.0)[..]), (BAR, "", "█▌"));
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
    }
}
