//! `tupelo serve`: spaces for other programs.

use tupelo_server::{ServeError, serve};

use crate::arguments::Serve;
use crate::configuration::settings;
use crate::failure::Failure;
use crate::notify;
use crate::output::Output;

pub(crate) fn run(options: Serve, output: &mut Output) -> Result<(), Failure> {
    let settings = settings(options)?;
    let name = settings.spaces.first().map_or("NAME", |space| space.name.as_str());
    if settings.insecure {
        eprintln!(
            "tupelo serve: --insecure: whoever reaches this machine can use all of its spaces"
        );
    }
    let mut printed = Ok(());
    // The user who has started the server reads these lines, and can connect.
    serve(&settings, |endpoints| {
        let mut lines = endpoints.iter().map(|endpoint| format!("serving {}", endpoint.url(name)));
        printed = lines.try_for_each(|line| output.line(&line)).and_then(|()| output.flush());
        let urls: Vec<_> = endpoints.iter().map(|endpoint| endpoint.url(name)).collect();
        if let Err(error) = notify::ready(&format!("serving {}", urls.join(", "))) {
            // Those who connect are served; the supervisor may take it for one that does not start.
            eprintln!("tupelo serve: the socket of NOTIFY_SOCKET can not be shown: {error}");
        }
    })?;
    printed
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Space(error) => Self::Space(error),
            error @ (ServeError::System { .. } | ServeError::Unusable { .. }) => {
                Self::Other(error.to_string())
            }
        }
    }
}
