//! What lower layers ask higher ones to do. Whoever makes a store says who does it.

use crate::base::error::Error;
use crate::store::Store;

/// The functions of higher layers that lower ones call.
pub(crate) struct Callbacks {
    /// Lets everything happen that is due in the partition with this lock. What has happened stays, also where it fails.
    pub(crate) catch_up: fn(&Store, u32) -> Result<(), Error>,
    /// Tells who keeps the time that the earliest timer of the space is due at this moment, in milliseconds.
    pub(crate) notify_leader: fn(&Store, u64),
    /// Gives back what a dead process had beyond its calls, by its number among the participants and its process id.
    pub(crate) free_holds_of: fn(&Store, u32, u32) -> Result<(), Error>,
}
