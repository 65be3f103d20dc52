//! URLs of spaces: which engine, and which name.

use crate::error::Error;

/// Longest name of a space, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = tupelo_shm::NAME_BYTES_MAX;

/// Where a space lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Private memory of this process.
    Memory(String),
    /// Shared memory of this machine.
    SharedMemory(String),
}

impl Place {
    /// Understands `mem://name` and `shm://name`.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let misuse =
            |problem: String, hint: &str| Error::Misuse { problem, hint: Some(hint.into()) };
        let Some((scheme, name)) = url.split_once("://") else {
            let problem = format!("{url:?} is no URL of a space");
            return Err(misuse(
                problem,
                "write shm://NAME for all processes of this machine, or mem://NAME",
            ));
        };
        let place = match scheme {
            "mem" => Self::Memory(name.into()),
            "shm" => Self::SharedMemory(name.into()),
            _ => {
                let problem =
                    format!("no engine for {scheme}:// in {url:?}; there are mem:// and shm://");
                return Err(misuse(problem, &format!("write shm://{}", name.replace('/', "-"))));
            }
        };
        if name.is_empty() {
            let problem = format!("{url:?} names no space");
            return Err(misuse(problem, &format!("write a name behind it, as in {scheme}://jobs")));
        }
        tupelo_shm::check_name(name).map_err(|error| {
            let problem = format!("{url:?}: {error}");
            let hint = format!(
                "a name is up to {NAME_BYTES_MAX} bytes without a slash, as in {scheme}://jobs"
            );
            misuse(problem, &hint)
        })?;
        Ok(place)
    }

    /// The name of the space.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Memory(name) | Self::SharedMemory(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn a_url_is_a_scheme_and_a_name() {
        assert_eq!(Place::parse("shm://jobs").unwrap(), Place::SharedMemory("jobs".into()));
        assert_eq!(Place::parse("mem://jobs").unwrap(), Place::Memory("jobs".into()));
    }

    #[test]
    fn what_is_no_url_is_refused_with_one_that_is() {
        for (url, says) in [
            ("jobs", "write shm://NAME"),
            ("shm://", "shm://jobs"),
            ("tcp://host:1/jobs", "there are mem:// and shm://"),
            ("shm://a/b", "without a slash"),
        ] {
            let error = Place::parse(url).unwrap_err().to_string();
            assert!(error.contains(says), "{url}: {error}");
        }
    }
}
