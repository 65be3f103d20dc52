//! The certificate of a server, and whose clients' certificates it accepts.

use std::cell::RefCell;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use tupelo_client::certificates;
use tupelo_protocol::rustls::crypto::ring::default_provider;
use tupelo_protocol::rustls::pki_types::PrivateKeyDer;
use tupelo_protocol::rustls::pki_types::pem::PemObject;
use tupelo_protocol::rustls::server::WebPkiClientVerifier;
use tupelo_protocol::rustls::version::TLS13;
use tupelo_protocol::rustls::{RootCertStore, ServerConfig};

use crate::ServeError;

/// The files of TLS, in PEM format. Read at the start, and again at `SIGHUP`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// The certificate of the server, and those between it and its authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Certificates of those who sign clients' certificates. With it, a client without one is refused.
    pub client_ca: Option<PathBuf>,
}

/// What the server of a process is known by, as its files said when they were last read.
pub(crate) struct Identity {
    files: Certificates,
    config: RefCell<Arc<ServerConfig>>,
}

impl Identity {
    /// Reads the files.
    pub(crate) fn new(files: &Certificates) -> Result<Self, ServeError> {
        let config = RefCell::new(files.read()?);
        Ok(Self { files: files.clone(), config })
    }

    /// Reads the files again, for connections that are made from now on. If they can not be used, nothing changes.
    pub(crate) fn reload(&self) -> Result<(), ServeError> {
        *self.config.borrow_mut() = self.files.read()?;
        Ok(())
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.borrow())
    }

    /// Whether clients without a certificate are refused.
    pub(crate) const fn asks_clients(&self) -> bool {
        self.files.client_ca.is_some()
    }
}

impl Certificates {
    /// What TLS needs to know of them.
    fn read(&self) -> Result<Arc<ServerConfig>, ServeError> {
        let provider = Arc::new(default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| unusable("TLS 1.3", error))?;
        let config = match &self.client_ca {
            None => config.with_no_client_auth(),
            Some(ca) => {
                let what = || format!("the client authority {}", ca.display());
                let mut roots = RootCertStore::empty();
                for certificate in certificates(ca).map_err(no_file)? {
                    roots.add(certificate).map_err(|error| unusable(&what(), error))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                config.with_client_cert_verifier(verifier.map_err(|e| unusable(&what(), e))?)
            }
        };
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| unusable(&format!("the key {}", self.key.display()), error))?;
        let config =
            config.with_single_cert(certificates(&self.certificate).map_err(no_file)?, key);
        config.map(Arc::new).map_err(|error| {
            let (certificate, key) = (self.certificate.display(), self.key.display());
            unusable(&format!("the certificate {certificate} with the key {key}"), error)
        })
    }
}

fn unusable(what: &str, error: impl Display) -> ServeError {
    no_file(format!("{what} can not be used: {error}"))
}

fn no_file(problem: String) -> ServeError {
    ServeError::Unusable {
        problem,
        hint: "give PEM files with --certificate and --key, and with --client-ca if clients have certificates",
    }
}
