#!/bin/bash
# demo.sh BIN: shows what it is for, with podman, in namespaces of its own. Nothing of the host is changed, and what was
# made is gone with the last process of this script.
set -euo pipefail

if [ "${1:-}" != inside ]; then
  bin=$(realpath "${1:?the folder of the built plugins}")
  here=$(dirname "$(realpath "$0")")
  [ "$(id -u)" = 0 ] || { echo "namespaces are made by root: run \`sudo make demo\`" >&2; exit 1; }
  for plugin in osvc-ipam osvc-bridge osvc-portmap; do
    [ -x "$bin/$plugin" ] || { echo "$bin/$plugin is missing: run \`make build\`" >&2; exit 1; }
  done
  cgroup=osvc-demo-$$
  # Control groups are the one thing that namespaces do not contain.
  trap 'for i in 1 2 3 4 5; do
          find /sys/fs/cgroup -depth -type d -path "*/$cgroup*" -exec rmdir {} + 2>/dev/null || true
          [ -n "$(find /sys/fs/cgroup -type d -name "$cgroup" 2>/dev/null)" ] || break; sleep 0.1
        done' EXIT
  unshare -m --propagation private bash "$0" inside disk "$bin" "$here/../conf-examples" "$cgroup"
  exit
fi
export PATH=$PATH:/usr/sbin:/sbin

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
tell() { printf '   %s\n' "$*"; }
die() { printf '\n!! %s\n' "$*" >&2; exit 1; }

# The machine's disk: what outlives its reboots, on tmpfs in this mount namespace.
disk() {
  local bin=$1 examples=$2 cgroup=$3
  mount -t tmpfs -o mode=755 tmpfs /run
  mkdir -p /run/opt
  mount -t tmpfs -o mode=755 tmpfs /run/opt
  mkdir -p /run/opt/cni/bin /run/opt/disk/bb/{bin,tmp,etc} /run/opt/disk/net.d /run/opt/demo
  cp "$bin"/osvc-ipam "$bin"/osvc-bridge "$bin"/osvc-portmap /run/opt/cni/bin/
  cp "$examples"/podman.conflist /run/opt/disk/net.d/
  cp "$0" /run/opt/demo/demo.sh
  mount --move /run/opt /opt
  mount -t tmpfs -o mode=755 tmpfs /var/lib
  mkdir -p /var/lib/cni
  cat > /opt/disk/containers.conf <<EOF
[network]
network_backend = "cni"
cni_plugin_dirs = ["/opt/cni/bin"]
network_config_dir = "/opt/disk/net.d"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
EOF
  printf '[storage]\ndriver = "overlay"\ngraphroot = "/opt/disk/root"\nrunroot = "/run/r"\n' > /opt/disk/storage.conf
  cp /bin/busybox /opt/disk/bb/bin/
  for applet in $(/bin/busybox --list); do [ "$applet" = busybox ] || ln -s busybox "/opt/disk/bb/bin/$applet"; done
  tar c -C /opt/disk/bb . > /opt/disk/bb.tar

  boot first "$cgroup"
  say "Reboot: every process of the machine is killed, /run is wiped, the boot id changes. No plugin is told (no DEL)."
  boot second "$cgroup"
  say "Done. The namespaces end here: no device, rule, container or file is left on this host."
}

# One life of the machine: network, mount and pid namespaces of its own. Leaving it is pulling the plug.
boot() {
  unshare -m -n -p -u -f --kill-child=SIGKILL --propagation private bash /opt/demo/demo.sh inside life "$@"
}

podman() {
  command podman --root /opt/disk/root --runroot /run/r --tmpdir /run/l --log-level error "$@"
}

start() { # NAME [OPTION…]: a container that serves one page
  podman run -d --name "$1" --network osvc --cgroup-parent "/$cgroup" "${@:2}" bb \
    sh -c 'mkdir -p /www; echo "This is $0." > /www/index.html; httpd -p 80 -h /www; exec sleep 1000' "$1" > /dev/null
}

identity() { # NAME: address and MAC, asked inside the container
  podman exec "$1" ip addr show dev eth0 | awk '/link\/ether/ { mac = $2 } $1 == "inet" { ip = $2 } END { print ip, "MAC", mac }'
}

show() { tell "$1: $(identity "$1")"; }

same() { # NAME BEFORE
  local now
  now=$(identity "$1")
  [ "$now" = "$2" ] || die "$1 had $2, now it has $now"
  tell "$1: $now   the same as before"
}

reaches() { # NAME ADDRESS WHAT
  podman exec "$1" ping -c 1 -W 2 "$2" > /dev/null || die "$1 does not reach $3 ($2)"
  tell "$1 reaches $3 ($2)"
}

# busybox's wget is static and looks names up with what it does not have: bash asks for the page.
get() { # ADDRESS PORT
  timeout 2 bash -c 'exec 3<>"/dev/tcp/$1/$2"; printf "GET / HTTP/1.0\r\n\r\n" >&3; cat <&3' get "$1" "$2" 2> /dev/null
}
export -f get

page() { # NAME: the page is there for the world and for the host
  local from got
  for from in outside host; do
    for _ in {1..20}; do
      if [ "$from" = outside ]; then got=$(ip netns exec outside bash -c 'get 192.0.2.2 8080' | tail -n 1)
      else got=$(get 127.0.0.1 8080 | tail -n 1); fi
      [ "$got" != "This is $1." ] || break
      sleep 0.1
    done
    [ "$got" = "This is $1." ] || die "port 8080 asked from $from: '$got'"
    tell "asked from $from, port 8080: $got"
  done
}

closed() {
  ! ip netns exec outside bash -c 'get 192.0.2.2 8080' > /dev/null || die "port 8080 answers"
  tell "asked from outside, port 8080: nobody answers."
}

address() { identity "$1" | cut -d/ -f1; }

life() {
  local which=$1
  cgroup=$2
  mount -t proc proc /proc
  mount -t tmpfs -o mode=755 tmpfs /run
  mkdir -p /run/lock /run/netns
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm
  cat /proc/sys/kernel/random/uuid > /run/boot_id
  mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
  ip link set lo up
  # The rest of the world: a namespace behind a cable, 192.0.2.1. It has no route back to any container.
  ip netns add outside
  ip link add up0 type veth peer name eth0 netns outside
  ip addr add 192.0.2.2/24 dev up0
  ip link set up0 up
  ip -n outside addr add 192.0.2.1/24 dev eth0
  ip -n outside addr add 198.51.100.1/32 dev lo
  ip -n outside link set lo up
  ip -n outside link set eth0 up
  ip route add default via 192.0.2.1
  export CONTAINERS_CONF=/opt/disk/containers.conf CONTAINERS_STORAGE_CONF=/opt/disk/storage.conf TMPDIR=/run
  "life_$which"
}

life_first() {
  say "A machine of its own, made of namespaces: $(command podman --version), $(nft --version | cut -d' ' -f1,2), kernel $(uname -r)."
  tell "The whole network configuration (conf-examples/podman.conflist):"
  sed 's/^/      /' /opt/disk/net.d/podman.conflist
  podman import /opt/disk/bb.tar bb > /dev/null 2>&1

  say "Two containers, named web and db, on the network osvc."
  start web -p 8080:80
  start db
  show web
  show db
  tell "An address follows from the container's name; the MAC follows from the address."

  say "They reach each other, and an address outside."
  reaches web "$(address db)" db
  reaches db "$(address web)" web
  reaches web 198.51.100.1 "an address outside"
  tell "outside has no route back to the containers: it answers because what leaves the network is masqueraded."

  say "web was started with -p 8080:80: its page is fetched from outside and by 127.0.0.1."
  page web
  tell "A look-up in a map translates the port, whether 1 or 10 000 are published:"
  nft list map ip osvc-cni-portmap any | grep -o 'tcp . 8080.*[0-9]' | sed 's/^/      /'

  say "web is removed. Another container is started, then web is created anew."
  local web db
  web=$(identity web)
  db=$(identity db)
  podman rm -f -t 0 web > /dev/null
  closed
  start other
  show other
  start web -p 8080:80
  same web "$web"
  page web
  reaches db "$(address web)" "the new web"
  printf '%s\n%s\n' "$web" "$db" > /opt/disk/before
}

life_second() {
  local web db
  { read -r web; read -r db; } < /opt/disk/before
  tell "Boot id: $(cat /proc/sys/kernel/random/boot_id). Devices: $(ip -o link | awk -F': ' '{ print $2 }' | xargs)."
  say "db is started again (the same container). web is removed and created anew (another container, the same name)."
  podman start db > /dev/null
  same db "$db"
  closed
  podman rm -f -t 0 web > /dev/null
  start web -p 8080:80
  same web "$web"
  page web
  reaches web "$(address db)" db
  reaches db 198.51.100.1 "an address outside"

  say "Everything is removed."
  podman rm -f -a -t 0 > /dev/null
  tell "Devices that are left in the machine: $(ip -o link | awk -F': ' '{ print $2 }' | xargs)."
  closed
  local held
  held=$(cat /var/lib/cni/osvc/ipam/osvc/*.* | grep '"held"' | grep -c "$(cat /proc/sys/kernel/random/boot_id)" || true)
  tell "Addresses held by what runs: $held. Records stay: whoever comes back under its name gets its address back."
}

shift
"$@"
