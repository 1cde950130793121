//! Defines the command line of `triplane ctl`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Command, Subcommand, ValueHint};

use crate::server_options::{OPTIONS, ServerOptions};

/// Examples, printed after the help of the command.
pub const AFTER_HELP: &str = "\
Entries are written as they are printed:
  triplane ctl insert ipv4_lpm 'hdr.ipv4.dst=10.0.0.0/8 -> forward(mac=02:00:00:00:00:01, port=2)'
  triplane ctl insert acl 'ip.src=10.0.0.1&&&255.0.0.255, l4.port=1..1023, priority=10 -> drop()'
  triplane ctl modify ipv4_lpm 'default -> no_route()'
  triplane ctl delete ipv4_lpm hdr.ipv4.dst=10.0.0.0/8
Names may be shortened to the part after a dot. exact, optional: VALUE; lpm: VALUE/LENGTH;
ternary: VALUE&&&MASK; range: LOW..HIGH; an omitted key that is not exact matches any value.
Values are numbers (10, 0xa, 0b1010), MAC, IPv4 and IPv6 addresses. timeout=SECONDS sets an
idle timeout.

Tables with an action profile take member(ID), group(ID), or actions: a(1) weight 2 | b().
Profiles, multicast groups and clone sessions are filled in the same way:
  triplane ctl insert ecmp 'member 1 -> forward(mac=02:00:00:00:00:01, port=2)'
  triplane ctl insert ecmp 'group 7 -> 1 weight 3, 2 watch 4, max_size=8'
  triplane ctl insert multicast '1 -> 1, 2, 3 instance 7 backup 4'
  triplane ctl insert clone '5 -> 3, class=1, truncate=128'
Objects that always exist, and whose values can be set:
  triplane ctl set flows 3 12                   a cell of a register array; `all` for every cell
  triplane ctl set rx_counter 3 packets=0 bytes=0
  triplane ctl set limiter 3 cir=1000 cburst=100 pir=2000 pburst=200     or: none
  triplane ctl set ipv4_lpm hdr.ipv4.dst=10.0.0.0/8 packets=0    direct counters and meters
  triplane ctl set allowed 'port=80 | port=443'                  a value set

To complete names from the running switch: triplane completions --help.

Exit codes: 0 success; 1 the request is invalid, or the switch rejected it;
2 a usage error; 3 a system error, such as no server at the address.";

/// `triplane ctl`
#[derive(Args, Debug)]
pub struct CtlArgs {
    /// The server, and the identity of the client.
    #[command(flatten)]
    pub server: ServerArgs,

    /// The subcommand.
    #[command(subcommand)]
    pub command: CtlCommand,
}

/// A P4Runtime server and how to speak to it.
#[derive(Args, Debug)]
pub struct ServerArgs {
    /// The P4Runtime server: ADDRESS:PORT.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9559", global = true)]
    pub addr: String,

    /// The P4Runtime device ID.
    #[arg(long, value_name = "N", default_value_t = 1, global = true)]
    pub device_id: u64,

    /// Write with this election ID, and replace a primary controller with a lower one. Without it, writes succeed only
    /// while no other controller is primary.
    #[arg(long, value_name = "N", global = true)]
    pub election_id: Option<u128>,

    /// Use TLS, and accept only a server certificate signed by this CA (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, global = true)]
    pub tls_ca: Option<PathBuf>,

    /// The client certificate, for servers that require one (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, global = true)]
    pub tls_cert: Option<PathBuf>,

    /// The private key of the client certificate (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, global = true)]
    pub tls_key: Option<PathBuf>,

    /// The name in the server's certificate, if it differs from the host in --addr.
    #[arg(long, value_name = "NAME", global = true)]
    pub tls_name: Option<String>,

    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

impl ServerArgs {
    /// Returns the options that say where the server is.
    pub fn server_options(&self) -> ServerOptions<'_> {
        ServerOptions {
            addr: &self.addr,
            tls_ca: self.tls_ca.as_deref(),
            tls_cert: self.tls_cert.as_deref(),
            tls_key: self.tls_key.as_deref(),
            tls_name: self.tls_name.as_deref(),
            options: OPTIONS,
        }
    }
}

/// Moves the options behind a subcommand of `ctl` in front of its values. Entries are words too, and some begin with a
/// hyphen (`->`, `-1`), so the parser would take every option behind the first of them for a part of it.
pub fn with_options_first(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let options = ServerArgs::augment_args(Command::new("ctl"));
    let takes_value = |word: &OsString| {
        let name = word.to_str().and_then(|word| word.strip_prefix("--")).unwrap_or_default();
        name == "color"
            || options.get_arguments().any(|arg| arg.get_long() == Some(name) && arg.get_action().takes_values())
    };
    let is_option = |word: &OsString| {
        let name = word.to_str().and_then(|word| word.strip_prefix("--")).unwrap_or_default();
        word == "-h" || name.starts_with(|letter: char| letter.is_ascii_alphabetic())
    };
    /// Returns the place of the next word that is neither an option nor its value.
    fn next_plain(words: &[OsString], mut at: usize, skipped: impl Fn(&OsString) -> usize) -> usize {
        while let Some(count) = words.get(at).map(&skipped).filter(|count| *count > 0) {
            at += count;
        }
        at
    }
    let skipped = |word: &OsString| if is_option(word) { 1 + usize::from(takes_value(word)) } else { 0 };
    let at = next_plain(&words, 1, skipped);
    if words.get(at).is_none_or(|word| word != "ctl") {
        return words;
    }
    let first = next_plain(&words, at + 1, skipped) + 1;
    let (mut moved, mut kept) = (Vec::new(), Vec::new());
    let mut rest = words.drain(first.min(words.len())..);
    while let Some(word) = rest.next() {
        if word == "--" {
            kept.push(word);
            kept.extend(rest.by_ref());
        } else if is_option(&word) {
            let is_followed = takes_value(&word);
            moved.push(word);
            moved.extend(is_followed.then(|| rest.next()).flatten());
        } else {
            kept.push(word);
        }
    }
    drop(rest);
    words.extend(moved);
    words.extend(kept);
    words
}

/// The subcommands.
#[derive(Subcommand, Debug)]
pub enum CtlCommand {
    /// List the tables: keys, actions, number of entries.
    Tables,
    /// List the entries of a table, or of all.
    Entries {
        /// The table.
        table: Option<String>,
    },
    /// Insert a table entry, a member or group of an action profile, a clone session or a multicast group.
    Insert(EntryArgs),
    /// Modify what `insert` inserts, or a table's default action; `default` alone restores the program's action.
    Modify(EntryArgs),
    /// Delete a table entry, a member or group of an action profile, a clone session or a multicast group. Only its key
    /// or ID counts: what follows `->` is ignored, as in P4Runtime, so that an entry can be given as it is printed.
    Delete(EntryArgs),
    /// Set cells of registers, counters and meters, or the members of a value set.
    Set(SetArgs),
    /// List the members and groups of action profiles.
    Profiles {
        /// The action profile.
        name: Option<String>,
    },
    /// List the meters that have rates configured.
    Meters {
        /// The meter, or the table of a direct meter.
        name: Option<String>,
    },
    /// List the members of value sets.
    ValueSets {
        /// The value set.
        name: Option<String>,
    },
    /// List the values of counters.
    Counters {
        /// The counter, or the table of a direct counter.
        name: Option<String>,
    },
    /// List the cells of a register array that are not 0, or one cell.
    Registers {
        /// The register array; without it, all.
        name: Option<String>,
        /// The cell.
        index: Option<i64>,
    },
    /// List clone sessions and multicast groups.
    Sessions,
    /// Print the events that the switch sends to its controller, one per line: digests, packets, idle timeouts, changes
    /// of the primary.
    Watch,
}

/// An object with cells or values, and its new values.
#[derive(Args, Debug)]
pub struct SetArgs {
    /// A register, counter, meter or value set, or the table of a direct counter or meter.
    pub name: String,
    /// INDEX VALUE ..., or for a table KEY=VALUE ..., or for a value set its members.
    #[arg(value_name = "VALUE", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub value: Vec<String>,
}

/// A table or another object with entries, and an entry.
#[derive(Args, Debug)]
pub struct EntryArgs {
    /// A table or an action profile, or the word `multicast` or `clone`.
    #[arg(value_name = "WHERE")]
    pub table: String,
    /// KEY=VALUE ... -> ACTION(PARAMETER=VALUE, ...), or another of the forms in `triplane ctl --help`.
    #[arg(value_name = "ENTRY", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub entry: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(line: &str) -> String {
        let words = with_options_first(line.split(' ').map(OsString::from));
        words.iter().map(|word| word.to_str().expect("a text")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn options_behind_an_entry_come_first() {
        for (written, expected) in [
            ("t ctl insert r a=1 -> b() --addr :1 --json", "t ctl insert --addr :1 --json r a=1 -> b()"),
            (
                "t --color never ctl --addr :1 set r 3 -1 --device-id=0",
                "t --color never ctl --addr :1 set --device-id=0 r 3 -1",
            ),
            ("t ctl insert r a=1 --unknown", "t ctl insert --unknown r a=1"),
            ("t ctl insert r a=1 -h", "t ctl insert -h r a=1"),
            ("t ctl insert r -- --addr -> b() --json", "t ctl insert r -- --addr -> b() --json"),
            ("t ctl insert r a=1 --addr", "t ctl insert --addr r a=1"),
            ("t run ctl --addr :1", "t run ctl --addr :1"),
            ("t ctl", "t ctl"),
            ("t", "t"),
        ] {
            assert_eq!(ordered(written), expected, "{written}");
        }
    }
}
