//! Others that change the ruleset at the same time, and networks that share addresses.

use super::*;
use crate::netlink::testing::in_new_netns;

/// Puts a script in the place of nft, in a mount namespace of this thread's own; `$NFT` is the real one.
fn instead_of_nft(folder: &std::path::Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).unwrap();
    run("mount", &["--make-rprivate", "/"]);
    let (real, fake) = (folder.join("real"), folder.join("fake"));
    let nft = program::find("nft").unwrap();
    std::fs::copy(&nft, &real).unwrap();
    std::fs::write(&fake, format!("#!/bin/sh\nNFT={}\nHERE={}\n{script}", real.display(), folder.display())).unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    run("mount", &["--bind", fake.to_str().unwrap(), nft.to_str().unwrap()]);
}

#[test]
fn a_ruleset_that_is_flushed_right_after_the_swap_is_made_again() {
    in_new_netns(|| {
        let place = Place::new(&[A, B]);
        let folder = tempfile::tempdir().unwrap();
        // As when another service starts, once.
        let flush = r#""$NFT" "$@" || exit; [ -e "$HERE/flushed" ] || { : > "$HERE/flushed"; "$NFT" flush ruleset; }"#;
        instead_of_nft(folder.path(), flush);
        place.apply();
        assert!(folder.path().join("flushed").exists());
        place.passes("a");
        assert!(place.is_in_place("a") && place.is_in_place("b"));
    });
}

#[test]
fn a_ruleset_that_is_flushed_again_and_again_is_not_taken_for_made() {
    in_new_netns(|| {
        let place = Place::new(&[A]);
        let folder = tempfile::tempdir().unwrap();
        instead_of_nft(folder.path(), r#""$NFT" "$@" && "$NFT" flush ruleset"#);
        assert_eq!(apply(&place.host).unwrap_err().code(), crate::Code::TryAgainLater);
        assert!(!place.is_in_place("a"));
    });
}

#[test]
fn a_network_that_was_set_up_again_is_not_forgotten() {
    in_new_netns(|| {
        let place = Place::new(&[A]);
        place.apply();
        forget(&place.host, &"a".parse().unwrap()).unwrap();
        place.passes("a");
    });
}

#[test]
fn subnets_inside_of_each_other_are_no_fault() {
    in_new_netns(|| {
        let place = Place::new(&[A, ("same", A.1), ("inner", &["10.1.7.0/24"])]);
        place.apply();
        ["a", "same", "inner"].iter().for_each(|name| place.passes(name));
    });
}
