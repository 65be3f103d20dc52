//! The keys of requests: what a server has answered outlives it.

use crate::Engine;
use crate::base::error::Error;
use crate::operations::keys;

impl Engine {
    /// The same engine, which keeps in the segment what keyed requests of this process are answered ([`crate::keyed`]). The newest
    /// 4 095 of this process are kept, and of three before it that did so.
    ///
    /// # Errors
    ///
    /// What the memory says: there is none for it, for example.
    pub fn keeping_keys(mut self) -> Result<Self, Error> {
        keys::begin(&mut self.store)?;
        Ok(self)
    }

    /// Whether the answers to keyed requests of this process are kept.
    pub fn keeps_keys(&self) -> bool {
        self.store.keys.is_on()
    }

    /// What a request with this key was answered that had its effect; `None` if it has had none, or if that is too long ago.
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn answer_to(&self, key: u128, who: u64) -> Result<Option<u64>, Error> {
        keys::answer_to(self, (key, who))
    }
}
