//! Implements `--state-dir`: the pipeline and its entries outlive the switch.
//!
//! The stored pipeline takes precedence over the program of the command line, since a controller may have set another
//! one. The command line may leave the program out. If it names one, it must be the program that it named first;
//! otherwise a user who changed the program would not see why the old one runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use p4runtime_proto::v1::ForwardingPipelineConfig;
use p4runtime_server::store::{DiskError, DiskStore, Store, StoreError, StoredRows, StoredState};
use p4runtime_server::{KeptArrays, Pipeline, RestoredArrays, RestoredUpdates, Server, SwitchBuilder};
use v1model::Switch;

use crate::load::{ARCHITECTURE, Loader, PLACEHOLDER, ProgramArgs};
use crate::output::{Failure, Output};

/// The name under which the text of the command line's program is stored.
const PROGRAM: &str = "program";

/// An open state directory.
pub struct State {
    /// The store of the switch's writes.
    pub store: DiskStore,
    /// The pipelines that were stored before.
    pub kept: Option<StoredState>,
    directory: PathBuf,
}

/// The program that a switch runs when it starts.
pub struct InitialProgram {
    /// As the switch runs it.
    pub program: Arc<ir::Program>,
    /// As a controller knows it, if that was asked for.
    pub pipeline: Option<Pipeline>,
    /// The one that was read from a file, for its entries.
    pub loader: Option<Loader>,
    /// Whether it only drops packets until a controller sets a pipeline.
    pub is_placeholder: bool,
    /// Its name, for people.
    pub name: String,
}

impl State {
    /// Opens a directory, or creates it.
    pub fn open(directory: &Path) -> Result<State, Failure> {
        let opened = DiskStore::open(directory).map_err(|error| match error {
            DiskError::Format(_) => Failure::Input(error.to_string()),
            error => Failure::Environment(error.into()),
        });
        let store = opened?;
        let kept = store.load().map_err(|error| broken(directory, &error))?;
        Ok(State { store, kept, directory: directory.to_owned() })
    }

    /// Returns the pipeline that ran last.
    pub fn committed(&self) -> Option<&ForwardingPipelineConfig> {
        self.kept.as_ref()?.committed.as_ref()
    }

    /// Compares the text of the command line's program with the first one, or stores it as the first.
    fn check(&self, text: &[u8]) -> Result<(), Failure> {
        let directory = self.directory.display();
        let fail = |error: StoreError| broken(&self.directory, &error);
        if self.committed().is_none() {
            return self.store.set_metadata(PROGRAM, text).map_err(fail);
        }
        if self.store.metadata(PROGRAM).map_err(fail)?.as_deref() == Some(text) {
            Ok(())
        } else {
            Err(Failure::Input(format!(
                "the state directory {directory} belongs to another program, or to an earlier version of this one; \
                 omit PROG.p4 to continue with the stored state, or use another directory to start this program \
                 without it"
            )))
        }
    }

    /// Returns the server with the pipeline to run, if there is one, and with the stored state, which is written to
    /// `switch`, row by row. A pipeline that was saved but not committed gets its own switch. Notes report the outcome.
    pub fn restore(
        &self,
        mut server: Server,
        pipeline: Option<Pipeline>,
        switch: &mut Switch,
        builder: &SwitchBuilder,
        output: &Output,
    ) -> Result<Server, Failure> {
        let directory = self.directory.display();
        let fail = |error: StoreError| broken(&self.directory, &error);
        if let Some(pipeline) = pipeline {
            server = if self.committed().is_some() {
                let restored = server.with_restored(pipeline, &self.store, switch);
                let (mut server, restored) = restored.map_err(fail)?;
                let generation = self.kept.as_ref().map_or(0, |kept| kept.generation);
                self.report(&format!("restored from {directory}: pipeline {generation}"), &restored, output);
                self.restore_arrays(&mut server, switch, output).map_err(fail)?;
                server
            } else {
                server.with_pipeline(pipeline, switch)
            };
        }
        let Some(saved) = self.kept.as_ref().and_then(|kept| kept.saved.as_ref()) else { return Ok(server) };
        let made =
            Pipeline::compile(saved.clone(), ARCHITECTURE).map_err(|refusal| refusal.message).and_then(|pipeline| {
                let switch = builder(pipeline.program().clone()).map_err(|error| error.to_string())?;
                Ok((pipeline, switch))
            });
        match made {
            Ok((pipeline, switch)) => {
                let (with_saved, restored) = server.with_saved(pipeline, &self.store, switch).map_err(fail)?;
                server = with_saved;
                let what = format!("restored from {directory}: a saved pipeline that awaits COMMIT");
                self.report(&what, &restored, output);
            }
            Err(why) => output.note(&format!(
                "the saved, uncommitted pipeline in {directory} cannot be run here and so cannot be committed: {why}"
            )),
        }
        Ok(server)
    }

    /// Restores the elements of kept arrays, and notes the outcome.
    fn restore_arrays(&self, server: &mut Server, switch: &mut Switch, output: &Output) -> Result<(), StoreError> {
        let mut is_empty = true;
        self.store.visit(StoredRows::Arrays, &mut |_, _| is_empty = false)?;
        if is_empty {
            return Ok(());
        }
        let directory = self.directory.display();
        if server.settings().kept_arrays == KeptArrays::default() {
            output.note(&format!(
                "registers and counters in {directory} stay there and are not restored: they need --keep"
            ));
            return Ok(());
        }
        let RestoredArrays { elements, lost } = server.restore_arrays(&self.store, switch)?;
        output.note(&format!("restored from {directory}: {elements} elements of registers and counters"));
        for array in lost {
            output.note(&format!("not restored: {array}, which the program does not have in this width and size"));
        }
        Ok(())
    }

    /// Notes the number of updates that were restored, and those that were lost.
    fn report(&self, what: &str, restored: &RestoredUpdates, output: &Output) {
        output.note(&format!("{what}, with {} updates", restored.written));
        if restored.lost == 0 {
            return;
        }
        output.note(&format!(
            "{} more updates are damaged or do not fit this switch; they remain in {} and are retried at the next \
             start:",
            restored.lost,
            self.directory.display(),
        ));
        restored.messages.iter().for_each(|message| output.note(&format!("  {message}")));
        if restored.lost > restored.messages.len() {
            output.note(&format!("  and {} more", restored.lost - restored.messages.len()));
        }
    }
}

fn broken(directory: &Path, error: &StoreError) -> Failure {
    Failure::Environment(anyhow::anyhow!("cannot use the state directory {}: {error}", directory.display()))
}

/// Returns the program to run: the stored one, or the one of the command line.
pub fn program(
    args: Option<&ProgramArgs>,
    state: Option<&State>,
    is_served: bool,
    output: &Output,
) -> Result<InitialProgram, Failure> {
    let kept = state.and_then(|state| Some((state, state.committed()?)));
    let Some(args) = args else {
        return match kept {
            Some((state, kept)) => compile(state, kept),
            None if is_served => placeholder(output),
            None => Err(Failure::Usage(
                "a program (PROG.p4) is required; with --p4runtime a controller can set it instead".to_owned(),
            )),
        };
    };
    let mut loader = Loader::open(args)?;
    let (program, pipeline) = if is_served {
        let pipeline = loader.pipeline(output)?;
        (pipeline.program().clone(), Some(pipeline))
    } else {
        (loader.program(output)?, None)
    };
    if let (Some(state), Some(pipeline)) = (state, &pipeline) {
        state.check(pipeline.source())?;
    }
    let name = args.program.display().to_string();
    match (kept, pipeline) {
        (Some((state, kept)), Some(pipeline)) => {
            if kept.p4_device_config == pipeline.source() {
                let pipeline = Some(pipeline.sent_as(kept.clone()));
                Ok(InitialProgram { program, pipeline, loader: Some(loader), name, is_placeholder: false })
            } else {
                compile(state, kept)
            }
        }
        (_, pipeline) => Ok(InitialProgram { program, pipeline, loader: Some(loader), name, is_placeholder: false }),
    }
}

/// Returns the program of a switch that waits for a pipeline: it drops every packet.
fn placeholder(output: &Output) -> Result<InitialProgram, Failure> {
    let (name, text) = PLACEHOLDER;
    let program = Loader::builtin(name, text).program(output)?;
    Ok(InitialProgram { program, pipeline: None, loader: None, name: name.to_owned(), is_placeholder: true })
}

/// Compiles the pipeline that a controller had sent.
fn compile(state: &State, kept: &ForwardingPipelineConfig) -> Result<InitialProgram, Failure> {
    let directory = state.directory.display();
    let pipeline = Pipeline::compile(kept.clone(), ARCHITECTURE).map_err(|refusal| {
        Failure::Input(format!(
            "the program in the state directory {directory} cannot be compiled on its own; if it needs other files or \
             macros, give it on the command line as before: {}",
            refusal.message
        ))
    })?;
    let name = format!("the program in {directory}");
    let program = pipeline.program().clone();
    Ok(InitialProgram { program, pipeline: Some(pipeline), loader: None, name, is_placeholder: false })
}
