//! `tupelo serve`: spaces for other programs, on a Unix socket.

use std::path::absolute;

use tupelo_server::{ServeError, Settings, serve};

use crate::arguments::Serve;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(options: Serve, output: &mut Output) -> Result<(), Failure> {
    // As clients write it: from wherever they are.
    let socket = absolute(&options.socket)
        .map_err(|error| Failure::Other(format!("{}: {error}", options.socket.display())))?;
    let (engine, creates) = (options.engine, !options.no_create);
    let settings = Settings { socket, engine, creates, spaces: options.spaces };
    let name = settings.spaces.first().map_or("NAME", String::as_str);
    let told = format!("serving unix://{}?space={name}", settings.socket.display());
    let mut printed = Ok(());
    // Who has started it reads this line, and can connect.
    serve(&settings, || printed = output.line(&told).and_then(|()| output.flush()))?;
    printed
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Space(error) => Self::Space(error),
            error @ ServeError::System { .. } => Self::Other(error.to_string()),
        }
    }
}
