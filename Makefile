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
PREFIX ?= /opt/cni/bin
SBIN ?= /usr/local/sbin
CNITOOL_VERSION := v1.3.0
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
  tcpdump:tcpdump tar:tar qemu-system-x86_64:qemu-system-x86 setpriv:util-linux wg:wireguard-tools
MISSING = $(shell PATH=$$PATH:/usr/sbin:/sbin; for need in $(NEEDS); do \
  command -v "$${need%%:*}" >/dev/null 2>&1 || echo "$${need##*:}"; done | sort -u)

export OSVC_BIN := $(BIN)
export OSVC_TOOLS := $(TOOLS)
export OSVC_REPORT := $(REPORT)
export OSVC_VM := $(VM)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

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
test: deps build cnitool kernel ## run all tests, with real runtimes, in namespaces of their own
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

.PHONY: install
install: build ## install the plugins into /opt/cni/bin (PREFIX) and osvc-net into /usr/local/sbin (SBIN)
	$(SUDO) install -D -m 0755 -t $(DESTDIR)$(PREFIX) $(addprefix $(BIN)/,$(PLUGINS))
	$(SUDO) install -D -m 0755 -t $(DESTDIR)$(SBIN) $(BIN)/osvc-net
