//! What `tupelo serve` is given.

use std::path::PathBuf;

use clap::Args;
use tupelo_server::{Endpoint, Engine, Limit, ServedSpace};

use super::HELP;

#[derive(Args)]
#[command(
    about = "Serve spaces to other programs, of this machine or of others.",
    before_help = "\
Examples:
  tupelo serve                                         at tcp://127.0.0.1:7667, for this machine
  tupelo put tcp://127.0.0.1:7667/jobs job 7
  tupelo serve --listen unix:///run/user/1000/tupelo.sock
  tupelo put 'unix:///run/user/1000/tupelo.sock?space=jobs' job 7
  tupelo serve --listen tls://0.0.0.0:7668 --certificate hub.pem --key hub.key --client-ca ca.pem
                                                       for other machines that have certificates
  tupelo serve --listen http://127.0.0.1:7680          for curl, and for Prometheus
  tupelo serve --engine shm                            the spaces of this machine, shm://NAME
  tupelo serve --space jobs --no-create                this space, and no others
  tupelo serve --space jobs=file:///srv/jobs.tupelo    this one is kept in a file
  tupelo serve --config /etc/tupelo/tupelo.toml        what the options say, in a file

SIGHUP reads certificates and tokens again. Ctrl-C or SIGTERM ends the server: blocked calls of clients end, and tuples that clients have not acknowledged go back.",
    help_template = HELP
)]
pub(crate) struct Serve {
    /// A file that says what these options say, as tupelo.toml; what is said here comes first
    #[arg(long, value_name = "PATH", value_parser = clap::value_parser!(PathBuf))]
    pub(crate) config: Option<PathBuf>,
    #[arg(
        long,
        value_name = "URL",
        value_parser = endpoint,
        help = "Where clients connect: unix:///PATH, or tcp://, tls:// or http:// and HOST:PORT; may be given several times"
    )]
    pub(crate) listen: Vec<Endpoint>,
    /// The path of a socket, as another way to write --listen with a unix URL; only this user can connect
    #[arg(long, value_name = "PATH", value_parser = clap::value_parser!(PathBuf))]
    pub(crate) socket: Option<PathBuf>,
    /// The certificate of this server for tls://, a PEM file
    #[arg(long, value_name = "PATH", value_parser = clap::value_parser!(PathBuf))]
    pub(crate) certificate: Option<PathBuf>,
    /// The key of the certificate, a PEM file
    #[arg(long, value_name = "PATH", value_parser = clap::value_parser!(PathBuf))]
    pub(crate) key: Option<PathBuf>,
    /// Only clients whose certificates are signed by one of these, a PEM file
    #[arg(long, value_name = "PATH", value_parser = clap::value_parser!(PathBuf))]
    pub(crate) client_ca: Option<PathBuf>,
    /// The file of tokens; each client needs one of them: see `tupelo token`
    #[arg(long, value_name = "PATH", value_parser = clap::value_parser!(PathBuf))]
    pub(crate) tokens: Option<PathBuf>,
    /// A file to which a line of JSON is added for each request that is denied, and each space that is made or removed
    #[arg(long, value_name = "PATH", value_parser = clap::value_parser!(PathBuf))]
    pub(crate) audit: Option<PathBuf>,
    /// What the programs of each token may have at a time, as waits=100; may be given several times
    #[arg(long = "limit", value_name = "NAME=MOST")]
    pub(crate) limits: Vec<Limit>,
    /// Let other machines connect without a certificate: every program that reaches this machine can use all spaces
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Where the spaces are: mem (in the server, they end with it; the default) or shm (in shared memory)
    #[arg(long, value_name = "ENGINE", value_parser = engine)]
    pub(crate) engine: Option<Engine>,
    /// Create this space at the start, kept in a file if one is named; may be given several times
    #[arg(long = "space", value_name = "NAME[=file:///PATH[?space=NAME]]", value_parser = space)]
    pub(crate) spaces: Vec<ServedSpace>,
    /// Clients cannot create spaces
    #[arg(long)]
    pub(crate) no_create: bool,
}

/// Where a server listens, as a URL without a space.
pub(crate) fn endpoint(text: &str) -> Result<Endpoint, String> {
    let (scheme, address) = text.split_once("://").unwrap_or_default();
    Endpoint::parse(scheme, address).unwrap_or_else(|| {
        Err("write unix:///PATH, tcp://HOST:PORT, tls://HOST:PORT or http://HOST:PORT".to_owned())
    })
}

/// A space of a server, by its name, and the file that it is kept in.
pub(crate) fn space(text: &str) -> Result<ServedSpace, String> {
    let Some((name, url)) = text.split_once('=') else {
        return Ok(ServedSpace { name: text.to_owned(), file_url: None });
    };
    if !url.starts_with("file:///") {
        return Err(format!(
            "behind the name stands the file that the space is kept in, as in {name}=file:///srv/{name}.tupelo"
        ));
    }
    Ok(ServedSpace { name: name.to_owned(), file_url: Some(url.to_owned()) })
}

/// The engine of a server, by its name.
pub(crate) fn engine(text: &str) -> Result<Engine, String> {
    let named = [Engine::Mem, Engine::Shm].into_iter().find(|engine| engine.scheme() == text);
    named.ok_or_else(|| "give mem or shm".to_owned())
}
