//! Defines the command lines of the commands for rules of a running switch.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::server_options::{OPTIONS, ServerOptions};
use crate::subscribe::args::{FormatArgs, ShapeArgs};

pub const SERVE_AFTER_HELP: &str = "\
Examples:
  triplane run feed-tables.p4 --port 1=eth1 --port 2=eth2 --p4runtime
  triplane subscribe serve feed.p4 rules.sub
  triplane subscribe add 'stock == \"GOOGL\" : fwd(2)'

To serve other machines, over TLS, and only clients with a certificate:
  triplane subscribe serve feed.p4 rules.sub --listen 0.0.0.0:9560 \\
      --tls-cert service.pem --tls-key service.key --tls-ca users.pem
  triplane subscribe list --service feeds.example:9560 \\
      --tls-ca ca.pem --tls-cert me.pem --tls-key me.key
--authorize users.toml says which user may add, remove and list which rules
(docs/authorization.md).

Privileges: none are needed, except for a port below 1024:
  sudo setcap cap_net_bind_service+ep triplane
The service gives up all capabilities before it serves clients, and opens no other
files than those beside its rules and in the directory of --keep (Landlock).

If the switch runs another program, the service loads its own. When the rules file
changes, so do the switch's tables; if it has errors, they are reported and nothing changes.";

/// `triplane subscribe serve`.
#[derive(Args, Debug)]
#[command(after_help = SERVE_AFTER_HELP)]
pub struct ServeArgs {
    /// The format.
    #[command(flatten)]
    pub format: FormatArgs,
    /// The rules file; it and all files that it includes are watched.
    #[arg(value_name = "RULES", value_hint = ValueHint::FilePath)]
    pub rules: PathBuf,
    /// The shape.
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// Address to listen on for subscribers: ADDRESS:PORT, or PORT alone for this machine only. Any client that reaches
    /// it can change rules, unless --tls-ca and --authorize restrict access.
    #[arg(long, value_name = "ADDR", default_value_t = service(), value_parser = crate::metrics::address, help_heading = "Subscribers")]
    pub listen: SocketAddr,
    /// Serve over TLS with this certificate (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key", help_heading = "Subscribers")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert", help_heading = "Subscribers")]
    pub tls_key: Option<PathBuf>,
    /// Accept only clients whose certificate is signed by this CA (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert", help_heading = "Subscribers")]
    pub tls_ca: Option<PathBuf>,
    /// Limit users, by the names in their certificates, to the rights in this file (TOML). Others are denied. Requires
    /// --tls-ca; changes take effect at the next start.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Subscribers")]
    pub authorize: Option<PathBuf>,
    /// Store the rules that clients add in this file, and load them at the next start. Without it, they are lost when
    /// the service stops.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub keep: Option<PathBuf>,
    /// Maximum number of rules.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub max_rules: usize,
    /// The controller's port.
    #[arg(long, value_name = "PORT", default_value_t = v1model::CPU_PORT.into(), value_parser = crate::control::nine_bit_cpu_port)]
    pub cpu_port: u32,
    /// Print the privileges that remain after everything is open: capabilities, and files restricted by Landlock.
    #[arg(long)]
    pub show_privileges: bool,
    /// The switch.
    #[command(flatten)]
    pub switch: SwitchArgs,
}

/// A switch's P4Runtime server.
#[derive(Args, Debug)]
pub struct SwitchArgs {
    /// The switch's P4Runtime server: ADDRESS:PORT.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9559", help_heading = "Switch")]
    pub addr: String,
    /// The P4Runtime device ID.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Switch")]
    pub device_id: u64,
    /// Write with this election ID, and replace a primary controller with a lower one. Without it, the service waits
    /// while another controller is primary.
    #[arg(long, value_name = "N", help_heading = "Switch")]
    pub election_id: Option<u128>,
    /// Never load the program: the switch already runs it (for example, compiled by p4c for BMv2).
    #[arg(long, help_heading = "Switch")]
    pub keep_program: bool,
    /// Use TLS to the switch, and accept only a certificate signed by this CA (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Switch")]
    pub switch_tls_ca: Option<PathBuf>,
    /// The client certificate, for switches that require one (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Switch")]
    pub switch_tls_cert: Option<PathBuf>,
    /// The private key of the client certificate (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Switch")]
    pub switch_tls_key: Option<PathBuf>,
    /// The name in the switch's certificate, if it differs from the host in --addr.
    #[arg(long, value_name = "NAME", help_heading = "Switch")]
    pub switch_tls_name: Option<String>,
}

impl SwitchArgs {
    /// Returns the options that say where the server is.
    pub fn server_options(&self) -> ServerOptions<'_> {
        ServerOptions {
            addr: &self.addr,
            tls_ca: self.switch_tls_ca.as_deref(),
            tls_cert: self.switch_tls_cert.as_deref(),
            tls_key: self.switch_tls_key.as_deref(),
            tls_name: self.switch_tls_name.as_deref(),
            options: ("--addr", "--switch-tls"),
        }
    }
}

/// TLS options of a client.
#[derive(Args, Clone, Debug)]
pub struct TlsArgs {
    /// Use TLS, and accept only a server certificate signed by this CA (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_ca: Option<PathBuf>,
    /// The client certificate, for servers that require one (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the client certificate (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,
    /// The name in the server's certificate, if it differs from the host in its address.
    #[arg(long, value_name = "NAME")]
    pub tls_name: Option<String>,
}

/// The options that say where the service is.
#[derive(Args, Debug)]
pub struct ServiceArgs {
    /// The service that `triplane subscribe serve` runs: ADDRESS:PORT, or PORT alone for this machine.
    #[arg(long, value_name = "ADDR", default_value_t = service().to_string(), value_parser = with_port)]
    pub service: String,
    /// TLS.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

impl ServiceArgs {
    /// Returns the options that say where the server is.
    pub fn server_options(&self) -> ServerOptions<'_> {
        ServerOptions {
            addr: &self.service,
            tls_ca: self.tls.tls_ca.as_deref(),
            tls_cert: self.tls.tls_cert.as_deref(),
            tls_key: self.tls.tls_key.as_deref(),
            tls_name: self.tls.tls_name.as_deref(),
            options: ("--service", OPTIONS.1),
        }
    }
}

/// Adds the service's port to an address without one.
fn with_port(text: &str) -> Result<String, String> {
    match text.parse::<IpAddr>() {
        Ok(ip) => Ok(SocketAddr::new(ip, subscribe_service::PORT).to_string()),
        Err(_) if text.is_empty() => Err("expected ADDRESS:PORT or PORT".to_owned()),
        Err(_) => Ok(text.to_owned()),
    }
}

/// `triplane subscribe add`.
#[derive(Args, Debug)]
pub struct AddArgs {
    /// Rules, such as: stock == "GOOGL" : fwd(2)
    #[arg(value_name = "RULE", required = true)]
    pub rules: Vec<String>,
    /// The service.
    #[command(flatten)]
    pub service: ServiceArgs,
}

/// `triplane subscribe remove`.
#[derive(Args, Debug)]
pub struct RemoveArgs {
    /// Ids, as `list` shows them.
    #[arg(value_name = "ID", required = true, value_parser = id)]
    pub ids: Vec<u64>,
    /// The service.
    #[command(flatten)]
    pub service: ServiceArgs,
}

fn id(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "an ID is a number: `triplane subscribe list` shows those of all rules".to_owned())
}

fn service() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), subscribe_service::PORT)
}
