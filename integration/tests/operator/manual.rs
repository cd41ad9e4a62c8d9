//! Manual pages and completions, from the same source as the command line.

use std::collections::BTreeSet;

use integration::{Sandbox, report};

use super::osvc_net;

#[test]
fn each_command_has_a_page_and_words_to_complete() {
    let sandbox = Sandbox::new();
    osvc_net(&sandbox, &["man", "/tmp/man"]).ok();
    let pages: BTreeSet<String> = sandbox.list("/tmp/man").into_iter().collect();
    for command in
        "setup teardown ls ip-ls ip-explain ip-reserve ip-unreserve ip-release ip-history port-ls claim-ls peers gc fsck \
         doctor adopt hosts render watch metrics conf-lint conf-new-bridge conf-new-routed wireguard-pubkey completion man"
            .split_whitespace()
    {
        let page = format!("osvc-net-{command}.8");
        assert!(pages.contains(&page), "{page} is not among {pages:?}");
        let text = sandbox.read(&format!("/tmp/man/{page}"));
        assert!(text.contains(".TH") && text.contains(".SH SYNOPSIS"), "{text}");
    }
    // As it looks: a table in the page of each listing.
    for (command, header) in [
        ("ls", "NAME"),
        ("ip-ls", "KEY"),
        ("port-ls", "HOST ADDRESS"),
        ("claim-ls", "LIMIT"),
        ("peers", "SEGMENT"),
        ("ip-explain", "first candidate"),
        ("ip-history", "WHAT"),
        ("doctor", "why:"),
    ] {
        let text = sandbox.read(&format!("/tmp/man/osvc-net-{command}.8"));
        assert!(text.contains(header), "{header} is not in the page of {command}: {text}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = osvc_net(&sandbox, &["completion", shell]).ok();
        assert!(script.contains("teardown") && script.contains("unreserve"), "{shell}");
    }
    osvc_net(&sandbox, &["completion", "bash"]).ok();
    let completed = sandbox.sh("source <(/opt/cni/bin/osvc-net completion bash)
         COMP_WORDS=(osvc-net ip un); COMP_CWORD=2; _osvc-net osvc-net un ip; echo ${COMPREPLY[@]}");
    assert_eq!(completed.ok().trim(), "unreserve");
    report::ran("bash", "completion of osvc-net; a manual page for each command");
}
