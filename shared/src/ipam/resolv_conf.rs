//! resolv.conf(5), read as the reference host-local plugin does.

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

use crate::Dns;

/// More than any resolver reads.
const LIMIT: u64 = 1 << 20;

/// The resolver settings in a file.
///
/// # Errors
/// The file is not there, is not a regular one, or cannot be read.
pub fn read(path: &Path) -> Result<Dns, Error> {
    // Opening a FIFO would wait for a writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LIMIT).read_to_end(&mut bytes)?;
    Ok(parse(&String::from_utf8_lossy(&bytes)))
}

/// The resolver settings in a text: name servers, search list and options accumulate, the last domain wins.
pub fn parse(text: &str) -> Dns {
    let mut dns = Dns::default();
    for line in text.lines() {
        let mut words = line.split_whitespace().map(str::to_owned);
        let (Some(keyword), Some(first)) = (words.next(), words.next()) else { continue };
        match keyword.as_str() {
            "nameserver" => dns.nameservers.push(first),
            "domain" => dns.domain = Some(first),
            "search" => dns.search.extend(std::iter::once(first).chain(words)),
            "options" => dns.options.extend(std::iter::once(first).chain(words)),
            // Comments (`#…`, `;…`) and what resolvers do not know either.
            _ => {}
        }
    }
    dns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hl14_resolv_conf() {
        let dns = parse(
            "\n  # a comment\n; nameserver 192.0.2.9\n\n\
             \tnameserver 192.0.2.0\n  nameserver\t192.0.2.1 ignored\nnameserver\n\
             domain first.example\ndomain example.com\nsearch example.com\nsearch example.net a.example\n\
             options four\noptions five six\nsortlist 130.155.160.0/255.255.240.0\nsearch # odd\n",
        );
        assert_eq!(dns.nameservers, ["192.0.2.0", "192.0.2.1"]);
        assert_eq!(dns.domain.as_deref(), Some("example.com"));
        assert_eq!(dns.search, ["example.com", "example.net", "a.example", "#", "odd"]);
        assert_eq!(dns.options, ["four", "five", "six"]);
        assert!(parse("").is_empty());
    }

    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(&folder.path().join("absent")).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(read(folder.path()).unwrap_err().kind(), ErrorKind::InvalidInput);
        std::fs::write(folder.path().join("resolv.conf"), b"nameserver 10.0.0.1\nsearch \xff.example\n").unwrap();
        assert_eq!(read(&folder.path().join("resolv.conf")).unwrap().nameservers, ["10.0.0.1"]);
    }
}
