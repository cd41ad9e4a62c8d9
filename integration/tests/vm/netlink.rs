//! The library's own tests of the kernel, on Debian's kernel: the same program as outside. What it leaves out there for
//! want of a kind of device, it does not leave out here.

use std::process::Command;

use integration::{Vm, report};
use serde_json::Value;

/// The library's test program, built if it is not yet.
fn program() -> String {
    // All libraries of the workspace: else the features of what they need, and so all objects, would be others.
    let build = ["test", "--workspace", "--lib", "--no-run", "--message-format=json"];
    let output = Command::new(env!("CARGO")).args(build).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let built = stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = built
        .filter(|message| message["target"]["name"] == "osvc_cni")
        .find_map(|message| message["executable"].as_str().map(str::to_owned));
    program.unwrap_or_else(|| panic!("cargo built no tests: {stdout}{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn the_library_s_tests_of_netlink_pass_on_the_other_kernel() {
    let program = program();
    let output = Vm::new().program(&program).run(&format!("{program} netlink:: --test-threads=1"));
    assert!(output.rc == 0 && output.stdout.contains(" 0 failed"), "{output}");
    let passed = output.stdout.lines().filter(|line| line.ends_with("... ok")).count();
    assert!(passed > 30 && output.stdout.contains("a_wireguard_device_of_the_kernel ... ok"), "{output}");
    report::ran(&format!("kernel {}", Vm::release()), &format!("{passed} tests of netlink::"));
}
