//! `osvc-ipam` under the reference's ipvlan plugin, on a kernel that has such devices. A Go program and ours under it take
//! most of a second here, so the last two modes show what is their own.

use integration::Vm;

use kinds::{IPVLAN_L2, IPVLAN_L3, IPVLAN_L3S};

#[path = "../main_plugins/kinds.rs"]
mod kinds;

#[test]
fn ipvlan_in_all_modes() {
    Vm::new().program("/usr/lib/cni/ipvlan").test(|| {
        [IPVLAN_L2, IPVLAN_L3, IPVLAN_L3S].iter().for_each(kinds::run);
    });
}
