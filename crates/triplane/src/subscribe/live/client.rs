//! `triplane subscribe add`, `remove`, `list` and `watch`: clients of the service.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, anyhow};
use diagnostics::visible;
use serde_json::json;
use subscribe_service::proto;
use subscribe_service::proto::subscriptions_client::SubscriptionsClient;
use tokio::runtime::Runtime;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::args::{AddArgs, RemoveArgs, ServiceArgs};
use crate::dial::{causes, is_plain};
use crate::output::{Failure, Output};

/// How long the service may take: large changes are compiled, and may wait for others. It gives up before, and says so.
const PATIENCE: Duration = Duration::from_secs(120);

struct Client {
    runtime: Runtime,
    stub: SubscriptionsClient<Channel>,
    is_tls: bool,
    has_certificate: bool,
}

impl Client {
    fn connect(args: &ServiceArgs) -> Result<Client, Failure> {
        let dial = args.dial();
        let (address, is_tls, has_certificate) = (dial.address(), dial.tls_ca.is_some(), dial.tls_cert.is_some());
        let endpoint = dial.endpoint()?.connect_timeout(Duration::from_secs(5)).tcp_nodelay(true);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
        let channel = runtime.block_on(async { endpoint.connect().await }).map_err(|error| {
            let causes = causes(&format!("no service of subscriptions answers on {address}"), &error);
            match is_tls {
                true if is_plain(&causes) => {
                    anyhow!("the service on {address} does not use TLS; leave out --tls-ca and what goes with it")
                }
                true => anyhow!("{causes}"),
                false => anyhow!("{causes}; `triplane subscribe serve FORMAT RULES` starts one"),
            }
        })?;
        Ok(Client { runtime, stub: SubscriptionsClient::new(channel), is_tls, has_certificate })
    }

    fn call<T>(&self, future: impl Future<Output = Result<T, Status>>) -> Result<T, Failure> {
        match self.runtime.block_on(async { tokio::time::timeout(PATIENCE, future).await }) {
            Ok(result) => result.map_err(|status| self.failure(&status)),
            Err(_) => Err(anyhow!(
                "the service did not answer in {} s; `triplane subscribe list` tells which rules there are",
                PATIENCE.as_secs()
            )
            .into()),
        }
    }

    fn failure(&self, status: &Status) -> Failure {
        if let Some(cause) = std::error::Error::source(status) {
            let causes = causes("", cause);
            // Whom a server of TLS does not let in hears of it late, and not always why.
            let remedy = match (self.is_tls, self.has_certificate) {
                (false, _) => "if it uses TLS, give --tls-ca, the authority that signed its certificate",
                (true, false) => "if it lets only clients with a certificate in, give --tls-cert and --tls-key",
                (true, true) => "it may let only clients in whose certificate another authority signed",
            };
            return anyhow!("the service went away{causes}; {remedy}").into();
        }
        let text = visible(status.message());
        match status.code() {
            Code::Unimplemented => {
                anyhow!("what answers there is not `triplane subscribe serve`: is it the switch's own address?").into()
            }
            Code::Unavailable | Code::Cancelled | Code::Unknown => Failure::Environment(anyhow!("{}", text.trim_end())),
            Code::InvalidArgument => Failure::Input(format!("nothing was changed\n{}", text.trim_end())),
            _ => Failure::Input(text),
        }
    }
}

/// Adds rules.
pub fn add(args: &AddArgs, output: &Output) -> Result<(), Failure> {
    let client = Client::connect(&args.service)?;
    let rules = args.rules.join("\n");
    let mut stub = client.stub.clone();
    let done = client.call(async { stub.subscribe(proto::SubscribeRequest { rules }).await })?.into_inner();
    if args.service.json {
        return output.print(&format!("{:#}\n", json!({ "ids": done.ids, "writes": done.writes })));
    }
    output.print(&done.ids.iter().map(|id| format!("{id}\n")).collect::<String>())
}

/// Takes rules away.
pub fn remove(args: &RemoveArgs, output: &Output) -> Result<(), Failure> {
    let client = Client::connect(&args.service)?;
    let mut stub = client.stub.clone();
    let request = proto::UnsubscribeRequest { ids: args.ids.clone() };
    let done = client.call(async { stub.unsubscribe(request).await })?.into_inner();
    if args.service.json {
        return output.print(&format!("{:#}\n", json!({ "writes": done.writes })));
    }
    Ok(())
}

/// Lists rules.
pub fn list(args: &ServiceArgs, output: &Output) -> Result<(), Failure> {
    let client = Client::connect(args)?;
    let mut stub = client.stub.clone();
    let mut answers = client.call(async { stub.list(proto::ListRequest {}).await })?.into_inner();
    let mut all = Vec::new();
    while let Some(answer) = client.call(answers.message())? {
        all.extend(answer.rules);
    }
    if args.json {
        let rule = |rule: &proto::Rule| json!({ "id": rule.id, "rule": rule.text, "in_file": rule.in_file });
        return output.print(&format!("{:#}\n", json!(all.iter().map(rule).collect::<Vec<_>>())));
    }
    let width = all.last().map_or(0, |rule| rule.id.to_string().len());
    let line = |rule: &proto::Rule| {
        let from = if rule.in_file { "file " } else { "added" };
        // A rule over several lines is shown in one.
        let text: Vec<&str> = rule.text.split_whitespace().collect();
        format!("{:>width$}  {from}  {}\n", rule.id, visible(&text.join(" ")))
    };
    output.print(&all.iter().map(line).collect::<String>())
}

/// Shows how things stand, and each change of that, until the service ends.
pub fn watch(args: &ServiceArgs, output: &Output) -> Result<(), Failure> {
    let client = Client::connect(args)?;
    let mut stub = client.stub.clone();
    let mut answers = client.call(async { stub.watch(proto::WatchRequest {}).await })?.into_inner();
    loop {
        let next = client.runtime.block_on(answers.message()).map_err(|status| client.failure(&status))?;
        let Some(status) = next else { return Ok(()) };
        let proto::Status { installed, detail, rules, rules_in_file, changes, mistakes } = status;
        output.print(&match args.json {
            true => format!(
                "{}\n",
                json!({ "installed": installed, "detail": detail, "rules": rules, "rules_in_file": rules_in_file,
                    "changes": changes, "mistakes": mistakes })
            ),
            false => {
                let wrong = if mistakes.is_empty() { "" } else { "; the file of rules has mistakes" };
                let detail = visible(&detail);
                format!("{rules} rules, {rules_in_file} of them in the file; {changes} changes; {detail}{wrong}\n")
            }
        })?;
    }
}
