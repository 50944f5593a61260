# The two commands a newcomer needs are `make demo` and `make test`; `make help` lists the rest.
PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv
# --find-links and indexes come from the machine's own pip/uv configuration, never from here.
# Bytecode is made here: where the files may not be written later, every start would compile them.
PIP_INSTALL := $(UV) pip install --python $(BIN)/python --quiet --compile-bytecode

.PHONY: quick provision test-all contract examples conformance help demo ui screenshots wheel test test-hadoop test-flink test-containers test-oidc test-trino test-extras coverage chaos kills check check-ui fmt lock proto clean bench bench-budget bench-queue mutations model

help:  ## print this list
	@grep -hE '^[a-z./-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

.venv/bootstrap: requirements-bootstrap.txt
	@echo "==> creating .venv"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Shoal needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bootstrap.txt
	@touch $@

.venv/run: .venv/bootstrap requirements.txt pyproject.toml  ## install Shoal and its pinned dependencies into .venv
	@echo "==> installing Shoal and its pinned dependencies (PySpark is 450 MB: the first time takes a minute or two)"
	$(PIP_INSTALL) --require-hashes -r requirements.txt
	$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

.venv/dev: .venv/run requirements-dev.txt  ## the same, with the tools for development and tests
	@echo "==> installing the test tools"
	$(PIP_INSTALL) --require-hashes -r requirements-dev.txt
	@touch $@

.venv/node: .venv/run ui/requirements.txt  ## install Node, which builds the web UI, into .venv
	@echo "==> installing Node for the web UI"
	$(PIP_INSTALL) --require-hashes -r ui/requirements.txt
	@touch $@

ui: .venv/node  ## build the web UI that the API serves (a minute the first time, then only what changed)
	$(BIN)/python ui/build.py

screenshots: .venv/dev ui  ## take pictures of every page of the web UI, into docs/images/ (some minutes; needs Debian's chromium)
	$(BIN)/python -m tests.screenshots

wheel: .venv/node  ## build the wheel, with the web UI in it, into dist/
	$(BIN)/python ui/build.py
	$(UV) build --quiet --wheel --no-build-isolation --python $(BIN)/python

demo: .venv/run ui  ## start a local cluster, run the example pipeline on it, show the result
	$(BIN)/shoal demo examples/flights/workflow.yaml --show report --show picture --data .shoal

quick: .venv/dev  ## check the code and run the tests that matter most (three minutes the second time)
	$(MAKE) --no-print-directory --jobs=2 --output-sync check
	$(BIN)/python -m tests --share quick

test: provision  ## run the checks and the tests: unit, integration, a smoke test of each external system
	$(MAKE) --no-print-directory --jobs=2 --output-sync check check-ui
	$(BIN)/python -m tests

test-all: provision ui  ## run what `make test` leaves out: long scenarios, more Spark, more browser tests
	$(BIN)/python -m tests --share rest; status=$$?; $(MAKE) --no-print-directory test-extras && exit $$status

provision: .venv/dev .venv/node  ## install the Debian packages that the tests use, where it may
	@# Without them their tests are skipped, with the reason; in CI that is an error.
	sh tests/provision.sh || test -z "$$CI"

# A kind of task takes some minutes, SPARK an hour; what is done is in build/kills-SEED.jsonl, where
# the same SEED goes on.
kills: CASES = 100
kills: .venv/dev  ## kill -9 around the submission of each type of task; CASES=100, SEED=4711, TYPES=SSH,HTTP
	sh tests/provision.sh
	CASES=$(CASES) SEED=$(SEED) TYPES=$(TYPES) $(BIN)/python -m tests.kills

# Hadoop opens ports to all addresses, so the tests have a network of their own.
test-hadoop: .venv/dev  ## run the tests on a real HDFS and YARN, which Maven fetches (some minutes)
	mvn --quiet --batch-mode -f tests/hadoop/pom.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/tests/hadoop/jars
	unshare --map-root-user --net sh -c 'ip link set lo up && exec $(BIN)/python -m pytest tests/hadoop'

test-flink: .venv/dev  ## run the tests on a real Flink, 330 MB that are fetched once (some minutes)
	test -d tests/flink/libraries/pyflink || $(UV) pip install --python $(BIN)/python --require-hashes --target tests/flink/libraries -r tests/flink/requirements.txt
	$(BIN)/python -m pytest tests/flink

# The engines are started by the tests, as root; containers have no network, or this one.
test-containers: .venv/dev  ## run the tests of CONTAINER on a real Docker and podman, as root (minutes)
	sh tests/containers/provision.sh
	unshare --net sh -c 'ip link set lo up && exec $(BIN)/python -m pytest tests/containers'

test-oidc: .venv/dev  ## run the tests with a certified OpenID provider, 3 MB that npm fetches (seconds)
	mkdir -p build/openid
	cp tests/openid/package.json tests/openid/package-lock.json tests/openid/provider.mjs build/openid
	npm ci --prefix build/openid --ignore-scripts --no-audit --no-fund --silent
	$(BIN)/python -m pytest tests/openid

test-trino: .venv/dev  ## run the tests on a real Trino, 210 MB that Maven fetches once (a minute)
	mvn --quiet --batch-mode -f tests/trino/pom.xml dependency:copy -DoutputDirectory=$(CURDIR)/build/trino/fetched
	$(BIN)/python -m pytest tests/trino

# The plug-ins are installed beside the environment: the product is tested without them.
test-extras: .venv/dev  ## run the tests of the plug-in packages in extras/ (seconds; the first time fetches 20 MB)
	$(PIP_INSTALL) --require-hashes --target build/extras -r extras/experimental_databases/requirements.txt
	$(PIP_INSTALL) --no-deps --no-build-isolation --target build/extras extras/experimental_databases
	PYTHONPATH=build/extras $(BIN)/python -m pytest extras

coverage: .venv/dev  ## run all tests and show the lines that none of them reaches (twice as long)
	sh tests/provision.sh
	$(BIN)/python -m tests --share all --coverage

# FAULTS=1000 for the long form; SEED=… replays the faults of an earlier run.
FAULTS ?=
chaos: .venv/dev  ## run the fault suite on a real cluster, then the mutations; FAULTS=1000, SEED=4711
	sh tests/provision.sh
	@# Status 4: nothing was wrong, but not every fault could be tried. And would the tests notice if
	@# one of the safety checks were gone?
	FAULTS=$(FAULTS) SEED=$(SEED) DATABASE=$(DATABASE) $(BIN)/python -m tests.chaos; status=$$?; \
	test $$status = 0 -o $$status = 4 || exit $$status; $(BIN)/python -m tests.mutations && exit $$status

check-ui: .venv/node  ## check the web UI (lint, types, tests) and build it
	$(BIN)/python ui/build.py --check

check: .venv/dev  ## check format, lint, types and import contracts
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports

mutations: .venv/dev  ## take out each safety check in turn; some test must notice (hours)
	sh tests/provision.sh || test -z "$$CI"
	$(BIN)/python -m tests.mutations

# 100,000 cases take about ten minutes; SEED=… chooses others.
CASES ?= 100000
model: .venv/dev  ## test decide against the reference model on random cases; CASES=100000, SEED=1
	$(BIN)/python -m tests.unit.core.decide.reference --cases $(CASES) --seed $(or $(SEED),1)

# Everything that docs/performance.md shows, and into it. QUICK=--quick leaves out the largest workloads.
bench: .venv/dev  ## measure all figures of docs/performance.md, on an idle machine (half an hour); QUICK=--quick
	sh tests/provision.sh
	mkdir -p bench/results
	$(BIN)/python -m bench.engine $(QUICK)
	$(BIN)/python -m bench.engine $(QUICK) --masters 2 --workers 2 --only WIDE --no-idle --name engine-2x2
	$(BIN)/python -m bench.profile --top 12 >bench/results/profile.md
	$(BIN)/python -m bench.counts >bench/results/counts.md
	$(BIN)/python -m bench.growth
	$(BIN)/python -m bench.scale
	$(BIN)/python -m bench.document
	@# When all is written down: has a task become much dearer than it was?
	$(BIN)/python -m bench.guard

# After a change that makes tasks cheaper: from then on they must not become dearer again.
bench-budget: .venv/dev  ## record what a task costs now in bench/budget.json
	$(BIN)/python -m bench.counts --record
	$(BIN)/python -m bench.guard --record

bench-queue: .venv/run  ## measure claims with up to a million tasks waiting (minutes)
	$(BIN)/python -m bench.queue

fmt: .venv/dev  ## format, and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove .venv and all caches (not your data folders)
	rm -rf ui/node_modules api/shoal/api/static .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage* dist

lock: .venv/bootstrap  ## pin all dependencies anew, with hashes
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate requirements-bootstrap.in -o requirements-bootstrap.txt
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate pyproject.toml --extra local --extra examples --group build -o requirements.txt
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate pyproject.toml --extra local --extra examples --group build --group dev -c requirements.txt -o requirements-dev.txt

examples: .venv/dev  ## record the examples of the API's description from real answers; then make contract
	SHOAL_RECORD_EXAMPLES=1 $(BIN)/python -m pytest tests/integration/api/web/test_conformance.py

# BREAK=--break writes what callers cannot rely on any more, too.
contract: .venv/dev  ## write what follows from the API: description, promises, types and calls of the client
	$(BIN)/python -m tests.contract $(BREAK)

# The short form is part of `make test`.
conformance: EXAMPLES = 20
conformance: .venv/dev  ## ask the API whatever its description allows, and what not (some minutes); EXAMPLES=20, SEED=1
	SHOAL_CONFORMANCE_EXAMPLES=$(EXAMPLES) SHOAL_CONFORMANCE_SEED=$(or $(SEED),1) $(BIN)/python -m pytest --timeout 7200 tests/integration/api/web/test_conformance.py

proto: .venv/dev  ## generate the gRPC stubs from proto/shoal/proto/shoal.proto
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/python -m grpc_tools.protoc -Iproto --python_out=proto --mypy_out=proto --grpc_python_out=proto --mypy_grpc_out=proto proto/shoal/proto/shoal.proto
