//! Whose address it is: the name by which a workload is known over restarts, re-creations and reboots.
//!
//! A [`Key`] is a text and its source, so that a podman container and a Nomad job of one name are two. Interface
//! name, uid, pid and network namespace are never part of it: they change when a workload does not.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::config::{ConfigError, low};
use crate::ContainerId;
use crate::attachment::hex;
use crate::protocol::{Call, CniArgs, json};

pub use template::{KeyTemplate, TemplateError};

mod template;

/// Where a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeySource {
    /// Given as such: `args.cni."osvc.key"`, `OSVC_KEY`, or `OSVC_OBJECT` and `OSVC_RID`.
    Osvc,
    /// Namespace and name of a Kubernetes pod.
    K8s,
    /// Name of a podman container or pod.
    Podman,
    /// Namespace, job and group of a Nomad allocation.
    Nomad,
    /// The host name that a nerdctl container was given.
    Nerdctl,
    /// The container id: all that is known.
    Container,
    /// `ipam.key` of the network.
    Template,
}

impl KeySource {
    const ALL: [Self; 7] =
        [Self::Osvc, Self::K8s, Self::Podman, Self::Nomad, Self::Nerdctl, Self::Container, Self::Template];

    /// The name in records and digests: part of the format, never changed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Osvc => "osvc",
            Self::K8s => "k8s",
            Self::Podman => "podman",
            Self::Nomad => "nomad",
            Self::Nerdctl => "nerdctl",
            Self::Container => "container",
            Self::Template => "template",
        }
    }

    /// The source of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// The key of an allocation. The network scopes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// Where it comes from.
    pub source: KeySource,
    /// The name.
    pub text: String,
}

impl Key {
    /// The key of a call, with the OpenSVC object and resource id when it names them.
    ///
    /// # Errors
    /// `args` is no object.
    pub fn from_call(
        call: &Call,
        container: &ContainerId,
        template: Option<&KeyTemplate>,
    ) -> Result<(Self, Option<String>, Option<String>), ConfigError> {
        let network: low::Network = call.config.low()?;
        let cni_args = network.args.and_then(|args| args.cni);
        Ok(Self::derive(&call.args, cni_args.as_ref(), container, template))
    }

    /// The key that the arguments and the container id make, the OpenSVC object and the resource id.
    ///
    /// The template, if there is one and all its variables are set; else the first that is present of: the given
    /// key; pod namespace and name; pod name alone (podman); Nomad's namespace, job and group; nerdctl's host name,
    /// unless it is made of the container id; the container id.
    pub fn derive(
        args: &CniArgs,
        cni_args: Option<&Value>,
        container: &ContainerId,
        template: Option<&KeyTemplate>,
    ) -> (Self, Option<String>, Option<String>) {
        let given = cni_args.and_then(|cni| text_of(json::get(cni.as_object()?, "osvc.key")?));
        let given = given.or_else(|| args.get("OSVC_KEY").map(str::to_owned));
        let (mut object, mut rid) =
            (args.get("OSVC_OBJECT").map(str::to_owned), args.get("OSVC_RID").map(str::to_owned));
        let explicit = given.or_else(|| Some(format!("{}!{}", object.as_ref()?, rid.as_ref()?)));
        // OpenSVC's form of a key says both.
        if object.is_none()
            && rid.is_none()
            && let Some((path, id)) = explicit.as_deref().and_then(|text| text.rsplit_once('!'))
            && !path.is_empty()
            && !id.is_empty()
        {
            (object, rid) = (Some(path.to_owned()), Some(id.to_owned()));
        }
        let templated = template.and_then(|template| template.expand(args, container));
        let (source, text) = if let Some(text) = templated {
            (KeySource::Template, text)
        } else if let Some(text) = explicit {
            (KeySource::Osvc, text)
        } else {
            usual(args, container)
        };
        (Self { source, text }, object, rid)
    }

    /// SHA-256(source NUL text NUL instance), the instance as a decimal number: where this key's walk through a
    /// range begins.
    pub fn digest(&self, instance: u32) -> [u8; 32] {
        self.hasher().chain_update([0]).chain_update(instance.to_string()).finalize().into()
    }

    /// 32 hexadecimal digits of SHA-256(source NUL text): a file name for any text.
    pub fn hash(&self) -> String {
        hex(&self.hasher().finalize()[..16])
    }

    /// The part before the first `/`, or `default`: what claims are counted by.
    pub fn namespace(&self) -> &str {
        match self.text.split_once('/') {
            Some((namespace, _)) if !namespace.is_empty() => namespace,
            _ => "default",
        }
    }

    fn hasher(&self) -> Sha256 {
        Sha256::new().chain_update(self.source.name()).chain_update([0]).chain_update(&self.text)
    }
}

/// What the runtimes say of themselves.
fn usual(args: &CniArgs, container: &ContainerId) -> (KeySource, String) {
    if let Some(name) = args.get("K8S_POD_NAME") {
        return match args.get("K8S_POD_NAMESPACE") {
            Some(namespace) => (KeySource::K8s, format!("{namespace}/{name}")),
            // podman has no namespaces, and its names are not those of pods.
            None => (KeySource::Podman, name.to_owned()),
        };
    }
    if let (Some(namespace), Some(job), Some(group)) =
        (args.get("NOMAD_NAMESPACE"), args.get("NOMAD_JOB_ID"), args.get("NOMAD_GROUP_NAME"))
    {
        return (KeySource::Nomad, format!("{namespace}/{job}/{group}"));
    }
    if let Some(hostname) = args.get("NERDCTL_CNI_DHCP_HOSTNAME")
        && !is_made_of(container.as_str(), hostname)
    {
        return (KeySource::Nerdctl, hostname.to_owned());
    }
    (KeySource::Container, container.to_string())
}

/// True if nerdctl made the host name out of the id, since none was given: it is the beginning of the id, or of
/// what follows the containerd namespace in it.
fn is_made_of(id: &str, hostname: &str) -> bool {
    id.starts_with(hostname) || id.split_once('-').is_some_and(|(_, own)| own.starts_with(hostname))
}

/// A text, or a number or a boolean that somebody wrote without quotes.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null => None,
        Value::Array(_) | Value::Object(_) => {
            tracing::warn!("args.cni.\"osvc.key\" is no text: ignored");
            None
        }
    }
}

#[cfg(test)]
mod tests;
