//! Certificates for a test: an authority, and those that it has signed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// An authority, whose files are removed with it.
pub(crate) struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as files.
pub(crate) struct Signed {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = format!("tupelo-authority-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        fs::write(folder.join("ca.pem"), certificate.pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, key) }
    }

    /// The certificate of the authority.
    pub(crate) fn ca(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// A certificate for `host`, in files that are called `name`.
    pub(crate) fn sign(&self, name: &str, host: &str) -> Signed {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let write = |path: &Path, text: String| {
            fs::write(path, text).unwrap();
            path.to_owned()
        };
        Signed {
            certificate: write(&self.folder.join(format!("{name}.pem")), certificate.pem()),
            key: write(&self.folder.join(format!("{name}.key")), key.serialize_pem()),
        }
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        // The system cleans its folder of temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
