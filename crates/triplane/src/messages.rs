//! What the switch tells the control plane: counted for the summary, and written down for who wants to read it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use ir::Program;
use p4runtime_server::Teller;
use serde_json::{Map, Value, json};
use switch::Notification;

use crate::output::Failure;

/// Messages of a run.
#[derive(Default)]
pub struct Messages {
    counts: BTreeMap<String, u64>,
    /// Shared with other workers' messages: whole lines go in.
    file: Option<Arc<Mutex<BufWriter<File>>>>,
    /// Why the file took no more.
    failed: Option<std::io::Error>,
    /// The P4Runtime server.
    teller: Option<Teller>,
}

impl Messages {
    /// Writes every message to a file, a JSON object a line.
    pub fn to_file(path: &Path) -> Result<Messages, Failure> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Messages { file: Some(Arc::new(Mutex::new(BufWriter::new(file)))), ..Messages::default() })
    }

    /// Passes every message on to a P4Runtime server too.
    #[must_use]
    pub fn and_tell(mut self, teller: Teller) -> Messages {
        self.teller = Some(teller);
        self
    }

    /// Takes what a switch told while it ran this program.
    pub fn take_all(&mut self, program: &Arc<Program>, told: Vec<Notification>) {
        told.iter().for_each(|notification| self.take(program, notification));
        if let Some(teller) = &self.teller {
            teller.tell(program, told);
        }
    }

    /// Takes one.
    fn take(&mut self, program: &Program, notification: &Notification) {
        let (what, message) = describe(program, notification);
        *self.counts.entry(what).or_default() += 1;
        let line = |file: &Arc<Mutex<BufWriter<File>>>| {
            writeln!(file.lock().unwrap_or_else(PoisonError::into_inner), "{message}")
        };
        if let Some(Err(error)) = self.file.as_ref().map(line) {
            self.failed = Some(error);
            self.file = None;
        }
    }

    /// Writes what is left.
    pub fn finish(&mut self) -> Result<(), Failure> {
        if let Some(error) = self.failed.take() {
            return Err(error.into());
        }
        let flush = |file: &Arc<Mutex<BufWriter<File>>>| file.lock().unwrap_or_else(PoisonError::into_inner).flush();
        Ok(self.file.as_ref().map_or(Ok(()), flush)?)
    }

    /// For another worker's messages, which go where these go.
    pub fn another(&self) -> Messages {
        Messages { file: self.file.clone(), teller: self.teller.clone(), ..Messages::default() }
    }

    /// Takes over what another worker's messages have counted, and why the file took no more.
    pub fn add(&mut self, other: &mut Messages) {
        for (what, count) in std::mem::take(&mut other.counts) {
            *self.counts.entry(what).or_default() += count;
        }
        self.failed = self.failed.take().or(other.failed.take());
    }

    /// Kinds of message and how many there were.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts.iter().map(|(what, count)| (what.as_str(), *count))
    }
}

/// A message's kind in words, and the message.
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
