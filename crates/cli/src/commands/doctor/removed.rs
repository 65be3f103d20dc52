//! Spaces that were removed while they were in use, and whether the system removes them by itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::process::geteuid;
use tupelo::Orphan;

use super::Finding;

/// Users whose numbers are lower are the system's: logind removes nothing of theirs.
const USERS_MIN: u32 = 1000;
/// Where systemd says that it runs this machine.
const SYSTEMD: &str = "/run/systemd/system";
/// Where the main file is; in the others each file counts.
const MAIN: &str = "/etc/systemd";
/// The settings of logind, those that count most first.
const SETTINGS: [&str; 4] = [
    "/etc/systemd/logind.conf.d",
    "/run/systemd/logind.conf.d",
    "/usr/lib/systemd/logind.conf.d",
    MAIN,
];

/// A line for each space that was removed and is still in use.
pub(super) fn findings() -> Vec<Finding> {
    let mut by_name = BTreeMap::<Option<String>, Vec<String>>::new();
    for Orphan { pid, name } in tupelo::orphans() {
        by_name.entry(name).or_default().push(pid.to_string());
    }
    let line = |(name, pids): (Option<String>, Vec<String>)| {
        let what = name.map_or_else(|| "a space".to_owned(), |name| format!("shm://{name}"));
        let pids = pids.join(", ");
        let text = format!(
            "{what} was removed, and process {pids} still uses it: what is in it nobody else can reach; start that again"
        );
        Finding::warn("removed space", text)
    };
    by_name.into_iter().map(line).chain(remove_ipc()).collect()
}

/// Whether the system removes the spaces of a user with the last session.
fn remove_ipc() -> Option<Finding> {
    const SUBJECT: &str = "RemoveIPC";
    let user = geteuid().as_raw();
    if user < USERS_MIN || !Path::new(SYSTEMD).exists() {
        return None;
    }
    if is_off(&SETTINGS.map(settings_in).concat()) {
        return Some(Finding::ok(SUBJECT, "no: spaces stay when your last session ends"));
    }
    let name = std::env::var("USER").unwrap_or_default();
    if !name.is_empty() && Path::new("/var/lib/systemd/linger").join(&name).exists() {
        return Some(Finding::ok(
            SUBJECT,
            "you linger, so spaces stay when your last session ends",
        ));
    }
    let text = "the system removes your spaces when your last session ends (systemd-logind): \
                `loginctl enable-linger`, or RemoveIPC=no in /etc/systemd/logind.conf";
    Some(Finding::warn(SUBJECT, text))
}

/// The texts of the settings in a directory, the last by name first.
fn settings_in(directory: &str) -> Vec<String> {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<_> = files.map(|file| file.path()).collect();
    paths.retain(|path| {
        let is_main = path.file_name().is_some_and(|name| name == "logind.conf");
        is_main || directory != MAIN && path.extension().is_some_and(|end| end == "conf")
    });
    paths.sort_by(|one, other| other.cmp(one));
    paths.into_iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// Whether the first text that says something of it switches the removal off.
fn is_off(texts: &[String]) -> bool {
    let value = |text: &String| {
        let values = text.lines().filter_map(|line| line.trim().strip_prefix("RemoveIPC="));
        values.map(str::trim).next_back().map(str::to_lowercase)
    };
    let said = texts.iter().find_map(value);
    said.is_some_and(|value| ["no", "false", "off", "0"].contains(&value.as_str()))
}

#[cfg(test)]
mod tests {
    use super::is_off;

    #[test]
    fn the_first_text_that_says_something_counts_and_comments_say_nothing() {
        let texts =
            |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert!(!is_off(&texts(&[])));
        assert!(!is_off(&texts(&["[Login]\n#RemoveIPC=no\n"])));
        assert!(is_off(&texts(&["[Login]\nRemoveIPC=no\n", "RemoveIPC=yes"])));
        assert!(!is_off(&texts(&["[Login]\nRemoveIPC=yes\n", "RemoveIPC=no"])));
    }
}
