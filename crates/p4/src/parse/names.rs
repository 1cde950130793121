//! Tracks scopes of names, to tell types from values.

use std::collections::HashMap;
use std::sync::Arc;

/// Meaning of a name to the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A type, or anything that is instantiated like one: parsers, controls, packages, externs.
    Type,
    /// A variable, constant, parameter, function, action, table or instance.
    Value,
}

/// The names declared so far, in nested scopes.
pub(super) struct NameScopes(Vec<HashMap<Arc<str>, Meaning>>);

impl Default for NameScopes {
    fn default() -> Self {
        NameScopes(vec![HashMap::new()])
    }
}

impl NameScopes {
    /// Opens a scope.
    pub fn open(&mut self) {
        self.0.push(HashMap::new());
    }

    /// Closes the innermost scope.
    pub fn close(&mut self) {
        self.0.pop();
    }

    /// Returns the number of open scopes.
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// Closes scopes until `depth` are open: a mistake may have left some open.
    pub fn close_to(&mut self, depth: usize) {
        self.0.truncate(depth);
    }

    /// Declares `name` in the innermost scope.
    pub fn declare(&mut self, name: &Arc<str>, meaning: Meaning) {
        if let Some(scope) = self.0.last_mut() {
            scope.insert(name.clone(), meaning);
        }
    }

    /// Returns the meaning of `name` here, or at top level if `absolute`.
    pub fn meaning(&self, name: &str, absolute: bool) -> Option<Meaning> {
        let visible = if absolute { &self.0[..1] } else { &self.0[..] };
        visible.iter().rev().find_map(|scope| scope.get(name).copied())
    }
}
