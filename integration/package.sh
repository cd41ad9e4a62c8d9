#!/bin/bash
# package.sh DEB CNITOOL: installs the Debian package, uses it and purges it, over a copy of this host's system that is
# gone with the last process of this script. Each check says what it found; the first that fails ends it.
set -euo pipefail

if [ "${1:-}" != inside ]; then
  deb=$(realpath "${1:?the package}") cnitool=$(realpath "${2:?cnitool}")
  [ "$(id -u)" = 0 ] || { echo "namespaces are made by root" >&2; exit 1; }
  exec unshare -m -n -p -u -f --mount-proc --kill-child=SIGKILL --propagation private \
    bash "$(realpath "$0")" inside "$deb" "$cnitool"
fi
deb=$2 cnitool=$3
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive

say() { printf '== %s\n' "$*"; }
die() { printf '!! %s\n' "$*" >&2; exit 1; }

# What is written goes to memory.
mount -t tmpfs -o mode=755 tmpfs /mnt
cp "$deb" /mnt/osvc-cni.deb
cp "$cnitool" /mnt/cnitool
for folder in usr etc var opt; do
  mkdir -p "/mnt/$folder/upper" "/mnt/$folder/work"
  mount -t overlay overlay -o "lowerdir=/$folder,upperdir=/mnt/$folder/upper,workdir=/mnt/$folder/work" "/$folder"
done
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/lock /run/netns /etc/cni/net.d
# What this host has of its own is not what is looked at.
rm -rf /etc/cni/net.d/* /var/lib/cni /opt/cni
ip link set lo up
sysctl -qw net.ipv4.ip_forward=0

# All that the system has, but for dpkg's own books and what others make of any package.
files() {
  find /usr /etc /var /opt \( -path /var/lib/dpkg -o -path /var/cache -o -path /var/log -o -path /usr/share/mime \) -prune \
    -o -print | sort
}

files > /mnt/before
dpkg -i /mnt/osvc-cni.deb > /mnt/log 2>&1 || { cat /mnt/log >&2; die "the package cannot be installed"; }
say "installed: $(dpkg-query -W -f '${Version}' osvc-cni)"

for plugin in osvc-ipam osvc-bridge osvc-routed osvc-portmap; do
  CNI_COMMAND=VERSION "/opt/cni/bin/$plugin" < <(echo '{"cniVersion": "1.0.0"}') | grep -q supportedVersions \
    || die "$plugin tells no versions"
done
[ "$(osvc-net --version)" != "" ] || die "osvc-net does not run"
units=(osvc-net-setup.service osvc-net-repair.service osvc-net-setup.path osvc-net-repair.timer osvc-net-sweep.timer)
for unit in "${units[@]}"; do
  systemctl --root=/ is-enabled "$unit" > /dev/null || die "$unit is not enabled"
done
say "enabled: ${units[*]}"
(cd /usr/lib/systemd/system && systemd-analyze verify osvc-net-*) > /mnt/log 2>&1 || { cat /mnt/log >&2; die "units"; }
! grep osvc-net /mnt/log || die "systemd-analyze verify has something to say"
say "units verified: $(cd /usr/lib/systemd/system && echo osvc-net-*)"
for page in /usr/share/man/man8/osvc-net*.8.gz; do
  zcat "$page" | grep -q '^\.TH' || die "$page is no manual page"
done
bash -c 'source /usr/share/bash-completion/completions/osvc-net; complete -p osvc-net' | grep -q osvc-net || die "completion"
say "manual pages: $(ls /usr/share/man/man8/osvc-net*.8.gz | wc -l)"

told=$(osvc-net doctor) || die "doctor finds, before there is a network: $told"
[ -z "$told" ] || die "doctor has something to say: $told"
osvc-net conf new bridge demo --network 10.99.0.0/24 > /etc/cni/net.d/demo.conflist
osvc-net setup
ip netns add c1
NETCONFPATH=/etc/cni/net.d CNI_PATH=/opt/cni/bin CNI_ARGS='K8S_POD_NAME=web' /mnt/cnitool add demo /run/netns/c1 > /mnt/result
ip netns exec c1 ping -n -c 1 -W 2 10.99.0.1 > /dev/null || die "the container does not reach its gateway"
told=$(osvc-net doctor) || die "doctor finds, with a network: $told"
say "doctor: nothing found, with a network and a container"
osvc-net ip ls

dpkg -i /mnt/osvc-cni.deb > /mnt/log 2>&1 || { cat /mnt/log >&2; die "the package cannot be installed over itself"; }
ip netns exec c1 ping -n -c 1 -W 2 10.99.0.1 > /dev/null || die "the upgrade cut the container off"
say "upgraded under a running container"

dpkg --remove osvc-cni > /mnt/log 2>&1 || { cat /mnt/log >&2; die "the package cannot be removed"; }
grep -q 'network demo is in use' /mnt/log || { cat /mnt/log >&2; die "the container in the way is not named"; }
ip netns exec c1 ping -n -c 1 -W 2 10.99.0.1 > /dev/null || die "the removal cut the container off"
[ -d /var/lib/cni/osvc ] || die "the removal forgot the addresses"
dpkg --purge osvc-cni > /mnt/log 2>&1 || { cat /mnt/log >&2; die "the package cannot be purged"; }
grep -q 'left, since containers used them: obr_demo' /mnt/log || { cat /mnt/log >&2; die "the bridge that is left is not named"; }
[ ! -e /var/lib/cni/osvc ] || die "the purge forgot to forget"
ip netns exec c1 ping -n -c 1 -W 2 10.99.0.1 > /dev/null || die "the purge cut the container off"
say "removed: the network of the container stays"

dpkg -i /mnt/osvc-cni.deb > /mnt/log 2>&1 || { cat /mnt/log >&2; die "the package cannot be installed again"; }
NETCONFPATH=/etc/cni/net.d CNI_PATH=/opt/cni/bin CNI_ARGS='K8S_POD_NAME=web' /mnt/cnitool del demo /run/netns/c1
ip netns del c1
dpkg --purge osvc-cni > /mnt/log 2>&1 || { cat /mnt/log >&2; die "the package cannot be purged"; }
[ -z "$(ip -o link show type bridge)" ] || die "a bridge is left"
[ -z "$(nft list ruleset)" ] || die "rules are left"
rm /etc/cni/net.d/demo.conflist
# cnitool's own, which a purge has nothing to do with.
rm -rf /var/lib/cni/results; rmdir /var/lib/cni 2> /dev/null || true
files > /mnt/after
diff /mnt/before /mnt/after || die "the purge left files"
say "purged: nothing is left"
