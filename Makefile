# Thin: calls what people would type.
#   make demo    a verdict on an emulated 1 Gb/s pair, in about two minutes
#   make test    every check that can run here
#   make quick   the shorter ones of those that need neither root nor real hosts
#   make soak    the long forms of tests and an hour of fuzzing, which a release needs; hours
#   make bench   figures side by side with peers; wants a quiet machine
#   make wheel   dist/framegauge-*.whl, with the agent for this kind of machine (ARCH=aarch64: for another)
#   make man     build/man/*.1
SHELL = /bin/sh
VENV = .venv
HOST = $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
AGENT = target/$(HOST)/release/framegauge-agent
NODELAY = libframegauge_nodelay.so
ARCH = $(firstword $(subst -, ,$(HOST)))
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test quick soak lint bench build clean preflight agent man wheel

demo: build
	$(VENV)/bin/framegauge study --preset demo

test: $(VENV)/installed
	@scripts/preflight test
	@$(VENV)/bin/python scripts/checks.py test

quick: $(VENV)/installed
	@scripts/preflight lint
	@$(VENV)/bin/python scripts/checks.py quick

soak: $(VENV)/installed
	@scripts/preflight test
	@$(VENV)/bin/python scripts/checks.py soak

lint: $(VENV)/installed
	@scripts/preflight lint
	@$(VENV)/bin/python scripts/checks.py lint

bench: build
	cargo run --release --locked -p framegauge-fabric --example speed
	$(VENV)/bin/python -m bench.truth.truth
	$(VENV)/bin/python -m bench.truth.rack
	$(VENV)/bin/python -m bench.peers.fabric
	$(VENV)/bin/python -m bench.peers.traffic
	$(VENV)/bin/python -m bench.cost.costs
	$(VENV)/bin/python -m bench.busy
	$(VENV)/bin/python -m bench.truth.latency
	$(VENV)/bin/python -m bench.cost.meters
	$(VENV)/bin/python -m bench.fleet
	$(VENV)/bin/python -m bench.peers.check
	$(VENV)/bin/python -m bench.truth.calibration
	$(VENV)/bin/python -m bench.truth.known
	$(VENV)/bin/python -m bench.hosts.agents
	$(VENV)/bin/python -m bench.hosts.chaos
	$(VENV)/bin/python -m bench.hosts.chaos_ends
	$(VENV)/bin/python -m bench.hosts.chaos_rollout
	$(VENV)/bin/python -m bench.hosts.rollout_lab
	$(VENV)/bin/python -m bench.diagnose
	$(VENV)/bin/python -m bench.simulate
	$(VENV)/bin/python -m bench.exchanges
	$(VENV)/bin/python -m bench.validation
	$(VENV)/bin/python -m bench.outcast
	$(VENV)/bin/python -m bench.incast
	$(VENV)/bin/python -m bench.storage

man: $(VENV)/installed
	$(VENV)/bin/python scripts/man.py

# That of this machine is the one that `make agent` made; another is compiled across.
wheel: build man
	scripts/wheel $(ARCH) $(AGENT) $(VENV)/bin/python

build: agent $(VENV)/installed

preflight:
	@scripts/preflight build

# Static, so that the same file runs on any host, in any namespace or pod. Beside it goes the library that programs are
# started with where Nagle's algorithm is a factor.
agent: preflight
	RUSTFLAGS='-C target-feature=+crt-static' \
		cargo build --release --locked --target $(HOST) --target-dir target -p framegauge-agent
	@LC_ALL=C ldd $(AGENT) 2>&1 | grep -Eq 'statically linked|not a dynamic executable' || \
		{ echo "$(AGENT) is not static; see ldd $(AGENT)" >&2; exit 1; }
	RUSTFLAGS= cargo build --profile preload --locked --target $(HOST) --target-dir target -p framegauge-nodelay
	install target/$(HOST)/preload/$(NODELAY) $(dir $(AGENT))

$(VENV)/installed: pyproject.toml | preflight
	"$$(scripts/preflight python)" -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet -e '.[test]'
	@touch $@

clean:
	rm -rf target build dist $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis python/src/*.egg-info
