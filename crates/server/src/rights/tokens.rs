//! Whose token this is.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use blake2::{Blake2s256, Digest};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tupelo_protocol::Fault;

use super::Principal;
use super::file::{self, Entry};
use crate::ServeError;

/// Secrets that are looked at at the same time: each takes 19 MiB and a processor, as a guess would.
const VERIFIED_AT_ONCE: usize = 2;
/// Tokens that are known again without being looked at once more.
const KNOWN_MAX: usize = 4096;

/// The tokens of a server.
pub(crate) struct Tokens {
    entries: HashMap<String, Arc<Entry>>,
    principals: HashMap<String, Rc<Principal>>,
    /// The names of tokens that were right, by their digest.
    known: RefCell<HashMap<[u8; 32], String>>,
    verifying: Arc<Semaphore>,
}

impl Tokens {
    /// Reads a file of tokens.
    pub(crate) fn read(path: &Path) -> Result<Self, ServeError> {
        let (mut entries, mut principals) = (HashMap::new(), HashMap::new());
        for entry in file::read(path)? {
            let (name, rules) = (entry.name.clone(), entry.rules.clone());
            principals
                .insert(name.clone(), Rc::new(Principal::Holder { name: name.clone(), rules }));
            entries.insert(name, Arc::new(entry));
        }
        let verifying = Arc::new(Semaphore::new(VERIFIED_AT_ONCE));
        Ok(Self { entries, principals, known: RefCell::default(), verifying })
    }

    /// Who has this token. Of a wrong one, an answer tells nothing but that.
    pub(crate) async fn holder(&self, token: Option<&str>) -> Result<Rc<Principal>, Fault> {
        let Some(token) = token else { return Err(no_token()) };
        let digest: [u8; 32] = Blake2s256::digest(token.as_bytes()).into();
        let known = self.known.borrow().get(&digest).cloned();
        let name = match known {
            Some(name) => name,
            None => self.verified(token, digest).await.ok_or_else(wrong_token)?,
        };
        self.principals.get(&name).cloned().ok_or_else(wrong_token)
    }

    /// The name of a token, if it is right.
    async fn verified(&self, token: &str, digest: [u8; 32]) -> Option<String> {
        let (name, secret) = file::parts(token)?;
        // Of a name that is not there, another secret is looked at, so that it takes as long.
        let is_there = self.entries.contains_key(name);
        let entry = self.entries.get(name).or_else(|| self.entries.values().next())?;
        let (entry, secret) = (Arc::clone(entry), secret.to_owned());
        // Nobody closes it. It is held until the secret was looked at, also for a client that has gone meanwhile.
        let permit = Arc::clone(&self.verifying).acquire_owned().await.ok()?;
        let verify = move || {
            let is_secret = entry.is_secret(&secret);
            drop(permit);
            is_secret
        };
        let is_secret = spawn_blocking(verify).await.ok()?;
        if !(is_there && is_secret) {
            return None;
        }
        let mut known = self.known.borrow_mut();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(digest, name.to_owned());
        Some(name.to_owned())
    }
}

fn no_token() -> Fault {
    let hint = "set TUPELO_TOKEN, or name a file that has it in the URL, as ?token_file=/path/token; over HTTP send \
                Authorization: Bearer TOKEN";
    Fault::new("TUP-006", "this server asks for a token, and there is none", Some(hint))
}

fn wrong_token() -> Fault {
    let hint = "was it copied whole, and is it still there? `tupelo token list` on the server shows their names";
    Fault::new("TUP-006", "this server does not know the token", Some(hint))
}
