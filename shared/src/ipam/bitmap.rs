//! Which addresses have a record: one bit each, in files of 65 536 addresses (8 KiB) that do not depend on
//! the configured ranges, so that a range may change and change back.
//!
//! A record is made before its bit is set, and its bit is cleared before it goes. So a set bit always
//! has a record; a clear bit may have one (a crash between the two, a deleted file), which shows when
//! the address is tried, and mends.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::net::IpAddr;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

use super::Error;
use super::range::{address, number};

const BYTES: usize = 8192;
/// Addresses of one file.
pub const CHUNK: u128 = 1 << 16;

/// The bitmap folder, with the files read so far.
pub struct Bitmap {
    folder: PathBuf,
    chunks: HashMap<(bool, u128), Vec<u8>>,
    /// There is nothing but these.
    whole: bool,
}

impl Bitmap {
    /// The bitmap that lies in a folder; nothing is read yet.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, chunks: HashMap::new(), whole: false }
    }

    /// The bitmap of these addresses, of which no file is read. It is not for writing.
    pub fn in_memory(addresses: impl Iterator<Item = IpAddr>) -> Self {
        let mut bitmap = Self { folder: PathBuf::new(), chunks: HashMap::new(), whole: true };
        bitmap.fill(addresses);
        bitmap
    }

    fn path(&self, (v6, prefix): (bool, u128)) -> PathBuf {
        let name = if v6 { format!("{prefix:028x}") } else { format!("{}.{}", prefix >> 8 & 0xff, prefix & 0xff) };
        self.folder.join(name)
    }

    fn chunk(&mut self, key: (bool, u128)) -> Result<&mut Vec<u8>, Error> {
        if !self.chunks.contains_key(&key) {
            let path = self.path(key);
            let mut bits = Vec::with_capacity(BYTES);
            if !self.whole {
                match File::open(&path).and_then(|mut file| file.read_to_end(&mut bits)) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(Error::io("read", &path, error)),
                }
            }
            bits.resize(BYTES, 0);
            self.chunks.insert(key, bits);
        }
        Ok(self.chunks.entry(key).or_default())
    }

    /// The first number from `from` to `end`, both included, whose bit is clear.
    pub fn next_clear(&mut self, v6: bool, from: u128, end: u128) -> Result<Option<u128>, Error> {
        let mut at = from;
        while at <= end {
            let bits = self.chunk((v6, at / CHUNK))?;
            let base = at / CHUNK * CHUNK;
            let mut bit = (at % CHUNK) as usize;
            while bit < BYTES * 8 {
                let byte = bits[bit / 8];
                if bit.is_multiple_of(8) && byte == 0xff {
                    bit += 8;
                } else if byte & 1 << (bit % 8) == 0 {
                    let found = base + bit as u128;
                    return Ok((found <= end).then_some(found));
                } else {
                    bit += 1;
                }
            }
            let Some(next) = base.checked_add(CHUNK) else { return Ok(None) };
            at = next;
        }
        Ok(None)
    }

    /// True if there is a file for an address.
    pub fn covers(&self, address: IpAddr) -> bool {
        self.path((address.is_ipv6(), number(address) / CHUNK)).exists()
    }

    /// Marks an address as having a record, or not. `make`: also where there is no file for it yet.
    pub fn mark(&mut self, address: IpAddr, present: bool, make: bool) -> Result<(), Error> {
        let (v6, number) = (address.is_ipv6(), number(address));
        let key = (v6, number / CHUNK);
        let path = self.path(key);
        let file = match OpenOptions::new().write(true).create(make && present).truncate(false).mode(0o600).open(&path)
        {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Error::io("open", &path, error)),
        };
        let bit = (number % CHUNK) as usize;
        let byte = {
            let byte = &mut self.chunk(key)?[bit / 8];
            if present {
                *byte |= 1 << (bit % 8);
            } else {
                *byte &= !(1 << (bit % 8));
            }
            *byte
        };
        file.write_all_at(&[byte], (bit / 8) as u64).map_err(|error| Error::io("write", &path, error))
    }
}

impl Bitmap {
    /// All addresses that are marked, in no order. A file that is named otherwise is none of ours.
    ///
    /// # Errors
    /// The folder or a file cannot be read.
    pub fn marked(&self) -> Result<Vec<IpAddr>, Error> {
        let fault = |error| Error::io("read", &self.folder, error);
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(fault)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.map_err(fault)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let key = match name.split_once('.') {
                Some((high, low)) => high
                    .parse()
                    .ok()
                    .zip(low.parse().ok())
                    .map(|(h, l): (u8, u8)| (false, u128::from(h) << 8 | u128::from(l))),
                None => u128::from_str_radix(name, 16).ok().map(|prefix| (true, prefix)),
            };
            let Some(key) = key.filter(|key| self.path(*key) == path) else { continue };
            let bits = std::fs::read(&path).map_err(|error| Error::io("read", &path, error))?;
            for (index, byte) in bits.iter().take(BYTES).enumerate() {
                let of_byte = (0..8).filter(|bit| byte & 1 << bit != 0);
                found.extend(of_byte.map(|bit| address(key.0, key.1 * CHUNK + index as u128 * 8 + bit)));
            }
        }
        Ok(found)
    }

    fn fill(&mut self, addresses: impl Iterator<Item = IpAddr>) {
        for address in addresses {
            let number = number(address);
            let bits = self.chunks.entry((address.is_ipv6(), number / CHUNK)).or_insert_with(|| vec![0; BYTES]);
            let bit = (number % CHUNK) as usize;
            bits[bit / 8] |= 1 << (bit % 8);
        }
    }

    /// Makes the files of many addresses at once.
    pub fn write_all(&mut self, addresses: impl Iterator<Item = IpAddr>) -> Result<(), Error> {
        self.chunks.clear();
        self.fill(addresses);
        for (key, bits) in &self.chunks {
            let path = self.path(*key);
            std::fs::write(&path, bits).map_err(|error| Error::io("write", &path, error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_clear_bit_over_file_borders() {
        let folder = tempfile::tempdir().unwrap();
        let mut bitmap = Bitmap::new(folder.path().to_owned());
        let at = |text: &str| number(text.parse().unwrap());
        let (from, end) = (at("10.0.255.250"), at("10.1.0.9"));
        assert_eq!(bitmap.next_clear(false, from, end).unwrap(), Some(from));
        for n in from..=end {
            let address = IpAddr::V4(std::net::Ipv4Addr::from(n as u32));
            bitmap.mark(address, true, true).unwrap();
            let mut fresh = Bitmap::new(folder.path().to_owned());
            assert_eq!(fresh.next_clear(false, from, end).unwrap(), (n < end).then_some(n + 1));
        }
        bitmap.mark("10.1.0.3".parse().unwrap(), false, true).unwrap();
        assert_eq!(bitmap.next_clear(false, from, end).unwrap(), Some(at("10.1.0.3")));
        let mut fresh = Bitmap::new(folder.path().to_owned());
        assert_eq!(fresh.next_clear(false, from, end).unwrap(), Some(at("10.1.0.3")));
    }
}
