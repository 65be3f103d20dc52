//! Whom a client trusts, and as whom it appears.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use rustls_native_certs::load_native_certs;
use tupelo_protocol::rustls::crypto::ring::default_provider;
use tupelo_protocol::rustls::pki_types::pem::PemObject;
use tupelo_protocol::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tupelo_protocol::rustls::version::TLS13;
use tupelo_protocol::rustls::{self, ClientConfig, RootCertStore};
use tupelo_protocol::{Fault, Host, Tls, code};

use crate::server::Trust;

/// The client's side of TLS with the server at `host`.
pub(crate) fn client(host: &Host, trust: &Trust) -> Result<Tls, Fault> {
    let name = ServerName::try_from(host.name.clone())
        .map_err(|error| unusable(&format!("the host name {:?}", host.name), error))?;
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| unusable("TLS 1.3", error))?
        .with_root_certificates(roots(trust.ca.as_deref())?);
    let config = match &trust.own {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate).map_err(no_file)?;
            let secret = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| unusable(&format!("the key {}", key.display()), error))?;
            config.with_client_auth_cert(chain, secret).map_err(|error| {
                let (certificate, key) = (certificate.display(), key.display());
                unusable(&format!("the certificate {certificate} with the key {key}"), error)
            })?
        }
    };
    Tls::client(Arc::new(config), name).map_err(|error| unusable("TLS", error))
}

/// Those who may sign the certificate of a server.
fn roots(ca: Option<&Path>) -> Result<RootCertStore, Fault> {
    let mut roots = RootCertStore::empty();
    let Some(ca) = ca else {
        // Some of the system's may be of no use to anybody; of a server's only its own has to be there.
        roots.add_parsable_certificates(load_native_certs().certs);
        return Ok(roots);
    };
    for certificate in certificates(ca).map_err(no_file)? {
        let added = roots.add(certificate);
        added.map_err(|error| unusable(&format!("a certificate of {}", ca.display()), error))?;
    }
    Ok(roots)
}

/// The certificates of a PEM file, at least one.
///
/// # Errors
///
/// What is wrong with the file, in words.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let why = match found {
        Ok(found) if !found.is_empty() => return Ok(found),
        Ok(_) => "it has none".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(format!("the file of certificates {} can not be used: {why}", path.display()))
}

/// A file or a name that TLS can not work with.
fn unusable(what: &str, error: impl Display) -> Fault {
    no_file(format!("{what} can not be used: {error}"))
}

fn no_file(problem: String) -> Fault {
    let hint = "ca=, certificate= and key= in the URL are paths of PEM files, as in tls://hub/jobs?ca=/etc/tupelo/ca.pem";
    Fault::new(code::CONNECTION_LOST, problem, Some(hint))
}

/// What a failed handshake, or a connection that was changed under way, is called.
pub(crate) fn failed(address: &str, error: &rustls::Error) -> Fault {
    use rustls::Error;
    let (problem, hint) = match error {
        Error::InvalidCertificate(why) => (
            format!("its certificate is not trusted ({why:?})"),
            "name the certificate of its authority in the URL, as ?ca=/path/ca.pem, and the host as it stands in the \
             server's certificate",
        ),
        Error::AlertReceived(rustls::AlertDescription::CertificateRequired) => (
            "it asks for a certificate of this program".to_owned(),
            "give yours in the URL, as ?certificate=/path/own.pem&key=/path/own.key",
        ),
        Error::AlertReceived(why) => (
            format!("it has ended the handshake ({why:?})"),
            "is this program's certificate signed by the authority that the server trusts, and not expired?",
        ),
        Error::InvalidMessage(_) => (
            "what it says is not TLS".to_owned(),
            "a server without TLS is reached as tcp://, and listens on another port",
        ),
        error => (error.to_string(), "both sides need TLS 1.3"),
    };
    let message = format!("no secure connection to the server at {address}: {problem}");
    Fault::new(code::CONNECTION_LOST, message, Some(hint))
}
