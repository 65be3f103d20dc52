//! The keys of requests: what a server has answered outlives it.

use crate::Engine;
use crate::base::error::Error;
use crate::operations::keys;
use crate::store::keys::RequestKey;

impl Engine {
    /// The same engine, which keeps in the segment what keyed requests of this process are answered ([`crate::keyed`]). The newest
    /// 4 095 of this process are kept, and of three before it that did so.
    ///
    /// # Errors
    ///
    /// What the memory says: there is none for it, for example.
    pub fn keeping_keys(mut self) -> Result<Self, Error> {
        keys::begin(&self.store)?;
        (self.store.is_plain, self.store.notes_puts) = (false, true);
        Ok(self)
    }

    /// As [`Engine::keeping_keys`], of a journalled space, which others of this process may use already: the journal is told of the
    /// answers, too. Of any other space it keeps none, and returns `false`.
    ///
    /// # Errors
    ///
    /// As [`Engine::keeping_keys`].
    pub fn keep_keys(&self) -> Result<bool, Error> {
        if self.is_journalled() && !self.keeps_keys() {
            keys::begin(&self.store)?;
        }
        Ok(self.keeps_keys())
    }

    /// Fills a new space with what keyed requests were answered in an earlier life of it, in their order. The newest
    /// [`crate::ANSWERS_RESTORED_MAX`] are known from then on. Before anybody else uses the space, as [`Engine::restore`].
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn restore_keys(&self, answered: &[RequestKey]) -> Result<(), Error> {
        keys::restore(&self.store, answered)
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
