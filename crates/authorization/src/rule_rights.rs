//! Rights of a user to change the rules of packet subscriptions.

use std::ops::RangeInclusive;

use crate::name_pattern::NamePattern;

/// The rules that a right extends to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleScope {
    /// No rule.
    None,
    /// The rules that the user added.
    #[default]
    Own,
    /// All rules.
    All,
}

/// The rights of a user over rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleRights {
    pub(crate) ports: Vec<RangeInclusive<u32>>,
    pub(crate) actions: Vec<NamePattern>,
    pub(crate) remove: RuleScope,
    pub(crate) list: RuleScope,
}

impl RuleRights {
    /// Whether the user may add any rule.
    pub fn may_add(&self) -> bool {
        !self.ports.is_empty() || !self.actions.is_empty()
    }

    /// Whether rules of the user may forward to this port.
    pub fn may_forward_to(&self, port: u32) -> bool {
        self.ports.iter().any(|ports| ports.contains(&port))
    }

    /// Whether rules of the user may have this action: `to_controller`, the name of an action, or that of a counter
    /// that a rule updates.
    pub fn may_call(&self, action: &str) -> bool {
        self.actions.iter().any(|pattern| pattern.matches(action))
    }

    /// Returns the rules that the user may remove.
    pub fn remove(&self) -> RuleScope {
        self.remove
    }

    /// Returns the rules that the user may list.
    pub fn list(&self) -> RuleScope {
        self.list
    }
}

impl RuleScope {
    /// Whether the scope includes a rule of `owner`, seen by `user`. Rules without an owner belong to nobody.
    pub fn includes(self, owner: Option<&str>, user: &str) -> bool {
        match self {
            RuleScope::None => false,
            RuleScope::Own => owner == Some(user),
            RuleScope::All => true,
        }
    }
}
