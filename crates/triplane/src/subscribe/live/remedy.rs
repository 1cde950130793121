//! Names the options of `triplane subscribe serve` that help when the service cannot use its switch or its rules.

use p4runtime_client::HandshakeFailure;
use subscribe_service::{AwayReason, Incompatibility, JournalError, ProgramDifference, RulesError, Unreachable};

/// Remedy for a program of the same format that was generated with other options.
const SAME_OPTIONS: &str = ". Generate the program again with the same `--order`, `--ranges`, `--exact-tables`, \
                            `--bitmaps` and `--groups` as `serve`, and load it; or, if the switch is a Triplane switch, omit --keep-program to have \
                            `serve` load it";
/// Remedy for another program.
const SAME_FORMAT: &str = ". Load the program that `triplane subscribe program` generates from this format, or serve \
                           the format that the switch's program was generated from; or, if the switch is a Triplane \
                           switch, omit --keep-program to have `serve` load it";

/// Returns the text that follows the reason why the switch cannot be used; empty if the operator can only wait.
pub fn of_switch(why: &AwayReason) -> &'static str {
    match why {
        AwayReason::NotReached(why) | AwayReason::WentAway(why) => of_connection(why),
        AwayReason::NoDevice { .. } => ": pass an existing device with --device-id",
        AwayReason::Incompatible(why) => of_program(why),
        AwayReason::OtherPrimary { .. }
        | AwayReason::ElectionIdTaken(_)
        | AwayReason::Refused(_)
        | AwayReason::RejectedUpdate(_)
        | AwayReason::Unimplemented => "",
    }
}

fn of_connection(why: &Unreachable) -> &'static str {
    match why {
        Unreachable::NotTls => ": omit --switch-tls-ca and the other --switch-tls options",
        Unreachable::Handshake(failure) => of_handshake(failure),
        Unreachable::BrokenAtStart { is_tls: true } => {
            "; if it requires client certificates, pass --switch-tls-cert and --switch-tls-key"
        }
        Unreachable::BrokenAtStart { is_tls: false } => {
            "; if it uses TLS, pass --switch-tls-ca with the CA that signed its certificate"
        }
        _ => "",
    }
}

fn of_handshake(failure: &HandshakeFailure) -> &'static str {
    match failure {
        HandshakeFailure::NotTls => ": omit --switch-tls-ca and the other --switch-tls options",
        HandshakeFailure::UnknownAuthority => ": pass --switch-tls-ca with the CA that signed it",
        HandshakeFailure::OtherName { .. } => ": pass one of its names with --switch-tls-name",
        HandshakeFailure::OtherTime => ": renew it at the switch, or set the clock of this machine",
        HandshakeFailure::IssuesCertificates | HandshakeFailure::BadCertificate(_) => ": the switch needs another one",
        HandshakeFailure::ClientCertificateRequired => ": pass --switch-tls-cert and --switch-tls-key",
        HandshakeFailure::ClientCertificateRefused { is_expired: true } => ": renew it",
        HandshakeFailure::ClientCertificateRefused { is_expired: false } => {
            ": pass --switch-tls-cert with a certificate that the switch's CA signed"
        }
        HandshakeFailure::Other(_) => "",
    }
}

fn of_program(why: &Incompatibility) -> &'static str {
    match why {
        Incompatibility::Program(ProgramDifference::OtherRules { is_of_format: true, .. })
        | Incompatibility::MissingObject { .. } => SAME_OPTIONS,
        Incompatibility::Program(_) => SAME_FORMAT,
        Incompatibility::NoProgram => {
            ": load the program that `triplane subscribe program` generates from the format, or omit --keep-program to \
             have `serve` load it"
        }
        Incompatibility::TooMuchToRead { .. }
        | Incompatibility::CodesNotAtomic { .. }
        | Incompatibility::Compilation(_)
        | Incompatibility::Order(_) => "",
    }
}

/// Returns the text that follows the reason why the service has no rules to start with; empty if the reason says all.
pub fn of_rules(why: &RulesError) -> &'static str {
    let RulesError::Journal { source, .. } = why else { return "" };
    match source {
        JournalError::InUse => ": use a separate --keep file for each",
        JournalError::NotAJournal => ": use another file for --keep",
        _ => "",
    }
}
