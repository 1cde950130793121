//! Logs a switch's notifications: counts them for the summary, and writes them to a file if one is given.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use ir::Program;
use runtime::NotificationSink;
use serde_json::{Map, Value, json};
use switch::Notification;

use crate::output::Failure;

/// The notifications of a run. All workers share it.
#[derive(Default)]
pub struct MessageLog(Mutex<LogState>);

#[derive(Default)]
struct LogState {
    counts: BTreeMap<String, u64>,
    file: Option<BufWriter<File>>,
    /// The error that ended the writing of the file.
    failure: Option<io::Error>,
}

impl MessageLog {
    /// Returns a log that also writes every notification to a file, one JSON object a line.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn to_file(path: &Path) -> Result<MessageLog, Failure> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(MessageLog(Mutex::new(LogState { file: Some(BufWriter::new(file)), ..LogState::default() })))
    }

    /// Writes buffered lines to the file.
    ///
    /// # Errors
    /// If this or an earlier write failed.
    pub fn finish(&self) -> Result<(), Failure> {
        let mut state = self.state();
        if let Some(error) = state.failure.take() {
            return Err(error.into());
        }
        Ok(state.file.as_mut().map_or(Ok(()), Write::flush)?)
    }

    /// Returns the number of notifications by kind, in words.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.state().counts.clone()
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NotificationSink for MessageLog {
    fn receive(&self, program: &Arc<Program>, notifications: &[Notification]) {
        let mut state = self.state();
        for notification in notifications {
            let (kind, message) = describe(program, notification);
            *state.counts.entry(kind).or_default() += 1;
            if let Some(Err(error)) = state.file.as_mut().map(|file| writeln!(file, "{message}")) {
                state.failure = Some(error);
                state.file = None;
            }
        }
    }
}

/// Returns a notification's kind in words, and the notification as JSON.
fn describe(program: &Program, notification: &Notification) -> (String, Value) {
    match notification {
        Notification::Digest { digest, values, time } => {
            let digest = &program.digests[*digest];
            let fields: Map<String, Value> = digest
                .fields
                .iter()
                .zip(values)
                .map(|((name, _), value)| (name.clone(), Value::from(format!("{value:#x}"))))
                .collect();
            let message = json!({ "time_ns": time.as_ns(), "digest": digest.name, "fields": fields });
            (format!("digests `{}`", digest.name), message)
        }
        Notification::PacketIn { port, data, time } => {
            let bytes: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
            let message = json!({ "time_ns": time.as_ns(), "packet_in": bytes, "port": port.0 });
            ("packets to the CPU port".to_owned(), message)
        }
        Notification::IntReport { report, time } => {
            let bytes: String = report.iter().map(|byte| format!("{byte:02x}")).collect();
            ("INT reports".to_owned(), json!({ "time_ns": time.as_ns(), "int_report": bytes }))
        }
        Notification::IdleTimeout { table, entry, time } => {
            let table = &program.tables[*table];
            let named = table.keys.iter().filter(|key| key.kind != ir::MatchKind::Selector).zip(&entry.keys);
            let keys: Map<String, Value> =
                named.map(|(key, value)| (key.name.clone(), Value::from(value.to_string()))).collect();
            let message = json!({ "time_ns": time.as_ns(), "idle_entry_of": table.name, "match": keys,
                "priority": entry.priority });
            (format!("idle entries of `{}`", table.name), message)
        }
    }
}
