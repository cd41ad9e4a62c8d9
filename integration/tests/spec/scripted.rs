//! A plugin that is a shell script: it records how it is called, and answers as told.

use integration::Sandbox;
use serde_json::{Value, json};

/// Unless told otherwise it prints the previous result on ADD, and succeeds.
const SCRIPT: &str = r#"#!/bin/bash
if [ "$CNI_COMMAND" = VERSION ]; then
    echo '{"cniVersion": "1.1.0", "supportedVersions": ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]}'
    exit 0
fi
name=$(basename "$0")
folder=/run/scripted
mkdir -p $folder
exec 9> $folder/lock
flock 9
seen=$(find $folder -name '*.env' | wc -l)
call=$folder/$(printf %03d "$seen")
cat > "$call.stdin"
env | sed "1i PLUGIN=$name" > "$call.env"
answer=$folder/$name-$CNI_COMMAND
if [ -e "$answer" ]; then
    cat "$answer"
    exit "$(cat "$answer.rc")"
fi
[ "$CNI_COMMAND" != ADD ] || jq -c .prevResult "$call.stdin"
"#;

/// A scripted plugin in a machine's /opt/cni/bin.
pub(crate) struct Scripted<'a> {
    sandbox: &'a Sandbox,
    name: &'a str,
}

/// One recorded call.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// `PLUGIN VERB`.
    pub what: String,
    /// The variables, one a line.
    pub env: String,
    /// What came on stdin.
    pub stdin: Value,
}

impl Recorded {
    /// The value of a variable.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.env.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    }
}

impl<'a> Scripted<'a> {
    /// Installs it.
    pub(crate) fn new(sandbox: &'a Sandbox, name: &'a str) -> Self {
        sandbox.write(&format!("/opt/cni/bin/{name}"), SCRIPT);
        sandbox.sh(&format!("chmod 755 /opt/cni/bin/{name}")).ok();
        Self { sandbox, name }
    }

    /// An IPAM plugin that gives 10.9.0.5/24.
    pub(crate) fn ipam(sandbox: &'a Sandbox, name: &'a str) -> Self {
        let scripted = Self::new(sandbox, name);
        scripted.gives("ADD", &address());
        scripted
    }

    /// From now on a verb succeeds with this document.
    pub(crate) fn gives(&self, verb: &str, document: &Value) {
        self.answers(verb, 0, &document.to_string());
    }

    /// From now on a verb fails, with code 142.
    pub(crate) fn fails(&self, verb: &str) {
        let document = json!({"cniVersion": "1.1.0", "code": 142, "msg": "the script refuses", "details": verb});
        self.answers(verb, 1, &document.to_string());
    }

    /// From now on a verb succeeds and prints nothing.
    pub(crate) fn succeeds(&self, verb: &str) {
        self.answers(verb, 0, "");
    }

    fn answers(&self, verb: &str, rc: i32, text: &str) {
        let path = format!("/run/scripted/{}-{verb}", self.name);
        self.sandbox.write(&path, text);
        self.sandbox.write(&format!("{path}.rc"), &rc.to_string());
    }
}

/// The result of [`Scripted::ipam`].
pub(crate) fn address() -> Value {
    json!({"cniVersion": "1.1.0", "ips": [{"address": "10.9.0.5/24", "gateway": "10.9.0.1"}], "routes": [{"dst": "0.0.0.0/0"}]})
}

/// All calls of scripted plugins since the last look, in order.
pub(crate) fn recorded(sandbox: &Sandbox) -> Vec<Recorded> {
    let names =
        sandbox.list("/run/scripted").into_iter().filter_map(|name| name.strip_suffix(".env").map(str::to_owned));
    let calls = names
        .map(|name| {
            let env = sandbox.read(&format!("/run/scripted/{name}.env"));
            let stdin = sandbox.read(&format!("/run/scripted/{name}.stdin"));
            let stdin =
                serde_json::from_str(&stdin).unwrap_or_else(|error| panic!("stdin of a plugin: {error}: {stdin}"));
            let call = Recorded { what: String::new(), env, stdin };
            let what = ["PLUGIN", "CNI_COMMAND"].map(|name| call.var(name).unwrap_or_default()).join(" ");
            Recorded { what, ..call }
        })
        .collect();
    sandbox.sh("rm -f /run/scripted/*.env /run/scripted/*.stdin").ok();
    calls
}

/// Which plugins were called with which verbs since the last look, in order.
pub(crate) fn order(sandbox: &Sandbox) -> Vec<String> {
    recorded(sandbox).into_iter().map(|call| call.what).collect()
}
