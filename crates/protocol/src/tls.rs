//! TLS between bytes and bytes: what is sealed before it is sent, and opened when it has come.
//!
//! No sockets here either: the one who has the socket writes what [`Tls::seal`] returns, in its order, and gives
//! [`Tls::open`] what it has read. So a connection with TLS is a connection without it and one step more.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};

use crate::frames::Frames;

/// What is opened at a time: the most that one record of TLS holds.
const RECORD_BYTES: usize = 16 << 10;

/// One side of a connection.
pub struct Tls(Connection);

impl Tls {
    /// That of a client. It begins: what it has [to send](Self::outgoing) comes first.
    ///
    /// # Errors
    ///
    /// What rustls says of its settings.
    pub fn client(
        config: Arc<ClientConfig>,
        server: ServerName<'static>,
    ) -> Result<Self, rustls::Error> {
        ClientConnection::new(config, server).map(|client| Self(client.into()))
    }

    /// That of a server, which waits for a client to begin.
    ///
    /// # Errors
    ///
    /// What rustls says of its settings.
    pub fn server(config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        ServerConnection::new(config).map(|server| Self(server.into()))
    }

    /// Opens what has come, and adds it to `frames`. Afterwards there may be something [to send](Self::outgoing), also
    /// when this fails: why it does.
    ///
    /// # Errors
    ///
    /// What rustls says of it: it is no TLS, say, or the certificate of the other side is not trusted.
    pub fn open(&mut self, mut sealed: &[u8], frames: &mut Frames) -> Result<(), rustls::Error> {
        let mut buffer = [0; RECORD_BYTES];
        while !sealed.is_empty() {
            // Reading from memory fails only where TLS has buffered more than it may.
            let read = self.0.read_tls(&mut sealed).map_err(|error| general(&error))?;
            let opened = self.0.process_new_packets()?.plaintext_bytes_to_read();
            let mut left = opened;
            while left > 0 {
                let bytes = self.0.reader().read(&mut buffer).map_err(|error| general(&error))?;
                frames.add(&buffer[..bytes]);
                left = left.saturating_sub(bytes);
            }
            if read == 0 {
                break; // behind the other side's farewell
            }
        }
        Ok(())
    }

    /// Seals `plain`: returns what is to be sent, behind all that was returned before.
    ///
    /// # Errors
    ///
    /// Before hands are shaken, TLS keeps what it is given, and no more than 64 KiB of that.
    pub fn seal(&mut self, mut plain: &[u8]) -> io::Result<Vec<u8>> {
        let mut sealed = Vec::with_capacity(plain.len() + RECORD_BYTES / 16);
        while !plain.is_empty() {
            let taken = self.0.writer().write(plain)?;
            if taken == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            plain = &plain[taken..];
            self.append_outgoing(&mut sealed);
        }
        Ok(sealed)
    }

    /// What TLS itself has to say: its handshake, why it has failed, and new keys now and then.
    pub fn outgoing(&mut self) -> Vec<u8> {
        let mut sealed = Vec::new();
        self.append_outgoing(&mut sealed);
        sealed
    }

    /// The last thing to send: that nothing follows.
    pub fn farewell(&mut self) -> Vec<u8> {
        self.0.send_close_notify();
        self.outgoing()
    }

    fn append_outgoing(&mut self, sealed: &mut Vec<u8>) {
        while self.0.wants_write() {
            // Memory takes all of it.
            if self.0.write_tls(sealed).is_err() {
                return;
            }
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

fn general(error: &io::Error) -> rustls::Error {
    rustls::Error::General(error.to_string())
}
