//! Which spaces a server has.

use tupelo_tuple::Tuple;

use super::named;
use super::rows::Fields;
use crate::error::Error;
use crate::url::server;

/// A space of a server, as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSpace {
    /// The URL that opens it.
    pub url: String,
    /// How many tuples it has; `None` if this program may not see that, or the server has not opened the space.
    pub tuples: Option<u64>,
    /// The memory of its tuples, in bytes; `None` in the same cases.
    pub bytes: Option<u64>,
}

/// The spaces of the server at `url`, by their URLs: those in which this program may do something. `None` if the URL is not
/// that of a server alone, as `tcp://hub:7667`.
///
/// # Errors
///
/// [`Error::ConnectionLost`]: there is no server. [`Error::AccessDenied`]: it asks for a token. [`Error::Misuse`]: an
/// option of the URL makes no sense.
pub fn spaces_of(url: &str) -> Result<Option<Vec<ServerSpace>>, Error> {
    let Some(server) = server::alone(url)? else { return Ok(None) };
    let tuples = tupelo_client::spaces(&server).map_err(|fault| named(fault, url))?;
    let spaces = tuples.iter().map(|tuple| space_of(url, tuple));
    spaces.collect::<Result<_, _>>().map(Some)
}

fn space_of(url: &str, tuple: &Tuple) -> Result<ServerSpace, Error> {
    let (name, mut figures) = Fields::of(tuple)?;
    let url = server::url_of(url, name);
    Ok(ServerSpace { url, tuples: figures.optional()?, bytes: figures.optional()? })
}
