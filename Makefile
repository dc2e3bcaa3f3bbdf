# What a person or a machine does with this checkout. `make` alone lists it.

PYTHON ?= /usr/bin/python3
PYTEST_ARGS ?=

# The minor version of Kubernetes that the test cluster runs; without it the one that runs, or the newest.
ifdef KUBERNETES
export MPIRT_TEST_KUBERNETES := $(KUBERNETES)
endif

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
STAGES := build/stages

ROOT_REMEDY := run it as root on a throwaway Debian machine, or set MPIRT_TEST_KUBECONFIG to a \
kubeconfig of a cluster that tests may use. What needs no cluster runs anywhere: make check
VENV_REMEDY := $(PYTHON) can't make .venv; as root: apt-get install python3-venv (Python 3.11 or later)

# What mpirt-rsh says to the shell in a pod is tested with every shell that people have there.
BUSYBOX ?= busybox
HAS_BUSYBOX := command -v $(BUSYBOX) >/dev/null
BUSYBOX_REMEDY := the tests need busybox; as root: apt-get install busybox-static

# Test doubles and test clusters have certificates of their own.
HAS_OPENSSL := command -v openssl >/dev/null
OPENSSL_REMEDY := the tests need openssl; as root: apt-get install openssl

# The keeper is built for five architectures; those of the others run here as well. They come with one package.
OTHER_MACHINE := $(if $(filter s390x,$(shell uname -m)),x86_64,s390x)
QEMU ?= qemu-$(OTHER_MACHINE)-static
HAS_QEMU := command -v $(QEMU) >/dev/null
QEMU_REMEDY := the tests need $(QEMU); as root: apt-get install qemu-user-static

CAN_MAKE_VENV := $(PYTHON) -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null

.DEFAULT_GOAL := help
.NOTPARALLEL:

.PHONY: help
help: ## list these targets
	@sed -n 's/^\([a-z][a-z0-9.-]*\):[^#]*## /\1 /p' Makefile | \
	  while read -r target text; do printf '  make %-23s %s\n' "$$target" "$$text"; done

# ---- the whole -----------------------------------------------------------------------------------------------

# What a run makes, in this order, once there is an environment. tests/run records every pytest that they start: a
# test that fails is run once more, and what all of them come to is said at the end.
RUN := check $(if $(MPIRT_TEST_KUBECONFIG),e2e,neighbours cluster api-and-e2e)

.PHONY: test test-full ci soak
test: HOW := --tier merge
test: ## what a change must pass: what this machine lacks, then checks and tests, the cluster's too (root)
test-full: HOW := --keep
test-full: RUN += $(if $(MPIRT_TEST_KUBECONFIG),,oldest)
test-full: ## everything, also on the oldest Kubernetes; hours (root)
ci: HOW := --tier merge $(if $(MPIRT_TEST_KUBECONFIG),,--slice)
ci: ## `make test`, and a slice of what only `make test-full` has (root)
test test-full ci: may-test
	@rm -f $(STAGES)
	+@$(call stage,system)
	+@$(call stage,venv)
	+@$(BIN)/python -m tests.run test $(HOW) $(RUN)

N ?= 5
soak: may-test system venv ## `make test` N times (5), without second chances: what failed how often (root)
	+@$(BIN)/python -m tests.run soak --tier merge --times $(N) $(RUN)

# Where a seed is named, its rounds are played again.
.PHONY: chaos
chaos: export MPIRT_TEST_CHAOS = $(if $(filter file,$(origin N)),200,$(N))
chaos: export MPIRT_TEST_SEED = $(or $(SEED),mpirt)
chaos: may-test cluster ## N random schedules (200) of outages and deaths on the cluster, from a SEED (root)
	$(BIN)/python -m pytest -s tests/e2e/chaos $(PYTEST_ARGS)

MINUTES ?= 60
.PHONY: endurance
endurance: export MPIRT_TEST_MINUTES = $(MINUTES)
endurance: export MPIRT_TEST_SEED = $(or $(SEED),mpirt)
endurance: may-test cluster ## commands start and end among faults for MINUTES (60); fails if anything leaks (root)
	$(BIN)/python -m pytest -s tests/e2e/endurance $(PYTEST_ARGS)

# Make one target, say how long it took, and note it for whoever sums up.
define stage
mkdir -p $(dir $(STAGES)); echo "==> make $(1)"; begin=$$(date +%s); $(MAKE) --no-print-directory $(1); code=$$?; \
took=$$(($$(date +%s) - begin)); printf '%s %s %s\n' $(1) "$$took" "$$code" >> $(STAGES); \
echo "<== make $(1): $$took s, exit code $$code"; exit $$code
endef

.PHONY: check
# The run says which tier it wants; a person wants what a change must pass. What was compiled once is read by every
# interpreter of the tests, and what mypy has found out by every checkout of this user.
check: export TEST_RUN_TIER ?= merge
check: export PYTHONDONTWRITEBYTECODE :=
check: export MYPY_CACHE_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mpirt-mypy
check: may-check lint programs ## everything that needs no cluster: lint, types, unit and protocol tests with coverage
	@mkdir -p build; code=0; others=; \
	$(foreach part,$(PARTS),$(BIN)/python -m $(HASTY) $($(part)) $(PYTEST_ARGS) >build/beside-$(part).log 2>&1 & \
	  others="$$others $$!"; ) \
	nice $(BIN)/mypy >build/beside-TYPES.log 2>&1 & others="$$others $$!"; \
	$(BIN)/coverage run -m $(HASTY) -p tests.run.counting tests/unit $(patsubst %,--ignore=%,$(UNCOUNTED)) $(PYTEST_ARGS) \
	  || code=$$?; for one in $$others; do wait $$one || code=$$?; done; \
	cat $(patsubst %,build/beside-%.log,$(PARTS) TYPES); exit $$code
	$(BIN)/coverage report

TIERED := pytest -p tests.run.selection
# None of these needs so many seconds on the busiest machine; one that hangs holds up all.
HASTY := $(TIERED) --timeout 300

# What is run beside the counted tests, all at once: most of them wait half of their time, so each lasts about as long
# as the counted ones. Every test file is in one of them.
PARTS := PROGRAMS UNITS CASES SESSIONS KILLS SWITCHBOARDS CONTROLLERS HUBS OTHERS DISCOVERIES
protocol = $(addprefix tests/protocol/,$(1))

# The keeper and the agent.
PROGRAMS := $(addprefix tests/unit/,agent keeper)
# Other unit tests of what is no module that only computes, and long ones that take no branch which others don't take:
# where branches are counted, Python needs three times as long.
UNITS := $(addprefix tests/unit/,api demo e2e images kube run test_ci.py test_docs.py test_imports.py \
  test_install.py test_layers.py test_makefile.py test_packaging.py test_promises.py \
  $(addprefix controller/loop/test_,long_plans.py refused_workers.py) \
  $(addprefix controller/decisions/test_,cut_off.py harmless_edits.py odd_numbers.py rights.py suspended.py) \
  controller/scaling/test_drains.py \
  $(addprefix kubeapi/test_,kubeconfig.py plugin.py) \
  $(addprefix rsh/test_,loop.py started_once.py))
UNCOUNTED := $(PROGRAMS) $(UNITS)

# Tests whose cases run ahead of them; and the other ones of mpirt-rsh.
CASES := $(call protocol,$(addprefix rsh/test_,answers.py connections.py credentials.py waiting.py))
SESSIONS := $(call protocol,rsh) $(patsubst %,--ignore=%,$(CASES))
KILLS := $(call protocol,$(addprefix switchboard/test_,dials.py kills.py))
SWITCHBOARDS := $(call protocol,switchboard) $(patsubst %,--ignore=%,$(KILLS))
CONTROLLERS := $(call protocol,controller)
HUBS := $(call protocol,podhub)
DISCOVERIES := $(call protocol,discover)
OTHERS := tests/protocol $(patsubst %,--ignore=%,$(call protocol,rsh switchboard controller podhub discover))

# ---- the parts -----------------------------------------------------------------------------------------------

.PHONY: lint types format
lint: venv ## ruff, and whether everything is formatted
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: venv ## mypy, strict
	$(BIN)/mypy

format: venv ## format everything, mend what ruff can mend
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

.PHONY: unit protocol api e2e api-and-e2e
unit: may-check venv programs ## tests of values: no socket, no cluster
	$(BIN)/python -m pytest tests/unit $(PYTEST_ARGS)

protocol: venv programs ## tests against a loopback API server
	$(BIN)/python -m pytest tests/protocol $(PYTEST_ARGS)

# More at once than processors: they wait for leases and pods most of their time.
api: venv programs ## tests of the controller on a real control plane without nodes
	@$(BIN)/python -m tests.run layer --at-once 4 tests/api $(PYTEST_ARGS)

e2e: venv programs ## tests on the cluster: the one of `make cluster`, or MPIRT_TEST_KUBECONFIG
	@$(BIN)/python -m tests.run layer tests/e2e $(PYTEST_ARGS)

# Meanwhile the tests of e2e that break their cluster run on another one.
api-and-e2e: venv programs ## both of them, in less time than one after the other
	@$(BIN)/python -m tests.run layer --at-once 1 --beside tests/api tests/e2e $(PYTEST_ARGS)

# Of what the tier leaves out, which is TEST_RUN_TIER. Those without a cluster come first: many of them give what they
# start a few seconds, and beside those of a cluster it does not get them.
.PHONY: rest
rest: venv programs
	$(BIN)/python -m $(TIERED) -n2 --dist=loadfile tests/unit tests/protocol
	@$(BIN)/python -m tests.run layer --at-once 1 --beside tests/api tests/e2e

# The oldest version that there is a recipe for.
OLDEST = $(patsubst testbed/kube/modules/kubernetes-%,%,$(firstword $(sort $(wildcard testbed/kube/modules/kubernetes-*))))

.PHONY: oldest
oldest: export MPIRT_TEST_KUBERNETES := $(OLDEST)
oldest: cluster ## some of the cluster's tests, on the oldest Kubernetes, which replaces the one that runs (root)
	@$(BIN)/python -m tests.run layer tests/e2e -m oldest $(PYTEST_ARGS)

.PHONY: cluster cluster-down
cluster: venv programs ## start the test cluster, or heal the one that runs, and load its images (root)
	$(BIN)/python -m testbed.kube up
	$(BIN)/python -m testbed.kube images

.PHONY: neighbours
neighbours: venv ## build what tests run beside mpirt: Kueue, mpi-operator, Trainer, a gang scheduler; a quarter of an hour the first time
	$(BIN)/python -m testbed.kube neighbours

# An environment that is out of date must not keep a cluster from being removed.
cluster-down: $(if $(wildcard $(BIN)/python),,venv) ## remove the test cluster, and that of tests that break theirs; caches stay (root)
	for number in 2 1; do MPIRT_TEST_CLUSTER=$$number $(BIN)/python -m testbed.kube down || exit; done

# CLUSTER=current takes the cluster of kubectl's current context; `python -m demo --help` has all variables.
.PHONY: demo
demo: venv programs ## run an MPI job on the test cluster and say where its ranks ran (root); CLUSTER=current: on yours
	@$(BIN)/python -m demo

.PHONY: crds
crds: venv ## write the pod specs in crds/ anew, as the newest Kubernetes of the test cluster has them
	@mkdir -p build
	$(BIN)/python -m testbed.plane /openapi/v3/api/v1 >build/openapi.json
	$(BIN)/python crds/generate.py <build/openapi.json

# ---- installation on a cluster -------------------------------------------------------------------------------

# REGISTRY=PREFIX TAG=TAG name the images, NAMESPACE another namespace; `$(PYTHON) deploy/render.py` lists all
# variables. It needs only Python's standard library: no .venv, no kubectl, no network.
.PHONY: install.yaml install-namespaced.yaml
install.yaml: ## build/install.yaml: the controller for all namespaces, with the images of REGISTRY and TAG
	@$(PYTHON) deploy/render.py cluster

install-namespaced.yaml: ## build/install-namespaced.yaml: the same for one NAMESPACE
	@$(PYTHON) deploy/render.py namespaced

# ---- what they stand on --------------------------------------------------------------------------------------

.PHONY: may-test
may-test:
ifdef MPIRT_TEST_KUBECONFIG
	@test -r "$$MPIRT_TEST_KUBECONFIG" || { echo "MPIRT_TEST_KUBECONFIG names a file that can't be read: $$MPIRT_TEST_KUBECONFIG" >&2; exit 1; }
else
	@test "$$(id -u)" = 0 || { echo "make test starts a cluster on this machine, which needs root: $(ROOT_REMEDY)" >&2; exit 1; }
endif

.PHONY: may-check
may-check:
	@$(HAS_BUSYBOX) || { echo "$(BUSYBOX_REMEDY)" >&2; exit 1; }
	@$(HAS_QEMU) || { echo "$(QEMU_REMEDY)" >&2; exit 1; }

.PHONY: system
system: ## install what .venv and the unit tests stand on, where it is missing (root, Debian)
	@{ $(CAN_MAKE_VENV) && $(HAS_BUSYBOX) && $(HAS_OPENSSL) && $(HAS_QEMU); } || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get -q update </dev/null && \
	  DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends \
	    python3 python3-venv ca-certificates busybox-static openssl qemu-user-static </dev/null; } || true
	@$(CAN_MAKE_VENV) || { echo "$(VENV_REMEDY)" >&2; exit 1; }
	@$(HAS_BUSYBOX) || { echo "$(BUSYBOX_REMEDY)" >&2; exit 1; }
	@$(HAS_OPENSSL) || { echo "$(OPENSSL_REMEDY)" >&2; exit 1; }
	@$(HAS_QEMU) || { echo "$(QEMU_REMEDY)" >&2; exit 1; }

.PHONY: venv
venv: $(READY) ## .venv: mpirt itself (editable), linters, test tools; made again when pyproject.toml changes

$(READY): pyproject.toml
	@$(CAN_MAKE_VENV) || { echo "$(VENV_REMEDY)" >&2; exit 1; }
	@echo "making $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --editable '.[controller]' --group dev
	@touch $@

# The numbers are those of mpirt/agent and mpirt/keeper. What the compiler makes for itself the first time is in
# ~/.cache/zig.
AGENTS := $(addprefix mpirt/agent/agent-1-,amd64 arm64)
KEEPERS := $(addprefix mpirt/keeper/keeper-1-,amd64 arm64 ppc64le riscv64 s390x)
sources-of = $(wildcard $(foreach part,$(1) common,images/$(part)/*.c images/$(part)/*.h)) images/build.py

.PHONY: programs keeper
programs: $(AGENTS) $(KEEPERS) ## the agent and the keeper, for each architecture; a minute the first time
keeper: programs

mpirt/agent/agent-1-%: $(call sources-of,agent) | $(READY)
	$(BIN)/python images/build.py agent $(@D) $*

mpirt/keeper/keeper-1-%: $(call sources-of,keeper) | $(READY)
	$(BIN)/python images/build.py keeper $(@D) $*

.PHONY: clean
clean: ## remove .venv, built programs, and what tools left; the cluster and the caches outside the checkout stay
	rm -rf $(VENV) build dist .coverage .mypy_cache .pytest_cache .ruff_cache mpirt/agent/agent-* mpirt/keeper/keeper-*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
