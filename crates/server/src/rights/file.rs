//! The file of tokens: who has one, and the hash of its secret.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use serde::{Deserialize, Serialize};

use super::Rule;
use crate::ServeError;

/// Longest name of a token, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of a file of tokens.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a secret, made by chance.
const SECRET_BYTES: usize = 24;
/// What every token begins with, so that people and programs that look for secrets know one.
const BEGINNING: &str = "tupelo";

/// A file, as it is written.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, rename = "token")]
    tokens: Vec<WrittenToken>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WrittenToken {
    name: String,
    hash: String,
    rules: Vec<String>,
}

/// A token of the file.
pub(super) struct Entry {
    pub(super) name: String,
    /// The hash of its secret, by argon2id.
    hash: String,
    pub(super) rules: Vec<Rule>,
}

impl Entry {
    /// Whether this is its secret. Takes long, as it has to.
    pub(super) fn is_secret(&self, secret: &str) -> bool {
        PasswordHash::new(&self.hash)
            .is_ok_and(|hash| Argon2::default().verify_password(secret.as_bytes(), &hash).is_ok())
    }
}

/// The tokens of a file.
pub(super) fn read(path: &Path) -> Result<Vec<Entry>, ServeError> {
    let entry = |WrittenToken { name, hash, rules }: WrittenToken| {
        let hashed = PasswordHash::new(&hash).map(|_| ());
        hashed.map_err(|error| unusable(path, &format!("the hash of {name:?}: {error}")))?;
        let rules = rules.iter().map(|rule| rule.parse()).collect::<Result<_, String>>();
        Ok(Entry { rules: rules.map_err(|why| unusable(path, &why))?, name, hash })
    };
    written(path)?.tokens.into_iter().map(entry).collect()
}

fn written(path: &Path) -> Result<Written, ServeError> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| unusable(path, &error.to_string()))?;
    let read = file.take(FILE_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| unusable(path, &error.to_string()))?;
    toml::from_str(&text).map_err(|error| unusable(path, &error.to_string()))
}

/// Adds a token to a file, which is made if there is none. Returns the token, which is written nowhere.
///
/// # Errors
///
/// [`ServeError::Unusable`]: the name is none, or is there already; the file can not be read or written.
pub fn add(path: &Path, name: &str, rules: &[Rule]) -> Result<String, ServeError> {
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_name) {
        let problem = format!("{name:?} is no name of a token");
        let hint = "use up to 64 of a to z, 0 to 9 and -, as in ci-runner";
        return Err(ServeError::Unusable { problem, hint });
    }
    let mut file = if path.exists() { written(path)? } else { Written::default() };
    if file.tokens.iter().any(|token| token.name == name) {
        let problem = format!("{} has a token {name:?} already", path.display());
        let hint = "remove that one first with `tupelo token remove`, or take another name";
        return Err(ServeError::Unusable { problem, hint });
    }
    let system = |problem: &str, error: &dyn std::fmt::Display| {
        unusable(path, &format!("{problem}: {error}"))
    };
    let (mut secret, mut salt) = ([0; SECRET_BYTES], [0; 16]);
    for bytes in [&mut secret[..], &mut salt[..]] {
        rustix::rand::getrandom(bytes, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| system("the system has no random numbers", &error))?;
    }
    let digits = secret.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let secret: String =
        digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect();
    let salt = SaltString::encode_b64(&salt).map_err(|error| system("a salt", &error))?;
    let hash = Argon2::default().hash_password(secret.as_bytes(), &salt);
    let hash = hash.map_err(|error| system("a hash", &error))?.to_string();
    let rules = rules.iter().map(ToString::to_string).collect();
    file.tokens.push(WrittenToken { name: name.to_owned(), hash, rules });
    write(path, &file)?;
    Ok(format!("{BEGINNING}_{name}_{secret}"))
}

/// The tokens of a file: their names and rules.
///
/// # Errors
///
/// [`ServeError::Unusable`]: the file can not be read.
pub fn list(path: &Path) -> Result<Vec<(String, Vec<String>)>, ServeError> {
    Ok(written(path)?.tokens.into_iter().map(|token| (token.name, token.rules)).collect())
}

/// Removes a token from a file.
///
/// # Errors
///
/// [`ServeError::Unusable`]: there is none; the file can not be read or written.
pub fn remove(path: &Path, name: &str) -> Result<(), ServeError> {
    let mut file = written(path)?;
    let count = file.tokens.len();
    file.tokens.retain(|token| token.name != name);
    if file.tokens.len() == count {
        return Err(unusable(path, &format!("it has no token {name:?}")));
    }
    write(path, &file)
}

/// Writes a file as a whole, for this user alone: whoever reads it meanwhile reads the one before.
fn write(path: &Path, file: &Written) -> Result<(), ServeError> {
    let text = toml::to_string(file).map_err(|error| unusable(path, &error.to_string()))?;
    let beside = path.with_extension("new");
    let written = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut new = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        new.write_all(text.as_bytes())?;
        new.sync_all()?;
        fs::rename(&beside, path)
    };
    written().map_err(|error| unusable(path, &error.to_string()))
}

fn unusable(path: &Path, problem: &str) -> ServeError {
    ServeError::Unusable {
        problem: format!("the file of tokens {}: {problem}", path.display()),
        hint: "`tupelo token add NAME --tokens FILE --role reader` writes one",
    }
}

/// The name and the secret of a token.
pub(super) fn parts(token: &str) -> Option<(&str, &str)> {
    token.strip_prefix(BEGINNING)?.strip_prefix('_')?.split_once('_')
}
