//! What `tupelo serve` is told: by its flags, else by variables of its environment, else by a file.
//!
//! All three say the same things by the same names: `--client-ca`, `TUPELO_CLIENT_CA` and `client_ca`.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf, absolute};

use serde::Deserialize;
use tupelo_server::{
    Certificates, Endpoint, Engine, Host, Inherited, Limit, Limits, ServedSpace, Settings, TCP_PORT,
};
use tupelo_shm::inherited::listening_sockets;

use crate::arguments::{Serve, endpoint, engine, space};
use crate::failure::Failure;

/// Bytes of a file.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The variable that names the file, as `--config` does.
const FILE: &str = "TUPELO_CONFIG";
/// What a file may say.
const KEYS: [&str; 12] = [
    "listen",
    "socket",
    "certificate",
    "key",
    "client_ca",
    "tokens",
    "audit",
    "limits",
    "insecure",
    "engine",
    "spaces",
    "create",
];

/// What one of the three says; `None`: nothing.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Said {
    listen: Option<Vec<String>>,
    socket: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    client_ca: Option<PathBuf>,
    tokens: Option<PathBuf>,
    audit: Option<PathBuf>,
    #[serde(default)]
    limits: BTreeMap<String, u64>,
    insecure: Option<bool>,
    engine: Option<String>,
    spaces: Option<Vec<String>>,
    create: Option<bool>,
}

/// What a server is started with.
pub(crate) fn settings(flags: Serve) -> Result<Settings, Failure> {
    let file = flags.config.clone().or_else(|| env::var_os(FILE).map(PathBuf::from));
    let file = file.as_deref().map(read_file).transpose()?.unwrap_or_default();
    let environment = read_environment(|name| env::var(name).ok())?;
    let sockets = listening_sockets().map_err(|error| {
        Failure::Other(format!("the sockets of LISTEN_FDS can not be taken over: {error}"))
    })?;
    let inherited = sockets.into_iter().map(|(socket, name)| Inherited::new(socket, &name));
    let inherited = inherited.collect::<Result<_, _>>()?;
    read_flags(flags).or(environment).or(file).settings(inherited)
}

impl Said {
    /// This, and what another one says of the rest.
    fn or(self, other: Self) -> Self {
        // Where clients connect is one thing that may be said in two ways.
        let says_where = self.listen.is_some() || self.socket.is_some();
        let (listen, socket) =
            if says_where { (self.listen, self.socket) } else { (other.listen, other.socket) };
        Self {
            listen,
            socket,
            certificate: self.certificate.or(other.certificate),
            key: self.key.or(other.key),
            client_ca: self.client_ca.or(other.client_ca),
            tokens: self.tokens.or(other.tokens),
            audit: self.audit.or(other.audit),
            // Each limit by itself.
            limits: other.limits.into_iter().chain(self.limits).collect(),
            insecure: self.insecure.or(other.insecure),
            engine: self.engine.or(other.engine),
            spaces: self.spaces.or(other.spaces),
            create: self.create.or(other.create),
        }
    }

    fn settings(self, inherited: Vec<Inherited>) -> Result<Settings, Failure> {
        let usage = |problem: String| Failure::Usage(problem);
        let mut endpoints = Vec::new();
        for text in self.listen.unwrap_or_default() {
            let wrong = |why| usage(format!("listen: {text:?} is no address: {why}"));
            endpoints.push(endpoint(&text).map_err(wrong)?);
        }
        if let Some(socket) = self.socket {
            // As clients write it: from wherever they are.
            let path = absolute(&socket)
                .map_err(|error| Failure::Other(format!("{}: {error}", socket.display())))?;
            endpoints.push(Endpoint::Unix(path));
        }
        if endpoints.is_empty() && inherited.is_empty() {
            endpoints.push(Endpoint::Tcp(Host { name: "127.0.0.1".into(), port: TCP_PORT }));
        }
        let certificates = match (self.certificate, self.key, self.client_ca) {
            (Some(certificate), Some(key), client_ca) => {
                Some(Certificates { certificate, key, client_ca })
            }
            (None, None, None) => None,
            (None, _, _) => return Err(usage("there is no certificate for the key, or for the authority of clients\n  name one with --certificate".to_owned())),
            (_, None, _) => return Err(usage("there is no key for the certificate\n  name one with --key".to_owned())),
        };
        let named = self.engine.map_or(Ok(Engine::Mem), |name| {
            engine(&name).map_err(|why| usage(format!("engine: {name:?} is none: {why}")))
        });
        let spaces = self.spaces.unwrap_or_default();
        let spaces = spaces.iter().map(|text| space(text)).collect::<Result<_, _>>();
        Ok(Settings {
            endpoints,
            inherited,
            certificates,
            insecure: self.insecure.unwrap_or(false),
            tokens: self.tokens,
            audit: self.audit,
            limits: limits(&self.limits)?,
            engine: named?,
            creates: self.create.unwrap_or(true),
            spaces: spaces.map_err(|why| usage(format!("spaces: {why}")))?,
        })
    }
}

fn read_flags(flags: Serve) -> Said {
    let some = |list: Vec<String>| Some(list).filter(|list| !list.is_empty());
    let listen = flags.listen.iter().map(ToString::to_string).collect();
    Said {
        listen: some(listen),
        socket: flags.socket,
        certificate: flags.certificate,
        key: flags.key,
        client_ca: flags.client_ca,
        tokens: flags.tokens,
        audit: flags.audit,
        limits: flags.limits.into_iter().map(|limit| (limit.name, limit.most)).collect(),
        insecure: flags.insecure.then_some(true),
        engine: flags.engine.map(|engine| engine.scheme().to_owned()),
        spaces: some(flags.spaces.into_iter().map(text_of).collect()),
        create: flags.no_create.then_some(false),
    }
}

/// A space as its text is read.
fn text_of(ServedSpace { name, file_url }: ServedSpace) -> String {
    file_url.map_or(name.clone(), |url| format!("{name}={url}"))
}

/// The environment has a variable for each key. Those of several values have commas between them.
fn read_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Said, Failure> {
    let text = |key: &str| variable(&variable_of(key)).filter(|text| !text.is_empty());
    let path = |key| text(key).map(PathBuf::from);
    let list =
        |key| text(key).map(|text| text.split(',').map(|one| one.trim().to_owned()).collect());
    let limits: Vec<String> = list("limits").unwrap_or_default();
    let limits = limits.iter().map(|limit| limit.parse::<Limit>()).collect::<Result<Vec<_>, _>>();
    let limits =
        limits.map_err(|why| Failure::Usage(format!("{}: {why}", variable_of("limits"))))?;
    let flag = |key| match text(key).as_deref() {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(other) => {
            Err(Failure::Usage(format!("{} is {other:?}\n  write true or false", variable_of(key))))
        }
    };
    Ok(Said {
        listen: list("listen"),
        socket: path("socket"),
        certificate: path("certificate"),
        key: path("key"),
        client_ca: path("client_ca"),
        tokens: path("tokens"),
        audit: path("audit"),
        limits: limits.into_iter().map(|limit| (limit.name, limit.most)).collect(),
        insecure: flag("insecure")?,
        engine: text("engine"),
        spaces: list("spaces"),
        create: flag("create")?,
    })
}

fn variable_of(key: &str) -> String {
    format!("TUPELO_{}", key.to_uppercase())
}

/// Reads a file, whose paths begin at its own folder.
fn read_file(path: &Path) -> Result<Said, Failure> {
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::Usage(format!("the configuration {}: {why}", path.display()))
    };
    let mut text = String::new();
    let file = File::open(path).map_err(|error| wrong(&error))?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| wrong(&error))?;
    let table: toml::Table = toml::from_str(&text).map_err(|error| wrong(&error))?;
    if let Some(unknown) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(wrong(&format!(
            "there is no key {unknown:?}\n  did you mean {:?}? The keys are {}",
            nearest(unknown, &KEYS),
            KEYS.join(", ")
        )));
    }
    let mut said: Said = toml::from_str(&text).map_err(|error| wrong(&error))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let paths = [
        &mut said.socket,
        &mut said.certificate,
        &mut said.key,
        &mut said.client_ca,
        &mut said.tokens,
        &mut said.audit,
    ];
    for named in paths.into_iter().flatten() {
        *named = folder.join(&*named);
    }
    Ok(said)
}

/// The limits of these names.
fn limits(given: &BTreeMap<String, u64>) -> Result<Limits, Failure> {
    let mut limits = Limits::default();
    for (name, most) in given {
        let limit = limits.get_mut(name).ok_or_else(|| {
            let (nearest, names) = (nearest(name, &Limits::NAMES), Limits::NAMES.join(", "));
            Failure::Usage(format!(
                "there is no limit {name:?}\n  did you mean {nearest:?}? The limits are {names}"
            ))
        })?;
        *limit = Some(*most);
    }
    Ok(limits)
}

/// The name that is most like this text.
fn nearest<'n>(text: &str, names: &[&'n str]) -> &'n str {
    let alike = |name: &&&str| strsim::jaro_winkler(text, name);
    let nearest = names.iter().max_by(|one, other| alike(one).total_cmp(&alike(other)));
    nearest.copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{KEYS, Said, nearest, read_environment, read_file};
    use crate::failure::Failure;
    use std::path::PathBuf;
    use tupelo_server::Engine;

    fn file(text: &str) -> (PathBuf, Result<Said, Failure>) {
        let folder = std::env::temp_dir().join(format!("tupelo-configuration-{}", number()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("tupelo.toml");
        std::fs::write(&path, text).unwrap();
        let said = read_file(&path);
        std::fs::remove_dir_all(&folder).unwrap();
        (folder, said)
    }

    /// A number that no other test of this machine has at this moment.
    fn number() -> String {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
    }

    fn refusal(failure: Result<Said, Failure>) -> String {
        failure.unwrap_err().message().unwrap()
    }

    #[test]
    fn the_environment_comes_before_a_file_and_flags_before_both() {
        let (folder, said) = file(
            "listen = ['tcp://127.0.0.1:1']\nsocket = 'a.sock'\nengine = 'shm'\nspaces = ['jobs']\ncreate = false\nlimits = { waits = 1, tuples = 1 }\n",
        );
        let said = said.unwrap();
        assert_eq!(said.socket, Some(folder.join("a.sock")));
        let environment = read_environment(|name| match name {
            "TUPELO_LISTEN" => Some("tcp://127.0.0.1:2, unix:///b.sock".to_owned()),
            "TUPELO_CREATE" => Some("true".to_owned()),
            "TUPELO_LIMITS" => Some("waits=2".to_owned()),
            _ => None,
        });
        let flags = Said { spaces: Some(vec!["mine".to_owned()]), ..Said::default() };
        let settings = flags.or(environment.unwrap()).or(said).settings(Vec::new()).unwrap();
        let endpoints: Vec<_> = settings.endpoints.iter().map(ToString::to_string).collect();
        assert_eq!(endpoints, ["tcp://127.0.0.1:2", "unix:///b.sock"]);
        assert_eq!((settings.engine, settings.creates), (Engine::Shm, true));
        let names: Vec<_> = settings.spaces.iter().map(|space| &*space.name).collect();
        assert_eq!(names, ["mine"]);
        // Each limit by itself.
        assert_eq!((settings.limits.waits, settings.limits.tuples), (Some(2), Some(1)));
    }

    #[test]
    fn a_key_that_there_is_not_is_refused_with_the_nearest_one() {
        let says = refusal(file("listn = []\n").1);
        assert!(
            says.contains("tupelo.toml") && says.contains("did you mean \"listen\"?"),
            "{says}"
        );
        for (text, key) in [("client-ca", "client_ca"), ("token", "tokens"), ("space", "spaces")] {
            assert_eq!(nearest(text, &KEYS), key);
        }
        for key in KEYS {
            assert_eq!(nearest(key, &KEYS), key);
        }
    }

    #[test]
    fn every_key_is_one_of_the_file_and_of_the_environment() {
        for key in KEYS {
            let value = match key {
                "listen" | "spaces" => "['tcp://127.0.0.1:1']",
                "insecure" | "create" => "true",
                "limits" => "{ waits = 7 }",
                _ => "'x'",
            };
            let (_, said) = file(&format!("{key} = {value}\n"));
            assert_ne!(said.unwrap(), Said::default(), "{key} in a file");
            let variable = super::variable_of(key);
            let given = if key == "limits" { "waits=7" } else { "true" };
            let said =
                read_environment(|name| (name == variable).then(|| given.to_owned())).unwrap();
            assert_ne!(said, Said::default(), "{variable}");
        }
    }

    #[test]
    fn the_file_of_the_page_on_servers_is_one() {
        let page = include_str!("../../../docs/how-to/server.md");
        let text = page.split("```toml").nth(1).unwrap().split("```").next().unwrap();
        let settings = file(text).1.unwrap().settings(Vec::new()).unwrap();
        assert_eq!((settings.engine, settings.creates), (Engine::Shm, false));
        assert_eq!(settings.endpoints.len(), 2);
        assert_eq!(settings.audit, Some("/var/log/tupelo/audit.jsonl".into()));
        for key in KEYS {
            assert!(page.contains(&format!("`{key}`")), "{key}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_its_name() {
        for (text, says) in [
            ("engine = 'disk'\n", "engine: \"disk\" is none: give mem or shm"),
            ("listen = ['jobs']\n", "listen: \"jobs\" is no address"),
            ("certificate = 'hub.pem'\n", "there is no key for the certificate"),
            ("key = 'hub.key'\n", "there is no certificate"),
            ("limits = { wait = 7 }\n", "did you mean \"waits\"?"),
        ] {
            let failure =
                file(text).1.unwrap().settings(Vec::new()).unwrap_err().message().unwrap();
            assert!(failure.contains(says), "{text}: {failure}");
        }
        assert!(refusal(file("engine = 7\n").1).contains("engine = 7"));
        let wrong = read_environment(|name| (name == "TUPELO_CREATE").then(|| "no".to_owned()));
        assert!(refusal(wrong).contains("TUPELO_CREATE is \"no\""));
        assert!(
            refusal(read_file("/no/such/tupelo.toml".as_ref())).contains("/no/such/tupelo.toml")
        );
    }
}
