//! What a connection is made of: a socket of either kind and, with TLS, what is sealed on its way.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};
use tupelo_protocol::{Frames, Tls};

/// The socket of a client.
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    pub(crate) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.readable().await,
            Self::Tcp(stream) => stream.readable().await,
        }
    }

    pub(crate) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.writable().await,
            Self::Tcp(stream) => stream.writable().await,
        }
    }

    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.try_write(bytes),
            Self::Tcp(stream) => stream.try_write(bytes),
        }
    }

    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = match self {
            Self::Unix(stream) => stream.try_read(buffer),
            Self::Tcp(stream) => stream.try_read(buffer),
        }?;
        if bytes < buffer.len() {
            self.note_is_empty();
        }
        Ok(bytes)
    }

    /// Spares the next read, which would find nothing: that is a system call per request. An end of the stream that has come
    /// stays noted, and what comes later is told of.
    fn note_is_empty(&self) {
        let nothing = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
        let noted = match self {
            Self::Unix(stream) => stream.try_io(Interest::READABLE, nothing),
            Self::Tcp(stream) => stream.try_io(Interest::READABLE, nothing),
        };
        debug_assert!(noted.is_err(), "it was told that there is nothing");
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// A socket, and the server's side of TLS if there is any.
pub(crate) struct Stream {
    pub(crate) socket: Socket,
    tls: Option<Tls>,
}

/// What reading came to.
pub(crate) enum Read {
    /// So many bytes; 0 at the end.
    Bytes(usize),
    /// What came is no TLS, or its sender is not trusted. The client can be told so by [`Stream::outgoing`] alone.
    Untrusted,
}

impl Stream {
    pub(crate) fn new(socket: Socket, tls: Option<Tls>) -> Self {
        Self { socket, tls }
    }

    /// Adds what has come to `frames`. Afterwards there may be something [to send](Self::outgoing).
    pub(crate) fn try_read(&mut self, buffer: &mut [u8], frames: &mut Frames) -> io::Result<Read> {
        let bytes = self.socket.try_read(buffer)?;
        let came = &buffer[..bytes];
        let opened = match &mut self.tls {
            None => {
                frames.add(came);
                Ok(())
            }
            Some(tls) => tls.open(came, frames),
        };
        Ok(if opened.is_ok() { Read::Bytes(bytes) } else { Read::Untrusted })
    }

    /// What has to be written for `bytes`.
    pub(crate) fn seal(&mut self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        match &mut self.tls {
            None => Ok(bytes),
            Some(tls) => tls.seal(&bytes),
        }
    }

    /// What TLS itself has to say.
    pub(crate) fn outgoing(&mut self) -> Vec<u8> {
        self.tls.as_mut().map(Tls::outgoing).unwrap_or_default()
    }

    /// That nothing follows.
    pub(crate) fn farewell(&mut self) -> Vec<u8> {
        self.tls.as_mut().map(Tls::farewell).unwrap_or_default()
    }
}
