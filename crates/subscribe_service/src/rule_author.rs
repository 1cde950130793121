//! The client of a call: its name, and its rights where an authorization file restricts them.

use std::sync::Arc;

use authorization::{Policy, RuleRights, RuleScope, User, certificate_names};
use subscribe::{MessageFormat, Rule, RuleAction};

/// The name under which `to_controller` appears among the actions of an authorization file.
const TO_CONTROLLER: &str = "to_controller";

/// The client of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleAuthor {
    /// The name in its certificate, if it has one. It owns the rules that the client adds.
    name: Option<Arc<str>>,
    /// The user with its rights; `None` if no authorization file is used.
    user: Option<User>,
}

impl RuleAuthor {
    /// Returns the client with this certificate (DER).
    ///
    /// # Errors
    /// If there is a policy and it has no entry for the certificate's names.
    pub fn of(policy: Option<&Policy>, certificate: Option<&[u8]>) -> Result<RuleAuthor, String> {
        let names = certificate.map(certificate_names).unwrap_or_default();
        match policy {
            None => Ok(RuleAuthor { name: names.first().map(|name| name.text.as_str().into()), user: None }),
            Some(policy) => {
                let user = policy.user(&names).map_err(|unknown| unknown.to_string())?;
                Ok(RuleAuthor { name: Some(user.name().clone()), user: Some(user) })
            }
        }
    }

    /// Returns the owner of the rules that the client adds.
    pub fn owner(&self) -> Option<Arc<str>> {
        self.name.clone()
    }

    /// Checks a right, if the client's rights are restricted. `action` names what is denied.
    fn require(
        &self,
        has_right: impl FnOnce(&RuleRights) -> bool,
        action: impl FnOnce() -> String,
    ) -> Result<(), String> {
        match &self.user {
            Some(user) if !user.rules().is_some_and(has_right) => Err(user.denial(&action())),
            _ => Ok(()),
        }
    }

    /// Checks that the client may add any rule at all.
    pub fn check_adds(&self) -> Result<(), String> {
        self.require(RuleRights::may_add, || "add rules".to_owned())
    }

    /// Checks that the client may add a rule with these ports and actions.
    pub fn check_add(&self, rule: &Rule, format: &MessageFormat) -> Result<(), String> {
        for action in &rule.actions {
            let name = match action {
                RuleAction::Forward(ports) => {
                    for port in ports {
                        let action = || format!("add rules that forward to port {port}");
                        self.require(|rights| rights.may_forward_to(*port), action)?;
                    }
                    continue;
                }
                RuleAction::Drop => continue,
                RuleAction::ToController => TO_CONTROLLER,
                RuleAction::Call(action, _) => &format.actions()[usize::from(action.0)].name,
                RuleAction::Update(update) => &format.counters()[usize::from(update.counter.0)].name,
            };
            self.require(|rights| rights.may_call(name), || format!("add rules with the action `{name}`"))?;
        }
        Ok(())
    }

    /// Checks that the client may remove a rule.
    pub fn check_remove(&self, id: u64, owner: Option<&str>) -> Result<(), String> {
        let action = || match owner {
            Some(_) => format!("remove rule {id}, which another user added"),
            None => format!("remove rule {id}, which has no owner"),
        };
        self.require(|rights| rights.remove().includes(owner, self.name.as_deref().unwrap_or_default()), action)
    }

    /// Checks that the client may list rules and follow the status.
    pub fn check_list(&self) -> Result<(), String> {
        self.require(|rights| rights.list() != RuleScope::None, || "list rules".to_owned())
    }

    /// Whether the client may see all rules.
    pub fn sees_all(&self) -> bool {
        self.require(|rights| rights.list() == RuleScope::All, String::new).is_ok()
    }

    /// Whether the client may see a rule. Rules of the file have no owner.
    pub fn may_see(&self, owner: Option<&str>) -> bool {
        let name = self.name.as_deref().unwrap_or_default();
        self.require(|rights| rights.list().includes(owner, name), String::new).is_ok()
    }
}
