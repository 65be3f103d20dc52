//! What README and the pages say can be typed, can be.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::parse;

/// The pages with lines for a shell.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs"), root.join("crates/cli/errors")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// The words of the commands of a line; a comment on them stands behind `#` or two spaces.
fn commands(line: &str) -> Vec<Vec<OsString>> {
    let (mut commands, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let (mut quote, mut spaces) = (None, 0);
    for character in line.trim().chars().chain([' ']) {
        spaces = if character == ' ' { spaces + 1 } else { 0 };
        match (character, quote) {
            (_, Some(open)) => {
                if character == open {
                    quote = None;
                } else {
                    word.push(character);
                }
            }
            ('\'' | '"', None) => quote = Some(character),
            // A comment, or the file that the shell reads or writes.
            ('#' | '<' | '>', None) if word.is_empty() => break,
            (' ', None) if spaces > 1 => break,
            (' ', None) if word == "|" => {
                commands.push(std::mem::take(&mut words));
                word.clear();
            }
            (' ', None) => words.push(OsString::from(std::mem::take(&mut word))),
            _ => word.push(character),
        }
    }
    commands.push(words);
    commands
}

#[test]
fn every_line_for_a_shell_that_a_page_shows_is_understood() {
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let indented = text.lines().filter(|line| line.starts_with("    tupelo "));
        for words in indented.flat_map(commands) {
            let refused = parse(&words).err();
            assert!(refused.is_none(), "{}: {words:?}\n{}", page.display(), refused.unwrap());
            count += 1;
        }
    }
    assert!(count > 30, "{count} lines: they look otherwise now");
}
