//! The common part of targets whose inputs are texts in a format: inputs come from mutation, a reader returns either a
//! value or findings, and findings can be rendered.

use diagnostics::{Diagnostics, FileId, SourceMap};

use super::{FuzzTarget, Reached};
use crate::random::Random;
use crate::worker;

/// A format.
pub trait Format {
    /// The value that a valid text of this format stands for.
    type Value;

    /// Name of files of this format.
    fn file_name(&self) -> &'static str;

    /// Reads a text.
    fn read(&self, map: &SourceMap, file: FileId, diagnostics: &mut Diagnostics) -> Option<Self::Value>;

    /// Panics if a property does not hold for a value that was read.
    fn hold(&self, value: Self::Value, reached: &mut Reached);
}

/// Texts of a format.
pub struct Texts<F> {
    format: F,
    inputs: Vec<Vec<u8>>,
}

impl<F> Texts<F> {
    /// Mutations of these inputs.
    pub fn new(format: F, inputs: Vec<Vec<u8>>) -> Texts<F> {
        Texts { format, inputs }
    }
}

impl<F: Format> FuzzTarget for Texts<F> {
    fn seeds(&self) -> Vec<Vec<u8>> {
        self.inputs.clone()
    }

    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        worker::mutated(&self.inputs, random)
    }

    fn run(&mut self, input: &[u8]) -> Vec<u64> {
        let mut reached = Reached::default();
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let file = map.add(self.format.file_name(), String::from_utf8_lossy(input));
        let value = self.format.read(&map, file, &mut diagnostics);
        assert_eq!(value.is_none(), diagnostics.has_errors(), "there is a value if and only if there is no mistake");
        reached.findings(&map, &diagnostics);
        if let Some(value) = value {
            self.format.hold(value, &mut reached);
        }
        reached.list()
    }

    fn keep(&mut self, input: Vec<u8>) {
        worker::remember(&mut self.inputs, input);
    }
}
