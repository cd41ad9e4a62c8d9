//! `make demo`, as a user runs it after a build.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::process::Command;

use integration::report;

#[test]
fn the_demo_does_what_it_says_and_leaves_nothing() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let built = std::env::var_os("OSVC_BIN").map_or_else(|| workspace.join("bin"), Into::into);
    let namespaces = || {
        let listed = Command::new("lsns").args(["-n", "-t", "net", "-o", "COMMAND"]).output().unwrap();
        String::from_utf8_lossy(&listed.stdout).matches("demo.sh").count()
    };
    let before = namespaces();
    let demo = Command::new(workspace.join("integration/demo.sh")).arg(built).output().unwrap();
    let told = String::from_utf8_lossy(&demo.stdout);
    assert!(demo.status.success(), "{told}{}", String::from_utf8_lossy(&demo.stderr));
    for word in ["the same as before", "asked from outside, port 8080: This is web.", "nobody answers", "Done."] {
        assert!(told.contains(word), "{word:?} is not in {told}");
    }
    assert_eq!(namespaces(), before);
    report::ran("make demo", "two containers, a published port, recreate and reboot");
}
