//! A plugin as a runtime calls it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::command::Output;
use crate::sandbox::plugin_folder;
use crate::{Netns, Sandbox};

/// Every version of the specification that a plugin of ours speaks.
pub const VERSIONS: [&str; 7] = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

/// Whose plugins a case is run with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Ours.
    Osvc,
    /// The CNI project's, as Debian packages them (1.1.1: no 1.1.0, no STATUS, no GC).
    Reference,
}

impl Family {
    /// The IPAM plugin.
    pub fn ipam(self) -> &'static str {
        match self {
            Self::Osvc => "osvc-ipam",
            Self::Reference => "host-local",
        }
    }

    /// The bridge plugin.
    pub fn bridge(self) -> &'static str {
        match self {
            Self::Osvc => "osvc-bridge",
            Self::Reference => "bridge",
        }
    }

    /// The port mapping plugin.
    pub fn portmap(self) -> &'static str {
        match self {
            Self::Osvc => "osvc-portmap",
            Self::Reference => "portmap",
        }
    }

    /// The versions of the specification it speaks.
    pub fn versions(self) -> &'static [&'static str] {
        match self {
            Self::Osvc => &VERSIONS,
            Self::Reference => &VERSIONS[..6],
        }
    }

    /// True for our plugins.
    pub fn is_ours(self) -> bool {
        self == Self::Osvc
    }
}

/// A call that is being prepared.
#[derive(Clone)]
pub struct Plugin<'a> {
    sandbox: &'a Sandbox,
    name: String,
    container: String,
    ifname: String,
    netns: Option<String>,
    args: Option<String>,
    env: Vec<(String, String)>,
    prefix: Vec<String>,
    config: Value,
}

impl Sandbox {
    /// A call of a plugin in /opt/cni/bin: container `c1`, interface `eth0`, no netns.
    ///
    /// # Panics
    /// A plugin of ours that was not built.
    #[track_caller]
    pub fn plugin(&self, name: &str) -> Plugin<'_> {
        if name.starts_with("osvc-") {
            let built = plugin_folder().join(name);
            assert!(built.exists(), "{} is missing: run `make build`", built.display());
        }
        Plugin {
            sandbox: self,
            name: name.to_owned(),
            container: "c1".to_owned(),
            ifname: "eth0".to_owned(),
            netns: None,
            args: None,
            env: Vec::new(),
            prefix: Vec::new(),
            config: Value::Null,
        }
    }
}

impl Sandbox {
    /// Runs a shell script in which `cni VERB CONTAINER NETNS NAME` calls the plugin: for calls by the thousand and at once.
    /// NAME is the workload's; the interface is eth0; the configuration is the file /run/config.
    pub fn bulk(&self, plugin: &str, config: &Value, script: &str) -> Output {
        let _ = self.plugin(plugin);
        self.write("/run/config", &config.to_string());
        self.sh(&format!(
            r#"cni() {{
                CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=$3 CNI_IFNAME=eth0 CNI_PATH=/opt/cni/bin \
                CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAME=$4" /opt/cni/bin/{plugin} < /run/config
            }}
            export -f cni
            {script}"#
        ))
    }
}

impl Plugin<'_> {
    /// CNI_CONTAINERID.
    #[must_use]
    pub fn container(mut self, id: &str) -> Self {
        id.clone_into(&mut self.container);
        self
    }

    /// CNI_IFNAME.
    #[must_use]
    pub fn ifname(mut self, name: &str) -> Self {
        name.clone_into(&mut self.ifname);
        self
    }

    /// CNI_NETNS: a namespace made by [`Sandbox::netns`].
    #[must_use]
    pub fn netns(self, netns: &Netns) -> Self {
        let path = netns.path.clone();
        self.netns_path(&path)
    }

    /// CNI_NETNS: any path.
    #[must_use]
    pub fn netns_path(mut self, path: &str) -> Self {
        self.netns = Some(path.to_owned());
        self
    }

    /// CNI_NETNS unset.
    #[must_use]
    pub fn no_netns(mut self) -> Self {
        self.netns = None;
        self
    }

    /// CNI_ARGS.
    #[must_use]
    pub fn args(mut self, args: &str) -> Self {
        self.args = Some(args.to_owned());
        self
    }

    /// CNI_ARGS unset.
    #[must_use]
    pub fn no_args(mut self) -> Self {
        self.args = None;
        self
    }

    /// The workload's name, as podman passes it.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        self.args(&format!("IgnoreUnknown=1;K8S_POD_NAME={name}"))
    }

    /// One more variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A program that runs the plugin (strace, timeout…), with its words.
    #[must_use]
    pub fn through(mut self, prefix: &[&str]) -> Self {
        self.prefix = prefix.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// What goes to stdin.
    #[must_use]
    pub fn config(mut self, config: Value) -> Self {
        self.config = config;
        self
    }

    /// The same with one key of the configuration set to another value.
    #[must_use]
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.config[key] = value;
        self
    }

    /// The same without one key of the configuration.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        if let Value::Object(keys) = &mut self.config {
            keys.shift_remove(key);
        }
        self
    }

    /// Calls a verb.
    pub fn call(&self, verb: &str) -> Reply {
        let path = format!("/opt/cni/bin/{}", self.name);
        let argv: Vec<&str> = self.prefix.iter().map(String::as_str).chain([path.as_str()]).collect();
        let mut command = self.sandbox.command(&argv);
        command.env("CNI_COMMAND", verb).env("CNI_PATH", "/opt/cni/bin");
        if !matches!(verb, "STATUS" | "GC" | "VERSION") {
            command.env("CNI_CONTAINERID", &self.container).env("CNI_IFNAME", &self.ifname);
            if let Some(netns) = &self.netns {
                command.env("CNI_NETNS", netns);
            }
            if let Some(args) = &self.args {
                command.env("CNI_ARGS", args);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let stdin = if self.config.is_null() { String::new() } else { self.config.to_string() };
        Reply::from(self.sandbox.finish(command, stdin.as_bytes()))
    }

    /// ADD, which must succeed: its result.
    #[track_caller]
    pub fn add(&self) -> Value {
        self.call("ADD").result()
    }

    /// ADD, which must fail: code and message.
    #[track_caller]
    pub fn add_fails(&self) -> (u64, String) {
        self.call("ADD").error()
    }

    /// DEL, which must succeed.
    #[track_caller]
    pub fn del(&self) {
        self.call("DEL").done();
    }

    /// CHECK with the result of the ADD, which must pass.
    #[track_caller]
    pub fn check(&self, result: &Value) {
        self.clone().with("prevResult", result.clone()).call("CHECK").done();
    }

    /// CHECK with the result of the ADD, which must fail: code and message.
    #[track_caller]
    pub fn check_fails(&self, result: &Value) -> (u64, String) {
        self.clone().with("prevResult", result.clone()).call("CHECK").error()
    }
}

/// What a plugin answered.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The process.
    pub output: Output,
    /// What it printed, if it is one JSON document.
    pub json: Option<Value>,
}

impl From<Output> for Reply {
    fn from(output: Output) -> Self {
        Self { json: serde_json::from_str(&output.stdout).ok(), output }
    }
}

impl Reply {
    /// Wall time of the process.
    pub fn elapsed(&self) -> Duration {
        self.output.elapsed
    }

    /// The result of a successful call.
    #[track_caller]
    pub fn result(self) -> Value {
        assert!(self.output.rc == 0, "{} should have succeeded", self.output);
        self.json.unwrap_or_else(|| panic!("{} printed no JSON document", self.output))
    }

    /// A successful call without a result: it prints nothing.
    #[track_caller]
    pub fn done(self) {
        assert!(self.output.rc == 0, "{} should have succeeded", self.output);
        let printed = self.output.stdout.trim();
        assert!(printed.is_empty() || printed == "{}", "{} should have printed nothing", self.output);
    }

    /// Code and message (with details) of a failed call: one JSON document and nothing else.
    #[track_caller]
    pub fn error(self) -> (u64, String) {
        assert!(self.output.rc != 0, "{} should have failed", self.output);
        self.document()
    }

    /// Success, or one proper error document: nothing in between, no signal, no panic.
    #[track_caller]
    pub fn success_or_error(self) -> Result<Option<Value>, (u64, String)> {
        if self.output.rc == 0 {
            return Ok(self.json);
        }
        Err(self.document())
    }

    #[track_caller]
    fn document(self) -> (u64, String) {
        let Some(json) = self.json else { panic!("{} printed no JSON error document", self.output) };
        let code = json["code"].as_u64().unwrap_or_else(|| panic!("{} printed no code", self.output));
        let message = json["msg"].as_str().unwrap_or_else(|| panic!("{} printed no msg", self.output));
        assert!(!message.is_empty(), "{} printed an empty msg", self.output);
        let details = json["details"].as_str().map_or(String::new(), |details| format!(" ({details})"));
        (code, format!("{message}{details}"))
    }
}

impl Family {
    /// A configuration for the IPAM plugin alone, with these keys under `ipam`.
    pub fn ipam_config(self, version: &str, network: &str, mut ipam: Value) -> Value {
        ipam["type"] = json!(self.ipam());
        json!({"cniVersion": version, "name": network, "type": self.bridge(), "ipam": ipam})
    }

    /// A configuration for the bridge plugin in the reference's keys, on a bridge `cni9`.
    pub fn bridge_config(self, version: &str, network: &str, mut ipam: Value) -> Value {
        if ipam.as_object().is_some_and(|keys| !keys.is_empty()) {
            ipam["type"] = json!(self.ipam());
        }
        json!({"cniVersion": version, "name": network, "type": self.bridge(), "bridge": "cni9", "ipam": ipam})
    }
}
