//! What programs say that they do for others in a space, such as which functions they serve.
//!
//! No tuple says it, so no template sees it and no limit counts it; see `tupelo_shm::Announcement`.

use tupelo_shm::{Announcement, Directory};

use crate::url::Place;
use crate::{Error, Space};

impl Space {
    /// Announces that this process does `what`, until the returned value is dropped or the process ends. `None` for a
    /// space that is not `shm://`. No other process sees a space of this one, and a server's space has no
    /// announcements.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceNotFound`] if the space has lost its name, [`Error::System`].
    pub fn announce(&self, what: &str) -> Result<Option<Announcement>, Error> {
        let Place::SharedMemory(name) = self.place() else { return Ok(None) };
        Ok(Some(Directory::default().announce(name, what).map_err(|error| self.named(error))?))
    }

    /// Whether a living process has announced that it does `what`. `None` for the spaces for which [`Space::announce`]
    /// returns it.
    ///
    /// # Errors
    ///
    /// As [`Space::announce`].
    pub fn is_announced(&self, what: &str) -> Result<Option<bool>, Error> {
        let Place::SharedMemory(name) = self.place() else { return Ok(None) };
        Ok(Some(Directory::default().is_announced(name, what).map_err(|error| self.named(error))?))
    }

    fn named(&self, error: tupelo_shm::Error) -> Error {
        crate::connect::named(error, self.url())
    }
}
