//! Renders errors of the client library as sentences with a remedy, in terms of the command's options.

use anyhow::anyhow;
use p4runtime_client::{CallError, Code, ConnectError, ElectionError, Rejection};

use crate::output::Failure;
use crate::server_options::{ServerOptions, causes};

/// Renders a failed connection attempt.
pub fn from_connect(error: &ConnectError, address: &str, options: &ServerOptions<'_>) -> Failure {
    let hint = if options.tls_ca.is_some() { "" } else { "; `triplane run PROG.p4 ... --p4runtime` starts a server" };
    let failed = format!("no P4Runtime server is listening on {address}");
    let sentence = match error {
        ConnectError::NotTls { .. } => {
            anyhow!("the server on {address} does not use TLS; omit --tls-ca and the other TLS options")
        }
        ConnectError::Handshake { failure, .. } => anyhow!("{}", options.handshake_sentence(failure)),
        ConnectError::Unreachable { source, .. } => anyhow!("{}{hint}", causes(&failed, source)),
        ConnectError::Timeout { after, .. } => anyhow!("no response from {address} within {} s{hint}", after.as_secs()),
        ConnectError::Start(source) => anyhow!("{}", causes("cannot start", source)),
    };
    sentence.into()
}

/// Renders a lost election.
pub fn from_election(error: &ElectionError) -> Failure {
    match error {
        ElectionError::OtherPrimary { election_id } => {
            let id = election_id.map_or(String::new(), |id| format!(", with election id {id}"));
            let next = election_id.and_then(|id| id.checked_add(1));
            let remedy = next.map_or(String::new(), |id| format!("; use --election-id {id} to replace it"));
            Failure::Input(format!("another controller is primary{id}{remedy}"))
        }
        ElectionError::TooLow { wanted, highest } => Failure::Input(format!(
            "election id {wanted} is below {highest}, the highest that the switch has seen; there is no primary, and \
             --election-id {highest} or higher would become it"
        )),
        ElectionError::Call(error) => from_call(error),
    }
}

/// Renders the failure of the first call on a connection. TLS may have failed only now.
pub fn from_first_call(error: &CallError, options: &ServerOptions<'_>) -> Failure {
    match (error, error.handshake_failure()) {
        (_, Some(failure)) => anyhow!("{}", options.handshake_sentence(&failure)).into(),
        (CallError::Transport(_), None) => anyhow!(
            "the server on {} closed the connection before its first response; {}",
            options.addr,
            options.broken_remedy()
        )
        .into(),
        _ => from_call(error),
    }
}

/// Renders a failed call, with a line for each update that the server rejected.
pub fn from_call(error: &CallError) -> Failure {
    match error {
        CallError::Timeout(_) => anyhow!("the server did not respond").into(),
        CallError::StreamEnded => anyhow!("the server closed the stream").into(),
        CallError::Transport(status) => {
            anyhow!("the connection to the server was lost ({})", coded(status.code(), status.message())).into()
        }
        CallError::Rejected(rejection) => {
            let text = reasons(rejection);
            match rejection.code {
                Code::Unavailable | Code::Cancelled => anyhow!("the connection to the server was lost: {text}").into(),
                _ => Failure::Input(text),
            }
        }
    }
}

/// Whether the server rejected a read only because this client may not read the objects.
pub fn is_denied(error: &CallError) -> bool {
    let CallError::Rejected(rejection) = error else { return false };
    match &*rejection.updates {
        [] => rejection.code == Code::PermissionDenied,
        each => each.iter().all(|one| one.code == Code::PermissionDenied),
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        from_call(&error)
    }
}

/// Returns the reason of a rejection in one sentence, for a stream that ended with it.
pub fn reason(error: &CallError) -> String {
    match error {
        CallError::Rejected(rejection) => coded(rejection.code, &rejection.message),
        CallError::Transport(status) => coded(status.code(), status.message()),
        other => other.to_string(),
    }
}

fn reasons(rejection: &Rejection) -> String {
    if rejection.updates.is_empty() {
        return coded(rejection.code, &rejection.message);
    }
    let lines: Vec<String> = rejection.updates.iter().map(|update| coded(update.code, &update.message)).collect();
    lines.join("\n")
}

/// Formats a code and a message from the server: `NOT_FOUND: there is none to delete`.
pub fn coded(code: Code, message: &str) -> String {
    let name = format!("{code:?}");
    let mut canonical = String::new();
    for (at, letter) in name.char_indices() {
        let is_word = at > 0 && letter.is_uppercase();
        canonical.extend(is_word.then_some('_').into_iter().chain(letter.to_uppercase()));
    }
    format!("{canonical}: {}", diagnostics::visible(message))
}
