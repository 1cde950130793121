//! Implements `triplane subscribe add`, `remove`, `list` and `watch`: the service's command-line client.

use anyhow::anyhow;
use diagnostics::visible;
use p4runtime_client::{Code, ConnectError, HandshakeFailure};
use serde_json::json;
use subscribe_service::client::{ServiceCallError, ServiceClient};
use subscribe_service::proto;

use super::args::{AddArgs, RemoveArgs, ServiceArgs};
use crate::output::{Failure, Output};
use crate::server_options::{ServerOptions, causes};

/// A connection, and the options that remedies depend on.
struct Session<'a> {
    client: ServiceClient,
    options: ServerOptions<'a>,
}

/// Why a watch ended: the call failed, or the output did.
enum WatchError {
    Call(ServiceCallError),
    Output(Failure),
}

impl From<ServiceCallError> for WatchError {
    fn from(error: ServiceCallError) -> WatchError {
        WatchError::Call(error)
    }
}

impl<'a> Session<'a> {
    fn connect(args: &'a ServiceArgs) -> Result<Session<'a>, Failure> {
        let options = args.server_options();
        let target = options.target()?;
        let connected = ServiceClient::connect(&target);
        let client = connected.map_err(|error| connect_failure(&error, target.address(), &options))?;
        Ok(Session { client, options })
    }

    /// Renders a failed call, with a remedy.
    fn failure(&self, error: &ServiceCallError) -> Failure {
        let (code, text) = match error {
            ServiceCallError::Timeout(after) => {
                return anyhow!(
                    "the service did not answer in {} s; `triplane subscribe list` shows the current rules",
                    after.as_secs()
                )
                .into();
            }
            ServiceCallError::Transport(status) => {
                if let Some(failure) = HandshakeFailure::of(&**status) {
                    return anyhow!("{}", self.options.handshake_sentence(&failure)).into();
                }
                let causes = std::error::Error::source(&**status).map_or(String::new(), |cause| causes("", cause));
                return anyhow!("the connection to the service was lost{causes}; {}", self.options.broken_remedy())
                    .into();
            }
            ServiceCallError::Rejected { code, message } => (*code, visible(message)),
        };
        match code {
            Code::Unimplemented => {
                anyhow!("the server at this address is not `triplane subscribe serve`: is it the switch's own address?")
                    .into()
            }
            Code::Unavailable | Code::Cancelled | Code::Unknown => Failure::Environment(anyhow!("{}", text.trim_end())),
            Code::InvalidArgument => Failure::Input(format!("nothing was changed\n{}", text.trim_end())),
            _ => Failure::Input(text),
        }
    }
}

/// Renders a failed connection attempt, with a remedy.
fn connect_failure(error: &ConnectError, address: &str, options: &ServerOptions<'_>) -> Failure {
    let failed = format!("no subscription service is listening on {address}");
    let hint = if options.tls_ca.is_some() { "" } else { "; `triplane subscribe serve FORMAT RULES` starts one" };
    let sentence = match error {
        ConnectError::NotTls { .. } => {
            anyhow!("the service on {address} does not use TLS; leave out --tls-ca and the other TLS options")
        }
        ConnectError::Handshake { failure, .. } => anyhow!("{}", options.handshake_sentence(failure)),
        ConnectError::Unreachable { source, .. } => anyhow!("{}{hint}", causes(&failed, source)),
        ConnectError::Timeout { after, .. } => anyhow!("{failed} within {} s{hint}", after.as_secs()),
        ConnectError::Start(source) => anyhow!("{}", causes("cannot start", source)),
    };
    sentence.into()
}

/// Adds rules.
pub fn add(args: &AddArgs, output: &Output) -> Result<(), Failure> {
    let session = Session::connect(&args.service)?;
    let done = session.client.subscribe(args.rules.join("\n")).map_err(|error| session.failure(&error))?;
    if args.service.json {
        return output.print(&format!("{:#}\n", json!({ "ids": done.ids, "writes": done.writes })));
    }
    output.print(&done.ids.iter().map(|id| format!("{id}\n")).collect::<String>())
}

/// Removes rules.
pub fn remove(args: &RemoveArgs, output: &Output) -> Result<(), Failure> {
    let session = Session::connect(&args.service)?;
    let done = session.client.unsubscribe(args.ids.clone()).map_err(|error| session.failure(&error))?;
    if args.service.json {
        return output.print(&format!("{:#}\n", json!({ "writes": done.writes })));
    }
    Ok(())
}

/// Lists rules.
pub fn list(args: &ServiceArgs, output: &Output) -> Result<(), Failure> {
    let session = Session::connect(args)?;
    let rules = session.client.list().map_err(|error| session.failure(&error))?;
    if args.json {
        let rule = |rule: &proto::Rule| {
            let owner = Some(&rule.owner).filter(|owner| !owner.is_empty());
            json!({ "id": rule.id, "rule": rule.text, "in_file": rule.in_file, "owner": owner })
        };
        return output.print(&format!("{:#}\n", json!(rules.iter().map(rule).collect::<Vec<_>>())));
    }
    let width = rules.last().map_or(0, |rule| rule.id.to_string().len());
    let line = |rule: &proto::Rule| {
        let from = if rule.in_file { "file " } else { "added" };
        // A rule of several lines is shown in one.
        let text: Vec<&str> = rule.text.split_whitespace().collect();
        let owner = if rule.owner.is_empty() { String::new() } else { format!("  // {}", rule.owner) };
        format!("{:>width$}  {from}  {}\n", rule.id, visible(&(text.join(" ") + &owner)))
    };
    output.print(&rules.iter().map(line).collect::<String>())
}

/// Prints the status of the service and every change of it, until the service ends.
pub fn watch(args: &ServiceArgs, output: &Output) -> Result<(), Failure> {
    let session = Session::connect(args)?;
    let watched =
        session.client.watch(|status| output.print(&status_line(&status, args.json)).map_err(WatchError::Output));
    watched.map_err(|error| match error {
        WatchError::Call(error) => session.failure(&error),
        WatchError::Output(failure) => failure,
    })
}

fn status_line(status: &proto::Status, is_json: bool) -> String {
    let proto::Status { installed, detail, rules, rules_in_file, changes, mistakes } = status;
    if is_json {
        let object = json!({ "installed": installed, "detail": detail, "rules": rules, "rules_in_file": rules_in_file,
            "changes": changes, "mistakes": mistakes });
        return format!("{object}\n");
    }
    let wrong = if mistakes.is_empty() { "" } else { "; the rules file has errors" };
    let detail = visible(detail);
    format!("{rules} rules, {rules_in_file} of them in the file; {changes} changes; {detail}{wrong}\n")
}
