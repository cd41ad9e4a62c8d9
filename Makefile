# `make help` lists the targets. Everything works as root or with sudo, on Debian 12 with Rust, Go, make and gcc.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
TARGET := $(shell rustc -vV | sed -n 's/^host: //p')
OUT := $(or $(CARGO_TARGET_DIR),target)
TOOLS := $(abspath target/tools)
BIN := $(abspath bin)
REPORT := $(abspath target/integration-report)
VM := $(abspath target/vm)
# Where `make install` puts things: plugins where the runtimes look for them, all else under PREFIX.
PREFIX ?= /usr/local
CNIBIN ?= /opt/cni/bin
CNITOOL_VERSION := v1.3.0
CARGO_DEB_VERSION := 3.8.0
MAN := $(abspath share/man)
COMPLETIONS := $(abspath share/completions)
DEB := $(abspath target/deb)
CARGO := $(abspath target/cargo)
# Static, for any distribution. Without what nobody reads (lean.ld), with relocations in the short form (RELR), and with
# what occurs time and again once (outliner).
LEAN := -C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs \
  -C link-arg=-Wl,--no-eh-frame-hdr -C link-arg=-Wl,-T,$(abspath lean.ld) \
  -C llvm-args=-enable-machine-outliner=always
PLUGINS := osvc-ipam osvc-bridge osvc-routed osvc-portmap

# Program and the Debian package it is in: what the tests and the demo run.
NEEDS := podman:podman containerd:containerd ctr:containerd runc:runc conmon:conmon nft:nftables ip:iproute2 \
  ping:iputils-ping strace:strace jq:jq iptables:iptables pgrep:procps unshare:util-linux xargs:findutils \
  /usr/bin/time:time /bin/busybox:busybox-static /usr/lib/cni/bridge:containernetworking-plugins \
  tcpdump:tcpdump tar:tar systemd-analyze:systemd deb-systemd-helper:init-system-helpers qemu-system-x86_64:qemu-system-x86 setpriv:util-linux wg:wireguard-tools
MISSING = $(shell PATH=$$PATH:/usr/sbin:/sbin; for need in $(NEEDS); do \
  command -v "$${need%%:*}" >/dev/null 2>&1 || echo "$${need##*:}"; done | sort -u)

export OSVC_BIN := $(BIN)
export OSVC_TOOLS := $(TOOLS)
export OSVC_REPORT := $(REPORT)
export OSVC_VM := $(VM)
export OSVC_DEB := $(DEB)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the static release binaries into bin/
	RUSTFLAGS="$(LEAN)" cargo build --release --target $(TARGET) \
	  $(addprefix --package ,$(PLUGINS) osvc-net)
	mkdir -p $(BIN)
	install -m 0755 $(foreach name,$(PLUGINS) osvc-net,$(OUT)/$(TARGET)/release/$(name)) $(BIN)/

.PHONY: deps
deps: ## install the Debian packages that tests and demo need, if any is missing
	@missing="$(MISSING)"; \
	if [ -n "$$missing" ]; then \
	  echo "installing: $$missing"; \
	  $(SUDO) apt-get update -q; \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$missing; \
	fi

.PHONY: cnitool
cnitool: $(TOOLS)/cnitool ## build cnitool, the CNI project's own runtime, into target/tools/

$(TOOLS)/cnitool:
	@command -v go >/dev/null || { echo "go is missing: cnitool is built with it (apt-get install golang)" >&2; exit 1; }
	GOBIN=$(TOOLS) go install github.com/containernetworking/cni/cnitool@$(CNITOOL_VERSION)

.PHONY: kernel
kernel: $(VM) ## unpack Debian's cloud kernel, which the tests boot in qemu, into target/vm/

$(VM): | deps
	$(SUDO) apt-get update -q
	integration/vm/fetch-kernel $@

.PHONY: demo
demo: deps build ## show it: stable addresses with podman, in namespaces of its own
	$(SUDO) integration/demo.sh $(BIN)

.PHONY: test
test: deps build cnitool kernel deb ## run all tests, with real runtimes, in namespaces of their own
	@mkdir -p $(dir $(REPORT)); : > $(REPORT)
	@if [ "$$(id -u)" -ne 0 ]; then echo "the tests make namespaces: run \`sudo -E make test\`" >&2; exit 1; fi
	cargo test --workspace --no-fail-fast || { rc=$$?; $(MAKE) -s report; exit $$rc; }
	@$(MAKE) -s report; echo "Nothing was skipped."

.PHONY: report
report:
	@echo; echo "What ran, with what:"; sort -u $(REPORT) | sed 's/^/  /'

.PHONY: bench
bench: deps build ## time the plugins beside the reference plugins
	$(SUDO) env PATH="$$PATH" OSVC_BIN=$(BIN) cargo run --quiet --release --package integration --bin bench

.PHONY: lint
lint: ## formatting and lints, as CI has them
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

.PHONY: manual
manual: build ## write manual pages and completions into share/
	rm -rf $(MAN) $(COMPLETIONS); mkdir -p $(COMPLETIONS)
	$(BIN)/osvc-net man $(MAN)
	$(BIN)/osvc-net completion bash > $(COMPLETIONS)/osvc-net
	$(BIN)/osvc-net completion zsh > $(COMPLETIONS)/_osvc-net
	$(BIN)/osvc-net completion fish > $(COMPLETIONS)/osvc-net.fish

.PHONY: install
install: manual ## install plugins (CNIBIN=/opt/cni/bin) and osvc-net with units and manual (PREFIX=/usr/local, DESTDIR=)
	$(SUDO) install -D -m 0755 -t $(DESTDIR)$(CNIBIN) $(addprefix $(BIN)/,$(PLUGINS))
	$(SUDO) install -D -m 0755 -t $(DESTDIR)$(PREFIX)/sbin $(BIN)/osvc-net
	$(SUDO) install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man8 $(MAN)/*.8
	$(SUDO) install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(COMPLETIONS)/osvc-net
	$(SUDO) install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(COMPLETIONS)/_osvc-net
	$(SUDO) install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d $(COMPLETIONS)/osvc-net.fish
	$(SUDO) install -D -m 0644 -t $(DESTDIR)$(PREFIX)/lib/systemd/system packaging/systemd/*.service \
	  packaging/systemd/*.path packaging/systemd/*.timer
	$(SUDO) install -D -m 0644 -t $(DESTDIR)$(PREFIX)/lib/systemd/networkd.conf.d packaging/networkd/osvc-cni.conf
	$(SUDO) install -D -m 0644 -t $(DESTDIR)$(PREFIX)/lib/systemd/network packaging/networkd/05-osvc-cni.network

.PHONY: uninstall
uninstall: ## stop the units and remove what install put there; networks and addresses stay
	@if [ -z "$(DESTDIR)" ] && [ -d /run/systemd/system ]; then \
	  $(SUDO) systemctl disable --now $(notdir $(wildcard packaging/systemd/*)) || true; fi
	$(SUDO) rm -f $(addprefix $(DESTDIR)$(CNIBIN)/,$(PLUGINS)) $(DESTDIR)$(PREFIX)/sbin/osvc-net \
	  $(DESTDIR)$(PREFIX)/share/man/man8/osvc-net*.8 \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions/osvc-net \
	  $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_osvc-net \
	  $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/osvc-net.fish \
	  $(addprefix $(DESTDIR)$(PREFIX)/lib/systemd/system/,$(notdir $(wildcard packaging/systemd/*))) \
	  $(DESTDIR)$(PREFIX)/lib/systemd/networkd.conf.d/osvc-cni.conf \
	  $(DESTDIR)$(PREFIX)/lib/systemd/network/05-osvc-cni.network

$(CARGO)/bin/cargo-deb:
	cargo install --quiet --root $(CARGO) --version $(CARGO_DEB_VERSION) --locked cargo-deb

.PHONY: deb
deb: manual $(CARGO)/bin/cargo-deb ## make the Debian package, in target/deb/
	rm -rf $(DEB); mkdir -p $(DEB)
	$(CARGO)/bin/cargo-deb --package osvc-net --no-build --no-strip --target $(TARGET) --output $(DEB)/
