//! The stream of bytes, cut into frames: four bytes with the length, most significant first, then as many bytes.

use tupelo_tuple::EncodeError;

use crate::fault::Fault;

/// Most bytes of a frame, without its length: room for a large array, and no more than a server can have of every client.
pub const FRAME_BYTES_MAX: usize = 64 << 20;
/// Most bytes of the first frame that comes from a stranger.
pub const HANDSHAKE_BYTES_MAX: usize = 4096;
/// Bytes of the length in front of a frame.
const LENGTH_BYTES: usize = 4;
/// What a buffer keeps when it is empty: enough for many small frames.
const KEPT_BYTES: usize = 64 << 10;

/// Appends a frame whose content is what `write` appends.
///
/// # Errors
///
/// What `write` says, and a [`Fault`] beyond [`FRAME_BYTES_MAX`]. Nothing was appended.
pub fn frame(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), Fault> {
    let start = out.len();
    out.extend([0; LENGTH_BYTES]);
    let written = write(out).map_err(Fault::from);
    let bytes = out.len() - start - LENGTH_BYTES;
    let length = u32::try_from(bytes).ok().filter(|_| bytes <= FRAME_BYTES_MAX);
    let fits = length.ok_or_else(|| too_large(bytes, FRAME_BYTES_MAX));
    match written.and(fits) {
        Ok(length) => out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes()),
        Err(fault) => {
            out.truncate(start);
            return Err(fault);
        }
    }
    Ok(())
}

fn too_large(bytes: usize, bytes_max: usize) -> Fault {
    Fault::limit(
        format!("a frame of {bytes} bytes is over the limit of {bytes_max}"),
        "send it in smaller parts, or put the data elsewhere and its address into the tuple",
    )
}

/// What has come and is not used yet.
#[derive(Debug)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where the next frame begins.
    at: usize,
    bytes_max: usize,
}

impl Frames {
    /// Nothing yet; frames of up to `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes: Vec::new(), at: 0, bytes_max }
    }

    /// Lets frames have up to `bytes_max` bytes from now on.
    pub fn set_limit(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// Adds what has come.
    pub fn add(&mut self, bytes: &[u8]) {
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
            self.at = 0;
        } else if self.at > KEPT_BYTES {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether nothing has come but what was returned.
    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The next frame, if it has come whole.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if it is going to be too large: nothing that follows means anything then.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, Fault> {
        let rest = &self.bytes[self.at..];
        let Some((length, rest)) = rest.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.bytes_max {
            return Err(too_large(length, self.bytes_max));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let start = self.at + LENGTH_BYTES;
        self.at = start + length;
        Ok(Some(&self.bytes[start..self.at]))
    }
}

#[cfg(test)]
mod tests {
    use super::{FRAME_BYTES_MAX, Frames, frame};

    #[test]
    fn frames_come_out_as_they_went_in_however_the_stream_is_cut() {
        let contents: Vec<Vec<u8>> = (0..50).map(|n| vec![n; usize::from(n) * 7]).collect();
        let mut stream = Vec::new();
        for content in &contents {
            frame(&mut stream, |out| {
                out.extend(content);
                Ok(())
            })
            .unwrap();
        }
        for cut in [1, 2, 3, 5, 64, 1000, stream.len()] {
            let (mut frames, mut found) = (Frames::new(FRAME_BYTES_MAX), Vec::new());
            for part in stream.chunks(cut) {
                frames.add(part);
                while let Some(content) = frames.next_frame().unwrap() {
                    found.push(content.to_vec());
                }
            }
            assert_eq!(found, contents, "cut every {cut} bytes");
        }
    }

    #[test]
    fn a_frame_that_is_too_large_is_refused_at_its_length_and_none_is_made_b2() {
        let mut frames = Frames::new(100);
        frames.add(&101_u32.to_be_bytes());
        let fault = frames.next_frame().unwrap_err();
        assert!(fault.message.contains("101 bytes") && fault.code == "TUP-017", "{fault}");
        let mut out = vec![7];
        let made = frame(&mut out, |out| {
            out.resize(FRAME_BYTES_MAX + 10, 0);
            Ok(())
        });
        assert!(made.is_err());
        assert_eq!(out, [7], "nothing of it was appended");
    }
}
