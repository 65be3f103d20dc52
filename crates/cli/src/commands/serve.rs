//! `tupelo serve`: spaces for other programs.

use std::path::absolute;

use tupelo_server::{Certificates, Endpoint, Host, ServeError, Settings, TCP_PORT, serve};

use crate::arguments::Serve;
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

fn settings(options: Serve) -> Result<Settings, Failure> {
    let Serve {
        listen,
        socket,
        certificate,
        key,
        client_ca,
        tokens,
        insecure,
        engine,
        spaces,
        no_create,
    } = options;
    let mut endpoints = listen;
    if let Some(socket) = socket {
        // As clients write it: from wherever they are.
        let path = absolute(&socket)
            .map_err(|error| Failure::Other(format!("{}: {error}", socket.display())))?;
        endpoints.push(Endpoint::Unix(path));
    }
    if endpoints.is_empty() {
        endpoints.push(Endpoint::Tcp(Host { name: "127.0.0.1".into(), port: TCP_PORT }));
    }
    let certificates = certificate.zip(key);
    let certificates =
        certificates.map(|(certificate, key)| Certificates { certificate, key, client_ca });
    Ok(Settings { endpoints, certificates, insecure, tokens, engine, creates: !no_create, spaces })
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
