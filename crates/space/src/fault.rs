//! Errors as a server sends them, and back.

use tupelo_protocol::{Fault, code};

use crate::error::{Error, IN_EFFECT};

/// A process in the flags of a fault: its upper half.
const PID_SHIFT: u32 = 32;

impl From<Fault> for Error {
    #[cold]
    fn from(fault: Fault) -> Self {
        if fault.has(Fault::INTERRUPTED) {
            return Self::Interrupted { problem: fault.message };
        }
        let has = |flag| fault.has(flag);
        let (may_pass, by_system) = (has(Fault::MAY_PASS), has(Fault::BY_SYSTEM));
        let may_have_happened = has(Fault::MAY_HAVE_HAPPENED);
        let pid = u32::try_from(fault.flags >> PID_SHIFT).unwrap_or_default();
        let Fault { code, message: problem, hint, .. } = fault;
        match code.as_str() {
            "TUP-001" => Self::Template { problem },
            code::CONNECTION_LOST => Self::ConnectionLost { problem, hint, may_have_happened },
            "TUP-004" => Self::NotEncodable { problem },
            "TUP-005" => Self::SpaceFull { problem, may_pass, by_system },
            "TUP-006" => Self::AccessDenied { problem, hint },
            "TUP-007" => Self::ClaimLost { problem },
            "TUP-008" => Self::Aborted { problem, waited_for: None },
            code::VERSION_MISMATCH => Self::VersionMismatch { problem, hint },
            "TUP-013" => Self::SpaceNotFound { url: problem },
            "TUP-015" => Self::SpaceCorrupted { problem, hint },
            "TUP-016" => Self::Stalled { pid },
            code::LIMIT_EXCEEDED => {
                Self::LimitExceeded { problem, hint: hint.unwrap_or_default().into() }
            }
            "TUP-018" => Self::TransactionTooBig { problem },
            "TUP-019" => Self::Misuse { problem, hint },
            "TUP-021" => Self::LeaseExpired { problem, is_held: may_pass },
            code::UNSUPPORTED => Self::Unsupported { problem, hint: hint.unwrap_or_default() },
            code::PROTOCOL => Self::Protocol { problem },
            "TUP-024" => Self::Storage { problem },
            // What this and what the server says of it begin alike.
            "TUP-025" => Self::DurabilityUnknown {
                problem: problem.strip_prefix(IN_EFFECT).unwrap_or(&problem).to_owned(),
            },
            "TUP-026" => Self::SpaceRemoved { problem },
            _ => Self::System { problem },
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let flags = match &error {
            Error::SpaceFull { may_pass, by_system, .. } => {
                u64::from(*may_pass) * Self::MAY_PASS + u64::from(*by_system) * Self::BY_SYSTEM
            }
            Error::LeaseExpired { is_held, .. } => u64::from(*is_held) * Self::MAY_PASS,
            Error::Stalled { pid } => u64::from(*pid) << PID_SHIFT,
            _ => 0,
        };
        Self::new(error.code(), error.message(), error.hint().as_deref()).with_flags(flags)
    }
}

#[cfg(test)]
mod tests {
    use tupelo_protocol::Fault;

    use crate::Error;

    #[test]
    fn an_error_that_a_server_sends_is_the_same_error_at_the_client() {
        let problem = || "what it was".to_owned();
        for error in [
            Error::Template { problem: problem() },
            Error::NotEncodable { problem: problem() },
            Error::SpaceFull { problem: problem(), may_pass: true, by_system: false },
            Error::SpaceFull { problem: problem(), may_pass: false, by_system: true },
            Error::AccessDenied { problem: problem(), hint: Some("ask".to_owned()) },
            Error::ClaimLost { problem: problem() },
            Error::VersionMismatch { problem: problem(), hint: Some("upgrade it".to_owned()) },
            Error::SpaceCorrupted { problem: problem(), hint: Some("copy it".to_owned()) },
            Error::Storage { problem: problem() },
            Error::SpaceRemoved { problem: problem() },
            Error::Stalled { pid: 4711 },
            Error::LimitExceeded { problem: problem(), hint: "use fewer".into() },
            Error::TransactionTooBig { problem: problem() },
            Error::Misuse { problem: problem(), hint: Some("do it so".into()) },
            Error::Misuse { problem: problem(), hint: None },
            Error::LeaseExpired { problem: problem(), is_held: true },
            Error::Unsupported { problem: problem(), hint: "do that".into() },
            Error::Protocol { problem: problem() },
            Error::System { problem: problem() },
        ] {
            assert_eq!(Error::from(Fault::from(error.clone())), error);
        }
    }
}
