//! `osvc-net conf`: writing and editing the configurations of routed networks.

use std::path::Path;

use osvc_cni::plugin::bridge;
use osvc_cni::{Host, NetworkName};
use serde_json::{Map, Value, json};

use crate::args::{ConfCommand, NewBridge, NewCommand, NewRouted};
use crate::conf::{BRIDGE, PORTMAP};
use crate::error::Error;
use crate::networks::Networks;
use crate::nodes::{Editing, NewNode, ROUTED, Removed};
use crate::patch::patched;
use crate::{conf, document, output};

/// The version of new configurations: podman 4 reads no later one.
const VERSION: &str = "1.0.0";

/// Runs the command.
pub fn run(host: &Host, networks: Networks, command: &ConfCommand) -> Result<(), Vec<Error>> {
    match command {
        ConfCommand::New { command: NewCommand::Routed(new) } => new_routed(host, new).map_err(|error| vec![error]),
        ConfCommand::New { command: NewCommand::Bridge(new) } => new_bridge(host, new).map_err(|error| vec![error]),
        // Writes nothing: see `lint`.
        ConfCommand::Lint { .. } => Ok(()),
        ConfCommand::AddNode { network, node, addresses, subnet, public_key, dry_run } => {
            let new = NewNode {
                name: node.clone(),
                addresses: addresses.clone(),
                subnets: subnet.clone(),
                public_key: public_key.clone(),
            };
            edit(host, networks, network, *dry_run, |editing| {
                let segments = editing.add(&new)?;
                Ok(format!("{node} has {}", segments.join(" and ")))
            })
        }
        ConfCommand::RemoveNode { network, node, dry_run } => edit(host, networks, network, *dry_run, |editing| {
            Ok(match editing.remove(node)? {
                Removed::Retired => {
                    format!("{node} is retired, its segment stays empty; once all nodes know, remove it once more")
                }
                Removed::Forgotten => format!("{node} is not in the list any more, its segment is free"),
            })
        }),
    }
}

/// Edits the file of a network, and says what to do with it.
fn edit(
    host: &Host,
    networks: Networks,
    name: &String,
    dry_run: bool,
    act: impl FnOnce(&mut Editing<'_>) -> Result<String, Error>,
) -> Result<(), Vec<Error>> {
    let (chosen, errors) = networks.choose(std::slice::from_ref(name));
    let Some(network) = chosen.into_iter().next() else { return Err(errors) };
    let edited = || {
        let Some(definition) = &network.definition else { return Err(Error::Unconfigured(network.name.clone())) };
        let file = &definition.file;
        let (old, before) = read(file)?;
        let mut document = before.clone();
        let done = act(&mut Editing::new(host, &network.name, &mut document, file)?)?;
        let text = patched(&old, &before, &document);
        conf::parse(file, text.as_bytes())?;
        if dry_run {
            return output::print(&text);
        }
        document::write(file, &text)?;
        let name = &network.name;
        let mut told = format!("{name}: {done}\n");
        for other in &definition.shadowed {
            told += &format!("{}: not edited, runtimes take network {name} from the first file\n", other.display());
        }
        for other in &definition.elsewhere {
            told += &format!("{}: not edited, it is another runtime's\n", other.display());
        }
        let everywhere = format!("copy it to all nodes, and run `osvc-net setup {name}` on each");
        output::print(&format!("{told}{}: written, {everywhere}\n", file.display()))
    };
    // What is edited at the same time is not lost: who comes second reads what the first one has written.
    let folder = network.definition.as_ref().and_then(|definition| definition.file.parent());
    let folder = folder.map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    match folder {
        Some(folder) if !dry_run => document::exclusively(folder, edited),
        _ => edited(),
    }
    .map_err(|error| vec![error])
}

fn read(file: &Path) -> Result<(String, Value), Error> {
    let fault = |source| Error::Read { path: file.to_owned(), source };
    let text = std::fs::read_to_string(file).map_err(fault)?;
    let document = serde_json::from_str(&text).map_err(|error| fault(error.into()))?;
    Ok((text, document))
}

/// Prints a new configuration of a network of this host alone, after it was looked through.
fn new_bridge(host: &Host, new: &NewBridge) -> Result<(), Error> {
    let mut plugin = Map::new();
    let mut set = |key: &str, value: Value| _ = plugin.insert(key.to_owned(), value);
    set("type", BRIDGE.into());
    set("network", one_or_list(new.network.iter().map(|text| text.as_str().into()).collect()));
    if let Some(bridge) = &new.bridge {
        set("bridge", bridge.as_str().into());
    }
    if let Some(vlan) = new.vlan {
        set("vlan", vlan.into());
    }
    for (key, wanted) in [("public", new.public), ("isolate", new.isolate), ("spoofcheck", new.spoofcheck)] {
        if wanted {
            set(key, true.into());
        }
    }
    let mut plugins = vec![Value::Object(plugin)];
    if !new.no_ports {
        plugins.push(json!({"type": PORTMAP, "capabilities": {"portMappings": true}}));
    }
    let document = json!({"cniVersion": VERSION, "name": new.name, "plugins": plugins});
    let text = document::text(&document);
    let definition = conf::parse(Path::new("-"), text.as_bytes())?;
    let plugin = &definition.plugins[0];
    let wrong = |source| Error::New { network: definition.name.clone(), source: Box::new(source) };
    definition.call(plugin, host).and_then(|call| bridge::wanted(&call)).map_err(wrong)?;
    output::print(&text)
}

/// Prints a new configuration, with all segments fixed.
fn new_routed(host: &Host, new: &NewRouted) -> Result<(), Error> {
    let name: NetworkName = new.name.parse().map_err(|source| Error::NoName { name: new.name.clone(), source })?;
    let mut document = routed(new);
    // What is recorded here of a network of that name is not what this one is to be.
    let nowhere = Host { state: host.run.join("new"), ..host.clone() };
    Editing::new(&nowhere, &name, &mut document, Path::new("-"))?.fix()?;
    output::print(&document::text(&document))
}

/// A key that takes one value or a list.
fn one_or_list(values: Vec<Value>) -> Value {
    match <[Value; 1]>::try_from(values) {
        Ok([one]) => one,
        Err(list) => list.into(),
    }
}

fn routed(new: &NewRouted) -> Value {
    let mut plugin = Map::new();
    let mut set = |key: &str, value: Value| _ = plugin.insert(key.to_owned(), value);
    set("type", ROUTED.into());
    set("network", one_or_list(new.network.iter().map(|text| text.as_str().into()).collect()));
    if !new.mask_per_node.is_empty() {
        set("maskPerNode", one_or_list(new.mask_per_node.iter().map(|mask| (*mask).into()).collect()));
    }
    if let Some(tunnel) = &new.tunnel {
        set("tunnel", tunnel.as_str().into());
    }
    if let Some(mode) = &new.mode {
        set("tunnelMode", mode.as_str().into());
    }
    set("nodes", new.node.iter().map(|text| node(text)).collect());
    let mut document = Map::new();
    document.insert("cniVersion".to_owned(), VERSION.into());
    document.insert("name".to_owned(), new.name.as_str().into());
    document.insert("plugins".to_owned(), vec![Value::from(plugin)].into());
    document.into()
}

/// `NAME`, `NAME=ADDRESS` or `NAME=ADDRESS,ADDRESS`.
fn node(text: &str) -> Value {
    let (name, addresses) = text.split_once('=').unwrap_or((text, ""));
    let addresses = addresses.split(',').filter(|address| !address.is_empty()).map(str::to_owned).collect();
    NewNode { name: name.to_owned(), addresses, ..NewNode::default() }.value()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command};

    #[test]
    fn a_new_configuration_has_all_segments_fixed() {
        let words = "osvc-net conf new routed prod --network 10.11.0.0/16 --network fd11::/48 --mask-per-node 22 \
                     --mask-per-node 64 --mode gre --node n1=192.0.2.1,2001:db8::1 --node n2=n2.lan --node n3";
        let arguments = Arguments::try_parse_from(words.split_whitespace()).unwrap();
        let Command::Conf { command: ConfCommand::New { command: NewCommand::Routed(new) } } = arguments.command else {
            panic!("not conf new routed")
        };
        let folder = tempfile::tempdir().unwrap();
        let host = Host { state: folder.path().into(), run: folder.path().into(), boot: "boot".into() };
        let mut document = routed(&new);
        Editing::new(&host, &"prod".parse().unwrap(), &mut document, Path::new("-")).unwrap().fix().unwrap();
        assert_eq!(
            document::text(&document),
            r#"{
  "cniVersion": "1.0.0",
  "name": "prod",
  "plugins": [
    {
      "type": "osvc-routed",
      "network": ["10.11.0.0/16", "fd11::/48"],
      "maskPerNode": [22, 64],
      "tunnelMode": "gre",
      "nodes": [
        {"name": "n1", "addr": ["192.0.2.1", "2001:db8::1"], "subnet": ["10.11.0.0/22", "fd11::/64"]},
        {"name": "n2", "addr": "n2.lan", "subnet": ["10.11.4.0/22", "fd11:0:0:1::/64"]},
        {"name": "n3", "subnet": ["10.11.8.0/22", "fd11:0:0:2::/64"]}
      ]
    }
  ]
}
"#
        );
    }

    #[test]
    fn a_file_is_edited_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("prod.conflist");
        let text = r#"{"name": "prod", "plugins": [{"type": "osvc-routed", "network": "10.11.0.0/16", "nodes": [{"name": "a"}]}]}"#;
        std::fs::write(&file, text).unwrap();
        let host = Host { state: folder.path().join("s"), run: folder.path().join("r"), boot: "boot".into() };
        let run = |words: &str| {
            let words = format!("osvc-net conf {words}");
            let Command::Conf { command } = Arguments::try_parse_from(words.split_whitespace()).unwrap().command else {
                panic!("not conf")
            };
            run(&host, Networks::load(&host, &[folder.path().to_owned()]).unwrap(), &command)
        };
        run("add-node prod b 192.0.2.2 --dry-run").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        run("add-node prod b 192.0.2.2").unwrap();
        let after = std::fs::read_to_string(&file).unwrap();
        assert!(after.contains(r#"{"name": "b", "addr": "192.0.2.2", "subnet": "10.11.4.0/22"}"#), "{after}");
        run("remove-node prod b").unwrap();
        assert!(std::fs::read_to_string(&file).unwrap().contains("\"retired\": true"));
        std::fs::write(folder.path().join("z.conf"), text).unwrap();
        run("remove-node prod b").unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("z.conf")).unwrap(), text);
        assert!(!std::fs::read_to_string(&file).unwrap().contains("192.0.2.2"));
        assert!(run("remove-node prdo b").unwrap_err()[0].to_string().contains("did you mean \"prod\""));
    }
}
