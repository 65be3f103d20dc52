//! The audit log: a line of JSON for each request that is denied, and for what is done to whole spaces.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};
use tupelo_protocol::Fault;

use crate::ServeError;
use crate::rights::{Principal, Right};

/// Lines of one second: who is denied again and again fills no disk. The next line says how many were left out.
const LINES_PER_SECOND_MAX: u32 = 100;
/// The code of what is denied.
const DENIED: &str = "TUP-006";

/// What is done to a whole space, or to all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// A client has opened a space that was not there.
    Made,
    /// A client has had a space begin empty.
    MadeAnew,
    /// A client has removed a space.
    Removed,
    /// The server has read its certificates and tokens again.
    Reloaded,
}

impl Act {
    const fn name(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::MadeAnew => "made anew",
            Self::Removed => "removed",
            Self::Reloaded => "reloaded",
        }
    }
}

/// The log of a server; `None`: nothing is logged.
pub(crate) struct Audit(Option<RefCell<Log>>);

struct Log {
    path: PathBuf,
    file: File,
    /// The second of the last line, and how many lines it has had.
    second: (u64, u32),
    left_out: u64,
}

impl Audit {
    /// One that is added to a file, which is made for this user alone if there is none.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, ServeError> {
        let log = |path: &Path| {
            let file = append(path).map_err(|error| ServeError::System {
                problem: format!("the audit log {} can not be written", path.display()),
                hint: "name a file in a folder of the server's user with --audit",
                error,
            })?;
            let path = path.to_owned();
            Ok(RefCell::new(Log { path, file, second: (0, 0), left_out: 0 }))
        };
        path.map(log).transpose().map(Self)
    }

    /// Writes to the file that has the name from now on, as another program may have moved the one before away.
    ///
    /// # Errors
    ///
    /// There can be no such file: the one before is written to.
    pub(crate) fn open_again(&self) -> io::Result<()> {
        let Some(log) = &self.0 else { return Ok(()) };
        let mut log = log.borrow_mut();
        log.file = append(&log.path)?;
        Ok(())
    }

    /// Notes a request that was denied, and the rules of which none has allowed it. Other refusals are no matter of rights.
    pub(crate) fn note_refused(&self, principal: &Principal, fault: &Fault) {
        if fault.code == DENIED {
            self.add(json!({
                "event": "denied",
                "token": principal.name(),
                "problem": fault.message,
                "rules": principal.rules(),
            }));
        }
    }

    /// Notes a client that was not let in.
    pub(crate) fn note_stranger(&self, fault: &Fault) {
        self.add(json!({ "event": "denied", "token": null, "problem": fault.message }));
    }

    /// Notes what was done to a space, by which rule.
    pub(crate) fn note_done(&self, principal: &Principal, act: Act, space: &str) {
        let rights: &[Right] = match act {
            Act::Made => &[Right::Admin, Right::Put],
            Act::MadeAnew | Act::Removed | Act::Reloaded => &[Right::Admin],
        };
        let rule = rights.iter().find_map(|right| principal.rule_for(*right, space));
        self.add(json!({
            "event": act.name(),
            "token": principal.name(),
            "space": space,
            "rule": rule.map(ToString::to_string),
        }));
    }

    /// Notes what the server was told to do by its own user.
    pub(crate) fn note_signal(&self, act: Act) {
        self.add(json!({ "event": act.name() }));
    }

    fn add(&self, line: Json) {
        let Some(log) = &self.0 else { return };
        let mut log = log.borrow_mut();
        if let Err(error) = log.add(line) {
            // Those who are served go on: who may do what does not depend on the log.
            eprintln!(
                "tupelo serve: the audit log {} can not be written: {error}",
                log.path.display()
            );
        }
    }
}

impl Log {
    fn add(&mut self, mut line: Json) -> io::Result<()> {
        #[expect(clippy::disallowed_methods, reason = "people compare it with other logs")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let count = if self.second.0 == now.as_secs() { self.second.1 } else { 0 };
        if count >= LINES_PER_SECOND_MAX {
            self.left_out += 1;
            return Ok(());
        }
        self.second = (now.as_secs(), count + 1);
        line["time_s"] = json!(now.as_secs_f64());
        if self.left_out > 0 {
            line["left_out"] = json!(std::mem::take(&mut self.left_out));
        }
        // As one write, which is not mixed with those of another program.
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value as Json, json};
    use tupelo_protocol::Fault;

    use super::{Act, Audit, LINES_PER_SECOND_MAX};
    use crate::rights::Principal;

    /// The lines that `act` has written.
    fn lines(name: &str, act: impl FnOnce(&Audit)) -> Vec<Json> {
        let path = std::env::temp_dir().join(format!("tupelo-{name}-{}", std::process::id()));
        act(&Audit::open(Some(&path)).unwrap());
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn what_was_denied_and_done_is_told_with_its_rule() {
        let rules = ["jobs : take", "tmp* : admin"].map(|rule| rule.parse().unwrap()).into();
        let principal = Principal::Holder { name: "ci".to_owned(), rules };
        let lines = lines("audit-rules", |audit| {
            let denied = Fault::new("TUP-006", "may not put", None);
            audit.note_refused(&principal, &denied);
            audit.note_refused(&principal, &Fault::protocol("no matter of rights"));
            audit.note_done(&principal, Act::Removed, "tmp-1");
            audit.note_done(&Principal::Anybody, Act::Made, "jobs");
            audit.note_stranger(&Fault::new("TUP-006", "asks for a token", None));
            audit.note_signal(Act::Reloaded);
        });
        let told: Vec<_> =
            lines.iter().map(|line| (&line["event"], &line["token"], &line["rule"])).collect();
        let null = &Json::Null;
        assert_eq!(
            told,
            [
                (&json!("denied"), &json!("ci"), null),
                (&json!("removed"), &json!("ci"), &json!("tmp* : admin")),
                (&json!("made"), &json!(""), null),
                (&json!("denied"), null, null),
                (&json!("reloaded"), null, null),
            ]
        );
        assert_eq!(lines[0]["rules"], json!(["jobs : take", "tmp* : admin"]));
        assert_eq!(lines[0]["problem"], json!("may not put"));
        assert!(lines[0]["time_s"].as_f64().unwrap() > 1.7e9);
    }

    #[test]
    fn who_is_denied_again_and_again_does_not_fill_a_disk_b2() {
        // Also if a second ends meanwhile.
        let many = u64::from(LINES_PER_SECOND_MAX) * 40;
        let lines = lines("audit-many", |audit| {
            for _ in 0..many {
                audit.note_stranger(&Fault::new("TUP-006", "asks for a token", None));
            }
        });
        let left_out: u64 = lines.iter().filter_map(|line| line["left_out"].as_u64()).sum();
        let told = lines.len() as u64;
        assert!(told < many && left_out <= many - told, "{told} lines, {left_out} left out");
    }
}
