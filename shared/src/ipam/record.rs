//! The record of one address: one line of JSON in a file named by the address.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::key::Key;
use super::liveness::namespaces;
use crate::attachment::{Attachment, tag};
use crate::netlink::netns::{Netns, NetnsId};

/// Format of the records that this version writes.
pub const FORMAT: u32 = 1;

/// What an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// An attachment has it.
    Held,
    /// Nobody has it; the key that had it last gets it back.
    Released,
    /// An operator decided that it is the key's.
    Reserved,
}

/// The container's network namespace as it was at ADD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Flat")]
pub struct NetnsRef {
    /// CNI_NETNS.
    pub path: PathBuf,
    /// Which namespace that was; absent if the path was none, and then nothing is concluded from it.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub id: Option<NetnsId>,
    /// The mount namespace (inode) in which the path was seen: only there it means the same.
    pub mntns: u64,
    /// The pid namespace (inode), for paths such as /proc/7/ns/net.
    pub pidns: u64,
}

/// How a [`NetnsRef`] is read: what is flattened by serde itself is copied into a tree first, which takes time with tens of
/// thousands of records.
#[derive(Deserialize)]
struct Flat {
    path: PathBuf,
    cookie: Option<u64>,
    dev: Option<u64>,
    ino: Option<u64>,
    ctime: Option<i64>,
    mntns: u64,
    pidns: u64,
}

impl From<Flat> for NetnsRef {
    fn from(Flat { path, cookie, dev, ino, ctime, mntns, pidns }: Flat) -> Self {
        let id = dev.zip(ino).map(|(dev, ino)| NetnsId { cookie, dev, ino, ctime });
        Self { path, id, mntns, pidns }
    }
}

impl NetnsRef {
    /// The namespace at a path, as it is now.
    pub fn of(path: PathBuf) -> Self {
        let id = Netns::open(&path).and_then(|netns| netns.id()).ok();
        Self::new(path, id)
    }

    /// A namespace at a path as this process sees it.
    pub fn new(path: PathBuf, id: Option<NetnsId>) -> Self {
        let (mntns, pidns) = namespaces();
        // Whoever judges by the path later may run elsewhere.
        let path = std::path::absolute(&path).unwrap_or(path);
        Self { path, id, mntns, pidns }
    }
}

/// The host end of the attachment's pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEnd {
    /// Device name.
    pub ifname: String,
    /// The host's network namespace, the only one where its absence tells something.
    pub netns: NetnsId,
}

/// The record of one address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub v: u32,
    /// Whose address it is.
    pub key: Key,
    /// Which of the key's simultaneous holders.
    pub instance: u32,
    /// The OpenSVC object, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The OpenSVC resource id, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rid: Option<String>,
    /// CNI_CONTAINERID of the holder, now or last. Cut short in a record rebuilt from a host end.
    pub container: String,
    /// CNI_IFNAME of the holder.
    pub ifname: String,
    /// The holder's network namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<NetnsRef>,
    /// The holder's host end, for networks that make one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostEnd>,
    /// Kernel boot id at ADD.
    pub boot: String,
    /// Held, released or reserved.
    pub state: State,
    /// ADDs by this key.
    pub uses: u64,
    /// The address was asked for, not drawn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requested: bool,
    /// An operator reserved it for the key: a release makes it reserved again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// Since when it is in this state (RFC 3339).
    pub since: String,
}

impl Record {
    /// True if this is, or was last, the record of that attachment.
    ///
    /// The container id of a rebuilt record may be cut, but its host end is named by the whole of it.
    pub fn is_of(&self, attachment: &Attachment) -> bool {
        (self.container == attachment.container.as_str() && self.ifname == attachment.ifname.as_str())
            || self.host.as_ref().is_some_and(|host| host.ifname == attachment.host_end())
    }

    /// True while an attachment has the address.
    pub fn is_held(&self) -> bool {
        self.state == State::Held
    }

    /// The same record after its holder gave the address back.
    pub fn released(&self, now: &str) -> Self {
        let state = if self.pinned { State::Reserved } else { State::Released };
        Self { state, since: now.to_owned(), ..self.clone() }
    }

    /// The attachment's entry in `by-attachment/`: [`Attachment::tag`], which the host end is named by too.
    pub fn tag(&self, network: &str) -> String {
        match self.host.as_ref().and_then(|host| host.ifname.strip_prefix("ov")) {
            Some(tag) => tag.to_owned(),
            None => tag(network, &self.container, &self.ifname),
        }
    }

    /// The holder for people: key, container and since when.
    pub fn holder(&self) -> String {
        format!("{:?} (container {}, interface {}) since {}", self.key.text, self.container, self.ifname, self.since)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn a_namespace_is_read_as_it_was_written() {
        for text in [
            json!({"path": "/run/netns/a", "cookie": 7, "dev": 4, "ino": 9, "mntns": 1, "pidns": 2}),
            json!({"path": "/run/netns/a", "dev": 4, "ino": 9, "ctime": -5, "mntns": 1, "pidns": 2}),
            json!({"path": "/run/netns/a", "mntns": 1, "pidns": 2}),
        ] {
            let read: NetnsRef = from_value(text.clone()).unwrap();
            assert_eq!(to_value(&read).unwrap(), text);
            assert_eq!(read.id.is_some(), text["dev"].is_number());
        }
        let half: NetnsRef = from_value(json!({"path": "/a", "cookie": 7, "mntns": 1, "pidns": 2})).unwrap();
        assert_eq!(half.id, None, "nothing is concluded from half of it");
    }
}
